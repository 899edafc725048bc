//! A client whose operations are iterations of a script: users written in JavaScript, who make
//! their requests as they go. A [`StepClient`] carries these.

use super::client::{Client, ClientSummary, HandoverQueue, Tally};
use super::flight::Flight;
use super::session_client::SessionConfig;
use super::session_end::SessionEnd;
use super::step_client::StepClient;
use crate::error::RunError;
use crate::kernel::host::memory_available;
use crate::reactor::{Backend, Event, EventTime};
use crate::sys::clock;
use knee_load::driver::{Gate, RateLimit};
use knee_load::measure::{
    Completion, Histogram, MessageEvent, Op, Outcome, SCRIPT_FAILURES_KEPT, ScriptMeasured,
    ScriptMetric, SessionsMeasured,
};
use knee_load::rng;
use knee_load::session::{Origin, Users};
use knee_load::spec::{ArrivalLaw, HttpVersion, Load, Target, TrialSpec, WorkerRange};
use knee_load::time::Nanos;
pub(crate) use knee_script::Script;
use knee_script::{
    Clock, Failure, FailureKind, Iteration, MetricKind, Next, Record, ScriptRequest,
    ScriptResponse, ScriptTimings, User, UserSetup,
};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// Users of an open loop that are made before the load; further ones are made when they are needed.
const READY_USERS: usize = 64;

/// Memory that each user may have, however many there are, in bytes.
const LEAST_MEMORY: u64 = 1 << 20;

/// Bytes of console output that are kept.
const LOG_BYTES_MAX: usize = 16 << 10;

/// The script that makes a target's requests, if any, and the workers of this process that run it.
///
/// # Errors
/// None: a build without scripts refuses them.
pub(crate) fn script_of(
    target: &Target,
    workers: WorkerRange,
) -> Result<Option<Arc<Script>>, RunError> {
    let plan = target.sessions.as_ref().and_then(|plan| plan.script.clone());
    Ok(plan.map(|plan| Arc::new(Script::new(plan).of_workers(workers))))
}

/// The client of one worker of a trial, by its number and how many there are. `inner` carries the
/// requests.
pub(crate) fn of_worker(
    inner: Box<dyn StepClient>,
    config: SessionConfig,
    users: Users,
    script: &Arc<Script>,
    spec: &TrialSpec,
    worker: (u32, u32),
) -> Box<dyn Client> {
    let setup = ScriptSetup {
        script: Arc::clone(script),
        origins: spec.target.origins().into(),
        worker,
        seed: spec.seed,
        is_closed: matches!(spec.load, Load::Closed { .. }),
        has_groups: has_groups(&spec.load),
        lasts: script.plan().lasts(spec.warmup, spec.window_end(), has_groups(&spec.load)),
        last: spec.last_start(),
        version: match spec.target.version() {
            HttpVersion::Http2 => "HTTP/2.0",
            HttpVersion::Http3 => "HTTP/3",
            _ => "HTTP/1.1",
        },
    };
    Box::new(ScriptClient::new(inner, config, users, setup))
}

/// Whether a load is that of the groups of a script, where it has any.
fn has_groups(load: &Load) -> bool {
    match load {
        Load::Closed { stages, .. } => !stages.is_empty(),
        Load::Open(load) => matches!(load.arrival, ArrivalLaw::Trace { .. }),
        Load::Overload(_) => false,
    }
}

/// What a script client needs beside its configuration.
struct ScriptSetup {
    /// The script.
    script: Arc<Script>,
    /// Origins of the target's servers.
    origins: Rc<[Origin]>,
    /// Number of the worker, and how many there are.
    worker: (u32, u32),
    /// Seed of the run.
    seed: u64,
    /// Whether users come one iteration after another.
    is_closed: bool,
    /// Whether the load is that of the script's groups, where it has any.
    has_groups: bool,
    /// From when on no request of an iteration begins, by the number of its scenario.
    lasts: Vec<Nanos>,
    /// The same of all.
    last: Nanos,
    /// The version of HTTP, as scripts see it.
    version: &'static str,
}

