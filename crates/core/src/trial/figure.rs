//! What a report states of a figure: its value, or its range.

use super::report::{TimesReport, TrialReport};
use serde::{Deserialize, Serialize};

/// What is known of a time that the generator or its host may have changed by more than 20 µs and
/// 10 %, in nanoseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeRange {
    /// It is not less.
    pub at_least: u64,
    /// It is not more; `null` where no bound is known.
    pub at_most: Option<u64>,
    /// Why it is not determined.
    pub because: String,
}

/// What is known of a rate that the generator or its host may have changed by more than 10 %, per
/// second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RateRange {
    /// It is not less.
    pub at_least: f64,
    /// It is not more; `null` where no bound is known.
    pub at_most: Option<f64>,
    /// Why it is not determined.
    pub because: String,
}

/// What a report states of a figure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Figure<T> {
    /// It is determined.
    Exactly(T),
    /// Its bounds are known; the upper one only where it is `Some`.
    Within(T, Option<T>),
    /// The observations do not tell it.
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

/// A figure of a distribution: its name, its value and its confidence interval, if it can have one.
pub(super) type FigureMut<'a> = (
    &'static str,
    &'a mut Option<u64>,
    Option<&'a mut Option<[u64; 2]>>,
);

impl TimesReport {
    /// The names of the percentiles, with their shares.
    pub const PERCENTILES: [(&'static str, f64); 6] = [
        ("p50", 0.5),
        ("p75", 0.75),
        ("p90", 0.9),
        ("p95", 0.95),
        ("p99", 0.99),
        ("p999", 0.999),
    ];

    /// The names of the figures that are ranges, in the order in which reports have them.
    pub fn undetermined(&self) -> impl Iterator<Item = &'static str> {
        let names = Self::PERCENTILES.iter().map(|(name, _)| *name);
        let names = ["mean", "min"].into_iter().chain(names).chain(["max"]);
        names.filter(|name| self.ranges.contains_key(*name))
    }

    fn value(&self, name: &str) -> Option<u64> {
        match name {
            "mean" => self.mean,
            "min" => self.min,
            "p50" => self.p50,
            "p75" => self.p75,
            "p90" => self.p90,
            "p95" => self.p95,
            "p99" => self.p99,
            "p999" => self.p999,
            "max" => self.max,
            _ => None,
        }
    }

    /// What is stated of the figure of this name.
    pub fn figure(&self, name: &str) -> Figure<u64> {
        match (self.value(name), self.ranges.get(name)) {
            (Some(value), _) => Figure::Exactly(value),
            (None, Some(range)) => Figure::Within(range.at_least, range.at_most),
            (None, None) => Figure::Absent,
        }
    }

    /// Each figure that may be a range.
    pub(super) fn figures(&mut self) -> [FigureMut<'_>; 9] {
        [
            ("mean", &mut self.mean, Some(&mut self.mean_ci95)),
            ("min", &mut self.min, None),
            ("p50", &mut self.p50, Some(&mut self.p50_ci95)),
            ("p75", &mut self.p75, Some(&mut self.p75_ci95)),
            ("p90", &mut self.p90, Some(&mut self.p90_ci95)),
            ("p95", &mut self.p95, Some(&mut self.p95_ci95)),
            ("p99", &mut self.p99, Some(&mut self.p99_ci95)),
            ("p999", &mut self.p999, Some(&mut self.p999_ci95)),
            ("max", &mut self.max, None),
        ]
    }
}

impl TrialReport {
    /// What is stated of the throughput.
    pub fn throughput(&self) -> Figure<f64> {
        match (self.throughput_per_s, &self.throughput_range_per_s) {
            (Some(per_s), _) => Figure::Exactly(per_s),
            (None, Some(range)) => Figure::Within(range.at_least, range.at_most),
            (None, None) => Figure::Absent,
        }
    }
}
