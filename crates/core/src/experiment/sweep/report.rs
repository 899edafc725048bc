//! Conclusion of a sweep in a report.

use crate::trial::silence::PausesReport;
use knee_load::measure::Outcomes;
use knee_load::spec::Level;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Conclusion of `knee sweep`. For a sweep over rates (`--axis rate`) the levels are rates instead
/// of users. Throughputs are goodputs: failed operations never count.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepConclusion {
    /// Maximum throughput: the mean of the levels that do not differ from the one with the most.
    pub max_throughput_per_s: f64,
    /// The same between the target's pauses, where it has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_between_pauses_per_s: Option<f64>,
    /// 95 % confidence interval of it for the host as it was in this run; `None` with too few
    /// rounds.
    pub max_throughput_ci95_per_s: Option<[f64; 2]>,
    /// Whether the maximum is undetermined, because slices of the same level differ too much.
    #[serde(default)]
    pub is_undetermined: bool,
    /// Range of the slices at the level with the most throughput, if it is undetermined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub varied_per_s: Option<[f64; 2]>,
    /// Standard deviation of the residuals of the slices, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread_percent: Option<f64>,
    /// Slices in the order of measurement, round by round, each level once in each round in random
    /// order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<SweepSlice>,
    /// Speed of the host by round, from the generator's processor time per operation; 1 is the
    /// median.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_speed: Vec<f64>,
    /// Speed of the host against earlier runs of the same sweep, where the history has any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub earlier_host_speed: Option<EarlierHostSpeed>,
    /// A lasting change of the throughput.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub regime_change: Option<RegimeChange>,
    /// Drift of throughput at the same load over the rounds, in percent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drift_percent: Option<f64>,
    /// Cycle of the throughput at the same load.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycle: Option<ThroughputCycle>,
    /// Outages: times of a second or more, or with failures, in which work waited and nothing
    /// completed. No throughput includes them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<SweepOutage>,
    /// Shorter such times without failures. Throughputs include them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pauses: Option<PausesReport>,
    /// Crossing of the asymptotes, X_max·R(1); `None` if the data do not show it or contradict it:
    /// see `knee_range`.
    pub knee_vusers: Option<f64>,
    /// Range of the knee, if that is all that is known, in users. With `--axis rate`: from the
    /// highest rate served to the lowest that is not.
    pub knee_range: Option<[f64; 2]>,
    /// 95 % confidence interval of it.
    pub knee_ci95: Option<[f64; 2]>,
    /// Method: `asymptotes`, `kneedle`, `max_power`.
    pub knee_method: Option<String>,
    /// Results of the other methods, by name.
    pub knee_alternatives: BTreeMap<String, f64>,
    /// Throughput at the knee: the measured one where the knee is a measured level, otherwise
    /// interpolated.
    pub throughput_at_knee_per_s: Option<f64>,
    /// 90th percentile of response time at the knee, likewise.
    pub p90_at_knee_ns: Option<u64>,
    /// `--axis rate`: the highest rate served without a growing queue.
    pub knee_rate_per_s: Option<f64>,
    /// Maximum throughput within the bounds.
    pub best_within_bound: Option<BestWithinBound>,
    /// Throughput of one user, per second: the slope of the rising asymptote X₁·N; `None` if the
    /// data do not show it.
    pub throughput_per_user_per_s: Option<f64>,
    /// Levels in ascending order, repetitions merged: the rows of the table and the points of the
    /// plots.
    #[serde(default)]
    pub levels: Vec<SweepLevel>,
    /// Bounds in the order given.
    #[serde(default)]
    pub bounds: Vec<BoundAsked>,
    /// `--axis rate`: bounds of the highest rate of each goal: no loss, then each bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalBounds>,
    /// Result of an open loop, if the target pauses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopComparison>,
    /// Models fitted to the levels, the best first.
    pub models: Vec<ModelFit>,
    /// Recommended number of users, a measured level, if known.
    pub recommended_vusers: Option<u32>,
    /// Conclusion in a few sentences.
    pub answer: String,
}

/// Between which rates a goal of a search over rates stops to be reached (RFC 9971).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GoalBounds {
    /// `no_loss`, or the bound as asked: `p90<=50ms`.
    pub goal: String,
    /// Relevant lower bound: the highest rate known to reach it below `upper_per_s`; `None` where
    /// none is.
    pub lower_per_s: Option<f64>,
    /// Relevant upper bound: the lowest rate known not to reach it; `None` where none is.
    pub upper_per_s: Option<f64>,
    /// Rates between the two that were tried and are not decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub undecided_per_s: Vec<f64>,
}

