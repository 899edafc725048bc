//! Flows as reported, and the answer of `knee latency`.

use crate::trial::figure::TimesReport;
use knee_load::measure::Direction;
use serde::{Deserialize, Serialize};

/// Capacity, responsiveness and smoothness of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyConclusion {
    /// The smallest round trip on the idle path; `None` where it was not measured.
    pub min_rtt_ns: Option<u64>,
    /// The overall figures; of the first congestion control where several were asked for.
    #[serde(flatten)]
    pub path: PathFigures,
    /// The same by UDP probes; `None` where not known.
    pub udp_added_latency_ns: Option<u64>,
    /// The grade of that; empty where not known.
    #[serde(default)]
    pub udp_grade: String,
    /// The keys of those figures here that rest on trials which the generator distorted; the others
    /// stand.
    #[serde(default)]
    pub distorted: Vec<String>,
    /// Latency of the idle path over TCP.
    pub idle_ns: Option<TimesReport>,
    /// The scenarios in the order in which they were run.
    pub scenarios: Vec<ScenarioRow>,
    /// The same figures for each congestion control that was asked for, where several were.
    #[serde(default)]
    pub by_congestion_control: Vec<CongestionRow>,
    /// The conclusion in one or two sentences for a person.
    #[serde(default)]
    pub answer: String,
}

/// The overall figures of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathFigures {
    /// Harmonic mean of the scenarios' upload capacities, rounded down; `None` where no scenario
    /// uploads.
    pub upload_capacity_kib_per_s: Option<u64>,
    /// The same of the downloads.
    pub download_capacity_kib_per_s: Option<u64>,
    /// The worst responsiveness of any scenario, rounded down.
    pub responsiveness_hz: Option<u64>,
    /// The worst smoothness of any scenario, rounded down.
    pub smoothness_hz: Option<u64>,
    /// Bufferbloat in the words that people know, `A+` to `F`, by added latency; empty where not
    /// known.
    pub grade: String,
    /// What the grade is of: by how much the loaded path's latency exceeds the idle one's.
    pub added_latency_ns: Option<u64>,
}

/// One scenario.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScenarioRow {
    /// Uploads.
    pub up: u32,
    /// Downloads.
    pub down: u32,
    /// Capacity of the uploads; `None` without any.
    pub up_kib_per_s: Option<f64>,
    /// Capacity of the downloads.
    pub down_kib_per_s: Option<f64>,
    /// Smoothness.
    pub smoothness_hz: Option<f64>,
    /// Responsiveness; `None` where only a text is known that does not tell.
    pub responsiveness_hz: Option<f64>,
    /// `settled`, `forced` or `aborted`; empty where not known.
    pub state: String,
    /// Why it was forced or aborted.
    pub reason: String,
    /// The congestion control asked for; empty: the hosts' default.
    #[serde(default)]
    pub congestion_control: String,
    /// How long it took.
    #[serde(default)]
    pub duration_ns: u64,
    /// By how much the median ping exceeds that of the idle path; `None` where either is not known.
    pub added_latency_ns: Option<i64>,
    /// The same of UDP probes. The sending host's TCP holds none of them back.
    pub udp_added_latency_ns: Option<i64>,
    /// Whether the generator distorted it.
    #[serde(default)]
    pub distorted: bool,
    /// Its trial in the report, from 0; `None` where only a text is known.
    pub trial: Option<usize>,
    /// Jain's index of the uploads.
    pub up_jain_index: Option<f64>,
    /// Jain's index of the downloads.
    pub down_jain_index: Option<f64>,
    /// Goodput of each flow, the uploads first.
    pub flows: Vec<ScenarioFlow>,
}

/// One flow of a scenario, in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioFlow {
    /// Which way.
    pub direction: Direction,
    /// Its goodput; 0 where it was lost.
    pub goodput_kib_per_s: f64,
    /// Why it was lost, and when; empty where it lived.
    #[serde(default)]
    pub lost: String,
}

/// The overall figures under one congestion control.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CongestionRow {
    /// Its name.
    pub congestion_control: String,
    /// The overall figures with it.
    #[serde(flatten)]
    pub path: PathFigures,
}
