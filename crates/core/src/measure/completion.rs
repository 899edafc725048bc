//! One operation, ended.

use super::Outcome;
use crate::measure::Op;
use crate::time::Nanos;

/// One operation that has ended: its moments, named separately so that none means two things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// When the schedule wanted it to start.
    pub intended: Nanos,
    /// When the generator came to it; `started − intended` is the generator's own lateness.
    pub started: Nanos,
    /// When its request was handed to the kernel; `sent − started` is the wait for a connection.
    /// Equal to `completed` where it was never sent.
    pub sent: Nanos,
    /// When the first byte of the response was there; equal to `completed` where none came.
    pub first_byte: Nanos,
    /// When it ended.
    pub completed: Nanos,
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
    /// The lane of its [`crate::measure::Op`].
    pub lane: u32,
}

impl Completion {
    /// An operation with all its moments but the intended one at `now`, as it was never sent: shed,
    /// refused, or what a caller fills in.
    pub fn at_once(op: Op, now: Nanos, outcome: Outcome) -> Completion {
        Completion {
            intended: op.intended,
            started: now,
            sent: now,
            first_byte: now,
            completed: now,
            bytes: 0,
            bytes_sent: 0,
            status: 0,
            target: 0,
            outcome,
            lane: op.lane,
        }
    }

    /// What a user felt who came at the intended moment: completed − intended.
    pub fn response_time(&self) -> Nanos {
        self.completed - self.intended
    }

    /// What the target took: completed − sent.
    pub fn service_time(&self) -> Nanos {
        self.completed - self.sent
    }

    /// The generator's own lateness: started − intended.
    pub fn pacing_error(&self) -> Nanos {
        self.started - self.intended
    }

    /// How long it waited for a free connection: sent − started.
    pub fn connection_wait(&self) -> Nanos {
        self.sent - self.started
    }
}
