//! The table that a sweep is judged by: one row per level, made of trials or read from a file.

mod csv;

pub use csv::{TableError, parse_csv};

use crate::measure::error_share;
use crate::trial::report::{TimesReport, TrialReport, Verdict};
use crate::trial::slice::pooled;
use crate::words::value;

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
    /// The operations that this is a share of; 0 where their number is unknown.
    pub operations: u64,
    /// The share of a user's time that the generator took itself, where that is known; 0 otherwise.
    pub generator_share: f64,
    /// Whether the generator measured the target there, and not itself.
    pub valid: bool,
    /// How many trials it rests on.
    pub trials: usize,
    /// Whether all levels were measured in rounds, so that time meets them alike.
    pub in_rounds: bool,
}

impl LevelPoint {
    /// The row that one trial makes, without an interval.
    pub(super) fn of(trial: &TrialReport) -> LevelPoint {
        let times = trial.response_time_ns.clone();
        LevelPoint {
            level: value(trial.level),
            throughput_per_s: trial.successes_per_s(),
            mean_ns: times.mean.map(|ns| ns as f64),
            p90_ns: times.p90.map(|ns| ns as f64),
            error_share: error_share(&trial.outcomes),
            operations: trial.outcomes.total(),
            latency: Some(times),
            valid: trial.verdict == Verdict::Valid,
            trials: 1,
            ..LevelPoint::default()
        }
    }

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

/// One row per level, ascending, of its valid trials; where it has none, of the last.
pub fn points(trials: &[TrialReport]) -> Vec<LevelPoint> {
    let mut levels: Vec<f64> = trials.iter().map(|t| value(t.level)).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let row = |level: f64| {
        let here = || trials.iter().filter(|t| value(t.level) == level);
        let valid: Vec<&TrialReport> = here().filter(|t| t.verdict == Verdict::Valid).collect();
        let used = if valid.is_empty() {
            here().next_back().into_iter().collect()
        } else {
            valid
        };
        let whole = pooled(&used)?;
        Some(LevelPoint {
            trials: used.len(),
            throughput_ci95: goodput_ci95(&whole),
            ..LevelPoint::of(&whole)
        })
    };
    levels.into_iter().filter_map(row).collect()
}

/// 95 % confidence interval of a trial's goodput: that of its throughput, in proportion, or where
/// users do sessions that of those that came to their end.
pub fn goodput_ci95(trial: &TrialReport) -> Option<[f64; 2]> {
    if let Some(sessions) = trial.sessions() {
        return sessions.completed_ci95_per_s;
    }
    let of = trial.throughput_per_s.unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let share = trial.successes_per_s() / of;
    let ci95 = trial.throughput_ci95_per_s?;
    Some(ci95.map(|bound| bound * share))
}
