//! A client whose operations are sessions: users who take step after step. Each step is a request
//! that a [`StepClient`] carries.

mod asking;
mod branches;
mod ending;
mod programs;
mod seat;
mod steps;

use super::client::{Client, ClientSummary, HandoverQueue, Tally};
use super::step_client::StepClient;
use crate::error::RunError;
use crate::reactor::{Backend, Event, EventTime};
use crate::sys::clock;
use knee_load::driver::{Gate, RateLimit, Retries};
use knee_load::measure::{
    Completion, MessageEvent, Op, Outcome, SessionAttempts, SessionsMeasured, Window,
};
use knee_load::session::Users;
use knee_load::spec::{Cut, Part, Target};
use knee_load::time::Nanos;
use programs::Programs;
use seat::SessionSeat;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::atomic::AtomicBool;

/// Settings of a session client, fixed before the run.
pub(crate) struct SessionConfig {
    /// Most sessions under way at once; others wait.
    pub sessions_max: u32,
    /// The measured window. No step begins after its end.
    pub window: Window,
    /// Time limit of a step without its own.
    pub timeout: Nanos,
    /// Whether failed steps are tried again.
    pub retries: Option<Retries>,
}

/// Carries sessions. Each has a number, which is also the lane of its connection unless connections
/// are shared. So a user keeps a connection, and leaves it to the next with this number. Sessions
/// with branches have numbers for these as well, which follow their own (`branches`). In an
/// overload each session opens its own connection, fails unless that is established, and closes it
/// at its end.
pub(crate) struct SessionClient {
    inner: Box<dyn StepClient>,
    config: SessionConfig,
    /// Seats of a session: the most branches of one.
    width: u32,
    users: Users,
    seats: Vec<SessionSeat>,
    /// Numbers without a session.
    free: Vec<u32>,
    /// Connections opened so far.
    opened: u64,
    /// The driver's lanes of sessions whose first connection was established since the last call.
    established: Vec<u32>,
    /// Sessions that wait for a number, and the times at which the generator came to them.
    waiting: VecDeque<(Op, Nanos)>,
    /// Sessions whose next request waits for the limit on operations per second.
    limited: Gate<(u32, u32)>,
    /// Pausing sessions, by the ends of their pauses.
    thinking: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Texts and holes of each request's path.
    paths: Box<[Vec<Cut>]>,
    completed: HandoverQueue<Completion>,
    ended: Vec<Completion>,
    measured: SessionsMeasured,
    /// Steps begun since the last call. A session that waits has begun its first step.
    begun: u64,
    /// Sessions under way, including those that wait.
    in_flight: u64,
    /// Time of day at the origin of the run's clock.
    realtime_origin_ns: Option<u64>,
    has_run_out: bool,
    /// Programs that give values to steps, if any.
    programs: Option<Box<Programs>>,
    /// Time of the last call.
    now: Nanos,
}

impl SessionClient {
    /// Creates a client without sessions. `inner` carries their steps.
    pub(crate) fn new(
        mut inner: Box<dyn StepClient>,
        config: SessionConfig,
        users: Users,
        target: &Target,
    ) -> SessionClient {
        let sessions = config.sessions_max.max(1);
        let width = users.plan().width();
        let count = sessions.saturating_mul(width);
        inner.read_for(users.plan(), count as usize);
        let measured = SessionsMeasured {
            attempts: (!inner.waits()).then(SessionAttempts::default),
            ..SessionsMeasured::new(users.plan())
        };
        let paths = target.requests.iter().map(|request| request.cut(Part::Path));
        SessionClient {
            paths: paths.collect(),
            seats: (0..count).map(|_| SessionSeat::free()).collect(),
            free: (0..sessions).rev().map(|session| session * width).collect(),
            opened: 0,
            established: Vec::new(),
            waiting: VecDeque::new(),
            limited: Gate::of(inner.rate_limit().cloned()),
            thinking: BinaryHeap::new(),
            completed: HandoverQueue::new(),
            ended: Vec::new(),
            measured,
            begun: 0,
            in_flight: 0,
            realtime_origin_ns: None,
            has_run_out: false,
            programs: Programs::new(users.plan(), target),
            now: Nanos::ZERO,
            inner,
            config,
            width,
            users,
        }
    }

    #[cfg(test)]
    fn within(mut self, limit: RateLimit) -> Self {
        self.limited = Gate::of(Some(limit));
        self
    }

    /// The time of day, for values in requests. Read once per run.
    fn realtime(&mut self, now: Nanos) -> u64 {
        let origin = *self
            .realtime_origin_ns
            .get_or_insert_with(|| clock::realtime_ns().saturating_sub(now.0));
        origin + now.0
    }
}

