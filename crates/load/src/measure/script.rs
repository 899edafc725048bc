//! What scripts recorded.

use super::Histogram;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Number of failures that are kept.
pub const SCRIPT_FAILURES_KEPT: usize = 3;

/// What a script recorded, within the window.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ScriptMeasured {
    /// Names of requests, by the numbers of their rows.
    pub rows: Vec<String>,
    /// Checks by their names, after those of their groups: how often each passed and failed.
    pub checks: BTreeMap<String, [u64; 2]>,
    /// Times of groups, by their paths.
    pub groups: BTreeMap<String, Histogram>,
    /// Values of metrics, by their names.
    pub metrics: BTreeMap<String, ScriptMetric>,
    /// Iterations that the script failed.
    pub failed: u64,
    /// Why, of the first ones.
    pub failures: Vec<String>,
    /// Why the script ended the test, if it did.
    pub aborted: Option<String>,
    /// Why the script marked the test as failed, if it did.
    pub marked: Option<String>,
    /// Processor time that scripts took.
    pub computed: Nanos,
    /// The first lines that the script wrote to the console.
    pub log: String,
}

/// A metric of a script.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptMetric {
    /// A sum.
    Counter {
        /// The sum.
        sum: f64,
        /// Values are times in milliseconds.
        is_time: bool,
    },
    /// The last value.
    Gauge {
        /// The last value, the least and the largest.
        last: f64,
        /// See `last`.
        min: f64,
        /// See `last`.
        max: f64,
        /// Values are times in milliseconds.
        is_time: bool,
    },
    /// The share of values that are not 0.
    Rate {
        /// Values that are not 0.
        hits: u64,
        /// All values.
        all: u64,
    },
    /// A distribution; values are counted in millionths.
    Trend {
        /// The values, in millionths of their unit.
        values: Histogram,
        /// Their sum, the least and the largest.
        sum: f64,
        /// See `sum`.
        min: f64,
        /// See `sum`.
        max: f64,
        /// Values are times in milliseconds.
        is_time: bool,
    },
}

impl ScriptMetric {
    /// Adds a value.
    pub fn add(&mut self, value: f64) {
        match self {
            ScriptMetric::Counter { sum, .. } => *sum += value,
            ScriptMetric::Gauge { last, min, max, .. } => {
                *last = value;
                *min = min.min(value);
                *max = max.max(value);
            }
            ScriptMetric::Rate { hits, all } => {
                *hits += u64::from(value != 0.0);
                *all += 1;
            }
            ScriptMetric::Trend { values, sum, min, max, .. } => {
                values.record(Nanos((value.max(0.0) * 1e6) as u64));
                *sum += value;
                *min = min.min(value);
                *max = max.max(value);
            }
        }
    }

    fn merge(&mut self, other: ScriptMetric) {
        match (self, other) {
            (ScriptMetric::Counter { sum, .. }, ScriptMetric::Counter { sum: more, .. }) => {
                *sum += more;
            }
            (
                ScriptMetric::Gauge { last, min, max, .. },
                ScriptMetric::Gauge { last: newer, min: low, max: high, .. },
            ) => {
                *last = newer;
                *min = min.min(low);
                *max = max.max(high);
            }
            (ScriptMetric::Rate { hits, all }, ScriptMetric::Rate { hits: h, all: a }) => {
                *hits += h;
                *all += a;
            }
            (
                ScriptMetric::Trend { values, sum, min, max, .. },
                ScriptMetric::Trend { values: more, sum: added, min: low, max: high, .. },
            ) => {
                values.merge(&more);
                *sum += added;
                *min = min.min(low);
                *max = max.max(high);
            }
            // One name has one kind.
            _ => {}
        }
    }
}

impl ScriptMeasured {
    /// Adds another's.
    pub(super) fn merge(&mut self, other: ScriptMeasured) {
        if self.rows.len() < other.rows.len() {
            self.rows = other.rows;
        }
        for (name, counts) in other.checks {
            let mine = self.checks.entry(name).or_default();
            mine.iter_mut().zip(counts).for_each(|(mine, theirs)| *mine += theirs);
        }
        for (path, times) in other.groups {
            self.groups.entry(path).or_default().merge(&times);
        }
        for (name, metric) in other.metrics {
            match self.metrics.get_mut(&name) {
                Some(mine) => mine.merge(metric),
                None => drop(self.metrics.insert(name, metric)),
            }
        }
        self.failed += other.failed;
        self.failures.extend(other.failures);
        self.failures.truncate(SCRIPT_FAILURES_KEPT);
        self.aborted = self.aborted.take().or(other.aborted);
        self.marked = self.marked.take().or(other.marked);
        self.computed += other.computed;
        if self.log.is_empty() {
            self.log = other.log;
        }
    }
}
