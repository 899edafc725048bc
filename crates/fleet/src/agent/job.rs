//! A trial on an agent, from the order to the stored result.

use super::{AgentService, lock};
use crate::bus::{json, not_stored, now_ns};
use crate::clocks::{TimeSpan, longest_within};
use crate::interval_share::IntervalShare;
use crate::parcel::{outline, pack, piece_words};
use crate::permit;
use crate::protocol::{
    AgentAnswer, DeliveredPart, JobState, KEPT, PIECE, PrepareRequest, Snapshot, TrialKey,
    TrialOrder, live_subject, result_subject,
};
use async_nats::HeaderMap;
use async_nats::header::NATS_MESSAGE_ID;
use bytes::Bytes;
use knee_engine::StartBarrier;
use knee_load::measure::IntervalPart;
use knee_load::spec::{Pem, TrialSpec, WorkerRange};
use knee_load::time::Nanos;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// Time limit of the start request after the workers are ready.
const GO_PATIENCE: Duration = Duration::from_secs(60);
/// Least time from the start request to the beginning, in nanoseconds.
const LEAD_MIN_NS: u64 = 2_000_000;
/// Time before the beginning at which the workers wake up, in nanoseconds.
const WAKE_NS: u64 = 3_000_000;
/// Longest wait of a trial for the limit on operations per second.
const SPACING_WAIT: Duration = Duration::from_secs(10);

/// A trial that an agent prepares, runs or has run.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) key: TrialKey,
    shared: Arc<JobShared>,
    /// `None` once the trial was cancelled.
    go: Mutex<Option<Sender<u64>>>,
}

/// State that the job shares with its threads.
#[derive(Debug)]
struct JobShared {
    stop: AtomicBool,
    doing: Mutex<JobState>,
    /// The packed result, and since when it is kept.
    held: Mutex<Option<(Vec<Bytes>, Instant)>>,
    is_thanked: AtomicBool,
}

impl Job {
    /// Begins to prepare a trial. `ready` gets the answer once all workers are ready or one fails.
    pub(super) fn begin(
        order: TrialOrder,
        PrepareRequest { key, crew }: PrepareRequest,
        ready: oneshot::Sender<AgentAnswer>,
        service: Arc<AgentService>,
    ) -> Job {
        let (go, begins) = mpsc::channel();
        let shared = Arc::new(JobShared {
            stop: AtomicBool::new(false),
            doing: Mutex::new(JobState::Busy),
            held: Mutex::new(None),
            is_thanked: AtomicBool::new(false),
        });
        let job = Job { key: key.clone(), shared: shared.clone(), go: Mutex::new(Some(go)) };
        let runtime = tokio::runtime::Handle::current();
        let (answer, answers) = mpsc::channel();
        let failing = shared.clone();
        let work = move || {
            let work = JobRun {
                key,
                crew,
                order,
                service,
                shared: shared.clone(),
                ready: answer.clone(),
                go: Mutex::new(begins),
            };
            let ran = catch_unwind(AssertUnwindSafe(|| work.run(&runtime)));
            let failed = || AgentAnswer::No("it crashed: see its standard error".to_owned());
            if let Err(refusal) = ran.unwrap_or_else(|_| Err(failed())) {
                *lock(&shared.doing) = JobState::Failed(refusal.reason().to_owned());
                let _ = answer.send(refusal);
            }
        };
        // Workers have their own descriptor table and cannot wake a task: a thread forwards the
        // answer.
        let forward = move || {
            if let Ok(answer) = answers.recv() {
                let _ = ready.send(answer);
            }
        };
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
        let spawned = spawn("answer").spawn(forward).and_then(|_| spawn("trial").spawn(work));
        if let Err(e) = spawned {
            *lock(&failing.doing) = JobState::Failed(format!("cannot start a thread: {e}"));
        }
        job
    }

    pub(super) fn doing(&self) -> JobState {
        lock(&self.shared.doing).clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.doing().is_over()
    }

    pub(super) fn is_thanked(&self) -> bool {
        self.shared.is_thanked.load(Ordering::Relaxed)
    }

    /// Whether its result was kept longer than results are kept.
    pub(super) fn is_forgotten(&self) -> bool {
        let held = lock(&self.shared.held);
        held.as_ref().is_some_and(|(_, since)| since.elapsed() > KEPT)
    }

    /// Starts the trial at a time of the monotonic clock.
    pub(super) fn go(&self, at_ns: u64) -> AgentAnswer {
        let now = now_ns();
        if at_ns < now.saturating_add(LEAD_MIN_NS) {
            let late = now.saturating_sub(at_ns) as f64 / 1e6;
            return AgentAnswer::No(format!("the start request came {late:.1} ms too late"));
        }
        if lock(&self.go).as_ref().is_some_and(|go| go.send(at_ns).is_ok()) {
            AgentAnswer::Yes
        } else {
            AgentAnswer::No("its workers are no longer waiting".to_owned())
        }
    }

