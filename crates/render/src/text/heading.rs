//! The head of a report: whether to trust it, the answer, and what was asked.

use super::line::{Ink, Line};
use super::page::{INDENT, Page};
use knee_core::report::{Report, ReportResult};
use knee_core::trial::report::{TrialReport, Verdict};
use serde_json::Value;

/// More reasons why a result is invalid than these say nothing new.
const REASONS_MAX: usize = 6;

/// Whether a report is of numbers that knee did not measure itself.
pub fn is_of_others(report: &Report) -> bool {
    report.command.is_analysis
}

/// What the command was pointed at, as the user wrote it; empty where it was not.
pub fn subject(report: &Report) -> &str {
    let of = |key| report.spec.get(key).and_then(Value::as_str);
    of("target")
        .or_else(|| of("url"))
        .or_else(|| of("file"))
        .unwrap_or_default()
}

/// The words that answer both questions: whether the measurement is valid, and what came of it. A
/// table of other people's has neither; where nothing was measured there is nothing to trust.
pub fn verdicts(report: &Report) -> Vec<(Ink, &'static str)> {
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
pub fn first_words(report: &Report, answer: &str) -> String {
    if report.has_measured() {
        return answer.to_string();
    }
    let because = report.failed_because.join("; ");
    let mut letters = because.chars();
    let first = letters.next().map(|c| c.to_uppercase().to_string());
    first.unwrap_or_default() + letters.as_str()
}

/// Why the result is a failure, where the answer does not say it.
pub fn failures(report: &Report) -> &[String] {
    match report.has_measured() {
        true => &report.failed_because,
        false => &[],
    }
}

/// Writes the answer with verdict and result before it, what makes it invalid and why it failed,
/// then a remark on how it was got.
pub fn show(page: &mut Page, report: &Report, answer: &str, remark: &str) {
    let mut line = Line::new();
    let words = verdicts(report);
    for (i, (ink, word)) in words.iter().enumerate() {
        line.push(Ink::Plain, if i > 0 { ", " } else { "" });
        line.push(*ink, *word);
    }
    let hang = match words.is_empty() {
        true => 0,
        false => INDENT,
    };
    line.push(Ink::Plain, " ".repeat(hang));
    line.push(Ink::Strong, first_words(report, answer));
    page.paragraph(0, hang, line);
    if report.verdict == Verdict::Invalid {
        let mut reasons = reasons(report);
        if reasons.is_empty() {
            reasons.push(without_reasons(report).to_string());
        }
        show_reasons(page, "INVALID", &reasons);
    }
    show_reasons(page, "FAILED", failures(report));
    if report.interrupted {
        let text = "INTERRUPTED  ended before its time; this is what was measured until then";
        page.paragraph(0, 0, Line::of(Ink::Warn, text));
    }
    let subject = subject(report);
    let space = if subject.is_empty() { "" } else { " " };
    let line = format!("knee {}{space}{subject}{remark}", report.command);
    page.paragraph(0, INDENT, Line::of(Ink::Dim, line));
}

fn show_reasons(page: &mut Page, word: &str, reasons: &[String]) {
    let more = reasons.len().saturating_sub(REASONS_MAX);
    let rest = (more > 0).then(|| format!("and {more} more like these: see --json"));
    for reason in reasons.iter().take(REASONS_MAX).chain(&rest) {
        let line = Line::of(Ink::Bad, format!("- {word}: {reason}"));
        page.paragraph(INDENT, INDENT + 2, line);
    }
}

/// What makes a trial invalid, each reason once per trial, with the trial's name where there are
/// several.
pub fn reasons(report: &Report) -> Vec<String> {
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
pub fn without_reasons(report: &Report) -> &'static str {
    match report.trials.is_empty() {
        true => "something else shaped these numbers: see the findings",
        false => "the generator, not the target, shaped these numbers: see the findings",
    }
}

/// Writes why single trials do not count, where there are any.
pub fn show_left_out(page: &mut Page, report: &Report) {
    let reasons = left_out(report);
    if !reasons.is_empty() {
        page.gap();
        page.facts(reasons);
    }
}

/// Why single trials do not count where the whole is valid all the same. (Where it is not, the
/// reasons stand at the head.)
pub fn left_out(report: &Report) -> Vec<(String, Line)> {
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
