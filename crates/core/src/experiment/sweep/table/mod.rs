//! The table that a sweep is judged by: one row per level, made of trials or read from a file.

mod csv;
mod pool;

pub use csv::{TableError, parse_csv};
pub use pool::{goodput_ci95, has_warmed_up, is_sound, points};

use crate::trial::report::TimesReport;

/// One level of a sweep with what was measured there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelPoint {
    /// Virtual users, or operations offered per second.
    pub level: f64,
    /// Operations that succeeded, per second.
    pub throughput_per_s: f64,
    /// 95 % confidence interval of it; `None` where the data permit none.
    pub throughput_ci95: Option<[f64; 2]>,
    /// Mean response time in nanoseconds, where it was measured.
    pub mean_ns: Option<f64>,
    /// 90th percentile of response time in nanoseconds, where it was measured.
    pub p90_ns: Option<f64>,
    /// All figures of response time, of one trial of this level that stands for it: percentiles
    /// of several trials are never averaged.
    pub latency: Option<TimesReport>,
    /// Share of the operations that failed, 0 to 1.
    pub error_share: f64,
    /// The share of a user's time that the generator took itself, where that is known; 0 otherwise.
    pub generator_share: f64,
    /// Whether the generator measured the target there, and not itself.
    pub valid: bool,
    /// Whether what this row rests on is stationary.
    pub stationary: bool,
    /// How many trials it rests on.
    pub trials: usize,
    /// Whether all levels were measured in rounds, so that time meets them alike.
    pub in_rounds: bool,
}

impl LevelPoint {
    /// Mean response time in nanoseconds; where it was not measured, N/X, which is Little's law
    /// for users that do not pause (Little, Operations Research 9(3), 1961).
    pub fn response_ns(&self) -> f64 {
        self.mean_ns
            .unwrap_or(1e9 * self.level / self.throughput_per_s)
    }

    /// Half the width of the confidence interval as a share of the throughput.
    pub fn half_width(&self) -> Option<f64> {
        let [lo, hi] = self.throughput_ci95?;
        (self.throughput_per_s > 0.0).then(|| (hi - lo) / 2.0 / self.throughput_per_s)
    }
}
