//! What a worker's loop needs of a client.

use crate::error::RunError;
use crate::reactor::{Backend, Event, EventTime};
use knee_core::both_ends::Sampler;
use knee_core::driver::RateLimit;
use knee_core::measure::Completion;
use knee_core::measure::{Handshakes, Op, SessionsMeasured};
use knee_core::time::Nanos;
use std::sync::atomic::AtomicBool;

/// Carries operations over the connections of one worker, and ends each in a Completion. Knows
/// nothing of schedules and statistics.
pub(crate) trait Client {
    /// Whether an operation of the driver is a session: then [`Client::take_ended`] tells of those,
    /// and [`Client::take_completed`] of their steps.
    const CARRIES_SESSIONS: bool = false;

    /// Starting an operation sends its request, which takes time. Otherwise [`Client::flush`] sends
    /// those of all that were started, in one go.
    const STARTS_SEND: bool;

    /// Makes ready, before any load, what takes time.
    ///
    /// # Errors
    /// Something that the load needs cannot be had.
    fn prepare<B: Backend>(&mut self, _io: &mut B, _stop: &AtomicBool) -> Result<(), RunError> {
        Ok(())
    }

    /// Starts an operation at `now`.
    fn start<B: Backend>(&mut self, io: &mut B, op: Op, now: Nanos);

    /// The next operation that has ended, if any; ask until there is none.
    fn take_completed(&mut self) -> Option<&Completion>;

    /// How many steps of sessions have begun since this was asked last.
    #[inline]
    fn take_begun(&mut self) -> u64 {
        0
    }

    /// The next session that has ended, if any, as the driver's operation.
    #[inline]
    fn take_ended(&mut self) -> Option<Completion> {
        None
    }

    /// The lane of an operation whose own connection was established since this was asked last, if
    /// any. An operation is told here before it is as completed.
    #[inline]
    fn take_established(&mut self) -> Option<u32> {
        None
    }

    /// All that was due has been started: what waited for that goes out.
    #[inline]
    fn flush<B: Backend>(&mut self, _io: &mut B, _now: impl Fn() -> Nanos) {}

    /// Something happened on a connection.
    fn on_event<B: Backend>(&mut self, io: &mut B, slot: u32, event: Event<'_>, time: EventTime);

    /// There is something to read from what the client watches by this number. Whether it watches
    /// that on.
    fn on_readable<B: Backend>(&mut self, _io: &mut B, _source: u32, _now: Nanos) -> bool {
        false
    }

    /// When [`Client::expire`] has something to do next.
    fn next_deadline(&self) -> Nanos;

    /// When [`Client::expire`] has to start something of the client's own accord: to the
    /// microsecond, other than a deadline.
    #[inline]
    fn next_due(&self) -> Nanos {
        Nanos::MAX
    }

    /// Nothing can be started any more, whatever the driver wants.
    #[inline]
    fn has_run_out(&self) -> bool {
        false
    }

    /// The intended time of the oldest operation under way; `None` where there is none or it is not
    /// known.
    fn oldest_intended(&self) -> Option<Nanos> {
        None
    }

    /// Ends what has timed out by `now`.
    fn expire<B: Backend>(&mut self, io: &mut B, now: Nanos);

    /// Ends everything that is still under way as in flight.
    fn abandon(&mut self, now: Nanos);

    /// The limit on operations per second that this client's own starts count in, if any.
    fn rate_limit(&self) -> Option<&RateLimit> {
        None
    }

    /// What is known of the operations whose connections an observer follows.
    fn take_sampler(&mut self) -> Option<Sampler> {
        None
    }

    /// How connections were secured, where they were.
    fn take_handshakes(&mut self) -> Handshakes {
        Handshakes::default()
    }

    /// What was measured of sessions, where it carries them.
    fn take_sessions(&mut self) -> Option<SessionsMeasured> {
        None
    }

    /// What was wrong with the first malformed response.
    fn first_violation(&self) -> Option<String>;

    /// How the target said, the first time, that it ended operations.
    fn first_reset(&self) -> Option<String>;

    /// What was done so far.
    fn tally(&self) -> Tally;
}

/// What a client has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Connections opened.
    pub opened: u64,
    /// Connections open now.
    pub open: u64,
    /// Most connections open at once.
    pub open_max: u64,
    /// Operations under way, those that wait for a connection included.
    pub in_flight: u64,
    /// Whole responses after which bytes came that nobody asked for.
    pub surplus: u64,
}
