//! One operation under way.

use crate::exchange::FlightId;
use crate::reactor::EventTime;
use knee_load::measure::Op;
use knee_load::measure::{Completion, Outcome, Status};
use knee_load::messages::StreamEnding;
use knee_load::time::Nanos;
use std::io;

/// Most refusals after which an operation is sent again.
const REFUSALS_MAX: u8 = 3;

/// State of an operation until it ends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Flight {
    /// Start by the schedule.
    pub intended: Nanos,
    /// Time at which the generator came to it.
    pub started: Nanos,
    /// Time at which a connection was free for it, or was opened for it; zero before.
    pub placed: Nanos,
    /// Time at which that connection was established; zero before.
    pub connected: Nanos,
    /// Time at which that connection was secured; zero before, and without TLS.
    pub secured: Nanos,
    /// Time at which a stream was free for it; zero before.
    pub granted: Nanos,
    /// Whether it waited for a stream because of the target's limit.
    pub is_targets_limit: bool,
    /// Time at which its request was passed to the kernel; zero before.
    pub sent: Nanos,
    /// Time at which the kernel had all of it; zero before.
    pub written: Nanos,
    /// Time of the first byte of the response; zero before.
    pub first_byte: Nanos,
    /// Time of the last message of the response; zero before.
    pub last_message: Nanos,
    /// The number of its stream of messages, once that has ended; [`Completion::NO_STREAM`] before.
    stream: FlightId,
    /// How it ends if that stream was not whole or had an error, or its body was not decoded.
    stream_fault: Option<Outcome>,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes of its request, once passed to the kernel.
    pub bytes_sent: u64,
    /// Its lane.
    pub lane: u32,
    /// The number of its connection, once it has one.
    pub connection: u32,
    /// The number of its request.
    pub request: usize,
    /// Time at which it times out.
    pub until: Nanos,
    /// Number of its session, if it is a step of one.
    pub session: u32,
    /// Number of the request whose response rules apply.
    pub read_as: u32,
    /// It is sent again.
    pub repeated: bool,
    /// Times that the server did not process it.
    pub refusals: u8,
}

impl Flight {
    /// Session number of an operation without a session.
    pub(super) const NO_SESSION: u32 = u32::MAX;

    /// Creates an operation that starts at `now` and times out at `until`.
    pub(super) fn new(op: Op, request: usize, until: Nanos, now: Nanos) -> Flight {
        let Op { intended, lane } = op;
        Flight {
            intended,
            started: now,
            lane,
            request,
            until,
            session: Flight::NO_SESSION,
            connection: Completion::NO_CONNECTION,
            stream: Completion::NO_STREAM,
            ..Flight::default()
        }
    }

    /// Notes that its stream of messages has ended.
    pub(super) fn set_stream(&mut self, op: FlightId, ending: &StreamEnding) {
        self.stream = op;
        self.stream_fault = match ending {
            StreamEnding::Whole => None,
            StreamEnding::Incomplete(_) => Some(Outcome::Incomplete),
            StreamEnding::Error(_) => Some(Outcome::StreamError),
        };
    }

    /// Notes that its body is compressed and could not be decoded.
    pub(super) fn set_undecodable(&mut self) {
        self.stream_fault = Some(Outcome::Undecodable);
    }

    /// Counts a refusal. Returns whether the operation is sent again. Each connection without a
    /// known limit of streams may refuse it once.
    pub(super) fn may_go_again(&mut self) -> bool {
        self.refusals += 1;
        self.refusals <= REFUSALS_MAX
    }

    /// Corrects a timestamp from before the request was sent, which cannot be right: the bytes then
    /// count as received when they were seen.
    #[inline]
    pub(super) fn no_earlier(&self, time: EventTime) -> EventTime {
        if time.happened < self.sent { EventTime::seen(time.seen) } else { time }
    }

    /// Counts received bytes of the response.
    #[inline]
    pub(super) fn received(&mut self, count: usize, time: EventTime) -> EventTime {
        let time = self.no_earlier(time);
        if self.bytes == 0 {
            self.first_byte = time.happened;
        }
        self.bytes += count as u64;
        time
    }

    /// Completion of a sent operation at `time`.
    #[inline]
    pub(super) fn ended(&self, outcome: Outcome, time: EventTime) -> Completion {
        let completed = time.happened;
        let reached = |at: Nanos| if at > Nanos::ZERO { at } else { completed };
        let first_byte = reached(self.first_byte);
        let connected = reached(self.connected);
        let secured = match self.secured {
            Nanos::ZERO if self.sent > Nanos::ZERO => connected,
            at => reached(at),
        };
        Completion {
            intended: self.intended,
            started: self.started,
            scripted: self.started,
            placed: reached(self.placed),
            connected,
            secured,
            granted: match self.granted {
                Nanos::ZERO => secured,
                at => at,
            },
            is_targets_limit: self.is_targets_limit,
            sent: self.sent,
            // An answer may come before the request was taken whole: then nothing waits for that.
            written: reached(self.written).min(first_byte),
            first_byte,
            last_message: self.last_message,
            completed,
            picked_up: time.seen,
            by_kernel: time.by_kernel,
            bytes: self.bytes,
            bytes_sent: self.bytes_sent,
            status: 0,
            target: self.request as u32,
            outcome: match (outcome, self.stream_fault) {
                // What was said within the stream is why it broke off.
                (
                    Outcome::Truncated | Outcome::Reset | Outcome::StreamReset,
                    Some(Outcome::StreamError),
                ) => Outcome::StreamError,
                (Outcome::Truncated, _) if self.stream != Completion::NO_STREAM => {
                    Outcome::Incomplete
                }
                _ => outcome,
            },
            lane: self.lane,
            connection: self.connection,
            stream: self.stream,
        }
    }

    /// Completion by a message that left the target at a time.
    pub(super) fn delivered(&self, left: Nanos, time: EventTime) -> Completion {
        let flight = Flight {
            intended: left,
            started: left,
            placed: left,
            connected: left,
            secured: left,
            granted: left,
            sent: left,
            written: left,
            first_byte: time.happened,
            bytes_sent: 0,
            ..*self
        };
        flight.answered(Status::Message.outcome(), Status::Message, time)
    }

    /// Completion with a whole response of this status.
    #[inline]
    pub(super) fn answered(&self, outcome: Outcome, status: Status, time: EventTime) -> Completion {
        // A redirection has a body of its own kind.
        let is_success = matches!(outcome, Outcome::Ok | Outcome::Served)
            && !matches!(status, Status::Http(300..));
        let fault = self.stream_fault.filter(|_| is_success);
        let outcome = fault.unwrap_or(outcome);
        Completion { status: status.code(), ..self.ended(outcome, time) }
    }

    /// Completion of an operation that was never sent.
    pub(super) fn unsent(&self, outcome: Outcome, now: Nanos) -> Completion {
        Completion {
            sent: now,
            first_byte: now,
            written: now,
            ..self.ended(outcome, EventTime::seen(now))
        }
    }
}

/// Outcome that follows from an error of the operating system.
pub(super) fn outcome_of(error: &io::Error) -> Outcome {
    match error.raw_os_error().unwrap_or(0) {
        // A Unix socket without a listener refuses in its own words.
        libc::ECONNREFUSED | libc::ENOENT => Outcome::Refused,
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