/// A place for a user, who has one iteration after another.
struct ScriptSeat {
    user: Option<User>,
    /// Iterations that it has begun.
    iterations: u64,
    op: Op,
    kind: u16,
    is_taken: bool,
    /// Its iteration has not begun a request.
    is_new: bool,
    /// Its iteration has slept.
    has_waited: bool,
    /// Grows each time that the user goes on: timers of before are void.
    turn: u64,
    /// Time up to which it has come.
    due: Nanos,
    /// When its iteration began to run.
    began: Nanos,
    /// The row of its last request.
    row: u32,
    /// Requests under way, by lane from the first of the seat on.
    lanes: Vec<Option<(u32, ScriptRequest)>>,
    /// Requests that wait for a lane.
    held: VecDeque<(u32, ScriptRequest)>,
    /// Its iteration is cut off: responses count and go nowhere.
    is_cut: bool,
}

impl ScriptSeat {
    /// A seat without a user, with this number of lanes.
    fn free(width: usize) -> ScriptSeat {
        ScriptSeat {
            user: None,
            iterations: 0,
            op: Op { intended: Nanos::ZERO, lane: Op::ANY_LANE },
            kind: 0,
            is_taken: false,
            is_new: false,
            has_waited: false,
            turn: 0,
            due: Nanos::ZERO,
            began: Nanos::ZERO,
            row: 0,
            lanes: vec![None; width],
            held: VecDeque::new(),
            is_cut: false,
        }
    }
}

/// Carries iterations. Each has a seat, whose lanes follow each other.
struct ScriptClient {
    inner: Box<dyn StepClient>,
    config: SessionConfig,
    users: Users,
    setup: ScriptSetup,
    /// Lanes of a seat: most requests of a user under way.
    width: u32,
    seats: Vec<ScriptSeat>,
    free: Vec<u32>,
    /// Users whose iterations were cut off. They end after the load, as that takes time.
    ended_users: Vec<User>,
    waiting: VecDeque<(Op, Nanos)>,
    /// Lanes whose requests wait for the limit on operations per second.
    limited: Gate<u32>,
    /// Users that wait, by when they go on, their seats and turns.
    thinking: BinaryHeap<Reverse<(Nanos, u32, u64)>>,
    completed: HandoverQueue<Completion>,
    ended: Vec<Completion>,
    measured: SessionsMeasured,
    script: ScriptMeasured,
    /// Counts of checks, and times of groups, by the numbers of their names.
    checks: HashMap<u32, [u64; 2]>,
    groups: HashMap<u32, Histogram>,
    metrics: HashMap<u32, Vec<f64>>,
    data: Arc<str>,
    /// Most memory of a user, in bytes.
    memory_max: u64,
    begun: u64,
    in_flight: u64,
    /// Origin of the run's clock, on CLOCK_MONOTONIC.
    origin: Rc<Cell<u64>>,
    realtime_origin_ns: u64,
    /// Requests under way whose iterations have ended.
    cut_operations: u64,
}

