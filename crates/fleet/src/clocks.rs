//! How far two clocks are apart, from questions and answers over a network.
//!
//! Each answer has four times: when it was asked (here), when that came and when the answer went
//! (there), when it came back (here). The quickest of many is the most exact: whatever the network
//! did to it, the other clock is known to half of what its round trip took (RFC 5905 §8).

use crate::words::Reading;
use knee_core::measure::AgentClock;

/// So many questions are asked.
pub(crate) const READINGS: usize = 24;

/// What is known of an agent's clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClockRead {
    /// How far its monotonic clock is ahead of ours.
    pub ahead_ns: i64,
    /// How far its time of day is ahead of its monotonic clock.
    pub realtime_ahead_ns: i64,
    /// Half of the quickest round trip, without the time that it took there.
    pub uncertainty_ns: u64,
    pub is_synchronised: bool,
    /// See [`Reading::chrony_error_ns`].
    pub chrony_error_ns: Option<u64>,
}

/// The best of several exchanges: when each was asked and answered here, and what was answered.
pub(crate) fn best_of(exchanges: &[(u64, u64, Reading)]) -> Option<ClockRead> {
    let read = |&(asked, back, reading): &(u64, u64, Reading)| {
        let there = reading.went_ns.saturating_sub(reading.came_ns);
        let round_trip = back.saturating_sub(asked).saturating_sub(there);
        let way = |there: u64, here: u64| i128::from(there) - i128::from(here);
        let ahead = (way(reading.came_ns, asked) + way(reading.went_ns, back)) / 2;
        ClockRead {
            ahead_ns: ahead as i64,
            realtime_ahead_ns: reading.realtime_ahead_ns,
            uncertainty_ns: round_trip / 2,
            is_synchronised: reading.is_synchronised,
            chrony_error_ns: reading.chrony_error_ns,
        }
    };
    exchanges.iter().map(read).min_by_key(|r| r.uncertainty_ns)
}

impl ClockRead {
    /// The agent's clocks for the report: `ahead_ns` is how far this host's time of day is ahead of
    /// its monotonic clock, and `own_error_ns` what chrony says of it here.
    pub(crate) fn told(&self, ahead_ns: i64, own_error_ns: Option<u64>) -> AgentClock {
        let offset_ns = self.ahead_ns + self.realtime_ahead_ns - ahead_ns;
        let both = self.chrony_error_ns.zip(own_error_ns);
        let permitted = both.map(|(theirs, ours)| theirs + ours + self.uncertainty_ns);
        AgentClock {
            offset_ns,
            uncertainty_ns: self.uncertainty_ns,
            is_synchronised: self.is_synchronised,
            chrony_error_ns: self.chrony_error_ns,
            agrees_with_chrony: permitted.map(|most| offset_ns.unsigned_abs() <= most),
        }
    }

    /// A moment of our monotonic clock, by the agent's.
    pub(crate) fn there(&self, here_ns: u64) -> u64 {
        here_ns.saturating_add_signed(self.ahead_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_time_of_day_that_chrony_vouches_for_is_held_against_it() {
        let read = |ahead_ns, chrony_error_ns| ClockRead {
            ahead_ns,
            realtime_ahead_ns: 1_000_000,
            uncertainty_ns: 50_000,
            is_synchronised: true,
            chrony_error_ns,
        };
        let agrees = |read: ClockRead, own| read.told(1_000_000, own).agrees_with_chrony;
        assert_eq!(
            agrees(read(200_000, Some(100_000)), Some(60_000)),
            Some(true)
        );
        assert_eq!(
            agrees(read(-220_000, Some(100_000)), Some(60_000)),
            Some(false)
        );
        assert_eq!(agrees(read(5_000_000_000, Some(100_000)), None), None);
        assert_eq!(agrees(read(5_000_000_000, None), Some(1)), None);
        assert_eq!(read(-7, None).told(1_000_000, None).offset_ns, -7);
    }

    proptest! {
        #[test]
        fn the_true_offset_is_within_the_uncertainty(
            ahead in -5_000_000_000_i64..5_000_000_000,
            ways in proptest::collection::vec((1_u64..900_000, 1_u64..900_000, 0_u64..9_999), 1..9),
        ) {
            let mut now = 10_000_000_000_u64;
            let mut exchanges = Vec::new();
            for (to, fro, work) in ways {
                let came_ns = (now + to).saturating_add_signed(ahead);
                let reading = Reading { came_ns, went_ns: came_ns + work, ..Reading::default() };
                exchanges.push((now, now + to + work + fro, reading));
                now += 1_000_000;
            }
            let read = best_of(&exchanges).unwrap();
            prop_assert!(read.ahead_ns.abs_diff(ahead) <= read.uncertainty_ns + 1);
            let there = read.there(now);
            let truly = now.saturating_add_signed(ahead);
            prop_assert!(there.abs_diff(truly) <= read.uncertainty_ns + 1);
        }
    }
}
