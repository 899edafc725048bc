//! Statistics of streams of messages.

use super::{BASE, Better, LESS_IS_BETTER, LOAD, SPREAD_P99, SPREAD_THROUGHPUT};
use super::{StatisticSource, StatisticUnit, TrialStatistic};
use crate::trial::figure::{Figure, FigureKind, TimesReport};
use crate::trial::messages::{MessagesReport, TimesOf};
use crate::trial::report::TrialReport;
use crate::words::capital;

/// The rows of all statistics of messages.
pub(super) fn rows() -> impl Iterator<Item = TrialStatistic> {
    MESSAGE_RATES.iter().copied().chain(message_times()).chain(STALLS.iter().copied())
}

/// Rates of messages.
const MESSAGE_RATES: &[TrialStatistic] = &[
    TrialStatistic {
        key: "messages_per_s",
        name: "messages",
        title: "messages",
        meaning: "Messages of streams per second",
        has_thresholds: true,
        compared_in: LOAD,
        spread: SPREAD_THROUGHPUT,
        source: StatisticSource::Rate {
            of_trial: |t| message_figure(t, |messages| messages.per_s),
            of_interval: Some(|i| i.messages.unwrap_or(0)),
        },
        ..BASE
    },
    TrialStatistic {
        key: "units_per_s",
        name: "units",
        title: "units",
        meaning: "Tokens or other units that messages count as, per second (--message-count)",
        has_thresholds: true,
        source: StatisticSource::Rate {
            of_trial: |t| message_figure(t, |messages| messages.units_per_s),
            of_interval: Some(|i| i.units.unwrap_or(0)),
        },
        ..BASE
    },
];

/// A figure of the messages of a trial.
fn message_figure(trial: &TrialReport, figure: fn(&MessagesReport) -> f64) -> Figure<f64> {
    trial.messages().map_or(Figure::Absent, |messages| Figure::Exactly(figure(messages)))
}

/// The figures of times of messages that are compared.
const COMPARED_FIGURES: [&str; 3] = ["p50", "p90", "p99"];

/// Figures of the times of messages.
fn message_times() -> impl Iterator<Item = TrialStatistic> {
    TimesOf::MESSAGES.into_iter().flat_map(|(of, key, title)| {
        TimesReport::FIGURES.iter().map(move |figure| {
            let is_compared = of != TimesOf::Stream && COMPARED_FIGURES.contains(&figure.key);
            let what = if figure.kind == FigureKind::Max { "longest" } else { figure.title };
            TrialStatistic {
                key: format!("{key}_{}", figure.statistic).leak(),
                name: format!("{key}_{}", figure.key).leak(),
                title: format!("{title} {}", figure.title).leak(),
                meaning: format!("{} of the {title}, of streams of messages", capital(what)).leak(),
                unit: StatisticUnit::Nanoseconds,
                compared_in: if is_compared { LOAD } else { &[] },
                spread: SPREAD_P99,
                source: StatisticSource::Time { of, figure: *figure, of_interval: None },
                ..LESS_IS_BETTER
            }
        })
    })
}

const STALLS: &[TrialStatistic] = &[
    TrialStatistic {
        key: "stalls",
        name: "stalls",
        title: "stalls",
        meaning: "Gaps between messages of at least ten medians and 100 ms",
        unit: StatisticUnit::Count,
        source: StatisticSource::Count(|t| t.messages().map_or(0, |m| m.stalls.count)),
        ..LESS_IS_BETTER
    },
    TrialStatistic {
        key: "stalled_streams_percent",
        name: "stalls",
        title: "streams with a stall",
        meaning: "Share of the streams with such a gap",
        unit: StatisticUnit::Percent,
        source: StatisticSource::Share(|t| t.messages().map_or(0.0, |m| m.stalls.streams_percent)),
        ..LESS_IS_BETTER
    },
    TrialStatistic {
        key: "longest_stall_ns",
        name: "longest_stall",
        title: "longest stall",
        meaning: "The longest such gap",
        unit: StatisticUnit::Nanoseconds,
        source: StatisticSource::Duration(|t| Some(t.messages()?.stalls.longest_ns.unwrap_or(0))),
        ..LESS_IS_BETTER
    },
    TrialStatistic {
        key: "shared_arrival_percent",
        name: "shared_arrivals",
        title: "messages that came with another",
        meaning: "Share of the messages that share their receive timestamp with another",
        unit: StatisticUnit::Percent,
        better: Better::Neither,
        has_thresholds: true,
        source: StatisticSource::Share(|t| t.messages().map_or(0.0, |m| m.shared_arrival_percent)),
        ..BASE
    },
    TrialStatistic {
        key: "bad_streams_percent",
        name: "bad_streams",
        title: "streams that are not good",
        meaning: "Share of the streams that miss a bound of --slo or are not whole",
        unit: StatisticUnit::Percent,
        source: StatisticSource::Share(|t| {
            t.messages().and_then(|m| m.good_percent).map_or(0.0, |good| 100.0 - good)
        }),
        ..LESS_IS_BETTER
    },
];
