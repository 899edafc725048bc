//! The HTTP client of one worker: carries operations over connections.

mod carry;
mod connection;
mod followed;
mod handle_events;
mod manage;
mod place;
mod policy;
mod streams;
mod tunnel;

use connection::{Connection, State};
use followed::Followed;
pub(crate) use policy::{OnePerOperation, Policy, Pooled};
use streams::MessageStreams;
use tunnel::Tunnels;

use super::client::{Client, ClientSummary, HandoverQueue, Tally};
use super::deadlines::Deadlines;
use super::flight::Flight;
use super::flights::{self, Flights};
use super::ready::Ready;
use super::requests::RequestSet;
use super::step_client::StepClient;
use crate::addresses::AddressTurn;
use crate::exchange::{Conversation, EventQueue};
use crate::link::{Link, Tunnel};
use crate::reactor::{Backend, Event, EventTime};
use knee_load::driver::{Gate, RateLimit};
use knee_load::measure::{Completion, Handshakes, MessageEvent, Op, Outcome, RoutedConnections};
use knee_load::messages::StreamFaults;
use knee_load::pool::ConnectionQueue;
use knee_load::session::{Fills, ResponseReaders, SessionPlan};
use knee_load::time::Nanos;
use std::collections::VecDeque;

/// Time for the server to close a connection, before the client does. The side that closes first
/// keeps the port in TIME_WAIT for a minute, which a client cannot afford.
const DRAIN_MAX: Nanos = Nanos::from_secs(1);

/// Settings of a client, fixed before the run.
#[derive(Clone)]
pub(crate) struct ClientConfig {
    /// The addresses that connections go to.
    pub addresses: AddressTurn,
    /// The tunnel that they need; `None`: they end at the target.
    pub tunnel: Option<Tunnel>,
    /// The first of its slots: those before it are another client's.
    pub first_slot: u32,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// Most connections open at once.
    pub connections_max: u32,
    /// Number of lanes, each with its own connection; 0 in an open loop.
    pub lanes: u32,
    /// Most operations under way on one connection.
    pub(crate) streams_max: u32,
    /// Whether all connections are opened at the start, and take turns.
    pub keeps_all_open: bool,
    /// Time limit of an operation, from its intended time.
    pub timeout: Nanos,
    /// Time limit for establishing a connection.
    pub connect_timeout: Nanos,
}

impl ClientConfig {
    /// Most operations under way on all connections.
    fn operations_max(&self) -> u64 {
        u64::from(self.connections_max) * u64::from(self.streams_max)
    }

    /// Connections that the backend needs room for. A closed loop also has those that wait for the
    /// server to close them while their lane has a new one.
    pub(crate) fn slots(&self) -> usize {
        match self.lanes {
            0 => self.connections_max as usize,
            lanes => lanes as usize * if self.keep_alive { 2 } else { 8 } + 16,
        }
    }
}

/// Connections opened per pass where all are opened at the start. Bounds the time until operations
/// that are due start.
const OPENS_PER_PASS: u32 = 16;

/// Most connections that are being established while all are opened at the start. More would not
/// fit into the accept queue of many servers, and go on only after a second.
const OPENING_MAX: u32 = 100;

/// Connections per pass that send more of what a payload had no room for, 128 KiB each at most.
/// Bounds the time until the timers, as the reactor's bound on read bytes does.
const GO_ON_PER_PASS: usize = 8;

/// Most bytes of a connection that wait for the server to read, beside the requests that may be
/// under way. The rest are answers of the protocol, and requests whose operations are over.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// No connection.
const NONE: u32 = u32::MAX;

