//! What is counted in a window of time.

use super::ledger::{Ledger, Sighting};
use super::segment::{Segment, SegmentKind};
use knee_core::measure::Observed;
use knee_core::time::Nanos;

/// Intervals are kept for so many; what comes later counts in the sums alone.
pub(super) const INTERVALS_MAX: u64 = 1_000_000;

/// A window of time by CLOCK_MONOTONIC, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// Its begin.
    pub begin: u64,
    /// Its end, not part of it.
    pub end: u64,
    /// The length of its intervals, at least 1.
    pub interval: u64,
}

impl Span {
    /// From a begin on; an interval of 0 is the whole window.
    pub(super) fn new(begin: u64, interval: Nanos, duration: Nanos) -> Span {
        let whole = duration.0.max(1);
        Span {
            begin,
            end: begin.saturating_add(duration.0),
            interval: if interval.0 == 0 { whole } else { interval.0 },
        }
    }

    fn interval_of(&self, at_ns: u64) -> Option<usize> {
        if at_ns < self.begin || at_ns >= self.end {
            return None;
        }
        let index = (at_ns - self.begin) / self.interval;
        Some(index.min(INTERVALS_MAX) as usize)
    }
}

/// Counts segments. Those before the window are remembered, so that a SYN that comes again in it is
/// known as such, and not counted.
#[derive(Debug)]
pub(super) struct Tally {
    span: Span,
    ledger: Ledger,
    first: u64,
    repeated: u64,
    ends: u64,
    by_interval: Vec<u64>,
}

impl Tally {
    /// Nothing counted yet.
    pub(super) fn new(span: Span) -> Tally {
        Tally {
            span,
            ledger: Ledger::default(),
            first: 0,
            repeated: 0,
            ends: 0,
            by_interval: Vec::new(),
        }
    }

    /// A segment came over an interface at a moment.
    pub(super) fn count(&mut self, segment: &Segment, interface: i32, at_ns: u64) {
        let is_in = self.span.interval_of(at_ns).is_some();
        if segment.kind == SegmentKind::End {
            self.ends += u64::from(is_in);
            return;
        }
        match self.ledger.see(segment, interface, at_ns) {
            Sighting::First => self.add_first(1, at_ns),
            Sighting::Repeated => self.repeated += u64::from(is_in),
            Sighting::Same => {}
        }
    }

    /// So many first SYNs came, as far as is known, at a moment.
    pub(super) fn add_first(&mut self, count: u64, at_ns: u64) {
        let Some(index) = self.span.interval_of(at_ns) else {
            return;
        };
        self.first += count;
        if index < INTERVALS_MAX as usize {
            if self.by_interval.len() <= index {
                self.by_interval.resize(index + 1, 0);
            }
            self.by_interval[index] += count;
        }
    }

    /// Writes what was counted up to `until` (or the window's end) into an observation.
    pub(super) fn finish(mut self, until: u64, observed: &mut Observed) {
        let elapsed = until.min(self.span.end).saturating_sub(self.span.begin);
        // One place for each interval that began, also where nothing came any more.
        let intervals = elapsed.div_ceil(self.span.interval).min(INTERVALS_MAX) as usize;
        self.by_interval
            .resize(intervals.max(self.by_interval.len()), 0);
        observed.first_syns = self.first;
        observed.repeated_syns = self.repeated;
        observed.client_ends = self.ends;
        observed.elapsed_ns = elapsed;
        observed.first_syns_by_interval = self.by_interval;
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::parse;
    use super::super::segment::tests::SYN_V4;
    use super::*;

    fn segment(sequence: u8, flags: u8) -> Segment {
        let mut packet = SYN_V4;
        (packet[27], packet[33]) = (sequence, flags);
        parse(&packet).unwrap()
    }

    #[test]
    fn counts_are_of_the_window_and_memory_is_of_all() {
        let second = Nanos::from_secs(1);
        let span = Span::new(10 * second.0, second, Nanos::from_millis(3500));
        let mut tally = Tally::new(span);
        let at = |tenths: u64| tenths * second.0 / 10;
        let (syn, end) = (|n| segment(n, 0x02), segment(0, 0x11));
        tally.count(&syn(1), 1, at(99));
        tally.count(&syn(1), 1, at(109));
        tally.count(&syn(2), 1, at(100));
        tally.count(&syn(3), 1, at(134));
        tally.count(&syn(4), 1, at(135));
        tally.count(&end, 1, at(99));
        tally.count(&end, 1, at(120));
        let mut observed = Observed::default();
        tally.finish(at(200), &mut observed);
        assert_eq!(observed.first_syns, 2);
        assert_eq!(observed.repeated_syns, 1);
        assert_eq!(observed.client_ends, 1);
        assert_eq!(observed.elapsed_ns, span.end - span.begin);
        assert_eq!(observed.first_syns_by_interval, [1, 0, 0, 1]);
    }

    #[test]
    fn what_ends_early_has_the_intervals_that_began() {
        for (until, elapsed, intervals) in [(500, 0, 0), (1000, 0, 0), (1150, 150, 2)] {
            let tally = Tally::new(Span::new(1000, Nanos(100), Nanos(10_000)));
            let mut observed = Observed::default();
            tally.finish(until, &mut observed);
            assert_eq!(observed.elapsed_ns, elapsed);
            assert_eq!(observed.first_syns_by_interval.len(), intervals);
        }
        // One interval, as none was asked for.
        let mut tally = Tally::new(Span::new(1000, Nanos::ZERO, Nanos(10_000)));
        tally.add_first(7, 5000);
        let mut observed = Observed::default();
        tally.finish(u64::MAX, &mut observed);
        assert_eq!(observed.first_syns_by_interval, [7]);
    }
}
