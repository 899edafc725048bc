//! What client and service say to each other: a JSON object per line, over TCP.
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

use super::side::{ReceivedSide, SentSide};
pub use crate::control::{Greeting, Hello, Lines, TooLong, line};
use knee_core::experiment::latency::spec::FlowSockets;
use knee_core::measure::Direction;
use knee_core::time::Nanos;
use serde::{Deserialize, Serialize};

/// The command that starts the service.
pub const SERVICE: &str = "serve latency";

/// The longest line that either side reads, but for a record.
pub const LINE_MAX: usize = 64 << 10;

/// The longest record that a client reads, in bytes.
pub const RECORD_MAX: usize = 256 << 20;

/// The most flows of a session.
pub const FLOWS_MAX: u32 = 1_024;

/// The most intervals that a session may be cut into.
const INTERVALS_MAX: u64 = 1 << 20;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// First of all on a control connection.
    Hello(Hello),
    /// First of all, and alone, on a connection that is to be a flow.
    Join {
        /// Of the session.
        session: u64,
        /// Which way it goes, as the client sees it.
        direction: Direction,
        /// Which of that direction's flows, from 0.
        number: u32,
    },
    /// Asks for a pong at once.
    Ping {
        /// Comes back.
        n: u64,
    },
    /// Prepares a session.
    Begin(Begin),
    /// Flows begin.
    Start {
        /// When, in nanoseconds of the service's CLOCK_MONOTONIC.
        origin_ns: u64,
        /// When they end at the latest, likewise.
        end_ns: u64,
    },
    /// Flows end.
    End {
        /// When, in nanoseconds of the service's CLOCK_MONOTONIC; at once where that has passed.
        at_ns: u64,
    },
}

/// What a session is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Begin {
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
    /// No more bytes than so many are wanted.
    pub bytes_max: Option<u64>,
}

impl Begin {
    /// Whether a service can serve it whose sessions take up to `session_max`.
    ///
    /// # Errors
    /// What cannot be, in one line with what would be right.
    pub fn check(&self, session_max: Nanos) -> Result<(), String> {
        let flows = u64::from(self.up) + u64::from(self.down);
        if flows > u64::from(FLOWS_MAX) {
            return Err(format!("{flows} flows: give up to {FLOWS_MAX}"));
        }
        if self.limit > session_max {
            let limit = self.limit;
            return Err(format!(
                "a session of up to {limit}: this service permits {session_max}"
            ));
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

/// What a service says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Say {
    /// It will not do what was asked; the connection ends.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// What a ping asked for.
    Pong {
        /// The ping's.
        n: u64,
        /// When the ping was read, in nanoseconds of the service's CLOCK_MONOTONIC.
        reached_ns: u64,
        /// When this was written.
        left_ns: u64,
    },
    /// Flows may join.
    Ready,
    /// All flows are there.
    Joined,
    /// Flows begin as was said.
    Started,
    /// What each upload has carried.
    Progress {
        /// By then, since the beginning.
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
    Record(Box<Record>),
}

/// What the service saw of a session.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Of each upload, in their order.
    pub up: Vec<ReceivedSide>,
    /// Of each download.
    pub down: Vec<SentSide>,
    /// Processor time of the threads that carried the flows and answered the probes.
    pub cpu: Nanos,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_refused_in_one_line() {
        let hour = Nanos::from_secs(3_600);
        let good = Begin {
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
        let sockets = FlowSockets {
            dscp: Some(64),
            ..FlowSockets::default()
        };
        let with = |change: &dyn Fn(&mut Begin)| {
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
