//! The scale of a plot: an axis with unit and name, or categories. An axis maps values to positions
//! and chooses round values for its marks.

use crate::number;
use knee_core::words::trimmed;

/// Percentiles marked on an axis of percentiles.
const PERCENTILES: [f64; 9] = [0.0, 50.0, 90.0, 99.0, 99.9, 99.99, 99.999, 99.9999, 99.99999];

/// The mapping from values to positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScaleKind {
    /// Equal differences are equally far apart.
    Linear,
    /// Equal ratios are equally far apart.
    Log,
    /// Percentiles by the share above them: 90, 99 and 99.9 are equally far apart.
    Percentile,
}

/// An axis from `lo` to `hi`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    /// The value at position 0.
    pub lo: f64,
    /// The value at position 1.
    pub hi: f64,
    /// The mapping from values to positions.
    pub kind: ScaleKind,
    /// Formats a value.
    pub label: fn(f64) -> String,
}

/// Minimum and maximum of the finite values; `None` without any.
pub(crate) fn span(values: impl IntoIterator<Item = f64>) -> Option<[f64; 2]> {
    let known = values.into_iter().filter(|v| v.is_finite()).map(|v| [v, v]);
    known.reduce(|[lo, hi], [v, _]| [lo.min(v), hi.max(v)])
}

/// Maximum of the finite values, at least 0.
pub(crate) fn top(values: impl IntoIterator<Item = f64>) -> f64 {
    span(values).map_or(0.0, |[_, hi]| hi.max(0.0))
}

impl Axis {
    /// A linear axis over `lo < hi`.
    pub(crate) fn linear(lo: f64, hi: f64, label: fn(f64) -> String) -> Axis {
        let hi = if hi > lo { hi } else { lo + 1.0 };
        Axis { lo, hi, kind: ScaleKind::Linear, label }
    }

    /// A logarithmic axis over `0 < lo < hi`; linear from 0 where `lo` is not positive.
    pub(crate) fn logarithmic(lo: f64, hi: f64, label: fn(f64) -> String) -> Axis {
        if lo > 0.0 && hi > lo {
            Axis { lo, hi, kind: ScaleKind::Log, label }
        } else {
            Axis::linear(0.0, hi, label)
        }
    }

    /// A linear axis from 0 to the maximum, without labels.
    pub(crate) fn from_zero(values: impl IntoIterator<Item = f64>) -> Axis {
        let most = span(values).map_or(1.0, |[_, most]| most);
        Axis::linear(0.0, most, |_| String::new())
    }

    /// A logarithmic axis from the power of ten below the first to the second, both positive.
    pub(crate) fn decades([lo, hi]: [f64; 2], label: fn(f64) -> String) -> Axis {
        let lo = 10f64.powf(lo.log10().floor());
        Axis::logarithmic(lo, hi.max(lo * (1.0 + f64::EPSILON)), label)
    }

    /// An axis of percentiles from 0 to `hi`, 0 < `hi` < 100; higher ones lie at its end.
    pub(crate) fn percentiles(hi: f64, label: fn(f64) -> String) -> Axis {
        let hi = if hi > 0.0 && hi < 100.0 { hi } else { 99.0 };
        Axis { lo: 0.0, hi, kind: ScaleKind::Percentile, label }
    }

