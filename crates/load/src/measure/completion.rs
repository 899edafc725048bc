//! An operation, before it starts and after it ended, and the stages of its response time.
//!
//! To add a stage: a variant, its row and its time here, where it is set in `pool` of the crate
//! `knee-engine`, and its title in `document/timing.rs` of `knee-render`.
//!
//! The stages are pacing, the script, waiting for a connection, connecting, the TLS handshake,
//! waiting for a stream, writing, waiting for the receive window, for the first byte, streaming
//! (to the last message) and receiving. Waits for a connection or stream are told apart by whose
//! limit was reached, the configured one or the target's. With an observer, the time from the
//! request to the last byte is split: its owners are the server's host and the network.

use super::Outcome;
use crate::time::Nanos;
use serde::de::{DeserializeOwned, Error, IntoDeserializer};
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// One operation that has ended: its times, named separately so that none means two things, in the
/// order in which they come. One that does not apply is equal to the one before it; those that an
/// operation did not come to are equal to `completed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the schedule wanted it to start.
    pub intended: Nanos,
    /// When the generator began it; `started − intended` is the pacing error.
    pub started: Nanos,
    /// When the script that makes its request had made it.
    pub scripted: Nanos,
    /// When a connection was free for it: an open one, or room for a new one.
    pub placed: Nanos,
    /// When that connection was established.
    pub connected: Nanos,
    /// When that connection was secured.
    pub secured: Nanos,
    /// When a stream of the connection was free for it.
    pub granted: Nanos,
    /// Whether it was the target's limit that it waited for a stream for.
    pub is_targets_limit: bool,
    /// When its request was handed to the kernel.
    pub sent: Nanos,
    /// When the kernel had taken all of the request.
    pub written: Nanos,
    /// When the first byte of the response arrived.
    pub first_byte: Nanos,
    /// When the last message of its stream arrived; zero where none did.
    pub last_message: Nanos,
    /// When it ended: when the last byte arrived, by the kernel's receive timestamp where it gives
    /// one.
    pub completed: Nanos,
    /// When the generator saw that. Not part of the response time.
    pub picked_up: Nanos,
    /// Whether `completed` is the kernel's timestamp.
    pub by_kernel: bool,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes of the request, where it was sent whole.
    pub bytes_sent: u64,
    /// The status of the whole response; 0 where none came.
    pub status: u16,
    /// The number of its target.
    pub target: u32,
    /// How it ended.
    pub outcome: Outcome,
    /// The lane of its [`Op`].
    pub lane: u32,
    /// The number of the connection that carried it among those of its worker;
    /// [`Completion::NO_CONNECTION`] where none did.
    pub connection: u32,
    /// The number by which its messages were recorded; [`Completion::NO_STREAM`] where it is no
    /// stream of messages.
    pub stream: u32,
}

impl Completion {
    /// It is no stream of messages.
    pub const NO_STREAM: u32 = u32::MAX;

    /// No connection carried it.
    pub const NO_CONNECTION: u32 = u32::MAX;

    /// An operation with all its times but the intended one at `now`, as it was never sent: shed,
    /// refused, or what a caller fills in.
    #[inline]
    pub fn at_once(op: Op, now: Nanos, outcome: Outcome) -> Completion {
        Completion {
            intended: op.intended,
            started: now,
            scripted: now,
            placed: now,
            connected: now,
            secured: now,
            granted: now,
            is_targets_limit: false,
            sent: now,
            written: now,
            first_byte: now,
            last_message: Nanos::ZERO,
            completed: now,
            picked_up: now,
            by_kernel: false,
            bytes: 0,
            bytes_sent: 0,
            status: 0,
            target: 0,
            outcome,
            lane: op.lane,
            connection: Completion::NO_CONNECTION,
            stream: Completion::NO_STREAM,
        }
    }

    /// An operation that found an open connection at `sent` and sent its whole request then. Its
    /// first byte was its last. Simulated operations end so.
    #[inline]
    pub fn exchanged(self, started: Nanos, sent: Nanos) -> Completion {
        Completion {
            started,
            scripted: started,
            placed: sent,
            connected: sent,
            secured: sent,
            granted: sent,
            sent,
            written: sent,
            ..self
        }
    }

    /// The response time, from the intended time on: completed − intended.
    #[inline]
    pub fn response_time(&self) -> Nanos {
        self.completed - self.intended
    }

    /// The service time: completed − sent.
    #[inline]
    pub fn service_time(&self) -> Nanos {
        self.completed - self.sent
    }

