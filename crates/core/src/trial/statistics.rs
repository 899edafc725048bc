//! The registry of statistics: what a trial is judged, compared and documented by, a row for each.
//!
//! Thresholds (`--fail-if`), comparisons, repeats, the exposition for Prometheus and the reference
//! read these rows, so that a new one is declared here alone.

mod messages;

use super::figure::{Figure, FigureKind, TimeFigure, TimesReport};
use super::messages::TimesOf;
use super::report::TrialReport;
use knee_load::measure::{Interval, Outcome};
use knee_load::names::names;
use knee_load::spec::Level;
use std::sync::LazyLock;

/// A statistic of a trial.
#[derive(Clone, Copy, Debug)]
pub struct TrialStatistic {
    /// Key in reports and comparisons, such as `p99_ns`.
    pub key: &'static str,
    /// Name in thresholds, such as `p999`.
    pub name: &'static str,
    /// Name in sentences and tables, such as `p99.9`.
    pub title: &'static str,
    /// Meaning, for the reference.
    pub meaning: &'static str,
    /// Unit of the value.
    pub unit: StatisticUnit,
    /// Which direction of change is an improvement.
    pub better: Better,
    /// Whether `--fail-if` accepts it.
    pub has_thresholds: bool,
    /// Experiments that are compared by it.
    pub compared_in: &'static [Compared],
    /// Usual spread between runs of the same server, as a standard deviation of the logarithm.
    pub spread: f64,
    /// How it is computed.
    pub source: StatisticSource,
}

names! {
    /// The unit of a statistic, with its name in comparisons.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum StatisticUnit {
        /// Nanoseconds.
        Nanoseconds = "ns",
        /// Events per second.
        PerSecond = "per_s",
        /// Bytes per second.
        BytesPerSecond = "bytes_per_s",
        /// Operations.
        Count = "count",
        /// Percent.
        Percent = "percent",
    }
}

/// Which direction of change is an improvement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Better {
    /// As for throughput.
    More,
    /// As for response time.
    Less,
    /// Neither, as for a knee.
    Neither,
}

/// Experiments whose trials are compared by the same statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compared {
    /// `knee run` and `knee sweep`.
    Load,
    /// `knee overload`.
    Overload,
    /// `knee udp`.
    Udp,
    /// `knee latency`.
    Latency,
}

/// How a statistic is computed.
#[derive(Clone, Copy, Debug)]
pub enum StatisticSource {
    /// Responses per second.
    Rate {
        /// The rate of the whole trial.
        of_trial: fn(&TrialReport) -> Figure<f64>,
        /// What an interval counts of it. A comparison needs this.
        of_interval: Option<fn(&Interval) -> u64>,
    },
    /// The mean rate of what intervals count.
    Counted(fn(&Interval) -> u64),
    /// A figure of times.
    Time {
        /// The times.
        of: TimesOf,
        /// The figure.
        figure: TimeFigure,
        /// Its value in an interval, in nanoseconds. A comparison needs this.
        of_interval: Option<fn(&Interval) -> u64>,
    },
    /// A single time; `None` where there is none.
    Duration(fn(&TrialReport) -> Option<u64>),
    /// A number of operations.
    Count(fn(&TrialReport) -> u64),
    /// A share in percent. A comparison counts the hits itself.
    Share(fn(&TrialReport) -> f64),
}

/// Assumed spreads, which do not hold everywhere. The source is 12 runs of 1 s each of an unchanged
/// built-in server (4 workers, exponential 1 ms, closed loop). They ran on a virtual machine with
/// two processors. Beyond their own uncertainty they differed in throughput by 0.7 to 1.6 % and in
/// the median by 1.2 to 2.2 %. The allowance grows towards the tail.
pub(crate) const SPREAD_THROUGHPUT: f64 = 0.02;
pub(crate) const SPREAD_P50: f64 = 0.02;
const SPREAD_P90: f64 = 0.025;
const SPREAD_P95: f64 = 0.03;
pub(crate) const SPREAD_P99: f64 = 0.04;
/// Spread of what passes through a network and its queues.
const SPREAD_NETWORK: f64 = 0.03;

/// Values that most rows have.
const BASE: TrialStatistic = TrialStatistic {
    key: "",
    name: "",
    title: "",
    meaning: "",
    unit: StatisticUnit::PerSecond,
    better: Better::More,
    has_thresholds: false,
    compared_in: &[],
    spread: SPREAD_NETWORK,
    source: StatisticSource::Count(|_| 0),
};

/// Base of the other rows: less is better, and they have thresholds.
const LESS_IS_BETTER: TrialStatistic =
    TrialStatistic { better: Better::Less, has_thresholds: true, ..BASE };

const LOAD: &[Compared] = &[Compared::Load];
const LOAD_AND_LATENCY: &[Compared] = &[Compared::Load, Compared::Latency];