    /// The position of a value: 0 at `lo`, 1 at `hi`.
    pub(crate) fn position(&self, value: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => (value - self.lo) / (self.hi - self.lo),
            ScaleKind::Log => (value / self.lo).ln() / (self.hi / self.lo).ln(),
            ScaleKind::Percentile => (1.0 - value.min(self.hi) / 100.0).ln() / self.rest().ln(),
        }
    }

    /// The share above the highest percentile.
    fn rest(&self) -> f64 {
        1.0 - self.hi / 100.0
    }

    /// The value at a position.
    pub(crate) fn value(&self, position: f64) -> f64 {
        match self.kind {
            ScaleKind::Linear => self.lo + position * (self.hi - self.lo),
            ScaleKind::Log => self.lo * (self.hi / self.lo).powf(position),
            ScaleKind::Percentile => 100.0 * (1.0 - self.rest().powf(position)),
        }
    }

    /// About `wanted` round values (at least 2) within it, ascending.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.kind == ScaleKind::Percentile {
            return PERCENTILES.into_iter().filter(|p| *p <= self.hi).collect();
        }
        if self.kind == ScaleKind::Log {
            for digits in [&[1.0][..], &[1.0, 3.0], &[1.0, 2.0, 5.0]] {
                let first = self.lo.log10().floor() as i32;
                let last = self.hi.log10().ceil() as i32;
                let ticks = (first..=last)
                    .flat_map(|e| digits.iter().map(move |d| d * 10f64.powi(e)))
                    .filter(|v| (0.0..=1.0).contains(&self.position(*v)));
                let ticks: Vec<f64> = ticks.collect();
                if ticks.len() >= wanted.clamp(2, 3) {
                    return ticks;
                }
            }
        }
        self.even_ticks(wanted)
    }

    fn even_ticks(&self, wanted: usize) -> Vec<f64> {
        let raw = (self.hi - self.lo) / wanted.max(1) as f64;
        let decade = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 2.5, 5.0, 10.0]
            .map(|d| d * decade)
            .into_iter()
            .find(|s| *s >= raw * 0.999)
            .unwrap_or(raw);
        let first = (self.lo / step).ceil() as i64;
        let last = (self.hi / step).floor() as i64;
        (first..=last).map(|k| k as f64 * step).collect()
    }
}

/// Values over this ratio or more are drawn on a logarithmic scale.
const LOG_RATIO: f64 = 10.0;

/// The unit of the values on a scale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Nanoseconds; shown as ns, µs, ms or s.
    Time,
    /// Operations, or what the title names, per second.
    PerS,
    /// A whole number of something: users, connections.
    Count,
    /// A number without a unit.
    Number,
    /// A share in percent.
    Percent,
    /// The number of a percentile.
    Percentile,
    /// KiB per second.
    KibPerS,
    /// Per second, as a frequency.
    Hertz,
}

impl Unit {
    /// A value with its unit, as in a table.
    pub(crate) fn value(self, value: f64) -> String {
        if !value.is_finite() {
            return number::MISSING.to_string();
        }
        match self {
            Unit::Time if value < 0.0 => format!("−{}", number::time(-value as u64)),
            Unit::Time => number::time(value as u64),
            Unit::PerS => number::rate(value),
            Unit::Count => number::whole_or_rounded(value),
            Unit::Number => number::number(value),
            Unit::Percent => number::percent(value),
            Unit::Percentile if value >= 100.0 => "max".to_string(),
            Unit::Percentile => format!("p{}", trimmed(&format!("{value:.6}"))),
            Unit::KibPerS => format!("{}{}KiB/s", number::number(value), number::TIE),
            Unit::Hertz => format!("{}{}Hz", number::number(value), number::TIE),
        }
    }

    /// The short form of a value, for an axis.
    pub(crate) fn tick(self) -> fn(f64) -> String {
        match self {
            Unit::Time => |v| match v {
                v if v.abs() < 0.5 => "0".to_string(),
                v if v < 0.0 => format!("−{}", number::time_short(-v as u64)),
                v => number::time_short(v as u64),
            },
            Unit::Percent => number::percent_short,
            Unit::Percentile => |v| format!("{v}"),
            Unit::PerS | Unit::Count | Unit::Number | Unit::KibPerS | Unit::Hertz => number::number,
        }
    }
}

/// One of the two scales of a plot.
#[derive(Clone, Debug)]
pub(crate) struct Scale {
    /// Maps values to positions.
    pub axis: Axis,
    /// The unit of the values.
    pub unit: Unit,
    /// The quantity: `users`, `time`, `response time`.
    pub name: String,
    /// Names of the categories; empty for numbers.
    pub categories: Vec<String>,
    /// Values marked instead of round ones; may be empty.
    marked: Vec<f64>,
}

