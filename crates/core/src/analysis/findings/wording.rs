//! The sentences, the evidence and the next steps.

use super::{AxisKind, Diagnosis};
use crate::analysis::words::{levels, number, percent, ratio, time, users, value};
use crate::spec::Level;

impl Diagnosis {
    /// A sentence for a person.
    pub(super) fn text(&self) -> String {
        match self {
            Diagnosis::SaturatedBelowRange { .. }
            | Diagnosis::PastKnee { .. }
            | Diagnosis::NotSaturated { .. }
            | Diagnosis::KneeNotBracketed { .. }
            | Diagnosis::TooFewLevels { .. }
            | Diagnosis::Retrograde { .. }
            | Diagnosis::KneeMethodsDisagree { .. }
            | Diagnosis::ConfidenceNotReached { .. }
            | Diagnosis::ErrorsRise { .. }
            | Diagnosis::WarmedUp { .. }
            | Diagnosis::BoundUnreachable { .. } => self.sweep_text(),
            _ => self.trial_text(),
        }
    }

    fn trial_text(&self) -> String {
        match self {
            Diagnosis::NonStationary { at, .. } => format!(
                "{}throughput or response time drifts during the measurement: its mean is not \
                 one number",
                place(at)
            ),
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
                "{}the generator is the limit, not the server: its busiest core is {} busy",
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
                number(waiting.round())
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
            Diagnosis::StoppedEarly { reason } => format!("the experiment ended early: {reason}"),
            _ => self.interrupted_text(),
        }
    }

    fn interrupted_text(&self) -> String {
        let trials = match self {
            Diagnosis::Interrupted { trials } => *trials,
            _ => 0,
        };
        let noun = if trials == 1 { "trial" } else { "trials" };
        format!("interrupted: this rests on {trials} {noun}, the last perhaps cut short")
    }

    fn sweep_text(&self) -> String {
        match self {
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
            } => format!(
                "{} {} past the knee of {}: {} than {}, and answers take {} times as long as at \
                 the knee",
                levels(at),
                if at.len() == 1 { "is" } else { "are" },
                number(*knee),
                gain(*gain_percent),
                number(*before),
                between(times.map(ratio))
            ),
            Diagnosis::NotSaturated {
                axis,
                last,
                before,
                gain_percent,
                at_least,
            } => match (axis, at_least) {
                (AxisKind::Vusers, Some(knee)) => format!(
                    "throughput still rises at the last level, {} ({} over {}): the knee is at \
                     {} or beyond",
                    users(*last),
                    percent(*gain_percent),
                    number(*before),
                    users(knee.round())
                ),
                _ => format!(
                    "the last level, {}, is still served in full ({} more than {}): the limit \
                     lies beyond it",
                    axis.amount(*last),
                    percent(*gain_percent),
                    number(*before)
                ),
            },
            Diagnosis::KneeNotBracketed { at_most, lowest } => format!(
                "throughput already bends at the lowest level, {}: the knee is at most {} users",
                users(*lowest),
                number(*at_most)
            ),
            Diagnosis::TooFewLevels { axis, level } => {
                format!("a single level, {}, shows no knee", axis.amount(*level))
            }
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
            _ => self.confidence_text(),
        }
    }

    fn confidence_text(&self) -> String {
        match self {
            Diagnosis::KneeMethodsDisagree {
                asymptotes,
                method,
                other,
            } => format!(
                "the asymptotes put the knee at {}, {method} at {}: throughput bends so gradually \
                 (or the levels are so far apart) that neither is sharp",
                users(*asymptotes),
                users(*other)
            ),
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
            Diagnosis::ErrorsRise {
                at,
                lowest_percent,
                percent: p,
            } => format!(
                "failures rise with the load: {} of the operations at the lowest level, up to {} \
                 at {}",
                percent(*lowest_percent),
                percent(*p),
                levels(at)
            ),
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
            Diagnosis::BoundUnreachable {
                bound,
                lowest,
                figure_ns,
            } => format!(
                "no level meets {bound}: even {} takes {}",
                levels(&[*lowest]),
                time(*figure_ns)
            ),
            _ => String::new(),
        }
    }

    /// What to do next, with the very flags to use.
    pub(super) fn next_step(&self) -> String {
        match self {
            Diagnosis::NonStationary { longest_s, .. } => {
                let s = longest_s.max(1.0).ceil();
                format!(
                    "let the target settle and measure longer: --warmup {s}s --duration {}s; if \
                     it still drifts, the target itself changes",
                    4.0 * s
                )
            }
            Diagnosis::LittlesLawViolation { .. } => {
                "measure longer: --duration 60s; if it persists, operations are lost or counted \
                 twice, please report it"
                    .into()
            }
            Diagnosis::GeneratorLimited { workers, .. } => format!(
                "give it more cores: --threads {}, or run it on another machine than the server",
                workers + 1
            ),
            Diagnosis::GeneratorDistorted { .. } => {
                "repeat on a quieter or larger machine, or offer less: a lower --rate or --vusers"
                    .into()
            }
            Diagnosis::ThinkDeviation { .. } => {
                "wait more precisely: --wait spin, or use fewer users per core".into()
            }
            Diagnosis::Errors { .. } | Diagnosis::ErrorsRise { .. } => {
                "read the failures by kind in `outcomes`; find the level where they begin: a \
                 lower --vusers or --rate"
                    .into()
            }
            Diagnosis::TargetQueueGrows { served_per_s, .. } => format!(
                "offer less: --rate {}, or find the highest rate that is served: knee sweep \
                 --axis rate",
                (0.8 * served_per_s).max(1.0).floor()
            ),
            Diagnosis::ServerStalled { .. } => {
                "look at that moment in the server's log (collection of garbage, a checkpoint, a \
                 lock), and repeat to see whether it is periodic: --duration 60s"
                    .into()
            }
            Diagnosis::StoppedEarly { .. } => {
                "make one request work first: knee run URL --vusers 1 -n 1".into()
            }
            Diagnosis::Interrupted { .. } => "run it again to its end".into(),
            _ => self.sweep_next_step(),
        }
    }

    fn sweep_next_step(&self) -> String {
        match self {
            Diagnosis::SaturatedBelowRange { axis, range, .. } => axis.lower_levels(range[0]),
            Diagnosis::PastKnee { knee, .. } => format!(
                "drive it with about {0} users: --vusers {0}",
                knee.round().max(1.0)
            ),
            Diagnosis::NotSaturated { axis, last, .. } => axis.higher_levels(*last),
            Diagnosis::KneeNotBracketed { lowest, .. } => AxisKind::Vusers.lower_levels(*lowest),
            Diagnosis::TooFewLevels { axis, .. } => axis.automatic(),
            Diagnosis::Retrograde { axis, peak, .. } => format!(
                "keep the load at or below {}, and look for what {} contend for (locks, memory, \
                 retries)",
                axis.amount(*peak),
                if *axis == AxisKind::Vusers {
                    "more users"
                } else {
                    "higher rates"
                }
            ),
            Diagnosis::KneeMethodsDisagree {
                asymptotes, other, ..
            } => {
                let (lo, hi) = (asymptotes.min(*other), asymptotes.max(*other));
                let steps: Vec<String> = (0..=4)
                    .map(|i| {
                        (lo * (hi / lo).powf(f64::from(i) / 4.0))
                            .round()
                            .to_string()
                    })
                    .collect();
                format!("measure between them: --vusers 1,{}", steps.join(","))
            }
            Diagnosis::ConfidenceNotReached { .. } => {
                "measure each level for longer: --duration 30s, on a quieter host".into()
            }
            Diagnosis::WarmedUp { .. } => {
                "let the target warm up before it is measured: --warmup 10s".into()
            }
            Diagnosis::BoundUnreachable {
                figure_ns, bound, ..
            } => {
                let figure = bound.split("<=").next().unwrap_or("p90");
                let limit = time(1.5 * figure_ns).replace(' ', "").replace('µ', "u");
                format!("ask for what it can meet, such as --bound {figure}={limit}")
            }
            _ => String::new(),
        }
    }

    /// The numbers it rests on, by name.
    pub(super) fn evidence(&self) -> Vec<(&'static str, f64)> {
        match self {
            Diagnosis::NonStationary { at, longest_s } => {
                vec![("levels", at.len() as f64), ("longest_trial_s", *longest_s)]
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
            Diagnosis::Interrupted { trials } => vec![("trials", *trials as f64)],
            Diagnosis::StoppedEarly { .. } => Vec::new(),
            _ => self.sweep_evidence(),
        }
    }

    fn sweep_evidence(&self) -> Vec<(&'static str, f64)> {
        match self {
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
            Diagnosis::TooFewLevels { level, .. } => vec![("level", *level)],
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
            Diagnosis::KneeMethodsDisagree {
                asymptotes,
                method,
                other,
            } => vec![("asymptotes", *asymptotes), (*method, *other)],
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
            _ => Vec::new(),
        }
    }
}

