//! A client that counts what goes in and out of another.

use crate::error::RunError;
use crate::pool::client::{Client, ClientSummary, Tally};
use crate::reactor::{Backend, Event, EventTime};
use knee_load::measure::{Completion, Op, Outcome};
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
    /// Answers that have come whole, of those that make an operation a success.
    pub(super) whole: u64,
    /// Operations that were a success.
    succeeded: u64,
    /// When the last operation of each lane ended.
    pub(super) last_of_lane: HashMap<u32, Nanos>,
}

pub(super) type Books = Rc<RefCell<Counted>>;

pub(super) struct Audit {
    inner: Box<dyn Client>,
    books: Books,
}

impl Audit {
    pub(super) fn new(inner: Box<dyn Client>) -> (Audit, Books) {
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

impl Client for Audit {
    fn carries_sessions(&self) -> bool {
        self.inner.carries_sessions()
    }

    fn starts_send(&self) -> bool {
        self.inner.starts_send()
    }

    fn prepare(&mut self, io: &mut dyn Backend, stop: &AtomicBool) -> Result<(), RunError> {
        self.inner.prepare(io, stop)
    }

    fn start(&mut self, io: &mut dyn Backend, op: Op, now: Nanos) {
        self.books.borrow_mut().begun += 1;
        self.inner.start(io, op, now);
    }

    fn take_completed(&mut self) -> Option<&Completion> {
        let carries_sessions = self.inner.carries_sessions();
        let completion = self.inner.take_completed()?;
        let mut books = self.books.borrow_mut();
        if matches!(completion.outcome, Outcome::Ok | Outcome::Served) {
            books.succeeded += 1;
            assert!(books.succeeded <= books.whole, "no whole answer came for {completion:?}");
        }
        if !carries_sessions {
            books.ended(completion);
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

    fn flush(&mut self, io: &mut dyn Backend, now: &dyn Fn() -> Nanos) {
        self.inner.flush(io, now);
    }

    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>, time: EventTime) {
        self.inner.on_event(io, slot, event, time);
    }

    fn on_readable(&mut self, io: &mut dyn Backend, source: u32, now: Nanos) -> bool {
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

    fn expire(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.inner.expire(io, now);
    }

    fn abandon(&mut self, now: Nanos) {
        self.inner.abandon(now);
    }

    fn finish(&mut self, end: Nanos) -> ClientSummary {
        self.inner.finish(end)
    }

    fn tally(&self) -> Tally {
        self.inner.tally()
    }
}
