//! What was measured of flows, and of the latency inside and beside them.

use crate::experiment::latency::spec::LatencyTrialSpec;
use crate::measure::Direction;
use crate::measure::{GeneratorUse, Histogram, Interval};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One scenario as the engine ran it. Times are since the run began, when the first flow
/// started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct LatencyTrial {
    /// The specification of the scenario.
    pub spec: LatencyTrialSpec,
    /// Every flow, the uploads first.
    pub flows: Vec<FlowMeasured>,
    /// The pinger: a TCP connection of its own, with TCP_NODELAY, that also carries control.
    pub tcp: ProbesMeasured,
    /// The UDP probes, where they were sent.
    pub udp: Option<ProbesMeasured>,
    /// The time series, with what both directions carried.
    pub intervals: Vec<Interval>,
    /// From the beginning to the end of the measured time.
    pub elapsed: Nanos,
    /// How it ended.
    pub ended: ScenarioEnded,
    /// What the service is.
    pub service: LatencyServiceFacts,
    /// Counters of this host that moved, by name.
    pub kernel: BTreeMap<String, i64>,
    /// Resources that the generator used.
    pub generator: GeneratorUse,
    /// Processor time of the service; `None` where it is not known.
    pub service_cpu: Option<Nanos>,
    /// The user ended it early.
    pub interrupted: bool,
}

/// How a scenario ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioEnded {
    /// It had settled, which ended it.
    Settled,
    /// Its time was over.
    Forced,
    /// It could not go on, for this reason, in words that follow `aborted:`.
    Aborted(String),
}

/// One flow, as its receiver and its sender saw it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FlowMeasured {
    /// Which way.
    pub direction: Direction,
    /// Which of that direction's flows, from 0.
    pub number: u32,
    /// When its sender began to send.
    pub begun: Nanos,
    /// When it ended: the scenario's end, or when it was lost.
    pub ended: Nanos,
    /// Payload bytes received in that time.
    pub received_bytes: u64,
    /// The longest time in which its receiver got nothing: between its beginning, each receive and
    /// its end.
    pub gap_max: Nanos,
    /// When that time began.
    pub gap_at: Nanos,
    /// Payload bytes received in each interval.
    pub by_interval: Vec<u64>,
    /// Latency inside the flow: from when a byte was handed to the sender's socket to when the
    /// receiver took it. Both are times of one clock, whose error is
    /// [`LatencyServiceFacts::clock_uncertainty_ns`].
    pub inside: Histogram,
    /// The longest of them in each interval, by when it was received; zero where none was.
    pub inside_max_by_interval: Vec<Nanos>,
    /// What TCP knew of it at the sender, sampled about once an interval, in order.
    pub samples: Vec<TcpSample>,
    /// Segments sent again in all (tcpi_total_retrans).
    pub retransmitted: u64,
    /// The congestion control that its sender used.
    pub congestion_control: String,
    /// Whether both ends agreed on explicit congestion notification.
    pub ecn: bool,
    /// When and why it was lost, where it did not live to the end.
    pub lost: Option<FlowLost>,
}

/// The end of a flow before its time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowLost {
    /// Time of the loss.
    pub at: Nanos,
    /// Why, such as `connection reset by peer`.
    pub why: String,
}

/// What TCP knew of a flow at one time (TCP_INFO, tcp(7); include/uapi/linux/tcp.h).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TcpSample {
    /// Time of the sample.
    pub at: Nanos,
    /// Smoothed round-trip time (tcpi_rtt).
    pub rtt: Nanos,
    /// Smallest round-trip time so far (tcpi_min_rtt).
    pub rtt_min: Nanos,
    /// Congestion window in bytes (tcpi_snd_cwnd · tcpi_snd_mss).
    pub window_bytes: u64,
    /// Delivery rate in bytes per second (tcpi_delivery_rate).
    pub delivery_bytes_per_s: u64,
    /// Bytes that the socket holds but TCP has not sent yet (tcpi_notsent_bytes).
    pub unsent_bytes: u64,
    /// Segments sent again so far (tcpi_total_retrans).
    pub retransmitted: u64,
}

/// Probes of one kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbesMeasured {
    /// Those sent in the measured time.
    pub sent: u64,
    /// Every probe that came back, and every one that did not, in the order in which they were
    /// sent; the first million.
    pub probes: Vec<Probe>,
    /// The longest wait of a probe: its round trip. Of one that had not come back at the end, the
    /// time since it was sent.
    pub longest: Nanos,
    /// When that one was sent.
    pub longest_at: Nanos,
    /// sent − intended: the generator's own lateness.
    pub pacing_error: Histogram,
    /// Those that were due and not sent, as this host still held earlier ones.
    pub held_back: u64,
}

/// One probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Probe {
    /// When it was due.
    pub intended: Nanos,
    /// When it was sent.
    pub sent: Nanos,
    /// Its times; `None`: it did not come back in time.
    pub back: Option<ProbeBack>,
    /// Of one that did not come back: how long it had been waited for.
    pub waited: Nanos,
}

impl Probe {
    /// Its round trip, or how long it had been waited for.
    pub fn time(&self) -> Nanos {
        self.back.map_or(self.waited, |back| back.round_trip)
    }
}

/// A probe that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeBack {
    /// received − sent, less what the service held it.
    pub round_trip: Nanos,
    /// To the service, on one clock; as exact as that is known.
    pub up: Nanos,
    /// Back from it.
    pub down: Nanos,
}

/// What a latency service is, as it tells when a session begins.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyServiceFacts {
    /// Whether it runs on the client's host (same boot), so that both have one clock.
    pub same_host: bool,
    /// Uncertainty of its clock's offset from the client's; 0 on one host.
    pub clock_uncertainty_ns: u64,
    /// Its host's default congestion control.
    pub congestion_control: String,
    /// Its kernel.
    pub kernel: String,
    /// Processors that it may use.
    pub cpus: u32,
}
