//! One worker: the hot loop of a run, on a thread of its own. Workers share nothing.
//!
//! # When the time is read
//!
//! Time is read once per event and once per operation started, not once per pass. On a busy worker
//! a pass handles dozens of events, and one shared reading would credit the target with the
//! generator's own work. Where starting an operation does not send its request
//! ([`Client::starts_send`]), as over HTTP/2, the time of the event stands for all that it starts:
//! the time until all of them leave together is the generator's anyway. A backend that hands over
//! what is sent only when it waits ([`Backend::sends_at_once`], io_uring) gets it once per pass, as
//! several payloads would wait for each other.
//!
//! `tests` drives this loop in virtual time over a simulated kernel.

use crate::generator::WorkerUse;
use crate::pool::client::Client;
use crate::reactor::{Backend, Event, EventTime, ReceiveClock, Sink, Waiter};
use crate::sys::clock::{MonotonicClock, ThreadUse};
use knee_load::both_ends::OffsetRecorder;
use knee_load::driver::{Action, AnyDriver, Driver, RateLimit};
use knee_load::measure::{
    Completion, IntervalPart, Measurement, Outcome, Recorder, UnderWay, Window,
};
use knee_load::polling::DelayStats;
use knee_load::time::{Clock, Nanos};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Operations started per pass. Bounds the time until a late worker reads responses again.
const STARTS_PER_PASS: u32 = 16;

/// Least delay of a pass that counts as a stall.
const STALL: Nanos = Nanos::from_millis(5);

/// Most polls after a stall, to read what was received meanwhile.
const LOOKS_AFTER_STALL: u32 = 64;

/// Parts of one worker.
pub(crate) struct Worker<K = MonotonicClock> {
    /// Decides what starts when.
    pub driver: AnyDriver,
    /// Carries operations.
    pub client: Box<dyn Client>,
    /// Records completions.
    pub recorder: Recorder,
    /// Time since the start of the run.
    pub clock: K,
    /// Translates the kernel's receive timestamps to that clock.
    pub receive_clock: ReceiveClock,
    /// Decides between sleeping and polling.
    pub waiter: Waiter,
    /// The measured window.
    pub window: Window,
    /// Time at which operations under way are abandoned.
    pub give_up: Nanos,
    /// Users wait for nothing but their responses: what delays the reading of one delays the next
    /// operation.
    pub reading_delays: bool,
}

/// Result of one worker.
pub(crate) struct WorkerResult {
    /// The backend: [`Backend::name`].
    pub backend: &'static str,
    /// The measurement.
    pub measurement: Measurement,
    /// Its cost over the window.
    pub cost: WorkerUse,
    /// Record of its waits.
    pub waiter: Waiter,
    /// Positions of operations in followed connections.
    pub offset_recorder: Option<OffsetRecorder>,
    /// It was stopped before its load was complete.
    pub interrupted: bool,
}

impl<K: Clock + Clone> Worker<K> {
    /// Runs until the load is complete, `stop` is set, or `enough` is, which is a proper end of the
    /// load. Each finished interval goes to `emit`.
    ///
    /// # Errors
    /// The kernel refuses to wait.
    pub(crate) fn run(
        self,
        io: &mut dyn Backend,
        [stop, enough]: [&AtomicBool; 2],
        emit: &mut dyn FnMut(IntervalPart),
    ) -> io::Result<WorkerResult> {
        let Worker {
            driver,
            client,
            recorder,
            clock,
            receive_clock,
            mut waiter,
            window,
            give_up,
            reading_delays,
        } = self;
        let mut session = WorkerLoop {
            carries_sessions: client.carries_sessions(),
            starts_send: client.starts_send(),
            sends_at_once: io.sends_at_once(),
            driver,
            client,
            recorder,
            clock: clock.clone(),
            receive_clock,
            next: Action::Done,
            pace: waiter.begin(clock.now(), ThreadUse::now().spent(Nanos::ZERO)),
            reading_delays,
        };
        let mut usage = WindowUsage::new(window, clock.clone());
        let mut expected = Nanos::MAX;
        let interrupted = loop {
            let now = clock.now();
            session.recorder.on_stall(now, now - expected);
            if let Some(mut part) = session.recorder.roll(now) {
                part.under_way = Some(session.under_way(now));
                emit(part);
            }
            usage.note(now, waiter.polled_total());
            if waiter.is_due(now) {
                let spent = ThreadUse::now().spent(waiter.polled_total());
                waiter.review(now, &mut session.pace, spent);
            }
            if now - expected >= STALL {
                session.catch_up(io)?;
            }
            session.client.expire(io, now);
            session.pump(io, now, STARTS_PER_PASS);
            session.client.flush(io, &|| clock.now());
            let told_to_stop = stop.load(Ordering::Relaxed);
            let is_enough = enough.load(Ordering::Relaxed) || session.client.ends_trial();
            if told_to_stop || is_enough || session.is_over(now, give_up) {
                break told_to_stop;
            }
            expected = session.wait(io, &mut waiter)?;
        };
        let cost = usage.finish(waiter.polled_total());
        session.say_farewell(io)?;
        let (measurement, offset_recorder) = session.finish(emit);
        Ok(WorkerResult {
            backend: io.name(),
            offset_recorder,
            measurement,
            cost,
            waiter,
            interrupted,
        })
    }
}

