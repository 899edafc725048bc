//! One trial as an agent makes it.

use super::stops::{Span, StopWatch, longest_within};
use super::{lock, store};
use crate::FleetError;
use crate::bus::{Link, json, now_ns};
use crate::outline::outline;
use crate::parcel::pack;
use crate::part::Part;
use crate::permit::{Permit, Spacing};
use crate::words::{
    Answer, Delivered, Doing, KEPT, Order, Prepare, Snapshot, TrialKey, live_subject,
};
use async_nats::{Client, jetstream};
use bytes::Bytes;
use knee_core::measure::IntervalPart;
use knee_core::spec::{Margins, TrialSpec, WorkerRange};
use knee_core::time::Nanos;
use knee_engine::Muster;
use knee_engine::error::RunError;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::oneshot;

/// Workers that are ready wait so long for the word to begin.
const GO_PATIENCE: Duration = Duration::from_secs(60);
/// An agent that is told to begin so soon cannot be sure to.
const LEAD_MIN_NS: u64 = 2_000_000;
/// So long before the beginning its workers wake up.
const WAKE_NS: u64 = 3_000_000;
/// A trial waits for the limit on operations per second after the last one no longer than this.
const SPACING_WAIT: Duration = Duration::from_secs(10);

/// What a job needs of its agent.
#[derive(Clone)]
pub(super) struct Tools {
    pub(super) agent: String,
    pub(super) client: Client,
    pub(super) stream: jetstream::Context,
    pub(super) link: Arc<Link>,
    pub(super) permit: Permit,
    pub(super) margins: Margins,
    pub(super) spacing: Arc<Spacing>,
    pub(super) clock_shift_ns: i64,
}

/// A trial that an agent prepares, makes, or has made.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) key: TrialKey,
    shared: Arc<Shared>,
    /// Gone once the trial was cancelled.
    go: Mutex<Option<Sender<u64>>>,
    clock_shift_ns: i64,
}

/// What the job's own threads have of it.
#[derive(Debug)]
pub(super) struct Shared {
    stop: AtomicBool,
    pub(super) doing: Mutex<Doing>,
    /// Its result, packed, and since when.
    held: Mutex<Option<(Vec<Bytes>, Instant)>>,
    pub(super) is_thanked: AtomicBool,
}

impl Job {
    /// Begins to prepare it; `ready` is told once all workers wait, or why they never will.
    pub(super) fn begin(
        (order, Prepare { key, crew }): (Order, Prepare),
        ready: oneshot::Sender<Answer>,
        tools: Tools,
    ) -> Job {
        let (go, told) = mpsc::channel();
        let shared = Arc::new(Shared {
            stop: AtomicBool::new(false),
            doing: Mutex::new(Doing::Busy),
            held: Mutex::new(None),
            is_thanked: AtomicBool::new(false),
        });
        let job = Job {
            key: key.clone(),
            shared: shared.clone(),
            go: Mutex::new(Some(go)),
            clock_shift_ns: tools.clock_shift_ns,
        };
        let runtime = tokio::runtime::Handle::current();
        let (answer, answers) = mpsc::channel();
        let failing = shared.clone();
        let work = move || {
            let work = Work {
                key,
                crew,
                order,
                tools,
                shared: shared.clone(),
                ready: answer.clone(),
                go: Mutex::new(told),
            };
            let ran = catch_unwind(AssertUnwindSafe(|| work.run(&runtime)));
            let failed = match ran {
                Ok(ran) => ran.err(),
                Err(_) => {
                    let line = "it failed: its standard error says more".to_owned();
                    Some((Answer::No(line.clone()), line))
                }
            };
            if let Some((no, why)) = failed {
                *lock(&shared.doing) = Doing::Failed(why);
                let _ = answer.send(no);
            }
        };
        // Workers have descriptors of their own, and so cannot wake a task: a thread does.
        let forward = move || {
            if let Ok(answer) = answers.recv() {
                let _ = ready.send(answer);
            }
        };
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
        let spawned = spawn("answer")
            .spawn(forward)
            .and_then(|_| spawn("trial").spawn(work));
        if let Err(e) = spawned {
            *lock(&failing.doing) = Doing::Failed(format!("no thread can be had: {e}"));
        }
        job
    }

    pub(super) fn doing(&self) -> Doing {
        lock(&self.shared.doing).clone()
    }

    pub(super) fn is_over(&self) -> bool {
        self.doing().is_over()
    }

    pub(super) fn is_thanked(&self) -> bool {
        self.shared.is_thanked.load(Ordering::Relaxed)
    }

