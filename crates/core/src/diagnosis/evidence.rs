//! The numbers that each finding rests on.

use super::Diagnosis;
use crate::words::value;

pub(super) type Numbers = Vec<(&'static str, f64)>;

impl Diagnosis {
    /// The numbers it rests on, by name; those that are not finite are not known.
    pub(super) fn evidence(&self) -> Numbers {
        self.trial_evidence()
            .or_else(|| self.connection_evidence())
            .or_else(|| self.silence_evidence())
            .or_else(|| self.shape_evidence())
            .or_else(|| self.doubt_evidence())
            .unwrap_or_default()
    }

    /// Of a trial.
    fn trial_evidence(&self) -> Option<Numbers> {
        let numbers = match self {
            Diagnosis::NonStationary { at, longest_s } => {
                let levels = (!at.is_empty()).then_some(("levels", at.len() as f64));
                let longest = Some(("longest_trial_s", *longest_s));
                levels.into_iter().chain(longest).collect()
            }
            Diagnosis::LittlesLawViolation {
                n,
                x_times_r,
                deviation_percent,
                ..
            } => vec![
                ("n", *n),
                ("x_times_r", *x_times_r),
                ("deviation_percent", *deviation_percent),
            ],
            Diagnosis::GeneratorLimited {
                busy_percent,
                workers,
                ..
            } => vec![
                ("busiest_worker_percent", *busy_percent),
                ("workers", f64::from(*workers)),
            ],
            Diagnosis::GeneratorDistorted { clauses, .. } => {
                vec![("clauses", clauses.len() as f64)]
            }
            Diagnosis::ThinkDeviation {
                asked_ns,
                overshoot_ns,
                ..
            } => vec![("asked_ns", *asked_ns), ("overshoot_ns", *overshoot_ns)],
            Diagnosis::Errors { percent, .. } => vec![("error_percent", *percent)],
            Diagnosis::TargetQueueGrows {
                offered_per_s,
                served_per_s,
                waiting,
                ..
            } => vec![
                ("offered_per_s", *offered_per_s),
                ("served_per_s", *served_per_s),
                ("waiting_at_end", *waiting),
            ],
            Diagnosis::ServerStalled {
                from_ns, stall_ns, ..
            } => vec![("from_ns", *from_ns), ("stall_ns", *stall_ns)],
            _ => return None,
        };
        Some(numbers)
    }

    /// Of the connections of a trial.
    fn connection_evidence(&self) -> Option<Numbers> {
        let numbers = match self {
            Diagnosis::ConnectionsLimit {
                connections,
                service_ns,
                offered_per_s,
                carried_per_s,
                unsent,
                wait_ns,
                ..
            } => vec![
                ("connections", *connections),
                ("connections_needed", self.connections_needed()),
                ("service_time_ns", *service_ns),
                ("offered_per_s", *offered_per_s),
                ("carried_per_s", *carried_per_s),
                ("unsent", *unsent),
                ("connection_wait_p50_ns", *wait_ns),
            ],
            Diagnosis::SurplusBytes { responses, .. } => vec![("responses", *responses)],
            _ => return None,
        };
        Some(numbers)
    }

    /// How many connections carry what is offered, if the target takes no longer for each then.
    pub(super) fn connections_needed(&self) -> f64 {
        match self {
            Diagnosis::ConnectionsLimit {
                service_ns,
                offered_per_s,
                ..
            } => (offered_per_s * service_ns / 1e9).ceil(),
            _ => 0.0,
        }
    }

    /// Of how throughput goes with the level.
    fn shape_evidence(&self) -> Option<Numbers> {
        let numbers = match self {
            Diagnosis::SaturatedBelowRange {
                range,
                max_throughput_per_s,
                ..
            } => vec![
                ("lowest_level", range[0]),
                ("highest_level", range[1]),
                ("max_throughput_per_s", *max_throughput_per_s),
            ],
            Diagnosis::PastKnee {
                at,
                knee,
                gain_percent,
                times,
                ..
            } => vec![
                ("knee", *knee),
                ("first_level", at.first().map_or(f64::NAN, |l| value(*l))),
                ("gain_percent", *gain_percent),
                ("response_time_ratio_min", times[0]),
                ("response_time_ratio_max", times[1]),
            ],
            Diagnosis::NotSaturated {
                last,
                gain_percent,
                at_least,
                ..
            } => vec![
                ("last_level", *last),
                ("gain_percent", *gain_percent),
                ("knee_at_least", at_least.unwrap_or(f64::NAN)),
            ],
            Diagnosis::KneeNotBracketed { at_most, lowest } => {
                vec![("knee_at_most", *at_most), ("lowest_level", *lowest)]
            }
            Diagnosis::Retrograde {
                peak,
                max_throughput_per_s,
                last,
                throughput_per_s,
                ..
            } => vec![
                ("peak_level", *peak),
                ("max_throughput_per_s", *max_throughput_per_s),
                ("last_level", *last),
                ("throughput_per_s", *throughput_per_s),
            ],
            _ => return None,
        };
        Some(numbers)
    }

    /// Of the rest.
    fn doubt_evidence(&self) -> Option<Numbers> {
        let numbers = match self {
            Diagnosis::Udp(of_datagrams) => of_datagrams.evidence(),
            Diagnosis::TooFewLevels { level, .. } => vec![("level", *level)],
            Diagnosis::KneeMethodsDisagree {
                asymptotes,
                reached_percent,
                others,
                range,
            } => {
                let [lo, hi] = range.unwrap_or([f64::NAN; 2]);
                let own = [
                    ("asymptotes", *asymptotes),
                    ("reached_percent", *reached_percent),
                    ("knee_at_least", lo),
                    ("knee_at_most", hi),
                ];
                own.into_iter().chain(others.iter().copied()).collect()
            }
            Diagnosis::DriftsBetweenTrials {
                first_per_s,
                last_per_s,
                apart_s,
                ..
            } => vec![
                ("first_per_s", *first_per_s),
                ("last_per_s", *last_per_s),
                ("apart_s", *apart_s),
            ],
            Diagnosis::IdleUsers { users, active, .. } => {
                vec![("users", *users), ("active", *active)]
            }
            Diagnosis::ConfidenceNotReached {
                throughput_percent,
                knee_percent,
                trials,
            } => vec![
                ("throughput_percent", throughput_percent.unwrap_or(f64::NAN)),
                ("knee_percent", knee_percent.unwrap_or(f64::NAN)),
                ("trials", *trials as f64),
            ],
            Diagnosis::ErrorsRise {
                lowest_percent,
                percent,
                ..
            } => vec![
                ("lowest_level_error_percent", *lowest_percent),
                ("error_percent", *percent),
            ],
            Diagnosis::WarmedUp {
                first_per_s,
                later_per_s,
                ..
            } => vec![("first_per_s", *first_per_s), ("later_per_s", *later_per_s)],
            Diagnosis::BoundUnreachable { figure_ns, .. } => vec![("figure_ns", *figure_ns)],
            Diagnosis::Throttle(of_throttle) => of_throttle.evidence(),
            Diagnosis::Latency(of_flows) => of_flows.evidence(),
            Diagnosis::Overload(of_overload) => of_overload.evidence(),
            Diagnosis::Interrupted { trials } => vec![("trials", *trials as f64)],
            _ => return None,
        };
        Some(numbers)
    }
}
