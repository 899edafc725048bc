//! The head of a report: verdicts, answer, reasons, findings.

use super::Fact;
use super::line::{Ink, Line};
use crate::number;
use knee_core::finding::{Finding, Severity};
use knee_core::report::{Report, ReportResult};
use knee_core::trial::report::{TrialReport, Verdict};
use knee_core::words::capital;
use serde_json::Value;

/// Whether a report is an analysis of numbers from elsewhere.
pub(crate) fn is_of_others(report: &Report) -> bool {
    report.command.is_analysis
}

/// The target of the command as the user wrote it; may be empty.
pub(crate) fn target(report: &Report) -> &str {
    let text = |key| report.spec.get(key).and_then(Value::as_str);
    text("target").or_else(|| text("url")).or_else(|| text("file")).unwrap_or_default()
}

/// Verdict and result as words: PASSED only where something was asked. An analysis of numbers from
/// elsewhere has no verdict, nor has a report without measurement.
pub(crate) fn verdicts(report: &Report) -> Vec<(Ink, &'static str)> {
    let is_of_others = is_of_others(report);
    let mut words = Vec::new();
    if report.has_measured() && !is_of_others {
        words.push(match report.verdict {
            // In green it would be taken for the result.
            Verdict::Valid => (Ink::Strong, "VALID"),
            Verdict::Invalid => (Ink::Bad, "INVALID"),
        });
    }
    let is_calm = report.findings.iter().all(|f| f.severity == Severity::Info);
    if report.has_passed() {
        words.push((if is_calm { Ink::Good } else { Ink::Strong }, "PASSED"));
    } else if report.result == ReportResult::Failed
        && !(is_of_others && report.thresholds.is_empty())
    {
        words.push((Ink::Bad, "FAILED"));
    }
    words
}

/// The answer, or the reason why there is none.
pub(crate) fn first_words(report: &Report, answer: &str) -> String {
    if report.has_measured() {
        return answer.to_string();
    }
    capital(&report.failed_because.join("; "))
}

/// The head of a document.
#[derive(Clone, Debug, Default)]
pub(crate) struct DocumentHead {
    /// The title of the window.
    pub title: String,
    /// Verdict and result, if any.
    pub words: Vec<(Ink, String)>,
    /// The answer, or why there is none.
    pub answer: String,
    /// The command, its target, and a remark on the run; may be empty.
    pub made: String,
    /// The start of the run.
    pub started_at: String,
    /// Reasons under the words INVALID and FAILED.
    pub reasons: Vec<(&'static str, Vec<String>)>,
    /// Whether the run was interrupted.
    pub interrupted: bool,
    /// Facts before all sections.
    pub facts: Vec<Fact>,
}

impl DocumentHead {
    /// The head of a report with this answer and this remark on the run.
    pub(crate) fn of(report: &Report, answer: &str, remark: &str) -> DocumentHead {
        let target = target(report);
        let space = if target.is_empty() { "" } else { " " };
        let words = verdicts(report);
        let verdicts: Vec<&str> = words.iter().map(|(_, word)| *word).collect();
        let colon = if verdicts.is_empty() { "" } else { ": " };
        let command = number::words(&report.command.to_string());
        // Without a measurement they are the answer.
        let failures =
            if report.has_measured() { report.failed_because.clone() } else { Vec::new() };
        let mut reasons = vec![("FAILED", failures)];
        if report.verdict == Verdict::Invalid {
            reasons.insert(0, ("INVALID", invalid_because(report)));
        }
        DocumentHead {
            title: format!("knee {command}{space}{target}{colon}{}", verdicts.join(", ")),
            words: words.into_iter().map(|(i, w)| (i, w.to_owned())).collect(),
            answer: first_words(report, answer),
            made: format!("knee {}{space}{target}{remark}", report.command),
            started_at: report.started_at.clone(),
            reasons,
            interrupted: report.interrupted,
            facts: Vec::new(),
        }
    }
}

/// The reasons of each invalid trial, once per trial, with its name among several.
fn invalid_because(report: &Report) -> Vec<String> {
    let several = report.trials.len() > 1;
    let of_trial = |trial: &TrialReport| -> Vec<String> {
        let reasons = trial.invalid_because.iter();
        let named = reasons.map(|reason| {
            if several { format!("{}: {reason}", trial.label) } else { reason.clone() }
        });
        named.collect()
    };
    let mut reasons: Vec<String> = report.trials.iter().flat_map(of_trial).collect();
    reasons.dedup();
    if reasons.is_empty() {
        let shaped_by = if report.trials.is_empty() {
            "something else"
        } else {
            "the generator, not the target,"
        };
        reasons.push(format!("{shaped_by} shaped these numbers: see the findings"));
    }
    reasons
}

/// The reasons why single trials of a valid report do not count.
pub(crate) fn left_out(report: &Report) -> Vec<Fact> {
    if report.verdict == Verdict::Invalid {
        return Vec::new();
    }
    let reasons = report.trials.iter().flat_map(|t| {
        t.invalid_because.iter().map(|r| (t.label.clone(), Line::of(Ink::Warn, r.as_str())))
    });
    reasons.collect()
}

/// Sign, ink and word of a severity.
pub(crate) fn severity(severity: Severity) -> (char, Ink, &'static str) {
    match severity {
        Severity::Error => ('✗', Ink::Bad, "Error"),
        Severity::Warning => ('!', Ink::Warn, "Warning"),
        Severity::Info => ('•', Ink::Strong, "Note"),
    }
}

/// The heading of the findings.
pub(crate) fn findings_title(findings: &[Finding]) -> &'static str {
    if findings.is_empty() { "Nothing unusual" } else { "Findings" }
}

/// The code of a finding and its numbers.
pub(crate) fn evidence(finding: &Finding) -> String {
    let numbers: Vec<String> = finding.evidence.iter().map(|(n, v)| number::named(n, *v)).collect();
    let colon = if numbers.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", finding.code, numbers.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures;
    use knee_core::report::ThresholdReport;

    fn words(fixture: &str, has_threshold: bool) -> Vec<(Ink, &'static str)> {
        let found = fixtures::all().into_iter().find(|(name, _)| *name == fixture);
        let (_, mut report) = found.expect("a fixture of this name");
        if has_threshold {
            report.thresholds =
                vec![ThresholdReport { kept: vec!["kept".into()], ..ThresholdReport::default() }];
        }
        report.judge();
        verdicts(&report)
    }

    #[test]
    fn passed_needs_a_question_and_green_a_calm_report() {
        let (valid, passed) = ((Ink::Strong, "VALID"), |ink| (ink, "PASSED"));
        assert_eq!(words("run_closed", false), [valid]);
        assert_eq!(words("run_closed", true), [valid, passed(Ink::Good)]);
        assert_eq!(words("recover_stuck", false), [valid]);
        assert_eq!(words("recover_stuck", true), [valid, passed(Ink::Strong)]);
        assert_eq!(words("run_invalid", true), [(Ink::Bad, "INVALID")]);
    }
}
