//! The figures of `knee throttle`.

use serde::{Deserialize, Serialize};

/// How this machine waits, or how well each way holds a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ThrottleConclusion {
    /// A row for each method and delay; empty with `--rate`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub table: Vec<WaitRow>,
    /// The margin that `hybrid` takes before a deadline 1 ms away; `None` with `--rate`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hybrid_margin_ns: Option<u64>,
    /// The same for sleeps of each length.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub margins: Vec<MarginRow>,
    /// The best way to wait within each budget of processor time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub recommendations: Vec<WaitAdvice>,
    /// With `--rate`: a row for each way to hold it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<RateRow>,
    /// The conclusion in one or two sentences for a person.
    pub answer: String,
}

/// One method asked for one delay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitRow {
    /// How it waited.
    pub method: String,
    /// What was done between two waits: `none`, `udp`, `qotd`.
    pub op: String,
    /// The delay asked for.
    pub delay_ns: u64,
    /// Mean wait.
    pub mean_ns: u64,
    /// Half of the 99.9 % confidence interval of the mean (Student's t).
    pub error_ns: u64,
    /// Standard deviation of the waits.
    pub std_dev_ns: u64,
    /// By how much the median wait was late.
    pub overshoot_p50_ns: u64,
    /// Percentiles of the same.
    pub overshoot_p1_ns: u64,
    /// See `overshoot_p1_ns`.
    pub overshoot_p10_ns: u64,
    /// See `overshoot_p1_ns`.
    pub overshoot_p90_ns: u64,
    /// See `overshoot_p1_ns`.
    pub overshoot_p99_ns: u64,
    /// The largest.
    pub overshoot_max_ns: u64,
    /// Processor time used, in percent of a core.
    pub cpu_percent: f64,
    /// Waits made.
    pub samples: u64,
    /// Of them, those made while the host gave the processors to others.
    pub stolen_samples: u64,
    /// Of them, those that ended too early.
    pub early_samples: u64,
    /// Mean time of what was done between two waits; absent where nothing was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub op_mean_ns: Option<u64>,
}

/// The margin of `hybrid` for sleeps of one length.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MarginRow {
    /// Sleeps from this length on, up to twice it.
    pub sleep_ns: u64,
    /// Its margin.
    pub margin_ns: u64,
}

/// The best way to wait at some rate within a budget of processor time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WaitAdvice {
    /// The most that waiting may cost, in percent of a core.
    pub budget_percent: f64,
    /// The delay that it holds for.
    pub delay_ns: u64,
    /// The method.
    pub method: String,
    /// `hybrid`: the margin; absent for others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub margin_ns: Option<u64>,
    /// The median overshoot to expect.
    pub overshoot_p50_ns: u64,
    /// The 99th percentile to expect.
    pub overshoot_p99_ns: u64,
    /// What one wait per delay costs, in percent of a core.
    pub cpu_percent: f64,
}

/// One method that was to hold a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateRow {
    /// How it was held.
    pub method: String,
    /// Operations per second asked for.
    pub asked_per_s: f64,
    /// Operations per second made: the reciprocal slope of time over number. Absent of a single
    /// operation, which has no rate.
    #[serde(default)]
    pub achieved_per_s: Option<f64>,
    /// By how much lateness grows, in nanoseconds per millisecond (parts per million): 0 for a
    /// schedule that is kept, however late each operation is.
    pub drift_ppm: f64,
    /// By how much stalls and late operations may have bent that, at the most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_error_ppm: Option<f64>,
    /// Median of begin − intended time, in nanoseconds; what began early counts as 0.
    pub error_p50_ns: u64,
    /// 99th percentile of it.
    pub error_p99_ns: u64,
    /// The largest.
    pub error_max_ns: u64,
    /// Coefficient of variation of the gaps between operations.
    pub gap_cv: f64,
    /// Processor time used, the operations' included, in percent of a core.
    pub cpu_percent: f64,
    /// The operations' share of it: time spent in them, in percent of the whole.
    pub op_percent: f64,
    /// Operations made.
    pub operations: u64,
    /// Operations left out by the catch-up policy.
    pub skipped: u64,
    /// Operations that began before their intended time, as a minimal wait groups them.
    pub early: u64,
    /// By how much the catch-up policy moved the schedule back.
    pub shifted_ns: u64,
}