    /// Nobody has asked for its result for longer than results are kept.
    pub(super) fn is_forgotten(&self) -> bool {
        let held = lock(&self.shared.held);
        held.as_ref()
            .is_some_and(|(_, since)| since.elapsed() > KEPT)
    }

    /// It is to begin at this moment of the clock that the agent says it has.
    pub(super) fn go(&self, at_ns: u64, now: u64) -> Answer {
        if at_ns < now.saturating_add(LEAD_MIN_NS) {
            let late = now.saturating_sub(at_ns) as f64 / 1e6;
            return Answer::No(format!("the word to begin came too late, by {late:.1} ms"));
        }
        let at_ns = at_ns.saturating_add_signed(-self.clock_shift_ns);
        let told = lock(&self.go).as_ref().map(|go| go.send(at_ns).is_ok());
        match told {
            Some(true) => Answer::Yes,
            _ => Answer::No("its workers do not wait any more".to_owned()),
        }
    }

    /// It does not begin, or ends at once.
    pub(super) fn cancel(&self) {
        lock(&self.go).take();
        self.stop();
    }

    /// It comes to nothing, for this reason.
    pub(super) fn fail(&self, why: &str) {
        *lock(&self.shared.doing) = Doing::Failed(why.to_owned());
        self.cancel();
    }

    pub(super) fn stop(&self) {
        self.shared.stop.store(true, Ordering::Relaxed);
    }

    /// Its result has arrived.
    pub(super) fn thank(&self) {
        self.shared.is_thanked.store(true, Ordering::Relaxed);
        lock(&self.shared.held).take();
    }

    /// A piece of its result.
    pub(super) fn piece(&self, piece: usize) -> Option<Bytes> {
        let held = lock(&self.shared.held);
        held.as_ref()
            .and_then(|(pieces, _)| pieces.get(piece).cloned())
    }
}

/// What the trial's thread has.
struct Work {
    key: TrialKey,
    crew: WorkerRange,
    order: Order,
    tools: Tools,
    shared: Arc<Shared>,
    /// Told once all workers wait, or why they never will.
    ready: Sender<Answer>,
    go: Mutex<Receiver<u64>>,
}

impl Work {
    /// Publishes what is put in as it comes: losing some of it does no harm.
    fn publish_snapshots(
        &self,
        runtime: &tokio::runtime::Handle,
    ) -> tokio::sync::mpsc::UnboundedSender<Snapshot> {
        let (snapshots, mut to_send) = tokio::sync::mpsc::unbounded_channel::<Snapshot>();
        let subject = live_subject(&self.key.run, &self.tools.agent);
        let client = self.tools.client.clone();
        runtime.spawn(async move {
            while let Some(snapshot) = to_send.recv().await {
                let _ = client.publish(subject.clone(), json(&snapshot)).await;
            }
        });
        snapshots
    }

    /// From the order to the stored result; why not, in an answer and in words.
    fn run(self, runtime: &tokio::runtime::Handle) -> Result<(), (Answer, String)> {
        let mut spec = self.order.spec.clone();
        spec.engine.margins = self.tools.margins;
        let crew = self.crew;
        self.tools.spacing.wait(SPACING_WAIT);
        let permitted = self.tools.permit.check(&mut spec, crew);
        permitted.map_err(|e| match e {
            FleetError::Unreachable(line) => (Answer::Unreachable(line.clone()), line),
            FleetError::Refused(line) | FleetError::Gone(line) => (Answer::No(line.clone()), line),
        })?;
        let files = Files::put(&self.order.files, &self.key, &mut spec).map_err(|e| {
            let line = format!("the files that the trial needs: {e}");
            (Answer::No(line.clone()), line)
        })?;
        let snapshots = self.publish_snapshots(runtime);
        let muster = AgentMuster {
            work: &self,
            begun_late_ns: AtomicU64::new(0),
            began_ns: AtomicU64::new(0),
            seen: Mutex::default(),
            snapshots,
            why: Mutex::default(),
        };
        let watch = StopWatch::start();
        let ran = knee_engine::run_part(&spec, crew, &muster, &self.shared.stop);
        let stops = watch.end();
        // Each worker of the next trial begins with one operation: that has to be earned.
        self.tools.spacing.charge(crew.workers);
        drop(files);
        let mut trial = ran.map_err(|e| match e {
            RunError::Unreachable(line) => (Answer::Unreachable(line.clone()), line),
            other => {
                let line = other.to_string();
                (Answer::No(line.clone()), line)
            }
        })?;
        if let Some(why) = lock(&muster.why).take() {
            return Err((Answer::No(why.clone()), why));
        }
        trial.spec = outline(&self.order.spec);
        let stopped_ns = longest_within(&stops, muster.window(&spec));
        trial.measurement.stall_ns_max = trial.measurement.stall_ns_max.max(stopped_ns);
        let begun_late_ns = muster.begun_late_ns.load(Ordering::Relaxed);
        let delivered = Delivered {
            agent: self.tools.agent.clone(),
            crew,
            begun_late_ns,
            trial,
            parts: muster.seen.into_inner().unwrap_or_default().parts,
        };
        let pieces = pack(&delivered).map_err(|e| {
            let line = format!("its result cannot be written: {e}");
            (Answer::No(line.clone()), line)
        })?;
        if lock(&self.shared.doing).is_over() {
            // The agent ended it.
            return Ok(());
        }
        *lock(&self.shared.held) = Some((pieces.clone(), Instant::now()));
        let storing = store::Storing {
            key: self.key,
            tools: self.tools,
            shared: self.shared,
            pieces,
        };
        runtime.spawn(storing.run());
        Ok(())
    }
}