impl Scale {
    fn of(axis: Axis, unit: Unit, name: impl Into<String>) -> Scale {
        Scale { axis, unit, name: name.into(), categories: Vec::new(), marked: Vec::new() }
    }

    /// Equal differences equally far apart, from `lo` to `hi`.
    pub(crate) fn linear(lo: f64, hi: f64, unit: Unit, name: impl Into<String>) -> Scale {
        Scale::of(Axis::linear(lo, hi, unit.tick()), unit, name)
    }

    /// Equal ratios equally far apart; linear from 0 where `lo` is not positive.
    pub(crate) fn logarithmic(lo: f64, hi: f64, unit: Unit, name: impl Into<String>) -> Scale {
        Scale::of(Axis::logarithmic(lo, hi, unit.tick()), unit, name)
    }

    /// Logarithmic around two ends, with a margin.
    pub(crate) fn around([lo, hi]: [f64; 2], unit: Unit, name: impl Into<String>) -> Scale {
        Scale::logarithmic(lo / 1.5, hi * 1.5, unit, name)
    }

    /// Percentiles: 90, 99, 99.9 equally far apart, up to `hi` below 100; 100 lies at the end.
    pub(crate) fn percentiles(hi: f64, name: impl Into<String>) -> Scale {
        let unit = Unit::Percentile;
        Scale::of(Axis::percentiles(hi, unit.tick()), unit, name)
    }

    /// Linear from 0 to a little above the largest of these.
    pub(crate) fn from_zero(
        values: impl IntoIterator<Item = f64>,
        unit: Unit,
        name: impl Into<String>,
    ) -> Scale {
        let hi = top(values);
        Scale::linear(0.0, if hi > 0.0 { hi * 1.06 } else { 1.0 }, unit, name)
    }

    /// The one rule for the axes of all figures. Logarithmic around all positive values where they
    /// span a decade or more, else linear from 0.
    pub(crate) fn fitting(
        values: impl IntoIterator<Item = f64>,
        unit: Unit,
        name: impl Into<String>,
    ) -> Scale {
        match span(values.into_iter().filter(|v| *v > 0.0)) {
            Some([lo, hi]) if hi >= lo * LOG_RATIO => {
                let margin = (hi / lo).powf(0.04);
                Scale::logarithmic(lo / margin, hi * margin, unit, name)
            }
            other => Scale::from_zero(other.into_iter().flatten(), unit, name),
        }
    }

    /// Named rows, each one unit high; row 0 is the first.
    pub(crate) fn categories(names: Vec<String>) -> Scale {
        let hi = names.len().max(1) as f64 - 0.5;
        let mut scale = Scale::linear(-0.5, hi, Unit::Number, "");
        scale.categories = if names.is_empty() { vec![number::MISSING.to_string()] } else { names };
        scale
    }

    /// Marks these values instead of round ones, as far as there is room: for the few values that
    /// were measured.
    pub(crate) fn marked_at(mut self, values: impl IntoIterator<Item = f64>) -> Scale {
        self.marked = values.into_iter().collect();
        self
    }

    /// The values at begin and end.
    pub(crate) fn ends(&self) -> [f64; 2] {
        [self.axis.lo, self.axis.hi]
    }

    /// Whether it is a scale of categories.
    pub(crate) fn is_of_categories(&self) -> bool {
        !self.categories.is_empty()
    }

    /// A value as text, as in a table.
    pub(crate) fn value(&self, value: f64) -> String {
        if self.is_of_categories() {
            let name = self.categories.get(value.round().max(0.0) as usize);
            return name.map_or_else(|| number::MISSING.to_string(), Clone::clone);
        }
        self.unit.value(value)
    }

    /// Whether all marks are equally far apart.
    pub(crate) fn is_marked_evenly(&self) -> bool {
        let places: Vec<f64> = self.ticks(9).into_iter().map(|(at, _)| at).collect();
        let is_even = |w: &[f64]| ((w[2] - w[1]) - (w[1] - w[0])).abs() < 1e-6;
        self.marked.is_empty() && places.windows(3).all(is_even)
    }

