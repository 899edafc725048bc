//! Runs a trial: one `TrialSpec` in, one `Trial` out.

mod dispatch;
mod followed;
mod sentinel;

pub use sentinel::run_sentinels;

use crate::addresses::{AddressBook, NameRefresher};
use crate::error::RunError;
use crate::generator::generator_use;
use crate::interrupt;
use crate::kernel::counters::Counters;
use crate::kernel::host::{self, HostTime};
use crate::kernel::timestamps::Timestamps;
use crate::link::{self, TlsTarget, Tunnel};
use crate::observe::Vantage;
use crate::pool::client::Client;
use crate::pool::requests::{RequestSet, serialise_all};
use crate::pool::script_client::{Script, script_of};
use crate::reactor::{Backend, COVERED, ReceiveClock, Waiter, WireRequests};
use crate::resolve;
use crate::sys::clock::{self, MonotonicClock};
use crate::sys::socket::Address;
use crate::sys::thread as sys_thread;
use crate::threads;
use crate::worker::{Worker, WorkerResult};
use dispatch::{Dispatch, choose_backend};
use knee_load::both_ends::{ObservedStreams, Sampled, host_times};
use knee_load::driver::AnyDriver;
use knee_load::measure::{
    GeneratorUse, Histogram, Interval, IntervalMerger, IntervalPart, IntervalWatcher, Measurement,
    Observed, Recorder, RecorderConfig, RoutedConnections, SentinelSample, Trial, WaitUse, Window,
};
use knee_load::rng;
use knee_load::session::{SCRIPT_ROWS, SessionPlan};
use knee_load::spec::{BackendChoice, Load, Share, TimestampsChoice, TrialSpec, WorkerRange};
use knee_load::time::{Clock, Nanos};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::Duration;

/// Most start times kept for the gap statistics, over all workers: 32 MB.
pub(crate) const STARTS_MAX: usize = 4_000_000;

/// The longest wait for messages that the server of a subscription sent before the end.
const LATE_MESSAGE: Nanos = Nanos::from_secs(1);

/// Least time between all workers being ready and the start, so that none begins late.
const LEAD_NS: u64 = 1_000_000;

/// Time between two looks at whether a user's script is stuck.
const LOOK: Duration = Duration::from_millis(100);

/// Time after which a user that lets no others go on is stuck. Limits of scripts end others before.
const STUCK_NS: u64 = 1_000_000_000;

/// Common start of several processes that make a trial together. Receives what each contributes.
pub trait StartBarrier: Sync {
    /// Waits for the start; all workers of this process are ready. Returns it in nanoseconds of
    /// this host's CLOCK_MONOTONIC; `None` for no start.
    fn begin(&self) -> Option<u64>;

    /// A worker began `late_ns` after that.
    fn begun(&self, late_ns: u64);

    /// An interval has ended in which this process contributed `part`.
    fn part(&self, part: &IntervalPart);

    /// Most operations that this process may start per second; `None` for no limit.
    fn rate_max(&self) -> Option<f64> {
        None
    }
}

/// Runs one trial. Setting `stop` ends it early with what was measured; the trial is then marked
/// interrupted. `observer` sees each interval as it ends, on this thread.
///
/// # Errors
/// See [`RunError`]; errors of single operations are outcomes, not errors.
pub fn run(
    spec: &TrialSpec,
    observer: &mut dyn IntervalWatcher,
    stop: &AtomicBool,
) -> Result<Trial, RunError> {
    run_observed(spec, observer, stop, None)
}

/// Runs one trial, with the server's side watched from a vantage over the measured window: the
/// trial's `observed`. It begins some milliseconds later, so that nothing is missed.
///
/// # Errors
/// See [`run()`]; a vantage that is lost meanwhile is reported in `observed`.
pub fn run_observed(
    spec: &TrialSpec,
    observer: &mut dyn IntervalWatcher,
    stop: &AtomicBool,
    vantage: Option<&mut Vantage>,
) -> Result<Trial, RunError> {
    // No more workers than there is work for.
    let users_max = connections_of(spec) / spec.target.lanes_per_user();
    let workers = spec.engine.workers.clamp(1, users_max.max(1));
    let mut show = |progress: Progress<'_>| match progress {
        Progress::Interval(interval, part) => observer.on_interval(interval, &part.response),
        Progress::Console(line) => observer.on_note(&line),
    };
    run_crew(spec, (WorkerRange::whole(workers), None), &mut show, stop, vantage)
}