    /// Prevents the trial from starting, or ends it at once.
    pub(super) fn cancel(&self) {
        lock(&self.go).take();
        self.stop();
    }

    /// Ends the trial as failed.
    pub(super) fn fail(&self, why: &str) {
        *lock(&self.shared.doing) = JobState::Failed(why.to_owned());
        self.cancel();
    }

    pub(super) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Drops the result, which has arrived.
    pub(super) fn thank(&self) {
        self.shared.is_thanked.store(true, Ordering::Relaxed);
        lock(&self.shared.held).take();
    }

    /// Returns a piece of the result.
    pub(super) fn piece(&self, piece: usize) -> Option<Bytes> {
        let held = lock(&self.shared.held);
        held.as_ref().and_then(|(pieces, _)| pieces.get(piece).cloned())
    }
}

/// State of the trial's thread.
struct JobRun {
    key: TrialKey,
    crew: WorkerRange,
    order: TrialOrder,
    service: Arc<AgentService>,
    shared: Arc<JobShared>,
    /// Gets the answer once all workers are ready or one fails.
    ready: Sender<AgentAnswer>,
    go: Mutex<Receiver<u64>>,
}

impl JobRun {
    /// Starts a task that publishes snapshots. Some may be lost.
    fn publish_snapshots(&self, runtime: &tokio::runtime::Handle) -> UnboundedSender<Snapshot> {
        let (snapshots, mut to_send) = tokio::sync::mpsc::unbounded_channel::<Snapshot>();
        let subject = live_subject(&self.key.run, &self.service.facts.name);
        let client = self.service.client.clone();
        runtime.spawn(async move {
            while let Some(snapshot) = to_send.recv().await {
                let _ = client.publish(subject.clone(), json(&snapshot)).await;
            }
        });
        snapshots
    }

    /// Runs the trial and begins to store its result.
    ///
    /// # Errors
    /// The answer to the coordinator, with the reason.
    fn run(self, runtime: &tokio::runtime::Handle) -> Result<(), AgentAnswer> {
        let mut spec = self.order.spec.clone();
        spec.engine.margins = self.service.options.margins;
        let crew = self.crew;
        self.service.spacing.wait(SPACING_WAIT);
        permit::check(&self.service.options.permit, &mut spec, crew)?;
        let files = OrderFiles::write(&self.order.files, &self.key, &mut spec)
            .map_err(|e| AgentAnswer::No(format!("cannot write the files of the trial: {e}")))?;
        let snapshots = self.publish_snapshots(runtime);
        let barrier = AgentBarrier {
            work: &self,
            begun_late_ns: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
            sums: Mutex::default(),
            snapshots,
            why: Mutex::default(),
        };
        let ran = (self.service.make_part)(&spec, crew, &barrier, &self.shared.stop);
        // The first operation of each worker of the next trial counts in the limit.
        self.service.spacing.charge(crew.workers);
        drop(files);
        let (mut trial, stops) = ran?;
        if let Some(why) = lock(&barrier.why).take() {
            return Err(AgentAnswer::No(why));
        }
        trial.spec = outline(&self.order.spec);
        let stopped_ns = longest_within(&stops, barrier.window(&spec));
        trial.measurement.stall_ns_max = trial.measurement.stall_ns_max.max(stopped_ns);
        let begun_late_ns = barrier.begun_late_ns.load(Ordering::Relaxed);
        let delivered = DeliveredPart {
            agent: self.service.facts.name.clone(),
            crew,
            begun_late_ns,
            trial,
            parts: barrier.sums.into_inner().unwrap_or_default().parts,
        };
        let pieces = pack(&delivered)
            .map_err(|e| AgentAnswer::No(format!("its result cannot be written: {e}")))?;
        if lock(&self.shared.doing).is_over() {
            // The agent has ended the trial.
            return Ok(());
        }
        *lock(&self.shared.held) = Some((pieces.clone(), Instant::now()));
        let JobRun { key, service, shared, .. } = self;
        runtime.spawn(Storing { key, service, shared, pieces }.run());
        Ok(())
    }
}

/// Time between two attempts to store a result.
const AGAIN: Duration = Duration::from_secs(2);

/// A result on its way to JetStream.
struct Storing {
    key: TrialKey,
    service: Arc<AgentService>,
    shared: Arc<JobShared>,
    pieces: Vec<Bytes>,
}