const RATES: &[TrialStatistic] = &[
    TrialStatistic {
        key: "throughput_per_s",
        name: "throughput",
        title: "throughput",
        meaning: "Responses per second, after the initial transient",
        has_thresholds: true,
        compared_in: &[Compared::Load, Compared::Overload],
        spread: SPREAD_THROUGHPUT,
        source: StatisticSource::Rate {
            of_trial: TrialReport::throughput,
            of_interval: Some(|i| i.completed),
        },
        ..BASE
    },
    TrialStatistic {
        key: "goodput_per_s",
        name: "goodput",
        title: "goodput",
        meaning: "Responses per second that are no failure (of HTTP: with a status below 400)",
        has_thresholds: true,
        source: StatisticSource::Rate { of_trial: TrialReport::goodput, of_interval: None },
        ..BASE
    },
    TrialStatistic {
        key: "received_per_s",
        name: "received",
        title: "received",
        meaning: "Datagrams received per second",
        compared_in: &[Compared::Udp],
        source: StatisticSource::Counted(|i| i.received.unwrap_or(0)),
        ..BASE
    },
    TrialStatistic {
        key: "up_bytes_per_s",
        name: "up",
        title: "up",
        meaning: "Payload that uploads carried",
        unit: StatisticUnit::BytesPerSecond,
        compared_in: &[Compared::Latency],
        source: StatisticSource::Counted(|i| i.up_bytes.unwrap_or(0)),
        ..BASE
    },
    TrialStatistic {
        key: "down_bytes_per_s",
        name: "down",
        title: "down",
        meaning: "Payload that downloads carried",
        unit: StatisticUnit::BytesPerSecond,
        compared_in: &[Compared::Latency],
        source: StatisticSource::Counted(|i| i.down_bytes.unwrap_or(0)),
        ..BASE
    },
];

/// What intervals and comparisons have of a time: key, value in an interval, where it is compared,
/// usual spread. A time without an entry has thresholds alone.
type InIntervals = (&'static str, fn(&Interval) -> u64, &'static [Compared], f64);

const IN_INTERVALS: &[InIntervals] = &[
    ("p50_ns", |i| i.p50_ns, LOAD_AND_LATENCY, SPREAD_P50),
    ("p90_ns", |i| i.p90_ns, LOAD_AND_LATENCY, SPREAD_P90),
    ("p95_ns", |i| i.p95_ns, LOAD, SPREAD_P95),
    ("p99_ns", |i| i.p99_ns, LOAD, SPREAD_P99),
    ("max_ns", |i| i.max_ns, &[], SPREAD_NETWORK),
];

/// A figure of the response times as a statistic.
fn response_time(figure: &TimeFigure) -> TrialStatistic {
    let entry = IN_INTERVALS.iter().find(|(key, ..)| *key == figure.statistic);
    TrialStatistic {
        key: figure.statistic,
        name: figure.key,
        title: figure.title,
        meaning: figure.meaning,
        unit: StatisticUnit::Nanoseconds,
        compared_in: entry.map_or(&[][..], |entry| entry.2),
        spread: entry.map_or(SPREAD_NETWORK, |entry| entry.3),
        source: StatisticSource::Time {
            of: TimesOf::Response,
            figure: *figure,
            of_interval: entry.map(|entry| entry.1),
        },
        ..LESS_IS_BETTER
    }
}

const FAILURES: &[TrialStatistic] = &[
    TrialStatistic {
        key: "errors",
        name: "errors",
        title: "errors",
        meaning: "Operations that failed",
        unit: StatisticUnit::Count,
        source: StatisticSource::Count(failed_operations),
        ..LESS_IS_BETTER
    },
    TrialStatistic {
        key: "error_percent",
        name: "errors",
        title: "errors",
        meaning: "Share of the operations that failed",
        unit: StatisticUnit::Percent,
        compared_in: LOAD_AND_LATENCY,
        source: StatisticSource::Share(|t| share_percent(failed_operations(t), t)),
        ..LESS_IS_BETTER
    },
    TrialStatistic {
        key: "timeouts",
        name: "timeouts",
        title: "timeouts",
        meaning: "Operations that ended at a time limit",
        unit: StatisticUnit::Count,
        source: StatisticSource::Count(timed_out),
        ..LESS_IS_BETTER
    },
    TrialStatistic {
        key: "timeout_percent",
        name: "timeouts",
        title: "timeouts",
        meaning: "Share of the operations that ended at a time limit",
        unit: StatisticUnit::Percent,
        source: StatisticSource::Share(|t| share_percent(timed_out(t), t)),
        ..LESS_IS_BETTER
    },
    TrialStatistic {
        key: "loss_percent",
        name: "loss",
        title: "loss",
        meaning: "Share of the datagrams sent, or refused by the kernel, that were not received",
        unit: StatisticUnit::Percent,
        better: Better::Less,
        compared_in: &[Compared::Udp],
        source: StatisticSource::Share(|t| t.datagrams().map_or(0.0, |d| d.loss_percent)),
        ..BASE
    },
];

const RECOVERIES: &[TrialStatistic] = &[TrialStatistic {
    key: "recovery_ns",
    name: "recovery",
    title: "recovery",
    meaning: "Time from the end of an overload until the service was back",
    unit: StatisticUnit::Nanoseconds,
    source: StatisticSource::Duration(|t| t.requests()?.recovery_ns),
    ..LESS_IS_BETTER
}];

