//! Metrics of a trial that are compared, each with its estimate from one run and its variance.

use super::difference::{FailureCount, RunSpread};
use super::estimate::{LogEstimate, MeanSpread};
use crate::report::Kind;
use crate::trial::figure::{FigureKind, TimeFigure, TimesReport};
use crate::trial::report::TrialReport;
use crate::trial::statistics::{Compared, StatisticSource, TrialStatistic, compared_in};
use knee_load::measure::{Interval, Outcome};
use knee_load::stats::sample::mean;

/// The statistics by which trials of this command are compared.
pub(super) fn compared_statistics(kind: Kind) -> impl Iterator<Item = &'static TrialStatistic> {
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
        StatisticSource::Counted(count) => {
            let rates = rates_per_s(trial, 0, count);
            Some(LogEstimate::bare(mean(&rates))?.at_least_as_unsure_as(relative(&rates)))
        }
        StatisticSource::Time { figure, of_interval: Some(of_interval), .. } => {
            percentile(trial, &figure, of_interval)
        }
        StatisticSource::Time { of, figure, of_interval: None } => {
            let times = of.of(&trial.response_time_ns, trial.messages())?;
            quantile_estimate(&figure, times, true)
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
    FailureCount::of(&trial.outcomes)
}

/// Failures or losses of the intervals of a trial. Empty where responses had errors, as intervals
/// count those as responses.
pub(super) fn failed_by_interval(trial: &TrialReport) -> Vec<FailureCount> {
    if trial.datagrams().is_some() {
        return trial
            .intervals
            .iter()
            .map(|i| FailureCount { hits: i.dropped.unwrap_or(0), all: i.attempted })
            .collect();
    }
    let outcomes = &trial.outcomes;
    let good = outcomes.count(Outcome::Ok) + outcomes.count(Outcome::Served);
    if outcomes.responses() > good {
        return Vec::new();
    }
    trial
        .intervals
        .iter()
        .map(|i| FailureCount { hits: i.errors, all: i.completed + i.errors })
        .collect()
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

/// Share of the first interval's length below which an interval is left out.
const WHOLE_SHARE: f64 = 0.5;

/// A rate of responses after the initial transient. `count`: their number in an interval.
pub(super) fn throughput(
    trial: &TrialReport,
    per_s: f64,
    count: fn(&Interval) -> u64,
) -> Option<LogEstimate> {
    let whole = LogEstimate::with_ci95(per_s, trial.throughput_ci95_per_s)?;
    let rates = rates_per_s(trial, trial.transient_ns(), count);
    Some(whole.at_least_as_unsure_as(relative(&rates)))
}

/// A percentile of response time; `of_interval` has that of an interval. `None` with fewer than
/// five observations beyond it.
pub(super) fn percentile(
    trial: &TrialReport,
    figure: &TimeFigure,
    of_interval: fn(&Interval) -> u64,
) -> Option<LogEstimate> {
    let interval = figure.states_interval;
    let estimate = quantile_estimate(figure, &trial.response_time_ns, interval)?;
    let logs: Vec<f64> = whole_intervals(trial, 0)
        .map(of_interval)
        .filter(|&ns| ns > 0)
        .map(|ns| (ns as f64).ln())
        .collect();
    // Where response times cluster, a percentile jumps between clusters. The percentiles of the
    // intervals then have another centre than that of all, and the jump may be as large.
    let spread = MeanSpread::of(&logs).map(|s| s.further((estimate.log - mean(&logs)).powi(2)));
    Some(estimate.at_least_as_unsure_as(spread))
}

/// Least observations beyond a percentile.
const BEYOND_MIN: f64 = 5.0;

/// A percentile of these times, with its confidence interval if that is asked for; `None` with
/// fewer than five observations beyond it.
pub(super) fn quantile_estimate(
    figure: &TimeFigure,
    times: &TimesReport,
    with_interval: bool,
) -> Option<LogEstimate> {
    let FigureKind::Quantile(q) = figure.kind else {
        return None;
    };
    if times.count as f64 * (1.0 - q) < BEYOND_MIN {
        return None;
    }
    let ci95 = figure.ci95(times).filter(|_| with_interval).map(|ends| ends.map(|ns| ns as f64));
    LogEstimate::with_ci95(figure.value(times)? as f64, ci95)
}

fn relative(rates: &[f64]) -> Option<MeanSpread> {
    let centre = mean(rates);
    let relative: Vec<f64> = rates.iter().map(|r| r / centre).collect();
    MeanSpread::of(&relative).filter(|_| centre > 0.0)
}

fn rates_per_s(trial: &TrialReport, from_ns: u64, count: fn(&Interval) -> u64) -> Vec<f64> {
    whole_intervals(trial, from_ns).map(|i| count(i) as f64 * 1e9 / length(i)).collect()
}

/// The intervals from a time on, without a short rest at the end.
fn whole_intervals(trial: &TrialReport, from_ns: u64) -> impl Iterator<Item = &Interval> {
    let least = trial.intervals.first().map_or(0.0, length) * WHOLE_SHARE;
    let is_whole =
        move |i: &&Interval| i.start_ns >= from_ns && i.length_ns() > 0 && length(i) >= least;
    trial.intervals.iter().filter(is_whole)
}

fn length(interval: &Interval) -> f64 {
    interval.length_ns() as f64
}
