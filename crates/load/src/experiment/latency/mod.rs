//! Latency under load: what is asked of flows and of the probes beside them, what was measured of
//! both, and when flows have settled.

pub mod settling;

use crate::measure::{Direction, GeneratorUse, Histogram};
use crate::spec::{EngineOptions, Level, ParseError};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// All that the engine needs to run one scenario of flows, and all that is needed to repeat it.
///
/// Without a flow in either direction it is the idle path that the probes look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencyTrialSpec {
    /// A name for people, such as `1 up, 31 down`, or `idle`.
    pub label: String,
    /// What this trial varies: always [`Level::Flows`] of `up` and `down`.
    pub level: Level,
    /// The service, such as `127.0.0.1:7008`: control, pinger, flows and UDP probes on one port.
    pub service: String,
    /// The secret that the service asks for; empty where it asks for none.
    pub token: String,
    /// Flows from here to the service.
    pub up: u32,
    /// Flows from the service to here.
    pub down: u32,
    /// When it is over.
    pub end: ScenarioEnd,
    /// Payload bytes of all flows together at which the scenario is aborted; `None`: no cap.
    pub bytes_max: Option<u64>,
    /// How the flows' sockets are set up, on both ends.
    pub sockets: FlowSockets,
    /// The probes beside the flows.
    pub probes: ProbeSpec,
    /// Length of the intervals of the time series.
    pub interval: Nanos,
    /// Seeds every random choice.
    pub seed: u64,
    /// How the generator itself works; `workers` is the number of threads that carry the flows.
    pub engine: EngineOptions,
}

impl LatencyTrialSpec {
    /// Flows in both directions together.
    pub fn flows(&self) -> u32 {
        self.up + self.down
    }
}

/// When a scenario is over.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScenarioEnd {
    /// After this time.
    After(Nanos),
    /// Once it has settled, by force after `limit`.
    Settled {
        /// When it counts as settled.
        settle: Settle,
        /// By then it is ended in any case.
        limit: Nanos,
    },
}

/// When a scenario counts as settled; the rule is that of
/// [`Settling`](settling::Settling).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settle {
    /// The share by which a flow's mean goodput may still move, such as 0.05.
    pub tolerance: f64,
    /// Length of a window.
    pub window: Nanos,
    /// Windows over which goodput is compared, at least 1.
    pub windows: u32,
}

impl Default for Settle {
    /// Long enough to see a queue fill, short enough that all scenarios of a fast path take a few
    /// minutes.
    fn default() -> Settle {
        Settle { tolerance: 0.05, window: Nanos::from_millis(250), windows: 6 }
    }
}

/// How the flows' sockets are set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSockets {
    /// Congestion control of the senders, on both ends, such as `cubic` (tcp(7),
    /// TCP_CONGESTION); `None`: each host's default.
    pub congestion_control: Option<String>,
    /// The differentiated services code point of flows and probes, 0 to 63 (RFC 2474); `None`: the
    /// default, 0.
    pub dscp: Option<u8>,
    /// Whether senders ask for explicit congestion notification (RFC 3168); `None`: as each host
    /// is set up.
    pub ecn: Option<bool>,
}

/// The probes beside the flows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeSpec {
    /// One ping so often over TCP (TCP_NODELAY), and one over UDP.
    pub every: Nanos,
    /// Whether UDP probes are sent beside the TCP pinger.
    pub udp: bool,
    /// Time after which a UDP probe is lost. A TCP ping is waited for until the scenario's end, and
    /// for this time at least.
    pub timeout: Nanos,
}

/// The 19 scenarios in their order: uploads and downloads of each.
pub const SCENARIOS: [(u32, u32); 19] = [
    (0, 1),
    (1, 0),
    (0, 2),
    (1, 1),
    (2, 0),
    (0, 3),
    (1, 2),
    (2, 1),
    (3, 0),
    (0, 4),
    (1, 3),
    (2, 2),
    (3, 1),
    (4, 0),
    (0, 32),
    (1, 31),
    (16, 16),
    (31, 1),
    (32, 0),
];

/// The five that tell the most, in the same order:
///
/// - 0/1 and 1/0: one flow alone, in each direction, shows what a single queue adds, and whether
///   one flow can fill the path at all.
/// - 1/1: acknowledgements of each direction queue behind the data of the other, the usual case
///   of an upload that spoils a download.
/// - 1/31: one flow against many, where unfairness and starved flows show.
/// - 16/16: everything at once, which drives queues to their limits in both directions.
pub const QUICK: [(u32, u32); 5] = [(0, 1), (1, 0), (1, 1), (1, 31), (16, 16)];

