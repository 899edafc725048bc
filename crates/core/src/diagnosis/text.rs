//! Each finding as a sentence.

use super::Diagnosis;
use crate::experiment::sweep::findings::AxisKind;
use crate::spec::Level;
use crate::words::{estimate, exact, levels, list, number, percent, ratio, time, users};

impl Diagnosis {
    /// A sentence for a person.
    pub(super) fn text(&self) -> String {
        self.generator_text()
            .or_else(|| self.target_text())
            .or_else(|| self.silence_text())
            .or_else(|| self.course_text())
            .or_else(|| self.shape_text())
            .or_else(|| self.rising_text())
            .or_else(|| self.doubt_text())
            .or_else(|| self.ending_text())
            .unwrap_or_default()
    }

    /// What the generator, not the target, did.
    fn generator_text(&self) -> Option<String> {
        let text = match self {
            Diagnosis::LittlesLawViolation {
                at,
                n,
                x_times_r,
                deviation_percent,
            } => format!(
                "{}the numbers contradict each other: {} were running, but throughput times \
                 response time accounts for {} ({} apart)",
                place(at),
                users(*n),
                number(*x_times_r),
                percent(*deviation_percent)
            ),
            Diagnosis::GeneratorLimited {
                at, busy_percent, ..
            } => format!(
                "{}the generator is the limit, with its busiest core {} busy: the server can do at \
                 least this, and answers sooner than the response times say",
                place(at),
                percent(*busy_percent)
            ),
            Diagnosis::GeneratorDistorted { at, clauses } => format!(
                "{}the generator distorted the load: {}",
                place(at),
                clauses.join("; ")
            ),
            Diagnosis::ThinkDeviation {
                at,
                asked_ns,
                overshoot_ns,
            } => format!(
                "{}users paused {} where {} were asked for",
                place(at),
                time(asked_ns + overshoot_ns),
                time(*asked_ns)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// What a pool of connections that is too small does.
    fn pool_text(&self) -> String {
        let Diagnosis::ConnectionsLimit {
            connections,
            service_ns,
            offered_per_s,
            carried_per_s,
            unsent,
            wait_ns,
            ..
        } = self
        else {
            return String::new();
        };
        let unsent = match *unsent > 0.0 {
            true => format!("; {} operations timed out unsent", exact(*unsent)),
            false => String::new(),
        };
        format!(
            "the load is limited by --connections {}: at {} for each operation they carry at most \
             {}/s of the {}/s offered, and half of the operations waited {} or longer for \
             one{unsent}",
            exact(*connections),
            time(*service_ns),
            number(*carried_per_s),
            number(*offered_per_s),
            time(*wait_ns),
        )
    }

    /// What the target did during a trial.
    fn target_text(&self) -> Option<String> {
        let text = match self {
            Diagnosis::NonStationary { at, .. } => format!(
                "{}throughput or response time drifts during the measurement: its mean is not \
                 one number",
                place(at)
            ),
            Diagnosis::Errors {
                at,
                percent: p,
                kind,
            } => format!(
                "{}{} of the operations failed, most of them with `{kind}`",
                place(at),
                percent(*p)
            ),
            Diagnosis::TargetQueueGrows {
                at,
                offered_per_s,
                served_per_s,
                waiting,
            } => format!(
                "{}more is offered than the target serves: {}/s against {}/s, so its queue and \
                 every response time grow for as long as the load lasts ({} were waiting at the \
                 end)",
                place(at),
                number(*offered_per_s),
                number(*served_per_s),
                exact(waiting.round())
            ),
            Diagnosis::ConnectionsLimit { at, .. } => format!("{}{}", place(at), self.pool_text()),
            Diagnosis::SurplusBytes { at, responses } => format!(
                "{}bytes that nobody asked for followed {}: the responses count as they are, and \
                 their connections were closed",
                place(at),
                match *responses == 1.0 {
                    true => "a whole response".to_owned(),
                    false => format!("{} whole responses", exact(*responses)),
                }
            ),
            Diagnosis::ServerStalled {
                at,
                from_ns,
                stall_ns,
            } => format!(
                "{}the target stood still for about {} near {} into the measurement and then \
                 caught up, while the generator was on time",
                place(at),
                time(*stall_ns),
                time(*from_ns)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// How the target fared from trial to trial.
    fn course_text(&self) -> Option<String> {
        let text = match self {
            Diagnosis::ErrorsRise {
                at,
                lowest_percent,
                percent: p,
                kind,
            } => {
                let kind = kind.map_or(String::new(), |k| format!(", most of them with `{k}`"));
                format!(
                    "failures rise with the load: {} of the operations at the lowest level, up \
                     to {} at {}{kind}",
                    percent(*lowest_percent),
                    percent(*p),
                    levels(at)
                )
            }
            Diagnosis::WarmedUp {
                at,
                first_per_s,
                later_per_s,
            } => format!(
                "the server was slower at first ({}/s at {}, later {}/s): those first trials are \
                 not used",
                number(*first_per_s),
                levels(at),
                number(*later_per_s)
            ),
            Diagnosis::DriftsBetweenTrials {
                at,
                first_per_s,
                last_per_s,
                apart_s,
            } => format!(
                "the target changes with time, whatever the load: {}/s at {}, {}/s at the same \
                 level {} later; levels measured at different times are not comparable",
                number(*first_per_s),
                levels(&[*at]),
                number(*last_per_s),
                time(1e9 * apart_s)
            ),
            Diagnosis::IdleUsers {
                at,
                users: n,
                active,
            } => format!(
                "at {}: throughput times mean response time accounts for {} of {}; the others \
                 paused, or had no connection or no response",
                levels(at),
                number(*active),
                users(*n)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// How throughput goes with the level.
    fn shape_text(&self) -> Option<String> {
        let text = match self {
            Diagnosis::SaturatedBelowRange { axis, range, .. } => format!(
                "every level is past saturation: the knee is below {}; start at {}",
                axis.amount(range[0]),
                axis.start()
            ),
            Diagnosis::PastKnee {
                at,
                knee,
                before,
                gain_percent,
                times,
                ..
            } => format!(
                "{} are past the knee of {}: {} than {}, and answers take {} times as long as at \
                 the knee",
                levels(at),
                estimate(*knee),
                gain(*gain_percent),
                exact(*before),
                between(times.map(ratio))
            ),
            Diagnosis::KneeNotBracketed { at_most, lowest } => format!(
                "throughput already bends at the lowest level, {}: the knee is at most {} users",
                users(*lowest),
                estimate(*at_most)
            ),
            Diagnosis::Retrograde {
                axis,
                peak,
                max_throughput_per_s,
                last,
                throughput_per_s,
            } => format!(
                "throughput falls beyond {}: {}/s at {}, {} less than the most, {}/s",
                axis.amount(*peak),
                number(*throughput_per_s),
                axis.amount(*last),
                percent(100.0 * (1.0 - throughput_per_s / max_throughput_per_s)),
                number(*max_throughput_per_s)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// That the most was not reached.
    fn rising_text(&self) -> Option<String> {
        let text = match self {
            Diagnosis::NotSaturated {
                axis: AxisKind::Rate,
                last,
                ..
            } => format!(
                "the highest rate, {}/s, is still served without a growing queue: the limit lies \
                 beyond it",
                exact(*last)
            ),
            Diagnosis::NotSaturated {
                last,
                before,
                gain_percent,
                at_least,
                failing,
                ..
            } => {
                let served = failing.map_or(String::new(), |n| {
                    format!(" before operations fail at {}", users(n))
                });
                let knee = at_least.map_or("the knee lies beyond".to_owned(), |n| {
                    format!("the knee is at {} or beyond", users(n.round()))
                });
                format!(
                    "throughput still rises at the last level{served}, {} ({} over {}): {knee}",
                    users(*last),
                    percent(*gain_percent),
                    exact(*before)
                )
            }
            _ => return None,
        };
        Some(text)
    }

    /// What the levels leave open.
    fn doubt_text(&self) -> Option<String> {
        let text = match self {
            Diagnosis::TooFewLevels { axis, level } => {
                format!("a single level, {}, shows no knee", axis.amount(*level))
            }
            Diagnosis::KneeMethodsDisagree {
                asymptotes,
                reached_percent,
                others,
                range,
            } => disagreement(*asymptotes, *reached_percent, others, *range),
            Diagnosis::ConfidenceNotReached {
                throughput_percent,
                knee_percent,
                trials,
            } => format!(
                "after {trials} trials the maximum throughput is known {} and the knee {}, not \
                 within 2 %",
                within(*throughput_percent),
                within(*knee_percent)
            ),
            Diagnosis::BoundUnreachable {
                bound,
                lowest,
                figure_ns,
            } => format!(
                "no level meets {bound}: even {} takes {}",
                levels(&[*lowest]),
                time(*figure_ns)
            ),
            _ => return None,
        };
        Some(text)
    }

    /// How the experiment ended.
    fn ending_text(&self) -> Option<String> {
        match self {
            Diagnosis::Udp(of_datagrams) => Some(of_datagrams.text()),
            Diagnosis::Throttle(of_throttle) => Some(of_throttle.text()),
            Diagnosis::Latency(of_flows) => Some(of_flows.text()),
            Diagnosis::Overload(of_overload) => Some(of_overload.text()),
            Diagnosis::StoppedEarly { reason } => {
                Some(format!("the experiment ended early: {reason}"))
            }
            Diagnosis::Unreachable { reason } => {
                Some(format!("the target could not be reached: {reason}"))
            }
            Diagnosis::Interrupted { trials } => {
                let noun = if *trials == 1 { "trial" } else { "trials" };
                Some(format!(
                    "interrupted: this rests on {trials} {noun}, the last perhaps cut short"
                ))
            }
            _ => None,
        }
    }
}

impl AxisKind {
    /// `5,000 users`, `5,000/s`.
    pub(super) fn amount(self, level: f64) -> String {
        match self {
            AxisKind::Vusers => users(level),
            AxisKind::Rate => format!("{}/s", exact(level)),
        }
    }

    fn start(self) -> &'static str {
        match self {
            AxisKind::Vusers => "1",
            AxisKind::Rate => "a hundredth of it",
        }
    }
}

pub(super) fn place(at: &[Level]) -> String {
    if at.is_empty() {
        return String::new();
    }
    format!("at {}: ", levels(at))
}

fn disagreement(
    asymptotes: f64,
    reached_percent: f64,
    others: &[(&str, f64)],
    range: Option<[f64; 2]>,
) -> String {
    let others: Vec<String> = others
        .iter()
        .map(|(method, level)| format!("{} at {}", method.replace('_', " "), users(*level)))
        .collect();
    let Some([lo, hi]) = range else {
        return format!(
            "the asymptotes put the knee at {}, {}: throughput bends so gradually (or the levels \
             are so far apart) that neither is sharp",
            users(asymptotes),
            list(&others)
        );
    };
    let others = match others.is_empty() {
        true => String::new(),
        false => format!("; {}", list(&others)),
    };
    format!(
        "no single number is the knee: the asymptotes cross at {}, where throughput is {} of its \
         maximum{others}; the knee is between {} and {}",
        users(asymptotes),
        percent(reached_percent),
        estimate(lo),
        users(hi)
    )
}

fn gain(percent_more: f64) -> String {
    if percent_more <= 0.05 {
        return "no more throughput".into();
    }
    format!("at most {} more throughput", percent(percent_more))
}

fn between([lo, hi]: [String; 2]) -> String {
    if lo == hi {
        lo
    } else {
        format!("{lo} to {hi}")
    }
}

fn within(half_width_percent: Option<f64>) -> String {
    match half_width_percent {
        Some(half) => format!("within {}", percent(half)),
        None => "without a confidence interval".into(),
    }
}
