//! A client that counts what goes in and out of another.

use crate::error::RunError;
use crate::pool::client::{Client, Tally};
use crate::reactor::{Backend, Event, EventTime};
use knee_load::both_ends::Sampler;
use knee_load::measure::{Completion, Handshakes, Op, SessionsMeasured};
use knee_load::time::Nanos;
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

/// What was counted of the driver's operations, be they sessions or requests.
#[derive(Debug, Default)]
pub(super) struct Counted {
    pub(super) begun: u64,
    pub(super) ended: u64,
    /// When the last operation of each lane ended.
    pub(super) last_of_lane: HashMap<u32, Nanos>,
}

pub(super) type Books = Rc<RefCell<Counted>>;

pub(super) struct Audit<C> {
    inner: C,
    books: Books,
}

impl<C: Client> Audit<C> {
    pub(super) fn new(inner: C) -> (Audit<C>, Books) {
        let books = Books::default();
        let audit = Audit { inner, books: Rc::clone(&books) };
        (audit, books)
    }
}

impl Counted {
    fn ended(&mut self, completion: &Completion) {
        self.ended += 1;
        self.last_of_lane.insert(completion.lane, completion.picked_up);
    }
}

impl<C: Client> Client for Audit<C> {
    const CARRIES_SESSIONS: bool = C::CARRIES_SESSIONS;
    const STARTS_SEND: bool = C::STARTS_SEND;

    fn prepare<B: Backend>(&mut self, io: &mut B, stop: &AtomicBool) -> Result<(), RunError> {
        self.inner.prepare(io, stop)
    }

    fn start<B: Backend>(&mut self, io: &mut B, op: Op, now: Nanos) {
        self.books.borrow_mut().begun += 1;
        self.inner.start(io, op, now);
    }

    fn take_completed(&mut self) -> Option<&Completion> {
        let completion = self.inner.take_completed()?;
        if !C::CARRIES_SESSIONS {
            self.books.borrow_mut().ended(completion);
        }
        Some(completion)
    }

    fn take_begun(&mut self) -> u64 {
        self.inner.take_begun()
    }

    fn take_ended(&mut self) -> Option<Completion> {
        let ended = self.inner.take_ended()?;
        self.books.borrow_mut().ended(&ended);
        Some(ended)
    }

    fn take_established(&mut self) -> Option<u32> {
        self.inner.take_established()
    }

    fn flush<B: Backend>(&mut self, io: &mut B, now: impl Fn() -> Nanos) {
        self.inner.flush(io, now);
    }

    fn on_event<B: Backend>(&mut self, io: &mut B, slot: u32, event: Event<'_>, time: EventTime) {
        self.inner.on_event(io, slot, event, time);
    }

    fn on_readable<B: Backend>(&mut self, io: &mut B, source: u32, now: Nanos) -> bool {
        self.inner.on_readable(io, source, now)
    }

    fn next_deadline(&self) -> Nanos {
        self.inner.next_deadline()
    }

    fn next_due(&self) -> Nanos {
        self.inner.next_due()
    }

    fn has_run_out(&self) -> bool {
        self.inner.has_run_out()
    }

    fn oldest_intended(&self) -> Option<Nanos> {
        self.inner.oldest_intended()
    }

    fn expire<B: Backend>(&mut self, io: &mut B, now: Nanos) {
        self.inner.expire(io, now);
    }

    fn abandon(&mut self, now: Nanos) {
        self.inner.abandon(now);
    }

    fn take_sampler(&mut self) -> Option<Sampler> {
        self.inner.take_sampler()
    }

    fn take_handshakes(&mut self) -> Handshakes {
        self.inner.take_handshakes()
    }

    fn take_sessions(&mut self) -> Option<SessionsMeasured> {
        self.inner.take_sessions()
    }

    fn first_violation(&self) -> Option<String> {
        self.inner.first_violation()
    }

    fn first_reset(&self) -> Option<String> {
        self.inner.first_reset()
    }

    fn tally(&self) -> Tally {
        self.inner.tally()
    }
}
