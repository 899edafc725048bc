//! A first estimate of the margins, measured in a moment.

use crate::reactor::{COVERED, margin_within_bounds};
use crate::sys::clock::MonotonicClock;
use crate::sys::timer;
use knee_core::spec::Margins;
use knee_core::time::{Clock, Nanos};

/// Sleeps of each length, at most: the covered share of them is then known to some 5 %.
const SLEEPS_MAX: usize = 40;

/// With fewer, a length is concluded from the shorter ones.
const SLEEPS_MIN: usize = 5;

/// Sleeps of one length take at most one part in so many of the budget.
const PARTS: u64 = 6;

/// Measures sleeps of every length, from short to long, for about so long.
pub(super) fn measure(budget: Nanos) -> Margins {
    let clock = MonotonicClock::start();
    let mut measured = Vec::new();
    for bucket in 0..Margins::COUNT {
        // The middle of what the bucket is for.
        let length = Nanos(Margins::length_min(bucket).0 / 2 * 3);
        let part = clock.now() + Nanos(budget.0 / PARTS);
        let late = late_wakeups(&clock, length, part.min(budget));
        if late.len() < SLEEPS_MIN {
            break;
        }
        measured.push(covering(late));
    }
    from_measured(&measured)
}

/// By how much sleeps of this length end late; none begins that would not be over by `end`.
fn late_wakeups(clock: &MonotonicClock, length: Nanos, end: Nanos) -> Vec<Nanos> {
    let mut late = Vec::with_capacity(SLEEPS_MAX);
    while late.len() < SLEEPS_MAX {
        let until = clock.now() + length;
        if until > end {
            break;
        }
        timer::sleep_until(clock.origin + until.0);
        late.push(clock.now() - until);
    }
    late
}

/// The least of them that is not exceeded by the covered share.
fn covering(mut late: Vec<Nanos>) -> Nanos {
    late.sort_unstable();
    let rank = (late.len() as f64 * COVERED).ceil() as usize;
    late[rank.clamp(1, late.len()) - 1]
}

/// Margins from those measured of the shortest lengths. None is less than that of a shorter length,
/// as a core that slept longer does not wake sooner; beyond them they go on to grow as they did, on
/// average from length to length.
fn from_measured(measured: &[Nanos]) -> Margins {
    let (Some(&first), Some(&last)) = (measured.first(), measured.iter().max()) else {
        return Margins::UNKNOWN;
    };
    let growth = (last - first).0 / (measured.len() as u64 - 1).max(1);
    let mut margin = Nanos::ZERO;
    let mut margins = [0; Margins::COUNT];
    for (bucket, ns) in margins.iter_mut().enumerate() {
        margin = match measured.get(bucket) {
            Some(&found) => margin.max(found),
            None => margin + Nanos(growth),
        };
        *ns = margin_within_bounds(margin).0;
    }
    Margins::from_buckets(margins)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(us: &[u64]) -> Vec<Nanos> {
        us.iter().copied().map(Nanos::from_micros).collect()
    }

    #[test]
    fn margins_never_decrease_and_go_on_to_grow() {
        let margins = from_measured(&micros(&[40, 50, 45, 70])).by_bucket();
        assert_eq!(margins[..5], [40_000, 50_000, 50_000, 70_000, 80_000]);
        assert_eq!(margins[Margins::COUNT - 1], 160_000);
    }

    #[test]
    fn nothing_measured_is_nothing_known() {
        assert_eq!(from_measured(&[]), Margins::UNKNOWN);
        assert_eq!(measure(Nanos::ZERO), Margins::UNKNOWN);
        let one = from_measured(&micros(&[70]));
        assert_eq!(one, Margins::of(Nanos::from_micros(70)));
    }

    #[test]
    fn the_covered_share_is_an_order_statistic() {
        assert_eq!(covering((1..=20).map(Nanos).collect()), Nanos(17));
        assert_eq!(covering(vec![Nanos(9)]), Nanos(9));
    }
}
