//! What a report states of a figure: its value, or its range. The figures of a distribution of
//! times are declared here, each in a row of [`TimesReport::FIGURES`].
//!
//! To add a figure of a distribution of times: its field and its row. Tables, ranges and checks
//! read the row.

use knee_load::measure::Histogram;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What is known of a time that the generator or its host may have changed by more than 20 µs and
/// 10 %, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// Lower bound.
    pub at_least: u64,
    /// Upper bound; `null` where none is known.
    pub at_most: Option<u64>,
    /// Why it is not determined.
    pub because: String,
}

/// Whether a rate is the target's, or a bound on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RateCertainty {
    /// The target and the load decide it.
    #[default]
    Determined,
    /// The generator was the limit: the target can do at least this.
    AtLeast,
}

impl RateCertainty {
    /// Whether it is no bound.
    pub fn is_determined(&self) -> bool {
        *self == RateCertainty::Determined
    }

    /// The statement about a rate that was achieved.
    pub fn of(self, achieved_per_s: f64) -> Figure<f64> {
        match self {
            RateCertainty::Determined => Figure::Exactly(achieved_per_s),
            RateCertainty::AtLeast => Figure::Within(achieved_per_s, None),
        }
    }
}

/// The range of a rate, per second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateRange {
    /// Lower bound.
    pub at_least: f64,
    /// Upper bound; `null` where none is known.
    pub at_most: Option<f64>,
    /// Why it is not determined.
    pub because: String,
}

/// The statement of a report about a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure<T> {
    /// A determined value.
    Exactly(T),
    /// Bounds; the upper one is known only where it is `Some`.
    Within(T, Option<T>),
    /// The observations do not determine it.
    Absent,
}

impl<T: Copy> Figure<T> {
    /// The least that it may be.
    pub fn at_least(&self) -> Option<T> {
        match *self {
            Figure::Exactly(value) | Figure::Within(value, _) => Some(value),
            Figure::Absent => None,
        }
    }

    /// The most that it may be, where that is known.
    pub fn at_most(&self) -> Option<T> {
        match *self {
            Figure::Exactly(value) => Some(value),
            Figure::Within(_, most) => most,
            Figure::Absent => None,
        }
    }
}

/// A distribution of times in nanoseconds, censored observations included.
///
/// A figure is `None` where the observations do not determine it: all of them without observations,
/// a percentile q with fewer than 1/(1 − q) ([`knee_load::measure::Histogram::percentile`]).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TimesReport {
    /// Observations.
    pub count: u64,
    /// Mean.
    pub mean: Option<u64>,
    /// Smallest that is not censored: of a censored one only a lower bound is known.
    pub min: Option<u64>,
    /// Median.
    pub p50: Option<u64>,
    /// 75th percentile.
    pub p75: Option<u64>,
    /// 90th percentile.
    pub p90: Option<u64>,
    /// 95th percentile.
    pub p95: Option<u64>,
    /// 99th percentile.
    pub p99: Option<u64>,
    /// 99.9th percentile.
    pub p999: Option<u64>,
    /// Largest.
    pub max: Option<u64>,
    /// 95 % confidence interval of the mean; `None` where the data permit none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_ci95: Option<[u64; 2]>,
    /// 95 % confidence interval of the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50_ci95: Option<[u64; 2]>,
    /// 95 % confidence interval of the 75th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p75_ci95: Option<[u64; 2]>,
    /// 95 % confidence interval of the 90th percentile by order statistics, widened for
    /// correlation; `None` where the data permit none.
    pub p90_ci95: Option<[u64; 2]>,
    /// 95 % confidence interval of the 95th percentile.
    pub p95_ci95: Option<[u64; 2]>,
    /// 95 % confidence interval of the 99th percentile.
    pub p99_ci95: Option<[u64; 2]>,
    /// 95 % confidence interval of the 99.9th percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999_ci95: Option<[u64; 2]>,
    /// Figures that are not determined, by their names, in nanoseconds: each is absent above.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub ranges: BTreeMap<String, TimeRange>,
    /// The whole distribution as measured: percentiles from 0 on, closer together the nearer they
    /// are to 100, up to the largest observation (at 100).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spectrum: Vec<PercentilePoint>,
}

