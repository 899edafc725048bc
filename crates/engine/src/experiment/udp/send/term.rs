//! The time in which a sender may send.

use crate::sys::clock::{MonotonicClock, monotonic_ns};
use crate::sys::timer;
use knee_core::time::{Clock, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};

/// A schedule that is late at its end is worked off for so long, so that a pause of the machine
/// just before the end costs no datagrams.
const GRACE: Nanos = Nanos::from_millis(10);

/// A sleep of more is made in pieces, between which the sender looks whether it is to stop.
const PIECE: Nanos = Nanos::from_millis(100);

/// So long before the origin a sender stops sleeping and watches the clock.
const WATCH_NS: u64 = 200_000;

/// From when to when datagrams are sent, and by which clock.
#[derive(Clone, Copy)]
pub(super) struct Term<'a> {
    /// The time since the run began.
    pub(super) clock: MonotonicClock,
    /// When it is over.
    pub(super) end: Nanos,
    /// The user ends it early.
    pub(super) stop: &'a AtomicBool,
    /// Another sender could not begin.
    pub(super) failed: &'a AtomicBool,
}

impl Term<'_> {
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Whether it ends early.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// When what is late is given up.
    pub(super) fn given_up(&self) -> Nanos {
        self.end + GRACE
    }

    /// Returns at the origin: sleeps, and where `watches` watches the clock for the last part.
    pub(super) fn await_origin(&self, watches: bool) {
        let before = if watches { WATCH_NS } else { 0 };
        let until = self.clock.origin.saturating_sub(before);
        loop {
            let now = monotonic_ns();
            if now >= until || self.is_stopped() {
                break;
            }
            timer::sleep_until(until.min(now + PIECE.0));
        }
        while monotonic_ns() < self.clock.origin && !self.is_stopped() {
            std::hint::spin_loop();
        }
    }

    /// Sleeps for a length of time, a relative sleep that begins `now`, or until the term is over.
    pub(super) fn sleep_for(&self, now: Nanos, length: Nanos) {
        let until = now + length;
        if length <= PIECE && until < self.end {
            return timer::sleep_for(length.0);
        }
        self.sleep_until(until);
    }

    /// Sleeps until a moment, or until the term is over.
    pub(super) fn sleep_until(&self, moment: Nanos) {
        let until = moment.min(self.end);
        loop {
            let now = self.now();
            if now >= until || self.is_stopped() {
                return;
            }
            let next = until.min(now + PIECE);
            timer::sleep_until(self.clock.origin.saturating_add(next.0));
        }
    }
}
