//! The metrics, a row for each: those that each trial has one value of, response times, and those
//! of steps and sessions by their names.
//!
//! Response times of HTTP have another name in OTLP, by OpenTelemetry's semantic conventions:
//! `http.client.request.duration`, with an `error.type` of what failed. No other convention that
//! would fit is stable.

use super::{
    BOUNDS, LiveKind, MetricFamily, MetricLabel, MetricName, MetricSample, MetricUnit,
    MetricValues, Times, TrialMetrics,
};
use knee_core::trial::step_names::SessionNames;
use knee_load::measure::{EndedCounts, Interval};
use knee_load::spec::{Endpoint, Protocol, Target};
use knee_load::time::Nanos;

/// Name and meaning of a metric, and how its value is computed.
pub(super) struct MetricRow<T, V> {
    name: MetricName,
    unit: MetricUnit,
    help: &'static str,
    value: fn(&T) -> V,
}

impl<T, V> MetricRow<T, V> {
    fn with(&self, values: MetricValues) -> MetricFamily {
        MetricFamily { name: self.name, unit: self.unit, help: self.help, values }
    }
}

/// A metric of trials that have the value.
pub(super) type TrialRow<V> = MetricRow<TrialMetrics, Option<V>>;

impl<V> TrialRow<V> {
    /// The metric with the values of these trials.
    pub(super) fn family(
        &self,
        trials: &[TrialMetrics],
        values: fn(Vec<MetricSample<V>>) -> MetricValues,
    ) -> MetricFamily {
        let samples = trials.iter();
        let samples =
            samples.filter_map(|trial| Some(trial.sample(Vec::new(), (self.value)(trial)?)));
        self.with(values(samples.collect()))
    }
}

/// A count, if the trial is of this kind.
fn count_if(kind: LiveKind, trial: &TrialMetrics, n: u64) -> Option<u64> {
    (trial.kind == kind).then_some(n)
}

const OPERATIONS: MetricUnit = MetricUnit::Count("{operation}");
const SESSIONS: MetricUnit = MetricUnit::Count("{session}");
const PER_SECOND: MetricUnit = MetricUnit::PerSecond("{operation}/s");

pub(super) const COUNTERS: [TrialRow<u64>; 6] = [
    MetricRow {
        name: MetricName::both("knee_operations_attempted", "knee.operations.attempted"),
        unit: OPERATIONS,
        help: "Operations started in the measured time.",
        value: |t| count_if(LiveKind::Operations, t, t.attempted),
    },
    MetricRow {
        name: MetricName::both("knee_operations_completed", "knee.operations.completed"),
        unit: OPERATIONS,
        help: "Operations that ended in a response.",
        value: |t| count_if(LiveKind::Operations, t, t.completed),
    },
    MetricRow {
        name: MetricName::both("knee_operations_failed", "knee.operations.failed"),
        unit: OPERATIONS,
        help: "Operations that ended otherwise.",
        value: |t| count_if(LiveKind::Operations, t, t.errors),
    },
    MetricRow {
        name: MetricName::both("knee_datagrams_sent", "knee.datagrams.sent"),
        unit: MetricUnit::Count("{datagram}"),
        help: "Datagrams sent.",
        value: |t| count_if(LiveKind::Datagrams, t, t.sent),
    },
    MetricRow {
        name: MetricName::both("knee_uploaded_bytes", "knee.uploaded"),
        unit: MetricUnit::Bytes,
        help: "Payload that uploads carried.",
        value: |t| count_if(LiveKind::Flows, t, t.up_bytes),
    },
    MetricRow {
        name: MetricName::both("knee_downloaded_bytes", "knee.downloaded"),
        unit: MetricUnit::Bytes,
        help: "Payload that downloads carried.",
        value: |t| count_if(LiveKind::Flows, t, t.down_bytes),
    },
];

pub(super) const PINGS: TrialRow<Times> = MetricRow {
    name: MetricName::both("knee_ping_seconds", "knee.ping"),
    unit: MetricUnit::Seconds,
    help: "Round trips beside the flows.",
    value: |t| (t.kind == LiveKind::Flows && t.times.count > 0).then(|| t.times.clone()),
};