    /// The generator's own lateness: started − intended.
    #[inline]
    pub fn pacing_error(&self) -> Nanos {
        self.started - self.intended
    }

    /// How long it waited for a connection, free or new: sent − started.
    #[inline]
    pub fn connection_wait(&self) -> Nanos {
        self.sent - self.started
    }

    /// The generator's delay in seeing that it had ended: picked up − completed.
    #[inline]
    pub fn pick_up(&self) -> Nanos {
        self.picked_up - self.completed
    }

    /// The generator's own delay: the sum of its stages.
    #[inline]
    pub fn own_delay(&self) -> Nanos {
        self.pacing_error() + (self.scripted - self.started) + (self.sent - self.granted)
    }

    /// What the response time is made of. Sums to it exactly: a time that seems to be before its
    /// predecessor, as it was read from another clock, counts as equal to it.
    #[inline]
    pub fn stages(&self) -> Stages {
        let [ours, targets] = if self.is_targets_limit {
            [self.secured, self.granted]
        } else {
            [self.granted, self.granted]
        };
        let ends: [Nanos; Stage::COUNT] = [
            self.started,
            self.scripted,
            self.placed,
            self.connected,
            self.secured,
            ours,
            targets,
            self.sent,
            self.written,
            self.first_byte,
            self.last_message,
            self.completed,
        ];
        let mut from = self.intended;
        let first_byte = Stage::FirstByte as usize;
        let begun = ends[..first_byte].iter().fold(Nanos::ZERO, |a, &b| a.max(b));
        if begun <= from && self.first_byte >= self.completed {
            // What nearly all operations of a closed loop over open connections are.
            let mut stages = Stages::default();
            stages[first_byte] = self.response_time();
            return stages;
        }
        ends.map(|end| {
            let end = end.min(self.completed).max(from);
            // Never less, so that nothing has to saturate.
            Nanos(end.0 - std::mem::replace(&mut from, end).0)
        })
    }
}

/// An operation that is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// When it should have started.
    pub intended: Nanos,
    /// Closed loop: the virtual user it belongs to, who owns connection number `lane`. Overload:
    /// the ticket of the connect. Open loop with retries: the place of its request. Otherwise
    /// [`Op::ANY_LANE`]. In an open loop any connection will do.
    pub lane: u32,
}

impl Op {
    /// The lane of an operation that any connection may carry.
    pub const ANY_LANE: u32 = u32::MAX;
}

/// A part of an operation's response time. The stages follow one another without a gap, so that
/// they sum to the response time exactly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From the intended time until the generator began the operation: its pacing error.
    Pacing,
    /// Until a script had made its request, where that begins an iteration.
    Script,
    /// Until a connection was free for it.
    ConnectionWait,
    /// Until its new connection was established.
    Connect,
    /// Until that connection was secured: its TLS handshake.
    Tls,
    /// Until a stream of a connection was free for it, where a configured limit was reached.
    StreamWait,
    /// Until a stream was free for it, where the target's limit was reached.
    TargetStreamWait,
    /// Until the generator handed the request to the kernel.
    Write,
    /// Until the kernel had taken all of the request: it waited for the target's receive window.
    WindowWait,
    /// Until the first byte of the response arrived.
    FirstByte,
    /// Until the last message of its stream arrived.
    Streaming,
    /// Until its last byte arrived.
    Receive,
}

/// Who causes a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Owner {
    /// The generator's own delay.
    Generator,
    /// A limit that the user configured, such as `-c`.
    Limit,
    /// The target, and the path to it where the two cannot be told apart.
    Target,
    /// The host of the server, where an observer there tells it from the network.
    ServerHost,
    /// The network, both ways, where an observer tells it from the server's host.
    Network,
}

/// Declares the table of stages: the variant, its owner, its key in reports and its name in
/// sentences, in the order of the variants.
macro_rules! stages {
    ($($stage:ident $owner:ident $key:literal $words:literal;)*) => {
        const ROWS: &[(Stage, Owner, &str, &str)] =
            &[$((Stage::$stage, Owner::$owner, $key, $words),)*];
    };
}

