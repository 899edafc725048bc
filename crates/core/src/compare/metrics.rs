//! Metrics of a trial that are compared.

use super::difference::RunSpread;
use super::draft::Better;
use super::estimate::{LogEstimate, counted_per_s, percentile, throughput};
use super::share::FailureCount;
use crate::measure::Outcome;
use crate::measure::error_share;
use crate::report::Kind;
use crate::trial::report::TrialReport;

/// A positive figure of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComparedMetric {
    /// Name in reports.
    pub name: &'static str,
    /// Unit in reports.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// The usual spread between runs of the same server, as a standard deviation of the logarithm.
    pub spread: f64,
    /// The figure of a trial.
    pub of: MetricFigure,
}

/// The figure of a trial; `None` where it has none.
pub(super) type MetricFigure = fn(&TrialReport) -> Option<LogEstimate>;

/// Assumed spread between runs, as a standard deviation of the logarithm. It comes from 12 runs of
/// 1 s of the built-in server (4 workers, exponential 1 ms, closed loop) on a virtual machine with
/// two processors. Beyond their own intervals they differed in throughput by 0.7 to 1.6 % and in
/// the median by 1.2 to 2.2 %. More is allowed for in the tail.
pub(super) const SPREAD_THROUGHPUT: f64 = 0.02;
pub(super) const SPREAD_P50: f64 = 0.02;
const SPREAD_P90: f64 = 0.025;
pub(super) const SPREAD_P95: f64 = 0.03;
pub(super) const SPREAD_P99: f64 = 0.04;
/// The same for what passes through a network and its queues.
const SPREAD_NETWORK: f64 = 0.03;

const THROUGHPUT: ComparedMetric = ComparedMetric {
    name: "throughput_per_s",
    unit: "per_s",
    better: Better::More,
    spread: SPREAD_THROUGHPUT,
    of: throughput,
};
const P50: ComparedMetric = response_time("p50_ns", SPREAD_P50, |t| {
    percentile(t, 0.5, |r| (r.p50, None), |i| i.p50_ns)
});
const P90: ComparedMetric = response_time("p90_ns", SPREAD_P90, |t| {
    percentile(t, 0.9, |r| (r.p90, r.p90_ci95), |i| i.p90_ns)
});
const P95: ComparedMetric = response_time("p95_ns", SPREAD_P95, |t| {
    percentile(t, 0.95, |r| (r.p95, r.p95_ci95), |i| i.p95_ns)
});
const P99: ComparedMetric = response_time("p99_ns", SPREAD_P99, |t| {
    percentile(t, 0.99, |r| (r.p99, r.p99_ci95), |i| i.p99_ns)
});
const RECEIVED: ComparedMetric = carried("received_per_s", "per_s", |t| {
    counted_per_s(t, |i| i.received.unwrap_or(0))
});
const UP: ComparedMetric = carried("up_bytes_per_s", "bytes_per_s", |t| {
    counted_per_s(t, |i| i.up_bytes.unwrap_or(0))
});
const DOWN: ComparedMetric = carried("down_bytes_per_s", "bytes_per_s", |t| {
    counted_per_s(t, |i| i.down_bytes.unwrap_or(0))
});

/// A percentile of response times.
const fn response_time(name: &'static str, spread: f64, of: MetricFigure) -> ComparedMetric {
    ComparedMetric {
        name,
        unit: "ns",
        better: Better::Less,
        spread,
        of,
    }
}

/// Data that a network carried, per second.
const fn carried(name: &'static str, unit: &'static str, of: MetricFigure) -> ComparedMetric {
    ComparedMetric {
        name,
        unit,
        better: Better::More,
        spread: SPREAD_NETWORK,
        of,
    }
}

/// Metrics to compare of the trials of this command.
pub(super) fn metrics(kind: Kind) -> &'static [ComparedMetric] {
    match kind {
        Kind::Udp => &[RECEIVED],
        // An overload leaves operations unserved by design.
        Kind::Overload => &[THROUGHPUT],
        Kind::Latency => &[UP, DOWN, P50, P90],
        _ => &[THROUGHPUT, P50, P90, P95, P99],
    }
}

/// Name in reports of the share to compare of the trials of this command.
pub(super) fn share_name(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Udp => Some("loss_percent"),
        Kind::Overload => None,
        _ => Some("error_percent"),
    }
}

/// Failures or losses of a whole trial.
pub(super) fn failed(trial: &TrialReport) -> FailureCount {
    if trial.datagrams().is_some() {
        return FailureCount::sum(failed_by_interval(trial));
    }
    let ended = trial.outcomes.total() - trial.outcomes.count(Outcome::InFlight);
    FailureCount {
        hits: (error_share(&trial.outcomes) * ended as f64).round() as u64,
        all: ended,
    }
}

/// Failures or losses of the intervals of a trial. Empty where responses had errors, as intervals
/// count those as responses.
pub(super) fn failed_by_interval(trial: &TrialReport) -> Vec<FailureCount> {
    if trial.datagrams().is_some() {
        let of = |i: &crate::measure::Interval| FailureCount {
            hits: i.dropped.unwrap_or(0),
            all: i.sent.unwrap_or(0),
        };
        return trial.intervals.iter().map(of).collect();
    }
    let intervals: Vec<FailureCount> = trial
        .intervals
        .iter()
        .map(|i| FailureCount {
            hits: i.errors,
            all: i.completed + i.errors,
        })
        .collect();
    let responses_in_error = [Outcome::Http4xx, Outcome::Http5xx, Outcome::Unexpected]
        .map(|o| trial.outcomes.count(o))
        .iter()
        .sum::<u64>();
    if responses_in_error > 0 {
        return Vec::new();
    }
    intervals
}

/// Use of the busiest worker, in percent, above which …
const BUSY_PERCENT: f64 = 20.0;
/// … waiting for a processor for more than this share of the time means that the generator shares
/// it with the target.
const WAITING_PERCENT: f64 = 1.0;
/// Spread between such runs: the placement of threads decides on the result. On two processors 12
/// runs of 1 s of one server without service time differed by 25 to 33 % (standard deviation). Most
/// of them had intervals within 3 %.
const SPREAD_CONTENDED: f64 = 0.3;

/// Whether target and generator fought for processors in this trial.
pub(super) fn is_contended(trial: &TrialReport) -> bool {
    let used = &trial.generator;
    let busy = used.busiest_worker_percent - used.busiest_worker_spin_percent;
    busy > BUSY_PERCENT && used.busiest_worker_waiting_percent > WAITING_PERCENT
}

/// Expected spread between runs.
pub(super) fn between(spread: f64, is_contended: bool) -> RunSpread {
    if is_contended {
        RunSpread::Unknown(SPREAD_CONTENDED.max(spread))
    } else {
        RunSpread::Usual(spread)
    }
}
