//! The head of a report: whether to trust it, the answer, and what was asked.

use super::line::{Ink, Line};
use super::page::{INDENT, Page};
use knee_core::report::{Report, TrialReport, Verdict};
use serde_json::Value;

/// More reasons why a result is invalid than these say nothing new.
const REASONS_MAX: usize = 6;

/// Whether a report is of numbers that knee did not measure itself.
pub fn is_of_others(report: &Report) -> bool {
    report.command.starts_with("analyze")
}

/// What the command was pointed at, as the user wrote it; empty where it was not.
pub fn subject(report: &Report) -> &str {
    let of = |key| report.spec.get(key).and_then(Value::as_str);
    of("target")
        .or_else(|| of("url"))
        .or_else(|| of("file"))
        .unwrap_or_default()
}

/// Writes the answer with the verdict before it, then a remark on how it was got, then what makes
/// it invalid.
pub fn show(page: &mut Page, report: &Report, answer: &str, remark: &str) {
    let mut line = Line::new();
    if !is_of_others(report) {
        match report.verdict {
            Verdict::Valid => line.push(Ink::Good, "VALID"),
            Verdict::Invalid => line.push(Ink::Bad, "INVALID"),
        }
        line.push(Ink::Plain, "  ");
    }
    let hang = line.width();
    line.push(Ink::Strong, answer);
    page.paragraph(0, hang, line);
    if report.verdict == Verdict::Invalid {
        let reasons = reasons(report);
        if reasons.is_empty() {
            page.paragraph(INDENT, INDENT, Line::of(Ink::Bad, without_reasons(report)));
        }
        let more = reasons.len().saturating_sub(REASONS_MAX);
        let rest = (more > 0).then(|| format!("and {more} more like these: see --json"));
        for reason in reasons.into_iter().take(REASONS_MAX).chain(rest) {
            page.paragraph(
                INDENT,
                INDENT + 2,
                Line::of(Ink::Bad, format!("- {reason}")),
            );
        }
    }
    if report.interrupted {
        let text = "INTERRUPTED  ended before its time; this is what was measured until then";
        page.paragraph(0, 0, Line::of(Ink::Warn, text));
    }
    let subject = subject(report);
    let space = if subject.is_empty() { "" } else { " " };
    let line = format!("knee {}{space}{subject}{remark}", report.command);
    page.paragraph(0, INDENT, Line::of(Ink::Dim, line));
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
