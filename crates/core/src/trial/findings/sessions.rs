//! What users of sessions met.

use super::Trials;
use crate::digits;
use crate::finding::{Code, Finding, Severity};
use crate::measure::Outcome;
use crate::trial::report::TrialReport;
use crate::trial::sessions::UnexpectedReport;
use crate::words::percent;

pub(crate) const CODES: [Code; 2] = [DATA_EXHAUSTED, UNEXPECTED_RESPONSES];

const DATA_EXHAUSTED: Code = Code {
    name: "data_exhausted",
    cause: "A data set is dealt so that no two users have the same record, and there was none left \
            for the next user. The load ended there.",
    remedy: "Give the data set more records, load for less time, or let records be dealt more than \
             once with 'order: in-order' or 'order: random'.",
};

const UNEXPECTED_RESPONSES: Code = Code {
    name: "unexpected_responses",
    cause: "Responses were whole, but not what a step of a session expects of them, or what it \
            extracts was not in them. The sessions ended there.",
    remedy: "Compare what came with the step: the first three are in the report. Where the server \
             is right, mend the scenario; where it is not, its log says why.",
};

pub(super) fn data_exhausted(trials: &Trials) -> Option<Finding> {
    let ran_out = |t: &TrialReport| {
        let set = t.sessions()?.ran_out.clone()?;
        Some((set, t.duration_ns as f64))
    };
    let (place, (set, after_ns)) = trials.worst(ran_out, |found| -found.1)?;
    Some(DATA_EXHAUSTED.finding(
        Severity::Warning,
        format!("{place}the data set '{set}' had no record left for the next user: the load ended"),
        [("after_ns", after_ns)],
        "give it more records, or deal them more than once: 'order: in-order' or 'order: random'",
    ))
}

pub(super) fn unexpected_responses(trials: &Trials) -> Option<Finding> {
    let unexpected = |t: &TrialReport| {
        let first: UnexpectedReport = t.sessions()?.unexpected.first()?.clone();
        let count = t.outcomes.count(Outcome::Unexpected);
        let share = count as f64 * 100.0 / t.attempted.max(1) as f64;
        (count > 0).then_some((first, count, share))
    };
    let (place, (first, count, share)) = trials.worst(unexpected, |found| found.2)?;
    Some(UNEXPECTED_RESPONSES.finding(
        Severity::Warning,
        format!(
            "{place}{} of the responses ({}) were not what was expected; the first: {} was to give \
             {}, and gave {}",
            digits::number(count as f64),
            percent(share),
            first.step,
            first.expected,
            first.came
        ),
        [("unexpected", count as f64), ("unexpected_percent", share)],
        "compare the scenario with what the server sends: the first three are in the report",
    ))
}
