//! Thresholds as reported.

use serde::{Deserialize, Serialize};

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
