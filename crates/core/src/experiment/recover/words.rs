//! The answer of `knee recover` in sentences.

use super::analysis::RecoveryAnalysis;
use super::report::{RecoverConclusion, RecoveryVerdict, SmallestTrigger};
use crate::words::{capital, exact, number, percent, time};

/// The answer: what became of the service, then what was found beside it.
pub(super) fn answer(c: &RecoverConclusion, shown: &RecoveryAnalysis) -> String {
    let mut sentences: Vec<String> = searched(c).into_iter().collect();
    sentences.push(outcome(c, shown));
    let remedy = c.counterfactuals.iter().filter(|row| row.recovery_ns.is_some());
    if let Some(row) = remedy.min_by_key(|row| row.recovery_ns) {
        let within = match row.recovery_ns {
            None | Some(0) => "at once".to_owned(),
            Some(ns) => format!("in {}", time(ns as f64)),
        };
        sentences.push(format!("{} it recovers {within}", capital(&row.change)));
    }
    sentences.join(". ")
}

/// What the search for the smallest trigger found.
fn searched(c: &RecoverConclusion) -> Option<String> {
    let words = |load: &SmallestTrigger| {
        let times = load.rate_per_s / c.rate_per_s.max(f64::MIN_POSITIVE);
        let length = time(load.duration_ns as f64);
        format!("{}/s ({}x) for {length}", number(load.rate_per_s), number(times))
    };
    if let (Some(smallest), Some(shortest)) = (&c.smallest_trigger, &c.shortest_trigger) {
        let other = (smallest != shortest).then(|| format!(", or {}", words(shortest)));
        let other = other.unwrap_or_default();
        return Some(format!("The smallest trigger is {}{other}", words(smallest)));
    }
    let tried = c.triggers.iter().max_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))?;
    let load = SmallestTrigger { rate_per_s: tried.rate_per_s, duration_ns: tried.duration_ns };
    Some(format!("No trigger up to {} keeps the service down", words(&load)))
}

fn outcome(c: &RecoverConclusion, shown: &RecoveryAnalysis) -> String {
    let share = percent(c.goodput_percent());
    let load = if c.trigger_stays { "the load" } else { "the goodput of before" };
    match c.verdict {
        Some(RecoveryVerdict::Recovered) => {
            let since = if c.trigger_stays { "the load rose" } else { "the trigger" };
            let after = match c.recovery_ns {
                None | Some(0) => "at once".to_owned(),
                Some(ns) => format!("{} after {since}", time(ns as f64)),
            };
            let failed = exact(c.failed_requests as f64);
            format!("Recovered {after}; {failed} requests failed meanwhile")
        }
        Some(RecoveryVerdict::Degraded) => {
            let p99 = |ns: Option<u64>| ns.map_or("unknown".to_owned(), |ns| time(ns as f64));
            format!(
                "Degraded: {share} of {load}, p99 {} instead of {}",
                p99(c.after.p99_ns),
                p99(c.base.p99_ns)
            )
        }
        Some(RecoveryVerdict::Stuck) => {
            let attempts = c.amplified().map_or(String::new(), |times| {
                format!(", {} attempts for each request", number(times))
            });
            let same = if c.trigger_stays { " is served" } else { ", at the same load" };
            format!("Stuck: {share} of {load}{same}{attempts}")
        }
        Some(RecoveryVerdict::Crashed) => {
            "Crashed: connections are refused, and nothing is served".to_owned()
        }
        None if !shown.is_carried => format!(
            "The service does not carry the base load: {} served in time",
            percent(shown.carried_percent)
        ),
        None => "The time after the trigger is too short for an answer".to_owned(),
    }
}
