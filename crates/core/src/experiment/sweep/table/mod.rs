//! Table of a sweep: one row per level, made of trials or read from a file.

mod csv;

pub use csv::parse_csv;

use crate::trial::figure::TimesReport;
use crate::trial::merged_slices::merged;
use crate::trial::messages::MessagesReport;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;
use knee_load::measure::error_share;

/// One level of a sweep with its figures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LevelPoint {
    /// Virtual users, or operations offered per second.
    pub level: f64,
    /// Operations that succeeded, per second.
    pub throughput_per_s: f64,
    /// The same between the target's pauses, where it has any.
    pub between_pauses_per_s: Option<f64>,
    /// 95 % confidence interval of it; `None` where the data permit none.
    pub throughput_ci95: Option<[f64; 2]>,
    /// Half the width of that against other levels of the same rounds, as a share, …
    pub relative_half: Option<f64>,
    /// … and its degrees of freedom; `None`: many.
    pub freedom: Option<u64>,
    /// Mean response time in nanoseconds, where it was measured.
    pub mean_ns: Option<f64>,
    /// 90th percentile of response time in nanoseconds, where it was measured.
    pub p90_ns: Option<f64>,
    /// All figures of response time. Percentiles are never averaged: those of several trials come
    /// from merged histograms.
    pub latency: Option<TimesReport>,
    /// The streams of messages, if any.
    pub messages: Option<MessagesReport>,
    /// Share of the operations that failed, 0 to 1.
    pub error_share: f64,
    /// Number of operations; 0 if unknown.
    pub operations: u64,
    /// Share of a user's time taken by the generator; 0 if unknown.
    pub generator_share: f64,
    /// Whether it is valid: the generator measured the target, and not itself.
    pub valid: bool,
    /// Number of its trials.
    pub trials: usize,
}

impl LevelPoint {
    /// The row of one trial, without an interval.
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
            messages: trial.messages().cloned(),
            valid: trial.verdict == Verdict::Valid,
            trials: 1,
            ..LevelPoint::default()
        }
    }

    /// Mean response time in nanoseconds. Where it was not measured it is N/X. That is Little's law
    /// for users that do not pause (Little, Operations Research 9(3), 1961).
    pub fn response_ns(&self) -> f64 {
        self.mean_ns.unwrap_or(1e9 * self.level / self.throughput_per_s)
    }

    /// Half the width of the confidence interval as a share of the throughput.
    pub fn half_width(&self) -> Option<f64> {
        let [lo, hi] = self.throughput_ci95?;
        (self.throughput_per_s > 0.0).then(|| (hi - lo) / 2.0 / self.throughput_per_s)
    }

    /// The same against other levels: what all levels of a round share is no difference.
    pub fn relative_half(&self) -> Option<f64> {
        self.relative_half.or(self.half_width())
    }
}

/// One row per level, ascending, with the trial of all its figures. That is the valid trials of the
/// greatest length merged into one, or the last trial if none is valid.
pub(super) fn merged_rows(trials: &[TrialReport]) -> Vec<(LevelPoint, TrialReport)> {
    let mut levels: Vec<f64> = trials.iter().map(|t| value(t.level)).collect();
    levels.sort_by(f64::total_cmp);
    levels.dedup();
    let row = |level: f64| {
        let mut here = trials.iter().filter(|t| value(t.level) == level);
        let valid = here.clone().filter(|t| t.verdict == Verdict::Valid);
        let length = valid.clone().map(|t| t.duration_ns).max();
        let mut used: Vec<&TrialReport> = valid.filter(|t| Some(t.duration_ns) == length).collect();
        if used.is_empty() {
            used.extend(here.next_back());
        }
        let whole = merged(&used, None)?;
        let point = LevelPoint {
            trials: used.len(),
            throughput_ci95: goodput_ci95(&whole),
            ..LevelPoint::of(&whole)
        };
        Some((point, whole))
    };
    levels.into_iter().filter_map(row).collect()
}

/// 95 % confidence interval of a trial's goodput: that of its throughput in proportion, or with
/// sessions that of the completed ones.
pub fn goodput_ci95(trial: &TrialReport) -> Option<[f64; 2]> {
    if let Some(sessions) = trial.sessions() {
        return sessions.completed_ci95_per_s;
    }
    let throughput = trial.throughput_per_s.unwrap_or(0.0).max(f64::MIN_POSITIVE);
    let share = trial.successes_per_s() / throughput;
    let ci95 = trial.throughput_ci95_per_s?;
    Some(ci95.map(|bound| bound * share))
}
