//! Places where datagrams were lost on their way.

use super::{datagrams, lost_at, percent_of, was};
use crate::finding::{Code, Finding, codes};
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::words::{drop_place, exact, list, share};
use knee_load::experiment::udp::DropPlace;

codes! {
    SEND_BUFFER = "lost_in_send_buffer":
        cause "The generator's host dropped datagrams between the socket and the device. More \
               was sent than the host's queues could hold.",
        remedy "Lower the rate, or look at the queues of this host's devices.";
    QDISC = "lost_in_qdisc":
        cause "A queueing discipline dropped datagrams before they left the host. Its queue was \
               full, or it limits the rate, or it drops on purpose, as netem does.",
        remedy "Lower the rate, or look at the queueing disciplines of the devices.";
    NEIGHBOUR = "lost_at_neighbour":
        cause "The link address of the next hop was not known, and the queue for it was full. \
               The next hop is down, or address resolution is slow.",
        remedy "Find out why the next hop's address is not resolved.";
    DEVICE = "lost_at_device":
        cause "A network device of one of the hosts dropped datagrams. Its ring was full, or the \
               link had errors.",
        remedy "Look at the device's counters. Larger rings or a lower rate help against full \
                rings.";
    BETWEEN_HOSTS = "lost_between_hosts":
        cause "The datagrams left one host and did not reach the other, and no counter of either \
               moved. A switch, a router or a filter between them dropped them.",
        remedy "Capture on both hosts, then on the devices between them.";
    BACKLOG = "lost_in_backlog":
        cause "The receiving host's input queue of a processor was full. The processor handled \
               interrupts more slowly than datagrams arrived.",
        remedy "Raise net.core.netdev_max_backlog, use several receive queues, or lower the \
                rate.";
    FIREWALL = "dropped_by_firewall":
        cause "A rule or a policy of a packet filter dropped datagrams. It counted them, or the \
               kernel gave it as its reason.",
        remedy "Permit them, where that is wanted.";
    TIME_TO_LIVE = "time_to_live_exceeded":
        cause "A router dropped datagrams whose time to live had run out, and told their sender. \
               The way is longer than the time to live permits, or it is a loop.",
        remedy "Look at the way: `tracepath HOST`, `ip route get`, and net.ipv4.ip_default_ttl.";
    REASSEMBLY = "not_reassembled":
        cause "Datagrams were larger than the path carries in one packet. Some of their \
               fragments were lost, so the receiving host could not put them together.",
        remedy "Send smaller datagrams (--size), or raise net.ipv4.ipfrag_high_thresh.";
    IP_LAYER = "lost_in_ip_layer":
        cause "The IP layer of a host dropped datagrams. There was no route, a header was wrong, \
               a reverse-path filter applied, or a packet filter dropped without counting.",
        remedy "Look at rules without counters, reverse-path filters and routes.";
    NO_SOCKET = "no_socket":
        cause "Datagrams arrived at a port where no socket listened. The service ended, \
               restarted, or listens elsewhere.",
        remedy "Find out which program listens at the port.";
    CHECKSUM = "checksum_errors":
        cause "Datagrams arrived with a wrong checksum. Something changed them on the path, or \
               an offload of a device computed the checksum wrongly.",
        remedy "Find what changes datagrams on the path, and examine the offloads.";
    UDP_MEMORY = "udp_memory_exhausted":
        cause "All UDP sockets of the receiving host together reached the limit of their memory.",
        remedy "Raise the limit, or close other sockets.";
    HOST_WIDE = "host_wide_evidence":
        cause "A place of a loss is known from counters of the whole host. Other programs move \
               these counters too, so the place may be wrong.",
        remedy "Repeat on a quiet host or in a network namespace of its own.";
}

