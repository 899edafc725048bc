//! The interface of conclusions towards reports.

use crate::consistency::{Contradictions, Said};
use crate::finding::Code;
use crate::trial::report::TrialReport;
use serde::Serialize;
use serde_json::Value;

/// A conclusion as a report sees it. The defaults hold for most experiments.
pub trait Answer {
    /// The codes of the findings that only this experiment has.
    fn codes() -> Vec<Code>
    where
        Self: Sized,
    {
        Vec::new()
    }

    /// Concludes from a single trial that did not end; `words` describe it.
    fn cut_short(&mut self, trial: &TrialReport, words: String);

    /// Number of its rows that rest on no trial of the report.
    fn rows(&self) -> usize {
        0
    }

    /// Its rows, for row files if no trial has intervals.
    ///
    /// # Errors
    /// A row that is no JSON.
    fn table(&self) -> serde_json::Result<Vec<Value>> {
        Ok(Vec::new())
    }

    /// Trials that represent the experiment: thresholds apply to them.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        most_responses(trials).into_iter().collect()
    }

    /// Noun for one of its operations.
    fn operation(&self) -> &'static str {
        "operation"
    }

    /// Whether its trials fail on purpose, to explain something.
    fn fails_on_purpose(&self) -> bool {
        false
    }

    /// Records contradictions within it or with the rest of the report.
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
