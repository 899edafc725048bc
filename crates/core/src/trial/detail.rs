//! The part of a trial's report that depends on its kind: HTTP, datagrams or flows.

use crate::trial::attempts::AttemptsReport;
use crate::trial::figure::TimesReport;
use crate::trial::messages::MessagesReport;
use crate::trial::offered::LittlesLaw;
use crate::trial::sessions::SessionsReport;
use crate::trial::silence::SilenceReport;
use crate::trial::slice::Slice;
use crate::trial::times::{QuantilesReport, is_zero};
use crate::trial::timing::TimingReport;
use crate::trial::traffic::{ProtocolReport, TrafficReport};
use knee_load::measure::{AgentMeasured, Direction, Observed, RoutedConnections};
use knee_load::stats::gaps::Dispersion;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of a trial, and what only trials of that kind have; its keys stand among those of the
/// trial.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Detail {
    /// Requests and responses: `knee run`, `knee sweep`, `knee overload`.
    Http(Box<HttpDetail>),
    /// Datagrams: `knee udp`.
    Udp(Box<UdpDetail>),
    /// Pings beside flows: `knee latency`.
    Latency(Box<LatencyDetail>),
    /// A trial of any kind that did not end: no more is known of it than its intervals tell.
    CutShort,
}

/// The part that only a trial of HTTP has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpDetail {
    /// The initial transient that MSER-5 cut from the throughput, within the window.
    pub transient_ns: u64,
    /// Responses per second of the whole window; absent where no transient was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_whole_per_s: Option<f64>,
    /// Response times of the operations that succeeded; absent where all did, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub served_time_ns: Option<Box<TimesReport>>,
    /// Silences of the target.
    #[serde(default, skip_serializing_if = "SilenceReport::is_none")]
    pub silence: SilenceReport,
    /// Little's law; closed loop only.
    pub littles_law: Option<LittlesLaw>,
    /// The fault of the first malformed response, in words; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed_because: Option<String>,
    /// Why the first compressed body could not be decoded, in words; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undecodable_because: Option<String>,
    /// How the target said, the first time, that it ended streams of HTTP/2: `RST_STREAM with
    /// INTERNAL_ERROR`; absent where it ended none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_reset_because: Option<String>,
    /// The stages of response times and whose delay they are.
    #[serde(flatten)]
    pub timing: TimingReport,
    /// The traffic of connections in both directions, by target.
    #[serde(flatten)]
    pub traffic: TrafficReport,
    /// The protocol of connections; absent for HTTP/1.1 in cleartext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolReport>,
    /// The sessions of users, where operations are steps of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsReport>,
    /// The streams of messages; absent where no response is split into messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<MessagesReport>,
    /// Requests and their attempts; absent where nothing is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<AttemptsReport>,
    /// Connections opened.
    pub connections_opened: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// Where the connections went; absent where that is one address, without a proxy.
    #[serde(default, skip_serializing_if = "RoutedConnections::is_plain")]
    pub routed: RoutedConnections,
    /// Observations on the server's host; absent without an observer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The contribution of each agent; absent where one process made the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentMeasured>,
    /// Number of slices that it consists of, if more than one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slices: u32,
    /// Its place as a slice of an experiment in rounds.
    #[serde(skip)]
    pub slice: Option<Slice>,
    /// The most by which the agents' begins were apart, in nanoseconds. It contains how late each
    /// was by its own clock, and that clock's uncertainty. Absent where one process made the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_skew_ns_max: Option<u64>,
}

/// The part that only a trial of datagrams has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpDetail {
    /// The ledger of datagrams.
    pub ledger: LedgerReport,
    /// Further figures of the datagrams.
    pub datagrams: DatagramReport,
}

/// The part that only a scenario of `knee latency` has. Its operations are pings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyDetail {
    /// Connections opened: one for each flow, and the pinger's.
    pub connections_opened: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// The flows and their throughput.
    pub flows: FlowsReport,
}

impl From<HttpDetail> for Detail {
    fn from(detail: HttpDetail) -> Detail {
        Detail::Http(Box::new(detail))
    }
}

impl From<UdpDetail> for Detail {
    fn from(detail: UdpDetail) -> Detail {
        Detail::Udp(Box::new(detail))
    }
}

impl From<LatencyDetail> for Detail {
    fn from(detail: LatencyDetail) -> Detail {
        Detail::Latency(Box::new(detail))
    }
}

/// Access for tests to the parts of a trial that they made.
#[cfg(test)]
impl super::report::TrialReport {
    pub(crate) fn as_http(&self) -> &HttpDetail {
        self.http().expect("a trial of HTTP")
    }

    pub(crate) fn as_http_mut(&mut self) -> &mut HttpDetail {
        match &mut self.detail {
            Detail::Http(http) => http,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn as_udp_mut(&mut self) -> &mut UdpDetail {
        match &mut self.detail {
            Detail::Udp(udp) => udp,
            other => panic!("{other:?}"),
        }
    }
}

/// Where each datagram went: `intended` = `not_attempted` + `send_errors` + all of `lost` +
/// `received` + `discarded` + `unexplained`, always.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LedgerReport {
    /// Datagrams that should have been sent.
    pub intended: u64,
    /// Datagrams that the sender did not attempt.
    pub not_attempted: u64,
    /// Datagrams that the kernel refused.
    pub send_errors: u64,
    /// Datagrams lost on the way, by place; places without losses are left out.
    pub lost: BTreeMap<String, u64>,
    /// Distinct datagrams that the service received.
    pub received: u64,
    /// Datagrams that reached the service but were not counted.
    pub discarded: u64,
    /// The rest. Negative where more came than can have been sent.
    pub unexplained: i64,
    /// The evidence of each loss.
    #[serde(default)]
    pub evidence: Vec<LossEvidence>,
}

impl LedgerReport {
    /// Datagrams that the kernel took.
    pub fn sent(&self) -> u64 {
        self.attempted().saturating_sub(self.send_errors)
    }