/// Runs one process's part of a trial that several processes make together. It has the operations,
/// users and connections of its workers, from the start that `barrier` announces. Nothing is sent
/// before.
///
/// # Errors
/// See [`run()`].
pub fn run_part(
    spec: &TrialSpec,
    crew: WorkerRange,
    barrier: &dyn StartBarrier,
    stop: &AtomicBool,
) -> Result<Trial, RunError> {
    // Whoever makes trials on other machines was not permitted to start programs on them.
    let sessions = spec.target.sessions.as_ref();
    if sessions.is_some_and(|plan| !plan.programs.is_empty()) {
        let line = "a scenario with 'exec' runs on one machine: agents start no programs";
        return Err(RunError::NotPermitted(line.to_owned()));
    }
    let mut show = |progress: Progress<'_>| {
        if let Progress::Interval(_, part) = progress {
            barrier.part(part);
        }
    };
    run_crew(spec, (crew, Some(barrier)), &mut show, stop, None)
}

/// What workers and sentinels measured.
type RunParts = (Vec<io::Result<WorkerResult>>, Vec<Interval>, Vec<SentinelSample>);

/// A thread that makes sentinels.
type SentinelThread<'scope> = thread::ScopedJoinHandle<'scope, io::Result<Vec<SentinelSample>>>;

/// What happens while a trial runs.
enum Progress<'a> {
    /// An interval has ended, with the workers' contributions.
    Interval(&'a Interval, &'a IntervalPart),
    /// A script wrote a line to its console.
    Console(String),
}

