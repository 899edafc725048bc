//! The head of a report: whether to trust it, the answer, and what was asked.

use super::Fact;
use super::line::{Ink, Line};
use crate::number;
use knee_core::report::{Report, ReportResult};
use knee_core::trial::report::{TrialReport, Verdict};
use serde_json::Value;

/// Whether a report is of numbers that knee did not measure itself.
pub(crate) fn is_of_others(report: &Report) -> bool {
    report.command.is_analysis
}

/// What the command was pointed at, as the user wrote it; empty where it was not.
pub(crate) fn subject(report: &Report) -> &str {
    let of = |key| report.spec.get(key).and_then(Value::as_str);
    of("target")
        .or_else(|| of("url"))
        .or_else(|| of("file"))
        .unwrap_or_default()
}

/// The words that answer both questions: whether the measurement is valid, and what came of it. A
/// table of other people's has neither; where nothing was measured there is nothing to trust.
pub(crate) fn verdicts(report: &Report) -> Vec<(Ink, &'static str)> {
    let is_failed = report.result == ReportResult::Failed;
    let is_valid = report.verdict == Verdict::Valid;
    let verdict = match report.verdict {
        // A word that looks like success would be taken for the result.
        Verdict::Valid if is_failed => (Ink::Strong, "VALID"),
        Verdict::Valid => (Ink::Good, "VALID"),
        Verdict::Invalid => (Ink::Bad, "INVALID"),
    };
    let result = match report.result {
        ReportResult::Failed => (Ink::Bad, "FAILED"),
        ReportResult::Passed if is_valid => (Ink::Good, "PASSED"),
        ReportResult::Passed => (Ink::Strong, "PASSED"),
    };
    match (is_of_others(report), report.has_measured()) {
        (true, _) if report.thresholds.is_empty() => Vec::new(),
        (true, _) | (_, false) => vec![result],
        _ => vec![verdict, result],
    }
}

/// What the report says first: its answer, or why there is none.
pub(crate) fn first_words(report: &Report, answer: &str) -> String {
    if report.has_measured() {
        return answer.to_string();
    }
    let because = report.failed_because.join("; ");
    let mut letters = because.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Why the result is a failure, where the answer does not say it.
pub(crate) fn failures(report: &Report) -> &[String] {
    match report.has_measured() {
        true => &report.failed_because,
        false => &[],
    }
}

/// The head of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct Opening {
    /// What a window with it is called.
    pub title: String,
    /// Both verdicts, where there are any.
    pub words: Vec<(Ink, String)>,
    /// The answer, or why there is none.
    pub answer: String,
    /// The command, what it was pointed at, and how the answer was got; may be empty.
    pub made: String,
    /// When.
    pub started_at: String,
    /// What makes it invalid or failed, each kind under its word.
    pub reasons: Vec<(&'static str, Vec<String>)>,
    /// Whether it ended before its time.
    pub interrupted: bool,
    /// What else is said before all.
    pub facts: Vec<Fact>,
}

impl Opening {
    /// That of a report with this answer, and a remark on how it was got.
    pub(crate) fn of(report: &Report, answer: &str, remark: &str) -> Opening {
        let subject = subject(report);
        let space = if subject.is_empty() { "" } else { " " };
        let words = verdicts(report);
        let said: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
        let colon = if said.is_empty() { "" } else { ": " };
        let command = number::words(&report.command.to_string());
        let mut reasons = vec![("FAILED", failures(report).to_vec())];
        if report.verdict == Verdict::Invalid {
            reasons.insert(0, ("INVALID", invalid_because(report)));
        }
        Opening {
            title: format!("knee {command}{space}{subject}{colon}{}", said.join(", ")),
            words: words.into_iter().map(|(i, w)| (i, w.to_owned())).collect(),
            answer: first_words(report, answer),
            made: format!("knee {}{space}{subject}{remark}", report.command),
            started_at: report.started_at.clone(),
            reasons,
            interrupted: report.interrupted,
            facts: Vec::new(),
        }
    }
}

fn invalid_because(report: &Report) -> Vec<String> {
    let reasons = reasons(report);
    match reasons.is_empty() {
        true => vec![without_reasons(report).to_owned()],
        false => reasons,
    }
}

/// What makes a trial invalid, each reason once per trial, with the trial's name where there are
/// several.
pub(crate) fn reasons(report: &Report) -> Vec<String> {
    let several = report.trials.len() > 1;
    let of_trial = |trial: &TrialReport| {
        let label = if several {
            format!("{}: ", trial.label)
        } else {
            String::new()
        };
        let reasons = trial.invalid_because.iter();
        reasons.map(|r| format!("{label}{r}")).collect::<Vec<_>>()
    };
    let mut reasons: Vec<String> = report.trials.iter().flat_map(of_trial).collect();
    reasons.dedup();
    reasons
}

/// What is said of an invalid report where no trial gives reasons.
pub(crate) fn without_reasons(report: &Report) -> &'static str {
    match report.trials.is_empty() {
        true => "something else shaped these numbers: see the findings",
        false => "the generator, not the target, shaped these numbers: see the findings",
    }
}

/// Why single trials do not count where the whole is valid all the same. (Where it is not, the
/// reasons stand at the head.)
pub(crate) fn left_out(report: &Report) -> Vec<Fact> {
    if report.verdict == Verdict::Invalid {
        return Vec::new();
    }
    let reasons = report.trials.iter().flat_map(|t| {
        t.invalid_because
            .iter()
            .map(|r| (t.label.clone(), Line::of(Ink::Warn, r.as_str())))
    });
    reasons.collect()
}
