//! What is compared of a trial.

use super::difference::Between;
use super::estimate::{Estimate, counted_per_s, percentile, throughput};
use super::share::Count;
use crate::measure::Outcome;
use crate::measure::error_share;
use crate::report::Kind;
use crate::trial::report::TrialReport;
use crate::trial::statistics::{Compared, StatisticSource, TrialStatistic, compared_in};

/// The statistics by which trials of this command are compared.
pub(super) fn statistics_of(kind: Kind) -> impl Iterator<Item = &'static TrialStatistic> {
    compared_in(match kind {
        Kind::Udp => Compared::Udp,
        Kind::Overload => Compared::Overload,
        Kind::Latency => Compared::Latency,
        _ => Compared::Load,
    })
}

/// A statistic of a trial with its uncertainty; `None` where the trial has none.
pub(super) fn estimate(statistic: &TrialStatistic, trial: &TrialReport) -> Option<Estimate> {
    match statistic.source {
        StatisticSource::Rate {
            of_trial,
            of_interval,
        } => {
            let per_s = of_trial(trial).at_least()?;
            throughput(trial, per_s, of_interval?)
        }
        StatisticSource::Counted(count) => counted_per_s(trial, count),
        StatisticSource::Time {
            figure,
            of_interval,
        } => percentile(trial, &figure, of_interval?),
        StatisticSource::Count(_) | StatisticSource::Share(_) => None,
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
