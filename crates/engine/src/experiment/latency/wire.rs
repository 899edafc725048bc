//! Messages of client and service: a JSON object per line, over TCP.
//!
//! ```text
//! client                       service
//! hello{version, …}        →   welcome{…} | refused{reason} | busy
//! ping{n} …                →   pong{n, reached_ns, left_ns} …         at any time
//! begin{session, …}        →   ready | refused{reason}
//! join{session, …}             first on each flow's own connection, which then carries its payload
//!                          →   joined                     once all flows are there
//! start{origin_ns, …}      →   started
//!                          →   progress{at, bytes} …      what uploads have carried
//! end{at_ns}               →   record{…}
//! ```
//!
//! After the record the client may begin again. The end of the control connection ends the session.

use knee_load::experiment::latency::{FlowLost, FlowSockets, TcpSample};
use knee_load::measure::{Direction, Histogram};
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};

pub use crate::control::{Hello, HelloReply, Lines, TooLong, line};

/// The command that starts the service.
pub const SERVICE: &str = "serve latency";

/// The longest line that either side reads, but for a record.
pub const LINE_MAX: usize = 64 << 10;

/// The longest record that a client reads, in bytes.
pub const RECORD_MAX: usize = 256 << 20;

/// Most flows of a session.
pub const FLOWS_MAX: u32 = 1_024;

/// The most intervals that a session may be cut into.
const INTERVALS_MAX: u64 = 1 << 20;

/// Requests of a client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum LatencyRequest {
    /// First message on a control connection.
    Hello(Hello),
    /// First and only message on a connection that is to be a flow.
    Join {
        /// Number of the session.
        session: u64,
        /// Direction, as the client sees it.
        direction: Direction,
        /// Number of the flow in that direction, from 0.
        number: u32,
    },
    /// Asks for a pong.
    Ping {
        /// Number that the pong repeats.
        n: u64,
    },
    /// Prepares a session.
    Begin(LatencySessionSpec),
    /// Flows begin.
    Start {
        /// Time in nanoseconds of the service's CLOCK_MONOTONIC.
        origin_ns: u64,
        /// Latest end, likewise.
        end_ns: u64,
    },
    /// Flows end.
    End {
        /// Time in nanoseconds of the service's CLOCK_MONOTONIC; at once where that has passed.
        at_ns: u64,
    },
}

/// Parameters of a session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LatencySessionSpec {
    /// A number that the client drew at random.
    pub session: u64,
    /// Flows from the client to the service.
    pub up: u32,
    /// Flows from the service to the client.
    pub down: u32,
    /// How the flows' sockets are set up.
    pub sockets: FlowSockets,
    /// Length of the intervals of the time series.
    pub interval: Nanos,
    /// Length of the windows in which it is judged whether flows have settled; zero: none is.
    pub window: Nanos,
    /// The longest time that the session may take.
    pub limit: Nanos,
    /// Bytes after which the client ends the session.
    pub bytes_max: Option<u64>,
}

impl LatencySessionSpec {
    /// Checks whether a service whose sessions take up to `session_max` can serve it.
    ///
    /// # Errors
    /// What is invalid, in one line with what would be valid.
    pub fn check(&self, session_max: Nanos) -> Result<(), String> {
        let flows = u64::from(self.up) + u64::from(self.down);
        if flows > u64::from(FLOWS_MAX) {
            return Err(format!("{flows} flows: give up to {FLOWS_MAX}"));
        }
        if self.limit > session_max {
            let limit = self.limit;
            return Err(format!("a session of up to {limit}: this service permits {session_max}"));
        }
        for (what, length) in [("intervals", self.interval), ("windows", self.window)] {
            let is_none = what == "windows" && length == Nanos::ZERO;
            if !is_none && self.limit.0.div_ceil(length.0.max(1)) > INTERVALS_MAX {
                return Err(format!("{} cut into {what} of {length}", self.limit));
            }
        }
        if self.sockets.dscp.is_some_and(|dscp| dscp > 63) {
            return Err("a code point above 63".to_owned());
        }
        Ok(())
    }
}

