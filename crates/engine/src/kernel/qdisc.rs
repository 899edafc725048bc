//! Drops of queueing disciplines, by rtnetlink(7).

use super::firewall::text;
use crate::sys::field;
use crate::sys::netlink::{self, Message, attribute};
use std::io;

/// RTM_NEWQDISC: the answers to a dump of queueing disciplines.
const NEW_QDISC: u16 = 36;
const GET_QDISC: u16 = 38;
/// Attributes of struct tcmsg, and those nested in the statistics (linux/rtnetlink.h,
/// linux/gen_stats.h).
const KIND: u16 = 1;
const STATS: u16 = 3;
const STATS2: u16 = 7;
const STATS2_QUEUE: u16 = 3;
/// Length of struct tcmsg, and offsets of interface and parent in it.
const TCMSG: usize = 20;
const INTERFACE: usize = 4;
const PARENT: usize = 12;
/// Parents of root disciplines: root, and ingress (also clsact).
const ROOTS: [u32; 2] = [0xffff_ffff, 0xffff_fff1];

/// A queueing discipline at the root of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Qdisc {
    /// The interface's index.
    pub interface: u32,
    /// Its kind, such as `fq_codel`.
    pub kind: String,
    /// Dropped packets, including those of disciplines below it; wraps.
    pub drops: u32,
}

/// Reads the root disciplines of this network namespace.
///
/// # Errors
/// Netlink is not permitted here.
pub(super) fn now() -> io::Result<Vec<Qdisc>> {
    netlink::dump(GET_QDISC, &[0; TCMSG]).map(|bytes| parse(&bytes))
}

/// Skips disciplines below a root: the kernel counts their drops in all of their parents
/// (qdisc_tree_reduce_backlog).
pub(super) fn parse(bytes: &[u8]) -> Vec<Qdisc> {
    netlink::messages(bytes).filter_map(qdisc).collect()
}

fn qdisc(message: Message) -> Option<Qdisc> {
    let parent = u32::from_ne_bytes(field(message.body, PARENT)?);
    if message.kind != NEW_QDISC || !ROOTS.contains(&parent) {
        return None;
    }
    let find = |kind| attribute(message.body.get(TCMSG..)?, kind);
    // struct gnet_stats_queue: length, backlog, drops.
    let queue = find(STATS2).and_then(|stats| field(attribute(stats, STATS2_QUEUE)?, 8));
    // struct tc_stats: bytes (64 bits), packets, drops.
    let drops = queue.or_else(|| field(find(STATS)?, 12))?;
    Some(Qdisc {
        interface: u32::from_ne_bytes(field(message.body, INTERFACE)?),
        kind: find(KIND).map(text).unwrap_or_default(),
        drops: u32::from_ne_bytes(drops),
    })
}