/// Receives what happens.
type ProgressSink<'a> = &'a mut dyn FnMut(Progress<'_>);

fn run_crew(
    spec: &TrialSpec,
    (crew, barrier): (WorkerRange, Option<&dyn StartBarrier>),
    show: ProgressSink<'_>,
    stop: &AtomicBool,
    mut vantage: Option<&mut Vantage>,
) -> Result<Trial, RunError> {
    let enough = AtomicBool::new(false);
    // Connections through a proxy are others at the server.
    let ends_there = spec.target.proxies().is_empty();
    let follows = vantage.as_ref().filter(|v| v.follows() && ends_there);
    let plan = RunPlan {
        barrier,
        lead_ns: LEAD_NS.max(vantage.as_ref().map_or(0, |v| v.lead().0)),
        one_of: follows.and_then(|_| followed::one_of(spec)),
        ..RunPlan::new(spec, crew, stop, &enough)?
    };
    if let Some(vantage) = &mut vantage {
        vantage.arm();
        plan.one_of.into_iter().for_each(|n| vantage.follow(n));
    }
    let counters = Counters::now();
    let time = HostTime::now();
    let (done, intervals, sentinels) = plan.run_workers(show, vantage.as_deref_mut())?;
    let all_are_here = plan.servers.iter().all(|server| server.book.any(is_here));
    let waits_only_for_target = plan.reading_delays() && all_are_here;
    let seen = plan.one_of.and_then(|_| vantage.as_mut().map(|v| v.seen()));
    let observed = vantage.map(Vantage::finish).map(|seen| match spec.target.protocol {
        protocol if protocol.is_in_datagrams() => seen.without_tcp(),
        _ => seen,
    });
    let steal_percent = HostTime::now().steal_percent_since(time);
    let kernel = Counters::now().moved_since(&counters);
    let done = done.into_iter().collect::<io::Result<Vec<WorkerResult>>>().map_err(not_run)?;
    let routed = plan.routed();
    let side = SideRecords {
        routed,
        waits_only_for_target,
        intervals,
        sentinels,
        kernel,
        steal_percent,
        observed,
        seen,
    };
    let mut trial = trial_of(spec, done, side);
    trial.measurement.began_ns = plan.origin.get().copied().unwrap_or(0);
    Ok(trial)
}

/// Processors that workers may poll on. None on a target's host, as the target may need them.
fn spare_processors(servers: &[ReachedServer], workers: u32) -> u32 {
    if servers.iter().any(|server| server.book.any(is_here)) {
        return 0;
    }
    processors().saturating_sub(workers)
}

/// Whether an address is of this host.
fn is_here(address: &Address) -> bool {
    match address {
        Address::Tcp(address) => host::is_own(address.ip()),
        Address::Unix(_) => true,
    }
}

/// The error where a worker could not run.
fn not_run(error: io::Error) -> RunError {
    let other = |e| RunError::NotPermitted(format!("a worker could not run: {e}"));
    error.downcast::<RunError>().unwrap_or_else(other)
}

/// Records from outside of the workers.
struct SideRecords {
    /// Workers sleep until the target on this host wakes them.
    waits_only_for_target: bool,
    intervals: Vec<Interval>,
    sentinels: Vec<SentinelSample>,
    /// Addresses without connections, lookups and proxies.
    routed: RoutedConnections,
    kernel: BTreeMap<String, i64>,
    steal_percent: Option<f64>,
    /// Observations on the server's host.
    observed: Option<Observed>,
    /// Observations of the followed connections.
    seen: Option<ObservedStreams>,
}

/// Joins the results of the workers with these records.
fn trial_of(spec: &TrialSpec, done: Vec<WorkerResult>, side: SideRecords) -> Trial {
    let interrupted = done.iter().any(|d| d.interrupted);
    let generator = GeneratorUse {
        wait: Some(wait_of(spec, &done)),
        woken_by_target: side
            .waits_only_for_target
            .then(|| done.iter().map(|d| d.cost.used.sleeps).sum()),
        ..generator_use(
            done.first().map_or("", |d| d.backend),
            &done.iter().map(|d| d.cost).collect::<Vec<_>>(),
            side.steal_percent,
        )
    };
    let parts = done.into_iter().map(|d| (d.measurement, d.offset_recorder));
    let (measured, offset_recorders): (Vec<_>, Vec<_>) = parts.unzip();
    let merged = measured.into_iter().reduce(|mut sum, part| {
        sum.merge(part);
        sum
    });
    let mut measurement = merged.unwrap_or_default();
    let spec = &with_rows(spec, &measurement);
    measurement.intervals = side.intervals;
    measurement.sentinels = side.sentinels;
    measurement.routed.merge(side.routed);
    let mut observed = side.observed;
    if let (Some(observed), Some(seen)) = (&mut observed, side.seen) {
        let sampled = Sampled::of(offset_recorders.into_iter().flatten().collect());
        let (times, split, both_ends) = host_times(&seen, &sampled, measurement.window);
        observed.server_host = Some(times);
        measurement.split = split;
        measurement.both_ends = both_ends;
    }
    Trial {
        spec: spec.clone().into_owned(),
        measurement,
        generator,
        kernel: side.kernel,
        observed,
        agents: Vec::new(),
        interrupted,
    }
}

/// The spec with the names of the rows that a script made.
fn with_rows<'a>(spec: &'a TrialSpec, measurement: &Measurement) -> Cow<'a, TrialSpec> {
    let script = measurement.sessions.as_ref().and_then(|sessions| sessions.script.as_ref());
    let (Some(script), Some(plan)) = (script, &spec.target.sessions) else {
        return Cow::Borrowed(spec);
    };
    let mut plan = SessionPlan::clone(plan);
    for (step, name) in plan.requests.iter_mut().zip(&script.rows) {
        step.name.clone_from(name);
    }
    if script.rows.len() + 1 >= SCRIPT_ROWS
        && let Some(last) = plan.requests.last_mut()
    {
        last.name = "other requests".to_owned();
    }
    let mut named = spec.clone();
    named.target.sessions = Some(Arc::new(plan));
    Cow::Owned(named)
}

/// A server that has an address.
struct ReachedServer {
    book: Arc<AddressBook>,
    /// TLS settings, if any.
    tls: Option<TlsTarget>,
    /// The tunnel of a proxy that leads to it, if any.
    tunnel: Option<Tunnel>,
}

/// State shared by all workers of a run.
struct RunPlan<'a> {
    spec: &'a TrialSpec,
    /// The workers of this process.
    crew: WorkerRange,
    /// Other processes of the trial, if any.
    barrier: Option<&'a dyn StartBarrier>,
    backend: BackendChoice,
    /// The servers of the target, by their numbers.
    servers: Vec<ReachedServer>,
    requests: WireRequests,
    /// The script that makes the requests, if any.
    script: Option<Arc<Script>>,
    /// Whether the kernel timestamps received bytes.
    timestamps: Option<Timestamps>,
    ready: Barrier,
    origin: OnceLock<u64>,
    /// Time from all workers being ready to the start.
    lead_ns: u64,
    stop: &'a AtomicBool,
    /// Set when the trial has shown what it was to show.
    enough: &'a AtomicBool,
    /// Processors that this process may use beyond one for each worker.
    spare: u32,
    /// An observer follows one connection of this number.
    one_of: Option<u16>,
}

