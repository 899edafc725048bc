//! Steps and sessions as OpenMetrics: counters and histograms of each, by its name.

use super::{Times, escaped, head, histogram, line};
use knee_core::trial::sessions::SessionNames;
use knee_load::measure::{EndedCounts, Interval, TIME_BOUNDS};

/// What ended of the steps and the sessions of a trial.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    /// What they are called, by their numbers; empty where operations are no steps.
    pub names: SessionNames,
    steps: Vec<EndedCounts>,
    kinds: Vec<EndedCounts>,
}

impl Sessions {
    /// Of a trial whose sessions are called so.
    pub(super) fn named(names: SessionNames) -> Sessions {
        Sessions { names, ..Sessions::default() }
    }

    /// Adds what ended in an interval.
    pub(super) fn add(&mut self, interval: &Interval) {
        EndedCounts::merge_all(&mut self.steps, &interval.steps);
        EndedCounts::merge_all(&mut self.kinds, &interval.sessions);
    }

    /// Each step that has a name of its own.
    fn steps(&self) -> Vec<(&str, EndedCounts)> {
        let steps = self.names.steps.iter().enumerate();
        let named = steps.filter_map(|(number, name)| Some((name.as_deref()?, number)));
        named.map(|(name, n)| (name, at(&self.steps, n))).collect()
    }

    fn kinds(&self) -> Vec<(&str, EndedCounts)> {
        let kinds = self.names.kinds.iter().enumerate();
        kinds.map(|(number, name)| (name.as_str(), at(&self.kinds, number))).collect()
    }
}

/// Nothing has ended of what is not there yet.
fn at(all: &[EndedCounts], number: usize) -> EndedCounts {
    all.get(number).copied().unwrap_or_default()
}

/// What the families of steps, or of sessions, have in common.
struct Subject {
    /// The label that names them.
    label: &'static str,
    all: fn(&Sessions) -> Vec<(&str, EndedCounts)>,
    counters: [Counter; 2],
    /// Name and help of the histogram.
    times: (&'static str, &'static str),
}

struct Counter {
    name: &'static str,
    help: &'static str,
    value: fn(&EndedCounts) -> u64,
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        label: "step",
        all: Sessions::steps,
        counters: [
            Counter {
                name: "knee_step_operations_ended",
                help: "Operations of the step that ended.",
                value: |ended| ended.good + ended.failed,
            },
            Counter {
                name: "knee_step_operations_failed",
                help: "Those without the expected response.",
                value: |ended| ended.failed,
            },
        ],
        times: ("knee_step_response_time_seconds", "Response times."),
    },
    Subject {
        label: "session",
        all: Sessions::kinds,
        counters: [
            Counter {
                name: "knee_sessions_completed",
                help: "Sessions that reached their last step.",
                value: |ended| ended.good,
            },
            Counter {
                name: "knee_sessions_failed",
                help: "Sessions that a failed step ended.",
                value: |ended| ended.failed,
            },
        ],
        times: ("knee_session_time_seconds", "Times of completed sessions, pauses included."),
    },
];

/// Writes what ended in these trials, each with its labels; nothing where none has sessions.
pub(super) fn write(out: &mut String, trials: &[(&str, &Sessions)]) {
    for subject in &SUBJECTS {
        let mut rows = Vec::new();
        for (labels, sessions) in trials {
            for (name, ended) in (subject.all)(sessions) {
                let labels = format!("{labels},{}=\"{}\"", subject.label, escaped(name));
                rows.push((labels, ended));
            }
        }
        if !rows.is_empty() {
            subject.write(out, &rows);
        }
    }
}

impl Subject {
    fn write(&self, out: &mut String, rows: &[(String, EndedCounts)]) {
        for counter in &self.counters {
            head(out, counter.name, "counter", "", counter.help);
            for (labels, ended) in rows {
                let sample = format!("{}_total{{{labels}}}", counter.name);
                line(out, &sample, (counter.value)(ended) as f64);
            }
        }
        let (name, help) = self.times;
        head(out, name, "histogram", "seconds", help);
        for (labels, ended) in rows {
            let times = Times { up_to: ended.up_to(), count: ended.timed, sum_ns: ended.sum_ns };
            debug_assert_eq!(times.up_to.len(), TIME_BOUNDS.len());
            histogram(out, name, labels, &times);
        }
    }
}
