//! The course of one run that holds a rate: its clock, its end, and sleeps that heed both.

use crate::sys::clock::MonotonicClock;
use crate::sys::timer;
use knee_core::time::{Clock, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};

/// Longer sleeps are made in pieces up to so long before their end, so that a stop is heeded; the
/// last piece is slept as it would be in one go.
const LAST_PIECE: Nanos = Nanos::from_millis(100);

/// The pieces before it.
const PIECE: Nanos = Nanos::from_millis(50);

/// The course of one run.
pub(super) struct Course<'a> {
    pub(super) clock: MonotonicClock,
    /// Nothing begins from then on.
    pub(super) end: Nanos,
    pub(super) stop: &'a AtomicBool,
}

impl Course<'_> {
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Whether it is neither over nor stopped.
    pub(super) fn goes_on(&self) -> bool {
        self.now() < self.end && !self.is_stopped()
    }

    /// Sleeps for so long, as asked by a relative length; less where the run ends before.
    pub(super) fn sleep_for(&self, length: Nanos) {
        let until = self.now() + length;
        if length <= LAST_PIECE && until <= self.end {
            timer::sleep_for(length.0);
        } else if self.approach(until) {
            timer::sleep_for((until - self.now()).0);
        }
    }

    /// Sleeps until a moment; less where the run ends before.
    pub(super) fn sleep_until(&self, until: Nanos) {
        if self.approach(until) {
            timer::sleep_until(self.clock.origin + until.0);
        }
    }

    /// Sleeps until at most [`LAST_PIECE`] before a moment; false where the run ends, or is
    /// stopped, before that moment: it has then ended.
    pub(super) fn approach(&self, until: Nanos) -> bool {
        let goal = if until > self.end {
            self.end
        } else {
            until - LAST_PIECE
        };
        loop {
            let now = self.now();
            if now >= goal {
                return until <= self.end;
            }
            if self.is_stopped() {
                return false;
            }
            timer::sleep_until(self.clock.origin + goal.min(now + PIECE).0);
        }
    }
}
