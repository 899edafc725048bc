//! What a sweep answers.

use crate::spec::Level;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The answer of `knee sweep`. For a sweep over rates (`--axis rate`) the same, with rates in
/// place of users. Its throughputs are goodputs: an operation that fails never counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SweepConclusion {
    /// The most throughput that any level reached, as fitted over the saturated levels.
    pub max_throughput_per_s: f64,
    /// 95 % confidence interval of it for the host as it was in this run; `None` where there are
    /// too few rounds.
    #[serde(default)]
    pub max_throughput_ci95_per_s: Option<[f64; 2]>,
    /// Whether the maximum is determined: not where slices of the same level differ too much.
    #[serde(default)]
    pub is_undetermined: bool,
    /// The least and the most throughput of slices at the level with the most, where it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub varied_per_s: Option<[f64; 2]>,
    /// Standard deviation of what level and round leave of a slice's throughput, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread_percent: Option<f64>,
    /// The slices in the order in which they were measured: round by round, each level once in
    /// each, in random order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<SweepSlice>,
    /// How fast the host ran by round, as the generator's processor time per operation tells it: 1
    /// is the median.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_speed: Vec<f64>,
    /// A lasting change of the throughput.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regime_change: Option<RegimeChange>,
    /// By how much throughput at the same load rose over the rounds, in percent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_percent: Option<f64>,
    /// Times without a response.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<SweepOutage>,
    /// Where the asymptotes cross, X_max·R(1); `None` where the data do not show it, or contradict
    /// it: see `knee_range`.
    pub knee_vusers: Option<f64>,
    /// Where the knee lies, where that is all that is known: from the least to the most users, or
    /// (`--axis rate`) from the highest rate served to the lowest that is not.
    #[serde(default)]
    pub knee_range: Option<[f64; 2]>,
    /// 95 % confidence interval of it.
    pub knee_ci95: Option<[f64; 2]>,
    /// How it was found: `asymptotes`, `kneedle`, `max_power`.
    pub knee_method: Option<String>,
    /// What the other methods say, by name.
    pub knee_alternatives: BTreeMap<String, f64>,
    /// Throughput at the knee, interpolated between the measured levels.
    pub throughput_at_knee_per_s: Option<f64>,
    /// 90th percentile of response time at the knee, interpolated.
    pub p90_at_knee_ns: Option<u64>,
    /// `--axis rate`: the highest rate served without a growing queue.
    pub knee_rate_per_s: Option<f64>,
    /// The most throughput within the bounds asked for.
    pub best_within_bound: Option<BestWithinBound>,
    /// What one user alone gets, per second: the slope of the rising asymptote X₁·N; `None` where
    /// the data do not show it.
    #[serde(default)]
    pub throughput_per_user_per_s: Option<f64>,
    /// The levels in ascending order, repetitions pooled: what the table and the plots show.
    #[serde(default)]
    pub levels: Vec<SweepLevel>,
    /// The bounds asked for, in the order given.
    #[serde(default)]
    pub bounds: Vec<BoundAsked>,
    /// `--axis rate`: what is known of the highest rate of each goal: no loss, then each bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalBounds>,
    /// What an open loop shows beside the users, where the target pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_loop: Option<OpenLoopBeside>,
    /// Models fitted to the levels, the best first.
    pub models: Vec<ModelFit>,
    /// How many users to drive this target with, where known.
    pub recommended_vusers: Option<u32>,
    /// The conclusion in one or two sentences for a person.
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
    /// Half the width of the maximum's interval as a share.
    pub fn max_half_width(&self) -> Option<f64> {
        let [lo, hi] = self.max_throughput_ci95_per_s?;
        Some((hi - lo) / 2.0 / self.max_throughput_per_s.max(f64::MIN_POSITIVE))
    }
}