stages! {
    Pacing Generator "pacing" "the generator's late start";
    Script Generator "script" "the script that makes the request";
    ConnectionWait Limit "connection_wait" "waiting for a free connection";
    Connect Target "connect" "connecting";
    Tls Target "tls" "the TLS handshake";
    StreamWait Limit "stream_wait" "waiting for a free stream";
    TargetStreamWait Target "target_stream_wait" "waiting for a stream that the target permits";
    Write Generator "write" "the generator's late write";
    WindowWait Target "window_wait" "waiting for the target's receive window";
    FirstByte Target "first_byte" "waiting for the first byte";
    Streaming Target "streaming" "waiting for the last message";
    Receive Target "receive" "receiving the rest of the response";
}

impl Stage {
    /// Number of stages.
    pub const COUNT: usize = ROWS.len();

    /// All stages in their order.
    pub fn all() -> impl Iterator<Item = Stage> {
        ROWS.iter().map(|(stage, ..)| *stage)
    }

    /// Who causes its delay.
    pub fn owner(self) -> Owner {
        ROWS[self as usize].1
    }

    /// Its key in reports.
    pub fn key(self) -> &'static str {
        ROWS[self as usize].2
    }

    /// Its name in sentences.
    pub fn words(self) -> &'static str {
        ROWS[self as usize].3
    }
}

/// Reads what is known of stages or owners, and skips those that a later version has.
///
/// # Errors
/// Not a map; a value of a known one is not of its type.
pub fn known_keys<'de, D, K, V>(from: D) -> Result<BTreeMap<K, V>, D::Error>
where
    D: Deserializer<'de>,
    K: DeserializeOwned + Ord,
    V: DeserializeOwned,
{
    let all = BTreeMap::<String, serde_json::Value>::deserialize(from)?;
    let known = all.into_iter().filter_map(|(name, value)| {
        let name = IntoDeserializer::<serde::de::value::Error>::into_deserializer(name);
        let name = K::deserialize(name).ok()?;
        Some(V::deserialize(value).map(|value| (name, value)))
    });
    known.collect::<Result<_, _>>().map_err(D::Error::custom)
}

/// The length of each stage of an operation, by `stage as usize`.
pub type Stages = [Nanos; Stage::COUNT];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Owner;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn stages_sum_to_the_response_time_whatever_the_times(
            times in proptest::array::uniform11(0_u64..1_000),
            response in 0_u64..1_000,
        ) {
            let intended = Nanos(times[0]);
            let op = Op { intended, lane: 0 };
            let completed = intended + Nanos(response);
            let completion = Completion {
                started: Nanos(times[1]),
                scripted: Nanos(times[10]),
                placed: Nanos(times[2]),
                connected: Nanos(times[3]),
                secured: Nanos(times[8]),
                granted: Nanos(times[9]),
                is_targets_limit: response % 2 == 0,
                sent: Nanos(times[4]),
                written: Nanos(times[5]),
                first_byte: Nanos(times[6]),
                picked_up: completed + Nanos(times[7]),
                ..Completion::at_once(op, completed, Outcome::Ok)
            };
            let sum: u64 = completion.stages().iter().map(|stage| stage.0).sum();
            prop_assert_eq!(Nanos(sum), completion.response_time());
        }
    }

    #[test]
    fn each_stage_is_the_time_between_its_ends() {
        let op = Op { intended: Nanos(100), lane: 0 };
        let completion = Completion {
            started: Nanos(101),
            scripted: Nanos(103),
            placed: Nanos(107),
            connected: Nanos(115),
            secured: Nanos(131),
            granted: Nanos(163),
            sent: Nanos(227),
            written: Nanos(355),
            first_byte: Nanos(611),
            ..Completion::at_once(op, Nanos(1_123), Outcome::Ok)
        };
        assert_eq!(
            completion.stages().map(|stage| stage.0),
            [1, 2, 4, 8, 16, 32, 0, 64, 128, 256, 0, 512]
        );
        let streamed = Completion { last_message: Nanos(1_112), ..completion };
        assert_eq!(streamed.stages()[10..], [Nanos(501), Nanos(11)]);
        let targets = Completion { is_targets_limit: true, ..completion };
        assert_eq!(targets.stages()[5..7], [Nanos(0), Nanos(32)]);
        let is_own = |stage: &Stage| stage.owner() == Owner::Generator;
        let own = Stage::all().filter(is_own);
        let own_ns: u64 = own.map(|s| completion.stages()[s as usize].0).sum();
        assert_eq!(completion.own_delay(), Nanos(own_ns));
    }

    #[test]
    fn the_table_is_in_the_order_of_the_stages() {
        for (index, stage) in Stage::all().enumerate() {
            assert_eq!(stage as usize, index);
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.key());
        }
    }
}
