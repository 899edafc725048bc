//! The HTTP client of one worker: carries operations over connections, ends each in a Completion.

mod config;
mod connection;
mod followed;

pub(crate) use config::ClientConfig;
use connection::{Connection, State, earliest, only_empty_lines};
use followed::Followed;

use super::client::{Client, Tally};
use super::deadlines::Deadlines;
use super::flight::{Flight, outcome_of, status_outcome};
use super::requests::RequestSet;
use crate::exchange::http1::{Eof, HeadCache, Progress, Violation};
use crate::reactor::{Backend, Close, Event, EventTime, Opening};
use knee_core::both_ends::Sampler;
use knee_core::measure::{Completion, Op, Outcome};
use knee_core::pool::Pool;
use knee_core::time::Nanos;
use std::collections::VecDeque;
use std::io;

/// A connection that the server is to close is given so long, then closed from this side. The side
/// that closes first keeps the port in TIME_WAIT for a minute: better there than here.
const DRAIN_MAX: Nanos = Nanos::from_secs(1);

/// No connection.
const NONE: u32 = u32::MAX;

/// Carries operations over connections. An operation of a lane takes the lane's own connection; any
/// other takes the idle one that was used last, opens one while fewer than the most are open, or
/// waits its turn. Knows nothing of schedules and statistics.
pub(crate) struct HttpClient {
    config: ClientConfig,
    requests: RequestSet,
    connections: Vec<Connection>,
    /// Slots without a connection.
    free: Vec<u32>,
    /// Slots with a connection that nobody uses, the last used last.
    idle: Vec<u32>,
    /// The slot of each lane.
    lanes: Vec<u32>,
    waiting: Pool<Flight>,
    /// Slots that began to drain, the first first; some have been closed since.
    draining: VecDeque<u32>,
    deadlines: Deadlines,
    cache: HeadCache,
    completed: Vec<Completion>,
    tally: Tally,
    violation: Option<Violation>,
    followed: Followed,
}

impl HttpClient {
    /// A client without connections. `capacity` slots: see [`ClientConfig::slots`].
    pub(crate) fn new(config: ClientConfig, requests: RequestSet) -> HttpClient {
        let slots = config.slots();
        HttpClient {
            connections: (0..slots).map(|_| Connection::default()).collect(),
            free: (0..slots as u32).rev().collect(),
            idle: Vec::new(),
            lanes: vec![NONE; config.lanes as usize],
            waiting: Pool::new(config.connections_max.into(), config.timeout),
            draining: VecDeque::new(),
            deadlines: Deadlines::new(slots),
            cache: HeadCache::default(),
            completed: Vec::new(),
            tally: Tally::default(),
            violation: None,
            followed: Followed::default(),
            requests,
            config,
        }
    }
}

impl Client for HttpClient {
    fn start<B: Backend>(&mut self, io: &mut B, op: Op, now: Nanos) {
        self.tally.in_flight += 1;
        let flight = Flight::new(op, self.requests.pick(), now);
        if flight.intended + self.config.timeout <= now {
            // The generator came to it only after its time was over.
            return self.complete(flight.unsent(Outcome::Timeout, now));
        }
        self.place(io, flight, now);
    }