impl ScriptClient {
    /// Creates a client without users. `inner` carries their requests.
    fn new(
        mut inner: Box<dyn StepClient>,
        config: SessionConfig,
        users: Users,
        setup: ScriptSetup,
    ) -> ScriptClient {
        let count = config.sessions_max.max(1);
        let width = users.plan().width();
        inner.read_for(users.plan(), count.saturating_mul(width) as usize);
        let seat = || ScriptSeat::free(width as usize);
        // All users together have half of what there is.
        let all = u64::from(count) * u64::from(setup.worker.1);
        let part = memory_available().map(|bytes| (bytes / 2 / all).max(LEAST_MEMORY));
        let memory_max = part.unwrap_or(u64::MAX).min(setup.script.plan().memory_max);
        let given = users.plan().given.first();
        let data = given.map_or("".into(), |json| String::from_utf8_lossy(json).into());
        ScriptClient {
            seats: (0..count).map(|_| seat()).collect(),
            free: (0..count).rev().collect(),
            ended_users: Vec::new(),
            waiting: VecDeque::new(),
            limited: Gate::of(inner.rate_limit().cloned()),
            thinking: BinaryHeap::new(),
            completed: HandoverQueue::new(),
            ended: Vec::new(),
            measured: SessionsMeasured::new(users.plan()),
            script: ScriptMeasured::default(),
            checks: HashMap::new(),
            groups: HashMap::new(),
            metrics: HashMap::new(),
            begun: 0,
            in_flight: 0,
            origin: Rc::new(Cell::new(clock::monotonic_ns())),
            realtime_origin_ns: clock::realtime_ns(),
            cut_operations: 0,
            inner,
            config,
            users,
            setup,
            width,
            data,
            memory_max,
        }
    }

    fn clock(&self) -> Clock {
        let origin = Rc::clone(&self.origin);
        Rc::new(move || Nanos(clock::monotonic_ns().saturating_sub(origin.get())))
    }

    /// Makes the user of a seat, which runs the script's init code.
    fn make_user(&mut self, seat: u32) -> Result<(), Failure> {
        let (index, of) = self.setup.worker;
        let number = u64::from(seat) * u64::from(of) + u64::from(index) + 1;
        let user = User::new(UserSetup {
            script: Arc::clone(&self.setup.script),
            number,
            rng: rng::stream(self.setup.seed, rng::SCRIPTS + number),
            clock: self.clock(),
            processor: Rc::new(|| Nanos(clock::thread_cpu_ns())),
            origins: Rc::clone(&self.setup.origins),
            memory_max: self.memory_max,
            read: None,
        })?;
        self.seats[seat as usize].user = Some(user);
        Ok(())
    }

    /// Seats an iteration at `now`.
    fn seat(&mut self, io: &mut dyn Backend, number: u32, (op, started): (Op, Nanos), now: Nanos) {
        let (index, of) = self.setup.worker;
        let user = u64::from(number) * u64::from(of) + u64::from(index);
        let keeps = self.setup.is_closed && self.setup.script.plan().users_keep_scenarios;
        let drawn = self.users.number() - 1;
        let script = self.setup.script.plan();
        let group = if !self.setup.has_groups {
            None
        } else if self.setup.is_closed {
            script.group_of(user).map(|(group, _)| group)
        } else {
            // Multiples of the golden ratio fall evenly.
            script.group_at(op.intended, (drawn as f64 * 0.618_033_988_7).fract())
        };
        let kind = match group {
            Some(group) => group as u16,
            None if keeps => self.users.kind_of(user),
            None => self.users.draw_kind(),
        };
        let seat = &mut self.seats[number as usize];
        (seat.op, seat.kind, seat.due, seat.row) = (op, kind, op.intended, 0);
        (seat.is_taken, seat.is_new, seat.is_cut) = (true, true, false);
        seat.has_waited = false;
        if seat.user.is_none()
            && let Err(failure) = self.make_user(number)
        {
            return self.fail(number, failure, now);
        }
        let plan = self.setup.script.plan();
        let of_kind = usize::from(kind);
        let seat = &mut self.seats[number as usize];
        let Some(user) = &mut seat.user else { return };
        let iteration = Iteration {
            kind: of_kind,
            function: plan.functions.get(of_kind).cloned().unwrap_or_default(),
            scenario: plan.scenarios.get(of_kind).cloned().unwrap_or_default(),
            number: seat.iterations,
            in_scenario: self.setup.script.begin(of_kind),
            data: Arc::clone(&self.data),
            keeps_cookies: plan.keeps_cookies,
            wants_result: self.users.plan().keeps == Some(kind),
            realtime_origin_ns: self.realtime_origin_ns,
        };
        seat.iterations += 1;
        let began = clock::monotonic_ns();
        seat.began = Nanos(began.saturating_sub(self.origin.get()));
        self.setup.script.set_computing(self.setup.worker.0, began);
        let next = user.begin(iteration, op.intended);
        self.note_computed(began, now);
        self.follow(io, number, next, (started, now));
    }

