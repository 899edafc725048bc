//! What is compared of a trial.

use super::difference::Between;
use super::draft::Better;
use super::estimate::{Estimate, counted_per_s, percentile, throughput};
use super::share::Count;
use crate::measure::Outcome;
use crate::measure::error_share;
use crate::report::Kind;
use crate::trial::report::TrialReport;

/// A positive figure of a trial.
#[derive(Clone, Copy, Debug)]
pub(super) struct Metric {
    /// Its name in reports.
    pub name: &'static str,
    /// Its unit there.
    pub unit: &'static str,
    /// Which way is better.
    pub better: Better,
    /// The usual spread between runs of the same server, as a standard deviation of the logarithm.
    pub spread: f64,
    /// The figure of a trial.
    pub of: Figure,
}

/// The figure of a trial; `None` where it has none.
pub(super) type Figure = fn(&TrialReport) -> Option<Estimate>;

/// What is assumed, not what holds everywhere: 12 runs of 1 s each of an unchanged server
/// of knee's own (4 workers, exponential 1 ms, closed loop) on a virtual machine with two
/// processors differed in throughput by 0.7 to 1.6 % and in the median by 1.2 to 2.2 % beyond what
/// they knew of their own chance. The further out in the tail, the more is allowed for.
pub(super) const SPREAD_THROUGHPUT: f64 = 0.02;
pub(super) const SPREAD_P50: f64 = 0.02;
const SPREAD_P90: f64 = 0.025;
pub(super) const SPREAD_P95: f64 = 0.03;
pub(super) const SPREAD_P99: f64 = 0.04;
/// Of what passes through a network and its queues.
const SPREAD_NETWORK: f64 = 0.03;

const THROUGHPUT: Metric = Metric {
    name: "throughput_per_s",
    unit: "per_s",
    better: Better::More,
    spread: SPREAD_THROUGHPUT,
    of: throughput,
};
const P50: Metric = response_time("p50_ns", SPREAD_P50, |t| {
    percentile(t, 0.5, |r| (r.p50, None), |i| i.p50_ns)
});
const P90: Metric = response_time("p90_ns", SPREAD_P90, |t| {
    percentile(t, 0.9, |r| (r.p90, r.p90_ci95), |i| i.p90_ns)
});
const P95: Metric = response_time("p95_ns", SPREAD_P95, |t| {
    percentile(t, 0.95, |r| (r.p95, r.p95_ci95), |i| i.p95_ns)
});
const P99: Metric = response_time("p99_ns", SPREAD_P99, |t| {
    percentile(t, 0.99, |r| (r.p99, r.p99_ci95), |i| i.p99_ns)
});
const RECEIVED: Metric = carried("received_per_s", "per_s", |t| {
    counted_per_s(t, |i| i.received.unwrap_or(0))
});
const UP: Metric = carried("up_bytes_per_s", "bytes_per_s", |t| {
    counted_per_s(t, |i| i.up_bytes.unwrap_or(0))
});
const DOWN: Metric = carried("down_bytes_per_s", "bytes_per_s", |t| {
    counted_per_s(t, |i| i.down_bytes.unwrap_or(0))
});

/// A percentile of response times.
const fn response_time(name: &'static str, spread: f64, of: Figure) -> Metric {
    Metric {
        name,
        unit: "ns",
        better: Better::Less,
        spread,
        of,
    }
}

/// What a network carried.
const fn carried(name: &'static str, unit: &'static str, of: Figure) -> Metric {
    Metric {
        name,
        unit,
        better: Better::More,
        spread: SPREAD_NETWORK,
        of,
    }
}

/// What to compare of the trials of this command.
pub(super) fn metrics(kind: Kind) -> &'static [Metric] {
    match kind {
        Kind::Udp => &[RECEIVED],
        // What is not served there, is so by design.
        Kind::Overload => &[THROUGHPUT],
        Kind::Latency => &[UP, DOWN, P50, P90],
        _ => &[THROUGHPUT, P50, P90, P95, P99],
    }
}

/// The share that is compared of the trials of this command: its name in reports.
pub(super) fn share_name(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Udp => Some("loss_percent"),
        Kind::Overload => None,
        _ => Some("error_percent"),
    }
}

/// What failed or was lost of a whole trial.
pub(super) fn failed(trial: &TrialReport) -> Count {
    if trial.datagrams().is_some() {
        return Count::sum(failed_by_interval(trial));
    }
    let ended = trial.outcomes.total() - trial.outcomes.count(Outcome::InFlight);
    Count {
        hits: (error_share(&trial.outcomes) * ended as f64).round() as u64,
        all: ended,
    }
}

/// The same of its intervals; none where they do not tell of the same failures, as they count a
/// response with an error as a response.
pub(super) fn failed_by_interval(trial: &TrialReport) -> Vec<Count> {
    if trial.datagrams().is_some() {
        let of = |i: &crate::measure::Interval| Count {
            hits: i.dropped.unwrap_or(0),
            all: i.sent.unwrap_or(0),
        };
        return trial.intervals.iter().map(of).collect();
    }
    let intervals: Vec<Count> = trial
        .intervals
        .iter()
        .map(|i| Count {
            hits: i.errors,
            all: i.completed + i.errors,
        })
        .collect();
    let responses_in_error = [Outcome::Http4xx, Outcome::Http5xx, Outcome::Unexpected]
        .map(|o| trial.outcomes.count(o))
        .iter()
        .sum::<u64>();
    match responses_in_error {
        0 => intervals,
        _ => Vec::new(),
    }
}

/// A generator that is this busy, and …
const BUSY_PERCENT: f64 = 20.0;
/// … is ready to run but waits for a processor for this share of the time, shares it with others
/// who want as much: the target, where it is on the same host.
const WAITING_PERCENT: f64 = 1.0;
/// What then decides on the result is who runs where. On a machine with two processors 12 runs of
/// 1 s of the same server without any service time, most certain of their throughput to within 3 %,
/// differed by 25 to 33 % (standard deviation).
const SPREAD_CONTENDED: f64 = 0.3;

/// Whether target and generator fought for processors in this trial.
pub(super) fn is_contended(trial: &TrialReport) -> bool {
    let used = &trial.generator;
    let busy = used.busiest_worker_percent - used.busiest_worker_spin_percent;
    busy > BUSY_PERCENT && used.busiest_worker_waiting_percent > WAITING_PERCENT
}

/// The spread between runs to reckon with.
pub(super) fn between(spread: f64, is_contended: bool) -> Between {
    match is_contended {
        true => Between::Unknown(SPREAD_CONTENDED.max(spread)),
        false => Between::Usual(spread),
    }
}
