//! Events of conversations: what becomes of operations and connections.

use super::connection::SendProgress;
use super::{DRAIN_MAX, HttpClient, Policy, State};
use crate::exchange::{ConnectionState, Conversation, FlightId, OpEvent};
use crate::link::Link;
use crate::pool::flight::Flight;
use crate::reactor::{Backend, EventTime};
use knee_load::measure::{Outcome, Status};
use knee_load::session::Fills;
use knee_load::time::Nanos;

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// Handles the events of a connection's exchange, then the state of the connection.
    #[inline]
    pub(super) fn handle_events(&mut self, io: &mut dyn Backend, slot: u32, time: EventTime) {
        let mut all = std::mem::take(&mut *self.events);
        let mut is_in_step = true;
        for event in all.drain(..) {
            match event {
                OpEvent::Received { op, bytes } => {
                    if self.is_established_by_answer() {
                        self.on_first_answer(slot);
                    }
                    self.flights.get_mut(op).received(bytes as usize, time);
                    self.await_message_of_head(op, time.seen);
                }
                OpEvent::Message(message) => self.on_message(message, time),
                OpEvent::MessageLeft { intended, at } => self.streams.left(intended, at),
                OpEvent::Answered { op, status } => {
                    is_in_step &= self.on_answer(io, slot, (op, status, is_in_step), time);
                }
                OpEvent::Delivered { op, bytes, left, at } => {
                    let flight = self.end(slot, op);
                    flight.bytes = bytes;
                    let time = EventTime { happened: at, ..time };
                    let completion = flight.delivered(left, time);
                    self.complete(completion);
                }
                OpEvent::Diverted(op) => {
                    let flight = self.end(slot, op);
                    let completion = flight.ended(Outcome::Ok, flight.no_earlier(time));
                    let until = flight.until;
                    self.tally.in_flight -= 1;
                    self.diverted.push((completion, until));
                }
                OpEvent::Failed { op, outcome } => self.on_failed(io, slot, op, outcome, time),
                OpEvent::Unprocessed(op) => self.on_unprocessed(slot, op, time),
                OpEvent::Written(op) => {
                    self.connections[slot as usize].leaving.push((op, SendProgress::End));
                }
                OpEvent::Resized { op, bytes } => self.flights.get_mut(op).bytes_sent = bytes,
                OpEvent::Violated(rule) => {
                    self.violation.get_or_insert(rule);
                }
                OpEvent::Reset(how) => {
                    self.reset.get_or_insert(how);
                }
                OpEvent::Opened => {
                    let connection = &self.connections[slot as usize];
                    self.handshakes.opening.record(time.happened - connection.secured);
                    if self.link.is_none() {
                        let took = connection.connected - connection.opened;
                        self.handshakes.connect.record(took);
                    }
                }
                // It has no operation yet, and ends where its handshake goes on.
                OpEvent::NotSecured(_) => {}
                OpEvent::NotOpened(outcome) => {
                    if let Some(flight) = self.waiting.take(time.seen) {
                        self.complete(flight.unsent(outcome, time.seen));
                    }
                }
                OpEvent::Unmatched => self.tally.unmatched += 1,
                OpEvent::Exhausted => self.tally.exhausted += 1,
                OpEvent::Surplus => {
                    self.tally.surplus += 1;
                    is_in_step = false;
                }
            }
        }
        *self.events = all;
        self.decide_use(io, slot, time, is_in_step);
        self.begin_again(io, time.seen);
    }

    /// Ends an operation whose response is complete. Returns whether the connection may carry
    /// another.
    #[inline]
    fn on_answer(
        &mut self,
        io: &dyn Backend,
        slot: u32,
        (op, status, is_in_step): (FlightId, Status, bool),
        time: EventTime,
    ) -> bool {
        let is_sending = self.is_sending(io, slot);
        let began_early = std::mem::take(&mut self.connections[slot as usize].began_early);
        let flight = self.end(slot, op);
        // What is being sent may be the end of the handshake.
        let is_whole =
            !X::LEAVES_AT_ONCE || !is_sending || (began_early && flight.written > Nanos::ZERO);
        if !is_whole {
            flight.bytes_sent = 0;
        }
        let time = flight.no_earlier(time);
        let completion = flight.answered(P::answered(status), status, time);
        let had_connection = time.seen - flight.placed;
        self.waiting.note(had_connection, true);
        if is_whole && is_in_step {
            if !X::LEAVES_AT_ONCE {
                self.followed.ended_among_others(slot, op, &completion);
            } else if began_early {
                self.followed.passed_over(slot);
            } else {
                self.followed.ended(slot, &completion);
            }
        }
        self.complete(completion);
        // An answer came before the request's body was sent. The rest of the body must not be taken
        // for the next request (RFC 9112 §9.3).
        is_whole
    }

    fn on_failed(
        &mut self,
        io: &dyn Backend,
        slot: u32,
        op: FlightId,
        outcome: Outcome,
        time: EventTime,
    ) {
        let is_sending = self.is_sending(io, slot);
        let uses = self.connections[slot as usize].uses;
        let mut flight = *self.end(slot, op);
        // A server may close an idle connection while a request is on its way
        // (RFC 9112 §9.3.1). Only an idempotent request, on a connection used before, and once.
        let may_repeat = outcome == Outcome::Closed
            && uses > 1
            && !flight.repeated
            && match self.fills.get(flight.session as usize).and_then(Fills::made) {
                Some(made) => made.is_idempotent(),
                None => self.requests.is_idempotent(flight.request),
            };
        if may_repeat {
            return self.again.push(flight);
        }
        Self::uncount_unless_sent(&mut flight, is_sending);
        self.complete(flight.ended(outcome, EventTime::seen(time.seen)));
    }

    /// Bytes of a request that has not left whole do not count as sent. `is_sending`: the kernel has
    /// not taken all that its connection is to send.
    pub(super) fn uncount_unless_sent(flight: &mut Flight, is_sending: bool) {
        if is_sending || (!X::LEAVES_AT_ONCE && flight.written == Nanos::ZERO) {
            flight.bytes_sent = 0;
        }
    }

    /// Whether the kernel has not taken all that is to be sent.
    pub(super) fn is_sending(&self, io: &dyn Backend, slot: u32) -> bool {
        io.is_sending(slot) || self.connections[slot as usize].sealing.is_some()
    }

    /// Removes an operation from its connection, to be ended.
    #[inline]
    pub(super) fn end(&mut self, slot: u32, op: FlightId) -> &mut Flight {
        let connection = &mut self.connections[slot as usize];
        self.responding.clear(op);
        connection.carries -= 1;
        if !X::LEAVES_AT_ONCE && !connection.leaving.is_empty() {
            connection.leaving.retain(|&(other, _)| other != op);
        }
        let flight = self.flights.remove(op, &mut connection.first);
        self.streams.end(&mut self.events, op, flight);
        flight
    }

    /// Decides the further use of an open connection.
    #[inline]
    pub(super) fn decide_use(
        &mut self,
        io: &mut dyn Backend,
        slot: u32,
        time: EventTime,
        is_in_step: bool,
    ) {
        let now = time.seen;
        let connection = &mut self.connections[slot as usize];
        let (State::Open, Some(exchange)) = (connection.state, &connection.exchange) else {
            return;
        };
        let keeps = self.config.keep_alive;
        let state = match (is_in_step, exchange.state()) {
            (false, _) => ConnectionState::Broken,
            (true, state) if connection.carries > 0 => state,
            // One that carries several is not closed by the server after one response.
            (true, ConnectionState::Open) if !X::LEAVES_AT_ONCE && !keeps => {
                ConnectionState::Broken
            }
            (true, state) => self.policy.idle(state, keeps),
        };
        let has_output = !connection.out.is_empty() || exchange.has_output();
        if !X::LEAVES_AT_ONCE && has_output {
            match state {
                ConnectionState::Broken => self.send_out(io, slot, now),
                ConnectionState::Open | ConnectionState::Closing => self.mark_dirty(slot),
            }
        }
        match state {
            ConnectionState::Open => {
                self.set_timer(slot);
                self.fill(io, slot, (time.happened, now));
            }
            ConnectionState::Broken => self.break_off(io, slot, now),
            ConnectionState::Closing => {
                self.ready.remove(slot);
                self.unlane(slot);
                if self.connections[slot as usize].carries == 0 {
                    self.drain(slot, now);
                }
            }
        }
    }

    /// Notes when a conversation is to be called again, if at all.
    #[inline]
    pub(super) fn set_timer(&mut self, slot: u32) {
        let exchange = self.connections[slot as usize].exchange.as_ref();
        self.timers.move_to(slot, exchange.map_or(Nanos::MAX, Conversation::poll_timeout));
    }

    /// Calls a conversation whose time has come.
    pub(super) fn on_timer(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        self.timers.clear(slot);
        let state = self.connections[slot as usize].state;
        let Some((exchange, mut cx)) = self.conversation(slot, now) else {
            return;
        };
        match state {
            State::Open => {
                exchange.handle_timeout(&mut cx);
                self.handle_events(io, slot, EventTime::seen(now));
            }
            State::Securing | State::Early if X::HAS_HANDSHAKE => {
                exchange.handle_timeout(&mut cx);
                self.go_on_securing(io, slot, now);
            }
            _ => {}
        }
    }

    /// Waits for the server to close a connection.
    fn drain(&mut self, slot: u32, now: Nanos) {
        self.connections[slot as usize].state = State::Draining;
        self.draining.set(slot, now + DRAIN_MAX);
    }
}