/// Maximum flows of a scenario, both directions together.
pub const FLOWS_MAX: u32 = 256;
/// Maximum scenarios of an experiment.
pub const SCENARIOS_MAX: usize = 100;

/// Reads `1/1,4/4`: uploads and downloads of each scenario.
///
/// # Errors
/// Not of that form, a scenario without a flow or with more than [`FLOWS_MAX`], or more than
/// [`SCENARIOS_MAX`] of them.
pub fn parse_scenarios(text: &str) -> Result<Vec<(u32, u32)>, ParseError> {
    match text.split(',').count() {
        0..=SCENARIOS_MAX => text.split(',').map(scenario).collect(),
        n => Err(ParseError(format!("{n} scenarios are too many: give at most {SCENARIOS_MAX}"))),
    }
}

fn scenario(text: &str) -> Result<(u32, u32), ParseError> {
    let shown: String = text.chars().filter(|c| !c.is_control()).take(40).collect();
    let error = |what: &str| {
        ParseError(format!(
            "`{}` {what}: give uploads/downloads, such as 1/1 or 0/32",
            shown.trim()
        ))
    };
    let count = |text: &str| {
        let digits = text.trim();
        let is_plain = !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit());
        // More digits than a u32 has are too many flows, not a number that cannot be read.
        is_plain.then(|| digits.parse::<u32>().unwrap_or(u32::MAX))
    };
    let flows = text.split_once('/').and_then(|(up, down)| Some((count(up)?, count(down)?)));
    match flows.ok_or_else(|| error("is not a scenario"))? {
        (0, 0) => Err(error("has no flow")),
        (up, down) if up.saturating_add(down) > FLOWS_MAX => {
            Err(error(&format!("has more than {FLOWS_MAX} flows")))
        }
        flows => Ok(flows),
    }
}

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
    /// sent − intended: the generator's own lateness.
    pub pacing_error: Histogram,
    /// Those that were due and not sent, as this host still held earlier ones.
    pub held_back: u64,
    /// The longest time by which the generator came late to a due time. Due times that it missed
    /// meanwhile are skipped, so it can be longer than any pacing error.
    #[serde(default)]
    pub stall_max: Nanos,
}

impl ProbesMeasured {
    /// The longest stall of the generator.
    pub fn stall(&self) -> Nanos {
        self.stall_max.max(self.pacing_error.max())
    }
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

#[cfg(test)]
mod scenarios_tests {
    use super::*;

    #[test]
    fn the_19_scenarios_are_those_of_2011() {
        let text = "0/1,1/0,0/2,1/1,2/0,0/3,1/2,2/1,3/0,0/4,1/3,2/2,3/1,4/0,0/32,1/31,16/16,31/1,\
                    32/0";
        assert_eq!(parse_scenarios(text), Ok(SCENARIOS.to_vec()));
        let uploads = SCENARIOS.iter().filter(|(up, _)| *up > 0).count();
        assert_eq!(uploads, 14, "as many as there are published figures");
        let in_order = SCENARIOS.iter().filter(|s| QUICK.contains(s));
        assert!(in_order.eq(QUICK.iter()));
    }

    #[test]
    fn errors_say_what_would_be_right() {
        let many = vec!["1/1"; 101].join(",");
        for (text, wrong) in [
            ("", "`` is not a scenario: give uploads/downloads, such as 1/1 or 0/32"),
            ("1/1,,2/2", "`` is not a scenario"),
            ("4", "`4` is not a scenario"),
            ("1/-1", "`1/-1` is not a scenario"),
            ("1/1/1", "`1/1/1` is not a scenario"),
            ("1/1, 0/0", "`0/0` has no flow"),
            ("200/57", "`200/57` has more than 256 flows"),
            ("99999999999/1", "has more than 256 flows"),
            (&many, "101 scenarios are too many: give at most 100"),
        ] {
            let error = parse_scenarios(text).expect_err(text).to_string();
            assert!(error.contains(wrong), "{error}");
        }
        assert_eq!(parse_scenarios(" 4/4 , 128/128 "), Ok(vec![(4, 4), (128, 128)]));
    }
}
