//! Counts the segments of a time window, each SYN once, in bounded memory.

use super::segment::{ControlSegment, SegmentKind};
use knee_load::measure::Observed;
use knee_load::time::Nanos;
use std::collections::HashMap;
use std::net::Ipv6Addr;

/// Intervals kept. Later events count only in the sums.
pub(super) const INTERVALS_MAX: u64 = 1_000_000;

/// A window of time by CLOCK_MONOTONIC, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TimeWindow {
    /// Begin of the window.
    pub begin: u64,
    /// End of the window, exclusive.
    pub end: u64,
    /// Length of the intervals, at least 1.
    pub interval: u64,
}

impl TimeWindow {
    /// A window from `begin` on; an interval of 0 is the whole window.
    pub(super) fn new(begin: u64, interval: Nanos, duration: Nanos) -> TimeWindow {
        let whole = duration.0.max(1);
        TimeWindow {
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

/// Counts segments. SYNs before the window are remembered, so that their repetitions in it are not
/// counted as first ones.
#[derive(Debug)]
pub(super) struct SynTally {
    span: TimeWindow,
    ledger: SynLedger,
    /// The observation that the counts are part of.
    pub(super) observed: Observed,
}

impl SynTally {
    /// A tally without counts.
    pub(super) fn new(span: TimeWindow) -> SynTally {
        SynTally { span, ledger: SynLedger::default(), observed: Observed::default() }
    }

    /// Counts a segment that came over an interface at `at_ns`.
    pub(super) fn count(&mut self, segment: &ControlSegment, interface: i32, at_ns: u64) {
        let is_in_window = self.span.interval_of(at_ns).is_some();
        if segment.kind == SegmentKind::End {
            self.observed.client_ends += u64::from(is_in_window);
            return;
        }
        match self.ledger.classify(segment, interface, at_ns) {
            Sighting::First => self.add_first(1, at_ns),
            Sighting::Repeated => self.observed.repeated_syns += u64::from(is_in_window),
            Sighting::Same => {}
        }
    }

    /// Adds first SYNs that came at `at_ns`.
    pub(super) fn add_first(&mut self, count: u64, at_ns: u64) {
        let Some(index) = self.span.interval_of(at_ns) else {
            return;
        };
        self.observed.first_syns += count;
        if index < INTERVALS_MAX as usize {
            let by_interval = &mut self.observed.first_syns_by_interval;
            if by_interval.len() <= index {
                by_interval.resize(index + 1, 0);
            }
            by_interval[index] += count;
        }
    }

    /// Returns the observation, with what was counted up to `until` or the window's end.
    pub(super) fn finish(mut self, until: u64) -> Observed {
        let elapsed = until.min(self.span.end).saturating_sub(self.span.begin);
        // One count for each interval that began, even if nothing came in it.
        let intervals = elapsed.div_ceil(self.span.interval).min(INTERVALS_MAX) as usize;
        let by_interval = &mut self.observed.first_syns_by_interval;
        by_interval.resize(intervals.max(by_interval.len()), 0);
        self.observed.elapsed_ns = elapsed;
        self.observed
    }
}

/// Whether a SYN is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sighting {
    /// An attempt not seen before: new addresses and ports, or the same with another initial
    /// sequence number, as a port that is used again has.
    First,
    /// The same attempt again: its client had no answer.
    Repeated,
    /// The same packet once more, on its way through another interface of this host (such as a
    /// bridge over a network card). It counts once.
    Same,
}

/// 4-tuples per generation; two generations are kept. Their number is that of the clients' ports,
/// not that of attempts.
const GENERATION: usize = 1 << 19;

/// A client that has no answer sends again after 1 s at the earliest (RFC 6298), or 200 ms if a
/// kernel is configured so. A SYN that comes sooner over another interface is the same packet.
const SAME_PACKET_NS: u64 = 50_000_000;

type FourTuple = (Ipv6Addr, Ipv6Addr, u16, u16);

#[derive(Clone, Copy, Debug)]
struct LastSyn {
    sequence: u32,
    interface: i32,
    at_ns: u64,
}

/// The attempts seen so far, the last of each 4-tuple.
#[derive(Debug)]
struct SynLedger {
    generation: usize,
    current: HashMap<FourTuple, LastSyn>,
    older: HashMap<FourTuple, LastSyn>,
}

impl Default for SynLedger {
    fn default() -> SynLedger {
        SynLedger::with_generation(GENERATION)
    }
}

impl SynLedger {
    fn with_generation(generation: usize) -> SynLedger {
        SynLedger { generation, current: HashMap::new(), older: HashMap::new() }
    }

    /// Notes a SYN that came over an interface at `at_ns`, by any clock. Returns whether it is new.
    pub(super) fn classify(
        &mut self,
        syn: &ControlSegment,
        interface: i32,
        at_ns: u64,
    ) -> Sighting {
        let key = (syn.from, syn.to, syn.from_port, syn.to_port);
        let sighting = match self.current.get(&key).or_else(|| self.older.get(&key)) {
            Some(last) if last.sequence == syn.sequence => {
                let is_soon = at_ns.abs_diff(last.at_ns) < SAME_PACKET_NS;
                if last.interface != interface && is_soon {
                    return Sighting::Same;
                }
                Sighting::Repeated
            }
            _ => Sighting::First,
        };
        if self.current.len() >= self.generation && !self.current.contains_key(&key) {
            self.older = std::mem::take(&mut self.current);
        }
        let last = LastSyn { sequence: syn.sequence, interface, at_ns };
        self.current.insert(key, last);
        sighting
    }

    /// Number of remembered 4-tuples.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.current.len() + self.older.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::tests::SYN_V4;
    use super::super::segment::{SegmentKind, parse};
    use super::*;
    use proptest::prelude::*;

    fn segment(sequence: u8, flags: u8) -> ControlSegment {
        let mut packet = SYN_V4;
        (packet[27], packet[33]) = (sequence, flags);
        parse(&packet).unwrap()
    }

    #[test]
    fn counts_are_of_the_window_and_memory_is_of_all() {
        let second = Nanos::from_secs(1);
        let span = TimeWindow::new(10 * second.0, second, Nanos::from_millis(3500));
        let mut tally = SynTally::new(span);
        let at = |tenths: u64| tenths * second.0 / 10;
        let (syn, end) = (|n| segment(n, 0x02), segment(0, 0x11));
        tally.count(&syn(1), 1, at(99));
        tally.count(&syn(1), 1, at(109));
        tally.count(&syn(2), 1, at(100));
        tally.count(&syn(3), 1, at(134));
        tally.count(&syn(4), 1, at(135));
        tally.count(&end, 1, at(99));
        tally.count(&end, 1, at(120));
        let observed = tally.finish(at(200));
        assert_eq!(observed.first_syns, 2);
        assert_eq!(observed.repeated_syns, 1);
        assert_eq!(observed.client_ends, 1);
        assert_eq!(observed.elapsed_ns, span.end - span.begin);
        assert_eq!(observed.first_syns_by_interval, [1, 0, 0, 1]);
    }

    #[test]
    fn what_ends_early_has_the_intervals_that_began() {
        for (until, elapsed, intervals) in [(500, 0, 0), (1000, 0, 0), (1150, 150, 2)] {
            let tally = SynTally::new(TimeWindow::new(1000, Nanos(100), Nanos(10_000)));
            let observed = tally.finish(until);
            assert_eq!(observed.elapsed_ns, elapsed);
            assert_eq!(observed.first_syns_by_interval.len(), intervals);
        }
        // One interval, as none was asked for.
        let mut tally = SynTally::new(TimeWindow::new(1000, Nanos::ZERO, Nanos(10_000)));
        tally.add_first(7, 5000);
        let observed = tally.finish(u64::MAX);
        assert_eq!(observed.first_syns_by_interval, [7]);
    }

    fn syn(port: u16, sequence: u32) -> ControlSegment {
        ControlSegment {
            from: Ipv6Addr::LOCALHOST,
            from_port: port,
            to: Ipv6Addr::LOCALHOST,
            to_port: 80,
            sequence,
            kind: SegmentKind::Syn,
        }
    }

    #[test]
    fn an_attempt_is_its_addresses_ports_and_sequence_number() {
        let mut ledger = SynLedger::default();
        let second = 1_000_000_000;
        assert_eq!(ledger.classify(&syn(1, 7), 1, 0), Sighting::First);
        assert_eq!(ledger.classify(&syn(2, 7), 1, 0), Sighting::First);
        assert_eq!(ledger.classify(&syn(1, 7), 1, second), Sighting::Repeated);
        // At once over the same interface: a duplicate on the way, which the server sees twice too.
        assert_eq!(ledger.classify(&syn(1, 7), 1, second), Sighting::Repeated);
        assert_eq!(ledger.classify(&syn(1, 8), 1, second), Sighting::First);
    }

    #[test]
    fn a_packet_that_passes_two_interfaces_is_one() {
        let mut ledger = SynLedger::default();
        assert_eq!(ledger.classify(&syn(1, 7), 2, 100), Sighting::First);
        assert_eq!(ledger.classify(&syn(1, 7), 3, 200), Sighting::Same);
        let second = 1_000_000_000;
        assert_eq!(ledger.classify(&syn(1, 7), 2, second), Sighting::Repeated);
        assert_eq!(ledger.classify(&syn(1, 7), 3, second + 9), Sighting::Same);
    }

    proptest! {
        /// Whatever comes, memory has a bound, and the last half of it is never forgotten.
        #[test]
        fn memory_is_bounded(ports in prop::collection::vec(0_u16..200, 0..800)) {
            let mut ledger = SynLedger::with_generation(16);
            for (i, &port) in ports.iter().enumerate() {
                let recent = ports[i.saturating_sub(16)..i].contains(&port);
                let seen = ledger.classify(&syn(port, 1), 1, i as u64);
                prop_assert!(!recent || seen == Sighting::Repeated);
                prop_assert!(ledger.len() <= 32);
            }
        }
    }
}
