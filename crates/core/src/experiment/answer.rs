//! What every experiment's conclusion tells of itself, whatever it is of.

use crate::consistency::{Contradictions, Said};
use crate::finding::Code;
use crate::trial::report::TrialReport;
use serde::Serialize;
use serde_json::Value;

/// A conclusion, as a report sees it: all that differs between experiments but what they show.
///
/// What is not told here is told of most experiments alike.
pub trait Answer {
    /// The codes of the findings that only this experiment has.
    fn codes() -> Vec<Code>
    where
        Self: Sized,
    {
        Vec::new()
    }

    /// All there is, is a trial that did not end: what it was, in words.
    fn cut_short(&mut self, trial: &TrialReport, words: String);

    /// How many of its rows rest on no trial of the report.
    fn rows(&self) -> usize {
        0
    }

    /// Its rows, for files of rows where no trial has intervals.
    ///
    /// # Errors
    /// A row that is no JSON.
    fn table(&self) -> serde_json::Result<Vec<Value>> {
        Ok(Vec::new())
    }

    /// The trials that stand for the whole experiment, and so meet the thresholds.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        most_responses(trials).into_iter().collect()
    }

    /// What one of its operations is called.
    fn operation(&self) -> &'static str {
        "operation"
    }

    /// Whether its trials fail on purpose, to explain something.
    fn fails_on_purpose(&self) -> bool {
        false
    }

    /// Notes where it contradicts the rest of the report, or itself.
    fn check(&self, _said: Said<'_>, _found: &mut Contradictions) {}
}

/// The trial with the most responses per second.
pub(crate) fn most_responses(trials: &[TrialReport]) -> Option<&TrialReport> {
    let per_s = TrialReport::responses_per_s;
    trials.iter().max_by(|a, b| per_s(a).total_cmp(&per_s(b)))
}

/// Rows as JSON.
pub(crate) fn values(rows: &[impl Serialize]) -> serde_json::Result<Vec<Value>> {
    rows.iter().map(serde_json::to_value).collect()
}