/// A slice: a short trial of one level in one round.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepSlice {
    /// Number of the round, from 1; 0 where the sweep explored.
    pub round: u32,
    /// Users.
    pub level: Level,
    /// Begin of the measured time, from the begin of the sweep.
    pub begin_ns: u64,
    /// Measured time.
    pub duration_ns: u64,
    /// Operations that succeeded, per second.
    pub throughput_per_s: f64,
    /// Mean response time.
    pub mean_ns: Option<u64>,
    /// 90th percentile of response time.
    pub p90_ns: Option<u64>,
    /// Operations that failed.
    pub errors: u64,
    /// Processor time of the generator per operation, in microseconds, where it did not poll.
    pub cpu_us_per_op: Option<f64>,
    /// How fast the host ran, against the median of the level.
    pub host_speed: Option<f64>,
    /// What it counts for: 1 as most do, less where it deviates, 0 not at all.
    pub weight: f64,
    /// What was amiss: `explored`, `outage`, `errors`, `other_regime`, `invalid`, `stolen`,
    /// `outlier`.
    pub marks: Vec<String>,
}

/// A lasting change of what the target serves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct RegimeChange {
    /// Throughput before it, at the levels with the most.
    pub before_per_s: f64,
    /// Throughput after it.
    pub after_per_s: f64,
    /// When it was, from the begin of the sweep.
    pub at_ns: u64,
    /// The load during or after which it happened.
    pub after_level: Level,
}

/// A time without a good response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepOutage {
    /// Begin, from the begin of the sweep.
    pub begin_ns: u64,
    /// End.
    pub end_ns: u64,
    /// The levels that were being measured.
    pub levels: Vec<Level>,
    /// Operations that failed in those slices.
    pub failures: u64,
}

/// One trial in open loop beside a sweep over users. While a target pauses, the users of a closed
/// loop send nothing; in an open loop requests go on arriving.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoopBeside {
    /// Operations offered per second.
    pub rate_per_s: f64,
    /// The same as a share of the maximum throughput, in percent.
    pub percent_of_maximum: f64,
    /// 99th percentile of response time.
    pub p99_ns: u64,
    /// The users to compare with: those of the knee's level, or where none is known of the one with
    /// the most throughput.
    pub vusers: u32,
    /// 99th percentile of response time with so many users.
    pub closed_p99_ns: u64,
}

/// One level of a sweep, its repetitions pooled. What was not measured (as in a table of other
/// people's) is `None`, never 0.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepLevel {
    /// Users, or operations offered per second.
    pub level: Level,
    /// Slices (or, of rates, trials) that the row is made of, at least 1.
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
    #[serde(default)]
    pub p95_ns: Option<u64>,
    /// 99th percentile of response time.
    pub p99_ns: Option<u64>,
    /// Operations that failed.
    pub errors: Option<u64>,
    /// The share of a core that the generator's busiest worker used, in percent.
    pub busiest_worker_percent: Option<f64>,
    /// Processor time of the generator per operation, in microseconds.
    pub cpu_us_per_op: Option<f64>,
    /// Little's law: by how much X·(R+Z) deviates from N, in percent; closed loop only.
    pub littles_law_deviation_percent: Option<f64>,
    /// Why the level does not count for the conclusion, in a word or two (`invalid`,
    /// `not stationary`); `None` where it does.
    pub excluded_because: Option<String>,
    /// Whether it is the measured level nearest to the knee.
    pub is_knee: bool,
    /// Whether it is the level of `best_within_bound`.
    pub is_best_within_bound: bool,
}

/// A bound on the response time that was asked for with `--bound`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BoundAsked {
    /// `mean`, `p50`, `p90`, `p99`, ….
    pub metric: String,
    /// The most that it may be.
    pub limit_ns: u64,
}

/// The best level within a bound.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BestWithinBound {
    /// The bounds, as asked: `p90<=50ms`.
    pub bound: String,
    /// The level, in users (0 on the rate axis).
    pub vusers: u32,
    /// The level, in operations per second (rate axis).
    pub rate_per_s: Option<f64>,
    /// Its throughput.
    pub throughput_per_s: f64,
    /// Its 90th percentile of response time, where its observations tell it.
    pub p90_ns: Option<u64>,
    /// Whether the confidence interval of the bounded figure lies within the bound as a whole.
    pub confident: bool,
}

/// A model fitted to throughput against users.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ModelFit {
    /// `asymptotic_bounds`, `machine_repair`, `universal_scalability_law`.
    pub name: String,
    /// Those of its parameters that are facts, by name: none where it fits badly, nor one that the
    /// levels measured do not tell, however well the curve fits them.
    pub parameters: BTreeMap<String, f64>,
    /// Root of the mean squared relative residual, in percent.
    pub rmse_percent: f64,
    /// Whether it fits (rmse below 5 %).
    pub good: bool,
}
