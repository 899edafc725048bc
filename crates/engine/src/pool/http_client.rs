//! The HTTP client of one worker: carries operations over connections, ends each in a Completion.

mod carry;
mod config;
mod connection;
mod followed;
mod manage;
mod place;
mod policy;

pub(crate) use config::ClientConfig;
use connection::{Connection, State};
use followed::Followed;
pub(crate) use policy::{Kept, OneEach, Policy};

use super::client::{Client, Tally};
use super::completions::Completions;
use super::deadlines::Deadlines;
use super::flight::Flight;
use super::flights::{self, Flights};
use super::ready::Ready;
use super::requests::RequestSet;
use crate::exchange::{Exchange, Tell};
use crate::link::Link;
use crate::reactor::{Backend, Event, EventTime};
use knee_core::both_ends::Sampler;
use knee_core::driver::{Gate, RateLimit};
use knee_core::measure::{Completion, Handshakes, Op, Outcome};
use knee_core::pool::Pool;
use knee_core::session::{Fills, ResponseReaders};
use knee_core::time::Nanos;

/// A connection that the server is to close is given so long, then closed from this side. The side
/// that closes first keeps the port in TIME_WAIT for a minute: better there than here.
const DRAIN_MAX: Nanos = Nanos::from_secs(1);

/// No connection.
const NONE: u32 = u32::MAX;

/// Carries operations over connections of one kind of link, exchange and policy. An operation of a
/// lane takes the lane's own connection; any other takes an idle one, the one used last; opens one
/// while fewer than the most are open; shares the one that carries fewest, where the exchange
/// permits that; or waits its turn, where the policy does. Knows nothing of schedules and
/// statistics.
pub(crate) struct HttpClient<L: Link, X: Exchange, P: Policy = Kept> {
    config: ClientConfig,
    policy: P,
    requests: RequestSet,
    link: L::Shared,
    exchange: X::Shared,
    connections: Vec<Connection<L, X>>,
    /// Slots without a connection.
    free: Vec<u32>,
    /// Slots whose connections have room, where operations have no lanes.
    ready: Ready,
    /// The slot of each lane.
    lanes: Vec<u32>,
    flights: Flights,
    waiting: Pool<Flight>,
    /// Operations that the target has not processed. They are placed again before the event that
    /// told so is over, so that each has a deadline where it waits.
    again: Vec<Flight>,
    /// Those of them that wait for the limit on operations per second.
    limited: Gate<Flight>,
    /// Slots with something to be sent, or that could not send, once all that is due has begun.
    dirty: Vec<u32>,
    /// Deadlines of operations that were sent.
    responding: Deadlines,
    /// Deadlines of connections that are being established, …
    connecting: Deadlines,
    /// … and of those that the server is to close. Apart, each come in order, or nearly.
    draining: Deadlines,
    told: Tell,
    /// What the holes of requests are filled with, by session.
    fills: Vec<Fills>,
    completed: Completions,
    tally: Tally,
    violation: Option<String>,
    reset: Option<String>,
    handshakes: Handshakes,
    followed: Followed,
}

impl<L: Link, X: Exchange, P: Policy> HttpClient<L, X, P> {
    /// A client without connections; of `link` and `exchange` all its connections are made.
    pub(crate) fn new(
        config: ClientConfig,
        policy: P,
        requests: RequestSet,
        link: L::Shared,
        exchange: X::Shared,
    ) -> HttpClient<L, X, P> {
        let slots = match P::WAITS {
            true => config.slots(),
            false => config.connections_max as usize,
        };
        HttpClient {
            connections: (0..slots).map(|_| Connection::default()).collect(),
            free: (0..slots as u32).rev().collect(),
            ready: Ready::new(slots),
            lanes: vec![NONE; config.lanes as usize],
            flights: Flights::default(),
            waiting: Pool::new(config.operations_max()),
            again: Vec::new(),
            limited: Gate::default(),
            dirty: Vec::new(),
            responding: Deadlines::new(slots),
            connecting: Deadlines::new(slots),
            draining: Deadlines::new(slots),
            told: Tell::default(),
            fills: Vec::new(),
            completed: Completions::default(),
            tally: Tally::default(),
            violation: None,
            reset: None,
            handshakes: Handshakes::default(),
            followed: Followed::default(),
            requests,
            link,
            exchange,
            config,
            policy,
        }
    }

