//! The axis of a plot: maps values to positions and chooses round values for its marks.

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
    let known = values.into_iter().filter(|v| v.is_finite());
    known.fold(None, |span, v| match span {
        None => Some([v, v]),
        Some([lo, hi]) => Some([f64::min(lo, v), f64::max(hi, v)]),
    })
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
                let ticks = self.decade_ticks(digits);
                if ticks.len() >= wanted.clamp(2, 3) {
                    return ticks;
                }
            }
        }
        self.even_ticks(wanted)
    }

    fn decade_ticks(&self, digits: &[f64]) -> Vec<f64> {
        let first = self.lo.log10().floor() as i32;
        let last = self.hi.log10().ceil() as i32;
        let all = (first..=last).flat_map(|e| digits.iter().map(move |d| d * 10f64.powi(e)));
        all.filter(|v| (0.0..=1.0).contains(&self.position(*v))).collect()
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
