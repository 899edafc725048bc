//! What a person should know.

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