    /// Lets a user go on, for what was due at `due`.
    fn go_on(&mut self, io: &mut dyn Backend, number: u32, due: Nanos, now: Nanos) {
        let seat = &mut self.seats[number as usize];
        seat.due = due;
        if let Some(user) = &mut seat.user {
            let began = clock::monotonic_ns();
            self.setup.script.set_computing(self.setup.worker.0, began);
            let next = user.advance(due);
            self.note_computed(began, now);
            self.follow(io, number, next, (now, now));
        }
    }

    /// Counts what a user computed, since then by the system's clock.
    fn note_computed(&mut self, began_ns: u64, now: Nanos) {
        self.setup.script.set_computing(self.setup.worker.0, 0);
        if self.config.window.contains(now) {
            self.script.computed += Nanos(clock::monotonic_ns() - began_ns);
        }
    }

    /// From when on the iteration of a seat begins no request.
    fn last_of(&self, number: u32) -> Nanos {
        let own = self.setup.lasts.get(usize::from(self.seats[number as usize].kind));
        own.map_or(self.setup.last, |own| self.setup.last.min(*own))
    }

    /// Does what a user does next.
    fn follow(
        &mut self,
        io: &mut dyn Backend,
        number: u32,
        next: Next,
        (started, now): (Nanos, Nanos),
    ) {
        let seat = &mut self.seats[number as usize];
        seat.turn += 1;
        let turn = seat.turn;
        self.take_records(number, now);
        let is_late = self.send_all(io, number, (started, now));
        match next {
            Next::Over(Ok(returned)) => {
                let kind = self.seats[number as usize].kind;
                if self.users.plan().keeps == Some(kind) {
                    let json = returned.unwrap_or_default().into_bytes();
                    self.measured.kept.get_or_insert_with(|| vec![json]);
                }
                self.leave(number, SessionEnd::Completed, now);
            }
            Next::Over(Err(failure)) => self.fail(number, failure, now),
            _ if is_late || self.seats[number as usize].due >= self.last_of(number) => {
                self.leave(number, SessionEnd::Unfinished, now);
            }
            Next::Turn => self.thinking.push(Reverse((now + Nanos(1), number, turn))),
            Next::Wait(Nanos::MAX) => {}
            Next::Wait(until) => {
                self.seats[number as usize].has_waited = true;
                self.thinking.push(Reverse((until.min(self.last_of(number)), number, turn)));
            }
        }
    }

    /// The script of a user failed.
    fn fail(&mut self, number: u32, failure: Failure, now: Nanos) {
        match failure.kind {
            FailureKind::Stopped => {
                return self.leave(number, SessionEnd::Unfinished, now);
            }
            FailureKind::Abort => {
                self.setup.script.has_ended.store(true, Relaxed);
                self.script.aborted.get_or_insert(failure.message);
                return self.leave(number, SessionEnd::Unfinished, now);
            }
            // What its variables hold may be what was too much.
            FailureKind::Time | FailureKind::Memory => {
                self.seats[number as usize].user = None;
            }
            FailureKind::Exception => {}
        }
        self.script.failed += 1;
        if self.script.failures.len() < SCRIPT_FAILURES_KEPT {
            self.script.failures.push(failure.to_string());
        }
        let seat = &self.seats[number as usize];
        let row = (!seat.is_new).then_some(seat.row);
        self.leave(number, SessionEnd::Failed(row, Outcome::ScriptFailed), now);
    }

