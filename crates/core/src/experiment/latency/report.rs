//! Flows as reported, and the answer of `knee latency`.

use crate::experiment::latency::measure::Direction;
use crate::trial::report::{LatencyReport, QuantilesReport};
use serde::{Deserialize, Serialize};

/// What a scenario of flows shows beside its pings (which are the trial's operations).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowsReport {
    /// Uploads; `None` where there were none.
    pub up: Option<DirectionReport>,
    /// Downloads; `None` where there were none.
    pub down: Option<DirectionReport>,
    /// 1 / the longest gap between consecutive received data on any flow; 0 where a flow was lost
    /// or never moved; `None` without flows.
    pub smoothness_hz: Option<f64>,
    /// That gap.
    pub gap_ns_max: u64,
    /// 1 / the longest latency that the pinger saw.
    pub responsiveness_hz: f64,
    /// That latency.
    pub latency_ns_max: u64,
    /// `settled`, `forced` or `aborted`.
    pub state: String,
    /// Why it was forced or aborted; empty where it settled.
    pub reason: String,
    /// Every flow, the uploads first.
    pub flows: Vec<FlowReport>,
    /// Probes over TCP, beside the flows.
    pub tcp: ProbeReport,
    /// Probes over UDP, beside the flows; absent where none were sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub udp: Option<ProbeReport>,
    /// The same kinds of latency over time.
    #[serde(default)]
    pub series: Vec<LatencySeries>,
    /// How well the clocks of both hosts are known to agree; 0 on one host.
    pub clock_uncertainty_ns: u64,
    /// Processor time of both ends per GiB received, in seconds; `None` where not known.
    #[serde(default)]
    pub cpu_s_per_gib: Option<f64>,
}

/// All flows of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DirectionReport {
    /// How many.
    pub flows: u32,
    /// The scenario's capacity: n times the harmonic mean of the flows' goodputs.
    pub capacity_kib_per_s: f64,
    /// Their sum.
    pub total_kib_per_s: f64,
    /// Jain's index of fairness of their goodputs, (Σx)² / (n·Σx²): 1 is fair, 1/n one flow alone.
    pub jain_index: f64,
    /// Latency inside the flows: from the sender's write to the receiver's read.
    pub inside_ns: LatencyReport,
    /// Segments sent again.
    pub retransmitted: u64,
}

/// One flow.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowReport {
    /// Which way.
    pub direction: Direction,
    /// Which of that direction, from 0.
    pub number: u32,
    /// Payload received over its lifetime; 0 where it was lost.
    pub goodput_kib_per_s: f64,
    /// Its longest time without data.
    pub gap_ns_max: u64,
    /// Segments sent again.
    pub retransmitted: u64,
    /// TCP's smoothed round-trip time over its samples.
    pub rtt_ns: QuantilesReport,
    /// The median congestion window in bytes.
    pub window_bytes: u64,
    /// The congestion control that its sender used.
    pub congestion_control: String,
    /// Whether both ends agreed on explicit congestion notification.
    pub ecn: bool,
    /// Payload bytes received in each interval of the trial.
    pub bytes: Vec<u64>,
    /// When it was lost, and why; absent where it lived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_at_ns: Option<u64>,
    /// Why it was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_because: Option<String>,
}

/// Probes of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Those sent.
    pub sent: u64,
    /// Those that did not come back in time.
    pub lost: u64,
    /// Those that were due and not sent, as the sending host still held earlier ones: each would
    /// have waited for these, and not for the path alone.
    #[serde(default)]
    pub held_back: u64,
    /// There and back; those that did not come back count with the time they were waited for.
    pub round_trip_ns: LatencyReport,
    /// To the service; see `clock_uncertainty_ns`.
    pub up_ns: QuantilesReport,
    /// Back from it.
    pub down_ns: QuantilesReport,
}

/// One kind of latency over the trial's intervals.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencySeries {
    /// `tcp`, `udp` (round trips beside the flows), `inside_up`, `inside_down`.
    pub kind: String,
    /// The median of each interval; `None` where there was none, or only the longest is known.
    pub p50_ns: Vec<Option<u64>>,
    /// The longest of each interval.
    pub max_ns: Vec<Option<u64>>,
}

/// Capacity, responsiveness and smoothness of a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyConclusion {
    /// The smallest round trip on the idle path; `None` where it was not measured.
    pub min_rtt_ns: Option<u64>,
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
    #[serde(default)]
    pub added_latency_ns: Option<u64>,
    /// The same by UDP probes; `None` where not known.
    #[serde(default)]
    pub udp_added_latency_ns: Option<u64>,
    /// The grade of that; empty where not known.
    #[serde(default)]
    pub udp_grade: String,
    /// The keys of those figures here that rest on trials which the generator distorted; the others
    /// stand.
    #[serde(default)]
    pub distorted: Vec<String>,
    /// Latency of the idle path over TCP.
    #[serde(default)]
    pub idle_ns: Option<LatencyReport>,
    /// The scenarios in the order in which they were run.
    pub scenarios: Vec<ScenarioRow>,
    /// The same figures for each congestion control that was asked for, where several were; the
    /// figures above are then of the first.
    #[serde(default)]
    pub by_congestion_control: Vec<CongestionRow>,
    /// The conclusion in one or two sentences for a person.
    #[serde(default)]
    pub answer: String,
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
    #[serde(default)]
    pub added_latency_ns: Option<i64>,
    /// The same of UDP probes, of which the sending host's TCP holds none back.
    #[serde(default)]
    pub udp_added_latency_ns: Option<i64>,
    /// Whether the generator distorted it.
    #[serde(default)]
    pub distorted: bool,
    /// Its trial in the report, from 0; `None` where only a text is known.
    #[serde(default)]
    pub trial: Option<usize>,
    /// Jain's index of the uploads.
    #[serde(default)]
    pub up_jain_index: Option<f64>,
    /// Jain's index of the downloads.
    #[serde(default)]
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
    /// As in [`LatencyConclusion`].
    pub upload_capacity_kib_per_s: Option<u64>,
    /// As in [`LatencyConclusion`].
    pub download_capacity_kib_per_s: Option<u64>,
    /// As in [`LatencyConclusion`].
    pub responsiveness_hz: Option<u64>,
    /// As in [`LatencyConclusion`].
    pub smoothness_hz: Option<u64>,
    /// As in [`LatencyConclusion`].
    pub grade: String,
    /// As in [`LatencyConclusion`].
    pub added_latency_ns: Option<u64>,
}
