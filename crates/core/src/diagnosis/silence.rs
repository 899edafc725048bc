//! What is said of a target that did not answer: outages, operations that hang, periodic pauses.

use super::Diagnosis;
use super::evidence::Numbers;
use super::text::place;
use crate::spec::Level;
use crate::words::{exact, levels, number, percent, time};

/// A rate that is offered beside a closed loop's throughput: below capacity.
const OPEN_SHARE: f64 = 0.9;

impl Diagnosis {
    /// It in words.
    pub(super) fn silence_text(&self) -> Option<String> {
        let text = match self {
            Diagnosis::Outage {
                at,
                from_ns,
                until_ns,
                count,
                lasted_ns,
                failures,
            } => format!(
                "{}not one good response came from {} into the measurement until {}{}, and {} \
                 operations failed: throughput is the mean of times with and without the target",
                place(at),
                time(*from_ns),
                until_ns.map_or("its end".to_owned(), time),
                match *count > 1.0 {
                    true => format!(
                        " ({} such times, {} in all)",
                        number(*count),
                        time(*lasted_ns)
                    ),
                    false => String::new(),
                },
                number(*failures)
            ),
            Diagnosis::Hung {
                at,
                hung,
                throughout,
                users,
                waited_ns,
            } => hung_text(at, *hung, *throughout, *users, *waited_ns),
            Diagnosis::PeriodicPauses {
                at,
                period_ns,
                length_ns,
                percent: share,
                closed_per_s,
                ..
            } => {
                let hides = match closed_per_s {
                    Some(_) => {
                        "; in a closed loop users ask nothing meanwhile, so its percentiles show \
                         few of these waits: in an open loop all who come then wait"
                    }
                    None => "",
                };
                format!(
                    "{}the target pauses for about {} every {}, {} of the time{hides}",
                    place(at),
                    time(*length_ns),
                    time(*period_ns),
                    percent(*share)
                )
            }
            Diagnosis::ClosedLoopHidesPauses { .. } => return self.hidden_text(),
            _ => return None,
        };
        Some(text)
    }

    /// Why a closed loop shows other response times than an open one.
    fn hidden_text(&self) -> Option<String> {
        let Diagnosis::ClosedLoopHidesPauses {
            at,
            closed_ns,
            per_s,
            percent_of_maximum,
            open_ns,
        } = self
        else {
            return None;
        };
        Some(format!(
            "the p99 is {} with {} in a closed loop and {} at {}/s in an open loop, {} of the \
             maximum: during a pause the users of a closed loop send nothing, while in an open \
             loop requests go on arriving and wait",
            time(*closed_ns),
            levels(&[*at]),
            time(*open_ns),
            exact(*per_s),
            percent(*percent_of_maximum)
        ))
    }

    /// Its numbers.
    pub(super) fn silence_evidence(&self) -> Option<Numbers> {
        let numbers = match self {
            Diagnosis::Outage {
                from_ns,
                until_ns,
                count,
                lasted_ns,
                failures,
                ..
            } => vec![
                ("from_ns", *from_ns),
                ("until_ns", until_ns.unwrap_or(f64::NAN)),
                ("count", *count),
                ("lasted_ns", *lasted_ns),
                ("failures", *failures),
            ],
            Diagnosis::Hung {
                hung,
                throughout,
                users,
                waited_ns,
                ..
            } => vec![
                ("hung", *hung),
                ("throughout", *throughout),
                ("users", users.unwrap_or(f64::NAN)),
                ("waited_ns", *waited_ns),
            ],
            Diagnosis::PeriodicPauses {
                count,
                period_ns,
                length_ns,
                percent,
                ..
            } => vec![
                ("count", *count),
                ("period_ns", *period_ns),
                ("length_ns", *length_ns),
                ("percent", *percent),
            ],
            Diagnosis::ClosedLoopHidesPauses {
                closed_ns,
                per_s,
                percent_of_maximum,
                open_ns,
                ..
            } => vec![
                ("closed_p99_ns", *closed_ns),
                ("open_p99_ns", *open_ns),
                ("rate_per_s", *per_s),
                ("percent_of_maximum", *percent_of_maximum),
            ],
            _ => return None,
        };
        Some(numbers)
    }

    /// What to do next.
    pub(super) fn silence_next_step(&self) -> Option<String> {
        let step = match self {
            Diagnosis::Outage { .. } => {
                "look at that moment in the target's log: did it restart, or run out of something? \
                 then repeat"
                    .into()
            }
            Diagnosis::Hung { .. } => {
                "see at the target what these connections wait for (ss -tnp), and repeat with a \
                 shorter --timeout 2s to see whether new connections hang too"
                    .into()
            }
            Diagnosis::PeriodicPauses {
                closed_per_s: Some(per_s),
                ..
            } => format!(
                "measure what users feel with an open loop: --rate {}; and look for a job of that \
                 period at the target, such as garbage collection",
                (OPEN_SHARE * per_s).max(1.0).floor()
            ),
            Diagnosis::PeriodicPauses { .. } => {
                "look for a job of that period at the target, such as garbage collection".into()
            }
            Diagnosis::ClosedLoopHidesPauses { .. } => {
                "for response times of users who come on their own use knee sweep --axis rate, or \
                 knee run --rate"
                    .into()
            }
            _ => return None,
        };
        Some(step)
    }
}

fn hung_text(
    at: &[Level],
    hung: f64,
    throughout: f64,
    users: Option<f64>,
    waited_ns: f64,
) -> String {
    let (place, waited) = (place(at), time(waited_ns));
    match users {
        Some(n) if throughout >= hung => format!(
            "{place}{} of {} users never got a response: they waited for one operation all through \
             the measured time, at least {waited}",
            number(hung),
            number(n)
        ),
        Some(n) => format!(
            "{place}{} of {} users never got a response to their last operation, after at least \
             {waited}",
            number(hung),
            number(n)
        ),
        None => format!(
            "{place}{} operations never got a response, after at least {waited}; {} of them waited \
             all through the measured time",
            number(hung),
            number(throughout)
        ),
    }
}
