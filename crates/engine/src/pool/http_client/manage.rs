//! Life of connections: opened, secured, closed.

use super::connection::SendProgress;
use super::{HttpClient, NONE, OPENING_MAX, Policy, State};
use crate::exchange::{AfterCancel, CallContext, Conversation, OpEvent, StreamEnd};
use crate::link::{HUNG_UP, Link, fault_words};
use crate::pool::flight::Flight;
use crate::pool::flights;
use crate::reactor::{Backend, Close, EventTime};
use crate::sys::socket::SocketKind;
use knee_load::measure::{Op, Outcome};
use knee_load::session::Fills;
use knee_load::time::Nanos;
use std::io;

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// Opens a connection for an operation.
    pub(super) fn open(&mut self, io: &mut dyn Backend, slot: u32, mut flight: Flight, now: Nanos) {
        if flight.placed == Nanos::ZERO {
            flight.placed = now;
        }
        let limit = now + self.config.connect_timeout;
        let limit = if P::WAITS { flight.until.min(limit) } else { limit };
        if let Err(error) = self.connect(io, slot, flight.lane, (now, limit)) {
            return self.complete(flight.unsent(P::outcome_of(&error), now));
        }
        // Of an earlier attempt: nothing of it was sent over this connection.
        flight.sent = Nanos::ZERO;
        self.flights.insert(flight, &mut self.connections[slot as usize].first);
    }

    /// Begins to connect, at a time and up to a limit.
    fn connect(
        &mut self,
        io: &mut dyn Backend,
        slot: u32,
        lane: u32,
        (now, limit): (Nanos, Nanos),
    ) -> io::Result<()> {
        let next = self.config.addresses.take();
        let address = next.number;
        let opening = self.policy.opening(next, X::LEAVES_AT_ONCE);
        if let Err(error) = io.open(slot, opening.of_kind(X::socket(&self.exchange))) {
            self.free.push(slot);
            return Err(error);
        }
        if let Some(of_lane) = self.lanes.get_mut(lane as usize) {
            *of_lane = slot;
        }
        self.tally.opened += 1;
        self.tally.open += 1;
        self.tally.open_max = self.tally.open_max.max(self.tally.open);
        self.connecting.set(slot, limit);
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Connecting;
        (connection.lane, connection.address) = (lane, address);
        (connection.uses, connection.carries) = (0, 0);
        connection.began_early = false;
        (connection.opened, connection.connected) = (now, Nanos::ZERO);
        connection.first = flights::NONE;
        Ok(())
    }

    /// Connections of those opened at the start that may be opened now.
    #[inline]
    pub(super) fn may_open(&self) -> u32 {
        if self.unopened == 0 {
            return 0;
        }
        let opening = self.connecting.iter().take(OPENING_MAX as usize).count() as u32;
        self.unopened.min(OPENING_MAX - opening)
    }

    /// Opens one of the connections that are opened at the start. If it cannot be opened, that is
    /// left to the operation that needs it.
    pub(super) fn open_idle(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.unopened -= 1;
        let has_room = self.tally.open < u64::from(self.config.connections_max);
        if let Some(slot) = has_room.then(|| self.free.pop()).flatten() {
            let limit = now + self.config.connect_timeout;
            let _ = self.connect(io, slot, Op::ANY_LANE, (now, limit));
        }
    }

    pub(super) fn on_connected(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        if self.connections[slot as usize].state != State::Connecting {
            return;
        }
        self.config.addresses.answered(self.connections[slot as usize].address);
        if !self.asks_for_tunnel(io, slot, now) {
            self.on_reached(io, slot, now);
        }
    }

    /// A connection has come to the target, by itself or through a tunnel.
    pub(super) fn on_reached(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        connection.connected = now;
        if !P::WAITS && now >= connection.opened + self.config.connect_timeout {
            return self.fail(io, slot, Outcome::Late, now);
        }
        self.followed.connected(io, slot, now);
        let Some(shared) = &mut self.link else {
            if !X::HAS_HANDSHAKE {
                return self.on_secured(io, slot, now);
            }
            self.connections[slot as usize].state = State::Securing;
            self.begin_conversation(slot, now);
            if self.may_begin_early(slot) {
                self.begin_early(io, slot, now);
            }
            return self.go_on_securing(io, slot, now);
        };
        match L::new(shared) {
            Ok(link) => self.connections[slot as usize].link = Some(link),
            Err(why) => return self.on_bad_link(io, slot, why, now),
        }
        self.connections[slot as usize].state = State::Securing;
        if self.may_begin_early(slot) {
            self.begin_early(io, slot, now);
        }
        self.send_out(io, slot, now);
    }

    /// Whether the operation that a connection was opened for may send early data.
    fn may_begin_early(&self, slot: u32) -> bool {
        let connection = &self.connections[slot as usize];
        let takes = connection.link.as_ref().is_some_and(Link::takes_early)
            || connection.exchange.as_ref().is_some_and(Conversation::takes_early);
        takes && connection.first != flights::NONE && {
            let opener = self.flights.get(connection.first);
            match self.fills.get(opener.session as usize).and_then(Fills::made) {
                Some(made) => made.is_safe(),
                None => self.requests.is_safe(opener.request),
            }
        }
    }

    fn begin_early(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Early;
        connection.began_early = true;
        if connection.exchange.is_none() {
            self.begin_conversation(slot, now);
        }
        let connection = &mut self.connections[slot as usize];
        let opener = connection.first;
        let flight = *self.flights.remove(opener, &mut connection.first);
        self.begin(io, slot, flight, (now, now));
    }

    /// Goes on with the handshake of a conversation that has one of its own.
    pub(super) fn go_on_securing(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let connection = &self.connections[slot as usize];
        if let Some(exchange) = connection.exchange.as_ref().filter(|x| x.is_secured()) {
            exchange.note(&mut self.handshakes);
            self.handshakes.connect.record(connection.connected - connection.opened);
            self.handshakes.time.record(now - connection.connected);
            // An early request that was refused has been put out again.
            self.note_leaving(slot, SendProgress::Whole);
            self.on_secured(io, slot, now);
            return self.handle_events(io, slot, EventTime::seen(now));
        }
        let fault = self.events.drain(..).find_map(|event| match event {
            OpEvent::NotSecured(fault) => Some(fault),
            _ => None,
        });
        if let Some(fault) = fault {
            return self.on_bad_link(io, slot, fault_words(&fault), now);
        }
        self.set_timer(slot);
        self.send_out(io, slot, now);
    }

    fn begin_conversation(&mut self, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        let (shared, events, out) = (&mut self.exchange, &mut self.events, &mut connection.out);
        let exchange = X::established(&mut CallContext { now, shared, out, events });
        connection.exchange = Some(exchange);
    }

    /// Has the conversation of an open connection say that the generator closes it.
    pub(super) fn say_farewell(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        if self.connections[slot as usize].state == State::Open
            && let Some((exchange, mut cx)) = self.conversation(slot, now)
        {
            exchange.close(&mut cx);
            self.send_out(io, slot, now);
        }
    }

    /// Handles the end of the handshake on a connection that carries an operation already.
    fn on_secured_early(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        let op = connection.first;
        let is_taken = connection.link.as_ref().is_some_and(Link::is_early_taken)
            || connection.exchange.as_ref().is_some_and(Conversation::is_early_taken);
        if !is_taken {
            // Its request goes out once more, and only now for good.
            let flight = self.flights.get_mut(op);
            (flight.secured, flight.granted) = (now, now);
            (flight.sent, flight.written) = (now, Nanos::ZERO);
            if !X::LEAVES_AT_ONCE && !X::HAS_HANDSHAKE {
                connection.leaving = vec![(op, SendProgress::Whole)];
            }
        }
        self.policy.established(connection.lane);
        self.send_out(io, slot, now);
        self.decide_use(io, slot, EventTime::seen(now), true);
    }

    /// Handles the end of the handshake: the opening operation begins, then others that wait.
    pub(super) fn on_secured(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        connection.secured = now;
        let before = std::mem::replace(&mut connection.state, State::Open);
        if let Some(link) = &connection.link {
            link.note(&mut self.handshakes);
            self.handshakes.connect.record(connection.connected - connection.opened);
            self.handshakes.time.record(now - connection.connected);
        }
        if before == State::Early {
            self.connecting.clear(slot);
            return self.on_secured_early(io, slot, now);
        }
        if self.connections[slot as usize].exchange.is_none() {
            self.begin_conversation(slot, now);
        }
        let is_established = !self.is_established_by_answer();
        if is_established {
            self.connecting.clear(slot);
        }
        let connection = &mut self.connections[slot as usize];
        let opener = connection.first;
        let has_room = (connection.exchange.as_ref())
            .is_some_and(|x| x.capacity(&self.exchange).operations > 0);
        let flight =
            (opener != flights::NONE).then(|| *self.flights.remove(opener, &mut connection.first));
        if let Some(flight) = flight.as_ref().filter(|_| is_established) {
            self.policy.established(flight.lane);
        }
        match flight {
            Some(flight) if has_room => self.begin(io, slot, flight, (now, now)),
            opener => {
                if let Some(flight) = opener {
                    self.waiting.push(flight.until, flight);
                }
                // What a conversation says first goes out all the same: the target answers it with
                // its limits.
                self.send_out(io, slot, now);
            }
        }
        self.set_timer(slot);
        self.fill(io, slot, (now, now));
    }

    /// Whether nothing but the first answer shows that a connection is established: over datagrams,
    /// where that matters.
    #[inline]
    pub(super) fn is_established_by_answer(&self) -> bool {
        !P::WAITS && X::socket(&self.exchange) == SocketKind::Datagram && !X::HAS_HANDSHAKE
    }

    /// An answer came over a connection that nothing else shows to be established.
    pub(super) fn on_first_answer(&mut self, slot: u32) {
        if self.connecting.has(slot) {
            self.connecting.clear(slot);
            self.policy.established(self.connections[slot as usize].lane);
        }
    }

    pub(super) fn on_end(&mut self, io: &mut dyn Backend, slot: u32, time: EventTime) {
        let now = time.seen;
        match self.connections[slot as usize].state {
            State::Open => {}
            State::Connecting => return self.fail(io, slot, Outcome::Closed, now),
            State::Tunnelling => return self.on_tunnel_end(io, slot, now),
            State::Securing | State::Early => {
                return self.on_bad_link(io, slot, HUNG_UP.to_owned(), now);
            }
            State::Draining | State::Free => return self.retire(io, slot, now),
        }
        let end = if self.link.is_none() { StreamEnd::Fin } else { StreamEnd::Cut };
        if let Some((exchange, mut cx)) = self.conversation(slot, now) {
            exchange.ended(end, &mut cx);
        }
        // What ends with the connection ends when that was seen.
        self.handle_events(io, slot, EventTime::seen(now));
        if self.connections[slot as usize].state == State::Open {
            self.break_off(io, slot, now);
        }
    }

    /// Handles an announced end, once the operations are settled. Waits for the FIN, so that the
    /// server's port is in TIME_WAIT. No operation waits for that.
    pub(super) fn on_announced_end(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        if self.connections[slot as usize].state != State::Draining {
            return;
        }
        if self.is_sending(io, slot) {
            return self.retire(io, slot, now);
        }
        if let Some(flight) = self.waiting.take(now) {
            self.place(io, flight, now);
        }
    }

    pub(super) fn on_failure(
        &mut self,
        io: &mut dyn Backend,
        slot: u32,
        error: &io::Error,
        now: Nanos,
    ) {
        let gave_up = error.kind() == io::ErrorKind::TimedOut;
        match self.connections[slot as usize].state {
            State::Draining | State::Free => self.retire(io, slot, now),
            State::Connecting if gave_up => self.fail(io, slot, Outcome::ConnectTimeout, now),
            State::Open if gave_up => {
                let outcome = P::late_response(|| io.tcp_state(slot));
                self.fail(io, slot, outcome, now);
            }
            State::Connecting
            | State::Tunnelling
            | State::Securing
            | State::Early
            | State::Open => {
                self.fail(io, slot, P::outcome_of(error), now);
            }
        }
    }

    /// Handles a fault of TLS on either side.
    pub(super) fn on_bad_link(&mut self, io: &mut dyn Backend, slot: u32, why: String, now: Nanos) {
        let state = self.connections[slot as usize].state;
        // The peer learns what is wrong, where that is possible.
        self.send_out(io, slot, now);
        match state {
            State::Open => {
                self.violation.get_or_insert(why);
                self.fail(io, slot, Outcome::Malformed, now);
            }
            State::Connecting | State::Tunnelling | State::Securing | State::Early => {
                self.handshakes.fail(why);
                self.fail(io, slot, Outcome::HandshakeFailed, now);
            }
            // What comes after the last response means nothing.
            State::Draining | State::Free => self.retire(io, slot, now),
        }
    }

    /// Handles the timeout of a connection that is being established.
    pub(super) fn expire_connect(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        let connection = &mut self.connections[slot as usize];
        let is_over =
            |first| P::WAITS && first != flights::NONE && self.flights.get(first).until <= now;
        let outcome = match connection.state {
            State::Connecting | State::Tunnelling | State::Securing | State::Early
                if is_over(connection.first) =>
            {
                Outcome::Timeout
            }
            State::Tunnelling => Outcome::ConnectTimeout,
            State::Connecting => match P::late_connect(|| io.tcp_state(slot)) {
                Some(outcome) => outcome,
                None => return self.connecting.set(slot, now + self.config.connect_timeout),
            },
            State::Securing | State::Early => Outcome::HandshakeTimeout,
            State::Open => P::late_response(|| io.tcp_state(slot)),
            State::Draining | State::Free => return self.retire(io, slot, now),
        };
        if outcome == Outcome::Late {
            connection.connected = now;
        }
        self.fail(io, slot, outcome, now);
    }

    /// Handles the timeout of an operation, with an outcome of its own if not that of a late
    /// response. Its connection goes on if the exchange permits.
    pub(super) fn expire_operation(
        &mut self,
        io: &mut dyn Backend,
        op: u32,
        outcome: Option<Outcome>,
        now: Nanos,
    ) {
        let slot = self.flights.get(op).connection;
        let outcome = outcome.unwrap_or_else(|| P::late_response(|| io.tcp_state(slot)));
        let is_open = self.connections[slot as usize].state == State::Open;
        let after = match self.conversation(slot, now) {
            Some((exchange, mut cx)) if is_open => exchange.cancel(op, &mut cx),
            _ => AfterCancel::Broken,
        };
        if after == AfterCancel::Broken {
            return self.fail(io, slot, outcome, now);
        }
        let mut flight = *self.end(slot, op);
        Self::uncount_unless_sent(&mut flight, false);
        self.waiting.note(now - flight.placed, false);
        self.complete(flight.ended(outcome, EventTime::seen(now)));
        self.handle_events(io, slot, EventTime::seen(now));
    }

    /// Ends all operations of a connection with `outcome`, then closes it.
    pub(super) fn fail(&mut self, io: &mut dyn Backend, slot: u32, outcome: Outcome, now: Nanos) {
        let is_sending = self.is_sending(io, slot);
        loop {
            let connection = &mut self.connections[slot as usize];
            let op = connection.first;
            if op == flights::NONE {
                break;
            }
            let is_under_way = connection.state.carries();
            if is_under_way {
                connection.carries -= 1;
            }
            self.responding.clear(op);
            let mut flight = *self.flights.remove(op, &mut connection.first);
            self.streams.end(&mut self.events, op, &mut flight);
            Self::uncount_unless_sent(&mut flight, is_sending);
            if outcome == Outcome::Timeout {
                self.waiting.note(now - flight.placed, false);
            }
            self.complete(if is_under_way {
                flight.ended(outcome, EventTime::seen(now))
            } else {
                flight.unsent(outcome, now)
            });
        }
        self.retire(io, slot, now);
    }

    /// Closes a connection that must not be used again.
    pub(super) fn break_off(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        if self.connections[slot as usize].carries > 0 {
            return self.fail(io, slot, Outcome::Closed, now);
        }
        self.retire(io, slot, now);
    }

    /// Closes a connection. Operations that go again or wait take its place.
    pub(super) fn retire(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        self.discard(io, slot, now);
        self.begin_again(io, now);
        if let Some(flight) = self.waiting.take(now) {
            self.place(io, flight, now);
        }
    }

    pub(super) fn discard(&mut self, io: &mut dyn Backend, slot: u32, now: Nanos) {
        if self.connections[slot as usize].state == State::Free {
            return;
        }
        if X::HAS_HANDSHAKE
            && let Some((exchange, mut cx)) = self.conversation(slot, now)
        {
            // No FIN tells the peer.
            exchange.close(&mut cx);
            self.send_out(io, slot, now);
        }
        let connection = &self.connections[slot as usize];
        // One that only ever sent a SYN has nothing to reset.
        let how = match connection.connected {
            Nanos::ZERO => Close::Orderly,
            _ => self.policy.close(),
        };
        io.close(slot, how);
        self.connecting.clear(slot);
        self.draining.clear(slot);
        self.timers.clear(slot);
        self.ready.remove(slot);
        self.unlane(slot);
        let connection = &mut self.connections[slot as usize];
        connection.state = State::Free;
        (connection.link, connection.exchange, connection.sealing) = (None, None, None);
        connection.send_error = None;
        connection.out.clear();
        connection.leaving.clear();
        self.tally.open -= 1;
        self.free.push(slot);
    }

    /// Releases the lane of a connection.
    pub(super) fn unlane(&mut self, slot: u32) {
        let lane = self.connections[slot as usize].lane;
        if let Some(of_lane) = self.lanes.get_mut(lane as usize).filter(|s| **s == slot) {
            *of_lane = NONE;
        }
    }
}
