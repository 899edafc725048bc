//! Findings about a service that had an overload, and the answer of `knee recover` in sentences.

use super::analysis::RecoveryAnalysis;
use super::report::{RecoverConclusion, RecoveryVerdict, SmallestTrigger};
use crate::finding::{Finding, codes};
use crate::trial::findings::{
    FLEET_INCOMPLETE, GENERATOR_DISTORTED, GENERATOR_LIMITED, RATE_MAX_REACHED, trial_findings,
};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{capital, exact, number, percent, time};

codes! {
    METASTABLE = "metastable_failure":
        cause "The service still fails after the overload has ended, at a load that it served \
               before. Something keeps it overloaded: retries of requests that fail, work on \
               requests whose clients have gone, or a cache that stays cold.",
        remedy "Give clients a retry budget. Or bound the queue of the service, so that its wait \
                is shorter than the clients' timeout. --explain measures which change of the \
                clients' helps.";
    DEGRADED = "degraded_after_overload":
        cause "After the overload the service serves nearly what it served before, but more slowly \
               or not all of it.",
        remedy "Look for what the overload left behind: queues that still drain, connections, \
                memory, a cache. A longer --after shows whether it passes.";
    RECOVERING = "still_recovering":
        cause "The service was not back at the end, and its queue drained: work that came meanwhile \
               was done faster than new work came. It needs nothing but time.",
        remedy "Measure longer to see it come back: without --after the load goes on while the queue \
                drains, up to 4 minutes.";
    NOT_KNOWN = "queue_trend_unknown":
        cause "The service was not back at the end. Requests waited so long that what became of its \
               queue after the trigger was not seen.",
        remedy "Measure longer, with a larger --after, or with a shorter or smaller trigger.";
    STILL_OVERLOADED = "still_overloaded":
        cause "The load rose to stay, and at the end the service does not serve it as it served \
               the base load.",
        remedy "Give the service more time, with a longer --after, or more capacity.";
}

/// Findings about the generator and about a service that stays overloaded.
pub(super) fn list(past: &[TrialReport], c: &RecoverConclusion, verdict: Verdict) -> Vec<Finding> {
    let Some(first) = past.get(c.decisive_trial) else {
        return Vec::new();
    };
    // The overload is intended: of the findings about it only those about the generator count.
    let generator_codes =
        [GENERATOR_DISTORTED, GENERATOR_LIMITED, RATE_MAX_REACHED, FLEET_INCOMPLETE];
    let mut findings = trial_findings(first);
    findings.retain(|finding| generator_codes.iter().any(|&code| finding.is(code)));
    if verdict == Verdict::Valid {
        findings.extend(stays_overloaded(c));
    }
    findings
}

fn stays_overloaded(c: &RecoverConclusion) -> Option<Finding> {
    let share = c.goodput_percent();
    let evidence = [
        ("goodput_percent", share),
        ("amplification", c.amplification.unwrap_or(f64::NAN)),
        ("failed_requests", c.failed_requests as f64),
    ];
    let Some(verdict) = c.verdict else {
        let wait = c.queue.map(|queue| queue.wait_ns)?;
        return Some(NOT_KNOWN.warning(
            format!(
                "Requests wait {} or more, and whether that falls is not known",
                time(wait as f64)
            ),
            evidence,
            LONGER,
        ));
    };
    match verdict {
        RecoveryVerdict::Recovered => None,
        RecoveryVerdict::Recovering => Some(RECOVERING.warning(
            format!(
                "After the trigger the service serves {} of the goodput of before, and {}",
                percent(share),
                recovering(c)
            ),
            evidence,
            LONGER,
        )),
        _ if c.trigger_stays => Some(STILL_OVERLOADED.warning(
            format!("At the end {} of the load is served", percent(share)),
            evidence,
            STILL_OVERLOADED.step(),
        )),
        RecoveryVerdict::Stuck | RecoveryVerdict::Crashed => {
            let sustained = c.amplified().map_or(String::new(), |times| {
                format!(". Retries sustain the load: {} attempts for each request", number(times))
            });
            Some(METASTABLE.warning(
                format!(
                    "After the trigger the service serves {} of the goodput of before, at the \
                     same load{sustained}",
                    percent(share)
                ),
                evidence,
                next_step(c),
            ))
        }
        RecoveryVerdict::Degraded => {
            let p99 = c.after.p99_ns.map_or("unknown".to_owned(), |ns| time(ns as f64));
            Some(DEGRADED.warning(
                format!(
                    "After the trigger the service serves {} of the goodput of before, with a p99 \
                     of {p99}",
                    percent(share)
                ),
                evidence,
                LONGER,
            ))
        }
    }
}

