//! Messages of client and observer: a JSON object per line, over TCP.
//!
//! ```text
//! client                     observer
//! hello{version, …}      →   welcome{port, source} | refused{reason} | busy
//! arm                    →   armed{clock_ns}
//! begin{at_ns, …}        →   begun
//! finish                 →   observed{…}
//! follow{one_of}         →   following
//! seen                   →   seen{…}
//! ```
//!
//! `arm`, `begin` and `finish` may be repeated in this order. From `arm` on SYNs are kept, so that
//! a late `begin` misses none. Repeated `arm` requests measure the difference of the clocks.
//! `follow` and `seen` enclose the load whose connections are followed. A refusal is answered with
//! `refused{reason}`, and the connection ends.

pub use crate::control::Hello;
use knee_load::both_ends::ObservedStreams;
use knee_load::measure::{Observed, SynSource};
use serde::{Deserialize, Serialize};

/// The command that starts an observer.
pub const SERVICE: &str = "observe";

/// The longest line that a client may send, in bytes.
pub const ASK_MAX: usize = 4096;

/// The longest line that an observer may send: a million intervals fit.
pub const SAY_MAX: usize = 32 << 20;

/// Largest distance of a window's begin from now, in nanoseconds.
pub const BEGIN_WITHIN_NS: u64 = 3_600 * 1_000_000_000;

/// Longest window: 30 days, in nanoseconds.
pub const DURATION_MAX_NS: u64 = 30 * 24 * 3_600 * 1_000_000_000;

/// Requests of a client.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum ObserverRequest {
    /// First message.
    Hello(Hello),
    /// Keep what comes from now on, for a window to follow, and return the observer's time.
    Arm,
    /// Watch a window, instead of one that was begun.
    Begin {
        /// Begin, on the observer's clock, at most an hour away.
        at_ns: u64,
        /// Length of the intervals; 0: one interval.
        interval_ns: u64,
        /// Length of the window, at most 30 days.
        duration_ns: u64,
    },
    /// End the watch and return what was seen.
    Finish,
    /// Follow new connections from now on, one of `one_of` by the client's port.
    Follow {
        /// Rounded up to a power of two.
        one_of: u16,
    },
    /// End following and return what was seen.
    Seen,
}

/// Properties of an observer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserverFacts {
    /// Port that it watches.
    pub port: u16,
    /// What it counts SYNs with.
    pub source: SynSource,
}

/// Messages of an observer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum ObserverReply {
    /// The request is refused; the connection ends.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// Answer to arm.
    Armed {
        /// The observer's CLOCK_MONOTONIC, in nanoseconds.
        clock_ns: u64,
    },
    /// Answer to begin.
    Begun,
    /// Answer to finish.
    Observed(Box<Observed>),
    /// Answer to follow.
    Following,
    /// Answer to seen.
    Seen(Box<ObservedStreams>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_reads_back() {
        let begin = ObserverRequest::Begin { at_ns: u64::MAX, interval_ns: 1, duration_ns: 6 };
        let hello = ObserverRequest::Hello(Hello::new(SERVICE, "secret"));
        let follow = ObserverRequest::Follow { one_of: 16 };
        for ask in [
            hello,
            ObserverRequest::Arm,
            begin,
            ObserverRequest::Finish,
            follow,
            ObserverRequest::Seen,
        ] {
            let line = serde_json::to_vec(&ask).unwrap();
            assert_eq!(serde_json::from_slice::<ObserverRequest>(&line).unwrap(), ask);
        }
        let armed = ObserverReply::Armed { clock_ns: 7 };
        let observed = ObserverReply::Observed(Box::default());
        let seen = ObserverReply::Seen(Box::default());
        for say in [armed, ObserverReply::Begun, observed, ObserverReply::Following, seen] {
            let line = serde_json::to_vec(&say).unwrap();
            assert_eq!(serde_json::from_slice::<ObserverReply>(&line).unwrap(), say);
        }
    }
}
