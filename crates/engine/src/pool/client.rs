//! The interface between a worker's loop and its client.

use crate::error::RunError;
use crate::reactor::{Backend, Event, EventTime};
use knee_load::both_ends::OffsetRecorder;
use knee_load::driver::RateLimit;
use knee_load::measure::{AttemptsMeasured, Completion};
use knee_load::measure::{
    Handshakes, MessageEvent, Op, PacketsMeasured, RoutedConnections, SessionsMeasured,
};
use knee_load::messages::StreamFaults;
use knee_load::time::Nanos;
use std::sync::atomic::AtomicBool;

/// Carries operations over the connections of one worker, each to its [`Completion`]. Has no
/// schedule and no statistics.
pub(crate) trait Client {
    /// Whether an operation of the driver is a session. Then [`Client::take_ended`] has the
    /// sessions, and [`Client::take_completed`] their steps.
    fn carries_sessions(&self) -> bool {
        false
    }

    /// Whether starting an operation sends its request, which takes time. Otherwise
    /// [`Client::flush`] sends the requests of all started operations in one go.
    fn starts_send(&self) -> bool;

    /// Does slow preparations before any load.
    ///
    /// # Errors
    /// Something that the load needs is not available.
    fn prepare(&mut self, _io: &mut dyn Backend, _stop: &AtomicBool) -> Result<(), RunError> {
        Ok(())
    }

    /// Learns the CLOCK_REALTIME of time zero, in nanoseconds.
    fn set_epoch(&mut self, _realtime_ns: u64) {}

    /// Starts an operation at `now`.
    fn start(&mut self, io: &mut dyn Backend, op: Op, now: Nanos);

    /// The next completed operation, if any. To be called until there is none.
    fn take_completed(&mut self) -> Option<&Completion>;

    /// The next message of an operation under way, if any. Comes before the operation is reported
    /// as completed.
    fn take_message(&mut self) -> Option<MessageEvent> {
        None
    }

    /// Steps of sessions that have begun since the last call.
    fn take_begun(&mut self) -> u64 {
        0
    }

    /// The next ended session, if any, as the driver's operation.
    fn take_ended(&mut self) -> Option<Completion> {
        None
    }

    /// The lane of an operation whose own connection was established since the last call, if
    /// any. Comes before the operation is reported as completed.
    fn take_established(&mut self) -> Option<u32> {
        None
    }

    /// Sends what has waited until all due operations were started.
    fn flush(&mut self, _io: &mut dyn Backend, _now: &dyn Fn() -> Nanos) {}

    /// Handles an event of a connection.
    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>, time: EventTime);

    /// A descriptor that the client watches has data. Returns whether to go on watching it.
    fn on_readable(&mut self, _io: &mut dyn Backend, _source: u32, _now: Nanos) -> bool {
        false
    }

    /// Time of the next deadline, for [`Client::expire`].
    fn next_deadline(&self) -> Nanos;

    /// Time at which [`Client::expire`] is to start something. Must be met to the microsecond,
    /// unlike a deadline.
    fn next_due(&self) -> Nanos {
        Nanos::MAX
    }

    /// Whether nothing can be started any more.
    fn has_run_out(&self) -> bool {
        false
    }

    /// Whether the trial is over at once, with all that is under way.
    fn ends_trial(&self) -> bool {
        false
    }

    /// The intended time of the oldest operation under way, if known.
    fn oldest_intended(&self) -> Option<Nanos> {
        None
    }

    /// Ends operations and connections that have timed out by `now`.
    fn expire(&mut self, io: &mut dyn Backend, now: Nanos);

    /// Says farewell over open connections, before they are closed for good.
    fn close(&mut self, _io: &mut dyn Backend, _now: Nanos) {}

    /// Ends all operations under way as
    /// [`Outcome::InFlight`](knee_load::measure::Outcome::InFlight).
    fn abandon(&mut self, now: Nanos);

    /// The limit on operations per second for this client's own starts, if any.
    fn rate_limit(&self) -> Option<&RateLimit> {
        None
    }

    /// What is known at the end of the load, at `end`.
    fn finish(&mut self, end: Nanos) -> ClientSummary;

    /// Counts so far.
    fn tally(&self) -> Tally;
}

