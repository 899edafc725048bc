//! The metrics that each trial has one value of, a row for each.

use super::{
    LiveKind, MetricFamily, MetricName, MetricSample, MetricUnit, MetricValues, Times, TrialMetrics,
};
use knee_load::measure::Interval;
use knee_load::time::Nanos;

/// Name and meaning of a metric, and its value of a trial that has one.
pub(super) struct MetricRow<V> {
    name: MetricName,
    unit: MetricUnit,
    help: &'static str,
    value: fn(&TrialMetrics) -> Option<V>,
}

impl<V> MetricRow<V> {
    /// The metric with the values of these trials.
    pub(super) fn family(
        &self,
        trials: &[TrialMetrics],
        values: fn(Vec<MetricSample<V>>) -> MetricValues,
    ) -> MetricFamily {
        let samples = trials.iter();
        let samples =
            samples.filter_map(|trial| Some(trial.sample(Vec::new(), (self.value)(trial)?)));
        let values = values(samples.collect());
        MetricFamily { name: self.name, unit: self.unit, help: self.help, values }
    }
}

/// A count, of trials of this kind.
fn of(kind: LiveKind, trial: &TrialMetrics, n: u64) -> Option<u64> {
    (trial.kind == kind).then_some(n)
}

const OPERATIONS: MetricUnit = MetricUnit::Count("{operation}");
const PER_SECOND: MetricUnit = MetricUnit::PerSecond("{operation}/s");

pub(super) const COUNTERS: [MetricRow<u64>; 6] = [
    MetricRow {
        name: MetricName::both("knee_operations_attempted", "knee.operations.attempted"),
        unit: OPERATIONS,
        help: "Operations started in the measured time.",
        value: |t| of(LiveKind::Operations, t, t.attempted),
    },
    MetricRow {
        name: MetricName::both("knee_operations_completed", "knee.operations.completed"),
        unit: OPERATIONS,
        help: "Operations that ended in a response.",
        value: |t| of(LiveKind::Operations, t, t.completed),
    },
    MetricRow {
        name: MetricName::both("knee_operations_failed", "knee.operations.failed"),
        unit: OPERATIONS,
        help: "Operations that ended otherwise.",
        value: |t| of(LiveKind::Operations, t, t.errors),
    },
    MetricRow {
        name: MetricName::both("knee_datagrams_sent", "knee.datagrams.sent"),
        unit: MetricUnit::Count("{datagram}"),
        help: "Datagrams sent.",
        value: |t| of(LiveKind::Datagrams, t, t.sent),
    },
    MetricRow {
        name: MetricName::both("knee_uploaded_bytes", "knee.uploaded"),
        unit: MetricUnit::Bytes,
        help: "Payload that uploads carried.",
        value: |t| of(LiveKind::Flows, t, t.up_bytes),
    },
    MetricRow {
        name: MetricName::both("knee_downloaded_bytes", "knee.downloaded"),
        unit: MetricUnit::Bytes,
        help: "Payload that downloads carried.",
        value: |t| of(LiveKind::Flows, t, t.down_bytes),
    },
];

pub(super) const PINGS: MetricRow<Times> = MetricRow {
    name: MetricName::both("knee_ping_seconds", "knee.ping"),
    unit: MetricUnit::Seconds,
    help: "Round trips beside the flows.",
    value: |t| (t.kind == LiveKind::Flows && t.times.count > 0).then(|| t.times.clone()),
};

pub(super) const GAUGES: [MetricRow<f64>; 5] = [
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

pub(super) const VALID: MetricRow<f64> = MetricRow {
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
