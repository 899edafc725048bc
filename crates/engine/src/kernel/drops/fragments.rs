//! What IP received and gave on, and what came and went in fragments.

use super::Drops;
use serde::{Deserialize, Serialize};

/// What IP received, and what it gave to a protocol, to another host or to reassembly; and what it
/// sent in fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IpFlow {
    pub(super) received: u64,
    pub(super) given: u64,
    /// Datagrams that became whole again, so that they were received once more often.
    pub(super) reassembled: u64,
    /// Fragments to be put together.
    pub(super) fragments: u64,
    /// Datagrams that were sent in fragments, …
    pub(super) fragmented: u64,
    /// … and the fragments that they were sent in.
    pub(super) created: u64,
}

/// What a host received in fragments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reassembly {
    /// Fragments to be put together (ReasmReqds).
    pub fragments: u64,
    /// Datagrams that became whole (ReasmOKs).
    pub reassembled: u64,
}

impl IpFlow {
    /// What moved since `earlier`.
    pub(super) fn since(self, earlier: IpFlow) -> IpFlow {
        let moved = |of: fn(IpFlow) -> u64| of(self).saturating_sub(of(earlier));
        IpFlow {
            received: moved(|ip| ip.received),
            given: moved(|ip| ip.given),
            reassembled: moved(|ip| ip.reassembled),
            fragments: moved(|ip| ip.fragments),
            fragmented: moved(|ip| ip.fragmented),
            created: moved(|ip| ip.created),
        }
    }

    /// Adds a counter of IP, by its name in /proc/net/snmp.
    pub(super) fn add(&mut self, group: &str, name: &str, count: u64) {
        let sum = match name {
            "InReceives" => &mut self.received,
            "InDelivers" | "ForwDatagrams" | "OutForwDatagrams" => &mut self.given,
            "ReasmReqds" => &mut self.fragments,
            "ReasmOKs" => &mut self.reassembled,
            "FragOKs" => &mut self.fragmented,
            "FragCreates" => &mut self.created,
            // Multicast, such as the solicitation of routers, which hosts may ignore: no drop.
            "InMcastPkts" if group == "Ip6: " => &mut self.given,
            _ => return,
        };
        *sum += count;
    }

    /// What was received and given to nobody.
    pub(super) fn undelivered(self) -> u64 {
        let given = self.given + self.fragments;
        (self.received + self.reassembled).saturating_sub(given)
    }
}

impl Drops {
    /// Fragments of each datagram that was sent in fragments; 1 where none was.
    pub(crate) fn fragments_each(&self) -> u64 {
        let round = self.ip.created + self.ip.fragmented / 2;
        round.checked_div(self.ip.fragmented).unwrap_or(1).max(1)
    }

    /// Counters of reassembly.
    pub(crate) fn reassembly(&self) -> Reassembly {
        let (fragments, reassembled) = (self.ip.fragments, self.ip.reassembled);
        Reassembly { fragments, reassembled }
    }
}
