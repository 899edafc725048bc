//! A script, as all users of a process share it.

use knee_load::session::ScriptPlan;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

/// A script and what its users share: names, and data that exists once.
#[derive(Debug)]
pub struct Script {
    plan: Arc<ScriptPlan>,
    names: Mutex<Names>,
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
        Script {
            plan,
            names: Mutex::new(names),
            metrics: Mutex::default(),
            arrays: Mutex::default(),
        }
    }

    /// What it was made of.
    pub fn plan(&self) -> &ScriptPlan {
        &self.plan
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
        let mut names = lock(&self.names);
        let known = names.rows.iter().position(|row| row == name);
        let row = known.unwrap_or_else(|| {
            if names.rows.len() < knee_load::session::SCRIPT_ROWS - 1 {
                names.rows.push(name.to_owned());
                names.rows.len() - 1
            } else {
                knee_load::session::SCRIPT_ROWS - 1
            }
        });
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
        metrics.push(metric);
        Ok(metrics.len() as u32 - 1)
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
