//! A script, as all users of a process share it.

use crate::metric::{MetricKind, MetricName};
use crate::options::ScriptSettings;
use crate::thresholds;
use knee_load::session::{SCRIPT_ROWS, ScriptPlan};
use knee_load::spec::WorkerRange;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Names of checks and groups, together; the last one is for all further names.
pub(crate) const NAMES_MAX: usize = 200;

/// Metrics that a script may make.
const METRICS_MAX: usize = 1_000;

/// Lines that the console shows of a trial.
const CONSOLE_LINES_MAX: usize = 1_000;

/// Warnings that a script gets once each.
const WARNINGS_MAX: usize = 100;

/// What thresholds are of that have tags: a metric of those values alone.
#[derive(Debug)]
pub(crate) struct Tagged {
    /// Its name, and that of the metric whose values it is of.
    name: String,
    metric: String,
    /// Tags of these values.
    tags: BTreeMap<String, String>,
    /// Its number, once that metric is there.
    number: OnceLock<u32>,
}

/// A script and what its users share: names, and data that exists once.
#[derive(Debug)]
pub struct Script {
    plan: Arc<ScriptPlan>,
    settings: ScriptSettings,
    tagged: Vec<Tagged>,
    names: Mutex<Names>,
    /// The rows by their names, once no further one is made: read without a lock.
    all_rows: OnceLock<HashMap<String, u32>>,
    /// Modules as bytecode, by their names.
    modules: Mutex<HashMap<String, Arc<[u8]>>>,
    metrics: Mutex<Vec<MetricName>>,
    arrays: Mutex<HashMap<String, Arc<[String]>>>,
    warnings: Mutex<HashSet<String>>,
    console: Mutex<Console>,
    /// Users that were made and that have an iteration, and iterations that ended and that failed,
    /// in this process.
    pub(crate) counts: [AtomicU64; 4],
    /// Iterations of each scenario that began in this process, by its number.
    begun: Vec<AtomicU64>,
    /// The workers of this process, and since when a user of each computes, by the caller's clock;
    /// 0: none does.
    workers: WorkerRange,
    computing: Vec<AtomicU64>,
    /// A user has ended the trial, for the users of all workers.
    pub has_ended: AtomicBool,
}

/// Lines that a script wrote to the console and that were not shown yet.
#[derive(Debug, Default)]
struct Console {
    lines: Vec<String>,
    /// Lines so far that are shown, and that are not.
    shown: usize,
    left_out: u64,
}

