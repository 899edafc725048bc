//! Findings: facts that a person should know, as values that are built where they are diagnosed.
//!
//! A [`Finding`] has a code, a severity, a sentence, evidence and a next step, and is built in one
//! expression. `codes!` declares the codes of a module with the cause and the remedy that `knee
//! explain` and the reference print. It also lists them.

use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// Changes how the numbers are to be read.
    Warning,
    /// The numbers are not what they seem.
    Error,
}

impl Severity {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// Something that a person should know, with its evidence and what to do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its stable name, such as `saturated_below_range`.
    pub code: String,
    /// Its severity.
    pub severity: Severity,
    /// A sentence for a person.
    pub text: String,
    /// The numbers it rests on, by name.
    pub evidence: BTreeMap<String, f64>,
    /// The next step with the options to use; empty where nothing is to be done.
    pub next_step: String,
}

/// What all findings of one kind have in common. `knee explain` and the reference print it.
///
/// `codes!` declares them beside the functions that diagnose them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The stable name, in JSON and on the command line.
    pub name: &'static str,
    /// Its meaning and causes, in a few sentences.
    pub cause: &'static str,
    /// Its remedy, in a few sentences. The first one is the next step of its findings, unless they
    /// have one of their own with numbers.
    pub remedy: &'static str,
}

/// Declares the kinds of findings that a module diagnoses: a constant for each, and `CODES`, which
/// lists them.
macro_rules! codes {
    ($($name:ident = $code:literal: cause $cause:literal, remedy $remedy:literal;)*) => {
        $(pub(crate) const $name: $crate::finding::Code = $crate::finding::Code {
            name: $code,
            cause: $cause,
            remedy: $remedy,
        };)*

        /// All kinds of findings of this module.
        pub(crate) const CODES: &[$crate::finding::Code] = &[$($name),*];
    };
}
pub(crate) use codes;

impl Code {
    /// The next step where it does not depend on numbers: what the first sentence of the remedy says.
    pub fn step(self) -> String {
        let sentence = self.remedy.split(". ").next().unwrap_or_default().trim_end_matches('.');
        let mut letters = sentence.chars();
        let first = letters.next().map(|letter| letter.to_ascii_lowercase());
        first.into_iter().chain(letters).collect()
    }

    /// A finding of this kind. Numbers of the evidence that are not finite are not known, and left
    /// out.
    pub fn finding(
        self,
        severity: Severity,
        text: impl Into<String>,
        evidence: impl IntoIterator<Item = (&'static str, f64)>,
        next_step: impl Into<String>,
    ) -> Finding {
        Finding {
            code: self.name.to_owned(),
            severity,
            text: text.into(),
            evidence: known(&mut evidence.into_iter()),
            next_step: next_step.into(),
        }
    }
}

/// Methods that build a finding of one severity.
macro_rules! severities {
    ($($(#[$doc:meta])* $method:ident = $severity:ident;)*) => {
        impl Code {
            $($(#[$doc])*
            pub fn $method(
                self,
                text: impl Into<String>,
                evidence: impl IntoIterator<Item = (&'static str, f64)>,
                next_step: impl Into<String>,
            ) -> Finding {
                self.finding(Severity::$severity, text, evidence, next_step)
            })*
        }
    };
}

severities! {
    /// A finding of this kind that is good to know.
    info = Info;
    /// A finding of this kind that changes how the numbers are to be read.
    warning = Warning;
    /// A finding of this kind by which the numbers are not what they seem.
    error = Error;
}

/// Not generic: nearly each place has a type of evidence of its own. A sort for each of them would
/// be much of this crate's code.
fn known(evidence: &mut dyn Iterator<Item = (&'static str, f64)>) -> BTreeMap<String, f64> {
    let mut known = BTreeMap::new();
    for (name, value) in evidence.filter(|(_, value)| value.is_finite()) {
        known.insert(name.to_owned(), value);
    }
    known
}

/// Puts the gravest first, and leaves those that are as grave in their order.
pub fn gravest_first(findings: &mut [Finding]) {
    findings.sort_by_key(|finding| Reverse(finding.severity));
}

impl Finding {
    /// Whether it is of this kind.
    pub fn is(&self, code: Code) -> bool {
        self.code == code.name
    }
}
