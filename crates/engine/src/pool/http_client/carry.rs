//! Operations on open connections: requests out, responses in.

use super::connection::SendProgress;
use super::{Connection, GO_ON_PER_PASS, HttpClient, Policy, State};
use crate::exchange::{CallContext, Conversation, OpEvent, Received, RequestRef, StreamEnd};
use crate::link::Link;
use crate::pool::flight::Flight;
use crate::reactor::{Backend, EventTime, Payload};
use knee_load::measure::Outcome;
use knee_load::session::Fills;
use knee_load::time::Nanos;
use std::io;

/// Most bytes of a request that are sealed at once.
const SEAL_MAX: usize = 128 << 10;

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// The conversation of a connection, if it has one, and what a call at `now` may change.
    #[inline]
    pub(super) fn conversation(
        &mut self,
        slot: u32,
        now: Nanos,
    ) -> Option<(&mut X, CallContext<'_, X::Shared>)> {
        let connection = &mut self.connections[slot as usize];
        let (shared, events, out) = (&mut self.exchange, &mut self.events, &mut connection.out);
        Some((connection.exchange.as_mut()?, CallContext { now, shared, out, events }))
    }

    /// Begins an operation on an open connection with room for it since `free_from`.
    #[inline]
    pub(super) fn begin(
        &mut self,
        io: &mut dyn Backend,
        slot: u32,
        mut flight: Flight,
        (free_from, now): (Nanos, Nanos),
    ) {
        let connection = &mut self.connections[slot as usize];
        let Some(exchange) = &mut connection.exchange else {
            return self.complete(flight.unsent(Outcome::OtherError, now));
        };
        if flight.placed == Nanos::ZERO {
            flight.placed = free_from;
        }
        // What a first attempt took, whose connection the server closed, counts as connecting.
        flight.connected =
            if flight.repeated { now } else { flight.placed.max(connection.connected) };
        flight.secured = flight.connected.max(connection.secured);
        flight.granted = flight.secured.max(free_from);
        flight.is_targets_limit = exchange.capacity(&self.exchange).is_targets_limit;
        (flight.sent, flight.written) = (now, Nanos::ZERO);
        flight.connection = slot;
        flight.bytes_sent = self.requests.length(flight.request);
        if let Some(made) = self.fills.get(flight.session as usize).and_then(Fills::made) {
            flight.bytes_sent = made.length();
        }
        let op = self.flights.insert(flight, &mut connection.first);
        connection.uses += 1;
        connection.carries += 1;
        self.responding.set(op, flight.until);
        let (shared, events) = (&mut self.exchange, &mut self.events);
        let request = match self.fills.get(flight.session as usize) {
            None => RequestRef { intended: flight.intended, ..RequestRef::from(flight.request) },
            Some(fills) => {
                if let Some(readings) = &mut events.readings {
                    readings.begin(op, flight.session, flight.read_as as usize);
                    if let (Some(made), Some(kept)) = (fills.made(), readings.kept(flight.session))
                    {
                        kept.reads_body = made.reads_body;
                    }
                }
                RequestRef { number: flight.request, fills, intended: flight.intended }
            }
        };
        let out = &mut connection.out;
        exchange.start(op, request, &mut CallContext { now, shared, out, events });
        let read_as = if flight.session == Flight::NO_SESSION {
            flight.request
        } else {
            flight.read_as as usize
        };
        self.begin_stream(op, read_as, now);
        if X::LEAVES_AT_ONCE {
            self.send_out(io, slot, now);
        } else {
            self.followed.begun(op);
            self.note_leaving(slot, SendProgress::Whole);
            self.mark_dirty(slot);
        }
        self.set_timer(slot);
    }

    /// Notes requests that are in the outbox to their end, their lengths, and messages of requests.
    pub(super) fn note_leaving(&mut self, slot: u32, how: SendProgress) {
        let leaving = &mut self.connections[slot as usize].leaving;
        let (streams, flights) = (&mut self.streams, &mut self.flights);
        self.events.retain(|event| match event {
            OpEvent::Written(op) => {
                leaving.push((*op, how));
                false
            }
            OpEvent::MessageLeft { intended, at } => {
                streams.left(*intended, *at);
                false
            }
            OpEvent::Resized { op, bytes } => {
                flights.get_mut(*op).bytes_sent = *bytes;
                false
            }
            _ => true,
        });
    }

    #[inline]
    pub(super) fn mark_dirty(&mut self, slot: u32) {
        let connection = &mut self.connections[slot as usize];
        if !connection.is_dirty && connection.state != State::Free {
            connection.is_dirty = true;
            self.dirty.push(slot);
        }
    }

    /// Has connections with more to send flushed with those where operations begin.
    #[inline]
    pub(super) fn go_on(&mut self) {
        for _ in 0..self.going_on.len().min(GO_ON_PER_PASS) {
            if let Some(slot) = self.going_on.pop_front() {
                self.connections[slot as usize].goes_on = false;
                self.mark_dirty(slot);
            }
        }
    }

    /// Passes the outbox to the kernel, in one go.
    #[inline]
    pub(super) fn send_out(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        if connection.send_error.is_some() {
            return;
        }
        if io.is_busy(slot) {
            if connection.out.len() > self.unread_max {
                self.give_up_unread(slot);
            }
            return;
        }
        if let Some((exchange, mut cx)) = self.conversation(slot, now)
            && exchange.flush(&mut cx)
        {
            self.set_timer(slot);
        }
        let connection = &mut self.connections[slot as usize];
        let payload = if self.link.is_none() {
            match connection.out.take_request() {
                Some(request) => Payload::Registered(request),
                None if connection.out.is_empty() => return,
                None => {
                    let spare = io.buffer();
                    Payload::Owned(std::mem::replace(connection.out.bytes(), spare))
                }
            }
        } else {
            if !has_something(connection) {
                return;
            }
            let mut wire = io.buffer();
            seal(connection, &self.requests, &mut wire);
            if wire.is_empty() {
                return;
            }
            Payload::Owned(wire)
        };
        self.followed.sent(
            slot,
            match &payload {
                Payload::Registered(request) => self.requests.length(*request),
                Payload::Owned(bytes) => bytes.len() as u64,
            },
        );
        match io.send(slot, payload) {
            Ok(()) => {
                let is_taken = !io.is_busy(slot);
                // The time before the call: what the kernel does in it is a part of the path.
                self.on_sent(slot, now, is_taken || !io.is_sending(slot));
                if is_taken {
                    self.on_taken(slot, now);
                }
            }
            Err(error) => {
                self.connections[slot as usize].send_error = Some(error);
                self.mark_dirty(slot);
            }
        }
    }

    /// A server does not read: the connection is closed by the next flush.
    #[cold]
    fn give_up_unread(&mut self, slot: u32) {
        let limit = self.unread_max >> 20;
        self.violation.get_or_insert(format!("over {limit} MiB wait for the target to read them"));
        self.connections[slot as usize].send_error = Some(io::ErrorKind::Other.into());
        self.mark_dirty(slot);
    }

    /// The kernel took what was sent at `now`, whole or in part.
    #[inline]
    fn on_sent(&mut self, slot: u32, now: Nanos, is_whole: bool) {
        let connection = &mut self.connections[slot as usize];
        if X::LEAVES_AT_ONCE {
            if is_whole && connection.sealing.is_none() && connection.carries > 0 {
                // What goes out after the request is the link's own.
                let flight = self.flights.get_mut(connection.first);
                if flight.written == Nanos::ZERO {
                    flight.written = now;
                }
            }
            return;
        }
        for (op, how) in &mut connection.leaving {
            let flight = self.flights.get_mut(*op);
            // What was put in at once is handed over now, and no part of it earlier.
            if *how == SendProgress::Whole {
                flight.sent = now;
            }
            *how = SendProgress::Handed;
            if is_whole {
                flight.written = now;
                self.followed.written(slot, *op);
            }
        }
        if is_whole {
            connection.leaving.clear();
        }
    }

    /// The kernel took a whole payload within the call, so that no event reports it. What waited
    /// for that leaves in the next pass: no peer, however fast, keeps the worker from its timers.
    #[inline]
    fn on_taken(&mut self, slot: u32, now: Nanos) {
        let connection = &self.connections[slot as usize];
        if connection.sealing.is_none() {
            if X::LEAVES_AT_ONCE || !connection.state.carries() {
                return;
            }
            self.fill_outbox(slot, now);
        }
        let connection = &mut self.connections[slot as usize];
        let has_more = connection.sealing.is_some() || !connection.out.is_empty();
        if has_more && !connection.goes_on {
            connection.goes_on = true;
            self.going_on.push_back(slot);
        }
    }

    /// Has the conversation put out what waited until the kernel had all that was sent.
    #[inline]
    fn fill_outbox(&mut self, slot: u32, now: Nanos) {
        if let Some((exchange, mut cx)) = self.conversation(slot, now) {
            exchange.sent(&mut cx);
        }
        self.note_leaving(slot, SendProgress::End);
        self.set_timer(slot);
    }

    /// The kernel took the rest of an earlier payload at `now`. Anything put into the outbox since
    /// is not among it.
    fn on_rest_sent(&mut self, slot: u32, now: Nanos) {
        let leaving = &mut self.connections[slot as usize].leaving;
        leaving.retain(|&(op, how)| {
            let is_handed = how == SendProgress::Handed;
            if is_handed {
                self.flights.get_mut(op).written = now;
                self.followed.written(slot, op);
            }
            !is_handed
        });
    }

    /// The kernel has taken the rest of a payload, after the call.
    pub(super) fn on_written(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let connection = &self.connections[slot as usize];
        if connection.sealing.is_none() && connection.state.carries() {
            // What was written when it was handed over keeps that time.
            let first = connection.first;
            let is_new = |flight: &Flight| flight.written == Nanos::ZERO;
            if !X::LEAVES_AT_ONCE {
                self.on_rest_sent(slot, now);
            } else if connection.carries > 0 && is_new(self.flights.get(first)) {
                self.on_sent(slot, now, true);
            }
            self.fill_outbox(slot, now);
        }
        self.send_out(io, slot, now);
    }

    #[inline]
    pub(super) fn on_bytes(
        &mut self,
        io: &mut dyn Backend,
        slot: u32,
        bytes: &[u8],
        time: EventTime,
    ) {
        self.followed.received(slot, bytes.len());
        if self.link.is_none() {
            if self.connections[slot as usize].state == State::Open
                && let Some((exchange, mut cx)) = self.conversation(slot, time.seen)
            {
                exchange.receive(Received { bytes, at: time.happened }, &mut cx);
                if !X::LEAVES_AT_ONCE {
                    self.followed.came(slot, &self.events, [bytes.len(), 0]);
                }
                self.handle_events(io, slot, time);
            } else if X::HAS_HANDSHAKE
                && self.connections[slot as usize].state.is_securing()
                && let Some((exchange, mut cx)) = self.conversation(slot, time.seen)
            {
                exchange.receive(Received { bytes, at: time.happened }, &mut cx);
                self.go_on_securing(io, slot, time.seen);
            } else {
                self.on_tunnel_bytes(io, slot, bytes, time);
            }
            return;
        }
        if self.connections[slot as usize].state == State::Tunnelling {
            return self.on_tunnel_bytes(io, slot, bytes, time);
        }
        let mut rest = bytes;
        while self.connections[slot as usize].state.is_securing()
            && let Some(link) = &mut self.connections[slot as usize].link
            && !rest.is_empty()
        {
            if let Err(why) = link.secure(&mut rest) {
                return self.on_bad_link(io, slot, why, time.seen);
            }
            if link.is_secured() {
                self.on_secured(io, slot, time.seen);
            }
        }
        if self.connections[slot as usize].state.is_securing() {
            // In one go, and not what answers each record by itself: a request would wait for that.
            self.send_out(io, slot, time.seen);
        }
        if !rest.is_empty() {
            self.open_plain(io, slot, rest, time);
        }
    }

    /// Opens bytes of a secured connection and feeds the exchange.
    #[inline]
    fn open_plain(&mut self, io: &mut dyn Backend, slot: u32, wire: &[u8], time: EventTime) {
        let connection = &mut self.connections[slot as usize];
        let (Some(link), Some(exchange)) = (&mut connection.link, &mut connection.exchange) else {
            return;
        };
        if connection.state != State::Open {
            // What comes over a connection that is being closed matters to the link alone: it may
            // be tickets for the next.
            let _ = link.open(wire, |_, _| {});
            return;
        }
        let (shared, events, out) = (&mut self.exchange, &mut self.events, &mut connection.out);
        let mut cx = CallContext { now: time.seen, shared, out, events };
        let mut behind = wire.len();
        let opened = link.open(wire, |plain, left| {
            let before = cx.events.len();
            exchange.receive(Received { bytes: plain, at: time.happened }, &mut cx);
            if !X::LEAVES_AT_ONCE {
                self.followed.opened(slot, &cx.events[before..], [behind, left]);
            }
            behind = left;
        });
        let is_ended = opened.is_ok() && link.is_ended();
        if is_ended {
            // Before anything else can begin on it.
            exchange.ended(StreamEnd::CloseNotify, &mut cx);
        }
        self.handle_events(io, slot, time);
        if is_ended {
            self.on_announced_end(io, slot, time.seen);
        }
        // What came before may have ended the connection, or its slot may have another already.
        if let Err(why) = opened
            && self.connections[slot as usize].state == State::Open
        {
            self.on_bad_link(io, slot, why, time.seen);
        }
    }
}

/// Whether anything is to be sent.
fn has_something<L: Link, X>(connection: &Connection<L, X>) -> bool {
    let of_link = connection.link.as_ref().is_some_and(Link::has_wire);
    of_link || connection.sealing.is_some() || !connection.out.is_empty()
}

/// Seals what is to be sent.
fn seal<L: Link, X>(
    connection: &mut Connection<L, X>,
    requests: &crate::pool::requests::RequestSet,
    wire: &mut Vec<u8>,
) {
    let Some(link) = connection.link.as_mut() else {
        return;
    };
    link.take_wire(wire);
    if !link.is_secured() && !link.takes_early() {
        return;
    }
    if let Some(request) = connection.out.take_request() {
        connection.sealing = Some((request, 0));
    }
    if let Some((request, mut at)) = connection.sealing.take() {
        let until = at + SEAL_MAX;
        while let piece @ [_, ..] = requests.piece(request, at) {
            if at >= until {
                connection.sealing = Some((request, at));
                return;
            }
            let piece = &piece[..piece.len().min(until - at)];
            link.seal(piece, wire);
            at += piece.len();
        }
    }
    let bytes = connection.out.bytes();
    if !bytes.is_empty() {
        link.seal(bytes, wire);
        bytes.clear();
    }
}