impl SweepConclusion {
    /// Half the width of the maximum's interval, as a share.
    pub fn max_half_width(&self) -> Option<f64> {
        let [lo, hi] = self.max_throughput_ci95_per_s?;
        Some((hi - lo) / 2.0 / self.max_throughput_per_s.max(f64::MIN_POSITIVE))
    }

    /// The slices, or the levels of a table without rounds; `None` for a sweep over rates, and
    /// where nothing was measured.
    pub fn as_table(&self) -> Option<Vec<SweepSlice>> {
        let of_level = |l: &SweepLevel| SweepSlice {
            throughput_per_s: l.throughput_per_s,
            mean_ns: l.mean_ns,
            p90_ns: l.p90_ns,
            ..SweepSlice::blank(l.level)
        };
        let of_levels = || self.levels.iter().map(of_level).collect();
        let slices = if self.slices.is_empty() { of_levels() } else { self.slices.clone() };
        let is_of_users = slices.iter().all(|s| matches!(s.level, Level::Vusers(_)));
        (is_of_users && !slices.is_empty()).then_some(slices)
    }
}

/// A slice: a short trial of one level in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepSlice {
    /// Number of the round, from 1; 0 where the sweep explored.
    pub round: u32,
    /// Users.
    pub level: Level,
    /// Begin of the measured time, from the begin of the sweep; `None` where a table does not tell.
    pub begin_ns: Option<u64>,
    /// Measured time, where known.
    pub duration_ns: Option<u64>,
    /// Operations that succeeded, per second.
    pub throughput_per_s: f64,
    /// Mean response time.
    pub mean_ns: Option<u64>,
    /// 90th percentile of response time.
    pub p90_ns: Option<u64>,
    /// Operations that failed.
    pub errors: u64,
    /// Operations by outcome, where some failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<Outcomes>,
    /// Processor time of the generator per operation, in microseconds, where it did not poll.
    pub cpu_us_per_op: Option<f64>,
    /// Speed of the host against the median of the level.
    pub host_speed: Option<f64>,
    /// Weight: 1, or 0 if it does not count: after a lasting change, in an outage, or where the
    /// generator or its host was disturbed. Such slices are repeated.
    pub weight: f64,
    /// Begin of its load, from the begin of the sweep.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load_begin_ns: Option<u64>,
    /// End of its last operation, after the measured time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// Begin and end of an outage that it was hit by, from the begin of the sweep.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outage_ns: Option<[u64; 2]>,
    /// Begin and end of each of the target's pauses that it was hit by, likewise.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pauses_ns: Vec<[u64; 2]>,
    /// Marks: `explored`, `outage`, `paused`, `errors`, `other_regime`, `invalid`, `stalled`,
    /// `stolen`, `waited`, `slow_host`.
    pub marks: Vec<String>,
}

impl SweepSlice {
    /// Whether it has this mark.
    pub(super) fn has_mark(&self, mark: &str) -> bool {
        self.marks.iter().any(|m| m == mark)
    }

    /// A slice with only its level known.
    pub(crate) fn blank(level: Level) -> SweepSlice {
        SweepSlice {
            round: 0,
            level,
            begin_ns: None,
            duration_ns: None,
            throughput_per_s: 0.0,
            mean_ns: None,
            p90_ns: None,
            errors: 0,
            outcomes: None,
            cpu_us_per_op: None,
            host_speed: None,
            weight: 1.0,
            load_begin_ns: None,
            end_ns: None,
            outage_ns: None,
            pauses_ns: Vec::new(),
            marks: Vec::new(),
        }
    }
}

/// A lasting change of the throughput.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegimeChange {
    /// Throughput before it, at the levels with the most.
    pub before_per_s: f64,
    /// Throughput after it.
    pub after_per_s: f64,
    /// Time of the change, from the begin of the sweep; `None` where a table does not tell.
    pub at_ns: Option<u64>,
    /// Round of the first slice after it; 0 while the sweep explored.
    #[serde(default)]
    pub round: u32,
    /// The load during or after which it happened.
    pub after_level: Level,
}

/// A cycle of the throughput at the same load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ThroughputCycle {
    /// Time from one maximum to the next.
    pub period_ns: u64,
    /// Half the difference of the most and the least, in percent.
    pub amplitude_percent: f64,
}