impl Storing {
    /// Stores the result. On failure the agent keeps it and tries again until it is fetched.
    async fn run(self) {
        let count = self.pieces.len() as u32;
        let since = Instant::now();
        loop {
            match self.store().await {
                Ok(()) => {
                    *lock(&self.shared.doing) = JobState::Stored(count);
                    return;
                }
                // While NATS is away the state cannot be sent.
                Err(_) if self.service.link.down_since_ns().is_some() => {}
                Err(why) => *lock(&self.shared.doing) = JobState::Kept(count, why),
            }
            if self.shared.is_thanked.load(Ordering::Relaxed) || since.elapsed() > KEPT {
                return;
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    async fn store(&self) -> Result<(), String> {
        let agent = &self.service.facts.name;
        for (number, piece) in self.pieces.iter().enumerate() {
            let mut headers = HeaderMap::new();
            // A piece whose acknowledgement was lost is stored only once.
            let id = format!("{}.{agent}.{number}", self.key);
            headers.insert(NATS_MESSAGE_ID, id.as_str());
            headers.insert(PIECE, piece_words(number, self.pieces.len()).as_str());
            let subject = result_subject(&self.key, agent, &number.to_string());
            let stream = &self.service.stream;
            let sent = stream.publish_with_headers(subject, headers, piece.clone()).await;
            sent.map_err(|e| not_stored(&e))?.await.map_err(|e| not_stored(&e))?;
        }
        Ok(())
    }
}

/// The start barrier of an agent's workers: waits for the coordinator's start request.
struct AgentBarrier<'a> {
    work: &'a JobRun,
    begun_late_ns: AtomicU64,
    /// Beginning, by the monotonic clock; 0: not yet.
    began_ns: AtomicU64,
    sums: Mutex<ShareSums>,
    snapshots: UnboundedSender<Snapshot>,
    /// Why the agent ended the trial.
    why: Mutex<Option<String>>,
}

#[derive(Default)]
struct ShareSums {
    parts: Vec<IntervalShare>,
    sum: IntervalShare,
}

impl AgentBarrier<'_> {
    /// The measured window, by the monotonic clock. A limit of operations may end it earlier.
    fn window(&self, spec: &TrialSpec) -> TimeSpan {
        let began_ns = self.began_ns.load(Ordering::Relaxed);
        let at = |after: Nanos| began_ns.saturating_add(after.0);
        [at(spec.warmup), at(spec.window_end())]
    }
}

impl StartBarrier for AgentBarrier<'_> {
    fn begin(&self) -> Option<u64> {
        let _ = self.work.ready.send(AgentAnswer::Yes);
        let at_ns = lock(&self.work.go).recv_timeout(GO_PATIENCE).ok();
        let Some(at_ns) = at_ns else {
            *lock(&self.why) = Some("it received no start request".to_owned());
            return None;
        };
        let wait = at_ns.saturating_sub(now_ns()).saturating_sub(WAKE_NS);
        thread::sleep(Duration::from_nanos(wait));
        self.began_ns.store(at_ns, Ordering::Relaxed);
        Some(at_ns)
    }

    fn begun(&self, late_ns: u64) {
        self.begun_late_ns.fetch_max(late_ns, Ordering::Relaxed);
    }

    fn rate_max(&self) -> Option<f64> {
        self.work.service.options.permit.rate_max
    }

    fn part(&self, part: &IntervalPart) {
        let sum = {
            let mut sums = lock(&self.sums);
            let part = IntervalShare::new(part);
            sums.sum.accumulate(&part.coarse());
            sums.parts.push(part);
            sums.sum.clone()
        };
        // The receiver is gone only if the runtime ended.
        let _ = self.snapshots.send(Snapshot { key: self.work.key.clone(), sum });
    }
}

/// Files of an order, readable only by this user, until this is dropped.
struct OrderFiles(Option<PathBuf>);

impl OrderFiles {
    /// Writes the files, and puts their paths into the spec.
    fn write(
        files: &[(String, Vec<u8>)],
        key: &TrialKey,
        spec: &mut TrialSpec,
    ) -> std::io::Result<OrderFiles> {
        if files.is_empty() {
            return Ok(OrderFiles(None));
        }
        // A trial that is prepared again gets another folder; the first is removed when its job
        // ends.
        let name = format!("knee-agent-{}-{key}-{}", std::process::id(), now_ns());
        let folder = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let written = OrderFiles(Some(folder.clone()));
        let mut names = Vec::new();
        for (number, (name, bytes)) in files.iter().enumerate() {
            let path = folder.join(number.to_string());
            let mut options = fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&path)?;
            file.write_all(bytes)?;
            names.push((name, path));
        }
        for named in files_of(spec) {
            if let Some((_, path)) = names.iter().find(|(name, _)| *name == named) {
                *named = path.to_string_lossy().into_owned();
            }
        }
        Ok(written)
    }
}

impl Drop for OrderFiles {
    fn drop(&mut self) {
        if let Some(folder) = &self.0 {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// The names of the files that a trial reads.
pub(crate) fn files_of(spec: &mut TrialSpec) -> Vec<&mut String> {
    let files = spec.target.tls_of_servers().flat_map(|tls| {
        let shown = tls.certificate.iter_mut().flat_map(|c| [&mut c.certificate, &mut c.key]);
        let shown = shown.filter_map(|pem| match pem {
            Pem::File(name) => Some(name),
            Pem::Text { .. } => None,
        });
        tls.roots.iter_mut().chain(shown)
    });
    files.collect()
}
