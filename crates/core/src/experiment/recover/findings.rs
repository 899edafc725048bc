//! Findings about a service that had an overload.

use super::report::{RecoverConclusion, RecoveryVerdict};
use crate::finding::{Finding, codes};
use crate::trial::findings::{
    FLEET_INCOMPLETE, GENERATOR_DISTORTED, GENERATOR_LIMITED, RATE_MAX_REACHED, trial_findings,
};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{number, percent, time};

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
    STILL_OVERLOADED = "still_overloaded":
        cause "The load rose to stay, and at the end the service does not serve it as it served \
               the base load.",
        remedy "Give the service what the load needs, or more time to grow: a longer --after shows \
                whether it gets there.";
}

/// What a person should know.
pub(super) fn all(past: &[TrialReport], c: &RecoverConclusion, verdict: Verdict) -> Vec<Finding> {
    let Some(first) = past.get(c.decisive_trial) else {
        return Vec::new();
    };
    // That an overload overloads is no finding.
    let of_generator = [GENERATOR_DISTORTED, GENERATOR_LIMITED, RATE_MAX_REACHED, FLEET_INCOMPLETE];
    let mut found = trial_findings(first);
    found.retain(|finding| of_generator.iter().any(|&code| finding.is(code)));
    if verdict == Verdict::Valid {
        found.extend(stays_overloaded(c));
    }
    found
}

fn stays_overloaded(c: &RecoverConclusion) -> Option<Finding> {
    let share = c.goodput_percent();
    let evidence = [
        ("goodput_percent", share),
        ("amplification", c.amplification.unwrap_or(f64::NAN)),
        ("failed_requests", c.failed_requests as f64),
    ];
    match c.verdict? {
        RecoveryVerdict::Recovered => None,
        _ if c.trigger_stays => Some(STILL_OVERLOADED.warning(
            format!("At the end {} of the load is served", percent(share)),
            evidence,
            "Give the service more time, with a longer --after, or more capacity",
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
                "Measure longer: a larger --after shows whether it passes",
            ))
        }
    }
}

fn next_step(c: &RecoverConclusion) -> String {
    if c.counterfactuals.is_empty() {
        return "Find which change helps: the same command with --explain".to_owned();
    }
    let helps = c.counterfactuals.iter().filter(|row| row.recovery_ns.is_some());
    let helps: Vec<&str> = helps.map(|row| row.change.as_str()).collect();
    if helps.is_empty() {
        return "Bound the queue of the service: no change of the clients' that was tried helps"
            .to_owned();
    }
    format!("Make it so: it recovers {}", helps.join(", or "))
}
