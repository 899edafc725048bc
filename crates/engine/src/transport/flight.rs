//! One operation under way.

use knee_core::measure::Op;
use knee_core::measure::{Completion, Outcome};
use knee_core::time::Nanos;
use std::io;

/// What is known of an operation until it ends.
#[derive(Clone, Copy, Debug, Default)]
pub struct Flight {
    /// When the schedule wanted it to start.
    pub intended: Nanos,
    /// When the generator came to it.
    pub started: Nanos,
    /// When it got a connection: an open one, or one that was opened for it.
    pub placed: Nanos,
    /// When its request was handed to the kernel.
    pub sent: Nanos,
    /// When the first byte of the response was there; zero before.
    pub first_byte: Nanos,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes of its request, once that was handed to the kernel.
    pub bytes_sent: u64,
    /// Its lane.
    pub lane: u32,
    /// The number of its request.
    pub request: usize,
    /// It goes for the second time.
    pub repeated: bool,
}

impl Flight {
    /// One that starts at `now` with request number `request`.
    pub fn new(op: Op, request: usize, now: Nanos) -> Flight {
        let Op { intended, lane } = op;
        Flight {
            intended,
            started: now,
            lane,
            request,
            ..Flight::default()
        }
    }

    /// Notes `count` bytes of the response.
    #[inline]
    pub fn received(&mut self, count: usize, now: Nanos) {
        if self.bytes == 0 {
            self.first_byte = now;
        }
        self.bytes += count as u64;
    }

    /// It ended at `now`, its request sent.
    #[inline]
    pub fn ended(&self, outcome: Outcome, now: Nanos) -> Completion {
        Completion {
            intended: self.intended,
            started: self.started,
            sent: self.sent,
            first_byte: if self.bytes > 0 { self.first_byte } else { now },
            completed: now,
            bytes: self.bytes,
            bytes_sent: self.bytes_sent,
            status: 0,
            target: self.request as u32,
            outcome,
            lane: self.lane,
        }
    }

    /// It ended at `now` with a whole response of this status.
    #[inline]
    pub fn answered(&self, outcome: Outcome, status: u16, now: Nanos) -> Completion {
        Completion {
            status,
            ..self.ended(outcome, now)
        }
    }

    /// It ended at `now`, its request never sent.
    pub fn unsent(&self, outcome: Outcome, now: Nanos) -> Completion {
        Completion {
            sent: now,
            first_byte: now,
            ..self.ended(outcome, now)
        }
    }
}

/// What an error of the operating system means for an operation.
pub fn outcome_of(error: &io::Error) -> Outcome {
    match error.raw_os_error().unwrap_or(0) {
        // A Unix socket without a listener, or with a full queue, refuses in its own words.
        libc::ECONNREFUSED | libc::ENOENT | libc::EAGAIN => Outcome::Refused,
        libc::ECONNRESET | libc::EPIPE | libc::ECONNABORTED => Outcome::Reset,
        libc::ETIMEDOUT => Outcome::Timeout,
        libc::EHOSTUNREACH | libc::ENETUNREACH | libc::EHOSTDOWN | libc::ENETDOWN => {
            Outcome::Unreachable
        }
        libc::EMFILE | libc::ENFILE | libc::ENOBUFS | libc::ENOMEM | libc::EADDRNOTAVAIL => {
            Outcome::NoResources
        }
        _ => Outcome::OtherError,
    }
}