/// Carries operations over connections of one kind of link, conversation and policy. An operation
/// of a lane takes the lane's own connection. Any other takes an idle connection, or opens one, up
/// to the limit. Else it shares the one with the fewest operations, if that has room, or waits, if
/// the policy does. Has no schedule and no statistics.
pub(crate) struct HttpClient<L: Link, X: Conversation, P: Policy = Pooled> {
    config: ClientConfig,
    policy: P,
    requests: RequestSet,
    /// [`UNREAD_BYTES_MAX`] with the requests that may be under way.
    unread_max: usize,
    /// `None` in cleartext.
    link: Option<L::Shared>,
    exchange: X::Shared,
    connections: Vec<Connection<L, X>>,
    /// Slots without a connection.
    free: Vec<u32>,
    /// Slots of connections with room, for operations without lanes.
    ready: Ready,
    /// The slot of each lane.
    lanes: Vec<u32>,
    flights: Flights,
    waiting: ConnectionQueue<Flight>,
    /// Connections still to be opened at the start.
    unopened: u32,
    /// Operations that the target has not processed. They are placed again before the event is
    /// over, so that each has a deadline where it waits.
    again: Vec<Flight>,
    /// Operations to be sent again that wait for the limit on operations per second.
    limited: Gate<Flight>,
    /// Slots to be flushed once all due operations have begun.
    dirty: Vec<u32>,
    /// Slots with more to send in the next pass, in turn. The kernel has all that they sent so far,
    /// so no event goes on with them.
    going_on: VecDeque<u32>,
    /// Deadlines of sent operations.
    responding: Deadlines,
    /// Deadlines of connections that are being established.
    connecting: Deadlines,
    /// Deadlines of connections that the server is to close. Each list is nearly in order by
    /// itself.
    draining: Deadlines,
    /// Times at which conversations are to be called.
    timers: Deadlines,
    events: EventQueue,
    streams: MessageStreams,
    /// Values for the holes of requests, by session.
    fills: Vec<Fills>,
    completed: HandoverQueue<Completion>,
    /// Operations that go on elsewhere, as they ended here.
    diverted: Vec<(Completion, Nanos)>,
    tally: Tally,
    violation: Option<String>,
    reset: Option<String>,
    handshakes: Handshakes,
    followed: Followed,
    /// `None` where connections end at the target.
    tunnels: Option<Tunnels>,
}

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// Creates a client without connections.
    pub(crate) fn new(
        config: ClientConfig,
        policy: P,
        requests: RequestSet,
        link: Option<L::Shared>,
        exchange: X::Shared,
    ) -> HttpClient<L, X, P> {
        let own = if P::WAITS { config.slots() } else { config.connections_max as usize };
        let slots = config.first_slot as usize + own;
        let under_way = (config.streams_max as usize).saturating_mul(requests.length_max());
        HttpClient {
            unread_max: under_way.saturating_add(UNREAD_BYTES_MAX),
            connections: (0..slots).map(|_| Connection::default()).collect(),
            free: (config.first_slot..slots as u32).rev().collect(),
            ready: Ready::new(slots, config.keeps_all_open),
            unopened: if config.keeps_all_open { config.connections_max } else { 0 },
            lanes: vec![NONE; config.lanes as usize],
            flights: Flights::default(),
            waiting: ConnectionQueue::new(config.operations_max()),
            again: Vec::new(),
            limited: Gate::default(),
            dirty: Vec::new(),
            going_on: VecDeque::new(),
            responding: Deadlines::new(slots),
            connecting: Deadlines::new(slots),
            draining: Deadlines::new(slots),
            timers: Deadlines::new(0),
            events: EventQueue::default(),
            streams: MessageStreams::new(),
            fills: Vec::new(),
            completed: HandoverQueue::new(),
            diverted: Vec::new(),
            tally: Tally::default(),
            violation: None,
            reset: None,
            handshakes: Handshakes::default(),
            followed: Followed::default(),
            tunnels: config.tunnel.clone().map(Tunnels::new),
            requests,
            link,
            exchange,
            config,
            policy,
        }
    }

    /// Counts repeated requests in this limit.
    pub(crate) fn within(mut self, limit: Option<RateLimit>) -> Self {
        self.limited = Gate::of(limit);
        self
    }

    /// Connections that the backend needs room for, those of slots before its own among them.
    pub(crate) fn slots(&self) -> usize {
        self.connections.len()
    }
}

impl<L: Link, X: Conversation, P: Policy> Client for HttpClient<L, X, P> {
    fn starts_send(&self) -> bool {
        X::LEAVES_AT_ONCE
    }

    fn start(&mut self, io: &mut dyn Backend, op: Op, now: Nanos) {
        self.tally.in_flight += 1;
        let until = if X::waits_for_target(&self.exchange) {
            Nanos::MAX
        } else {
            op.intended + self.config.timeout
        };
        let flight = Flight::new(op, self.requests.pick(), until, now);
        self.place_in_time(io, flight, now);
    }

    fn set_epoch(&mut self, realtime_ns: u64) {
        X::set_epoch(&mut self.exchange, realtime_ns);
    }

    #[inline]
    fn take_completed(&mut self) -> Option<&Completion> {
        self.completed.take()
    }

    #[inline]
    fn take_message(&mut self) -> Option<MessageEvent> {
        self.streams.messages.take().copied()
    }

