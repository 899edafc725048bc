//! The client of an overload: a connection for each operation, given up after T unless established.
//!
//! What the kernel does at a full accept queue decides what is seen here. Linux does not answer a
//! SYN that finds it full: that connect times out. Where it was not full when the SYN came but is
//! when the handshake's last ACK does, the server's kernel drops that ACK and every segment after
//! it, and keeps the connection half-open: it is established here and never there, nothing sent
//! over it is acknowledged ([`Outcome::Ghost`]), unless the client's retransmission or the server's
//! repeated SYN-ACK finds room in time. A connection in the accept queue is a whole one: its
//! request is acknowledged by the kernel though no server has seen it
//! ([`Outcome::ResponseTimeout`] if none does).

mod carry;

use super::client::{Client, Tally};
use super::deadlines::Deadlines;
use super::flight::{Flight, outcome_of, status_outcome};
use super::requests::RequestSet;
use crate::exchange::http1::{Eof, HeadCache, ResponseParser, Violation};
use crate::link::{HUNG_UP, Link};
use crate::reactor::{Backend, Close, Event, EventTime, Opening};
use crate::sys::socket::{RawAddress, TcpPhase};
use knee_core::measure::{Completion, Handshakes, Op, Outcome};
use knee_core::spec::CloseKind;
use knee_core::time::Nanos;
use std::io;

/// A server that said it would close, and did not, is given so long.
const DRAIN_MAX: Nanos = Nanos::from_secs(1);

/// A request of up to so many bytes fits into one segment of any path, so that nothing is held
/// back for want of TCP_NODELAY.
const SEGMENT_BYTES: usize = 500;

/// What a client needs to know before the run.
#[derive(Clone)]
pub(crate) struct ConnectConfig {
    /// Where to connect.
    pub address: RawAddress,
    /// Local addresses that connections come from, in turn; empty: the kernel's choice.
    pub sources: Vec<RawAddress>,
    /// Connections that may be open at once. One more ends for want of descriptors.
    pub slots: usize,
    /// A connect that is not established so long after its start is given up.
    pub patience: Nanos,
    /// A response that is not here so long after the intended time of its operation is given up.
    pub timeout: Nanos,
    /// How a connection is closed once its response is here, or was waited for in vain.
    pub close: CloseKind,
    /// The longest request, in bytes.
    pub request_bytes_max: usize,
}

/// Carries each operation over a connection of its own.
pub(crate) struct ConnectClient<L: Link> {
    config: ConnectConfig,
    requests: RequestSet,
    link: L::Shared,
    connections: Vec<Connection<L>>,
    /// Slots without a connection.
    free: Vec<u32>,
    next_source: usize,
    /// Deadlines of connects, of responses and of closes. Each kind comes in order, or nearly: kept
    /// apart, none has to be sorted in among the others.
    connecting: Deadlines,
    responding: Deadlines,
    draining: Deadlines,
    cache: HeadCache,
    completed: Vec<Completion>,
    established: Vec<u32>,
    tally: Tally,
    violation: Option<Violation>,
    handshakes: Handshakes,
}

struct Connection<L> {
    state: State,
    /// Once it is established.
    link: Option<L>,
    parser: ResponseParser,
    flight: Flight,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Free,
    Connecting,
    /// Established; its handshake goes on.
    Securing,
    Busy,
    /// Its response is here; the server is to close it.
    Draining,
}

impl<L> Default for Connection<L> {
    fn default() -> Connection<L> {
        Connection {
            state: State::Free,
            link: None,
            parser: ResponseParser::default(),
            flight: Flight::default(),
        }
    }
}

impl<L: Link> ConnectClient<L> {
    /// A client without connections.
    pub(crate) fn new(
        config: ConnectConfig,
        requests: RequestSet,
        link: L::Shared,
    ) -> ConnectClient<L> {
        let slots = config.slots;
        let mut connections = Vec::new();
        connections.resize_with(slots, Connection::default);
        ConnectClient {
            connections,
            free: (0..slots as u32).rev().collect(),
            next_source: 0,
            connecting: Deadlines::new(slots),
            responding: Deadlines::new(slots),
            draining: Deadlines::new(slots),
            cache: HeadCache::default(),
            completed: Vec::new(),
            established: Vec::new(),
            tally: Tally::default(),
            violation: None,
            handshakes: Handshakes::default(),
            link,
            requests,
            config,
        }
    }

