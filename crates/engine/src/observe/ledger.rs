//! Tells a first SYN from one that came again, in bounded memory.

use super::segment::Segment;
use std::collections::HashMap;
use std::net::Ipv6Addr;

/// What a SYN is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sighting {
    /// An attempt not seen before: new addresses and ports, or the same with another initial
    /// sequence number, as a port that is used again has.
    First,
    /// The same attempt again: its client had no answer.
    Repeated,
    /// The same packet once more, on its way through another interface of this host (such as a
    /// bridge over a network card): to be counted once.
    Same,
}

/// So many 4-tuples are remembered twice over; beyond, the older half is forgotten. 4-tuples are as
/// many as clients have ports, not as many as attempts.
const GENERATION: usize = 1 << 19;

/// A client that has no answer sends again after 1 s at the earliest (RFC 6298), or 200 ms where a
/// kernel was told so. What comes sooner over another interface is the same packet.
const SAME_PACKET_NS: u64 = 50_000_000;

type FourTuple = (Ipv6Addr, Ipv6Addr, u16, u16);

#[derive(Clone, Copy, Debug)]
struct Last {
    sequence: u32,
    interface: i32,
    at_ns: u64,
}

/// The attempts seen so far, the last of each 4-tuple.
#[derive(Debug)]
pub(super) struct Ledger {
    generation: usize,
    current: HashMap<FourTuple, Last>,
    older: HashMap<FourTuple, Last>,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger::remembering(GENERATION)
    }
}

impl Ledger {
    fn remembering(generation: usize) -> Ledger {
        Ledger {
            generation,
            current: HashMap::new(),
            older: HashMap::new(),
        }
    }

    /// A SYN has come at `at_ns`, of any clock, over an interface.
    pub(super) fn see(&mut self, syn: &Segment, interface: i32, at_ns: u64) -> Sighting {
        let key = (syn.from, syn.to, syn.from_port, syn.to_port);
        let last = self.current.get(&key).or_else(|| self.older.get(&key));
        let sighting = match last {
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
        let last = Last {
            sequence: syn.sequence,
            interface,
            at_ns,
        };
        self.current.insert(key, last);
        sighting
    }

    /// How many 4-tuples are remembered.
    #[cfg(test)]
    fn len(&self) -> usize {
        self.current.len() + self.older.len()
    }
}

#[cfg(test)]
mod tests {
    use super::super::segment::SegmentKind;
    use super::*;
    use proptest::prelude::*;

    fn syn(port: u16, sequence: u32) -> Segment {
        Segment {
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
        let mut ledger = Ledger::default();
        let second = 1_000_000_000;
        assert_eq!(ledger.see(&syn(1, 7), 1, 0), Sighting::First);
        assert_eq!(ledger.see(&syn(2, 7), 1, 0), Sighting::First);
        assert_eq!(ledger.see(&syn(1, 7), 1, second), Sighting::Repeated);
        // At once over the same interface: a duplicate on the way, which the server sees twice too.
        assert_eq!(ledger.see(&syn(1, 7), 1, second), Sighting::Repeated);
        assert_eq!(ledger.see(&syn(1, 8), 1, second), Sighting::First);
    }

    #[test]
    fn a_packet_that_passes_two_interfaces_is_one() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.see(&syn(1, 7), 2, 100), Sighting::First);
        assert_eq!(ledger.see(&syn(1, 7), 3, 200), Sighting::Same);
        let second = 1_000_000_000;
        assert_eq!(ledger.see(&syn(1, 7), 2, second), Sighting::Repeated);
        assert_eq!(ledger.see(&syn(1, 7), 3, second + 9), Sighting::Same);
    }

    proptest! {
        /// Whatever comes, memory has a bound, and the last half of it is never forgotten.
        #[test]
        fn memory_is_bounded(ports in prop::collection::vec(0_u16..200, 0..800)) {
            let mut ledger = Ledger::remembering(16);
            for (i, &port) in ports.iter().enumerate() {
                let recent = ports[i.saturating_sub(16)..i].contains(&port);
                let seen = ledger.see(&syn(port, 1), 1, i as u64);
                prop_assert!(!recent || seen == Sighting::Repeated);
                prop_assert!(ledger.len() <= 32);
            }
        }
    }
}
