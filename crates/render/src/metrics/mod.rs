//! A running experiment as a list of metrics, made once for all forms that collectors read.
//! Counters and buckets sum what the intervals say; gauges are of the interval of the running trial
//! that ended last. [`openmetrics`](crate::openmetrics) and [`otlp`](crate::otlp) paint the list.
//!
//! A family has a name in each form, or none. To add a metric: a row in `rows`.

mod rows;

use crate::live::{LiveKind, LiveTrial};
use knee_core::trial::findings::trial_findings;
use knee_core::trial::report::{TrialReport, Verdict};
use knee_core::trial::statistics::STATISTICS;
use knee_load::measure::{EndedCounts, Interval, Outcome, TIME_BOUNDS};
use knee_load::time::Nanos;
pub use rows::HttpServerLabels;
use rows::Sessions;
use std::collections::BTreeMap;

/// The upper bounds of the buckets of response time: three a decade, from 10 µs to 60 s.
pub const BOUNDS: [Nanos; TIME_BOUNDS.len()] = TIME_BOUNDS;

/// All that is exposed of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    info: Vec<MetricLabel>,
    since_unix_ns: u64,
    trials: Vec<TrialMetrics>,
    is_running: bool,
}

/// A trial, running or over.
#[derive(Clone, Debug)]
struct TrialMetrics {
    labels: Vec<MetricLabel>,
    since_unix_ns: u64,
    kind: LiveKind,
    /// Of HTTP: its server.
    http: Option<HttpServerLabels>,
    asked_per_s: Option<f64>,
    attempted: u64,
    completed: u64,
    errors: u64,
    sent: u64,
    up_bytes: u64,
    down_bytes: u64,
    times: Times,
    failed: BTreeMap<Outcome, EndedCounts>,
    sessions: Sessions,
    last: Option<Interval>,
    /// Its verdict and findings, as soon as it has ended with a report.
    judged: Option<JudgedTrial>,
}

/// The verdict and the findings of a trial that is over.
#[derive(Clone, Debug)]
struct JudgedTrial {
    is_valid: bool,
    /// Its findings by severity and code.
    findings: BTreeMap<(&'static str, String), u32>,
}

impl Metrics {
    /// Nothing is measured yet. `info` tells what runs, `now_unix_ns` when it began: nanoseconds
    /// since 1970-01-01 UTC.
    pub fn new(info: Vec<MetricLabel>, now_unix_ns: u64) -> Metrics {
        Metrics { info, since_unix_ns: now_unix_ns, ..Metrics::default() }
    }

    /// A trial begins. `http`: where its requests go, of HTTP.
    pub fn trial_begins(
        &mut self,
        trial: &LiveTrial,
        http: Option<HttpServerLabels>,
        now_unix_ns: u64,
    ) {
        self.is_running = true;
        let number = self.trials.len() as u64 + 1;
        self.trials.push(TrialMetrics {
            labels: vec![
                MetricLabel::number("trial", number),
                MetricLabel::text("label", &trial.label),
            ],
            since_unix_ns: now_unix_ns,
            kind: trial.kind,
            http,
            asked_per_s: trial.asked_per_s,
            attempted: 0,
            completed: 0,
            errors: 0,
            sent: 0,
            up_bytes: 0,
            down_bytes: 0,
            times: Times::default(),
            failed: BTreeMap::new(),
            sessions: Sessions::named(trial.names.clone()),
            last: None,
            judged: None,
        });
    }

    /// An interval of it has ended, with its response times, if known.
    pub fn interval(&mut self, interval: &Interval, times: Option<&Times>) {
        let Some(trial) = self.trials.last_mut() else {
            return;
        };
        trial.attempted += interval.attempted;
        trial.completed += interval.completed;
        trial.errors += interval.errors;
        trial.sent += interval.sent.unwrap_or(0);
        trial.up_bytes += interval.up_bytes.unwrap_or(0);
        trial.down_bytes += interval.down_bytes.unwrap_or(0);
        if let Some(times) = times {
            trial.times.add(times);
        }
        EndedCounts::merge_by_outcome(&mut trial.failed, &interval.failed);
        trial.sessions.add(interval);
        trial.last = Some(interval.clone());
    }

