//! Metrics that scripts make.

use serde::{Deserialize, Serialize};

/// A kind of metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// A sum.
    Counter,
    /// The last value.
    Gauge,
    /// The share of values that are not 0.
    Rate,
    /// A distribution.
    Trend,
}

/// A metric that a script made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricName {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: MetricKind,
    /// Its values are times, in milliseconds.
    pub is_time: bool,
}