/// All statistics, in the order of the rows of a comparison. Each figure of
/// [`TimesReport::FIGURES`] is one.
pub static STATISTICS: LazyLock<Vec<TrialStatistic>> = LazyLock::new(|| {
    let times = TimesReport::FIGURES.iter().map(response_time);
    let rates = RATES.iter().copied();
    let others = FAILURES.iter().chain(RECOVERIES).copied();
    rates.chain(times).chain(others).chain(messages::rows()).collect()
});

fn failed_operations(trial: &TrialReport) -> u64 {
    trial.outcomes.errors() - abandoned(trial)
}

/// Operations that ended at a time limit of theirs.
fn timed_out(trial: &TrialReport) -> u64 {
    use Outcome::{ConnectTimeout, HandshakeTimeout, MessageTimeout, ResponseTimeout, Timeout};
    let ends = [Timeout, ConnectTimeout, HandshakeTimeout, ResponseTimeout, MessageTimeout];
    ends.iter().map(|&end| trial.outcomes.count(end)).sum::<u64>() - abandoned(trial)
}

/// Connects that S-Clients close after T. They exist to offer more than is served, so these are the
/// load, not a failure.
fn abandoned(trial: &TrialReport) -> u64 {
    match trial.level {
        Level::Descriptors(_) => trial.outcomes.count(Outcome::ConnectTimeout),
        _ => 0,
    }
}

fn share_percent(count: u64, trial: &TrialReport) -> f64 {
    count as f64 * 100.0 / trial.outcomes.total().max(1) as f64
}

/// The statistic with this key.
pub fn statistic(key: &str) -> Option<&'static TrialStatistic> {
    STATISTICS.iter().find(|row| row.key == key)
}

/// The statistics by which trials of these experiments are compared.
pub fn compared_in(experiments: Compared) -> impl Iterator<Item = &'static TrialStatistic> {
    STATISTICS.iter().filter(move |row| row.compared_in.contains(&experiments))
}

/// The names that `--fail-if` accepts for statistics of this unit. Of the times of messages one
/// stands for all their figures.
pub fn threshold_names(unit: StatisticUnit) -> Vec<&'static str> {
    let rows = STATISTICS.iter().filter(|row| row.has_thresholds && row.is_listed());
    rows.filter(|row| row.unit == unit).map(|row| row.name).collect()
}

impl TrialStatistic {
    /// Whether lists of names have it.
    fn is_listed(&self) -> bool {
        match self.source {
            StatisticSource::Time { of, figure, .. } => {
                of == TimesOf::Response || figure.key == "p99"
            }
            _ => true,
        }
    }

    /// Its value for a trial.
    pub fn value(&self, trial: &TrialReport) -> Figure<f64> {
        match self.source {
            StatisticSource::Rate { of_trial, .. } => of_trial(trial),
            StatisticSource::Counted(count) => {
                let rates = trial.intervals.iter().map(|i| i.per_s(count(i)));
                let rates: Vec<f64> = rates.filter(|rate| rate.is_finite()).collect();
                match rates.len() {
                    0 => Figure::Absent,
                    n => Figure::Exactly(rates.iter().sum::<f64>() / n as f64),
                }
            }
            StatisticSource::Time { of, figure, .. } => {
                let times = of.of(&trial.response_time_ns, trial.messages());
                times.map_or(Figure::Absent, |times| figure.stated(times).as_f64())
            }
            StatisticSource::Duration(time) => {
                time(trial).map_or(Figure::Absent, |ns| Figure::Exactly(ns as f64))
            }
            StatisticSource::Count(count) => Figure::Exactly(count(trial) as f64),
            StatisticSource::Share(share) => Figure::Exactly(share(trial)),
        }
    }

    /// The share of the observations that a percentile does not exceed; 1 for the maximum.
    pub fn quantile_level(&self) -> Option<f64> {
        match self.source {
            StatisticSource::Time { figure, .. } => match figure.kind {
                FigureKind::Quantile(q) => Some(q),
                FigureKind::Max => Some(1.0),
                FigureKind::Mean | FigureKind::Min => None,
            },
            _ => None,
        }
    }

    /// Its value in an interval; `None` where intervals do not have it.
    pub fn in_interval(&self, interval: &Interval) -> Option<u64> {
        match self.source {
            StatisticSource::Time { of_interval, .. } => Some(of_interval?(interval)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_interval_entry_is_of_a_figure() {
        for (key, ..) in IN_INTERVALS {
            assert!(statistic(key).is_some(), "{key}");
        }
    }

    #[test]
    fn keys_are_unique_and_end_in_their_unit() {
        let mut keys = BTreeSet::new();
        for row in STATISTICS.iter() {
            assert!(keys.insert(row.key), "{}", row.key);
            let has_unit = row.key.ends_with(row.unit.name());
            assert!(has_unit || row.unit == StatisticUnit::Count, "{}", row.key);
        }
    }
}
