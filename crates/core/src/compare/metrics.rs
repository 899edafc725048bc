//! Metrics of a trial that are compared, each with its estimate from one run and its variance.

use super::difference::{FailureCount, RunSpread};
use crate::report::Kind;
use crate::trial::figure::{FigureKind, TimeFigure, TimesReport};
use crate::trial::report::TrialReport;
use crate::trial::statistics::{Compared, StatisticSource, TrialStatistic, compared_in};
use knee_load::measure::{Interval, Outcome};
use knee_load::stats::sample::{Z975, autocorrelation, mean, variance};

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
    FailureCount::of(&trial.outcomes)
}

/// Failures or losses of the intervals of a trial. Empty where responses had errors, as intervals
/// count those as responses.
pub(super) fn failed_by_interval(trial: &TrialReport) -> Vec<FailureCount> {
    if trial.datagrams().is_some() {
        let of = |i: &Interval| FailureCount { hits: i.dropped.unwrap_or(0), all: i.attempted };
        return trial.intervals.iter().map(of).collect();
    }
    let intervals: Vec<FailureCount> = trial
        .intervals
        .iter()
        .map(|i| FailureCount { hits: i.errors, all: i.completed + i.errors })
        .collect();
    let outcomes = &trial.outcomes;
    let good = outcomes.count(Outcome::Ok) + outcomes.count(Outcome::Served);
    if outcomes.responses() > good {
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

/// Least intervals for an estimate of their spread.
const INTERVALS_MIN: usize = 5;
/// Share of the first interval's length below which an interval is left out.
const WHOLE_SHARE: f64 = 0.5;
/// Largest credible autocorrelation of about ten intervals.
const CORRELATION_MAX: f64 = 0.8;
/// Least degrees of freedom, however correlated the series is.
const DEGREES_MIN: f64 = 3.0;
/// Degrees of freedom of a confidence interval from a fine series, which has 8 to 40 batches.
const CI_DEGREES: f64 = 15.0;

/// Logarithm of a positive figure of one run. Figures of runs are compared by ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LogEstimate {
    /// Natural logarithm of the figure.
    pub log: f64,
    /// Variance within the run; `None` if unknown.
    pub variance: Option<f64>,
    /// Degrees of freedom of the variance.
    pub degrees: f64,
}

impl LogEstimate {
    /// A figure without a variance; `None` unless it is positive.
    pub(super) fn bare(value: f64) -> Option<LogEstimate> {
        (value.is_finite() && value > 0.0).then(|| LogEstimate {
            log: value.ln(),
            variance: None,
            degrees: 0.0,
        })
    }

    /// A figure with its 95 % confidence interval.
    pub(super) fn with_ci95(value: f64, ci95: Option<[f64; 2]>) -> Option<LogEstimate> {
        let bare = LogEstimate::bare(value)?;
        let Some([low, high]) = ci95.filter(|[low, high]| *low > 0.0 && high >= low) else {
            return Some(bare);
        };
        Some(LogEstimate {
            variance: Some(((high / low).ln() / (2.0 * Z975)).powi(2)),
            degrees: CI_DEGREES,
            ..bare
        })
    }

    /// The estimate with the larger of its own variance and that of `other`.
    fn at_least_as_unsure_as(self, other: Option<MeanSpread>) -> LogEstimate {
        match (self.variance, other) {
            (_, None) => self,
            (Some(own), Some(spread)) if own >= spread.variance => self,
            (_, Some(spread)) => {
                LogEstimate { variance: Some(spread.variance), degrees: spread.degrees, ..self }
            }
        }
    }

    /// Mean of several trials of one level in one report.
    pub(super) fn pooled(trials: &[LogEstimate]) -> Option<LogEstimate> {
        let logs: Vec<f64> = trials.iter().map(|e| e.log).collect();
        let known: Option<Vec<f64>> = trials.iter().map(|e| e.variance).collect();
        let n = trials.len() as f64;
        (!trials.is_empty()).then(|| LogEstimate {
            log: mean(&logs),
            variance: known.map(|v| mean(&v) / n),
            degrees: trials.iter().map(|e| e.degrees).sum(),
        })
    }
}

/// The uncertainty of a mean of logarithms.
#[derive(Clone, Copy, Debug)]
struct MeanSpread {
    variance: f64,
    degrees: f64,
}

impl MeanSpread {
    /// Spread of the mean of a series, with its autocorrelation at lag 1 allowed for.
    fn of(series: &[f64]) -> Option<MeanSpread> {
        let n = series.len() as f64;
        if series.len() < INTERVALS_MIN {
            return None;
        }
        // The estimate from n values is too low by 1/n on average.
        let r = (autocorrelation(series) + 1.0 / n).clamp(0.0, CORRELATION_MAX);
        let inflation = (1.0 + r) / (1.0 - r);
        Some(MeanSpread {
            variance: variance(series) * inflation / n,
            degrees: (n / inflation - 1.0).max(DEGREES_MIN),
        })
    }

    /// Adds the square of a deviation that was seen once.
    fn further(self, square: f64) -> MeanSpread {
        MeanSpread {
            variance: self.variance + square,
            degrees: if square > self.variance { DEGREES_MIN } else { self.degrees },
        }
    }
}

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

/// Rate of what `count` counts, per second over the whole window.
fn counted_per_s(trial: &TrialReport, count: fn(&Interval) -> u64) -> Option<LogEstimate> {
    let rates = rates_per_s(trial, 0, count);
    Some(LogEstimate::bare(mean(&rates))?.at_least_as_unsure_as(relative(&rates)))
}

/// A percentile of response time; `of_interval` has that of an interval. `None` with fewer than
/// five observations beyond it.
pub(super) fn percentile(
    trial: &TrialReport,
    figure: &TimeFigure,
    of_interval: fn(&Interval) -> u64,
) -> Option<LogEstimate> {
    let interval = figure.states_interval;
    let estimate = of_times(figure, &trial.response_time_ns, interval)?;
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
pub(super) fn of_times(
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
    let ci95 = figure.ci95(times).filter(|_| with_interval);
    let ci95 = ci95.map(|ends| ends.map(|ns| ns as f64));
    LogEstimate::with_ci95(figure.value(times)? as f64, ci95)
}

fn relative(rates: &[f64]) -> Option<MeanSpread> {
    let centre = mean(rates);
    let relative: Vec<f64> = rates.iter().map(|r| r / centre).collect();
    MeanSpread::of(&relative).filter(|_| centre > 0.0)
}

fn rates_per_s(trial: &TrialReport, from_ns: u64, count: fn(&Interval) -> u64) -> Vec<f64> {
    let per_s = |i: &Interval| count(i) as f64 * 1e9 / length(i);
    whole_intervals(trial, from_ns).map(per_s).collect()
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
