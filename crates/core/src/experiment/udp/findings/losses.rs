//! Findings about losses: the places of the path at which datagrams were lost, and what happened at
//! the service.

use super::{by_name, datagrams, lost_at, percentage, was};
use crate::experiment::udp::laws;
use crate::finding::{Code, Finding, codes};
use crate::trial::detail::{DatagramReport, LedgerReport};
use crate::trial::report::TrialReport;
use crate::words::{drop_place, exact, list, number, share, time};
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
    RECEIVE_BUFFER_OVERFLOW = "receive_buffer_overflow":
        cause "Datagrams arrived while the receive buffer of the service was full. This is the \
               place of the loss, not its cause. The service is too slow, or it pauses, or \
               datagrams arrive in bursts.",
        remedy "Find what fills the buffer with --explain. A larger buffer covers pauses and \
                bursts, but does not help a service that is too slow.";
    VANISHED = "service_vanished":
        cause "The service ended, or its control connection broke, before it reported what it \
               received. The ledger is not complete.",
        remedy "Find out why it ended, start it again, and repeat.";
    SATURATED = "service_saturated":
        cause "More datagrams are sent than the service can process in the same time. Every \
               buffer fills in the end, so a larger one only delays the loss.",
        remedy "Lower the rate, or give the service less work per datagram.";
    PAUSED = "service_paused":
        cause "The service neither received nor waited for longer than its buffer takes to fill. \
               Often another program had its processor.",
        remedy "Give the service a processor of its own, or a buffer that covers the pause.";
    SEND_ERRORS = "send_errors":
        cause "The kernel of the generator's host refused to send datagrams. The name of the \
               error says why: no listener, no route, a firewall, full queues, or a datagram too \
               large.",
        remedy "Correct what the error names, then repeat.";
    SENDER_LIMITED = "sender_limited":
        cause "The generator did not keep the schedule. Its host has too little processor time \
               for this rate, or the send buffers were full.",
        remedy "Lower the rate, or give the generator more threads and cores.";
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
    let at_place = |place: DropPlace| {
        let (code, next_step) = code_and_next_step(place)?;
        let lost = lost_at(l, place);
        let percent = percentage(lost, l.sent());
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
        let because = match (is_inferred, d.not_read.as_slice()) {
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
                    "{} ({}) {} lost {}: {because}",
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
    DropPlace::ALL.into_iter().filter_map(at_place).collect()
}

pub(super) fn host_wide(l: &LedgerReport) -> Option<Finding> {
    let evidence = || l.evidence.iter().filter(|e| e.host_wide).filter(|e| e.attributed > 0);
    let count: u64 = evidence().map(|e| e.attributed).sum();
    let mut places: Vec<String> = evidence().map(|e| drop_place(&e.place)).collect();
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

/// How long the service's buffer takes to fill at the mean rate of sending.
pub(crate) fn buffer_covers_ns(d: &DatagramReport) -> Option<f64> {
    let holds = d.buffer_datagrams?;
    (d.sent_per_s > 0.0).then(|| 1e9 * holds as f64 / d.sent_per_s)
}

pub(super) fn receive_buffer(
    l: &LedgerReport,
    d: &DatagramReport,
    is_explained: bool,
) -> Option<Finding> {
    let lost = lost_at(l, DropPlace::ReceiveBuffer);
    let percent = percentage(lost, l.sent());
    let (holds, covers_ns) = (d.buffer_datagrams, buffer_covers_ns(d));
    // The kernel doubles what it is asked for.
    let asked = (2 * d.rcvbuf_bytes).max(4_096);
    let explain = if is_explained { "" } else { "find what fills it: knee udp ADDR --explain; " };
    (lost > 0).then(|| {
        RECEIVE_BUFFER_OVERFLOW.warning(
            format!(
                "{} ({}) {} lost because the service's receive buffer was full; it holds {} \
                 bytes{}{}; this is the place of the loss, not its cause",
                datagrams(lost),
                share(percent),
                was(lost),
                exact(d.rcvbuf_bytes as f64),
                holds.map_or(String::new(), |n| format!(", {}", datagrams(n))),
                covers_ns.map_or(String::new(), |ns| {
                    format!(", and the mean rate fills it in {}", time(ns))
                })
            ),
            [
                ("lost", lost as f64),
                ("percent", percent),
                ("rcvbuf_bytes", d.rcvbuf_bytes as f64),
                ("buffer_datagrams", holds.map_or(f64::NAN, |n| n as f64)),
                ("buffer_covers_ns", covers_ns.unwrap_or(f64::NAN)),
            ],
            format!(
                "{explain}a larger buffer covers pauses, but \
                 does not help a service that is too slow: knee serve udp --rcvbuf {asked} (above \
                 net.core.rmem_max it needs CAP_NET_ADMIN)"
            ),
        )
    })
}

pub(super) fn vanished(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let why = d.service_lost.as_ref()?;
    let lost = lost_at(l, DropPlace::Service);
    Some(VANISHED.error(
        format!(
            "the service ended before it reported what it received ({why}); what became of {} is \
             not known",
            datagrams(lost)
        ),
        [("lost", lost as f64)],
        "find out why it ended, start it again (knee serve udp), and repeat",
    ))
}

pub(super) fn saturated(d: &DatagramReport) -> Option<Finding> {
    let capacity_per_s = 1e9 / d.service_work_ns? as f64;
    (d.sent_per_s > capacity_per_s).then(|| {
        SATURATED.warning(
            format!(
                "{}/s are sent and the service can process at most {}/s; no buffer is large \
                 enough for that",
                number(d.sent_per_s),
                number(capacity_per_s)
            ),
            [("offered_per_s", d.sent_per_s), ("capacity_per_s", capacity_per_s)],
            format!(
                "offer less: --rate {}, or give it less work: knee serve udp --service",
                (0.8 * capacity_per_s).max(1.0).floor()
            ),
        )
    })
}

/// A pause harms only where it fills the buffer.
pub(super) fn paused(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let covers_ns = buffer_covers_ns(d)?;
    let pause_ns = d.service_pause_ns_max as f64;
    let harms = lost_at(l, DropPlace::ReceiveBuffer) > 0;
    (harms && pause_ns > covers_ns).then(|| {
        PAUSED.warning(
            format!(
                "the service paused for up to {}, and its buffer fills in {}; it was preempted {} \
                 times",
                time(pause_ns),
                time(covers_ns),
                exact(d.service_preempted as f64)
            ),
            [
                ("pause_ns", pause_ns),
                ("buffer_covers_ns", covers_ns),
                ("service_preempted", d.service_preempted as f64),
            ],
            "keep other programs off the service's processor (knee serve udp --cpu N, clients on \
             others), and find what interrupts it: knee udp ADDR --explain",
        )
    })
}

/// A generator that leaves out a larger share of its schedule does not keep it.
const NOT_ATTEMPTED_SHARE: f64 = 0.001;
/// Nor does one with a larger median pacing error.
const BEHIND_NS: f64 = 1_000_000.0;

pub(super) fn send_errors(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let mut errors: Vec<(&String, &u64)> = d.send_errors.iter().filter(|(_, n)| **n > 0).collect();
    errors.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let (why, remedy) = laws::refusal(errors.first()?.0);
    let percent = percentage(l.send_errors, l.intended);
    Some(SEND_ERRORS.warning(
        format!(
            "the kernel refused to send {} ({}): {}",
            datagrams(l.send_errors),
            share(percent),
            by_name(errors)
        ),
        [("count", l.send_errors as f64), ("percent", percent)],
        format!("{why}: {remedy}"),
    ))
}

pub(super) fn limited(trials: &[&TrialReport]) -> Option<Finding> {
    let scheduled: Vec<&TrialReport> =
        trials.iter().filter(|t| t.offered.asked_per_s.is_some()).copied().collect();
    let d = laws::datagrams(&scheduled)?;
    let l = laws::ledger(&scheduled);
    let behind = scheduled.iter().filter_map(|t| t.offered.pacing_error_ns.p50).max();
    let behind_ns = behind.unwrap_or(0) as f64;
    let limit = NOT_ATTEMPTED_SHARE * l.intended as f64;
    let is_limited = l.not_attempted as f64 > limit || behind_ns > BEHIND_NS;
    let percent = percentage(l.not_attempted, l.intended);
    let worst = match scheduled.len() {
        1 => "",
        _ => " in the worst trial",
    };
    let blocked = match d.blocked {
        0 => String::new(),
        n => format!("; its send buffers were full {} times", exact(n as f64)),
    };
    is_limited.then(|| {
        SENDER_LIMITED.warning(
            format!(
                "the generator did not keep the schedule: it sent {}/s with a median pacing error \
                 of {}{worst}, and did not attempt {} of the datagrams{blocked}",
                number(d.sent_per_s),
                time(behind_ns),
                share(percent)
            ),
            [
                ("not_attempted", l.not_attempted as f64),
                ("percent", percent),
                ("sent_per_s", d.sent_per_s),
                ("behind_p50_ns", behind_ns),
                ("blocked", d.blocked as f64),
            ],
            format!(
                "offer less: --rate {}, or give the generator more cores: --threads",
                (0.9 * d.sent_per_s).max(1.0).floor()
            ),
        )
    })
}
