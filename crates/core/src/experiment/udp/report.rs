//! The conclusion of `knee udp`.

use crate::trial::detail::{DispersionAt, LedgerReport};
use knee_load::measure::Interval;
use serde::{Deserialize, Serialize};

/// The answer of `knee udp`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpConclusion {
    /// A row for each law of waiting, its trials pooled.
    pub laws: Vec<LawRow>,
    /// `--explain`: what each change does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<EffectRow>,
    /// `--explain`: the explanations that the data support.
    #[serde(default)]
    pub supported: Vec<String>,
    /// `--explain`: those that they rule out.
    #[serde(default)]
    pub ruled_out: Vec<String>,
    /// `--explain`: those that they leave open.
    #[serde(default)]
    pub undecided: Vec<String>,
    /// The conclusion for a person.
    pub answer: String,
}

/// What clients of one law did and got.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LawRow {
    /// The name of its trials: `exp(200us)*128`.
    #[serde(default)]
    pub label: String,
    /// The law: `yield`, `exp(200us)`, `poisson`.
    pub wait: String,
    /// Clients.
    pub clients: u32,
    /// Trials pooled here.
    pub trials: u32,
    /// Datagrams per second that the kernel took.
    pub sent_per_s: f64,
    /// 95 % confidence interval of it over the trials; `None` for one trial.
    pub sent_ci95_per_s: Option<[f64; 2]>,
    /// Datagrams received per second.
    pub received_per_s: f64,
    /// Datagrams sent, or refused by the kernel, but not received, per second.
    pub dropped_per_s: f64,
    /// The same as a share of those sent or refused, in percent.
    pub loss_percent: f64,
    /// 95 % confidence interval of it over the trials.
    pub loss_ci95_percent: Option<[f64; 2]>,
    /// Index of dispersion of arrivals at 10 ms.
    pub dispersion: Option<f64>,
    /// The most arrivals in any millisecond.
    pub burst_max: u64,
    /// The sum of the ledgers of its trials.
    #[serde(default)]
    pub ledger: LedgerReport,
    /// The sum of what its trials sent and received in each interval.
    #[serde(default)]
    pub intervals: Vec<Interval>,
    /// Arrivals per millisecond: the number of milliseconds of all its trials by their arrivals
    /// (index).
    #[serde(default)]
    pub arrivals_per_ms: Vec<u64>,
    /// Index of dispersion of arrivals against the time scale, mean over its trials.
    #[serde(default)]
    pub dispersion_by_scale: Vec<DispersionAt>,
}

/// What one change of the design does, against the same without it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EffectRow {
    /// What was changed, and from what to what.
    pub change: String,
    /// The clients that it was tried with.
    pub base: String,
    /// Pairs of trials.
    pub pairs: u32,
    /// Ratio of datagrams sent per second, changed over unchanged.
    pub sent_ratio: f64,
    /// 95 % confidence interval of it.
    pub sent_ratio_ci95: Option<[f64; 2]>,
    /// Difference of the loss, changed − unchanged, in percentage points.
    pub loss_change_points: f64,
    /// 95 % confidence interval of it.
    pub loss_change_ci95_points: Option<[f64; 2]>,
}
