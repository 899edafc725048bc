//! What is asked of flows and of the probes beside them.

use crate::spec::{EngineOptions, Level};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

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
    /// Once all flows together have carried so many payload bytes, the scenario is aborted; `None`:
    /// no cap.
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
    /// After just so long.
    After(Nanos),
    /// Once it has settled, by force after `limit`.
    Settled {
        /// What it is to have settled.
        settle: Settle,
        /// By then it is ended in any case.
        limit: Nanos,
    },
}

/// What it is for a scenario to have settled; the rule is that of
/// [`Settling`](super::settling::Settling).
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
        Settle {
            tolerance: 0.05,
            window: Nanos::from_millis(250),
            windows: 6,
        }
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
    /// A UDP probe that has not come back for so long is lost; a TCP ping is waited for until the
    /// scenario's end, at least for so long.
    pub timeout: Nanos,
}
