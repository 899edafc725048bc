//! The scale of a plot: an axis with unit and name, or categories.

use crate::axis::{Axis, ScaleKind, span, top};
use crate::number;
use knee_core::words::trimmed;

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
            Unit::Count => number::asked(value),
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

    /// Position and label of each mark.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<(f64, String)> {
        if self.is_of_categories() {
            let names = self.categories.iter().enumerate();
            let named = names.map(|(i, name)| (self.axis.position(i as f64), name.clone()));
            return named.collect();
        }
        let ticks = match self.marked.as_slice() {
            [] => self.axis.ticks(wanted),
            marked => marked.to_vec(),
        };
        let ticks = ticks.into_iter();
        ticks.map(|v| (self.axis.position(v), (self.axis.label)(v))).collect()
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
