//! What happened at the service.

use super::{by_name, datagrams, lost_at, percent_of, was};
use crate::experiment::udp::pool;
use crate::finding::{Finding, codes};
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::trial::report::TrialReport;
use crate::words::{exact, number, share, time};
use knee_load::experiment::udp::DropPlace;

/// How long the service's buffer takes to fill at the mean rate of sending.
pub(crate) fn buffer_covers_ns(d: &DatagramReport) -> Option<f64> {
    let holds = d.buffer_datagrams?;
    (d.sent_per_s > 0.0).then(|| 1e9 * holds as f64 / d.sent_per_s)
}

codes! {
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

pub(super) fn receive_buffer(
    l: &LedgerReport,
    d: &DatagramReport,
    is_explained: bool,
) -> Option<Finding> {
    let lost = lost_at(l, DropPlace::ReceiveBuffer);
    let percent = percent_of(lost, l.sent());
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
    let (most_frequent, _) = *errors.first()?;
    let percent = percent_of(l.send_errors, l.intended);
    Some(SEND_ERRORS.warning(
        format!(
            "the kernel refused to send {} ({}): {}",
            datagrams(l.send_errors),
            share(percent),
            by_name(errors)
        ),
        [("count", l.send_errors as f64), ("percent", percent)],
        remedy(most_frequent),
    ))
}

fn remedy(error: &str) -> &'static str {
    match error {
        "ECONNREFUSED" => {
            "nobody listens at that port: correct the address, or start the service there: knee \
             serve udp"
        }
        "EMSGSIZE" => {
            "the datagram is larger than the path carries in one piece: use a smaller --size \
             (1,472 over Ethernet with IPv4)"
        }
        "ENETUNREACH" | "EHOSTUNREACH" | "EHOSTDOWN" | "ENETDOWN" => {
            "no route leads to that host: check the address and the routes: ip route get ADDRESS"
        }
        "EPERM" | "EACCES" => "this host forbids it: look at its firewall: nft list ruleset",
        "ENOBUFS" | "EAGAIN" | "ENOMEM" => {
            "this host's queues are full: offer less with a lower --rate, or look at them: tc -s \
             qdisc"
        }
        _ => "look up that error in udp(7) and send(2)",
    }
}

pub(super) fn limited(trials: &[&TrialReport]) -> Option<Finding> {
    let such: Vec<&TrialReport> =
        trials.iter().filter(|t| t.offered.asked_per_s.is_some()).copied().collect();
    let d = pool::datagrams(&such)?;
    let l = pool::ledger(&such);
    let behind = such.iter().filter_map(|t| t.offered.pacing_error_ns.p50).max();
    let behind_ns = behind.unwrap_or(0) as f64;
    let limit = NOT_ATTEMPTED_SHARE * l.intended as f64;
    let is_limited = l.not_attempted as f64 > limit || behind_ns > BEHIND_NS;
    let percent = percent_of(l.not_attempted, l.intended);
    let worst = match such.len() {
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