/// Driver, client and recorder. Handles events of connections and due operations.
struct WorkerLoop<K> {
    driver: AnyDriver,
    client: Box<dyn Client>,
    /// [`Client::carries_sessions`].
    carries_sessions: bool,
    /// [`Client::starts_send`].
    starts_send: bool,
    /// [`Backend::sends_at_once`].
    sends_at_once: bool,
    recorder: Recorder,
    clock: K,
    receive_clock: ReceiveClock,
    /// The driver's next action, after everything due.
    next: Action,
    /// Lateness of operations, for the waiter.
    pace: DelayStats,
    /// The next operation waits until a response is read, and for nothing else.
    reading_delays: bool,
}

impl<K: Clock> Sink for WorkerLoop<K> {
    #[inline]
    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>) {
        let now = self.clock.now();
        let time = match &event {
            Event::Received(piece) | Event::ReceivedLast(piece) => {
                self.receive_clock.of(piece.realtime_ns, now)
            }
            _ => EventTime::seen(now),
        };
        self.client.on_event(io, slot, event, time);
        self.follow_up(io, now);
    }

    fn on_readable(&mut self, io: &mut dyn Backend, source: u32) -> bool {
        let now = self.clock.now();
        let goes_on = self.client.on_readable(io, source, now);
        self.follow_up(io, now);
        goes_on
    }
}

impl<K: Clock> WorkerLoop<K> {
    /// Records operations that an event at `now` has ended, and starts those permitted or due.
    #[inline]
    fn follow_up(&mut self, io: &mut dyn Backend, now: Nanos) {
        // What took long, such as a handshake, delays no other operation beyond itself.
        let is_due = matches!(self.next, Action::WaitUntil(at) if at <= now);
        let ended = self.pass_on_ended(now);
        if ended > 0 || is_due {
            // One connection may bring many responses at once, and carry as many requests.
            self.pump(io, now, ended.max(STARTS_PER_PASS));
        }
        if self.sends_at_once {
            self.client.flush(io, &|| self.clock.now());
        }
    }

    /// Starts operations due at `now`, at most `starts_max`.
    fn pump(&mut self, io: &mut dyn Backend, mut now: Nanos, starts_max: u32) {
        for started in 0..starts_max {
            self.pass_on_ended(now);
            if self.client.has_run_out() {
                self.next = Action::Done;
                return;
            }
            match self.driver.poll(now) {
                action @ (Action::Start(op) | Action::Retry(op)) => {
                    if self.starts_send && started > 0 {
                        // What starting the one before took delays this one, and no other.
                        now = self.clock.now();
                    }
                    match action {
                        Action::Retry(_) => self.recorder.on_retry(op, now),
                        _ => self.recorder.on_start(op, now),
                    }
                    self.client.start(io, op, now);
                }
                Action::Shed(op) => {
                    let shed = Completion::at_once(op, now, Outcome::Shed);
                    self.recorder.on_completion(&shed);
                }
                wait => {
                    self.next = wait;
                    return;
                }
            }
        }
        self.pass_on_ended(now);
        self.next = Action::WaitUntil(now);
    }

    /// Passes ended operations to recorder and driver, and established connections to the driver.
    /// Returns their number.
    #[inline]
    fn pass_on_ended(&mut self, now: Nanos) -> u32 {
        let mut ended = 0;
        while let Some(lane) = self.client.take_established() {
            self.driver.on_established(lane, now);
            ended += 1;
        }
        while let Some(message) = self.client.take_message() {
            self.recorder.on_message(&message);
        }
        while let Some(completion) = self.client.take_completed() {
            self.recorder.on_completion(completion);
            if self.pace.is_watched() {
                note(&mut self.pace, completion, self.reading_delays);
            }
            if !self.carries_sessions {
                self.driver.on_completion(completion, now);
            }
            ended += 1;
        }
        if self.carries_sessions {
            self.recorder.on_steps(self.client.take_begun(), now);
        }
        while let Some(session) = self.client.take_ended() {
            self.recorder.on_session(&session);
            self.driver.on_completion(&session, now);
            ended += 1;
        }
        ended
    }

    /// Waits for the next deadline or completion, and handles what comes. Returns when it was to
    /// be over at the latest: a worker that comes back later was busy, or did not run.
    fn wait(&mut self, io: &mut dyn Backend, waiter: &mut Waiter) -> io::Result<Nanos> {
        let until = match self.next {
            Action::WaitUntil(at) => at.min(self.client.next_due()),
            _ => self.client.next_due(),
        };
        let before = self.clock.now();
        let asked = waiter.sleep_for(before, until).min(self.client.next_deadline() - before);
        let events = io.poll(asked, self)?;
        if events == 0 {
            let took = self.clock.now() - before;
            match asked {
                Nanos::ZERO => waiter.polled(took),
                _ => waiter.woke(took - asked),
            }
        }
        Ok(before + asked)
    }