/// One point of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PercentilePoint {
    /// The share of observations that are not longer, in percent, 0 to 100.
    pub percentile: f64,
    /// The time.
    pub ns: u64,
}

/// How a figure sums up a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureKind {
    /// The mean.
    Mean,
    /// The smallest observation.
    Min,
    /// The value that this share of the observations, 0 to 1, does not exceed.
    Quantile(f64),
    /// The largest observation.
    Max,
}

/// A figure of a distribution of times: a row of [`TimesReport::FIGURES`].
#[derive(Clone, Copy, Debug)]
pub struct TimeFigure {
    /// Key in JSON.
    pub key: &'static str,
    /// Key of the statistic of response times, with its unit.
    pub statistic: &'static str,
    /// Name in tables and sentences.
    pub title: &'static str,
    /// Meaning, for the reference.
    pub meaning: &'static str,
    /// How it sums up the distribution.
    pub kind: FigureKind,
    /// Whether tables state its confidence interval, and comparisons rest on it.
    pub states_interval: bool,
    value: fn(&TimesReport) -> Option<u64>,
    ci95: fn(&TimesReport) -> Option<[u64; 2]>,
    /// Value and interval, to be set. A figure without an interval has `None` for it.
    parts: fn(&mut TimesReport) -> FigureParts<'_>,
}

type FigureParts<'a> = (&'a mut Option<u64>, Option<&'a mut Option<[u64; 2]>>);

/// Makes the table of figures. A row has the field of the value, that of its interval (or `none`),
/// whether that is stated, the title, the kind and the meaning.
macro_rules! time_figures {
    (@ci95 $times:ident none) => {{
        let _ = $times;
        None
    }};
    (@ci95 $times:ident $ci95:ident) => { $times.$ci95 };
    (@ci95_mut $times:ident none) => { None };
    (@ci95_mut $times:ident $ci95:ident) => { Some(&mut $times.$ci95) };
    ($($value:ident $ci95:ident $states:literal $title:literal $kind:expr, $meaning:literal;)*) => {
        &[$(TimeFigure {
            key: stringify!($value),
            statistic: concat!(stringify!($value), "_ns"),
            title: $title,
            meaning: $meaning,
            kind: $kind,
            states_interval: $states,
            value: |times| times.$value,
            ci95: |times| time_figures!(@ci95 times $ci95),
            parts: |times| (&mut times.$value, time_figures!(@ci95_mut times $ci95)),
        }),*]
    };
}

impl TimesReport {
    /// All figures, in the order in which reports have them.
    pub const FIGURES: &'static [TimeFigure] = time_figures! {
        mean mean_ci95 false "mean" FigureKind::Mean, "Mean response time";
        min none false "min" FigureKind::Min, "Shortest response time that was not cut off";
        p50 p50_ci95 false "p50" FigureKind::Quantile(0.5), "Median response time";
        p75 p75_ci95 false "p75" FigureKind::Quantile(0.75), "75th percentile of response time";
        p90 p90_ci95 true "p90" FigureKind::Quantile(0.9), "90th percentile of response time";
        p95 p95_ci95 true "p95" FigureKind::Quantile(0.95), "95th percentile of response time";
        p99 p99_ci95 true "p99" FigureKind::Quantile(0.99), "99th percentile of response time";
        p999 p999_ci95 false "p99.9" FigureKind::Quantile(0.999),
            "99.9th percentile of response time";
        max none false "max" FigureKind::Max, "Longest response time";
    };

    /// Keys of the figures that are known as a range only.
    pub fn undetermined(&self) -> impl Iterator<Item = &'static str> {
        Self::FIGURES.iter().map(|figure| figure.key).filter(|key| self.ranges.contains_key(*key))
    }

    /// The statement about the figure with this key.
    pub fn figure(&self, key: &str) -> Figure<u64> {
        let mut rows = Self::FIGURES.iter();
        let row = rows.find(|row| row.key == key);
        row.map_or(Figure::Absent, |row| row.stated(self))
    }

    /// The highest percentile whose value, or the least of it, is known.
    pub fn highest_percentile(&self) -> Option<u64> {
        let rows = Self::FIGURES.iter();
        let percentiles = rows.filter(|row| matches!(row.kind, FigureKind::Quantile(_)));
        percentiles.filter_map(|row| row.stated(self).at_least()).max()
    }
}

