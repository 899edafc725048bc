//! Translation of the kernel's timestamps to the run's clock.
//!
//! The timestamps are of CLOCK_REALTIME, the run counts by CLOCK_MONOTONIC. The two are compared
//! once a millisecond. Where the time of day was set in between, the time of reading stands in for
//! the timestamp.

use crate::sys::clock;
use knee_load::time::Nanos;

/// Interval between comparisons of CLOCK_REALTIME with the run's clock. It is slewed by up to
/// 500 ppm (adjtimex(2)): half a microsecond in that time.
const CHECK_EVERY: Nanos = Nanos::from_millis(1);

/// A larger share of the time between two comparisons by which the clocks moved apart, together
/// with
const SLEW_MAX: f64 = 0.001;
/// a larger difference than this, means that CLOCK_REALTIME was set. Older timestamps are void.
const READING_NS: f64 = 5_000.0;

/// Time of an event, in run time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EventTime {
    /// Time of the event. For bytes it is when the kernel received the last of them, if known.
    /// Otherwise it is the time at which the generator saw it.
    pub happened: Nanos,
    /// Time at which the generator saw it.
    pub seen: Nanos,
    /// Whether the kernel told the time.
    pub by_kernel: bool,
}

impl EventTime {
    /// An event without a time from the kernel.
    pub(crate) fn seen(now: Nanos) -> EventTime {
        EventTime { happened: now, seen: now, by_kernel: false }
    }
}

/// Translates the kernel's receive timestamps, which are of CLOCK_REALTIME, into run time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReceiveClock {
    origin: u64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, in nanoseconds, and the time of the last comparison.
    ahead_ns: u64,
    compared: Nanos,
    /// Timestamps are not trusted before.
    distrusted_until: Nanos,
}

impl ReceiveClock {
    /// Clock of a run that began at this reading of CLOCK_MONOTONIC.
    pub(crate) fn new(origin: u64) -> ReceiveClock {
        ReceiveClock {
            origin,
            ahead_ns: clock::realtime_ahead_ns(),
            compared: Nanos::ZERO,
            distrusted_until: Nanos::ZERO,
        }
    }

    /// Time of bytes seen at `now` that the kernel received at `realtime_ns`.
    #[inline]
    pub(crate) fn of(&mut self, realtime_ns: Option<u64>, now: Nanos) -> EventTime {
        let Some(realtime_ns) = realtime_ns else {
            return EventTime::seen(now);
        };
        if now >= self.compared + CHECK_EVERY {
            self.compare(clock::realtime_ahead_ns(), now);
        }
        self.translate(realtime_ns, now)
    }

    #[inline]
    fn translate(&self, realtime_ns: u64, now: Nanos) -> EventTime {
        if now < self.distrusted_until {
            return EventTime::seen(now);
        }
        let happened = realtime_ns.saturating_sub(self.ahead_ns + self.origin);
        EventTime {
            // Not after it was seen, whatever the two readings of clocks are worth.
            happened: Nanos(happened).min(now),
            seen: now,
            by_kernel: true,
        }
    }

    /// Applies a new comparison of the clocks.
    fn compare(&mut self, ahead_ns: u64, now: Nanos) {
        let apart = self.ahead_ns.abs_diff(ahead_ns) as f64;
        let slewed = SLEW_MAX * (now - self.compared).0 as f64;
        if apart > READING_NS.max(slewed) {
            self.distrusted_until = now + CHECK_EVERY;
        }
        self.ahead_ns = ahead_ns;
        self.compared = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AHEAD: u64 = 1_700_000_000_000_000_000;
    const ORIGIN: u64 = 5_000_000;

    fn receive_clock() -> ReceiveClock {
        ReceiveClock {
            origin: ORIGIN,
            ahead_ns: AHEAD,
            compared: Nanos::ZERO,
            distrusted_until: Nanos::ZERO,
        }
    }

    fn stamp(at: Nanos) -> u64 {
        AHEAD + ORIGIN + at.0
    }

    #[test]
    fn a_timestamp_becomes_run_time_and_is_never_after_it_was_seen() {
        let clock_of_run = receive_clock();
        let time = |at, now| clock_of_run.translate(stamp(at), now);
        let (at, now) = (Nanos(900_000), Nanos(950_000));
        let expected = EventTime { happened: at, seen: now, by_kernel: true };
        assert_eq!(time(at, now), expected);
        assert_eq!(time(now + Nanos(80), now).happened, now);
        assert_eq!(clock_of_run.translate(0, now).happened, Nanos::ZERO);
    }

    #[test]
    fn slewed_clock_is_followed_and_a_set_clock_not_trusted() {
        let mut clock_of_run = receive_clock();
        let idle = Nanos::from_secs(10);
        clock_of_run.compare(AHEAD + 5_000_000, idle);
        let time = clock_of_run.translate(stamp(idle) + 5_000_000, idle + Nanos(9));
        assert_eq!((time.happened, time.by_kernel), (idle, true), "500 ppm");
        let later = idle + CHECK_EVERY;
        clock_of_run.compare(AHEAD + 40_000_000, later);
        let time = clock_of_run.translate(stamp(later), later + Nanos(9));
        assert_eq!(time, EventTime::seen(later + Nanos(9)));
        let trusted = later + CHECK_EVERY;
        assert!(clock_of_run.translate(stamp(trusted), trusted).by_kernel);
    }
}