/// Speed of the host against earlier runs of the same sweep on the same host. It follows from the
/// generator's processor time per operation at levels in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlierHostSpeed {
    /// Number of earlier runs.
    pub runs: u32,
    /// Speed against their median: 0.8 is a fifth slower.
    pub speed: f64,
    /// The slowest and the fastest of them, against their median.
    pub earlier: [f64; 2],
}

/// A time in which work waited and nothing completed, of a second or more, or with failures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepOutage {
    /// Begin, from the begin of the sweep; `None` where a table does not tell.
    pub begin_ns: Option<u64>,
    /// End.
    pub end_ns: Option<u64>,
    /// Round of its first slice; 0 while the sweep explored.
    #[serde(default)]
    pub round: u32,
    /// The levels that were being measured.
    pub levels: Vec<Level>,
    /// Operations that failed in it or because of it.
    pub failures: u64,
}

/// One trial in open loop beside a sweep over users. While a target pauses, the users of a closed
/// loop send nothing; in an open loop requests go on arriving.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopComparison {
    /// Operations offered per second.
    pub rate_per_s: f64,
    /// The same as a share of the maximum throughput, in percent.
    pub percent_of_maximum: f64,
    /// 99th percentile of response time.
    pub p99_ns: u64,
    /// Users of the compared level: that of the knee, or if unknown the one with the most
    /// throughput.
    pub vusers: u32,
    /// 99th percentile of response time with this number of users.
    pub closed_p99_ns: u64,
}

/// A level of a sweep, its repetitions merged. Unmeasured figures are `None`, never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepLevel {
    /// Users, or operations offered per second.
    pub level: Level,
    /// Slices (with rates: trials) of the row, at least 1.
    pub trials: u32,
    /// Operations that succeeded, per second.
    pub throughput_per_s: f64,
    /// 95 % confidence interval of it.
    pub throughput_ci95_per_s: Option<[f64; 2]>,
    /// Mean response time.
    pub mean_ns: Option<u64>,
    /// Median response time.
    pub p50_ns: Option<u64>,
    /// 90th percentile of response time.
    pub p90_ns: Option<u64>,
    /// 95th percentile of response time.
    pub p95_ns: Option<u64>,
    /// 99th percentile of response time.
    pub p99_ns: Option<u64>,
    /// Operations that failed.
    pub errors: Option<u64>,
    /// Share of a core used by the generator's busiest worker, in percent.
    pub busiest_worker_percent: Option<f64>,
    /// Processor time of the generator per operation, in microseconds.
    pub cpu_us_per_op: Option<f64>,
    /// Little's law: deviation of X·(R+Z) from N, in percent; closed loop only.
    pub littles_law_deviation_percent: Option<f64>,
    /// Throughput between the target's pauses, where it has any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between_pauses_per_s: Option<f64>,
    /// Reason why the level does not count for the conclusion (`invalid`, `failures`); `None` if it
    /// does.
    pub excluded_because: Option<String>,
    /// Whether it is the measured level nearest to the knee.
    pub is_knee: bool,
    /// Whether it is the level of `best_within_bound`.
    pub is_best_within_bound: bool,
}

/// A bound on response time (`--bound`).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundAsked {
    /// `mean`, `p50`, `p90`, `p99`, ….
    pub metric: String,
    /// Its limit; 0 where it is no time.
    pub limit_ns: u64,
    /// The least share, in percent, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub least_percent: Option<f64>,
}

/// The best level within a bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BestWithinBound {
    /// The bounds as typed: `p90<=50ms`.
    pub bound: String,
    /// The level, in users (0 on the rate axis).
    pub vusers: u32,
    /// The level, in operations per second (rate axis).
    pub rate_per_s: Option<f64>,
    /// Its throughput.
    pub throughput_per_s: f64,
    /// Its 90th percentile of response time, if it has enough observations.
    pub p90_ns: Option<u64>,
    /// Whether the whole confidence interval of the bounded figure is within the bound.
    pub confident: bool,
}

/// A model fitted to throughput against users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFit {
    /// `asymptotic_bounds`, `machine_repair`, `universal_scalability_law`.
    pub name: String,
    /// Parameters by name: none after a bad fit, and none that the levels do not determine.
    pub parameters: BTreeMap<String, f64>,
    /// Root of the mean squared relative residual, in percent.
    pub rmse_percent: f64,
    /// Whether it fits (rmse below 5 %).
    pub good: bool,
}
