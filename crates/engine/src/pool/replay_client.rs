//! A client whose operations are recorded requests. A user's next request waits until the one
//! before has ended.

mod feed;

use super::client::{Client, ClientSummary, HandoverQueue, Tally};
use super::flight::Flight;
use super::step_client::StepClient;
use crate::error::{RunError, reason};
use crate::reactor::{Backend, Event, EventTime};
use feed::{FedRequest, Feed};
use knee_load::driver::RateLimit;
use knee_load::measure::{Completion, MessageEvent, Op, Outcome};
use knee_load::quantity::Share;
use knee_load::spec::Recording;
use knee_load::time::Nanos;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Sends what a feed reads from the recording. The lane of an operation that comes in is its number
/// among those of the worker, so that what was shed is passed over. Within, it is a place for the
/// values of its request.
pub(crate) struct ReplayClient {
    inner: Box<dyn StepClient>,
    recording: Arc<Recording>,
    share: Share,
    timeout: Nanos,
    feed: Option<Feed>,
    /// Requests taken from the feed.
    taken: u32,
    /// The user of the operation in each place; `None` without one.
    places: Vec<Option<u64>>,
    free: Vec<u32>,
    /// Requests that wait for the one before, by user. A user with an operation under way is in it.
    waiting: HashMap<u64, VecDeque<Waiting>>,
    /// How many wait.
    waiting_count: u64,
    completed: HandoverQueue<Completion>,
}

/// A request that waits for another of its user.
struct Waiting {
    op: Op,
    /// When the generator came to it.
    started: Nanos,
    request: FedRequest,
}

impl ReplayClient {
    /// A client for a worker's share of a recording. `inner` carries the requests.
    pub(crate) fn new(
        inner: Box<dyn StepClient>,
        recording: Arc<Recording>,
        share: Share,
        timeout: Nanos,
    ) -> ReplayClient {
        ReplayClient {
            inner,
            recording,
            share,
            timeout,
            feed: None,
            taken: 0,
            places: Vec::new(),
            free: Vec::new(),
            waiting: HashMap::new(),
            waiting_count: 0,
            completed: HandoverQueue::new(),
        }
    }

    /// The request of the operation with this number.
    fn request(&mut self, number: u32) -> Option<FedRequest> {
        let feed = self.feed.as_mut()?;
        while self.taken < number {
            feed.next()?;
            self.taken += 1;
        }
        self.taken += 1;
        feed.next()
    }

    fn send(&mut self, io: &mut dyn Backend, next: Waiting, now: Nanos) {
        let Waiting { op, started, request } = next;
        let place = self.free.pop().unwrap_or(self.places.len() as u32);
        match self.places.get_mut(place as usize) {
            Some(user) => *user = request.user,
            None => self.places.push(request.user),
        }
        let fills = self.inner.fills(place);
        fills.clear();
        fills.push(&request.path);
        let (op, until) = (Op { lane: place, ..op }, op.intended + self.timeout);
        let mut flight = Flight::new(op, request.kind as usize, until, started);
        (flight.session, flight.read_as) = (place, request.kind);
        self.inner.start_step(io, flight, now);
    }

    /// Takes what has ended, and sends what waited for it.
    fn advance(&mut self, io: &mut dyn Backend, now: Nanos) {
        while let Some(ended) = self.inner.take_step() {
            self.completed.push(ended);
            let place = ended.lane;
            self.free.push(place);
            let Some(user) = self.places[place as usize].take() else {
                continue;
            };
            match self.waiting.get_mut(&user).and_then(VecDeque::pop_front) {
                Some(next) => {
                    self.waiting_count -= 1;
                    self.send(io, next, now);
                }
                None => {
                    self.waiting.remove(&user);
                }
            }
        }
    }
}

impl Client for ReplayClient {
    // Filling in a request takes time.
    fn starts_send(&self) -> bool {
        true
    }

    fn prepare(&mut self, io: &mut dyn Backend, stop: &AtomicBool) -> Result<(), RunError> {
        let feed = Feed::start(&self.recording, self.share);
        let file = &self.recording.file;
        self.feed =
            Some(feed.map_err(|e| RunError::NotStarted(format!("{file}: {}", reason(&e))))?);
        self.inner.prepare(io, stop)
    }

    fn start(&mut self, io: &mut dyn Backend, op: Op, now: Nanos) {
        let Some(request) = self.request(op.lane) else {
            // The file has become shorter.
            return self.completed.push(Completion::at_once(op, now, Outcome::OtherError));
        };
        let user = request.user;
        let next = Waiting { op, started: now, request };
        let before = user.and_then(|user| self.waiting.get_mut(&user));
        match (user, before) {
            (_, Some(queue)) => {
                queue.push_back(next);
                self.waiting_count += 1;
            }
            (user, None) => {
                if let Some(user) = user {
                    self.waiting.insert(user, VecDeque::new());
                }
                self.send(io, next, now);
            }
        }
        self.advance(io, now);
    }

    fn set_epoch(&mut self, realtime_ns: u64) {
        self.inner.set_epoch(realtime_ns);
    }

    #[inline]
    fn take_completed(&mut self) -> Option<&Completion> {
        self.completed.take()
    }

    #[inline]
    fn take_message(&mut self) -> Option<MessageEvent> {
        self.inner.take_message()
    }

    #[inline]
    fn flush(&mut self, io: &mut dyn Backend, now: &dyn Fn() -> Nanos) {
        self.inner.flush(io, now);
    }

    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>, time: EventTime) {
        self.inner.on_event(io, slot, event, time);
        self.advance(io, time.seen);
    }

    #[inline]
    fn next_deadline(&self) -> Nanos {
        self.inner.next_deadline()
    }

    fn next_due(&self) -> Nanos {
        self.inner.next_due()
    }

    fn oldest_intended(&self) -> Option<Nanos> {
        self.inner.oldest_intended()
    }

    fn expire(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.inner.expire(io, now);
        self.advance(io, now);
    }

    fn close(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.inner.close(io, now);
    }

    fn abandon(&mut self, now: Nanos) {
        self.inner.abandon(now);
        while let Some(ended) = self.inner.take_step() {
            self.completed.push(ended);
        }
        for next in self.waiting.drain().flat_map(|(_, queue)| queue) {
            self.completed.push(Completion {
                started: next.started,
                ..Completion::at_once(next.op, now, Outcome::InFlight)
            });
        }
        self.waiting_count = 0;
    }

    fn rate_limit(&self) -> Option<&RateLimit> {
        self.inner.rate_limit()
    }

    fn finish(&mut self, end: Nanos) -> ClientSummary {
        self.inner.finish(end)
    }

    fn tally(&self) -> Tally {
        let inner = self.inner.tally();
        Tally { in_flight: inner.in_flight + self.waiting_count, ..inner }
    }
}