pub(super) const GAUGES: [TrialRow<f64>; 5] = [
    MetricRow {
        name: MetricName::both("knee_rate_asked", "knee.rate.asked"),
        unit: PER_SECOND,
        help: "Operations or datagrams asked for per second.",
        value: |t| t.asked_per_s,
    },
    MetricRow {
        name: MetricName::both("knee_rate_achieved", "knee.rate.achieved"),
        unit: PER_SECOND,
        help: "Operations or datagrams started per second, in the last interval.",
        value: |t| match t.kind {
            LiveKind::Operations => per_second(t, |i| i.attempted),
            LiveKind::Datagrams => per_second(t, |i| i.sent.unwrap_or(0)),
            LiveKind::Flows | LiveKind::Row { .. } => None,
        },
    },
    MetricRow {
        name: MetricName::both("knee_throughput", "knee.throughput"),
        unit: PER_SECOND,
        help: "Responses per second, in the last interval.",
        value: |t| match t.kind {
            LiveKind::Operations => per_second(t, |i| i.completed),
            _ => None,
        },
    },
    MetricRow {
        name: MetricName::both("knee_pacing_error_mean_seconds", "knee.pacing_error.mean"),
        unit: MetricUnit::Seconds,
        help: "Mean lateness of the generator, in the last interval.",
        value: |t| seconds(t.last.as_ref()?.pacing_error_ns_mean?),
    },
    MetricRow {
        name: MetricName::both("knee_pacing_error_max_seconds", "knee.pacing_error.max"),
        unit: MetricUnit::Seconds,
        help: "Largest lateness of the generator, in the last interval.",
        value: |t| seconds(t.last.as_ref()?.pacing_error_ns_max?),
    },
];

pub(super) const VALID: TrialRow<f64> = MetricRow {
    name: MetricName::both("knee_trial_valid", "knee.trial.valid"),
    unit: MetricUnit::One,
    help: "Whether the trial is VALID (1) or INVALID (0), as soon as it is over.",
    value: |t| Some(f64::from(u8::from(t.judged.as_ref()?.is_valid))),
};

fn per_second(trial: &TrialMetrics, n: fn(&Interval) -> u64) -> Option<f64> {
    let i = trial.last.as_ref()?;
    Some(i.per_s(n(i))).filter(|per_s| per_s.is_finite())
}

fn seconds(ns: u64) -> Option<f64> {
    Some(Nanos(ns).as_secs_f64())
}

/// The methods that the conventions know.
const METHODS: [&str; 9] =
    ["CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"];

/// The server that HTTP requests of a trial go to.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpServerLabels(Vec<MetricLabel>);

impl HttpServerLabels {
    /// The server and the method of a target's requests; `None` if it does not speak HTTP. The
    /// conventions have `_OTHER` for methods that they do not know, and here for several.
    pub fn of(target: &Target) -> Option<HttpServerLabels> {
        if !matches!(target.protocol, Protocol::Http(_)) {
            return None;
        }
        let mut methods = target.requests.iter().map(|request| request.method.as_str());
        let first = methods.next().unwrap_or_default();
        let is_known = METHODS.contains(&first) && methods.all(|method| method == first);
        let method = if is_known { first } else { "_OTHER" };
        let mut labels = vec![MetricLabel::text("http.request.method", method)];
        match &target.endpoint {
            // The response times are those of all servers together.
            _ if !target.further.is_empty() => {}
            Endpoint::Tcp { host, port } => labels.extend([
                MetricLabel::text("server.address", host),
                MetricLabel::number("server.port", u64::from(*port)),
            ]),
            Endpoint::Unix { path } => labels.push(MetricLabel::text("server.address", path)),
        }
        Some(HttpServerLabels(labels))
    }
}

/// The response times of these trials, and those of HTTP by how requests ended.
pub(super) fn response_time_families(trials: &[TrialMetrics]) -> [MetricFamily; 2] {
    let is_timed = |t: &&TrialMetrics| t.kind == LiveKind::Operations && t.times.count > 0;
    let times = trials.iter().filter(is_timed);
    let times = times.map(|trial| trial.sample(Vec::new(), trial.times.clone()));
    let of_http = trials.iter().filter_map(|trial| Some(samples(trial, &trial.http.as_ref()?.0)));
    let of_http: Vec<_> = of_http.flatten().collect();
    // All trials of an experiment speak the same protocol.
    let otlp = of_http.is_empty().then_some("knee.response_time");
    [
        MetricFamily {
            name: MetricName { openmetrics: Some("knee_response_time_seconds"), otlp },
            unit: MetricUnit::Seconds,
            help: "Response times.",
            values: MetricValues::Times(times.collect()),
        },
        MetricFamily {
            name: MetricName { openmetrics: None, otlp: Some("http.client.request.duration") },
            unit: MetricUnit::Seconds,
            help: "Duration of HTTP client requests, from the intended time to the last byte.",
            values: MetricValues::Times(of_http),
        },
    ]
}