impl Client for SessionClient {
    fn carries_sessions(&self) -> bool {
        true
    }

    // Filling in a session's first request takes time as well.
    fn starts_send(&self) -> bool {
        true
    }

    fn prepare(&mut self, io: &mut dyn Backend, stop: &AtomicBool) -> Result<(), RunError> {
        let Some(programs) = &mut self.programs else {
            return Ok(());
        };
        let outputs = programs.start(self.users.plan(), stop)?;
        for (source, fd) in (0u32..).zip(outputs) {
            let not_watched = |e| RunError::NotStarted(format!("exec: not watched: {e}"));
            io.watch(source, fd).map_err(not_watched)?;
        }
        Ok(())
    }

    fn start(&mut self, io: &mut dyn Backend, op: Op, now: Nanos) {
        self.in_flight += 1;
        self.begun += 1;
        match self.free.pop() {
            Some(session) => self.seat(io, session, (op, now), now),
            None if !self.inner.waits() => {
                self.turn_away((op, now), Outcome::DescriptorExhausted, now)
            }
            None => self.waiting.push_back((op, now)),
        }
        self.advance(io, now);
    }

    #[inline]
    fn take_completed(&mut self) -> Option<&Completion> {
        self.completed.take()
    }

    #[inline]
    fn take_message(&mut self) -> Option<MessageEvent> {
        self.inner.take_message()
    }

    #[inline]
    fn take_begun(&mut self) -> u64 {
        std::mem::take(&mut self.begun)
    }

    #[inline]
    fn take_ended(&mut self) -> Option<Completion> {
        self.ended.pop()
    }

    #[inline]
    fn take_established(&mut self) -> Option<u32> {
        self.established.pop()
    }

    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>, time: EventTime) {
        self.inner.on_event(io, slot, event, time);
        self.advance(io, time.seen);
    }

    fn on_readable(&mut self, io: &mut dyn Backend, source: u32, now: Nanos) -> bool {
        let goes_on = self.hear(source, now);
        self.advance(io, now);
        goes_on
    }

    #[inline]
    fn flush(&mut self, io: &mut dyn Backend, now: &dyn Fn() -> Nanos) {
        self.inner.flush(io, now);
    }

    fn next_deadline(&self) -> Nanos {
        let waits = self.waiting.front();
        let waits = waits.map_or(Nanos::MAX, |(op, _)| op.intended + self.config.timeout);
        let programs = self.programs.as_ref();
        let asked = programs.map_or(Nanos::MAX, |programs| programs.next_deadline(self.now));
        self.inner.next_deadline().min(waits).min(asked)
    }

    fn next_due(&self) -> Nanos {
        let goes_on = self.thinking.peek();
        let goes_on = goes_on.map_or(Nanos::MAX, |Reverse((at, _))| *at);
        let limited = match self.limited.next_due() {
            Nanos::MAX => Nanos::MAX,
            at => at.min(self.config.window.end),
        };
        goes_on.min(limited).min(self.inner.next_due())
    }

    fn rate_limit(&self) -> Option<&RateLimit> {
        self.limited.limit()
    }

    fn oldest_intended(&self) -> Option<Nanos> {
        let waits = self.waiting.front().map(|(op, _)| op.intended);
        self.inner.oldest_intended().into_iter().chain(waits).min()
    }

    fn expire(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.inner.expire(io, now);
        self.expire_waiting(now);
        self.wake(io, now);
        self.release(io, now);
        self.now = now;
        self.expire_program_waits(now);
        self.advance(io, now);
    }

    fn set_epoch(&mut self, realtime_ns: u64) {
        self.inner.set_epoch(realtime_ns);
    }

    fn close(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.inner.close(io, now);
    }

    fn abandon(&mut self, now: Nanos) {
        self.inner.abandon(now);
        self.cut_off(now);
    }

    fn has_run_out(&self) -> bool {
        self.has_run_out
    }

    fn finish(&mut self, end: Nanos) -> ClientSummary {
        if let Some(programs) = &mut self.programs {
            self.measured.programs = Some(std::mem::take(&mut programs.measured));
        }
        self.measured.led_away = self.users.led_away();
        ClientSummary {
            sessions: Some(std::mem::take(&mut self.measured)),
            attempts: self.config.retries.take().map(|retries| retries.finish(end)),
            ..self.inner.finish(end)
        }
    }

    fn tally(&self) -> Tally {
        Tally { in_flight: self.in_flight, ..self.inner.tally() }
    }
}

#[cfg(test)]
mod tests;