impl AxisKind {
    /// `5,000 users`, `5,000/s`.
    pub(super) fn amount(self, level: f64) -> String {
        match self {
            AxisKind::Vusers => users(level),
            AxisKind::Rate => format!("{}/s", number(level)),
        }
    }

    fn start(self) -> &'static str {
        match self {
            AxisKind::Vusers => "1",
            AxisKind::Rate => "a hundredth of it",
        }
    }

    fn automatic(self) -> String {
        match self {
            AxisKind::Vusers => "let the levels be found: --vusers auto".into(),
            AxisKind::Rate => "let the rates be found: --axis rate (without --rates)".into(),
        }
    }

    /// Two levels to the decade, from the beginning to just below `lowest`.
    fn lower_levels(self, lowest: f64) -> String {
        let first = match self {
            AxisKind::Vusers => 1.0,
            AxisKind::Rate => 10f64.powf((lowest / 100.0).log10().floor()),
        };
        let steps: Vec<String> = (0..12)
            .map(|i| first * [1.0, 3.0][i % 2] * 10f64.powi(i as i32 / 2))
            .take_while(|&level| level < lowest)
            .map(|level| level.to_string())
            .collect();
        let steps = if steps.is_empty() {
            "1".to_owned()
        } else {
            steps.join(",")
        };
        match self {
            AxisKind::Vusers => format!("start at 1: --vusers {steps} (or --vusers auto)"),
            AxisKind::Rate => format!("start lower: --axis rate --rates {steps}"),
        }
    }

    fn higher_levels(self, last: f64) -> String {
        let steps: Vec<String> = [1.0, 2.0, 4.0, 8.0]
            .iter()
            .map(|f| (f * last).round().to_string())
            .collect();
        let steps = steps.join(",");
        match self {
            AxisKind::Vusers => format!("go on: --vusers 1,{steps} (or --vusers auto)"),
            AxisKind::Rate => format!("go on: --axis rate --rates {steps}"),
        }
    }
}

fn place(at: &[Level]) -> String {
    if at.is_empty() {
        return String::new();
    }
    format!("at {}: ", levels(at))
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
