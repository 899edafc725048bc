//! Sleeping until a margin before a moment, then reading the clock until it has come.

use crate::reactor::Waiter;
use crate::sys::clock::MonotonicClock;
use crate::sys::timer;
use knee_core::spec::{Margins, WaitPolicy};
use knee_core::time::{Clock, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};

/// The wait with which the throttle and the `hybrid` rows meet their moments.
#[derive(Debug)]
pub(super) struct Hybrid(Waiter);

impl Hybrid {
    /// One whose margins begin with these and are to cover so much of the late wake-ups.
    pub(super) fn new(covered: f64, margins: &Margins) -> Hybrid {
        Hybrid(Waiter::new(WaitPolicy::Hybrid, covered, margins))
    }

    /// Waits until a moment; looks at `stop` at least every 50 ms and returns when it is set.
    pub(super) fn wait_until(&mut self, clock: &MonotonicClock, until: Nanos, stop: &AtomicBool) {
        loop {
            let now = clock.now();
            let asked = self.0.sleep_for(now, until);
            if asked == Nanos::ZERO {
                return spin_until(clock, until);
            }
            timer::sleep_until(clock.origin + (now + asked).0);
            self.0.woke(clock.now() - (now + asked));
            if stop.load(Ordering::Relaxed) {
                return;
            }
        }
    }

    /// The margins as they are by now.
    pub(super) fn margins(&self) -> Margins {
        self.0.margins()
    }
}

/// Reads the clock until a moment has come.
pub(super) fn spin_until(clock: &MonotonicClock, until: Nanos) {
    while clock.now() < until {}
}
