//! The moments that a throttle works off.

use crate::arrival::{ArrivalProcess, Arrivals};
use crate::time::Nanos;

/// The moments of an arrival process, up to a number of them.
#[derive(Clone, Debug)]
pub(super) struct Schedule {
    arrivals: Arrivals,
    remaining: u64,
}

impl Schedule {
    pub(super) fn new(arrivals: Arrivals) -> Schedule {
        Schedule {
            arrivals,
            remaining: u64::MAX,
        }
    }

    /// Ends it after `n` more moments.
    pub(super) fn limit(&mut self, n: u64) {
        self.remaining = n;
    }

    /// The next moment; [`Nanos::MAX`], which never comes: there are no more.
    #[inline]
    pub(super) fn next(&mut self) -> Nanos {
        if self.remaining == 0 {
            return Nanos::MAX;
        }
        self.remaining -= 1;
        self.arrivals.next().unwrap_or(Nanos::MAX)
    }

    /// Leaves out `n` moments.
    pub(super) fn skip(&mut self, n: u64) {
        self.remaining = self.remaining.saturating_sub(n);
        self.arrivals.skip(n);
    }

    /// Draws until a moment is later than `now`: how many were not, and that moment.
    ///
    /// Leaps ahead in steps that double and halve again, so that the millions of a long stall cost
    /// some dozens of moments, except where a leap costs as much as its single steps.
    pub(super) fn pass(&mut self, now: Nanos) -> (u64, Nanos) {
        let step_max = if self.arrivals.is_random() {
            1
        } else {
            1 << 40
        };
        let (mut passed, mut step, mut rises) = (0, 1, true);
        loop {
            let mut ahead = self.clone();
            ahead.skip(step - 1);
            let moment = ahead.next();
            if moment <= now && moment < Nanos::MAX {
                *self = ahead;
                passed += step;
                step = if rises { step * 2 } else { step / 2 }.clamp(1, step_max);
            } else if step == 1 {
                *self = ahead;
                return (passed, moment);
            } else {
                rises = false;
                step /= 2;
            }
        }
    }
}