    #[inline]
    fn take_established(&mut self) -> Option<u32> {
        self.policy.take_established()
    }

    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>, time: EventTime) {
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
    fn flush(&mut self, io: &mut dyn Backend, now: &dyn Fn() -> Nanos) {
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
        if self.may_open() > 0 || !self.going_on.is_empty() {
            return Nanos::ZERO;
        }
        self.responding
            .next_at()
            .min(self.connecting.next_at())
            .min(self.draining.next_at())
            .min(self.streams.quiet.next_at())
            .min(self.waiting.next_deadline())
            .min(self.limited.next_deadline(|flight| flight.until))
    }

    fn next_due(&self) -> Nanos {
        self.timers.next_at().min(self.limited.next_due())
    }

    fn rate_limit(&self) -> Option<&RateLimit> {
        self.limited.limit()
    }

    fn expire(&mut self, io: &mut dyn Backend, now: Nanos) {
        for _ in 0..self.may_open().min(OPENS_PER_PASS) {
            self.open_idle(io, now);
        }
        self.go_on();
        while let Some(flight) = self.limited.release(now) {
            self.place_in_time(io, flight, now);
        }
        while let Some(slot) = self.connecting.due(now) {
            self.expire_connect(io, slot, now);
        }
        while let Some(slot) = self.draining.due(now) {
            self.retire(io, slot, now);
        }
        while let Some(slot) = self.timers.due(now) {
            self.on_timer(io, slot, now);
        }
        while let Some(op) = self.responding.due(now) {
            self.expire_operation(io, op, None, now);
        }
        self.expire_streams(io, now);
        while let Some(flight) = self.waiting.expire(now) {
            self.complete(flight.unsent(Outcome::Timeout, now));
        }
        while let Some(flight) = self.limited.expire(|flight| flight.until <= now) {
            self.complete(flight.unsent(Outcome::Timeout, now));
        }
    }

    fn close(&mut self, io: &mut dyn Backend, now: Nanos) {
        for slot in 0..self.connections.len() as u32 {
            self.say_farewell(io, slot, now);
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
        let is_silent = X::waits_for_target(&self.exchange);
        for (op, mut flight) in under_way {
            if is_silent {
                flight.intended = now;
            }
            self.streams.end(&mut self.events, op, &mut flight);
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
        let connecting = self.connecting.iter().filter_map(|(slot, _)| {
            let opener = self.connections[slot as usize].first;
            (opener != flights::NONE).then(|| self.flights.get(opener).intended)
        });
        // Those that are sent are in the order of their intended times, but for steps of sessions
        // that have time limits of their own.
        let responding = self.responding.first();
        let responding = responding.map(|(op, _)| self.flights.get(op).intended);
        let waiting = self.waiting.first().map(|flight| flight.intended);
        let others = [waiting, responding];
        others.into_iter().flatten().chain(connecting).min()
    }

    fn finish(&mut self, _end: Nanos) -> ClientSummary {
        ClientSummary {
            handshakes: std::mem::take(&mut self.handshakes),
            packets: X::take_packets(&mut self.exchange),
            violation: self.violation.take(),
            undecodable: self.streams.undecodable.take(),
            stream_faults: (self.events.messages.as_ref())
                .map_or_else(StreamFaults::default, |messages| messages.first_faults()),
            reset: self.reset.take(),
            routed: RoutedConnections {
                addresses: self.config.addresses.uses(),
                refused_because: self.tunnels.take().and_then(|tunnels| tunnels.refused_because),
                ..RoutedConnections::default()
            },
            offset_recorder: self.followed.take(),
            ..ClientSummary::default()
        }
    }

    fn tally(&self) -> Tally {
        self.tally
    }
}

impl<L: Link, X: Conversation, P: Policy> StepClient for HttpClient<L, X, P> {
    fn waits(&self) -> bool {
        P::WAITS
    }

    fn operations_max(&self) -> u32 {
        u32::try_from(self.config.operations_max()).unwrap_or(u32::MAX)
    }

    fn read_for(&mut self, plan: &SessionPlan, sessions: usize) {
        self.events.readings = Some(Box::new(ResponseReaders::new(plan, sessions)));
        self.fills = vec![Fills::new(); sessions];
    }

    #[inline]
    fn readings(&mut self) -> Option<&mut ResponseReaders> {
        self.events.readings.as_deref_mut()
    }

    #[inline]
    fn fills(&mut self, session: u32) -> &mut Fills {
        let number = session as usize;
        if self.fills.len() <= number {
            self.fills.resize(number + 1, Fills::new());
        }
        &mut self.fills[number]
    }

    fn start_step(&mut self, io: &mut dyn Backend, flight: Flight, now: Nanos) {
        self.tally.in_flight += 1;
        self.place_in_time(io, flight, now);
    }

    #[inline]
    fn take_step(&mut self) -> Option<Completion> {
        self.completed.take().copied()
    }

    fn close_lane(&mut self, io: &mut dyn Backend, lane: u32, now: Nanos) {
        if let Some(&slot) = self.lanes.get(lane as usize)
            && slot != NONE
            && self.connections[slot as usize].first == flights::NONE
        {
            self.discard(io, slot, now);
        }
    }
}

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// An operation that goes on over a connection of another kind, as it ended here, and the time
    /// at which it times out.
    #[inline]
    pub(super) fn take_diverted(&mut self) -> Option<(Completion, Nanos)> {
        self.diverted.pop()
    }

    /// Places an operation, unless its time is over.
    #[inline]
    fn place_in_time(&mut self, io: &mut dyn Backend, flight: Flight, now: Nanos) {
        if P::WAITS && flight.until <= now {
            // The generator came to it only after its time was over.
            return self.complete(flight.unsent(Outcome::Timeout, now));
        }
        self.place(io, flight, now);
    }

    #[inline]
    fn complete(&mut self, completion: Completion) {
        self.tally.in_flight -= 1;
        if matches!(completion.outcome, Outcome::Incomplete | Outcome::StreamError) {
            self.note_stream_fault();
        }
        self.completed.push(completion);
    }
}

#[cfg(test)]
pub(super) mod tests;