/// What a client knows at the end of its load, beside its completions.
#[derive(Default)]
pub(crate) struct ClientSummary {
    /// How connections were secured.
    pub handshakes: Handshakes,
    /// Packets of connections, where the protocol numbers them.
    pub packets: Option<PacketsMeasured>,
    /// Measurements of sessions, if it carries them.
    pub sessions: Option<SessionsMeasured>,
    /// What was measured of requests, if it retries failed attempts itself.
    pub attempts: Option<AttemptsMeasured>,
    /// Fault of the first malformed response.
    pub violation: Option<String>,
    /// Why the first compressed body could not be decoded.
    pub undecodable: Option<String>,
    /// What was wrong with streams of messages, for the first time.
    pub stream_faults: StreamFaults,
    /// The target's first message that it ended operations.
    pub reset: Option<String>,
    /// Where connections went.
    pub routed: RoutedConnections,
    /// Positions of operations in the connections that an observer follows.
    pub offset_recorder: Option<OffsetRecorder>,
}

impl ClientSummary {
    /// Two clients as one: of what comes first, that of `self`.
    pub(super) fn and(mut self, other: ClientSummary) -> ClientSummary {
        self.handshakes.merge(other.handshakes);
        self.routed.merge(other.routed);
        ClientSummary {
            handshakes: self.handshakes,
            packets: self.packets.or(other.packets),
            sessions: self.sessions.or(other.sessions),
            attempts: self.attempts.or(other.attempts),
            violation: self.violation.or(other.violation),
            undecodable: self.undecodable.or(other.undecodable),
            stream_faults: self.stream_faults.or(other.stream_faults),
            reset: self.reset.or(other.reset),
            routed: self.routed,
            offset_recorder: self.offset_recorder.or(other.offset_recorder),
        }
    }
}

/// Counts of a client so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Connections opened.
    pub opened: u64,
    /// Connections open now.
    pub open: u64,
    /// Most connections open at once.
    pub open_max: u64,
    /// Operations under way, including those that wait for a connection.
    pub in_flight: u64,
    /// Complete responses followed by unrequested bytes.
    pub surplus: u64,
    /// Answers that no operation under way waited for.
    pub unmatched: u64,
    /// Operations that went on over a connection of another kind.
    pub diverted: u64,
    /// Times at which a connection had no number left for another operation.
    pub exhausted: u64,
}

impl Tally {
    /// Two clients as one.
    pub(super) fn and(self, other: Tally) -> Tally {
        Tally {
            opened: self.opened + other.opened,
            open: self.open + other.open,
            open_max: self.open_max + other.open_max,
            in_flight: self.in_flight + other.in_flight,
            surplus: self.surplus + other.surplus,
            unmatched: self.unmatched + other.unmatched,
            diverted: self.diverted + other.diverted,
            exhausted: self.exhausted + other.exhausted,
        }
    }
}

/// Completed operations and messages until they are taken, in the order of their ends. Readers get
/// references: a copy costs more than what most of them do with it.
#[derive(Debug)]
pub(super) struct HandoverQueue<T> {
    all: Vec<T>,
    taken: usize,
}

impl<T> HandoverQueue<T> {
    pub(super) const fn new() -> HandoverQueue<T> {
        HandoverQueue { all: Vec::new(), taken: 0 }
    }

    #[inline]
    pub(super) fn push(&mut self, item: T) {
        self.all.push(item);
    }

    /// The next one; ask until there is none.
    #[inline]
    pub(super) fn take(&mut self) -> Option<&T> {
        if self.is_exhausted() {
            return None;
        }
        self.taken += 1;
        self.all.get(self.taken - 1)
    }

    /// Whether all were taken, which are then forgotten.
    #[inline]
    pub(super) fn is_exhausted(&mut self) -> bool {
        let is_exhausted = self.taken == self.all.len();
        if is_exhausted {
            self.all.clear();
            self.taken = 0;
        }
        is_exhausted
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::measure::{Op, Outcome};
    use knee_load::time::Nanos;

    #[test]
    fn completions_come_in_order_while_more_are_added() {
        let mut completions = HandoverQueue::new();
        let at = |ns| {
            let op = Op { intended: Nanos(ns), lane: 0 };
            Completion::at_once(op, Nanos(ns), Outcome::Ok)
        };
        let mut seen = Vec::new();
        (1..=2).for_each(|ns| completions.push(at(ns)));
        while let Some(completion) = completions.take() {
            let ns = completion.completed.0;
            seen.push(ns);
            if ns == 1 {
                completions.push(at(3));
            }
        }
        assert_eq!(seen, [1, 2, 3]);
        completions.push(at(4));
        assert_eq!(completions.take().map(|c| c.completed), Some(Nanos(4)));
        assert_eq!(completions.take(), None);
    }
}
