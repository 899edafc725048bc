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

    /// The nearest ratio to `per_s` operations per second, exact to a millionth of an operation
    /// per second; `None` unless it is a positive number below 10^12.
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

    /// The moment of operation `k` (0, 1, 2, …) counted from the first: ⌊k·period/operations⌋,
    /// computed in 128-bit integers, so no error adds up however large `k` grows.
    pub fn moment(self, k: u64) -> Nanos {
        let t = u128::from(k) * u128::from(self.period.0) / u128::from(self.operations);
        Nanos(u64::try_from(t).unwrap_or(u64::MAX))
    }
}
