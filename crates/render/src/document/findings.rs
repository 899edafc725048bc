//! How a finding is shown: what marks its severity, and the numbers it rests on.

use super::line::Ink;
use crate::number;
use knee_core::finding::{Finding, Severity};

/// A sign, the ink and the word of a severity.
pub(crate) fn severity(of: Severity) -> (char, Ink, &'static str) {
    match of {
        Severity::Error => ('✗', Ink::Bad, "Error"),
        Severity::Warning => ('!', Ink::Warn, "Warning"),
        Severity::Info => ('•', Ink::Strong, "Note"),
    }
}

/// The heading over them.
pub(crate) fn title(findings: &[Finding]) -> &'static str {
    match findings.is_empty() {
        true => "No findings",
        false => "Findings",
    }
}

/// The finding's code and the numbers it rests on.
pub(crate) fn evidence(finding: &Finding) -> String {
    let evidence = finding.evidence.iter();
    let numbers: Vec<String> = evidence.map(|(n, v)| number::named(n, *v)).collect();
    let colon = if numbers.is_empty() { "" } else { ": " };
    format!("{}{colon}{}", finding.code, numbers.join(", "))
}