    fn opening(&mut self) -> Opening<'_> {
        let from = self.config.sources.get(self.next_source);
        self.next_source += 1;
        if self.next_source >= self.config.sources.len() {
            self.next_source = 0;
        }
        Opening {
            to: &self.config.address,
            from,
            nodelay: self.config.request_bytes_max > SEGMENT_BYTES
                && self.config.address.family() != libc::AF_UNIX,
        }
    }

    /// Its response is here. In an orderly close whoever closes first keeps the port in TIME_WAIT
    /// for a minute: a server that announced that it will close is left to.
    fn served<B: Backend>(
        &mut self,
        io: &mut B,
        slot: u32,
        (status, keep_alive): (u16, bool),
        time: EventTime,
    ) {
        let connection = &mut self.connections[slot as usize];
        let completion = connection
            .flight
            .answered(served_outcome(status), status, time);
        connection.state = State::Draining;
        self.complete(completion);
        if keep_alive || self.config.close == CloseKind::Rst {
            return self.discard(io, slot, self.how());
        }
        self.responding.clear(slot);
        self.draining.set(slot, time.seen + DRAIN_MAX);
    }

    fn on_end<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        match connection.state {
            State::Free => {}
            State::Draining => self.discard(io, slot, self.how()),
            State::Connecting => self.end(io, slot, Outcome::Closed, now),
            State::Securing => {
                self.on_bad_link(io, slot, HUNG_UP.to_owned(), now);
            }
            State::Busy => {
                let outcome = match connection.parser.at_eof() {
                    Eof::Done { status } => {
                        let time = EventTime::seen(now);
                        return self.served(io, slot, (status, true), time);
                    }
                    Eof::Truncated => Outcome::Truncated,
                    Eof::Closed => Outcome::Closed,
                };
                self.end(io, slot, outcome, now);
            }
        }
    }

    fn on_failure<B: Backend>(&mut self, io: &mut B, slot: u32, error: &io::Error, now: Nanos) {
        let gave_up = error.kind() == io::ErrorKind::TimedOut;
        match self.connections[slot as usize].state {
            State::Free => {}
            State::Draining => self.discard(io, slot, Close::Orderly),
            State::Connecting if gave_up => self.end(io, slot, Outcome::ConnectTimeout, now),
            State::Busy if gave_up => self.give_up_response(io, slot, now),
            State::Connecting | State::Securing | State::Busy => {
                self.end(io, slot, outcome_of_open(error), now);
            }
        }
    }

    /// Ends an operation whose response is none.
    fn refuse<B: Backend>(&mut self, io: &mut B, slot: u32, violation: Violation, now: Nanos) {
        self.violation.get_or_insert(violation);
        self.end(io, slot, Outcome::Malformed, now);
    }

    /// Gives up a connect. Closing a socket that only ever sent a SYN sends nothing; one that was
    /// established meanwhile is closed as any other.
    fn give_up_connect<B: Backend>(&mut self, io: &mut B, slot: u32, outcome: Outcome, now: Nanos) {
        let how = match outcome {
            Outcome::Late => self.how(),
            _ => Close::Orderly,
        };
        let completion = self.connections[slot as usize].flight.unsent(outcome, now);
        self.complete(completion);
        self.discard(io, slot, how);
    }

    /// Gives up a response: whether the server's host ever took the connection in is told by
    /// whether it acknowledged the request.
    fn give_up_response<B: Backend>(&mut self, io: &mut B, slot: u32, now: Nanos) {
        let outcome = match io.tcp_state(slot) {
            Some(state) if !state.is_acknowledged => Outcome::Ghost,
            _ => Outcome::ResponseTimeout,
        };
        self.end(io, slot, outcome, now);
    }

    /// Ends the operation of a connection, and the connection with it.
    fn end<B: Backend>(&mut self, io: &mut B, slot: u32, outcome: Outcome, now: Nanos) {
        let connection = &self.connections[slot as usize];
        let completion = match connection.state {
            State::Connecting | State::Securing => connection.flight.unsent(outcome, now),
            _ => connection.flight.ended(outcome, EventTime::seen(now)),
        };
        self.complete(completion);
        self.discard(io, slot, self.how());
    }

    fn how(&self) -> Close {
        match self.config.close {
            CloseKind::Fin => Close::Orderly,
            CloseKind::Rst => Close::Reset,
        }
    }

    fn discard<B: Backend>(&mut self, io: &mut B, slot: u32, how: Close) {
        io.close(slot, how);
        self.connecting.clear(slot);
        self.responding.clear(slot);
        self.draining.clear(slot);
        let connection = &mut self.connections[slot as usize];
        (connection.state, connection.link) = (State::Free, None);
        self.tally.open -= 1;
        self.free.push(slot);
    }

    #[inline]
    fn complete(&mut self, completion: Completion) {
        self.tally.in_flight -= 1;
        self.completed.push(completion);
    }
}