    /// Sends the requests that a user has made, as far as it has lanes. Returns whether one came
    /// after the last time: none begins there.
    fn send_all(&mut self, io: &mut dyn Backend, number: u32, times: (Nanos, Nanos)) -> bool {
        let seat = &mut self.seats[number as usize];
        if let Some(user) = &mut seat.user {
            while let Some(request) = user.take_request() {
                seat.held.push_back(request);
            }
        }
        let per_server = self.setup.script.plan().batch.1.max(1) as usize;
        let last = self.last_of(number);
        loop {
            let seat = &mut self.seats[number as usize];
            let Some(lane) = seat.lanes.iter().position(Option::is_none) else {
                return false;
            };
            let is_free = |(_, held): &(u32, ScriptRequest)| {
                let same = |(_, sent): &&(u32, ScriptRequest)| sent.made.server == held.made.server;
                seat.lanes.iter().flatten().filter(same).count() < per_server
            };
            let Some(at) = seat.held.iter().position(is_free) else { return false };
            let Some((operation, mut request)) = seat.held.remove(at) else { return false };
            if request.called_at == Nanos::MAX {
                // It follows a redirection, which belongs to its request.
                request.called_at = seat.due;
            } else if seat.is_new && !seat.has_waited {
                request.made_within = request.called_at - seat.began;
                request.called_at = seat.op.intended;
            }
            if request.called_at >= last {
                seat.held.clear();
                return true;
            }
            seat.row = request.row;
            seat.lanes[lane] = Some((operation, request));
            let lane = number * self.width + lane as u32;
            if self.limited.pass(lane, times.1).is_some() {
                self.send(io, lane, times);
            }
        }
    }

    /// Sends the request of a lane.
    fn send(&mut self, io: &mut dyn Backend, lane: u32, (started, now): (Nanos, Nanos)) {
        let seat = &mut self.seats[(lane / self.width) as usize];
        seat.is_new = false;
        self.begun += 1;
        let Some((_, request)) = &mut seat.lanes[(lane % self.width) as usize] else { return };
        let op = Op { intended: request.called_at, lane };
        let until = op.intended + request.timeout.unwrap_or(self.config.timeout);
        self.inner.fills(lane).set_made(Arc::clone(&request.made));
        let mut flight = Flight::new(op, request.row as usize, until, started);
        (flight.session, flight.read_as) = (lane, request.row);
        self.inner.start_step(io, flight, now);
    }

    /// A free seat for an iteration: that of its user, where iterations are of users.
    fn free_seat(&mut self, op: Op) -> Option<u32> {
        if !self.setup.is_closed {
            return self.free.pop();
        }
        let at = self.free.iter().rposition(|free| *free == op.lane)?;
        Some(self.free.swap_remove(at))
    }

    /// Handles ended requests, and continues their users.
    fn advance(&mut self, io: &mut dyn Backend, now: Nanos) {
        loop {
            while self.inner.take_established().is_some() {}
            if let Some(completion) = self.inner.take_step() {
                self.on_step(io, completion, now);
            } else if !self.waiting.is_empty()
                && let Some(number) = self.free_seat(self.waiting[0].0)
                && let Some(waits) = self.waiting.pop_front()
            {
                self.seat(io, number, waits, now);
            } else {
                return;
            }
        }
    }

    fn on_step(&mut self, io: &mut dyn Backend, mut completion: Completion, now: Nanos) {
        let lane = completion.lane;
        let number = lane / self.width;
        let seat = &mut self.seats[number as usize];
        let Some((operation, request)) = seat.lanes[(lane % self.width) as usize].take() else {
            return;
        };
        if completion.outcome.is_response()
            && let Some(expects) = &request.expects
        {
            let is_expected =
                expects.iter().any(|(low, high)| (*low..=*high).contains(&completion.status));
            completion.outcome = match completion.outcome {
                _ if is_expected => Outcome::Ok,
                outcome if outcome.is_good() => Outcome::Unexpected,
                outcome => outcome,
            };
        }
        if request.made_within > Nanos::ZERO {
            // A user who lets others go on begins its request later than it began.
            completion.started = completion.started.min(seat.began);
        }
        completion.scripted = completion.started + request.made_within;
        self.completed.push(completion);
        if seat.is_cut {
            self.cut_operations -= 1;
            if seat.lanes.iter().all(Option::is_none) {
                seat.is_cut = false;
                self.free.push(number);
            }
            return;
        }
        let response = response_of(&completion, &mut *self.inner, self.setup.version);
        let seat = &mut self.seats[number as usize];
        seat.due = completion.picked_up;
        let goes_on = seat.user.as_mut().is_some_and(|user| user.respond(operation, response));
        if goes_on {
            self.go_on(io, number, completion.picked_up, now);
        } else if self.send_all(io, number, (now, now)) {
            self.leave(number, SessionEnd::Unfinished, now);
        }
    }