    /// The same client, whose repeated requests count in this limit.
    pub(crate) fn within(mut self, limit: Option<RateLimit>) -> Self {
        self.limited = Gate::of(limit);
        self
    }

    /// The most operations under way at once.
    pub(crate) fn operations_max(&self) -> u32 {
        u32::try_from(self.config.operations_max()).unwrap_or(u32::MAX)
    }

    /// How many connections the backend must have room for.
    pub(crate) fn slots(&self) -> usize {
        self.connections.len()
    }
}

impl<L: Link, X: Exchange, P: Policy> Client for HttpClient<L, X, P> {
    const STARTS_SEND: bool = !X::MULTIPLEXED;

    fn start<B: Backend>(&mut self, io: &mut B, op: Op, now: Nanos) {
        self.tally.in_flight += 1;
        let until = op.intended + self.config.timeout;
        let flight = Flight::new(op, self.requests.pick(), until, now);
        self.place_in_time(io, flight, now);
    }

    #[inline]
    fn take_completed(&mut self) -> Option<&Completion> {
        self.completed.take()
    }

    #[inline]
    fn take_established(&mut self) -> Option<u32> {
        self.policy.take_established()
    }

    fn on_event<B: Backend>(&mut self, io: &mut B, slot: u32, event: Event<'_>, time: EventTime) {
        let now = time.seen;
        match event {
            Event::Received(piece) => self.on_bytes(io, slot, piece.bytes, time),
            Event::ReceivedLast(piece) => {
                self.on_bytes(io, slot, piece.bytes, time);
                // Where the bytes ended the connection, the slot is free or has a new one.
                let state = self.connections[slot as usize].state;
                if !matches!(state, State::Free | State::Connecting) {
                    self.on_end(io, slot, time);
                }
            }
            Event::Connected => self.on_connected(io, slot, now),
            Event::Written => self.on_written(io, slot, now),
            Event::Ended => self.on_end(io, slot, time),
            Event::Failed(error) => self.on_failure(io, slot, &error, now),
        }
    }

    #[inline]
    fn flush<B: Backend>(&mut self, io: &mut B, now: impl Fn() -> Nanos) {
        while let Some(slot) = self.dirty.pop() {
            let connection = &mut self.connections[slot as usize];
            connection.is_dirty = false;
            match connection.send_error.take() {
                None => self.send_out(io, slot, now()),
                Some(error) => self.on_failure(io, slot, &error, now()),
            }
        }
    }

    #[inline]
    fn next_deadline(&self) -> Nanos {
        debug_assert!(self.again.is_empty(), "each operation has a deadline");
        let first = |of: &Deadlines| of.first().map_or(Nanos::MAX, |(_, at)| at);
        first(&self.responding)
            .min(first(&self.connecting))
            .min(first(&self.draining))
            .min(self.waiting.next_deadline())
            .min(self.limited.next_deadline(|flight| flight.until))
    }

    fn next_due(&self) -> Nanos {
        self.limited.next_due()
    }

    fn rate_limit(&self) -> Option<&RateLimit> {
        self.limited.limit()
    }

    fn expire<B: Backend>(&mut self, io: &mut B, now: Nanos) {
        while let Some(flight) = self.limited.release(now) {
            self.place_in_time(io, flight, now);
        }
        while let Some((slot, at)) = self.connecting.first()
            && at <= now
        {
            self.expire_connect(io, slot, now);
        }
        while let Some((slot, at)) = self.draining.first()
            && at <= now
        {
            self.retire(io, slot, now);
        }
        while let Some((op, at)) = self.responding.first()
            && at <= now
        {
            self.expire_operation(io, op, now);
        }
        while let Some(flight) = self.waiting.expire(now) {
            self.complete(flight.unsent(Outcome::Timeout, now));
        }
        while let Some(flight) = self.limited.expire(|flight| flight.until <= now) {
            self.complete(flight.unsent(Outcome::Timeout, now));
        }
    }