    /// Datagrams that the kernel took or refused.
    pub fn attempted(&self) -> u64 {
        self.intended.saturating_sub(self.not_attempted)
    }

    /// Attempted datagrams that were not received, in percent.
    pub fn loss_percent(&self) -> f64 {
        let missing = self.attempted().saturating_sub(self.received);
        100.0 * missing as f64 / self.attempted().max(1) as f64
    }
}

/// The evidence that datagrams were lost at a place.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossEvidence {
    /// Name of the place.
    pub place: String,
    /// The value of the counter.
    pub counted: u64,
    /// Number of missing datagrams that are attributed to it.
    pub attributed: u64,
    /// The counter.
    pub source: String,
    /// Whether it counts for the whole host and not for our socket alone.
    pub host_wide: bool,
    /// Whether nobody counted them and they are put there as no other place is left.
    #[serde(default)]
    pub inferred: bool,
}

/// Figures of a trial of datagrams beside its ledger.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramReport {
    /// Datagrams per second that the kernel took.
    pub sent_per_s: f64,
    /// Datagrams received per second.
    pub received_per_s: f64,
    /// Datagrams sent, or refused by the kernel, but not received, per second.
    pub dropped_per_s: f64,
    /// The same in percent of those sent or refused.
    pub loss_percent: f64,
    /// The loss, in percent, that the times of sending have through a receive buffer of this room
    /// and a server of this fixed work. It is a simulation of G/D/1/K with Linux's rule of giving
    /// room back. Times are simulated where those of a Poisson schedule were not all kept. Absent
    /// where work or room are not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub theory_loss_percent: Option<f64>,
    /// Datagrams that came again.
    pub duplicates: u64,
    /// Datagrams that came out of order.
    pub reordered: u64,
    /// Send errors by name.
    #[serde(default)]
    pub send_errors: BTreeMap<String, u64>,
    /// Discards by reason.
    #[serde(default)]
    pub discarded: BTreeMap<String, u64>,
    /// Times that a sender had to wait for room in its send buffer.
    pub blocked: u64,
    /// Arrival − send.
    pub one_way_delay_ns: QuantilesReport,
    /// How well the clocks of both hosts are known to agree; 0 on one host.
    pub clock_uncertainty_ns: u64,
    /// Index of dispersion of the counts of *arrivals*.
    pub arrival_dispersion: Dispersion,
    /// Dispersion at more time scales, for the plot.
    #[serde(default)]
    pub dispersion_by_scale: Vec<DispersionAt>,
    /// Coefficient of variation of the gaps between arrivals.
    pub arrival_gap_cv: Option<f64>,
    /// The most arrivals in any millisecond.
    pub burst_max: u64,
    /// Milliseconds by their number of arrivals (the index), for the plot.
    #[serde(default)]
    pub arrivals_per_ms: Vec<u64>,
    /// The service's receive buffer in bytes.
    pub rcvbuf_bytes: u64,
    /// Number of these datagrams that it holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_datagrams: Option<u64>,
    /// The work that a full buffer holds: its datagrams times the mean work of each, where both
    /// are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer_work_ns: Option<u64>,
    /// The service's mean work per datagram, where it does any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_work_ns: Option<u64>,
    /// Why the service could not tell what it received, in words; absent where it could.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_lost: Option<String>,
    /// What on the service's host may count drops but could not be read, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_read: Vec<String>,
    /// The longest time in which the service neither received nor waited.
    pub service_pause_ns_max: u64,
    /// Times that the service was preempted.
    pub service_preempted: u64,
    /// Times that it was given a processor; 0: not known.
    #[serde(default)]
    pub service_scheduled: u64,
    /// Share of the time in which the service was ready but others had its processor, in percent.
    pub service_waiting_percent: f64,
    /// Share of a core that the service used, in percent.
    pub service_cpu_percent: f64,
    /// Least and most datagrams received of any one client.
    pub by_client: [u64; 2],
}

impl DatagramReport {
    /// Datagrams per second that the kernel took or refused.
    pub fn attempted_per_s(&self) -> f64 {
        self.received_per_s + self.dropped_per_s
    }
}

/// Dispersion of arrivals at one time scale.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DispersionAt {
    /// Length of the bins.
    pub scale_ns: u64,
    /// Variance over mean of the counts per bin.
    pub index: f64,
}

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
    /// Whether its flows show anything of the path: data came, or a flow was lost. One that ended
    /// before either, as the user ended it, shows nothing.
    pub fn has_begun(&self) -> bool {
        let shows = |f: &FlowReport| f.lost_at_ns.is_some() || f.bytes.iter().any(|n| *n > 0);
        !self.is_aborted() || self.flows.iter().any(shows)
    }

    /// Whether something ended the scenario before its time; `reason` says what.
    pub fn is_aborted(&self) -> bool {
        self.state == "aborted"
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
