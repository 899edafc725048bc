//! What a trial of flows shows beyond any other.

use crate::trial::report::{QuantilesReport, TimesReport};
use knee_load::measure::Direction;
use serde::{Deserialize, Serialize};

/// The flows of a scenario. Its pings are the trial's operations.
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
    pub inside_ns: TimesReport,
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

impl FlowsReport {
    /// Whether its flows tell anything of the path: data came, or a flow was lost. One that ended
    /// before either, as the user ended it, tells nothing.
    pub fn has_begun(&self) -> bool {
        let tells = |f: &FlowReport| f.lost_at_ns.is_some() || f.bytes.iter().any(|n| *n > 0);
        self.state != "aborted" || self.flows.iter().any(tells)
    }
}

/// Probes of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Pings sent.
    pub sent: u64,
    /// Pings that did not come back in time.
    pub lost: u64,
    /// Probes that were due and not sent, as the sending host still held earlier ones. Each would
    /// have waited for these, and not for the path alone.
    #[serde(default)]
    pub held_back: u64,
    /// Round trips. Probes that did not come back count with the time they were waited for. Each
    /// counts as often as probes were due around it, those held back included. So quantiles and
    /// mean are of the measured time; `count` is of the probes.
    pub round_trip_ns: TimesReport,
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