    #[inline]
    fn take_completed(&mut self) -> Option<Completion> {
        self.completed.pop()
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
                    self.on_end(io, slot, now);
                }
            }
            Event::Connected => self.on_connected(io, slot, now),
            Event::Written => self.connections[slot as usize].flight.written = now,
            Event::Ended => self.on_end(io, slot, now),
            Event::Failed(error) => self.on_failure(io, slot, &error, now),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Nanos {
        self.deadlines
            .first()
            .map_or(Nanos::MAX, |(_, at)| at)
            .min(self.waiting.next_deadline())
    }

    fn expire<B: Backend>(&mut self, io: &mut B, now: Nanos) {
        while let Some((slot, at)) = self.deadlines.first()
            && at <= now
        {
            let connection = &self.connections[slot as usize];
            let late = connection.flight.intended + self.config.timeout <= now;
            match connection.state {
                State::Draining => self.retire(io, slot, now),
                State::Connecting if !late => {
                    self.fail(io, slot, Outcome::ConnectTimeout, now);
                }
                _ => self.fail(io, slot, Outcome::Timeout, now),
            }
        }
        while let Some(flight) = self.waiting.expire(now) {
            self.complete(flight.unsent(Outcome::Timeout, now));
        }
    }

    fn abandon(&mut self, now: Nanos) {
        while let Some(flight) = self.waiting.abandon() {
            self.complete(flight.unsent(Outcome::InFlight, now));
        }
        for slot in 0..self.connections.len() {
            let connection = &mut self.connections[slot];
            let completion = match connection.state {
                State::Busy => {
                    let time = EventTime::seen(now);
                    connection.flight.ended(Outcome::InFlight, time)
                }
                State::Connecting => connection.flight.unsent(Outcome::InFlight, now),
                _ => continue,
            };
            connection.state = State::Idle;
            self.complete(completion);
        }
    }

    fn oldest_intended(&self) -> Option<Nanos> {
        let waiting = self.waiting.oldest_intended();
        let mut connecting = None;
        for (slot, _) in self.deadlines.iter() {
            let Connection { state, flight, .. } = &self.connections[slot as usize];
            let oldest = |known: Option<Nanos>| {
                known.map_or(flight.intended, |known| known.min(flight.intended))
            };
            match state {
                // Those that are sent are in the order of their intended times.
                State::Busy => return Some(oldest(earliest(waiting, connecting))),
                State::Connecting => connecting = Some(oldest(connecting)),
                State::Draining | State::Idle | State::Free => {}
            }
        }
        earliest(waiting, connecting)
    }

    fn take_sampler(&mut self) -> Option<Sampler> {
        self.followed.take()
    }

    fn first_violation(&self) -> Option<Violation> {
        self.violation
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

impl HttpClient {
    /// Finds a connection for an operation, or queues it.
    #[inline]
    fn place<B: Backend>(&mut self, io: &mut B, flight: Flight, now: Nanos) {
        let lane = flight.lane;
        let ready = match self.lanes.get(lane as usize) {
            Some(&slot) => (slot != NONE).then_some(slot),
            None => self.idle.pop(), // the one used last: its caches are warm, the others may rest
        };
        if let Some(slot) = ready {
            return self.send(io, slot, flight, now);
        }
        match self.free_slot(io, lane) {
            Some(slot) => self.open(io, slot, flight, now),
            None if flight.repeated => self.waiting.push_again(flight.intended, flight),
            None => self.waiting.push(flight.intended, flight),
        }
    }

    /// A slot for a new connection of this lane. Where there is none, the connection that has
    /// waited longest for the server to close it gives up its own.
    fn free_slot<B: Backend>(&mut self, io: &mut B, lane: u32) -> Option<u32> {
        let most = u64::from(self.config.connections_max);
        while self.free.is_empty() || (lane == Op::ANY_LANE && self.tally.open >= most) {
            let oldest = self.draining.pop_front()?;
            if self.connections[oldest as usize].state == State::Draining {
                self.discard(io, oldest);
            }
        }
        self.free.pop()
    }

    fn open<B: Backend>(&mut self, io: &mut B, slot: u32, mut flight: Flight, now: Nanos) {
        if flight.placed == Nanos::ZERO {
            flight.placed = now;
        }
        if let Err(error) = io.open(slot, Opening::to(&self.config.address)) {
            self.free.push(slot);
            return self.complete(flight.unsent(outcome_of(&error), now));
        }
        if let Some(lane) = self.lanes.get_mut(flight.lane as usize) {
            *lane = slot;
        }
        self.tally.opened += 1;
        self.tally.open += 1;
        self.tally.open_max = self.tally.open_max.max(self.tally.open);
        let patience =
            (flight.intended + self.config.timeout).min(now + self.config.connect_timeout);
        self.deadlines.set(slot, patience);
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Connecting;
        connection.flight = flight;
        connection.uses = 0;
    }

    #[inline]
    fn send<B: Backend>(&mut self, io: &mut B, slot: u32, mut flight: Flight, now: Nanos) {
        flight.sent = now;
        flight.written = Nanos::ZERO;
        flight.connection = slot;
        flight.bytes_sent = self.requests.length(flight.request);
        self.deadlines
            .set(slot, flight.intended + self.config.timeout);
        let connection = &mut self.connections[slot as usize];
        if flight.placed == Nanos::ZERO {
            flight.placed = now;
        }
        // What a first attempt took, whose connection the server closed, counts as connecting.
        flight.connected = match connection.state == State::Connecting || flight.repeated {
            true => now,
            false => flight.placed,
        };
        connection.state = State::Busy;
        connection.flight = flight;
        connection.uses += 1;
        self.followed.sent(slot, flight.bytes_sent);
        connection
            .parser
            .begin(self.requests.is_head(flight.request));
        match io.send(slot, flight.request) {
            Ok(()) if io.is_sending(slot) => {}
            // The time before the call: what the kernel does in it is a part of the path.
            Ok(()) => self.connections[slot as usize].flight.written = now,
            Err(error) => self.on_failure(io, slot, &error, now),
        }
    }

    fn on_connected<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        let flight = self.connections[slot as usize].flight;
        self.followed.connected(io, slot, now);
        self.send(io, slot, flight, now);
    }

    #[inline]
    fn on_bytes<B: Backend>(&mut self, io: &mut B, slot: u32, bytes: &[u8], time: EventTime) {
        let now = time.seen;
        let connection = &mut self.connections[slot as usize];
        match connection.state {
            State::Busy => {}
            State::Idle => return self.on_unasked(io, slot, bytes),
            _ => return,
        }
        let time = connection.flight.received(bytes.len(), time);
        self.followed.received(slot, bytes.len());
        match connection.parser.feed(bytes, &mut self.cache) {
            Progress::NeedMore => {}
            Progress::Malformed(violation) => self.refuse(io, slot, violation, now),
            Progress::Done {
                status,
                keep_alive,
                surplus,
            } => {
                let is_in_step = only_empty_lines(&bytes[bytes.len() - surplus..]);
                self.tally.surplus += u64::from(!is_in_step);
                let is_whole = !io.is_sending(slot);
                if !is_whole {
                    connection.flight.bytes_sent = 0;
                }
                let completion = connection
                    .flight
                    .answered(status_outcome(status), status, time);
                self.waiting.note(now - connection.flight.placed, true);
                self.followed
                    .ended(slot, &completion, is_whole && is_in_step);
                if !is_whole || !is_in_step {
                    // The answer came before the request's body was sent, and what is left of the
                    // body must not be taken for the next request (RFC 9112 §9.3); or what came
                    // after the answer must not be taken for the next one.
                    self.retire(io, slot, now);
                } else {
                    self.release(io, slot, keep_alive, time);
                }
                self.complete(completion);
            }
        }
    }

    /// Bytes on a connection that nobody uses. However they come, with a response, after it or in
    /// pieces, that response stays what it was, and the connection is given up: the server is out
    /// of step. Empty lines mean nothing, and 408 is how some servers announce that they close.
    fn on_unasked<B: Backend>(&mut self, io: &mut B, slot: u32, bytes: &[u8]) {
        if only_empty_lines(bytes) {
            return;
        }
        let closes = bytes.starts_with(b"HTTP/1.") && bytes.get(8..12) == Some(b" 408");
        self.tally.surplus += u64::from(!closes);
        self.forget_idle(io, slot);
    }

    fn on_end<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        match connection.state {
            State::Busy => {}
            State::Idle => return self.forget_idle(io, slot),
            State::Connecting => return self.fail(io, slot, Outcome::Closed, now),
            State::Draining | State::Free => return self.retire(io, slot, now),
        }
        match connection.parser.at_eof() {
            Eof::Done { status } => {
                let time = EventTime::seen(now);
                let completion = connection
                    .flight
                    .answered(status_outcome(status), status, time);
                self.waiting.note(now - connection.flight.placed, true);
                self.complete(completion);
                self.retire(io, slot, now);
            }
            Eof::Truncated => self.fail(io, slot, Outcome::Truncated, now),
            Eof::Closed if connection.may_repeat(&self.requests) => self.repeat(io, slot, now),
            Eof::Closed => self.fail(io, slot, Outcome::Closed, now),
        }
    }

    fn repeat<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        let mut flight = self.connections[slot as usize].flight;
        flight.repeated = true;
        flight.connected = Nanos::ZERO;
        self.discard(io, slot);
        self.place(io, flight, now);
    }

    fn on_failure<B: Backend>(&mut self, io: &mut B, slot: u32, error: &io::Error, now: Nanos) {
        match self.connections[slot as usize].state {
            State::Idle => self.forget_idle(io, slot),
            State::Draining | State::Free => self.retire(io, slot, now),
            State::Connecting if error.kind() == io::ErrorKind::TimedOut => {
                self.fail(io, slot, Outcome::ConnectTimeout, now);
            }
            State::Connecting | State::Busy => self.fail(io, slot, outcome_of(error), now),
        }
    }

    /// Ends an operation whose response is none.
    fn refuse<B: Backend>(&mut self, io: &mut B, slot: u32, violation: Violation, now: Nanos) {
        self.violation.get_or_insert(violation);
        self.fail(io, slot, Outcome::Malformed, now);
    }

    /// Ends the operation of a connection badly, and the connection with it.
    fn fail<B: Backend>(&mut self, io: &mut B, slot: u32, outcome: Outcome, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        if io.is_sending(slot) {
            connection.flight.bytes_sent = 0;
        }
        let completion = match connection.state {
            State::Connecting => connection.flight.unsent(outcome, now),
            _ => connection.flight.ended(outcome, EventTime::seen(now)),
        };
        if outcome == Outcome::Timeout {
            self.waiting.note(now - connection.flight.placed, false);
        }
        self.complete(completion);
        self.retire(io, slot, now);
    }

    /// A response is complete: the connection is free for the next, or is given up.
    #[inline]
    fn release<B: Backend>(&mut self, io: &mut B, slot: u32, keep_alive: bool, time: EventTime) {
        let now = time.seen;
        self.deadlines.clear(slot);
        let connection = &mut self.connections[slot as usize];
        if keep_alive && self.config.keep_alive {
            connection.state = State::Idle;
            if connection.flight.lane == Op::ANY_LANE {
                match self.waiting.take(now) {
                    Some(mut flight) => {
                        // The connection was free once the response was here: what passed until
                        // the generator saw that is its own delay, not a wait for a connection.
                        flight.placed = time.happened.max(flight.started);
                        self.send(io, slot, flight, now);
                    }
                    None => {
                        connection.idle_at = self.idle.len() as u32;
                        self.idle.push(slot);
                    }
                }
            }
            return;
        }
        connection.state = State::Draining;
        self.note_draining(slot);
        self.unlane(slot);
        self.deadlines.set(slot, now + DRAIN_MAX);
    }

    fn note_draining(&mut self, slot: u32) {
        let connections = &self.connections;
        while let Some(&first) = self.draining.front()
            && connections[first as usize].state != State::Draining
        {
            self.draining.pop_front();
        }
        self.draining.push_back(slot);
    }

    /// A connection that nobody used has ended.
    fn forget_idle<B: Backend>(&mut self, io: &mut B, slot: u32) {
        let at = self.connections[slot as usize].idle_at as usize;
        if self.idle.get(at) == Some(&slot) {
            self.idle.swap_remove(at);
            if let Some(&moved) = self.idle.get(at) {
                self.connections[moved as usize].idle_at = at as u32;
            }
        }
        self.discard(io, slot);
    }

    /// Gives a connection up; an operation that waits takes its place.
    fn retire<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        self.discard(io, slot);
        if let Some(flight) = self.waiting.take(now) {
            self.place(io, flight, now);
        }
    }

    fn discard<B: Backend>(&mut self, io: &mut B, slot: u32) {
        if self.connections[slot as usize].state == State::Free {
            return;
        }
        io.close(slot, Close::Orderly);
        self.deadlines.clear(slot);
        self.unlane(slot);
        self.connections[slot as usize].state = State::Free;
        self.tally.open -= 1;
        self.free.push(slot);
    }

    fn unlane(&mut self, slot: u32) {
        let lane = self.connections[slot as usize].flight.lane;
        if let Some(of_lane) = self.lanes.get_mut(lane as usize).filter(|s| **s == slot) {
            *of_lane = NONE;
        }
    }

    #[inline]
    fn complete(&mut self, completion: Completion) {
        self.tally.in_flight -= 1;
        self.completed.push(completion);
    }
}

#[cfg(test)]
mod tests;
