//! From the clock of the kernel's receive timestamps to the one that runs are timed by.

use crate::sys::clock;

/// The difference is read anew after so long, as CLOCK_REALTIME may be set.
const GOOD_FOR_NS: u64 = 100_000_000;

/// The difference between CLOCK_REALTIME and CLOCK_MONOTONIC.
///
/// It is known to half the time between two readings of the latter with one of the former between
/// them: some 30 ns where clocks are read without a system call, always below a microsecond
/// otherwise. A datagram that was queued while CLOCK_REALTIME was set is off by as much as that.
#[derive(Clone, Copy, Debug)]
pub(super) struct RealTime {
    /// CLOCK_REALTIME less CLOCK_MONOTONIC, modulo 2^64.
    ahead_ns: u64,
    read_at_ns: u64,
}

impl RealTime {
    /// Reads it now.
    pub(super) fn now() -> RealTime {
        let best = (0..8).map(|_| reading()).min_by_key(|&(width, _)| width);
        let (_, ahead_ns) = best.expect("eight readings");
        RealTime {
            ahead_ns,
            read_at_ns: clock::monotonic_ns(),
        }
    }

    /// Reads it anew where that is due.
    pub(super) fn refresh(&mut self, now_ns: u64) {
        if now_ns.saturating_sub(self.read_at_ns) > GOOD_FOR_NS {
            *self = RealTime::now();
        }
    }

    /// A moment of CLOCK_REALTIME on CLOCK_MONOTONIC; nothing that has happened is later than now.
    #[inline]
    pub(super) fn to_monotonic(self, real_ns: u64, now_ns: u64) -> u64 {
        real_ns.wrapping_sub(self.ahead_ns).min(now_ns)
    }
}

/// How long a reading took, and what it said.
fn reading() -> (u64, u64) {
    let before = clock::monotonic_ns();
    let real = clock::realtime_ns();
    let after = clock::monotonic_ns();
    let width = after - before;
    (width, real.wrapping_sub(before + width / 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_keeps_its_place_between_others() {
        let mut clocks = RealTime::now();
        let before = clock::monotonic_ns();
        let real = clock::realtime_ns();
        let after = clock::monotonic_ns();
        let at = clocks.to_monotonic(real, after);
        assert!(
            before.saturating_sub(1_000) <= at && at <= after,
            "{before} {at} {after}"
        );
        assert_eq!(clocks.to_monotonic(u64::MAX, after), after);
        clocks.refresh(after + 2 * GOOD_FOR_NS);
        assert!(clocks.read_at_ns >= after);
    }
}