    /// Adds what a user recorded.
    fn take_records(&mut self, number: u32, now: Nanos) {
        let is_measured = self.config.window.contains(now);
        let (checks, groups, metrics) = (&mut self.checks, &mut self.groups, &mut self.metrics);
        let led_away = &mut self.measured.led_away;
        let Some(user) = &mut self.seats[number as usize].user else { return };
        user.take_records(|record| {
            if record == Record::LedAway {
                *led_away += 1;
            }
            if !is_measured {
                return;
            }
            match record {
                Record::Check(name, passes) => {
                    checks.entry(name).or_default()[usize::from(!passes)] += 1;
                }
                Record::Group(name, time) => groups.entry(name).or_default().record(time),
                Record::Metric(metric, value) => metrics.entry(metric).or_default().push(value),
                Record::LedAway => {}
            }
        });
        self.script.marked = self.script.marked.take().or_else(|| user.take_mark());
        let lines = user.take_log();
        if !lines.is_empty() {
            self.setup.script.add_console(&lines);
            if self.script.log.len() < LOG_BYTES_MAX {
                self.script.log.push_str(&lines);
            }
        }
        if self.metrics.values().any(|values| values.len() > 10_000) {
            self.sum_metrics();
        }
    }

    /// Adds the values of metrics to their sums.
    fn sum_metrics(&mut self) {
        let names = self.setup.script.metrics();
        for (number, values) in self.metrics.drain() {
            let Some(metric) = names.get(number as usize) else { continue };
            let is_time = metric.is_time;
            let sum = self.script.metrics.entry(metric.name.clone());
            let sum = sum.or_insert_with(|| match metric.kind {
                MetricKind::Counter => ScriptMetric::Counter { sum: 0.0, is_time },
                MetricKind::Gauge => ScriptMetric::Gauge {
                    last: 0.0,
                    min: f64::INFINITY,
                    max: f64::NEG_INFINITY,
                    is_time,
                },
                MetricKind::Rate => ScriptMetric::Rate { hits: 0, all: 0 },
                MetricKind::Trend => ScriptMetric::Trend {
                    values: Histogram::default(),
                    sum: 0.0,
                    min: f64::INFINITY,
                    max: f64::NEG_INFINITY,
                    is_time,
                },
            });
            values.into_iter().for_each(|value| sum.add(value));
        }
    }

    /// Ends an iteration. Its seat is free once its requests have ended.
    fn leave(&mut self, number: u32, end: SessionEnd, now: Nanos) {
        let seat = &mut self.seats[number as usize];
        if !seat.is_taken {
            return;
        }
        seat.is_taken = false;
        seat.turn += 1;
        seat.held.clear();
        if matches!(end, SessionEnd::Unfinished) {
            self.ended_users.extend(seat.user.take());
        }
        let busy = seat.lanes.iter().flatten().count() as u64;
        let (op, kind) = (seat.op, seat.kind);
        let ended_at = seat.due.min(now).max(op.intended);
        seat.is_cut = busy > 0;
        self.cut_operations += busy;
        self.book((op, kind), end, (ended_at, now));
        if busy == 0 {
            self.free.push(number);
        }
    }

