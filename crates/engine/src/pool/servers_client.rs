//! A client of sessions whose steps go to several servers.

use super::client::{Client, Tally};
use super::flight::Flight;
use super::step_client::StepClient;
use crate::reactor::{Backend, Event, EventTime};
use knee_load::both_ends::Sampler;
use knee_load::driver::RateLimit;
use knee_load::measure::{Completion, Handshakes, MessageEvent, Op};
use knee_load::session::{Fills, ResponseReaders, SessionPlan};
use knee_load::spec::Target;
use knee_load::time::Nanos;

/// A client for each server, with the connections of all users to it. A user has a connection to
/// each server that it comes to, unless connections are shared.
pub(crate) struct ServersClient<C> {
    clients: Vec<C>,
    /// The slot after the last of each client.
    ends: Vec<u32>,
    /// The server of each request.
    server_of: Vec<u16>,
    /// Values for the holes of each session's next request. Which server that goes to may depend on
    /// them.
    fills: Vec<Fills>,
    /// The server of the step that ended last.
    last: usize,
    /// Most connections open at once.
    open_max: u64,
}

impl<C: StepClient> ServersClient<C> {
    /// Creates a client of these, one for each server of `target` in their order. The slots of each
    /// begin where those of the one before end, as `ends` says.
    pub(crate) fn new((clients, ends): (Vec<C>, Vec<u32>), target: &Target) -> ServersClient<C> {
        let server_of = (0..target.requests.len()).map(|request| target.server_of(request));
        ServersClient {
            server_of: server_of.collect(),
            fills: Vec::new(),
            last: 0,
            open_max: 0,
            clients,
            ends,
        }
    }

    /// The first answer that a client has.
    fn first<T>(&self, of: impl Fn(&C) -> Option<T>) -> Option<T> {
        self.clients.iter().find_map(of)
    }

    /// The earliest of the clients' times.
    #[inline]
    fn earliest(&self, of: impl Fn(&C) -> Nanos) -> Nanos {
        self.clients.iter().map(of).min().unwrap_or(Nanos::MAX)
    }
}

impl<C: StepClient> Client for ServersClient<C> {
    const STARTS_SEND: bool = C::STARTS_SEND;

    fn set_epoch(&mut self, realtime_ns: u64) {
        self.clients.iter_mut().for_each(|client| client.set_epoch(realtime_ns));
    }

    fn start<B: Backend>(&mut self, io: &mut B, op: Op, now: Nanos) {
        self.clients[0].start(io, op, now);
    }

    fn take_completed(&mut self) -> Option<&Completion> {
        self.clients.iter_mut().find_map(C::take_completed)
    }

    fn take_message(&mut self) -> Option<MessageEvent> {
        self.clients.iter_mut().find_map(C::take_message)
    }

    fn take_established(&mut self) -> Option<u32> {
        self.clients.iter_mut().find_map(C::take_established)
    }

    #[inline]
    fn flush<B: Backend>(&mut self, io: &mut B, now: impl Fn() -> Nanos) {
        self.clients.iter_mut().for_each(|client| client.flush(io, &now));
    }

    fn on_event<B: Backend>(&mut self, io: &mut B, slot: u32, event: Event<'_>, time: EventTime) {
        let server = self.ends.partition_point(|end| *end <= slot);
        self.clients[server].on_event(io, slot, event, time);
        let open = self.clients.iter().map(|client| client.tally().open).sum();
        self.open_max = self.open_max.max(open);
    }

    fn next_deadline(&self) -> Nanos {
        self.earliest(C::next_deadline)
    }

    fn next_due(&self) -> Nanos {
        self.earliest(C::next_due)
    }

    fn oldest_intended(&self) -> Option<Nanos> {
        self.clients.iter().filter_map(C::oldest_intended).min()
    }

    fn expire<B: Backend>(&mut self, io: &mut B, now: Nanos) {
        self.clients.iter_mut().for_each(|client| client.expire(io, now));
    }

    fn close<B: Backend>(&mut self, io: &mut B, now: Nanos) {
        self.clients.iter_mut().for_each(|client| client.close(io, now));
    }

    fn abandon(&mut self, now: Nanos) {
        self.clients.iter_mut().for_each(|client| client.abandon(now));
    }

    fn rate_limit(&self) -> Option<&RateLimit> {
        self.clients[0].rate_limit()
    }

    fn take_sampler(&mut self) -> Option<Sampler> {
        self.clients.iter_mut().find_map(C::take_sampler)
    }

    fn take_handshakes(&mut self) -> Handshakes {
        self.clients.iter_mut().map(C::take_handshakes).fold(
            Handshakes::default(),
            |mut all, of| {
                all.merge(of);
                all
            },
        )
    }

    fn first_violation(&self) -> Option<String> {
        self.first(C::first_violation)
    }

    fn first_stream_fault(&self) -> Option<String> {
        self.first(C::first_stream_fault)
    }

    fn first_reset(&self) -> Option<String> {
        self.first(C::first_reset)
    }

    fn tally(&self) -> Tally {
        let of_all = |of: fn(&Tally) -> u64| self.clients.iter().map(|c| of(&c.tally())).sum();
        Tally {
            opened: of_all(|tally| tally.opened),
            open: of_all(|tally| tally.open),
            open_max: self.open_max,
            in_flight: of_all(|tally| tally.in_flight),
            surplus: of_all(|tally| tally.surplus),
            unmatched: of_all(|tally| tally.unmatched),
            diverted: of_all(|tally| tally.diverted),
            exhausted: of_all(|tally| tally.exhausted),
        }
    }
}

impl<C: StepClient> StepClient for ServersClient<C> {
    const WAITS: bool = C::WAITS;

    fn operations_max(&self) -> u32 {
        // Any session may be with any server.
        self.clients.iter().map(C::operations_max).min().unwrap_or(0)
    }

    fn read_for(&mut self, plan: &SessionPlan, sessions: usize) {
        self.clients.iter_mut().for_each(|client| client.read_for(plan, sessions));
        self.fills.resize(sessions, Fills::new());
    }

    fn readings(&mut self) -> Option<&mut ResponseReaders> {
        self.clients[self.last].readings()
    }

    fn fills(&mut self, session: u32) -> &mut Fills {
        &mut self.fills[session as usize]
    }

    fn start_step<B: Backend>(&mut self, io: &mut B, flight: Flight, now: Nanos) {
        let client = &mut self.clients[usize::from(self.server_of[flight.request])];
        let fills = &mut self.fills[flight.session as usize];
        std::mem::swap(client.fills(flight.session), fills);
        client.start_step(io, flight, now);
    }

    fn take_step(&mut self) -> Option<Completion> {
        let mut all = (0..).zip(&mut self.clients);
        let (server, completion) =
            all.find_map(|(server, client)| Some((server, client.take_step()?)))?;
        self.last = server;
        Some(completion)
    }

    fn close_lane<B: Backend>(&mut self, io: &mut B, lane: u32) {
        self.clients.iter_mut().for_each(|client| client.close_lane(io, lane));
    }
}
