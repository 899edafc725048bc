//! The period in which a sender may send, and the processor time that a send is to take.

use crate::sys::clock::{self, MonotonicClock, monotonic_ns};
use knee_load::time::{Clock, Nanos};
use std::sync::atomic::{AtomicBool, Ordering};

/// Time after the end in which a late schedule is worked off. A pause of the machine just before
/// the end then costs no datagrams.
const GRACE: Nanos = Nanos::from_millis(10);

/// Longest sleep in one piece. Bounds the delay of a stop.
const PIECE: Nanos = Nanos::from_millis(100);

/// Time before the origin at which a sender stops sleeping and polls the clock.
const WATCH_NS: u64 = 200_000;

/// The period in which datagrams are sent.
#[derive(Clone, Copy)]
pub(super) struct SendPeriod<'a> {
    /// The time since the run began.
    pub(super) clock: MonotonicClock,
    /// End of the period.
    pub(super) end: Nanos,
    /// Set by the user to end it early.
    pub(super) stop: &'a AtomicBool,
    /// Set where another sender could not begin.
    pub(super) failed: &'a AtomicBool,
}

impl SendPeriod<'_> {
    #[inline]
    pub(super) fn now(&self) -> Nanos {
        self.clock.now()
    }

    /// Whether it was stopped early.
    #[inline]
    pub(super) fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed) || self.failed.load(Ordering::Relaxed)
    }

    /// Time at which late datagrams are dropped.
    pub(super) fn given_up(&self) -> Nanos {
        self.end + GRACE
    }

    /// Waits until the origin: sleeps, and polls the clock for the last part where `watches` is
    /// set.
    pub(super) fn await_origin(&self, watches: bool) {
        let before = if watches { WATCH_NS } else { 0 };
        let until = self.clock.origin.saturating_sub(before);
        loop {
            let now = monotonic_ns();
            if now >= until || self.is_stopped() {
                break;
            }
            clock::sleep_until(until.min(now + PIECE.0));
        }
        while monotonic_ns() < self.clock.origin && !self.is_stopped() {
            std::hint::spin_loop();
        }
    }

    /// Sleeps for `length` from `now`, by a relative sleep, or until the end of the period.
    pub(super) fn sleep_for(&self, now: Nanos, length: Nanos) {
        let until = now + length;
        if length <= PIECE && until < self.end {
            return clock::sleep_for(length.0);
        }
        self.sleep_until(until);
    }

    /// Sleeps until `time`, or until the end of the period.
    pub(super) fn sleep_until(&self, time: Nanos) {
        let until = time.min(self.end);
        loop {
            let now = self.now();
            if now >= until || self.is_stopped() {
                return;
            }
            let next = until.min(now + PIECE);
            clock::sleep_until(self.clock.origin.saturating_add(next.0));
        }
    }
}

/// Extends the processor time of a send to what the trial asks for.
///
/// It counts the time of the sender's thread. While other threads run nothing is spent, so that a
/// shared processor sends as many datagrams as the emulated machine could. The work itself
/// (sending, yielding, sleeping and waking) is part of the cost.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendCost {
    each_ns: u64,
    /// The thread's processor time when the last datagrams were about to leave.
    since_ns: u64,
    /// What it took to hand them over.
    handed_over_ns: u64,
}

impl SendCost {
    /// Cost of each datagram; zero: whatever it takes.
    pub(super) fn new(each: Nanos) -> SendCost {
        SendCost { each_ns: each.0, since_ns: 0, handed_over_ns: 0 }
    }

    /// Whether no cost is set.
    #[inline]
    pub(super) fn is_none(&self) -> bool {
        self.each_ns == 0
    }

    /// Begins to count at `cpu_ns` of the thread's processor time.
    pub(super) fn begin(&mut self, cpu_ns: u64) {
        self.since_ns = cpu_ns;
    }

    /// Leaves out the time until `cpu_ns`, which was spent waiting, except for handing over the
    /// last datagrams.
    pub(super) fn leave_out_waiting(&mut self, cpu_ns: u64) {
        self.since_ns = cpu_ns.saturating_sub(self.handed_over_ns);
    }

    /// Uses the processor until `count` datagrams have taken their time since the last ones;
    /// `clock` is the processor time of the thread.
    pub(super) fn spend(
        &mut self,
        count: usize,
        mut clock: impl FnMut() -> u64,
        is_stopped: impl Fn() -> bool,
    ) {
        let total_ns = self.each_ns.saturating_mul(count as u64);
        let until_ns = self.since_ns.saturating_add(total_ns);
        loop {
            let now_ns = clock();
            if now_ns >= until_ns || is_stopped() {
                self.since_ns = now_ns;
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// Notes that datagrams were handed over at `cpu_ns`.
    pub(super) fn handed_over(&mut self, cpu_ns: u64) {
        self.handed_over_ns = cpu_ns.saturating_sub(self.since_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    /// Spends on `count` datagrams with a clock that goes on by 1 ns at each look; returns for how
    /// long.
    fn spent(cost: &mut SendCost, cpu_ns: &Cell<u64>, count: usize) -> u64 {
        let before = cpu_ns.get();
        let clock = || {
            cpu_ns.set(cpu_ns.get() + 1);
            cpu_ns.get()
        };
        cost.spend(count, clock, || false);
        cpu_ns.get() - before
    }

    #[test]
    fn own_work_is_part_of_the_cost() {
        let cpu_ns = Cell::new(500);
        let mut cost = SendCost::new(Nanos(75));
        cost.begin(500);
        assert_eq!(spent(&mut cost, &cpu_ns, 1), 75);
        cpu_ns.set(cpu_ns.get() + 20);
        assert_eq!(spent(&mut cost, &cpu_ns, 1), 55, "20 were used for the last");
        assert_eq!(cpu_ns.get(), 500 + 2 * 75);
        cpu_ns.set(cpu_ns.get() + 80);
        assert_eq!(spent(&mut cost, &cpu_ns, 1), 1, "it takes longer by itself");
        assert_eq!(spent(&mut cost, &cpu_ns, 3), 225, "no debt is left of that");
    }

    #[test]
    fn waiting_for_a_moment_is_no_part_of_it() {
        let cpu_ns = Cell::new(0);
        let mut cost = SendCost::new(Nanos(75));
        cost.begin(0);
        spent(&mut cost, &cpu_ns, 1);
        cpu_ns.set(cpu_ns.get() + 20);
        cost.handed_over(cpu_ns.get());
        cpu_ns.set(cpu_ns.get() + 1_000);
        cost.leave_out_waiting(cpu_ns.get());
        assert_eq!(spent(&mut cost, &cpu_ns, 1), 55);
    }

    #[test]
    fn a_sender_that_stops_spends_no_more() {
        let mut cost = SendCost::new(Nanos(75));
        cost.spend(1, || 0, || true);
    }
}
