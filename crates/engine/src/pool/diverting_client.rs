//! A client whose operations may go on over connections of another kind. A truncated answer over
//! UDP is followed by the same query over TCP, as one operation.

use super::client::{Client, ClientSummary, HandoverQueue, Tally};
use super::flight::Flight;
use super::http_client::{ClientConfig, HttpClient, Policy};
use super::requests::RequestSet;
use super::step_client::StepClient;
use crate::exchange::Conversation;
use crate::link::Tls;
use crate::reactor::{Backend, Event, EventTime};
use knee_load::driver::RateLimit;
use knee_load::measure::{Completion, Op};
use knee_load::session::{Fills, ResponseReaders, SessionPlan};
use knee_load::time::Nanos;

/// Two clients: operations start in the first. Those that it diverts go on in the second, with
/// their intended times and time limits. The second opens its connections once they are needed, up
/// to as many as the first has. It keeps them, unless each operation has one of its own.
pub(crate) struct DivertingClient<X: Conversation, P: Policy> {
    first: HttpClient<Tls, X, P>,
    second: HttpClient<Tls, X, P>,
    /// The first slot of the second client.
    second_slot: u32,
    /// Operations are steps of sessions, whose lanes are their sessions.
    carries_steps: bool,
    /// How operations in the second client ended in the first, by their lanes there.
    begun: Vec<Completion>,
    /// Lanes of the second client without an operation.
    free: Vec<u32>,
    /// Operations that ended in the second client.
    completed: HandoverQueue<Completion>,
    diverted: u64,
}

impl<X: Conversation, P: Policy + Clone> DivertingClient<X, P> {
    /// Creates a client without connections, with requests and state of each of the two kinds.
    pub(crate) fn new(
        config: ClientConfig,
        policy: P,
        [(requests, state), (requests_then, state_then)]: [(RequestSet, X::Shared); 2],
    ) -> DivertingClient<X, P> {
        let first = HttpClient::new(config.clone(), policy.clone(), requests, None, state);
        let second_slot = first.slots() as u32;
        let config = ClientConfig {
            first_slot: second_slot,
            keeps_all_open: false,
            keep_alive: P::WAITS && config.keep_alive,
            ..config
        };
        DivertingClient {
            first,
            second: HttpClient::new(config, policy, requests_then, None, state_then),
            second_slot,
            carries_steps: false,
            begun: Vec::new(),
            free: Vec::new(),
            completed: HandoverQueue::new(),
            diverted: 0,
        }
    }

    /// Lets an observer follow one of `one_of` connections of the first client.
    pub(crate) fn followed(self, one_of: Option<u16>) -> Self {
        DivertingClient { first: self.first.followed(one_of), ..self }
    }

    /// Counts repeated requests in this limit.
    pub(crate) fn within(self, limit: Option<RateLimit>) -> Self {
        DivertingClient { first: self.first.within(limit), ..self }
    }

    /// Connections that the backend needs room for.
    pub(crate) fn slots(&self) -> usize {
        self.second.slots()
    }

    /// Starts what the first client diverted in the second, and takes what ended there.
    #[inline]
    fn advance(&mut self, io: &mut dyn Backend, now: Nanos) {
        while let Some((begun, until)) = self.first.take_diverted() {
            self.diverted += 1;
            let lane = self.free.pop().unwrap_or(self.begun.len() as u32);
            match self.begun.get_mut(lane as usize) {
                Some(place) => *place = begun,
                None => self.begun.push(begun),
            }
            let op = Op { intended: begun.intended, lane };
            let mut flight = Flight::new(op, begun.target as usize, until, now);
            if self.carries_steps {
                let session = begun.lane;
                flight.session = session;
                self.second.fills(session).clone_from(self.first.fills(session));
            }
            self.second.start_step(io, flight, now);
        }
        self.take_ended();
    }