/// The kind of finding for a loss at a place, and the next step. None for the places that have
/// findings of their own.
pub(super) fn code_and_next_step(place: DropPlace) -> Option<(Code, &'static str)> {
    let queues = "lower the rate with --rate, or look at the queues of this host's devices: tc -s \
                  qdisc";
    Some(match place {
        DropPlace::SendBuffer => (SEND_BUFFER, queues),
        DropPlace::Qdisc => (QDISC, queues),
        DropPlace::NeighbourQueue => (
            NEIGHBOUR,
            "find out why the next hop's address is not resolved: ip neigh; is that host up?",
        ),
        DropPlace::Device => {
            (DEVICE, "look at the device's counters: ip -s link, ethtool -S DEVICE")
        }
        DropPlace::TimeToLive => (
            TIME_TO_LIVE,
            "look at the way and its length: tracepath HOST, ip route get, sysctl \
             net.ipv4.ip_default_ttl",
        ),
        DropPlace::Reassembly => (
            REASSEMBLY,
            "send datagrams that fit into one packet: a smaller --size; or raise \
             net.ipv4.ipfrag_high_thresh on the receiving host",
        ),
        DropPlace::Path => (
            BETWEEN_HOSTS,
            "find out how far they come: capture on both hosts (tcpdump -ni any udp), then on the \
             devices between them; another network namespace of this machine has counters of its \
             own: ip netns exec NAME nstat -az, tc -s qdisc, nft list ruleset",
        ),
        DropPlace::Backlog => {
            (BACKLOG, "raise net.core.netdev_max_backlog, or lower the rate: --rate")
        }
        DropPlace::Firewall => (
            FIREWALL,
            "permit them, where that is wanted: nft -a list ruleset shows the rule by its handle; \
             if all network namespaces are named, search in the others too: ip netns exec NAME nft \
             -a list ruleset",
        ),
        DropPlace::IpLayer => (
            IP_LAYER,
            "look for a rule that drops without counting (nft list ruleset; add 'counter' to it), \
             for a reverse-path filter (net.ipv4.conf.all.rp_filter), for routes and for a TTL \
             that runs out: nstat -az 'Ip*'; if all network namespaces are named, look in the \
             others too: ip netns exec NAME nstat -az",
        ),
        DropPlace::NoSocket => (
            NO_SOCKET,
            "find out which program listens at that port: ss -lun; did the service end, or \
             restart?",
        ),
        DropPlace::Checksum => (
            CHECKSUM,
            "look for what changes datagrams on the path, and at offloads: ethtool -k DEVICE",
        ),
        DropPlace::UdpMemory => {
            (UDP_MEMORY, "raise net.ipv4.udp_mem, or close other sockets: ss -uam")
        }
        DropPlace::ReceiveBuffer | DropPlace::Service => return None,
    })
}

/// A finding for each place, but for those that have findings of their own.
pub(super) fn lost(l: &LedgerReport, d: &DatagramReport) -> Vec<Finding> {
    let at = |place: DropPlace| {
        let (code, next_step) = code_and_next_step(place)?;
        let lost = lost_at(l, place);
        let percent = percent_of(lost, l.sent());
        let evidence =
            || l.evidence.iter().filter(|e| e.place == place.name()).filter(|e| e.attributed > 0);
        let is_inferred = evidence().any(|e| e.inferred);
        let sources: Vec<String> = evidence()
            .map(|e| {
                if is_inferred {
                    e.source.clone()
                } else {
                    format!("{} counted {}", e.source, exact(e.attributed as f64))
                }
            })
            .collect();
        let sources = list(&sources);
        let told = match (is_inferred, d.not_read.as_slice()) {
            (false, _) => sources,
            (true, []) => format!("this is inferred, because {sources}"),
            (true, not_read) => format!(
                "this is inferred, because {sources}; not read on the service's host: {}",
                list(not_read)
            ),
        };
        (lost > 0).then(|| {
            code.warning(
                format!(
                    "{} ({}) {} lost {}: {told}",
                    datagrams(lost),
                    share(percent),
                    was(lost),
                    drop_place(place.name())
                ),
                [
                    ("lost", lost as f64),
                    ("percent", percent),
                    ("inferred", f64::from(u8::from(is_inferred))),
                ],
                next_step,
            )
        })
    };
    DropPlace::ALL.into_iter().filter_map(at).collect()
}

pub(super) fn host_wide(l: &LedgerReport) -> Option<Finding> {
    let told = || l.evidence.iter().filter(|e| e.host_wide).filter(|e| e.attributed > 0);
    let count: u64 = told().map(|e| e.attributed).sum();
    let mut places: Vec<String> = told().map(|e| drop_place(&e.place)).collect();
    places.dedup();
    (count > 0).then(|| {
        HOST_WIDE.info(
            format!(
                "counters of the whole host show {} lost {}; other programs move these counters \
                 too",
                datagrams(count),
                list(&places)
            ),
            [("count", count as f64)],
            "repeat on a quiet host or in a network namespace of its own",
        )
    })
}
