//! A client of sessions whose steps go to several servers.

use super::client::{Client, ClientSummary, Tally};
use super::flight::Flight;
use super::step_client::StepClient;
use crate::reactor::{Backend, Event, EventTime};
use knee_load::driver::RateLimit;
use knee_load::measure::{Completion, MessageEvent, Op};
use knee_load::session::{Fills, ResponseReaders, SessionPlan};
use knee_load::spec::Target;
use knee_load::time::Nanos;

/// A client for each server, with the connections of all users to it. A user has a connection to
/// each server that it comes to, unless connections are shared.
pub(crate) struct ServersClient {
    clients: Vec<Box<dyn StepClient>>,
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

impl ServersClient {
    /// Creates a client of these, one for each server of `target` in their order. The slots of each
    /// begin where those of the one before end, as `ends` says.
    pub(crate) fn new(
        (clients, ends): (Vec<Box<dyn StepClient>>, Vec<u32>),
        target: &Target,
    ) -> ServersClient {
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
}

impl Client for ServersClient {
    fn starts_send(&self) -> bool {
        self.clients[0].starts_send()
    }

    fn set_epoch(&mut self, realtime_ns: u64) {
        self.clients.iter_mut().for_each(|client| client.set_epoch(realtime_ns));
    }

    fn start(&mut self, io: &mut dyn Backend, op: Op, now: Nanos) {
        self.clients[0].start(io, op, now);
    }

    fn take_completed(&mut self) -> Option<&Completion> {
        self.clients.iter_mut().find_map(|client| client.take_completed())
    }

    fn take_message(&mut self) -> Option<MessageEvent> {
        self.clients.iter_mut().find_map(|client| client.take_message())
    }

    fn take_established(&mut self) -> Option<u32> {
        self.clients.iter_mut().find_map(|client| client.take_established())
    }

    #[inline]
    fn flush(&mut self, io: &mut dyn Backend, now: &dyn Fn() -> Nanos) {
        self.clients.iter_mut().for_each(|client| client.flush(io, now));
    }

    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>, time: EventTime) {
        let server = self.ends.partition_point(|end| *end <= slot);
        self.clients[server].on_event(io, slot, event, time);
        let open = self.clients.iter().map(|client| client.tally().open).sum();
        self.open_max = self.open_max.max(open);
    }

    fn next_deadline(&self) -> Nanos {
        self.clients.iter().map(|client| client.next_deadline()).min().unwrap_or(Nanos::MAX)
    }

    fn next_due(&self) -> Nanos {
        self.clients.iter().map(|client| client.next_due()).min().unwrap_or(Nanos::MAX)
    }

    fn oldest_intended(&self) -> Option<Nanos> {
        self.clients.iter().filter_map(|client| client.oldest_intended()).min()
    }

    fn expire(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.clients.iter_mut().for_each(|client| client.expire(io, now));
    }

    fn close(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.clients.iter_mut().for_each(|client| client.close(io, now));
    }

    fn abandon(&mut self, now: Nanos) {
        self.clients.iter_mut().for_each(|client| client.abandon(now));
    }

    fn rate_limit(&self) -> Option<&RateLimit> {
        self.clients[0].rate_limit()
    }

    fn finish(&mut self, end: Nanos) -> ClientSummary {
        let each = self.clients.iter_mut().map(|client| client.finish(end));
        each.reduce(ClientSummary::and).unwrap_or_default()
    }

    fn tally(&self) -> Tally {
        let each = self.clients.iter().map(|client| client.tally());
        Tally { open_max: self.open_max, ..each.fold(Tally::default(), Tally::and) }
    }
}

impl StepClient for ServersClient {
    fn waits(&self) -> bool {
        self.clients[0].waits()
    }

    fn operations_max(&self) -> u32 {
        // Any session may be with any server.
        self.clients.iter().map(|client| client.operations_max()).min().unwrap_or(0)
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

    fn start_step(&mut self, io: &mut dyn Backend, flight: Flight, now: Nanos) {
        let fills = &mut self.fills[flight.session as usize];
        let server = fills.made().map_or(self.server_of[flight.request], |made| made.server);
        let client = &mut self.clients[usize::from(server)];
        std::mem::swap(client.fills(flight.session), fills);
        client.start_step(io, flight, now);
    }

    fn take_step(&mut self) -> Option<Completion> {
        let mut all = (0..).zip(&mut self.clients);
        let (server, completion) =
            all.find_map(|(server, client)| Some((server, client.take_step()?)))?;
        self.last = server;
        // Redirections are followed with what was sent.
        let session = completion.lane;
        std::mem::swap(self.clients[server].fills(session), &mut self.fills[session as usize]);
        Some(completion)
    }

    fn close_lane(&mut self, io: &mut dyn Backend, lane: u32, now: Nanos) {
        self.clients.iter_mut().for_each(|client| client.close_lane(io, lane, now));
    }
}