    /// The trial has ended, with this report if it has one.
    pub fn trial_ends(&mut self, report: Option<&TrialReport>) {
        self.is_running = false;
        if let (Some(trial), Some(report)) = (self.trials.last_mut(), report) {
            let mut findings = BTreeMap::new();
            for finding in trial_findings(report) {
                *findings.entry((finding.severity.name(), finding.code)).or_default() += 1;
            }
            let is_valid = report.verdict == Verdict::Valid;
            trial.judged = Some(JudgedTrial { is_valid, findings });
        }
    }

    /// Number of trials that are over.
    pub fn ended(&self) -> usize {
        self.trials.len() - usize::from(self.is_running)
    }

    /// The list: what has a value, in the order of the page. The first `without` trials are left
    /// out.
    pub fn families(&self, without: usize) -> Vec<MetricFamily> {
        let trials = self.trials.get(without..).unwrap_or_default();
        let running = match (self.is_running, trials) {
            (true, [.., last]) => std::slice::from_ref(last),
            _ => &[],
        };
        let mut families = vec![
            MetricFamily {
                name: MetricName { openmetrics: Some("knee"), otlp: None },
                unit: MetricUnit::One,
                help: "What runs.",
                values: MetricValues::Info(self.info.clone()),
            },
            MetricFamily {
                name: MetricName::both("knee_trials_ended", "knee.trials.ended"),
                unit: MetricUnit::Count("{trial}"),
                help: "Trials that are over.",
                values: MetricValues::Counter(vec![MetricSample {
                    labels: Vec::new(),
                    since_unix_ns: self.since_unix_ns,
                    value: self.ended() as u64,
                }]),
            },
        ];
        families.extend(rows::COUNTERS.iter().map(|row| row.family(trials, MetricValues::Counter)));
        families.push(ended(trials));
        families.extend(rows::response_time_families(trials));
        families.push(rows::PINGS.family(trials, MetricValues::Times));
        families.extend(rows::session_families(trials));
        families.extend(rows::GAUGES.iter().map(|row| row.family(running, MetricValues::Gauge)));
        families.push(quantiles(running));
        families.push(rows::VALID.family(trials, MetricValues::Gauge));
        families.push(findings(trials));
        families.retain(|family| !family.values.is_empty());
        families
    }
}

impl TrialMetrics {
    /// A value of it.
    fn sample<V>(&self, further: Vec<MetricLabel>, value: V) -> MetricSample<V> {
        let labels = self.labels.iter().cloned().chain(further).collect();
        MetricSample { labels, since_unix_ns: self.since_unix_ns, value }
    }
}

/// The operations that ended, by how.
fn ended(trials: &[TrialMetrics]) -> MetricFamily {
    let mut samples = Vec::new();
    for trial in trials.iter().filter(|trial| trial.kind == LiveKind::Operations) {
        let failed = trial.failed.iter().map(|(outcome, ended)| (outcome.name(), ended.failed));
        let good = trial.completed + trial.errors;
        let good = failed.clone().fold(good, |rest, (_, count)| rest.saturating_sub(count));
        let outcomes = [(Outcome::Ok.name(), good)].into_iter().chain(failed);
        samples.extend(outcomes.map(|(outcome, count)| {
            trial.sample(vec![MetricLabel::text("outcome", outcome)], count)
        }));
    }
    MetricFamily {
        name: MetricName::both("knee_operations_ended", "knee.operations.ended"),
        unit: MetricUnit::Count("{operation}"),
        help: "Operations that ended, by outcome.",
        values: MetricValues::Counter(samples),
    }
}

/// The findings of trials that are over.
fn findings(trials: &[TrialMetrics]) -> MetricFamily {
    let mut samples = Vec::new();
    for trial in trials {
        for ((severity, code), count) in trial.judged.iter().flat_map(|judged| &judged.findings) {
            let labels =
                vec![MetricLabel::text("severity", *severity), MetricLabel::text("code", code)];
            samples.push(trial.sample(labels, f64::from(*count)));
        }
    }
    MetricFamily {
        name: MetricName::both("knee_findings", "knee.findings"),
        unit: MetricUnit::Count("{finding}"),
        help: "Findings of the trial, as soon as it is over.",
        values: MetricValues::Gauge(samples),
    }
}

/// The percentiles of the last interval.
fn quantiles(running: &[TrialMetrics]) -> MetricFamily {
    let mut samples = Vec::new();
    for trial in running {
        let Some(i) = trial.last.as_ref().filter(|i| i.max_ns > 0) else {
            continue;
        };
        let quantiles = STATISTICS.iter();
        let quantiles =
            quantiles.filter_map(|row| Some((row.quantile_level()?, row.in_interval(i)?)));
        samples.extend(quantiles.map(|(q, ns)| {
            let label = MetricLabel { name: "quantile", value: LabelValue::Level(q) };
            trial.sample(vec![label], Nanos(ns).as_secs_f64())
        }));
    }
    MetricFamily {
        name: MetricName::both("knee_last_interval_latency_seconds", "knee.last_interval.latency"),
        unit: MetricUnit::Seconds,
        help: "Response times (or pings) of the last interval; the quantile 1 is the largest.",
        values: MetricValues::Gauge(samples),
    }
}

/// A metric with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricFamily {
    /// Its name in each form that has it.
    pub name: MetricName,
    /// The unit of its values.
    pub unit: MetricUnit,
    /// Its meaning, a sentence.
    pub help: &'static str,
    /// Its kind, and its values.
    pub values: MetricValues,
}

