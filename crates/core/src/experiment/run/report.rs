//! Conclusion of a run in a report.

use serde::{Deserialize, Serialize};

/// Conclusion of `knee run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunConclusion {
    /// Responses per second; `None` without any.
    pub throughput_per_s: Option<f64>,
    /// Intended operations per second, if the target did not keep up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// Median response time; `None` without observations.
    pub p50_ns: Option<u64>,
    /// 95th percentile of response time; as the others, `None` with too few observations.
    #[serde(default)]
    pub p95_ns: Option<u64>,
    /// 99th percentile of response time.
    pub p99_ns: Option<u64>,
    /// Share of operations that were not successful, in percent.
    pub error_percent: f64,
    /// `--repeat`: the figures with intervals from the spread between repeats.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repeats: Vec<RepeatedFigure>,
}

/// A figure of a run that was repeated.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RepeatedFigure {
    /// `throughput_per_s`, `p50_ns`, `p90_ns`, `p95_ns`, `p99_ns`.
    pub metric: String,
    /// Number of repeats with it: those that are VALID.
    pub repeats: u32,
    /// Geometric mean, with less weight for outlying repeats.
    pub value: f64,
    /// 95 % confidence interval, by Student's law.
    pub ci95: [f64; 2],
    /// Standard deviation between repeats, in percent.
    pub spread_percent: f64,
}
