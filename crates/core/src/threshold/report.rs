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
    /// Where the figure is known as a range only, as the generator may have changed it, and the
    /// range leaves both possible; one line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undetermined: Vec<String>,
    /// Where it was kept, with the figure, one line for each trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
}

impl ThresholdReport {
    /// Whether it was kept wherever it was judged, and judged at all.
    pub fn is_kept(&self) -> bool {
        self.failures().next().is_none()
    }

    /// Why it was not kept, one line for each trial.
    pub fn failures(&self) -> impl Iterator<Item = &String> {
        let all = [&self.crossed, &self.undecided, &self.undetermined];
        all.into_iter().flatten()
    }
}