/// The name of a metric in each form; `None`: that form leaves it out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricName {
    /// In OpenMetrics, without the suffixes of samples.
    pub openmetrics: Option<&'static str>,
    /// In OTLP.
    pub otlp: Option<&'static str>,
}

impl MetricName {
    /// A metric of both forms.
    pub(super) const fn both(openmetrics: &'static str, otlp: &'static str) -> MetricName {
        MetricName { openmetrics: Some(openmetrics), otlp: Some(otlp) }
    }
}

/// The unit of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricUnit {
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A number of things; UCUM annotates it with the name of one.
    Count(&'static str),
    /// Things per second, with UCUM's annotation and unit.
    PerSecond(&'static str),
    /// A truth value, 0 or 1.
    One,
}

/// The kind of a metric, and its values.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricValues {
    /// Facts as labels.
    Info(Vec<MetricLabel>),
    /// Sums that only grow.
    Counter(Vec<MetricSample<u64>>),
    /// Values of the present.
    Gauge(Vec<MetricSample<f64>>),
    /// Times counted by [`BOUNDS`].
    Times(Vec<MetricSample<Times>>),
}

impl MetricValues {
    /// Whether there is no value.
    pub fn is_empty(&self) -> bool {
        match self {
            MetricValues::Info(_) => false,
            MetricValues::Counter(samples) => samples.is_empty(),
            MetricValues::Gauge(samples) => samples.is_empty(),
            MetricValues::Times(samples) => samples.is_empty(),
        }
    }
}

/// A value of a metric.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricSample<V> {
    /// Distinguishes it from others of the same metric.
    pub labels: Vec<MetricLabel>,
    /// The begin of what it counts, in nanoseconds since 1970-01-01 UTC.
    pub since_unix_ns: u64,
    /// The value.
    pub value: V,
}

/// A name and a value that tell samples apart. A name with a dot is one of OpenTelemetry's
/// semantic conventions; any other is of knee.
#[derive(Clone, Debug, PartialEq)]
pub struct MetricLabel {
    /// Name.
    pub name: &'static str,
    /// Value.
    pub value: LabelValue,
}

/// The value of a label.
#[derive(Clone, Debug, PartialEq)]
pub enum LabelValue {
    /// A text.
    Text(String),
    /// A whole number.
    Number(u64),
    /// The level of a quantile, 0 to 1.
    Level(f64),
}

impl MetricLabel {
    /// A label with a text.
    pub fn text(name: &'static str, value: impl Into<String>) -> MetricLabel {
        MetricLabel { name, value: LabelValue::Text(value.into()) }
    }

    /// A label with a number.
    pub fn number(name: &'static str, value: u64) -> MetricLabel {
        MetricLabel { name, value: LabelValue::Number(value) }
    }
}

/// Response times (or pings) counted by the [`BOUNDS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// Number of times up to each bound.
    pub up_to: Vec<u64>,
    /// Number of all times.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub sum_ns: f64,
}

impl Times {
    /// Adds further times.
    pub(super) fn add(&mut self, other: &Times) {
        self.up_to.resize(BOUNDS.len(), 0);
        for (mine, theirs) in self.up_to.iter_mut().zip(&other.up_to) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }
}

impl From<&EndedCounts> for Times {
    fn from(ended: &EndedCounts) -> Times {
        Times { up_to: ended.up_to(), count: ended.timed, sum_ns: ended.sum_ns }
    }
}
