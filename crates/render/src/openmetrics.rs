//! A running experiment as OpenMetrics text 1.0 (prometheus.io/docs/specs/om/open_metrics_spec),
//! which Prometheus reads too. Counters and buckets sum what the intervals say; gauges are of the
//! interval of the running trial that ended last.

mod sessions;

use crate::live::{LiveKind, LiveTrial};
use knee_core::trial::statistics::STATISTICS;
use knee_load::measure::{Interval, TIME_BOUNDS};
use knee_load::time::Nanos;
use sessions::Sessions;
use std::fmt::Write;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper bounds of the buckets of response time: three a decade, from 10 µs to 60 s.
pub const BOUNDS: [Nanos; TIME_BOUNDS.len()] = TIME_BOUNDS;

/// Response times (or pings) counted by the [`BOUNDS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Times {
    /// How many are not longer than each bound.
    pub up_to: Vec<u64>,
    /// How many there are in all.
    pub count: u64,
    /// Their sum, in nanoseconds.
    pub sum_ns: f64,
}

impl Times {
    fn add(&mut self, other: &Times) {
        self.up_to.resize(BOUNDS.len(), 0);
        for (mine, theirs) in self.up_to.iter_mut().zip(&other.up_to) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
    }
}

/// All that is exposed of an experiment.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    /// The labels of the experiment, ready to stand between braces.
    info: String,
    trials: Vec<Trial>,
    ended: u64,
    is_running: bool,
}

/// A trial, running or over.
#[derive(Clone, Debug)]
struct Trial {
    /// Its labels, ready to stand between braces.
    labels: String,
    kind: LiveKind,
    asked_per_s: Option<f64>,
    attempted: u64,
    completed: u64,
    errors: u64,
    sent: u64,
    up_bytes: u64,
    down_bytes: u64,
    times: Times,
    sessions: Sessions,
    last: Option<Interval>,
}

/// What a metric is called and means, and its value of a trial that has one.
struct Family {
    name: &'static str,
    unit: &'static str,
    help: &'static str,
    value: fn(&Trial) -> Option<f64>,
}

impl Metrics {
    /// Nothing is measured yet. `info`: names and values that tell what runs.
    pub fn new(info: &[(&str, &str)]) -> Metrics {
        let info = info.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        Metrics { info: info.collect::<Vec<_>>().join(","), ..Metrics::default() }
    }

    /// A trial begins.
    pub fn trial_begins(&mut self, trial: &LiveTrial) {
        self.is_running = true;
        let number = self.trials.len() + 1;
        self.trials.push(Trial {
            labels: format!("trial=\"{number}\",label=\"{}\"", escaped(&trial.label)),
            kind: trial.kind,
            asked_per_s: trial.asked_per_s,
            attempted: 0,
            completed: 0,
            errors: 0,
            sent: 0,
            up_bytes: 0,
            down_bytes: 0,
            times: Times::default(),
            sessions: Sessions::named(trial.names.clone()),
            last: None,
        });
    }

    /// An interval of it has ended, with its response times, where they are known.
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
        trial.sessions.add(interval);
        trial.last = Some(interval.clone());
    }

    /// The trial has ended.
    pub fn trial_ends(&mut self) {
        self.ended += 1;
        self.is_running = false;
    }

    /// The text.
    pub fn text(&self) -> String {
        let mut out = String::new();
        head(&mut out, "knee", "info", "", "What runs.");
        line(&mut out, &format!("knee_info{{{}}}", self.info), 1.0);
        head(&mut out, "knee_trials_ended", "counter", "", "Trials that are over.");
        line(&mut out, "knee_trials_ended_total", self.ended as f64);
        for family in &COUNTERS {
            family.write(&mut out, "counter", "_total", &self.trials);
        }
        self.times(&mut out, LiveKind::Operations, "response_time", "Response times.");
        self.times(&mut out, LiveKind::Flows, "ping", "Round trips beside the flows.");
        let of_sessions = self.trials.iter().map(|t| (t.labels.as_str(), &t.sessions));
        sessions::write(&mut out, &of_sessions.collect::<Vec<_>>());
        let running = match (self.is_running, self.trials.as_slice()) {
            (true, [.., last]) => std::slice::from_ref(last),
            _ => &[],
        };
        for family in &GAUGES {
            family.write(&mut out, "gauge", "", running);
        }
        quantiles(&mut out, running);
        out.push_str("# EOF\n");
        out
    }

    fn times(&self, out: &mut String, kind: LiveKind, what: &str, help: &str) {
        let of_kind = |t: &&Trial| t.kind == kind && t.times.count > 0;
        let name = format!("knee_{what}_seconds");
        for (i, trial) in self.trials.iter().filter(of_kind).enumerate() {
            if i == 0 {
                head(out, &name, "histogram", "seconds", help);
            }
            histogram(out, &name, &trial.labels, &trial.times);
        }
    }
}

/// The samples of a histogram.
fn histogram(out: &mut String, name: &str, labels: &str, times: &Times) {
    for (bound, n) in BOUNDS.iter().zip(&times.up_to) {
        let le = canonical(bound.as_secs_f64());
        let sample = format!("{name}_bucket{{{labels},le=\"{le}\"}}");
        line(out, &sample, *n as f64);
    }
    let count = times.count as f64;
    let sample = format!("{name}_bucket{{{labels},le=\"+Inf\"}}");
    line(out, &sample, count);
    line(out, &format!("{name}_count{{{labels}}}"), count);
    line(out, &format!("{name}_sum{{{labels}}}"), times.sum_ns / 1e9);
}

