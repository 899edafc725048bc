//! What client and observer say to each other: a JSON object per line, over TCP.
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
//! `arm`, `begin` and `finish` may follow each other again and again. From `arm` on, what comes is
//! kept, so that a `begin` that is late on its way costs nothing; said several times, it tells how
//! the two clocks differ. `follow` and `seen` stand around the load whose connections are to be
//! told of. What is refused is answered with `refused{reason}`, and the connection ends.

pub use crate::control::Hello;
use knee_core::both_ends::ObservedStreams;
use knee_core::measure::{Observed, SynSource};
use serde::{Deserialize, Serialize};

/// The command that starts an observer.
pub const SERVICE: &str = "observe";

/// The longest line that a client may send, in bytes.
pub const ASK_MAX: usize = 4096;

/// The longest line that an observer may send: a million intervals fit.
pub const SAY_MAX: usize = 32 << 20;

/// A window begins at most so far from now.
pub const BEGIN_WITHIN_NS: u64 = 3_600 * 1_000_000_000;

/// The longest window: 30 days.
pub const DURATION_MAX_NS: u64 = 30 * 24 * 3_600 * 1_000_000_000;

/// What a client says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case")]
pub enum Ask {
    /// First of all.
    Hello(Hello),
    /// Keep what comes from now on, for a window to be told; and say what time it is there.
    Arm,
    /// Watch a window, instead of one that was begun.
    Begin {
        /// It begins at this moment of the observer's clock, at most an hour away.
        at_ns: u64,
        /// The length of its intervals; 0: it is one.
        interval_ns: u64,
        /// It lasts so long, at most 30 days.
        duration_ns: u64,
    },
    /// End the watch and tell what was seen.
    Finish,
    /// From now on follow new connections, one of so many by the client's port.
    Follow {
        /// Rounded up to a power of two.
        one_of: u16,
    },
    /// End following and tell what was seen of them.
    Seen,
}

/// What an observer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ObserverFacts {
    /// It watches this port,
    pub port: u16,
    /// and counts its SYNs with this.
    pub source: SynSource,
}

/// What an observer says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum Say {
    /// It will not do what was asked; the connection ends.
    Refused {
        /// Why, in one line.
        reason: String,
    },
    /// To an arm.
    Armed {
        /// The observer's CLOCK_MONOTONIC, in nanoseconds.
        clock_ns: u64,
    },
    /// To a begin.
    Begun,
    /// To a finish.
    Observed(Box<Observed>),
    /// To a follow.
    Following,
    /// To a question for what was seen.
    Seen(Box<ObservedStreams>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_reads_back() {
        let begin = Ask::Begin {
            at_ns: u64::MAX,
            interval_ns: 1,
            duration_ns: 6,
        };
        let hello = Ask::Hello(Hello::new(SERVICE, "secret"));
        let follow = Ask::Follow { one_of: 16 };
        for ask in [hello, Ask::Arm, begin, Ask::Finish, follow, Ask::Seen] {
            let line = serde_json::to_vec(&ask).unwrap();
            assert_eq!(serde_json::from_slice::<Ask>(&line).unwrap(), ask);
        }
        let armed = Say::Armed { clock_ns: 7 };
        let observed = Say::Observed(Box::default());
        let seen = Say::Seen(Box::default());
        for say in [armed, Say::Begun, observed, Say::Following, seen] {
            let line = serde_json::to_vec(&say).unwrap();
            assert_eq!(serde_json::from_slice::<Say>(&line).unwrap(), say);
        }
    }
}
