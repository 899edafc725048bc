//! Metrics of steps and sessions: counters and histograms of each, by its name.

use super::{
    MetricFamily, MetricLabel, MetricName, MetricSample, MetricUnit, MetricValues, Times,
    TrialMetrics,
};
use knee_core::trial::sessions::SessionNames;
use knee_load::measure::{EndedCounts, Interval};

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

/// What the metrics of steps, or of sessions, have in common.
struct Subject {
    /// The label that names them.
    label: &'static str,
    all: fn(&Sessions) -> Vec<(&str, EndedCounts)>,
    counters: [Counter; 2],
    /// Name and help of the histogram.
    times: (MetricName, &'static str),
}

struct Counter {
    name: MetricName,
    unit: &'static str,
    help: &'static str,
    value: fn(&EndedCounts) -> u64,
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        label: "step",
        all: Sessions::steps,
        counters: [
            Counter {
                name: MetricName::both("knee_step_operations_ended", "knee.step.operations.ended"),
                unit: "{operation}",
                help: "Operations of the step that ended.",
                value: |ended| ended.good + ended.failed,
            },
            Counter {
                name: MetricName::both(
                    "knee_step_operations_failed",
                    "knee.step.operations.failed",
                ),
                unit: "{operation}",
                help: "Those without the expected response.",
                value: |ended| ended.failed,
            },
        ],
        times: (
            MetricName::both("knee_step_response_time_seconds", "knee.step.response_time"),
            "Response times.",
        ),
    },
    Subject {
        label: "session",
        all: Sessions::kinds,
        counters: [
            Counter {
                name: MetricName::both("knee_sessions_completed", "knee.sessions.completed"),
                unit: "{session}",
                help: "Sessions that reached their last step.",
                value: |ended| ended.good,
            },
            Counter {
                name: MetricName::both("knee_sessions_failed", "knee.sessions.failed"),
                unit: "{session}",
                help: "Sessions that a failed step ended.",
                value: |ended| ended.failed,
            },
        ],
        times: (
            MetricName::both("knee_session_time_seconds", "knee.session.time"),
            "Times of completed sessions, pauses included.",
        ),
    },
];

/// What ended in these trials; without values where none has sessions.
pub(super) fn families(trials: &[TrialMetrics]) -> Vec<MetricFamily> {
    SUBJECTS.iter().flat_map(|subject| subject.families(trials)).collect()
}

impl Subject {
    fn families(&self, trials: &[TrialMetrics]) -> Vec<MetricFamily> {
        let counters = self.counters.iter().map(|counter| MetricFamily {
            name: counter.name,
            unit: MetricUnit::Count(counter.unit),
            help: counter.help,
            values: MetricValues::Counter(self.samples(trials, counter.value)),
        });
        let (name, help) = self.times;
        let times = MetricValues::Times(self.samples(trials, |ended| Times::from(ended)));
        let times = MetricFamily { name, unit: MetricUnit::Seconds, help, values: times };
        counters.chain([times]).collect()
    }

    fn samples<V>(
        &self,
        trials: &[TrialMetrics],
        value: fn(&EndedCounts) -> V,
    ) -> Vec<MetricSample<V>> {
        let mut samples = Vec::new();
        for trial in trials {
            for (name, ended) in (self.all)(&trial.sessions) {
                let label = MetricLabel::text(self.label, name);
                samples.push(trial.sample(vec![label], value(&ended)));
            }
        }
        samples
    }
}
