//! What happened at the service.

use super::{datagrams, lost_at, percent_of, was};
use crate::experiment::udp::measure::DropPlace;
use crate::finding::{Code, Finding, Severity};
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::words::{exact, number, share, time};

/// How long the service's buffer takes to fill at the mean rate of sending.
pub(crate) fn buffer_covers_ns(d: &DatagramReport) -> Option<f64> {
    let holds = d.buffer_datagrams?;
    (d.sent_per_s > 0.0).then(|| 1e9 * holds as f64 / d.sent_per_s)
}

pub(super) const RECEIVE_BUFFER_OVERFLOW: Code = Code {
    name: "receive_buffer_overflow",
    cause: "Datagrams arrived while the receive buffer of the service was full. This is the place \
            of the loss, not its cause. The service is too slow, or it pauses, or datagrams \
            arrive in bursts.",
    remedy: "Find what fills the buffer with --explain. A larger buffer covers pauses and bursts, \
             but does not help a service that is too slow.",
};

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
    let explain = match is_explained {
        true => "",
        false => "find what fills it: knee udp ADDR --explain; ",
    };
    (lost > 0).then(|| {
        RECEIVE_BUFFER_OVERFLOW.finding(
            Severity::Warning,
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

pub(super) const VANISHED: Code = Code {
    name: "service_vanished",
    cause: "The service ended, or its control connection broke, before it reported what it \
            received. The ledger is not complete.",
    remedy: "Find out why it ended, start it again, and repeat.",
};

pub(super) fn vanished(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let why = d.service_lost.as_ref()?;
    let lost = lost_at(l, DropPlace::Service);
    Some(VANISHED.finding(
        Severity::Error,
        format!(
            "the service ended before it reported what it received ({why}); what became of {} is \
             not known",
            datagrams(lost)
        ),
        [("lost", lost as f64)],
        "find out why it ended, start it again (knee serve udp), and repeat",
    ))
}

pub(super) const SATURATED: Code = Code {
    name: "service_saturated",
    cause: "More datagrams are sent than the service can process in the same time. Every buffer \
            fills in the end, so a larger one only delays the loss.",
    remedy: "Lower the rate, or give the service less work per datagram.",
};

pub(super) fn saturated(d: &DatagramReport) -> Option<Finding> {
    let capacity_per_s = 1e9 / d.service_work_ns? as f64;
    (d.sent_per_s > capacity_per_s).then(|| {
        SATURATED.finding(
            Severity::Warning,
            format!(
                "{}/s are sent and the service can process at most {}/s; no buffer is large \
                 enough for that",
                number(d.sent_per_s),
                number(capacity_per_s)
            ),
            [
                ("offered_per_s", d.sent_per_s),
                ("capacity_per_s", capacity_per_s),
            ],
            format!(
                "offer less: --rate {}, or give it less work: knee serve udp --service",
                (0.8 * capacity_per_s).max(1.0).floor()
            ),
        )
    })
}

pub(super) const PAUSED: Code = Code {
    name: "service_paused",
    cause: "The service neither received nor waited for longer than its buffer takes to fill. \
            Often another program had its processor.",
    remedy: "Give the service a processor of its own, or a buffer that covers the pause.",
};

/// A pause harms only where it fills the buffer.
pub(super) fn paused(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let covers_ns = buffer_covers_ns(d)?;
    let pause_ns = d.service_pause_ns_max as f64;
    let harms = lost_at(l, DropPlace::ReceiveBuffer) > 0;
    (harms && pause_ns > covers_ns).then(|| {
        PAUSED.finding(
            Severity::Warning,
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
