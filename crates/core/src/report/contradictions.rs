//! Whether a report agrees with itself: no statement in it may contradict a number in it.
//!
//! Debug builds of the command line check every report that they make. The tests of experiments
//! check every conclusion that they draw. So each test of knee is a test of this as well.

use super::Report;
use crate::consistency::{self, CheckedReport, ConsistencyCheck};
use crate::experiment::Answer;
use crate::finding::{Finding, Severity};
use crate::trial::report::{TrialReport, Verdict};

impl Report {
    /// Where it contradicts itself, a line for each place; none where it agrees.
    pub fn contradictions(&self) -> Vec<String> {
        let report =
            CheckedReport { verdict: self.verdict, trials: &self.trials, findings: &self.findings };
        contradictions(report, self.conclusion.answer())
    }
}

/// Contradictions of statements with each other or with the answer.
pub(crate) fn contradictions(report: CheckedReport<'_>, answer: &dyn Answer) -> Vec<String> {
    let mut check = ConsistencyCheck::default();
    for trial in report.trials {
        check.within(&trial.label, |check| consistency::check_trial(trial, check));
    }
    check_findings(report, answer, &mut check);
    answer.check(report, &mut check);
    check.lines
}

/// Contradictions in an experiment that a test conducted.
#[cfg(test)]
pub(crate) fn contradictions_of<C: Answer>(
    conducted: &crate::experiment::Conducted<crate::trial::report::TrialReport, C>,
) -> Vec<String> {
    let report = CheckedReport {
        verdict: conducted.verdict,
        trials: &conducted.trials,
        findings: &conducted.findings,
    };
    contradictions(report, &conducted.conclusion)
}

/// Asserts that an experiment that a test conducted has no contradictions.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_consistent<C: Answer>(
    conducted: &crate::experiment::Conducted<crate::trial::report::TrialReport, C>,
) {
    let lines = contradictions_of(conducted);
    assert!(lines.is_empty(), "contradictions: {lines:#?}");
}

/// Findings that say that the generator distorted what was measured.
const OF_THE_GENERATOR: [&str; 1] = ["generator_distorted"];

/// Findings that do not say how a target failed, however grave they are. They are of statistics, of
/// the range that was measured, or of the generator.
const NAMES_NO_FAILURE: [&str; 17] = [
    "trials_left_out",
    "non_stationary",
    "littles_law_violation",
    "think_deviation",
    "confidence_not_reached",
    "knee_methods_disagree",
    "knee_not_bracketed",
    "not_saturated",
    "saturated_below_range",
    "not_overloaded",
    "past_knee",
    "too_few_levels",
    "retrograde",
    "generator_limited",
    "generator_distorted",
    "interrupted",
    "stopped_early",
];

/// Findings that name what an overload makes of connects in the normal course: they are no trouble,
/// and say all the same how attempts end.
const NAMES_OVERLOAD: [&str; 4] =
    ["accept_queue_full", "connects_unanswered", "ghosts", "established_late"];

/// Share of failed operations from which on a finding must name the failure.
const FAILED_SHARE: f64 = 0.02;
/// Number of operations that may fail without a finding.
const FAILED_MIN: u64 = 5;

fn check_findings(report: CheckedReport<'_>, answer: &dyn Answer, check: &mut ConsistencyCheck) {
    for finding in report.findings {
        check.within(&finding.code, |check| check_finding(finding, check));
        let blames_generator =
            OF_THE_GENERATOR.contains(&finding.code.as_str()) && finding.severity > Severity::Info;
        check.require(report.verdict == Verdict::Invalid || !blames_generator, || {
            format!("VALID, and a finding says: {}", finding.text)
        });
    }
    // An explanation changes settings so that there are losses: its trials are not checked.
    let trials = report.trials.iter().filter(|_| !answer.fails_on_purpose());
    for trial in trials {
        failures_are_named(report, trial, check);
    }
    if let [only] = report.trials {
        check.require(report.verdict == only.verdict, || {
            format!("{:?}, and its only trial {:?}", report.verdict, only.verdict)
        });
    }
}

fn check_finding(finding: &Finding, check: &mut ConsistencyCheck) {
    check.require(!finding.text.trim().is_empty(), || "says nothing".into());
    for (name, value) in &finding.evidence {
        check.require(value.is_finite(), || format!("{name} is {value}"));
    }
    // What a server sent may have such words within others.
    let no_number = |word: &str| {
        let word = word.trim_matches(|c| "(),.;:%".contains(c)).trim_end_matches("/s");
        matches!(word, "NaN" | "inf")
    };
    let mut words = finding.text.split_whitespace();
    let says = words.any(no_number) || finding.text.contains("unknown %");
    check.require(!says, || format!("says what is no number: {}", finding.text));
}

/// A target that fails is never reported without a finding that names how.
fn failures_are_named(
    report: CheckedReport<'_>,
    trial: &TrialReport,
    check: &mut ConsistencyCheck,
) {
    // Pings that were out failed with their scenario, which says itself why it ended.
    if trial.flows().is_some_and(|flows| flows.is_aborted()) {
        return;
    }
    let outcomes = &trial.outcomes;
    let failed = outcomes.errors();
    if failed <= FAILED_MIN || (failed as f64) < FAILED_SHARE * outcomes.total() as f64 {
        return;
    }
    let is_named = report.findings.iter().any(|finding| {
        let code = finding.code.as_str();
        let is_trouble = finding.severity > Severity::Info && !NAMES_NO_FAILURE.contains(&code);
        is_trouble || NAMES_OVERLOAD.contains(&code)
    });
    check.require(is_named || report.verdict == Verdict::Invalid, || {
        format!(
            "{}: {failed} of {} operations failed, and no finding says how",
            trial.label,
            outcomes.total()
        )
    });
}

#[cfg(test)]
mod tests;
