//! Findings as reported, and the thresholds that were asked for. Findings are made in
//! `analysis::findings`, where each is an enum variant.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How grave a finding is.
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

/// Something that a person should know, with its evidence and what to do next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Its stable name, such as `saturated_below_range`.
    pub code: String,
    /// How grave it is.
    pub severity: Severity,
    /// A sentence for a person.
    pub text: String,
    /// The numbers it rests on, by name.
    pub evidence: BTreeMap<String, f64>,
    /// What to do next, with the very flags to use; empty where nothing is to be done.
    pub next_step: String,
}

/// A threshold that was asked for with `--fail-if`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ThresholdReport {
    /// As it was asked for: `p99>200ms`.
    pub expression: String,
    /// Where it was crossed, in words, one line for each trial; empty where it was kept.
    pub crossed: Vec<String>,
    /// Where it could not be judged, and why, one line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided: Vec<String>,
    /// Where it was kept, with the figure, one line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

impl ThresholdReport {
    /// Whether it was kept wherever it was judged, and judged at all.
    pub fn is_kept(&self) -> bool {
        self.crossed.is_empty() && self.undecided.is_empty()
    }
}