fn samples(trial: &TrialMetrics, labels: &[MetricLabel]) -> Vec<MetricSample<Times>> {
    let failed = trial.failed.iter().filter(|(_, ended)| ended.timed > 0);
    let failed = failed.map(|(outcome, ended)| (Some(outcome.name()), Times::from(ended)));
    let mut parts: Vec<_> = failed.collect();
    let good = parts.iter().fold(trial.times.clone(), |rest, (_, times)| without(rest, times));
    if good.count > 0 {
        parts.insert(0, (None, good));
    }
    let sample = |(error, times): (Option<&str>, Times)| {
        let error = error.map(|name| MetricLabel::text("error.type", name));
        trial.sample(labels.iter().cloned().chain(error).collect(), times)
    };
    parts.into_iter().map(sample).collect()
}

/// The times without a part of them. All were counted to 3 significant digits and the part exactly:
/// at a bound they may differ by what lies as close to it.
fn without(mut total: Times, part: &Times) -> Times {
    total.up_to.resize(BOUNDS.len(), 0);
    total.count = total.count.saturating_sub(part.count);
    total.sum_ns = (total.sum_ns - part.sum_ns).max(0.0);
    let mut least = 0;
    for (total_up_to, part_up_to) in total.up_to.iter_mut().zip(&part.up_to) {
        least = total_up_to.saturating_sub(*part_up_to).max(least).min(total.count);
        *total_up_to = least;
    }
    total
}

/// What ended of the steps and the sessions of a trial.
#[derive(Clone, Debug, Default)]
pub(super) struct Sessions {
    /// What they are called, by their numbers; empty if operations are no steps.
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

    /// Each step with its own name.
    fn steps(&self) -> Vec<(&str, EndedCounts)> {
        let steps = self.names.steps.iter().enumerate();
        let named = steps.filter_map(|(number, name)| Some((name.as_deref()?, number)));
        named.map(|(name, n)| (name, counts_at(&self.steps, n))).collect()
    }

    fn kinds(&self) -> Vec<(&str, EndedCounts)> {
        let kinds = self.names.kinds.iter().enumerate();
        kinds.map(|(number, name)| (name.as_str(), counts_at(&self.kinds, number))).collect()
    }
}

/// The counts with this number; zero if nothing has ended yet.
fn counts_at(counts: &[EndedCounts], number: usize) -> EndedCounts {
    counts.get(number).copied().unwrap_or_default()
}

/// What the metrics of steps, or of sessions, have in common.
struct Subject {
    /// The label that names them.
    label: &'static str,
    all: fn(&Sessions) -> Vec<(&str, EndedCounts)>,
    counters: [MetricRow<EndedCounts, u64>; 2],
    times: MetricRow<EndedCounts, Times>,
}

const SUBJECTS: [Subject; 2] = [
    Subject {
        label: "step",
        all: Sessions::steps,
        counters: [
            MetricRow {
                name: MetricName::both("knee_step_operations_ended", "knee.step.operations.ended"),
                unit: OPERATIONS,
                help: "Operations of the step that ended.",
                value: |ended| ended.good + ended.failed,
            },
            MetricRow {
                name: MetricName::both(
                    "knee_step_operations_failed",
                    "knee.step.operations.failed",
                ),
                unit: OPERATIONS,
                help: "Those without the expected response.",
                value: |ended| ended.failed,
            },
        ],
        times: MetricRow {
            name: MetricName::both("knee_step_response_time_seconds", "knee.step.response_time"),
            unit: MetricUnit::Seconds,
            help: "Response times.",
            value: |ended| Times::from(ended),
        },
    },
    Subject {
        label: "session",
        all: Sessions::kinds,
        counters: [
            MetricRow {
                name: MetricName::both("knee_sessions_completed", "knee.sessions.completed"),
                unit: SESSIONS,
                help: "Sessions that reached their last step.",
                value: |ended| ended.good,
            },
            MetricRow {
                name: MetricName::both("knee_sessions_failed", "knee.sessions.failed"),
                unit: SESSIONS,
                help: "Sessions that a failed step ended.",
                value: |ended| ended.failed,
            },
        ],
        times: MetricRow {
            name: MetricName::both("knee_session_time_seconds", "knee.session.time"),
            unit: MetricUnit::Seconds,
            help: "Times of completed sessions, pauses included.",
            value: |ended| Times::from(ended),
        },
    },
];

/// What ended in these trials; without values where none has sessions.
pub(super) fn session_families(trials: &[TrialMetrics]) -> Vec<MetricFamily> {
    SUBJECTS.iter().flat_map(|subject| subject.families(trials)).collect()
}

impl Subject {
    fn families(&self, trials: &[TrialMetrics]) -> Vec<MetricFamily> {
        let counters = self.counters.iter();
        let counters =
            counters.map(|row| row.with(MetricValues::Counter(self.samples(trials, row.value))));
        let times = MetricValues::Times(self.samples(trials, self.times.value));
        counters.chain([self.times.with(times)]).collect()
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