    /// Records the end of an iteration of this kind.
    fn book(&mut self, (op, kind): (Op, u16), end: SessionEnd, times: (Nanos, Nanos)) {
        self.in_flight -= 1;
        let window = self.config.window;
        self.ended.push(end.record((op, kind), &mut self.measured, window, times));
    }

    /// Ends an iteration that has waited for a seat until its time was over, or until the end.
    fn turn_away(&mut self, op: Op, end: SessionEnd, now: Nanos) {
        let kind = self.users.draw_kind();
        self.book((op, kind), end, (now, now));
    }
}

impl Client for ScriptClient {
    fn carries_sessions(&self) -> bool {
        true
    }

    // To run a script takes time as well.
    fn starts_send(&self) -> bool {
        true
    }

    /// Makes users, as their init code takes time.
    fn prepare(&mut self, _: &mut dyn Backend, stop: &AtomicBool) -> Result<(), RunError> {
        let all = self.seats.len();
        let count = if self.setup.is_closed { all } else { all.min(READY_USERS) };
        for number in 0..count as u32 {
            if stop.load(std::sync::atomic::Ordering::Relaxed) {
                return Ok(());
            }
            self.make_user(number).map_err(|why| RunError::NotStarted(why.to_string()))?;
        }
        Ok(())
    }

    fn set_epoch(&mut self, realtime_ns: u64) {
        self.origin.set(realtime_ns.saturating_sub(clock::realtime_ahead_ns()));
        self.realtime_origin_ns = realtime_ns;
        self.inner.set_epoch(realtime_ns);
    }