const LONGER: &str = "Measure longer: a larger --after shows whether it passes";

/// How a service recovers.
fn recovering(c: &RecoverConclusion) -> String {
    let Some((queue, back_in)) = c.queue.and_then(|queue| Some((queue, queue.back_in_ns?))) else {
        return "its goodput rises".to_owned();
    };
    format!(
        "the queue falls by {} s per second: back in about {}",
        number(queue.falls_s_per_s),
        time(back_in as f64)
    )
}

fn next_step(c: &RecoverConclusion) -> String {
    if c.counterfactuals.is_empty() {
        return "Find which change helps: the same command with --explain".to_owned();
    }
    let helps = c.counterfactuals.iter().filter(|row| row.helps());
    let helps: Vec<&str> = helps.map(|row| row.change.as_str()).collect();
    if helps.is_empty() {
        return "Bound the queue of the service: none of the changes tried at the clients helps"
            .to_owned();
    }
    format!("Make that change: the service recovers {}", helps.join(", or "))
}

/// The answer: what became of the service, then what was found beside it.
pub(super) fn answer(c: &RecoverConclusion, analysis: &RecoveryAnalysis) -> String {
    let mut sentences: Vec<String> = search_result(c).into_iter().collect();
    sentences.push(outcome(c, analysis));
    let remedy = c.counterfactuals.iter().filter(|row| row.helps());
    if let Some(row) = remedy.min_by_key(|row| (row.recovery_ns.is_none(), row.recovery_ns)) {
        let within = match row.recovery_ns {
            None => "more slowly than was waited for".to_owned(),
            Some(0) => "at once".to_owned(),
            Some(ns) => format!("in {}", time(ns as f64)),
        };
        sentences.push(format!("{} it recovers {within}", capital(&row.change)));
    }
    sentences.join(". ")
}

/// What the search for the smallest trigger found.
fn search_result(c: &RecoverConclusion) -> Option<String> {
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
    Some(format!("No trigger up to {} keeps the service down", words(&tried.load())))
}

fn outcome(c: &RecoverConclusion, analysis: &RecoveryAnalysis) -> String {
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
        Some(RecoveryVerdict::Recovering) => {
            format!("Not back within {}; {}", time(analysis.measured_for.0 as f64), recovering(c))
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
            let wait = c.queue.map_or(String::new(), |queue| {
                format!(", and requests wait {} or more", time(queue.wait_ns as f64))
            });
            let why = c.by_goodput.as_ref();
            let why = why.map_or(String::new(), |why| format!(" (by goodput, as {why})"));
            format!("Stuck: {share} of {load}{same}{attempts}{wait}{why}")
        }
        Some(RecoveryVerdict::Crashed) => {
            "Crashed: connections are refused, and nothing is served".to_owned()
        }
        None if !analysis.is_carried => format!(
            "The service does not carry the base load: {} served in time",
            percent(analysis.carried_percent)
        ),
        None => match c.queue {
            Some(queue) => format!(
                "Not back within {}; requests wait {} or more, and whether that falls is not known",
                time(analysis.measured_for.0 as f64),
                time(queue.wait_ns as f64)
            ),
            None => "The time after the trigger is too short for an answer".to_owned(),
        },
    }
}
