//! What a single run answers.

use serde::{Deserialize, Serialize};

/// The answer of `knee run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunConclusion {
    /// Responses per second; `None` where not one came.
    pub throughput_per_s: Option<f64>,
    /// Operations asked for per second, where an open loop was not kept up with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// Median response time; `None` where nothing was observed.
    pub p50_ns: Option<u64>,
    /// 95th percentile of response time, and the others: `None` where the observations do not
    /// tell it.
    #[serde(default)]
    pub p95_ns: Option<u64>,
    /// 99th percentile of response time.
    pub p99_ns: Option<u64>,
    /// Share of operations that did not end ok, in percent.
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
    /// Repeats that it rests on: those that are VALID and have it.
    pub repeats: u32,
    /// Its estimate: the geometric mean, of repeats far from the others less.
    pub value: f64,
    /// 95 % confidence interval of it, by Student's law.
    pub ci95: [f64; 2],
    /// Standard deviation between repeats, in percent.
    pub spread_percent: f64,
}