    #[inline]
    fn take_ended(&mut self) {
        while let Some(ended) = self.second.take_step() {
            let begun = &self.begun[ended.lane as usize];
            self.completed.push(Completion {
                first_byte: ended.first_byte,
                last_message: ended.last_message,
                completed: ended.completed,
                picked_up: ended.picked_up,
                by_kernel: ended.by_kernel,
                bytes: begun.bytes + ended.bytes,
                bytes_sent: begun.bytes_sent + ended.bytes_sent,
                status: ended.status,
                outcome: ended.outcome,
                ..*begun
            });
            self.free.push(ended.lane);
        }
    }
}

impl<X: Conversation, P: Policy + Clone> Client for DivertingClient<X, P> {
    fn starts_send(&self) -> bool {
        self.first.starts_send()
    }

    fn set_epoch(&mut self, realtime_ns: u64) {
        self.first.set_epoch(realtime_ns);
        self.second.set_epoch(realtime_ns);
    }

    fn start(&mut self, io: &mut dyn Backend, op: Op, now: Nanos) {
        self.first.start(io, op, now);
    }

    #[inline]
    fn take_completed(&mut self) -> Option<&Completion> {
        if self.completed.is_exhausted() {
            return self.first.take_completed();
        }
        self.completed.take()
    }

    #[inline]
    fn take_established(&mut self) -> Option<u32> {
        // Nothing waits for those of operations that began in the first client.
        while self.second.take_established().is_some() {}
        self.first.take_established()
    }

    #[inline]
    fn flush(&mut self, io: &mut dyn Backend, now: &dyn Fn() -> Nanos) {
        self.first.flush(io, now);
        self.second.flush(io, now);
        self.take_ended();
    }

    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>, time: EventTime) {
        if slot < self.second_slot {
            self.first.on_event(io, slot, event, time);
        } else {
            self.second.on_event(io, slot, event, time);
        }
        self.advance(io, time.seen);
    }

    #[inline]
    fn next_deadline(&self) -> Nanos {
        self.first.next_deadline().min(self.second.next_deadline())
    }

    fn next_due(&self) -> Nanos {
        self.first.next_due().min(self.second.next_due())
    }

    fn oldest_intended(&self) -> Option<Nanos> {
        let second = self.second.oldest_intended();
        self.first.oldest_intended().into_iter().chain(second).min()
    }

    fn expire(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.first.expire(io, now);
        self.second.expire(io, now);
        self.advance(io, now);
    }

    fn close(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.first.close(io, now);
        self.second.close(io, now);
    }

    fn abandon(&mut self, now: Nanos) {
        self.first.abandon(now);
        self.second.abandon(now);
        self.take_ended();
    }

    fn rate_limit(&self) -> Option<&RateLimit> {
        self.first.rate_limit()
    }

    fn finish(&mut self, end: Nanos) -> ClientSummary {
        self.first.finish(end).and(self.second.finish(end))
    }

    fn tally(&self) -> Tally {
        // Connections of the first client are open from the start, so that both maxima add up.
        Tally { diverted: self.diverted, ..self.first.tally().and(self.second.tally()) }
    }
}

impl<X: Conversation, P: Policy + Clone> StepClient for DivertingClient<X, P> {
    fn waits(&self) -> bool {
        P::WAITS
    }

    fn operations_max(&self) -> u32 {
        self.first.operations_max()
    }

    fn read_for(&mut self, plan: &SessionPlan, sessions: usize) {
        self.carries_steps = true;
        self.first.read_for(plan, sessions);
    }

    fn readings(&mut self) -> Option<&mut ResponseReaders> {
        self.first.readings()
    }

    #[inline]
    fn fills(&mut self, session: u32) -> &mut Fills {
        self.first.fills(session)
    }

    fn start_step(&mut self, io: &mut dyn Backend, flight: Flight, now: Nanos) {
        self.first.start_step(io, flight, now);
    }

    #[inline]
    fn take_step(&mut self) -> Option<Completion> {
        self.take_completed().copied()
    }

    fn close_lane(&mut self, io: &mut dyn Backend, lane: u32, now: Nanos) {
        self.first.close_lane(io, lane, now);
    }
}

#[cfg(test)]
mod tests;
