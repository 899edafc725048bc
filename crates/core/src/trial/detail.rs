//! The part of a trial's report that depends on its kind.

use crate::trial::attempts::AttemptsReport;
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::trial::flows::FlowsReport;
use crate::trial::messages::MessagesReport;
use crate::trial::protocol::ProtocolReport;
use crate::trial::report::{LittlesLaw, SilenceReport, TrafficReport};
use crate::trial::sessions::SessionsReport;
use crate::trial::slice::Slice;
use crate::trial::timing::TimingReport;
use knee_load::measure::{AgentMeasured, Observed};
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

/// The part that only a trial of HTTP has.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HttpDetail {
    /// The initial transient that MSER-5 cut from the throughput, within the window.
    pub transient_ns: u64,
    /// Silences of the target.
    #[serde(default, skip_serializing_if = "SilenceReport::is_none")]
    pub silence: SilenceReport,
    /// Little's law; closed loop only.
    pub littles_law: Option<LittlesLaw>,
    /// The fault of the first malformed response, in words; absent without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub malformed_because: Option<String>,
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

fn is_zero(n: &u32) -> bool {
    *n == 0
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