impl<L: Link> Client for ConnectClient<L> {
    fn start<B: Backend>(&mut self, io: &mut B, op: Op, now: Nanos) {
        self.tally.in_flight += 1;
        let mut flight = Flight::new(op, self.requests.pick(), Nanos::MAX, now);
        let Some(slot) = self.free.pop() else {
            return self.complete(flight.unsent(Outcome::DescriptorExhausted, now));
        };
        if let Err(error) = io.open(slot, self.opening()) {
            self.free.push(slot);
            return self.complete(flight.unsent(outcome_of_open(&error), now));
        }
        flight.placed = now;
        flight.connection = slot;
        self.tally.opened += 1;
        self.tally.open += 1;
        self.tally.open_max = self.tally.open_max.max(self.tally.open);
        self.connecting.set(slot, now + self.config.patience);
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Connecting;
        connection.flight = flight;
    }

    #[inline]
    fn take_completed(&mut self) -> Option<Completion> {
        self.completed.pop()
    }

    #[inline]
    fn take_established(&mut self) -> Option<u32> {
        self.established.pop()
    }

    fn on_event<B: Backend>(&mut self, io: &mut B, slot: u32, event: Event<'_>, time: EventTime) {
        let now = time.seen;
        match event {
            Event::Received(piece) => self.on_bytes(io, slot, piece.bytes, time),
            Event::ReceivedLast(piece) => {
                self.on_bytes(io, slot, piece.bytes, time);
                self.on_end(io, slot, now);
            }
            Event::Connected => self.on_connected(io, slot, now),
            Event::Written => self.on_written(io, slot, now),
            Event::Ended => self.on_end(io, slot, now),
            Event::Failed(error) => self.on_failure(io, slot, &error, now),
        }
    }

    #[inline]
    fn next_deadline(&self) -> Nanos {
        let all = [&self.connecting, &self.responding, &self.draining];
        let first = all.map(|d| d.first().map_or(Nanos::MAX, |(_, at)| at));
        first[0].min(first[1]).min(first[2])
    }

    fn expire<B: Backend>(&mut self, io: &mut B, now: Nanos) {
        while let Some((slot, at)) = self.connecting.first()
            && at <= now
        {
            if self.connections[slot as usize].state == State::Securing {
                self.end(io, slot, Outcome::HandshakeTimeout, now);
                continue;
            }
            match io.tcp_state(slot).map(|state| state.phase) {
                // Its answer may lie unread: then it was established, if only just.
                Some(TcpPhase::Established) => {
                    self.give_up_connect(io, slot, Outcome::Late, now);
                }
                // It has failed, and the event that tells how is under way.
                Some(TcpPhase::Closed) => self.connecting.set(slot, now + self.config.patience),
                Some(TcpPhase::Connecting) | None => {
                    self.give_up_connect(io, slot, Outcome::ConnectTimeout, now);
                }
            }
        }
        while let Some((slot, at)) = self.responding.first()
            && at <= now
        {
            self.give_up_response(io, slot, now);
        }
        while let Some((slot, at)) = self.draining.first()
            && at <= now
        {
            self.discard(io, slot, self.how());
        }
    }

    fn abandon(&mut self, now: Nanos) {
        for slot in 0..self.connections.len() {
            let connection = &mut self.connections[slot];
            let completion = match connection.state {
                State::Busy => {
                    let time = EventTime::seen(now);
                    connection.flight.ended(Outcome::InFlight, time)
                }
                State::Connecting | State::Securing => {
                    connection.flight.unsent(Outcome::InFlight, now)
                }
                State::Draining | State::Free => continue,
            };
            connection.state = State::Draining;
            self.complete(completion);
        }
    }

    fn take_handshakes(&mut self) -> Handshakes {
        std::mem::take(&mut self.handshakes)
    }

    fn first_violation(&self) -> Option<String> {
        self.violation.map(|v| v.to_string())
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

/// Of a connection that was established in time. A server that says no has not served, however
/// quickly it does so.
fn served_outcome(status: u16) -> Outcome {
    match status_outcome(status) {
        Outcome::Ok => Outcome::Served,
        refused => refused,
    }
}

/// What an error of the operating system means for an operation that has a connection of its own.
fn outcome_of_open(error: &io::Error) -> Outcome {
    match error.raw_os_error() {
        Some(libc::EADDRNOTAVAIL) => Outcome::PortExhausted,
        Some(libc::EMFILE | libc::ENFILE) => Outcome::DescriptorExhausted,
        _ => outcome_of(error),
    }
}

#[cfg(test)]
mod tests;
