//! A figure of one run as a logarithm, with its uncertainty.

use knee_load::stats::sample::{Z975, autocorrelation, mean, variance};

/// Least intervals for an estimate of their spread.
const INTERVALS_MIN: usize = 5;
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
    pub(super) fn at_least_as_unsure_as(self, other: Option<MeanSpread>) -> LogEstimate {
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
pub(super) struct MeanSpread {
    variance: f64,
    degrees: f64,
}

impl MeanSpread {
    /// Spread of the mean of a series, with its autocorrelation at lag 1 allowed for.
    pub(super) fn of(series: &[f64]) -> Option<MeanSpread> {
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
    pub(super) fn further(self, square: f64) -> MeanSpread {
        MeanSpread {
            variance: self.variance + square,
            degrees: if square > self.variance { DEGREES_MIN } else { self.degrees },
        }
    }
}
