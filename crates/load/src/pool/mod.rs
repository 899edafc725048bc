//! Operations that wait for one of a bounded number of connections, and the recent service times
//! that they may expect. The engine and the simulator use it.
//!
//! **Unsent** is an operation that waited for a connection until its timeout. The one that came
//! first gets the next free connection, unless it has no chance left. That is less time than the
//! shortest request took recently or, while the line is longer than the connections can carry, less
//! than nearly all took. It then ends at its timeout, unsent.

#[cfg(test)]
mod tests;

use crate::octaves;
use crate::time::Nanos;
use std::collections::VecDeque;

/// Operations that wait for a connection, in the order of their deadlines.
///
/// Under overload, first come, first served would send every operation just before its timeout.
/// None would succeed, and each would cost the server work and the generator a connection. So an
/// operation without a chance is passed over. It ends at its timeout, unsent:
///
/// - one with less time left than the shortest recent service time;
/// - while the line is longer than the connections can carry in time, also one with less time left
///   than nearly all recent requests took. Some of the line cannot be served then. What has waited
///   longest gains least.
///
/// Older service times count for less. A faster server is noticed, as something is always sent: at
/// least what comes while a connection is free.
#[derive(Debug)]
pub struct ConnectionQueue<T> {
    connections: u64,
    line: Line<T>,
    /// Passed over.
    hopeless: Line<T>,
    times: ServiceTimes,
}

/// Operations by deadline.
type Line<T> = VecDeque<(Nanos, T)>;

/// Adds an operation to a line. Deadlines come nearly in order, so that the search from the back
/// looks at one or two.
#[inline]
fn add<T>(line: &mut Line<T>, deadline: Nanos, operation: T) {
    let earlier = line.iter().rposition(|&(at, _)| at <= deadline);
    let place = earlier.map_or(0, |at| at + 1);
    if place == line.len() {
        line.push_back((deadline, operation));
    } else {
        line.insert(place, (deadline, operation));
    }
}

impl<T> ConnectionQueue<T> {
    /// An empty queue for these connections.
    pub fn new(connections: u64) -> ConnectionQueue<T> {
        ConnectionQueue {
            connections: connections.max(1),
            line: VecDeque::new(),
            hopeless: VecDeque::new(),
            times: ServiceTimes::default(),
        }
    }

    /// An operation begins to wait, until its deadline at most.
    #[inline]
    pub fn push(&mut self, deadline: Nanos, operation: T) {
        add(&mut self.line, deadline, operation);
    }

    /// A connection is free at `now`: the operation that gets it.
    #[inline]
    pub fn take(&mut self, now: Nanos) -> Option<T> {
        if self.line.is_empty() {
            return None;
        }
        self.take_with_chance(now)
    }

    #[inline(never)]
    fn take_with_chance(&mut self, now: Nanos) -> Option<T> {
        let needed = self.times.needed();
        while let Some((deadline, operation)) = self.line.pop_front() {
            let left = deadline - now;
            let passed_over = left == Nanos::ZERO
                || left < needed.least
                || (left < needed.usual && self.is_too_long(now));
            if !passed_over {
                return Some(operation);
            }
            add(&mut self.hopeless, deadline, operation);
        }
        None
    }

    /// Whether the last of the line would be reached with less time left than a request takes.
    #[inline]
    fn is_too_long(&mut self, now: Nanos) -> bool {
        let Some(&(deadline, _)) = self.line.back() else {
            return false;
        };
        let needed = self.times.needed();
        let waits = u128::from(needed.mean.0) * self.line.len() as u128;
        let waits = (waits / u128::from(self.connections)).min(u128::from(u64::MAX));
        now + Nanos(waits as u64) + needed.mean > deadline
    }

    /// An operation had a connection for this long: until its whole response was there, or, where
    /// it is not `whole`, until its timeout.
    #[inline]
    pub fn note(&mut self, took: Nanos, whole: bool) {
        self.times.note(took, whole);
    }

    /// The operation with the first deadline.
    #[inline]
    pub fn first(&self) -> Option<&T> {
        let first = [&self.line, &self.hopeless].map(VecDeque::front);
        let first = first.into_iter().flatten().min_by_key(|(at, _)| *at)?;
        Some(&first.1)
    }

    /// When [`ConnectionQueue::expire`] has something to do next.
    #[inline]
    pub fn next_deadline(&self) -> Nanos {
        let first = |of: &Line<T>| of.front().map_or(Nanos::MAX, |&(at, _)| at);
        first(&self.line).min(first(&self.hopeless))
    }

    /// An operation whose time is over at `now`; ask until there is none.
    #[inline]
    pub fn expire(&mut self, now: Nanos) -> Option<T> {
        let first = [&mut self.hopeless, &mut self.line];
        let over = first
            .into_iter()
            .find(|of| of.front().is_some_and(|&(deadline, _)| deadline <= now))?;
        over.pop_front().map(|(_, operation)| operation)
    }

    /// Whatever waits; ask until there is nothing.
    pub fn abandon(&mut self) -> Option<T> {
        let next = self.hopeless.pop_front().or_else(|| self.line.pop_front());
        next.map(|(_, operation)| operation)
    }
}

/// Bands per octave: each is at most 1/16 wide.
const BANDS_PER_OCTAVE: u64 = 16;

/// Bands of all times.
const BANDS: usize = (65 - BANDS_PER_OCTAVE.trailing_zeros() as usize) * BANDS_PER_OCTAVE as usize;

/// Count at which all counts are halved.
const COUNTED_MAX: u32 = 1_024;

/// Share of service times that `usual` covers.
const USUAL_SHARE: f64 = 0.95;