impl<'a> RunPlan<'a> {
    /// A plan whose servers can be reached, for one process that begins by itself.
    fn new(
        spec: &'a TrialSpec,
        crew: WorkerRange,
        stop: &'a AtomicBool,
        enough: &'a AtomicBool,
    ) -> Result<RunPlan<'a>, RunError> {
        let servers = 1 + spec.target.further.len() as u64;
        host::ensure_files(crew.part(servers * u64::from(connections_of(spec))))?;
        let patience = Duration::from_nanos(spec.connect_timeout.0);
        let must_answer = !matches!(spec.load, Load::Overload(_)) && !spec.engine.was_reached;
        let books = resolve::reach_servers(&spec.target, patience, must_answer)?;
        let reached = spec.target.each_server().zip(books).map(|(target, book)| {
            let (tls, tunnel) = (link::tls_target(&target)?, Tunnel::of(&target));
            Ok(ReachedServer { book: Arc::new(book), tls, tunnel })
        });
        let servers = reached.collect::<Result<Vec<_>, RunError>>()?;
        Ok(RunPlan {
            spec,
            crew,
            barrier: None,
            backend: choose_backend(spec.engine.backend)?,
            spare: spare_processors(&servers, crew.workers),
            servers,
            requests: serialise_all(&spec.target),
            script: script_of(&spec.target, crew)?,
            timestamps: match spec.engine.timestamps {
                TimestampsChoice::Auto => Some(Timestamps::keep_on()),
                TimestampsChoice::Off => None,
            },
            ready: Barrier::new(crew.workers as usize),
            origin: OnceLock::new(),
            lead_ns: LEAD_NS,
            stop,
            enough,
            one_of: None,
        })
    }

    /// Runs each worker on its thread, and passes on intervals as they end.
    fn run_workers(
        &self,
        show: ProgressSink<'_>,
        vantage: Option<&mut Vantage>,
    ) -> Result<RunParts, RunError> {
        let (parts, received) = mpsc::channel();
        let books = self.servers.iter().map(|server| Arc::clone(&server.book));
        let patience = Duration::from_nanos(self.spec.connect_timeout.0);
        let _refresher = NameRefresher::start(books, patience)
            .map_err(|error| RunError::NotPermitted(threads::error(&error).to_string()))?;
        thread::scope(|scope| {
            let works = (0..self.crew.workers).map(|index| {
                let parts = parts.clone();
                move || self.work(self.crew.share(index), &parts)
            });
            let handles = threads::spawn_all(scope, "worker", works)?;
            drop(parts);
            let sentinels = self.spawn_sentinels(scope)?;
            if let Some(vantage) = vantage {
                // Settled by the first worker that is ready; where none came to it, all ended.
                while self.origin.get().is_none() && !handles.iter().all(|h| h.is_finished()) {
                    thread::sleep(Duration::from_micros(50));
                }
                if let Some(origin) = self.origin.get() {
                    let begin = origin + self.spec.warmup.0;
                    vantage.begin(begin, self.spec.interval, self.spec.duration);
                }
            }
            let intervals = self.merge_intervals(&received, show);
            let done = handles.into_iter().map(|h| match h.join() {
                Ok(done) => done,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let done = done.collect();
            // The load is over, for whatever reason.
            self.enough.store(true, Ordering::Relaxed);
            let sentinels = sentinels.map(|handle| match handle.join() {
                Ok(samples) => samples.map_err(not_run),
                Err(panic) => std::panic::resume_unwind(panic),
            });
            Ok((done, intervals, sentinels.transpose()?.unwrap_or_default()))
        })
    }

    /// Starts the thread of the sentinels, if the trial has any. Who makes only a part of a trial
    /// leaves them to whoever conducts it.
    fn spawn_sentinels<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
    ) -> Result<Option<SentinelThread<'scope>>, RunError> {
        if self.barrier.is_some() || self.spec.sentinel.is_none() {
            return Ok(None);
        }
        let work = || {
            // Workers get no copy of its connections.
            let _ = sys_thread::own_descriptors();
            let origin = || self.wait_for_origin();
            run_sentinels(self.spec, origin, self.stop, self.enough).map_err(io::Error::other)
        };
        let spawned = threads::spawn_all(scope, "sentinel", [work]);
        // The workers are under way already.
        let spawned = spawned.inspect_err(|_| self.enough.store(true, Ordering::Relaxed));
        spawned.map(|mut threads| threads.pop())
    }

    /// The start of the workers, once they are ready; `None` where they ended before.
    fn wait_for_origin(&self) -> Option<u64> {
        while self.origin.get().is_none() && !self.enough.load(Ordering::Relaxed) {
            thread::sleep(Duration::from_millis(1));
        }
        self.origin.get().copied()
    }

    fn work(&self, share: Share, parts: &Sender<IntervalPart>) -> io::Result<WorkerResult> {
        // Without it a sleep may end 50 µs late for the sake of the kernel's batching.
        let _ = sys_thread::set_timer_slack_ns(1);
        // All that a worker uses it opens itself, below. Where it is not permitted, system calls
        // cost a little more.
        let _ = sys_thread::own_descriptors();
        let picks = rng::stream(self.spec.seed, rng::PICKS + u64::from(share.index));
        let first = share.index as usize;
        let requests = RequestSet::new(&self.spec.target, self.requests.clone(), first, picks);
        let dispatch = Dispatch { plan: self, share, connects_each: false };
        let (client, io) = dispatch.client(requests);
        self.work_over(io, client, share, parts)
    }

    fn merge_intervals(
        &self,
        received: &Receiver<IntervalPart>,
        show: ProgressSink<'_>,
    ) -> Vec<Interval> {
        let mut merger = IntervalMerger::new(self.crew.workers as usize);
        // Without a script nothing wakes this thread between two intervals.
        let look = if self.script.is_some() { LOOK } else { Duration::MAX };
        loop {
            match received.recv_timeout(look) {
                Ok(part) => {
                    if let Some((interval, part)) = merger.add(part) {
                        show(Progress::Interval(&interval, &part));
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            // Some functions of the engine of JavaScript cannot be ended, nor can their worker.
            let since = self.script.iter().find_map(|script| script.computing_since());
            if since.is_some_and(|since| clock::monotonic_ns() > since + STUCK_NS) {
                interrupt::end_at_once_if_raised();
            }
            let lines = self.script.iter().flat_map(|script| script.take_console(false));
            lines.for_each(|line| show(Progress::Console(line)));
        }
        let lines = self.script.iter().flat_map(|script| script.take_console(true));
        lines.for_each(|line| show(Progress::Console(line)));
        merger.finish()
    }

    /// Start time of the workers, in nanoseconds of CLOCK_MONOTONIC. If there is none, they are
    /// stopped.
    fn begin(&self) -> u64 {
        let soon = || MonotonicClock::start().origin + self.lead_ns;
        match self.barrier.map(|barrier| barrier.begin()) {
            Some(Some(origin)) => origin,
            Some(None) => {
                self.stop.store(true, Ordering::Relaxed);
                soon()
            }
            None => soon(),
        }
    }

    /// Addresses without connections, lookups and proxies.
    fn routed(&self) -> RoutedConnections {
        let books = self.servers.iter().map(|server| &server.book);
        let proxies = self.spec.target.proxies().into_iter();
        RoutedConnections {
            addresses: books.clone().flat_map(|book| book.left_out()).collect(),
            lookups: books.map(|book| book.lookups()).sum(),
            proxies: proxies.map(|proxy| format!("{proxy:?}")).collect(),
            refused_because: None,
        }
    }

    /// Users wait for nothing but their responses.
    fn reading_delays(&self) -> bool {
        match &self.spec.load {
            Load::Closed { pause, .. } => {
                pause.law.is_zero() && !self.spec.target.protocol.subscribes()
            }
            Load::Open(_) | Load::Overload(_) => false,
        }
    }

    /// The measured window.
    fn window(&self) -> Window {
        Window { start: self.spec.warmup, end: self.spec.window_end() }
    }

    fn work_over(
        &self,
        io: io::Result<Box<dyn Backend>>,
        client: Box<dyn Client>,
        share: Share,
        parts: &Sender<IntervalPart>,
    ) -> io::Result<WorkerResult> {
        let spec = self.spec;
        let window = self.window();
        // The steps of sessions count, not the sessions.
        let limit = client.rate_limit().filter(|_| !client.carries_sessions());
        // Who subscribes has sent nothing that the server would have to answer.
        let patience = if spec.target.protocol.subscribes() {
            spec.timeout.min(LATE_MESSAGE)
        } else {
            spec.timeout + spec.connect_timeout
        };
        let script = spec.target.script();
        let give_up = match script.and_then(|script| script.graceful_stop) {
            Some(graceful_stop) => spec.window_end() + graceful_stop,
            None => spec.last_start() + patience,
        };
        let mut worker = Worker {
            driver: AnyDriver::new(spec, share).limited(limit.cloned(), spec),
            client,
            recorder: Recorder::new(RecorderConfig::of(spec, STARTS_MAX / self.crew.of as usize))
                .of_streams(&spec.target),
            clock: MonotonicClock::start(),
            receive_clock: ReceiveClock::new(0),
            waiter: Waiter::new(spec.engine.wait, COVERED, &spec.engine.margins)
                .of_worker(share.index - self.crew.first, self.spare),
            window,
            give_up,
            reading_delays: self.reading_delays(),
        };
        // All that takes time is done before the barrier; a worker that failed still has to come
        // to it, as the others wait there.
        let io = io.and_then(|mut io| {
            let ready = worker.client.prepare(&mut *io, self.stop);
            // Without it there is no load for the others either.
            let failed = ready.inspect_err(|_| self.stop.store(true, Ordering::Relaxed));
            failed.map(|()| io).map_err(io::Error::other)
        });
        if matches!(spec.load, Load::Open(_)) {
            worker.waiter = worker.waiter.going_first();
        }
        self.ready.wait();
        let origin = *self.origin.get_or_init(|| self.begin());
        worker.clock = MonotonicClock { origin };
        worker.receive_clock = ReceiveClock::new(origin);
        worker.client.set_epoch(clock::realtime_ahead_ns() + origin);
        worker.clock.wait_for_origin();
        if let Some(barrier) = self.barrier {
            barrier.begun(worker.clock.now().0);
        }
        let mut emit = |part| {
            // The receiver is gone only where its thread panicked.
            let _ = parts.send(part);
        };
        worker.run(&mut *io?, [self.stop, self.enough], &mut emit)
    }
}

/// Most connections that a trial may have open at once; of an overload, those that are not
/// established yet.
pub fn connections_of(spec: &TrialSpec) -> u32 {
    match &spec.load {
        Load::Open(open) => open.connections_max,
        Load::Closed { vusers, .. } => {
            let shared = spec.target.shared_by().and(spec.target.connections_max);
            shared.unwrap_or(vusers.saturating_mul(spec.target.lanes_per_user()))
        }
        Load::Overload(load) => load.scheme.connecting_max(),
    }
}

/// Waits of the workers over the window; late wake-ups count from the start.
fn wait_of(spec: &TrialSpec, done: &[WorkerResult]) -> WaitUse {
    let mean = |share: fn(&WorkerResult) -> f64| {
        let sum: f64 = done.iter().map(share).sum();
        sum * 100.0 / done.len().max(1) as f64
    };
    let mut lateness = Histogram::default();
    let mut changes = Vec::new();
    for worker in done {
        lateness.merge(worker.waiter.lateness());
        changes.extend_from_slice(worker.waiter.changes());
    }
    changes.sort_by_key(|change| (change.at, change.worker));
    WaitUse {
        policy: spec.engine.wait,
        polling_percent: mean(|d| d.waiter.polling_share(d.measurement.window)),
        realtime_percent: mean(|d| d.waiter.realtime_share(d.measurement.window)),
        polled_percent: mean(|d| {
            d.cost.polled.0 as f64 / d.measurement.window.length().0.max(1) as f64
        }),
        changes,
        lateness,
    }
}

/// Processors that this process may use: those of its affinity, limited by its cgroup's share.
fn processors() -> u32 {
    let count = thread::available_parallelism().map_or(1, |n| n.get());
    u32::try_from(count).unwrap_or(u32::MAX)
}
