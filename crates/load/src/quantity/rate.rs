//! A rate as a ratio of integers, so that deadlines computed from it never drift.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Operations per length of time: `operations` in every `period`. Never zero, never infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rate {
    operations: u64,
    period: Nanos,
}

impl Rate {
    /// `operations` in every `period`; `None` if either is zero.
    pub fn new(operations: u64, period: Nanos) -> Option<Rate> {
        (operations > 0 && period > Nanos::ZERO).then_some(Rate { operations, period })
    }

    /// `operations` per second.
    pub fn per_second(operations: u64) -> Option<Rate> {
        Rate::new(operations, Nanos::from_secs(1))
    }

    /// The nearest ratio to `per_s` operations per second, exact to a millionth of an operation per
    /// second. `None` unless it is a positive number below 10^12.
    pub fn from_f64(per_s: f64) -> Option<Rate> {
        if !(per_s.is_finite() && per_s > 0.0 && per_s < 1e12) {
            return None;
        }
        Rate::new((per_s * 1e6).round() as u64, Nanos::from_secs(1_000_000))
    }

    /// The operations of one period.
    pub fn operations(self) -> u64 {
        self.operations
    }

    /// The period that they fall in.
    pub fn period(self) -> Nanos {
        self.period
    }

    /// Operations per second.
    pub fn per_s(self) -> f64 {
        self.operations as f64 / self.period.as_secs_f64()
    }

    /// As it can be typed: `1000/s`, `90/m`, `12/h`.
    pub fn exactly(self) -> String {
        match self.period.as_secs_f64() {
            60.0 => format!("{}/m", self.operations),
            3600.0 => format!("{}/h", self.operations),
            _ => format!("{}/s", self.per_s()),
        }
    }

    /// Time from the first operation to operation `k` (0, 1, 2, …): ⌊k·period/operations⌋,
    /// computed in 128-bit integers, so no error adds up however large `k` grows.
    pub fn moment(self, k: u64) -> Nanos {
        let t = u128::from(k) * u128::from(self.period.0) / u128::from(self.operations);
        Nanos(u64::try_from(t).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rate_is_neither_zero_nor_infinite() {
        for (per_s, exists) in [
            (0.0, false),
            (-1.0, false),
            (f64::NAN, false),
            (f64::INFINITY, false),
            (1e12, false),
            (1e-7, false),
            (1e-6, true),
            (999_999_999_999.0, true),
        ] {
            assert_eq!(Rate::from_f64(per_s).is_some(), exists, "{per_s}");
        }
        assert_eq!(Rate::new(0, Nanos(1)), None);
        assert_eq!(Rate::new(1, Nanos::ZERO), None);
        assert_eq!(Rate::per_second(0), None);
    }

    #[test]
    fn moments_saturate_instead_of_wrapping() {
        let rate = Rate::new(1, Nanos::from_secs(3_600)).unwrap();
        assert_eq!(rate.moment(u64::MAX), Nanos::MAX);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Operation k is at k periods over operations, rounded down: never early by a nanosecond,
        /// and exact wherever k is a multiple of the operations.
        #[test]
        fn moments_never_drift(
            operations in 1u64..1_000_000_000,
            period in 1u64..10_000_000_000_000,
            n in 0u64..1_000_000,
        ) {
            let rate = Rate::new(operations, Nanos(period)).unwrap();
            let whole = u128::from(n) * u128::from(period);
            if whole < u128::from(u64::MAX) {
                prop_assert_eq!(u128::from(rate.moment(n * operations).0), whole);
            }
            let (k, t) = (u128::from(n), u128::from(rate.moment(n).0));
            let (p, ops) = (u128::from(period), u128::from(operations));
            prop_assert!(t * ops <= k * p && k * p < (t + 1) * ops);
        }

        #[test]
        fn a_fraction_keeps_six_decimals(millionths in 1u64..1_000_000_000_000) {
            let per_s = millionths as f64 / 1e6;
            let rate = Rate::from_f64(per_s).unwrap();
            prop_assert!((rate.per_s() - per_s).abs() <= 1e-6);
        }
    }
}