impl Family {
    /// Writes it, unless no trial has a value.
    fn write(&self, out: &mut String, kind: &str, suffix: &str, trials: &[Trial]) {
        let mut has_head = false;
        for trial in trials {
            let Some(value) = (self.value)(trial) else {
                continue;
            };
            if !has_head {
                head(out, self.name, kind, self.unit, self.help);
                has_head = true;
            }
            line(out, &format!("{}{suffix}{{{}}}", self.name, trial.labels), value);
        }
    }
}

fn of(kind: LiveKind, trial: &Trial, n: u64) -> Option<f64> {
    (trial.kind == kind).then_some(n as f64)
}

const COUNTERS: [Family; 6] = [
    Family {
        name: "knee_operations_attempted",
        unit: "",
        help: "Operations started in the measured time.",
        value: |t| of(LiveKind::Operations, t, t.attempted),
    },
    Family {
        name: "knee_operations_completed",
        unit: "",
        help: "Operations that ended in a response.",
        value: |t| of(LiveKind::Operations, t, t.completed),
    },
    Family {
        name: "knee_operations_failed",
        unit: "",
        help: "Operations that ended otherwise.",
        value: |t| of(LiveKind::Operations, t, t.errors),
    },
    Family {
        name: "knee_datagrams_sent",
        unit: "",
        help: "Datagrams sent.",
        value: |t| of(LiveKind::Datagrams, t, t.sent),
    },
    Family {
        name: "knee_uploaded_bytes",
        unit: "bytes",
        help: "Payload that uploads carried.",
        value: |t| of(LiveKind::Flows, t, t.up_bytes),
    },
    Family {
        name: "knee_downloaded_bytes",
        unit: "bytes",
        help: "Payload that downloads carried.",
        value: |t| of(LiveKind::Flows, t, t.down_bytes),
    },
];

const GAUGES: [Family; 5] = [
    Family {
        name: "knee_rate_asked",
        unit: "",
        help: "Operations or datagrams asked for per second.",
        value: |t| t.asked_per_s,
    },
    Family {
        name: "knee_rate_achieved",
        unit: "",
        help: "Operations or datagrams started per second, in the last interval.",
        value: |t| match t.kind {
            LiveKind::Operations => per_second(t, |i| i.attempted),
            LiveKind::Datagrams => per_second(t, |i| i.sent.unwrap_or(0)),
            LiveKind::Flows | LiveKind::Row { .. } => None,
        },
    },
    Family {
        name: "knee_throughput",
        unit: "",
        help: "Responses per second, in the last interval.",
        value: |t| match t.kind {
            LiveKind::Operations => per_second(t, |i| i.completed),
            _ => None,
        },
    },
    Family {
        name: "knee_pacing_error_mean_seconds",
        unit: "seconds",
        help: "Mean lateness of the generator, in the last interval.",
        value: |t| seconds(t.last.as_ref()?.pacing_error_ns_mean?),
    },
    Family {
        name: "knee_pacing_error_max_seconds",
        unit: "seconds",
        help: "Largest lateness of the generator, in the last interval.",
        value: |t| seconds(t.last.as_ref()?.pacing_error_ns_max?),
    },
];

fn per_second(trial: &Trial, n: fn(&Interval) -> u64) -> Option<f64> {
    let i = trial.last.as_ref()?;
    Some(i.per_s(n(i))).filter(|per_s| per_s.is_finite())
}

fn seconds(ns: u64) -> Option<f64> {
    Some(Nanos(ns).as_secs_f64())
}

/// The percentiles of the last interval.
fn quantiles(out: &mut String, running: &[Trial]) {
    for trial in running {
        let Some(i) = trial.last.as_ref().filter(|i| i.max_ns > 0) else {
            continue;
        };
        let name = "knee_last_interval_latency_seconds";
        let help = "Response times (or pings) of the last interval; the quantile 1 is the largest.";
        head(out, name, "gauge", "seconds", help);
        let of_q = STATISTICS.iter();
        let of_q = of_q.filter_map(|row| Some((row.quantile_level()?, row.in_interval(i)?)));
        for (q, ns) in of_q {
            let q = canonical(q);
            let sample = format!("{name}{{{},quantile=\"{q}\"}}", trial.labels);
            line(out, &sample, Nanos(ns).as_secs_f64());
        }
    }
}

fn head(out: &mut String, name: &str, kind: &str, unit: &str, help: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(out, "# TYPE {name} {kind}");
    if !unit.is_empty() {
        let _ = writeln!(out, "# UNIT {name} {unit}");
    }
    let _ = writeln!(out, "# HELP {name} {help}");
}

fn line(out: &mut String, sample: &str, value: f64) {
    let _ = writeln!(out, "{sample} {}", float(value));
}

/// A whole number without a point, any other as short as it reads back.
fn float(value: f64) -> String {
    format!("{value}")
}

/// A bound as a label, where equal numbers should look alike. It always has a point or an exponent,
/// the latter below 0.0001 (OpenMetrics 1.0, Canonical Numbers).
fn canonical(value: f64) -> String {
    if value > 0.0 && value < 1e-4 {
        return format!("{value:e}").replace("e-", "e-0");
    }
    let text = float(value);
    if text.contains('.') { text } else { format!("{text}.0") }
}

/// A label's value, as it may stand between quotes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests;