#[derive(Debug, Default)]
struct Names {
    all: Vec<String>,
    numbers: HashMap<String, u32>,
    rows: Vec<String>,
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Script {
    /// A script that no user runs yet.
    pub fn new(plan: Arc<ScriptPlan>) -> Script {
        let names = Names { rows: plan.rows.clone(), ..Names::default() };
        // Options are checked before the load; while a script is read there are none.
        let settings = ScriptSettings::read(&plan.options).unwrap_or_default();
        let metrics = settings.thresholds.iter();
        let tagged = metrics.filter(|(name, of)| thresholds::is_recorded(name, of));
        let tagged = tagged.map(|(name, _)| {
            let (metric, tags) = thresholds::parts(name);
            let (metric, tags) = (metric.to_owned(), tags.into_iter().collect());
            Tagged { name: name.clone(), metric, tags, number: OnceLock::new() }
        });
        let begun = plan.functions.iter().map(|_| AtomicU64::new(0)).collect();
        let script = Script {
            plan,
            tagged: tagged.collect(),
            settings,
            names: Mutex::new(names),
            all_rows: OnceLock::new(),
            modules: Mutex::default(),
            metrics: Mutex::default(),
            arrays: Mutex::default(),
            warnings: Mutex::default(),
            console: Mutex::default(),
            counts: Default::default(),
            begun,
            workers: WorkerRange::whole(1),
            computing: Vec::new(),
            has_ended: AtomicBool::default(),
        };
        for metric in &script.tagged {
            if let Some(kind) = thresholds::kind_of(&metric.metric) {
                script.tag(&mut lock(&script.metrics), metric, kind, kind == MetricKind::Trend);
            }
        }
        script
    }

    /// The same, run by these workers.
    pub fn of_workers(self, workers: WorkerRange) -> Script {
        let computing = (0..workers.workers).map(|_| AtomicU64::new(0)).collect();
        Script { workers, computing, ..self }
    }

    /// A user of a worker computes from a time on; 0: not any more.
    pub fn set_computing(&self, worker: u32, since_ns: u64) {
        if let Some(since) = self.computing.get((worker - self.workers.first) as usize) {
            since.store(since_ns, Relaxed);
        }
    }

    /// Since when the user computes that did not let others go on for the longest time.
    pub fn computing_since(&self) -> Option<u64> {
        self.computing.iter().map(|since| since.load(Relaxed)).filter(|since| *since > 0).min()
    }

    /// Numbers of an iteration of a scenario that begins, from 0 on: among those of this process, and
    /// among all. No other one has them; those of several processes leave some out, as their workers
    /// take turns.
    pub fn begin(&self, scenario: usize) -> [u64; 2] {
        let here = self.begun.get(scenario).map_or(0, |begun| begun.fetch_add(1, Relaxed));
        let WorkerRange { first, workers, of } = self.workers;
        let (turn, worker) = (here / u64::from(workers.max(1)), here % u64::from(workers.max(1)));
        [here, turn * u64::from(of) + u64::from(first) + worker]
    }

    /// Makes the metric of tagged values.
    fn tag(&self, all: &mut Vec<MetricName>, of: &Tagged, kind: MetricKind, is_time: bool) {
        of.number.get_or_init(|| {
            all.push(MetricName { name: of.name.clone(), kind, is_time });
            all.len() as u32 - 1
        });
    }

    /// Whether thresholds are of tagged values.
    pub(crate) fn has_tagged(&self) -> bool {
        !self.tagged.is_empty()
    }

    /// The numbers of the metrics that a value with these tags belongs to, and what they are of.
    pub(crate) fn tagged(
        &self,
        tags: &BTreeMap<String, String>,
    ) -> impl Iterator<Item = (u32, &str)> {
        let has = |of: &&Tagged| of.tags.iter().all(|(name, value)| tags.get(name) == Some(value));
        let all = self.tagged.iter().filter(has);
        all.filter_map(|of| Some((*of.number.get()?, &*of.metric)))
    }

    /// What it was made of.
    pub fn plan(&self) -> &ScriptPlan {
        &self.plan
    }

    /// Settings of its requests.
    pub(crate) fn settings(&self) -> &ScriptSettings {
        &self.settings
    }

    /// A module as bytecode, if a user has compiled it.
    pub(crate) fn module(&self, name: &str) -> Option<Arc<[u8]>> {
        lock(&self.modules).get(name).cloned()
    }

    /// Keeps a module for further users.
    pub(crate) fn set_module(&self, name: &str, bytecode: Vec<u8>) {
        lock(&self.modules).insert(name.to_owned(), bytecode.into());
    }

    /// The number of a name of a check or a group. Beyond a limit all have the last one.
    pub(crate) fn name(&self, name: &str) -> u32 {
        let mut names = lock(&self.names);
        if let Some(number) = names.numbers.get(name) {
            return *number;
        }
        let number = names.all.len().min(NAMES_MAX - 1) as u32;
        if number + 1 == NAMES_MAX as u32 {
            names.all.resize(NAMES_MAX, "others".to_owned());
            return number;
        }
        names.all.push(name.to_owned());
        names.numbers.insert(name.to_owned(), number);
        number
    }

    /// Names of checks and groups, by their numbers.
    pub fn names(&self) -> Vec<String> {
        lock(&self.names).all.clone()
    }

    /// The row of a request's name; the last one is for all names beyond the others.
    pub fn row(&self, name: &str) -> u32 {
        const OTHERS: usize = SCRIPT_ROWS - 1;
        if let Some(rows) = self.all_rows.get() {
            return rows.get(name).copied().unwrap_or(OTHERS as u32);
        }
        let rows = &mut lock(&self.names).rows;
        let known = rows.iter().position(|row| row == name);
        let row = known.unwrap_or_else(|| {
            if rows.len() < OTHERS {
                rows.push(name.to_owned());
            }
            rows.len() - 1
        });
        if rows.len() >= OTHERS {
            let all = rows.iter().cloned().zip(0..).collect();
            self.all_rows.get_or_init(|| all);
            return self.row(name);
        }
        row as u32
    }

    /// Names of the rows so far.
    pub fn rows(&self) -> Vec<String> {
        lock(&self.names).rows.clone()
    }

    /// The number of a metric, which is made unless there is one of this name and kind.
    pub(crate) fn metric(&self, metric: MetricName) -> Result<u32, String> {
        let mut metrics = lock(&self.metrics);
        let known = metrics.iter().position(|known| known.name == metric.name);
        if let Some(at) = known {
            let is_same = metrics[at].kind == metric.kind;
            let line = || format!("metric '{}' is there already, of another kind", metric.name);
            return if is_same { Ok(at as u32) } else { Err(line()) };
        }
        if metrics.len() >= METRICS_MAX {
            return Err(format!("more than {METRICS_MAX} metrics"));
        }
        metrics.push(metric.clone());
        let number = metrics.len() as u32 - 1;
        for of in self.tagged.iter().filter(|of| of.metric == metric.name) {
            self.tag(&mut metrics, of, metric.kind, metric.is_time);
        }
        Ok(number)
    }

    /// The metrics that it made so far, by their numbers.
    pub fn metrics(&self) -> Vec<MetricName> {
        lock(&self.metrics).clone()
    }

    /// Adds what a user wrote to the console, a line each. Lines of `console.debug` are not shown,
    /// as in k6.
    pub fn add_console(&self, lines: &str) {
        let mut console = lock(&self.console);
        for line in lines.lines().filter(|line| !line.starts_with("debug: ")) {
            if console.shown < CONSOLE_LINES_MAX {
                console.shown += 1;
                // A terminal obeys control characters.
                let line = line.chars().map(|c| if c.is_control() { ' ' } else { c });
                console.lines.push(line.collect());
            } else {
                console.left_out += 1;
            }
        }
    }

    /// Counts a line that no console has room for.
    pub(crate) fn leave_out_line(&self) {
        lock(&self.console).left_out += 1;
    }

    /// The lines for the console since the last call; at the end also how many there were beyond
    /// those that are shown.
    pub fn take_console(&self, is_end: bool) -> Vec<String> {
        let mut console = lock(&self.console);
        let mut lines = std::mem::take(&mut console.lines);
        if is_end && console.left_out > 0 {
            lines.push(format!("console: {} further lines are not shown", console.left_out));
        }
        lines
    }

    /// Whether nobody was warned of this yet.
    pub(crate) fn is_news(&self, line: &str) -> bool {
        let mut warnings = lock(&self.warnings);
        warnings.len() < WARNINGS_MAX && warnings.insert(line.to_owned())
    }

    pub(crate) fn array(&self, name: &str) -> Option<Arc<[String]>> {
        lock(&self.arrays).get(name).cloned()
    }

    /// Keeps the elements of a shared array, as JSON. The first one of a name stays.
    pub(crate) fn set_array(&self, name: String, elements: Vec<String>) {
        lock(&self.arrays).entry(name).or_insert_with(|| elements.into());
    }
}
