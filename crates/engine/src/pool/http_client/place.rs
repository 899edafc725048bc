//! Placement of operations on connections, or in the queue.

use super::{HttpClient, Policy, State};
use crate::exchange::{Conversation, FlightId};
use crate::link::Link;
use crate::pool::flight::Flight;
use crate::reactor::{Backend, EventTime};
use knee_load::measure::{Op, Outcome};
use knee_load::time::Nanos;

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// Gives the room of an open connection to waiting operations.
    #[inline]
    pub(super) fn fill(
        &mut self,
        io: &mut dyn Backend,
        slot: u32,
        (happened, now): (Nanos, Nanos),
    ) {
        if !self.lanes.is_empty() || !self.config.keep_alive {
            return;
        }
        loop {
            let connection = &mut self.connections[slot as usize];
            let (State::Open, Some(exchange)) = (connection.state, &connection.exchange) else {
                return;
            };
            if exchange.capacity(&self.exchange).operations == 0 {
                return self.ready.remove(slot);
            }
            let Some(flight) = self.waiting.take(now) else {
                let carries = self.connections[slot as usize].carries;
                return self.ready.insert(slot, carries);
            };
            // There was room once the response was here: what passed until the generator saw that
            // is its own delay, not a wait for a connection.
            let free_from = happened.max(flight.started);
            self.begin(io, slot, flight, (free_from, now));
        }
    }

    /// Handles an operation that the server has not processed: it goes again, unless refused too
    /// often, or if its connection was its own.
    pub(super) fn on_unprocessed(&mut self, slot: u32, op: FlightId, time: EventTime) {
        let mut flight = *self.end(slot, op);
        if P::WAITS && flight.may_go_again() {
            self.again.push(flight);
        } else {
            self.complete(flight.ended(Outcome::Unprocessed, time));
        }
    }

    /// Places operations again that the server has not processed.
    pub(super) fn begin_again(&mut self, io: &mut dyn Backend, now: Nanos) {
        while let Some(mut flight) = self.again.pop() {
            flight.repeated = true;
            flight.connected = Nanos::ZERO;
            if let Some(flight) = self.limited.pass(flight, now) {
                self.place_in_time(io, flight, now);
            }
        }
    }

    /// Finds a connection for an operation, or queues it.
    #[inline]
    pub(super) fn place(&mut self, io: &mut dyn Backend, mut flight: Flight, now: Nanos) {
        let lane = flight.lane;
        let found = match self.lanes.get(lane as usize) {
            Some(&slot) => (slot != super::NONE).then_some(slot),
            None => self.with_room(),
        };
        if let Some(slot) = found {
            return self.carry(io, slot, flight, now);
        }
        match self.free_slot(io, lane, now) {
            Some(slot) => self.open(io, slot, flight, now),
            None if !P::WAITS => self.complete(flight.unsent(Outcome::DescriptorExhausted, now)),
            None => {
                if !X::LEAVES_AT_ONCE && !flight.repeated {
                    // It waits for a stream, and not for a connection.
                    flight.placed = now;
                }
                self.waiting.push(flight.until, flight);
            }
        }
    }

    /// Begins an operation on a connection that was found for it.
    #[inline]
    fn carry(&mut self, io: &mut dyn Backend, slot: u32, flight: Flight, now: Nanos) {
        self.begin(io, slot, flight, (now, now));
        if !self.lanes.is_empty() || !self.config.keep_alive {
            return;
        }
        let connection = &self.connections[slot as usize];
        match &connection.exchange {
            Some(exchange) if exchange.capacity(&self.exchange).operations > 0 => {
                self.ready.insert(slot, connection.carries);
            }
            _ => self.ready.remove(slot),
        }
    }

    /// A connection for an operation without a lane: an idle one, or the one with the fewest
    /// operations if no other may be opened.
    #[inline]
    fn with_room(&mut self) -> Option<u32> {
        let (slot, carries) = self.ready.first()?;
        let most = u64::from(self.config.connections_max);
        (carries == 0 || self.tally.open >= most).then_some(slot)
    }

    /// A slot for a new connection of this lane. If there is none, takes that of the connection
    /// which has waited longest for the server to close it.
    fn free_slot(&mut self, io: &mut dyn Backend, lane: u32, now: Nanos) -> Option<u32> {
        let most = u64::from(self.config.connections_max);
        let is_pooled = lane == Op::ANY_LANE || self.lanes.is_empty();
        while P::WAITS && (self.free.is_empty() || (is_pooled && self.tally.open >= most)) {
            let (oldest, _) = self.draining.first()?;
            self.discard(io, oldest, now);
        }
        self.free.pop()
    }
}
