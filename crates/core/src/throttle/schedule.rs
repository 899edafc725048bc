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

    /// The next moment; `None`: there are no more. One at [`Nanos::MAX`] will never come.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Nanos> {
        if self.remaining == 0 {
            return None;
        }
        self.remaining -= 1;
        self.arrivals.next().filter(|&t| t < Nanos::MAX)
    }

    /// Leaves out `n` moments, which exist.
    pub(super) fn skip(&mut self, n: u64) {
        for _ in 0..n {
            self.next();
        }
    }

    /// Draws until a moment is later than `now`: how many were not, and that moment.
    pub(super) fn pass(&mut self, now: Nanos) -> (u64, Option<Nanos>) {
        let mut passed = 0;
        loop {
            match self.next() {
                Some(t) if t <= now => passed += 1,
                later => return (passed, later),
            }
        }
    }

    /// The moment that would be next.
    pub(super) fn peek(&self) -> Option<Nanos> {
        self.clone().next()
    }
}
