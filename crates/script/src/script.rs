//! A script, as all users of a process share it.

use crate::options::ScriptSettings;
use crate::thresholds;
use knee_load::session::{SCRIPT_ROWS, ScriptPlan};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Names that a script may make up: checks, groups and metrics, each.
const NAMES_MAX: usize = 1_000;

/// A kind of metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MetricKind {
    /// A sum.
    Counter,
    /// The last value.
    Gauge,
    /// The share of values that are not 0.
    Rate,
    /// A distribution.
    Trend,
}

/// A metric that a script made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricName {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: MetricKind,
    /// Its values are times, in milliseconds.
    pub is_time: bool,
}

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
        let metrics = settings.thresholds.keys();
        let tagged = metrics.filter(|name| thresholds::is_tagged(name)).map(|name| {
            let (metric, tags) = thresholds::parts(name);
            let (metric, tags) = (metric.to_owned(), tags.into_iter().collect());
            Tagged { name: name.clone(), metric, tags, number: OnceLock::new() }
        });
        let script = Script {
            plan,
            tagged: tagged.collect(),
            settings,
            names: Mutex::new(names),
            all_rows: OnceLock::new(),
            modules: Mutex::default(),
            metrics: Mutex::default(),
            arrays: Mutex::default(),
        };
        for metric in &script.tagged {
            if let Some(kind) = thresholds::kind_of(&metric.metric) {
                script.tag(&mut lock(&script.metrics), metric, kind, kind == MetricKind::Trend);
            }
        }
        script
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
        if names.all.len() >= NAMES_MAX {
            return NAMES_MAX as u32 - 1;
        }
        let number = names.all.len() as u32;
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
        if metrics.len() >= NAMES_MAX {
            return Err(format!("more than {NAMES_MAX} metrics"));
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

    pub(crate) fn array(&self, name: &str) -> Option<Arc<[String]>> {
        lock(&self.arrays).get(name).cloned()
    }

    /// Keeps the elements of a shared array, as JSON. The first one of a name stays.
    pub(crate) fn set_array(&self, name: String, elements: Vec<String>) {
        lock(&self.arrays).entry(name).or_insert_with(|| elements.into());
    }
}