impl TimeFigure {
    /// Its statement for these times.
    pub fn stated(&self, times: &TimesReport) -> Figure<u64> {
        match (self.value(times), times.ranges.get(self.key)) {
            (Some(value), _) => Figure::Exactly(value),
            (None, Some(range)) => Figure::Within(range.at_least, range.at_most),
            (None, None) => Figure::Absent,
        }
    }

    /// Its value where that is determined.
    pub fn value(&self, times: &TimesReport) -> Option<u64> {
        (self.value)(times)
    }

    /// Its 95 % confidence interval where the data permit one.
    pub fn ci95(&self, times: &TimesReport) -> Option<[u64; 2]> {
        (self.ci95)(times)
    }

    /// Its value and its interval, to be set.
    pub(super) fn parts<'a>(&self, times: &'a mut TimesReport) -> FigureParts<'a> {
        (self.parts)(times)
    }
}

impl Figure<u64> {
    /// The same as floating-point numbers.
    pub fn as_f64(self) -> Figure<f64> {
        match self {
            Figure::Exactly(value) => Figure::Exactly(value as f64),
            Figure::Within(least, most) => Figure::Within(least as f64, most.map(|ns| ns as f64)),
            Figure::Absent => Figure::Absent,
        }
    }
}

/// Points until the distance to 100 has halved.
const PER_HALVING: u32 = 4;

/// Percentiles from 0 on, and the largest time at 100; empty where nothing was observed.
/// [`PER_HALVING`] of them stand in each halving of the distance to 100, while at least one
/// observation lies beyond.
///
/// That is the spacing of HdrHistogram's percentile output ("ticks per half distance").
pub(super) fn spectrum(histogram: &Histogram) -> Vec<PercentilePoint> {
    let mut points = Vec::new();
    if histogram.is_empty() {
        return points;
    }
    let count = histogram.count() as f64;
    let mut distance = 1.0;
    while distance * count >= 1.0 {
        for step in 0..PER_HALVING {
            let beyond = distance * (1.0 - f64::from(step) / f64::from(2 * PER_HALVING));
            if beyond * count >= 1.0 {
                points.push(PercentilePoint {
                    percentile: (1.0 - beyond) * 100.0,
                    ns: histogram.quantile(1.0 - beyond).0,
                });
            }
        }
        distance /= 2.0;
    }
    points.push(PercentilePoint { percentile: 100.0, ns: histogram.max().0 });
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_load::time::Nanos;

    #[test]
    fn a_distribution_is_told_up_to_its_last_observation() {
        let mut histogram = Histogram::default();
        assert_eq!(spectrum(&histogram), []);
        for us in 1..=1_000 {
            histogram.record(Nanos::from_micros(us));
        }
        let points = spectrum(&histogram);
        let ascend =
            |p: &[PercentilePoint]| p[0].percentile < p[1].percentile && p[0].ns <= p[1].ns;
        assert!(points.windows(2).all(ascend));
        assert_eq!(points[0].percentile, 0.0);
        let median = points.iter().find(|p| p.percentile == 50.0).unwrap();
        assert_eq!(median.ns, histogram.quantile(0.5).0);
        let last = points.last().unwrap();
        assert_eq!((last.percentile, last.ns), (100.0, histogram.max().0));
        // The one before leaves at least one observation beyond it.
        assert!(points[points.len() - 2].percentile <= 99.9);
        assert!(points.len() < 60, "{}", points.len());
    }

    #[test]
    fn one_observation_is_two_points() {
        let mut histogram = Histogram::default();
        histogram.record(Nanos(5));
        let points: Vec<u64> = spectrum(&histogram).iter().map(|p| p.ns).collect();
        assert_eq!(points, [5, 5]);
    }
}