/// What they need is worked out anew once they have grown by this share.
const STALE_SHARE: u32 = 16;

/// Time that a request takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Needed {
    /// Shortest time, rounded down to its band; 0 if unknown.
    pub least: Nanos,
    /// Time of nearly all, rounded up to the end of its band.
    pub usual: Nanos,
    /// The mean.
    pub mean: Nanos,
}

/// Counts of service times. Older ones count for less.
#[derive(Debug)]
struct ServiceTimes {
    counts: Box<[u16; BANDS]>,
    counted: u32,
    sum_ns: u128,
    /// Count since `needed` was computed.
    fresh: u32,
    needed: Needed,
}

impl Default for ServiceTimes {
    fn default() -> ServiceTimes {
        ServiceTimes {
            counts: Box::new([0; BANDS]),
            counted: 0,
            sum_ns: 0,
            fresh: 0,
            needed: Needed::default(),
        }
    }
}

impl ServiceTimes {
    /// Records a service time. One without a whole response would have been longer; it counts only
    /// if it exceeds the usual time.
    #[inline]
    fn note(&mut self, took: Nanos, whole: bool) {
        if !whole && took <= self.needed().usual {
            return;
        }
        self.counts[band_of(took)] += 1;
        self.counted += 1;
        self.fresh += 1;
        self.sum_ns += u128::from(took.0);
        if self.counted >= COUNTED_MAX {
            self.halve();
        }
    }

    fn halve(&mut self) {
        let before = u128::from(self.counted);
        // Rounded down, so that what is not seen again is forgotten.
        self.counts.iter_mut().for_each(|count| *count /= 2);
        self.counted = self.counts.iter().map(|&count| u32::from(count)).sum();
        self.sum_ns = self.sum_ns * u128::from(self.counted) / before;
    }

    /// Time that a request needs.
    #[inline]
    fn needed(&mut self) -> Needed {
        if self.fresh * STALE_SHARE >= self.counted && self.fresh > 0 {
            self.fresh = 0;
            self.needed = self.work_out();
        }
        self.needed
    }

    fn work_out(&self) -> Needed {
        let occupied = || (0..BANDS).filter(|&band| self.counts[band] > 0);
        let covered = (f64::from(self.counted) * USUAL_SHARE).ceil() as u32;
        let mut below = 0;
        let usual = occupied().find(|&band| {
            below += u32::from(self.counts[band]);
            below >= covered
        });
        Needed {
            least: occupied().next().map_or(Nanos::ZERO, start_of),
            usual: usual.map_or(Nanos::ZERO, |band| start_of(band + 1)),
            mean: Nanos((self.sum_ns / u128::from(self.counted.max(1))) as u64),
        }
    }
}

/// The band of a time: below 16 ns each nanosecond is one, then each octave has 16.
#[inline]
fn band_of(t: Nanos) -> usize {
    octaves::band_of::<BANDS_PER_OCTAVE>(t.0)
}

/// Where a band begins.
fn start_of(band: usize) -> Nanos {
    Nanos(octaves::band_start::<BANDS_PER_OCTAVE>(band))
}

#[cfg(test)]
mod service_times_tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_time_lies_in_its_band(exponent in 0u32..64, bits in any::<u64>()) {
            let t = Nanos(bits >> exponent);
            let band = band_of(t);
            prop_assert!(band < BANDS);
            prop_assert!(start_of(band) <= t);
            prop_assert!(t < start_of(band + 1) || start_of(band + 1) == Nanos::MAX);
        }
    }

    fn noted(times_ms: impl IntoIterator<Item = u64>) -> ServiceTimes {
        let mut times = ServiceTimes::default();
        for ms in times_ms {
            times.note(Nanos::from_millis(ms), true);
        }
        times
    }

    #[test]
    fn what_is_needed_is_what_was_seen() {
        assert_eq!(ServiceTimes::default().needed(), Needed::default());
        let needed = noted([300]).needed();
        assert!(needed.least <= Nanos::from_millis(300) && needed.least.0 > 280_000_000);
        assert!(needed.usual >= Nanos::from_millis(300) && needed.usual.0 < 320_000_000);
        assert_eq!(needed.mean, Nanos::from_millis(300));
        // One in ten takes longer: nearly all is more than nine in ten.
        let needed = noted((0..100).map(|k| if k % 10 == 0 { 900 } else { 10 })).needed();
        assert!(needed.least <= Nanos::from_millis(10) && needed.usual >= Nanos::from_millis(900));
        let needed = noted((0..100).map(|k| if k % 50 == 0 { 900 } else { 10 })).needed();
        assert!(needed.usual < Nanos::from_millis(11), "one in fifty does not");
    }

    #[test]
    fn a_server_that_gets_faster_or_slower_is_noticed() {
        let faster = noted((0..2_000).map(|_| 300).chain((0..20_000).map(|_| 1))).needed();
        assert!(faster.usual < Nanos::from_millis(2), "{faster:?}");
        let slower = noted((0..2_000).map(|_| 1).chain((0..20_000).map(|_| 300))).needed();
        assert!(slower.least > Nanos::from_millis(280), "{slower:?}");
        assert!(slower.mean > Nanos::from_millis(290), "{slower:?}");
    }

    #[test]
    fn a_timeout_counts_where_it_says_more_than_is_known() {
        let mut times = noted([300; 10]);
        times.note(Nanos::from_millis(4), false);
        assert!(times.needed().least > Nanos::from_millis(280));
        let mut times = ServiceTimes::default();
        times.note(Nanos::from_millis(1_000), false);
        assert!(times.needed().least > Nanos::from_millis(900));
    }
}
