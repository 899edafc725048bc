//! Drops of queueing disciplines, by rtnetlink(7).

use crate::sys::field;
use crate::sys::netlink::{self, Message};
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
    let (mut kind, mut drops, mut drops_old) = (String::new(), None, None);
    for (attribute, value) in netlink::attributes(message.body.get(TCMSG..)?) {
        match attribute {
            KIND => {
                let text = value.split(|&b| b == 0).next().unwrap_or_default();
                kind = String::from_utf8_lossy(text).into_owned();
            }
            // struct gnet_stats_queue: length, backlog, drops.
            STATS2 => {
                let mut nested = netlink::attributes(value);
                drops = nested
                    .find(|&(a, _)| a == STATS2_QUEUE)
                    .and_then(|(_, queue)| field(queue, 8).map(u32::from_ne_bytes));
            }
            // struct tc_stats: bytes (64 bits), packets, drops.
            STATS => drops_old = field(value, 12).map(u32::from_ne_bytes),
            _ => {}
        }
    }
    Some(Qdisc {
        interface: u32::from_ne_bytes(field(message.body, INTERFACE)?),
        kind,
        drops: drops.or(drops_old)?,
    })
}