/// The agent's side of a common trial.
struct AgentMuster<'a> {
    work: &'a Work,
    begun_late_ns: AtomicU64,
    /// When it began, by the monotonic clock; 0: not yet.
    began_ns: AtomicU64,
    seen: Mutex<Parts>,
    snapshots: UnboundedSender<Snapshot>,
    /// Why the agent ended it.
    why: Mutex<Option<String>>,
}

#[derive(Default)]
struct Parts {
    parts: Vec<Part>,
    sum: Part,
}

impl AgentMuster<'_> {
    /// The measured window, by the monotonic clock. A number of operations may end it earlier.
    fn window(&self, spec: &TrialSpec) -> Span {
        let began_ns = self.began_ns.load(Ordering::Relaxed);
        let at = |after: Nanos| began_ns.saturating_add(after.0);
        [at(spec.warmup), at(spec.window_end())]
    }
}

impl Muster for AgentMuster<'_> {
    fn begin(&self) -> Option<u64> {
        let _ = self.work.ready.send(Answer::Yes);
        let at_ns = lock(&self.work.go).recv_timeout(GO_PATIENCE).ok();
        let Some(at_ns) = at_ns else {
            *lock(&self.why) = Some("it was never told to begin".to_owned());
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
        self.work.tools.permit.rate_max
    }

    fn part(&self, part: &IntervalPart) {
        let sum = {
            let mut seen = lock(&self.seen);
            let part = Part::of(part);
            seen.sum.accumulate(&part.coarse());
            seen.parts.push(part);
            seen.sum.clone()
        };
        // The receiver is gone only where the runtime ended.
        let _ = self.snapshots.send(Snapshot {
            key: self.work.key.clone(),
            sum,
        });
    }
}

/// Files that came with an order, where only this user can read them, for as long as it takes.
struct Files {
    folder: Option<PathBuf>,
}

impl Files {
    /// Writes them, and names them in the spec.
    fn put(
        files: &[(String, Vec<u8>)],
        key: &TrialKey,
        spec: &mut TrialSpec,
    ) -> std::io::Result<Files> {
        if files.is_empty() {
            return Ok(Files { folder: None });
        }
        // A trial that is prepared again has a folder of its own: the first goes when it ends.
        let name = format!("knee-agent-{}-{key}-{}", std::process::id(), now_ns());
        let folder = std::env::temp_dir().join(name);
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let kept = Files {
            folder: Some(folder.clone()),
        };
        let mut names = Vec::new();
        for (number, (name, bytes)) in files.iter().enumerate() {
            let path = folder.join(number.to_string());
            let mut options = fs::OpenOptions::new();
            let mut file = options
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&path)?;
            file.write_all(bytes)?;
            names.push((name, path));
        }
        for named in files_of(spec) {
            if let Some((_, path)) = names.iter().find(|(name, _)| *name == named) {
                *named = path_text(path);
            }
        }
        Ok(kept)
    }
}

fn path_text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

impl Drop for Files {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// The names of the files that a trial reads.
pub(crate) fn files_of(spec: &mut TrialSpec) -> Vec<&mut String> {
    let Some(tls) = &mut spec.target.tls else {
        return Vec::new();
    };
    let shown = tls
        .certificate
        .iter_mut()
        .flat_map(|c| [&mut c.certificate, &mut c.key]);
    tls.roots.iter_mut().chain(shown).collect()
}
