//! Times as reported: their mean and percentiles, and how certain those are.

use super::figure::{FigureKind, TimesReport, spectrum};
use knee_load::measure::Histogram;
use knee_load::stats::correlation::Correlation;
use knee_load::stats::sample::quantile_ci95;
use serde::{Deserialize, Serialize};

/// A few percentiles in nanoseconds, `None` where the observations do not tell them, as in
/// [`TimesReport`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct QuantilesReport {
    /// Median.
    pub p50: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// Largest.
    pub max: Option<u64>,
}

/// A few percentiles of a histogram.
pub fn quantiles(histogram: &Histogram) -> QuantilesReport {
    let percentile = |q| histogram.percentile(q).map(|t| t.0);
    QuantilesReport {
        p50: percentile(0.5),
        p99: percentile(0.99),
        p999: percentile(0.999),
        max: (!histogram.is_empty()).then(|| histogram.max().0),
    }
}

/// The times of a part of a trial, without their spectrum. See [`times_report`].
pub(super) fn times_of_part(
    histogram: &Histogram,
    correlation: Option<Correlation>,
) -> TimesReport {
    TimesReport { spectrum: Vec::new(), ..times_report(histogram, correlation) }
}

/// The figures of times. Without a `correlation` they may not be bounded.
pub(crate) fn times_report(histogram: &Histogram, correlation: Option<Correlation>) -> TimesReport {
    let mut report = TimesReport {
        count: histogram.count(),
        spectrum: spectrum(histogram),
        ..TimesReport::default()
    };
    let any = |ns: u64| (!histogram.is_empty()).then_some(ns);
    for figure in TimesReport::FIGURES {
        let (value, ci95) = figure.parts(&mut report);
        *value = match figure.kind {
            FigureKind::Mean => any(histogram.mean_ns().round() as u64),
            FigureKind::Min => any(histogram.min().0),
            FigureKind::Quantile(q) => histogram.percentile(q).map(|t| t.0),
            FigureKind::Max => any(histogram.max().0),
        };
        if let Some((ci95, correlation)) = ci95.zip(correlation) {
            *ci95 = match figure.kind {
                FigureKind::Quantile(q) => quantile_ci95(histogram, q, correlation.effect),
                _ => correlation.mean_ci95(histogram),
            };
        }
    }
    report
}

pub(super) fn is_zero<N: Default + PartialEq>(n: &N) -> bool {
    *n == N::default()
}