    /// The position of a value: 0 at the begin, 1 at the end. `None` if a logarithmic scale has
    /// none for it.
    pub(crate) fn position(&self, value: f64) -> Option<f64> {
        let position = self.axis.position(value);
        position.is_finite().then_some(position)
    }

    /// The position of a value within the scale.
    pub(crate) fn position_within(&self, value: f64) -> Option<f64> {
        self.position(value).filter(|position| (0.0..=1.0).contains(position))
    }

    /// Position and label of each mark.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        if self.is_of_categories() {
            let names = self.categories.iter().enumerate();
            return names.map(|(i, name)| (self.axis.position(i as f64), name.clone())).collect();
        }
        let ticks = match self.marked.as_slice() {
            [] => self.axis.ticks(wanted),
            marked => marked.to_vec(),
        };
        ticks.into_iter().map(|v| (self.axis.position(v), (self.axis.label)(v))).collect()
    }

    /// For the script: kind, begin, end.
    pub(crate) fn for_script(&self) -> String {
        let kind = match self.axis.kind {
            ScaleKind::Linear => "lin",
            ScaleKind::Log => "log",
            ScaleKind::Percentile => "pct",
        };
        format!("{kind} {} {}", self.axis.lo, self.axis.hi)
    }

    /// For the script: the unit of the marks after zooming.
    pub(crate) fn unit_for_script(&self) -> &'static str {
        match self.unit {
            Unit::Time => "ns",
            _ => "",
        }
    }

    /// The title of the axis: the name with the unit that the marks omit.
    pub(crate) fn title(&self) -> String {
        let log = if self.axis.kind == ScaleKind::Log { ", log scale" } else { "" };
        match self.unit {
            Unit::KibPerS => format!("{} (KiB/s){log}", self.name),
            Unit::Hertz => format!("{} (Hz){log}", self.name),
            _ => format!("{}{log}", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::number;

    fn labels(axis: Axis, wanted: usize) -> Vec<String> {
        axis.ticks(wanted).into_iter().map(axis.label).collect()
    }

    #[test]
    fn linear_ticks_are_round() {
        let axis = Axis::linear(0.0, 9_200.0, number);
        assert_eq!(labels(axis, 5), ["0", "2,000", "4,000", "6,000", "8,000"]);
        assert_eq!(labels(Axis::linear(0.0, 0.7, number), 4), ["0", "0.2", "0.4", "0.6"]);
    }

    #[test]
    fn logarithmic_ticks_are_decades_or_finer() {
        let axis = Axis::logarithmic(0.9, 330.0, number);
        assert_eq!(labels(axis, 5), ["1", "10", "100"]);
        let axis = Axis::logarithmic(4_500.0, 38_000.0, number);
        assert_eq!(labels(axis, 5), ["5,000", "10,000", "20,000"]);
        let axis = Axis::logarithmic(0.9, 36.0, number);
        assert_eq!(labels(axis, 5), ["1", "3", "10", "30"]);
    }

    #[test]
    fn position_and_value_are_inverse() {
        for axis in [
            Axis::linear(-3.0, 8.0, number),
            Axis::logarithmic(0.5, 8.0, number),
            Axis::percentiles(99.99, number),
        ] {
            for p in [-0.5, 0.0, 0.3, 1.0] {
                assert!((axis.position(axis.value(p)) - p).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn nines_are_equally_far_apart() {
        let axis = Axis::percentiles(99.99, |p| format!("{p}"));
        assert_eq!(labels(axis, 3), ["0", "50", "90", "99", "99.9", "99.99"]);
        for (percentile, position) in [(90.0, 0.25), (99.0, 0.5), (99.9, 0.75), (100.0, 1.0)] {
            assert!((axis.position(percentile) - position).abs() < 1e-9);
        }
    }

    #[test]
    fn an_axis_without_extent_is_given_one() {
        assert_eq!(Axis::linear(5.0, 5.0, number).position(5.5), 0.5);
        assert_eq!(Axis::logarithmic(0.0, 5.0, number).position(0.0), 0.0);
    }
}