    fn start(&mut self, io: &mut dyn Backend, op: Op, now: Nanos) {
        self.in_flight += 1;
        match self.free_seat(op) {
            Some(number) => self.seat(io, number, (op, now), now),
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

    fn on_event(&mut self, io: &mut dyn Backend, slot: u32, event: Event<'_>, time: EventTime) {
        self.inner.on_event(io, slot, event, time);
        self.advance(io, time.seen);
    }

    #[inline]
    fn flush(&mut self, io: &mut dyn Backend, now: &dyn Fn() -> Nanos) {
        self.inner.flush(io, now);
    }

    fn next_deadline(&self) -> Nanos {
        let waits = self.waiting.front();
        let waits = waits.map_or(Nanos::MAX, |(op, _)| op.intended + self.config.timeout);
        self.inner.next_deadline().min(waits)
    }

    fn next_due(&self) -> Nanos {
        let goes_on = self.thinking.peek();
        let goes_on = goes_on.map_or(Nanos::MAX, |Reverse((at, ..))| *at);
        let limited = match self.limited.next_due() {
            Nanos::MAX => Nanos::MAX,
            at => at.min(self.setup.last),
        };
        // At the end those that wait have nothing left to do.
        let goes_on = if goes_on < Nanos::MAX { goes_on.min(self.setup.last) } else { goes_on };
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
        while let Some(&(op, _)) = self.waiting.front()
            && op.intended + self.config.timeout <= now
        {
            self.waiting.pop_front();
            self.turn_away(op, SessionEnd::Failed(None, Outcome::Timeout), now);
        }
        // Each of those that are due now, and none that is due again at once.
        let count = self.thinking.len();
        for _ in 0..count {
            let Some(&Reverse((at, number, turn))) = self.thinking.peek() else { break };
            let is_over = now >= self.setup.last;
            if at > now && !is_over {
                break;
            }
            self.thinking.pop();
            let seat = &self.seats[number as usize];
            if seat.turn != turn || !seat.is_taken {
                continue;
            }
            if is_over || at >= self.last_of(number) {
                self.leave(number, SessionEnd::Unfinished, now);
            } else {
                // Where it only let others go on, its time has not passed meanwhile.
                let paused = seat.user.as_ref().and_then(User::paused_at);
                self.go_on(io, number, paused.unwrap_or(at), now);
            }
        }
        if now >= self.setup.last {
            for lane in self.limited.give_up() {
                let number = lane / self.width;
                self.seats[number as usize].lanes[(lane % self.width) as usize] = None;
                self.leave(number, SessionEnd::Unfinished, now);
            }
        }
        while let Some(lane) = self.limited.release(now) {
            self.send(io, lane, (now, now));
        }
        self.advance(io, now);
    }

    fn close(&mut self, io: &mut dyn Backend, now: Nanos) {
        self.inner.close(io, now);
    }

    fn abandon(&mut self, now: Nanos) {
        self.inner.abandon(now);
        while let Some(completion) = self.inner.take_step() {
            self.completed.push(completion);
        }
        drop(self.limited.give_up());
        for number in 0..self.seats.len() {
            let seat = &mut self.seats[number];
            if std::mem::take(&mut seat.is_taken) {
                let (op, kind) = (seat.op, seat.kind);
                let ended_at = seat.due.min(now).max(op.intended);
                self.book((op, kind), SessionEnd::Unfinished, (ended_at, now));
            }
        }
        self.cut_operations = 0;
        while let Some((op, _)) = self.waiting.pop_front() {
            self.turn_away(op, SessionEnd::Unfinished, now);
        }
    }

    // Workers share the script, so that all end.
    fn ends_trial(&self) -> bool {
        self.setup.script.has_ended.load(Relaxed)
    }

    fn finish(&mut self, end: Nanos) -> ClientSummary {
        self.sum_metrics();
        let names = self.setup.script.names();
        let name = |number: u32| names.get(number as usize).cloned().unwrap_or_default();
        let checks = self.checks.drain().map(|(number, counts)| (name(number), counts));
        self.script.checks = checks.collect();
        let groups = self.groups.drain().map(|(number, times)| (name(number), times));
        self.script.groups = groups.collect();
        self.script.rows = self.setup.script.rows();
        self.measured.script = Some(Box::new(std::mem::take(&mut self.script)));
        self.ended_users.clear();
        self.seats.iter_mut().for_each(|seat| seat.user = None);
        ClientSummary {
            sessions: Some(std::mem::take(&mut self.measured)),
            ..self.inner.finish(end)
        }
    }

    fn tally(&self) -> Tally {
        Tally { in_flight: self.in_flight + self.cut_operations, ..self.inner.tally() }
    }
}

/// The response to a request that has ended so, as its script sees it.
fn response_of(
    ended: &Completion,
    inner: &mut dyn StepClient,
    version: &'static str,
) -> ScriptResponse {
    let timings = ScriptTimings {
        blocked: ended.placed - ended.scripted,
        connecting: ended.connected - ended.placed,
        tls_handshaking: ended.secured - ended.connected,
        sending: ended.written - ended.sent,
        waiting: ended.first_byte - ended.written,
        receiving: ended.completed - ended.first_byte,
    };
    let kept = inner.readings().and_then(|readings| readings.kept(ended.lane));
    if ended.outcome.is_response()
        && let Some(kept) = kept
    {
        let error = kept.is_cut.then(|| {
            (format!("the body is longer than {} bytes (--script-body)", kept.body.len()), 1000)
        });
        return ScriptResponse {
            status: ended.status,
            head: std::mem::take(&mut kept.head),
            body: std::mem::take(&mut kept.body),
            error,
            timings,
            version,
        };
    }
    // The numbers are those of k6.
    let code = match ended.outcome {
        Outcome::Timeout | Outcome::ResponseTimeout => 1050,
        Outcome::Unreachable => 1210,
        Outcome::ConnectTimeout => 1211,
        Outcome::Refused => 1212,
        Outcome::Reset | Outcome::Closed | Outcome::Truncated => 1220,
        Outcome::HandshakeFailed | Outcome::HandshakeTimeout => 1300,
        Outcome::StreamReset | Outcome::RefusedStream => 1600,
        _ => 1000,
    };
    ScriptResponse {
        error: Some((ended.outcome.meaning().to_owned(), code)),
        timings,
        version,
        ..ScriptResponse::default()
    }
}
