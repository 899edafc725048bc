//! What a trial has beyond any other, by its kind.

use crate::measure::{AgentMeasured, Observed};
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::trial::flows::FlowsReport;
use crate::trial::protocol::ProtocolReport;
use crate::trial::report::{LittlesLaw, SilenceReport, TrafficReport};
use crate::trial::sessions::SessionsReport;
use crate::trial::slice::Slice;
use crate::trial::timing::TimingReport;
use serde::{Deserialize, Serialize};

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

/// What a trial of HTTP has beyond any other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpDetail {
    /// The initial transient that MSER-5 cut from the throughput, within the window.
    pub transient_ns: u64,
    /// When the target did not answer.
    #[serde(default, skip_serializing_if = "SilenceReport::is_none")]
    pub silence: SilenceReport,
    /// Little's law; closed loop only.
    pub littles_law: Option<LittlesLaw>,
    /// What was wrong with the first malformed response, in words; absent where none was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed_because: Option<String>,
    /// How the target said, the first time, that it ended streams of HTTP/2: `RST_STREAM with
    /// INTERNAL_ERROR`; absent where it ended none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_reset_because: Option<String>,
    /// What the response times are made of, and whose delay that is.
    #[serde(flatten)]
    pub timing: TimingReport,
    /// What went over the connections, in both directions, and to which target.
    #[serde(flatten)]
    pub traffic: TrafficReport,
    /// What was spoken over them; absent where that is HTTP/1.1 in cleartext.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<ProtocolReport>,
    /// What users came to, where operations are steps of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<SessionsReport>,
    /// Connections opened.
    pub connections_opened: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// What was seen on the server's host; absent where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// What each agent contributed; absent where one process made the trial.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentMeasured>,
    /// How many slices it is made of, where that is more than one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub slices: u32,
    /// What it is as a slice of an experiment in rounds.
    #[serde(skip)]
    pub slice: Option<Slice>,
    /// How far apart the agents began at the most, in nanoseconds: how late each was by its own
    /// clock, and how exactly that is known; absent where one process made the trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_skew_ns_max: Option<u64>,
}

fn is_zero(n: &u32) -> bool {
    *n == 0
}

/// What a trial of datagrams has beyond any other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpDetail {
    /// Where each datagram went.
    pub ledger: LedgerReport,
    /// What else is known of the datagrams.
    pub datagrams: DatagramReport,
}

/// What a scenario of `knee latency` has beyond any other trial. Its operations are pings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyDetail {
    /// Connections opened: one for each flow, and the pinger's.
    pub connections_opened: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// What the flows carried.
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

/// What a test looks at, or changes, of a trial that it made itself.
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