    /// Reads what was received during a stall, so that no response counts as timed out that has
    /// been received.
    fn catch_up(&mut self, io: &mut dyn Backend) -> io::Result<()> {
        for _ in 0..LOOKS_AFTER_STALL {
            if io.poll(Nanos::ZERO, self)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Says farewell over open connections, and hands that to the kernel.
    fn say_farewell(&mut self, io: &mut dyn Backend) -> io::Result<()> {
        self.client.close(io, self.clock.now());
        io.poll(Nanos::ZERO, &mut Unheard).map(|_| ())
    }

    fn under_way(&self, now: Nanos) -> UnderWay {
        let oldest = self.client.oldest_intended();
        UnderWay {
            operations: self.client.tally().in_flight,
            oldest: oldest.map_or(Nanos::ZERO, |intended| now - intended),
        }
    }

    fn is_over(&self, now: Nanos, give_up: Nanos) -> bool {
        self.next == Action::Done && self.client.tally().in_flight == 0 || now >= give_up
    }

    /// Ends operations under way and completes the measurement.
    fn finish(
        mut self,
        emit: &mut dyn FnMut(IntervalPart),
    ) -> (Measurement, Option<OffsetRecorder>) {
        let now = self.clock.now();
        self.client.abandon(now);
        self.pass_on_ended(now);
        for part in self.recorder.roll_all(now) {
            emit(part);
        }
        let (tally, summary) = (self.client.tally(), self.client.finish(now));
        let mut measurement = self.recorder.finish(now);
        measurement.attempts = self.driver.finish(now).or(summary.attempts);
        measurement.lost = tally.in_flight;
        measurement.malformed_because = summary.violation;
        measurement.undecodable_because = summary.undecodable;
        measurement.stream_reset_because = summary.reset;
        if let Some(messages) = &mut measurement.messages {
            messages.set_faults(summary.stream_faults);
        }
        measurement.handshakes = summary.handshakes;
        measurement.packets = summary.packets;
        measurement.routed = summary.routed;
        measurement.sessions = summary.sessions;
        measurement.connections_opened = tally.opened;
        measurement.connections_max = tally.open_max;
        measurement.surplus = tally.surplus;
        measurement.unmatched = tally.unmatched;
        measurement.diverted = tally.diverted;
        measurement.exhausted = tally.exhausted;
        measurement.rate_limit = self.client.rate_limit().map(RateLimit::used);
        (measurement, summary.offset_recorder)
    }
}

/// Drops events that come after the end.
struct Unheard;

impl Sink for Unheard {
    fn on_event(&mut self, _: &mut dyn Backend, _: u32, _: Event<'_>) {}
}

/// Notes how much of an operation is the generator's own delay, also of the next one where reading
/// its response late delays that.
#[inline]
fn note(pace: &mut DelayStats, completion: &Completion, reading_delays: bool) {
    if !completion.outcome.is_response() {
        return;
    }
    let (own, response) = (completion.own_delay(), completion.response_time());
    pace.responded(completion.intended, own, response);
    if reading_delays {
        let (own, cycle) = (own + completion.pick_up(), response + completion.pick_up());
        pace.read(completion.completed, own, cycle);
    }
}

/// Cost over the window. A worker may pass the window's ends late, so the time between the readings
/// is kept as well.
struct WindowUsage<K> {
    window: Window,
    clock: K,
    /// Processor time, the time, and that spent polling.
    at_start: Option<(ThreadUse, Nanos, Nanos)>,
    over_window: Option<WorkerUse>,
}

impl<K: Clock> WindowUsage<K> {
    fn new(window: Window, clock: K) -> WindowUsage<K> {
        WindowUsage { window, clock, at_start: None, over_window: None }
    }

    #[inline]
    fn note(&mut self, now: Nanos, polled: Nanos) {
        if self.at_start.is_none() && now >= self.window.start {
            self.at_start = Some((ThreadUse::now(), now, polled));
        }
        if self.over_window.is_none() && now >= self.window.end {
            self.over_window = Some(self.so_far(polled));
        }
    }

    /// The cost since the window began; nothing before that.
    fn so_far(&self, polled: Nanos) -> WorkerUse {
        let Some((used, since, polled_before)) = self.at_start else {
            return WorkerUse::default();
        };
        WorkerUse {
            used: ThreadUse::now().since(used),
            over: self.clock.now() - since,
            polled: polled - polled_before,
        }
    }

    fn finish(self, polled: Nanos) -> WorkerUse {
        self.over_window.unwrap_or_else(|| self.so_far(polled))
    }
}

#[cfg(test)]
mod tests;
