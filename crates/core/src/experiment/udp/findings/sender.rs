//! What happened at the generator.

use super::{by_name, datagrams, percent_of};
use crate::experiment::udp::analysis::pool;
use crate::finding::{Code, Finding, Severity};
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::trial::report::TrialReport;
use crate::words::{exact, number, share, time};

/// A generator that leaves out a larger share of its schedule does not keep it.
const NOT_ATTEMPTED_SHARE: f64 = 0.001;
/// Nor does one with a larger median pacing error.
const BEHIND_NS: f64 = 1_000_000.0;

pub(super) const SEND_ERRORS: Code = Code {
    name: "send_errors",
    cause: "The kernel of the generator's host refused to send datagrams. The name of the error \
            says why: no listener, no route, a firewall, full queues, or a datagram too large.",
    remedy: "Correct what the error names, then repeat.",
};

pub(super) fn send_errors(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let mut errors: Vec<(&String, &u64)> = d.send_errors.iter().filter(|(_, n)| **n > 0).collect();
    errors.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let (most_frequent, _) = *errors.first()?;
    let percent = percent_of(l.send_errors, l.intended);
    Some(SEND_ERRORS.finding(
        Severity::Warning,
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

pub(super) const SENDER_LIMITED: Code = Code {
    name: "sender_limited",
    cause: "The generator did not keep the schedule. Its host has too little processor time for \
            this rate, or the send buffers were full.",
    remedy: "Lower the rate, or give the generator more threads and cores.",
};

pub(super) fn limited(trials: &[&TrialReport]) -> Option<Finding> {
    let such: Vec<&TrialReport> = trials
        .iter()
        .filter(|t| t.offered.asked_per_s.is_some())
        .copied()
        .collect();
    let d = pool::datagrams(&such)?;
    let l = pool::ledger(&such);
    let behind = such
        .iter()
        .filter_map(|t| t.offered.pacing_error_ns.p50)
        .max();
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
        SENDER_LIMITED.finding(
            Severity::Warning,
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