/// Messages of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum LatencyReply {
    /// The request is refused; the connection ends.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// Answer to a ping.
    Pong {
        /// Number of the ping.
        n: u64,
        /// Time at which the ping was read, in nanoseconds of the service's CLOCK_MONOTONIC.
        reached_ns: u64,
        /// Time at which the pong was written.
        left_ns: u64,
    },
    /// Flows may join.
    Ready,
    /// All flows are there.
    Joined,
    /// Flows begin as requested.
    Started,
    /// Bytes of each upload so far.
    Progress {
        /// Time since the beginning.
        at: Nanos,
        /// Payload bytes since the beginning.
        bytes: Vec<u64>,
    },
    /// The service ended the flows itself; the record is still to be asked for.
    Over {
        /// Why, in words.
        reason: String,
    },
    /// The session has ended.
    Record(Box<LatencyServiceRecord>),
}

/// What the service measured in a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyServiceRecord {
    /// The uploads, in order.
    pub up: Vec<ReceivedSide>,
    /// The downloads, in order.
    pub down: Vec<SentSide>,
    /// Processor time of the threads that carried the flows and answered the probes.
    pub cpu: Nanos,
}

/// What the sender of a flow measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SentSide {
    /// End of the flow.
    pub ended: Nanos,
    /// Bytes that its socket took.
    pub accepted_bytes: u64,
    /// States of TCP, about one per interval.
    pub samples: Vec<TcpSample>,
    /// Congestion control in use.
    pub congestion_control: String,
    /// Both ends agreed on explicit congestion notification.
    pub ecn: bool,
    /// Loss of the flow before its end.
    pub lost: Option<FlowLost>,
}

/// What the receiver of a flow measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceivedSide {
    /// End of the flow.
    pub ended: Nanos,
    /// Payload bytes received.
    pub received_bytes: u64,
    /// Longest time without payload.
    pub gap_max: Nanos,
    /// Begin of that time.
    pub gap_at: Nanos,
    /// Payload bytes received in each interval, up to the last one with any.
    pub by_interval: Vec<u64>,
    /// Times from handing a record to the sender's socket to reading its head.
    pub inside: Histogram,
    /// Longest of them in each interval, up to the last interval with any.
    pub inside_max_by_interval: Vec<Nanos>,
    /// Loss of the flow before its end.
    pub lost: Option<FlowLost>,
}

impl ReceivedSide {
    /// Notes a time without payload.
    pub(super) fn note_gap(&mut self, from: Nanos, to: Nanos) {
        if to - from > self.gap_max {
            (self.gap_max, self.gap_at) = (to - from, from);
        }
    }
}

/// What one end of a flow measured.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum FlowSide {
    Sent(SentSide),
    Received(ReceivedSide),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let hour = Nanos::from_secs(3_600);
        let good = LatencySessionSpec {
            session: 1,
            up: 1,
            down: 31,
            sockets: FlowSockets::default(),
            interval: Nanos::from_millis(100),
            window: Nanos::ZERO,
            limit: Nanos::from_secs(600),
            bytes_max: None,
        };
        assert_eq!(good.check(hour), Ok(()));
        let sockets = FlowSockets { dscp: Some(64), ..FlowSockets::default() };
        let with = |change: &dyn Fn(&mut LatencySessionSpec)| {
            let mut begin = good.clone();
            change(&mut begin);
            begin
        };
        for bad in [
            with(&|b| (b.up, b.down) = (u32::MAX, u32::MAX)),
            with(&|b| b.limit = Nanos(hour.0 + 1)),
            with(&|b| b.interval = Nanos::ZERO),
            with(&|b| b.window = Nanos(1)),
            with(&|b| b.sockets = sockets.clone()),
        ] {
            let reason = bad.check(hour).unwrap_err();
            assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}");
        }
    }
}
