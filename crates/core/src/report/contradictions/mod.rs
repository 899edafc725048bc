//! Whether a report agrees with itself: no statement in it may contradict a number in it.
//!
//! Debug builds of the command line check every report that they make, and the tests of experiments
//! every conclusion that they draw, so that each test of knee is a test of this as well.

mod findings;
#[cfg(test)]
mod tests;

use super::Report;
use crate::consistency::{Contradictions, Said, trial};
use crate::experiment::answer::Answer;

impl Report {
    /// Where it contradicts itself, a line for each place; none where it agrees.
    pub fn contradictions(&self) -> Vec<String> {
        let said = Said {
            verdict: self.verdict,
            trials: &self.trials,
            findings: &self.findings,
        };
        contradictions(said, self.conclusion.answer())
    }
}

/// Where what is said contradicts itself or the answer.
pub(crate) fn contradictions(said: Said<'_>, answer: &dyn Answer) -> Vec<String> {
    let mut found = Contradictions::default();
    for trial in said.trials {
        found.within(&trial.label, |found| trial::check(trial, found));
    }
    findings::check(said, answer, &mut found);
    answer.check(said, &mut found);
    found.lines
}

/// The same of an experiment that a test conducted.
#[cfg(test)]
pub(crate) fn contradictions_of<C: Answer>(
    conducted: &crate::experiment::Conducted<crate::trial::report::TrialReport, C>,
) -> Vec<String> {
    let said = Said {
        verdict: conducted.verdict,
        trials: &conducted.trials,
        findings: &conducted.findings,
    };
    contradictions(said, &conducted.conclusion)
}

/// Of an experiment that a test conducted.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_consistent<C: Answer>(
    conducted: &crate::experiment::Conducted<crate::trial::report::TrialReport, C>,
) {
    let lines = contradictions_of(conducted);
    assert!(lines.is_empty(), "contradictions: {lines:#?}");
}
