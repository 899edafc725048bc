//! Metrics of a trial that are compared.

use super::difference::RunSpread;
use super::estimate::{LogEstimate, counted_per_s, of_times, percentile, throughput};
use super::share::FailureCount;
use crate::report::Kind;
use crate::trial::report::TrialReport;
use crate::trial::statistics::{Compared, StatisticSource, TrialStatistic, compared_in};
use knee_load::measure::Outcome;
use knee_load::measure::error_share;

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
pub(super) fn estimate(statistic: &TrialStatistic, trial: &TrialReport) -> Option<LogEstimate> {
    match statistic.source {
        StatisticSource::Rate { of_trial, of_interval } => {
            let per_s = of_trial(trial).at_least()?;
            throughput(trial, per_s, of_interval?)
        }
        StatisticSource::Counted(count) => counted_per_s(trial, count),
        StatisticSource::Time { figure, of_interval: Some(of_interval), .. } => {
            percentile(trial, &figure, of_interval)
        }
        StatisticSource::Time { of, figure, of_interval: None } => {
            let times = of.of(&trial.response_time_ns, trial.messages())?;
            of_times(&figure, times, true)
        }
        StatisticSource::Count(_) | StatisticSource::Share(_) | StatisticSource::Duration(_) => {
            None
        }
    }
}

/// Failures or losses of a whole trial.
pub(super) fn failed(trial: &TrialReport) -> FailureCount {
    if trial.datagrams().is_some() {
        return FailureCount::sum(failed_by_interval(trial));
    }
    let ended = trial.outcomes.total() - trial.outcomes.count(Outcome::InFlight);
    FailureCount { hits: (error_share(&trial.outcomes) * ended as f64).round() as u64, all: ended }
}

/// Failures or losses of the intervals of a trial. Empty where responses had errors, as intervals
/// count those as responses.
pub(super) fn failed_by_interval(trial: &TrialReport) -> Vec<FailureCount> {
    if trial.datagrams().is_some() {
        let of = |i: &knee_load::measure::Interval| FailureCount {
            hits: i.dropped.unwrap_or(0),
            all: i.sent.unwrap_or(0),
        };
        return trial.intervals.iter().map(of).collect();
    }
    let intervals: Vec<FailureCount> = trial
        .intervals
        .iter()
        .map(|i| FailureCount { hits: i.errors, all: i.completed + i.errors })
        .collect();
    let responses_in_error = [Outcome::HTTP_4XX, Outcome::HTTP_5XX, Outcome::Unexpected]
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