    fn abandon(&mut self, now: Nanos) {
        for flight in self.limited.give_up() {
            self.complete(flight.unsent(Outcome::InFlight, now));
        }
        while let Some(flight) = self.waiting.abandon() {
            self.complete(flight.unsent(Outcome::InFlight, now));
        }
        let under_way: Vec<_> = self.flights.drain().collect();
        for flight in under_way {
            self.complete(match flight.sent {
                Nanos::ZERO => flight.unsent(Outcome::InFlight, now),
                _ => flight.ended(Outcome::InFlight, EventTime::seen(now)),
            });
        }
    }

    fn oldest_intended(&self) -> Option<Nanos> {
        if !P::WAITS {
            // Connects come and go within T, as many as there are.
            return None;
        }
        let connecting = self.connecting.iter().map(|(slot, _)| {
            let opener = self.connections[slot as usize].first;
            self.flights.get(opener).intended
        });
        // Those that are sent are in the order of their intended times, but for steps of sessions
        // that have time limits of their own.
        let responding = self.responding.first();
        let responding = responding.map(|(op, _)| self.flights.get(op).intended);
        let waiting = self.waiting.first().map(|flight| flight.intended);
        let others = [waiting, responding];
        others.into_iter().flatten().chain(connecting).min()
    }

    fn take_sampler(&mut self) -> Option<Sampler> {
        self.followed.take()
    }

    fn take_handshakes(&mut self) -> Handshakes {
        std::mem::take(&mut self.handshakes)
    }

    fn first_violation(&self) -> Option<String> {
        self.violation.clone()
    }

    fn first_reset(&self) -> Option<String> {
        self.reset.clone()
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

/// For steps of sessions, which begin one after another and know what their requests say.
impl<L: Link, X: Exchange, P: Policy> HttpClient<L, X, P> {
    /// Responses are read from now on, of so many sessions.
    pub(super) fn read_into(&mut self, readings: ResponseReaders, sessions: usize) {
        self.told.readings = Some(Box::new(readings));
        self.fills = vec![Fills::new(); sessions];
    }

    /// What was read of responses.
    #[inline]
    pub(super) fn readings(&mut self) -> Option<&mut ResponseReaders> {
        self.told.readings.as_deref_mut()
    }

    /// What the holes of a session's next request are filled with.
    #[inline]
    pub(super) fn fills(&mut self, session: u32) -> &mut Fills {
        &mut self.fills[session as usize]
    }

    /// Starts a step that has been made ready.
    pub(super) fn start_step<B: Backend>(&mut self, io: &mut B, flight: Flight, now: Nanos) {
        self.tally.in_flight += 1;
        self.place_in_time(io, flight, now);
    }

    /// The next step that has ended, in the order in which they did.
    #[inline]
    pub(super) fn take_step(&mut self) -> Option<Completion> {
        self.completed.take().copied()
    }

    /// Closes the connection of a lane on which nothing is under way.
    pub(super) fn close_lane<B: Backend>(&mut self, io: &mut B, lane: u32) {
        if let Some(&slot) = self.lanes.get(lane as usize)
            && slot != NONE
            && self.connections[slot as usize].first == flights::NONE
        {
            self.discard(io, slot);
        }
    }

    /// Finds a connection for an operation, unless its time is over.
    #[inline]
    fn place_in_time<B: Backend>(&mut self, io: &mut B, flight: Flight, now: Nanos) {
        if P::WAITS && flight.until <= now {
            // The generator came to it only after its time was over.
            return self.complete(flight.unsent(Outcome::Timeout, now));
        }
        self.place(io, flight, now);
    }

    #[inline]
    fn complete(&mut self, completion: Completion) {
        self.tally.in_flight -= 1;
        self.completed.push(completion);
    }
}

#[cfg(test)]
pub(super) mod tests;
