//! Attempts that end otherwise than in a response that says yes.

use super::{WORTH_PERCENT, one, worst_trial};
use crate::experiment::overload::analysis::{OverloadPoint, OverloadSummary, end};
use crate::finding::{Code, Finding, Severity, codes};
use crate::words::{exact, number, percent};
use knee_load::measure::Outcome;

codes! {
    REFUSES_CONNECTIONS = "refuses_connections":
        cause "The server's host answered SYNs with a reset. Nothing listened on the port, a \
               firewall rejected the SYNs, or tcp_abort_on_overflow is set. Over datagrams: it \
               reported that nothing listens on the port.",
        remedy "Check the listening socket with `ss -ltn` and the setting with `sysctl \
                net.ipv4.tcp_abort_on_overflow` on the server's host.";
    RESETS = "resets":
        cause "Established connections were reset before their response. The server drops \
               accepted connections, or tcp_abort_on_overflow is set and its accept queue was \
               full.",
        remedy "Check the listening socket with `ss -ltn` and the setting with `sysctl \
                net.ipv4.tcp_abort_on_overflow` on the server's host.";
    ACCEPTED_AND_CLOSED = "accepted_and_closed":
        cause "The server accepted connections and closed them without a response. It accepts \
               more connections than it has room for.",
        remedy "Check the server's log and its limits, such as open files (ulimit -n) or worker \
                connections.";
    TRUNCATED_RESPONSES = "truncated_responses":
        cause "The server closed connections in the middle of a response. It aborts responses \
               that it has begun, often because of a limit or a crash. Over TLS a response \
               without a length also counts if no close_notify ends it.",
        remedy "Check the server's log and its limits, such as open files (ulimit -n) or worker \
                connections.";
    MALFORMED_RESPONSES = "malformed_responses":
        cause "The bytes received break the rules of the protocol. The server, or a proxy before \
               it, speaks another protocol or breaks under load.",
        remedy "Look at one response, as with `curl -v`.";
    ERROR_RESPONSES = "error_responses":
        cause "The server answered with a status that is a failure in its protocol, such as 4xx \
               and 5xx of HTTP. Such responses do not count as served.",
        remedy "Look at one response, as with `curl -v`, and at the server's log.";
    RESPONSE_TIMEOUTS = "response_timeouts":
        cause "Established connections received no whole response in time. They waited in the \
               accept queue, or the server did not answer them.",
        remedy "Check whether the server is stuck, or allow more time with --timeout.";
    GHOSTS = "ghosts":
        cause "Connections were established for the generator and never for the server. The \
               server's accept queue was full when the last segment of the handshake arrived.",
        remedy "Nothing: this is how Linux handles a full accept queue. A larger backlog makes \
                it rarer.";
    HOST_UNREACHABLE = "host_unreachable":
        cause "The network reported that the host cannot be reached. No route leads to it, or no \
               host has this address.",
        remedy "Check `ip route get` and `ip neigh`.";
    ESTABLISHED_LATE = "established_late":
        cause "Connections were established only after T, when they had already been replaced. \
               The answer to their SYN took longer than T.",
        remedy "Nothing, or a longer T: --connect-timeout.";
    OTHER_FAILURES = "other_failures":
        cause "Attempts ended in an error that is neither a refusal nor a reset. The operating \
               system reports it.",
        remedy "Check `dmesg` on both hosts.";
}

/// Ghosts ought not to be: a smaller share of them is worth a word, in percent.
const GHOSTS_PERCENT: f64 = 0.1;

/// The finding about a kind of failure.
#[derive(Clone, Copy)]
struct FailureFinding {
    how: Outcome,
    code: Code,
    /// Whether an attempt that ends so was established: then it is a share of the established ones.
    of_established: bool,
    why: &'static str,
    /// What to do; empty where nothing needs to be done, which makes it only good to know.
    next_step: &'static str,
}

const SOCKET: &str = "check on the server's host: sysctl net.ipv4.tcp_abort_on_overflow, and \
                      `ss -ltn` for the listening socket";
const LOG: &str = "check the server's log and its limits, such as open files (ulimit -n) or \
                   worker connections";
const REJECTS: FailureFinding = FailureFinding {
    how: Outcome::HTTP_5XX,
    code: ERROR_RESPONSES,
    of_established: true,
    why: "the server rejects requests, and such responses do not count as served",
    next_step: "look at one response, as with `curl -v`, and at the server's log",
};
const OTHERWISE: FailureFinding = FailureFinding {
    how: Outcome::OtherError,
    code: OTHER_FAILURES,
    of_established: false,
    why: "the operating system reports neither a refusal nor a reset",
    next_step: "check `dmesg` on both hosts",
};
const FAILURES: &[FailureFinding] = &[
    FailureFinding {
        how: Outcome::Refused,
        code: REFUSES_CONNECTIONS,
        of_established: false,
        why: "nothing listens at times, a firewall rejects SYNs, or tcp_abort_on_overflow is set",
        next_step: SOCKET,
    },
    FailureFinding {
        how: Outcome::Reset,
        code: RESETS,
        of_established: true,
        why: "the server drops accepted connections, or tcp_abort_on_overflow is set",
        next_step: SOCKET,
    },
    FailureFinding {
        how: Outcome::Closed,
        code: ACCEPTED_AND_CLOSED,
        of_established: true,
        why: "the server accepts more connections than it has room for",
        next_step: LOG,
    },
    FailureFinding {
        how: Outcome::Truncated,
        code: TRUNCATED_RESPONSES,
        of_established: true,
        why: "the server aborts responses that it has begun",
        next_step: LOG,
    },
    FailureFinding {
        how: Outcome::Malformed,
        code: MALFORMED_RESPONSES,
        of_established: true,
        why: "the server, or a proxy before it, speaks another protocol",
        next_step: "look at one response, as with `curl -v`",
    },
    FailureFinding {
        how: Outcome::ResponseTimeout,
        code: RESPONSE_TIMEOUTS,
        of_established: true,
        why: "they waited in the accept queue, or the server did not answer them",
        next_step: "check whether the server is stuck, or allow more time: --timeout",
    },
    FailureFinding {
        how: Outcome::Ghost,
        code: GHOSTS,
        of_established: false,
        why: "the accept queue was full when the handshake's last segment arrived",
        next_step: "",
    },
    FailureFinding {
        how: Outcome::Unreachable,
        code: HOST_UNREACHABLE,
        of_established: false,
        why: "no route leads to the host, or no host has this address",
        next_step: "check `ip route get` and `ip neigh`",
    },
    FailureFinding {
        how: Outcome::Late,
        code: ESTABLISHED_LATE,
        of_established: false,
        why: "the answer to their SYN took longer",
        next_step: "",
    },
    FailureFinding { how: Outcome::Timeout, ..OTHERWISE },
    OTHERWISE,
];

/// Refusals of datagrams.
const REFUSED_DATAGRAMS: FailureFinding = FailureFinding {
    how: Outcome::Refused,
    code: REFUSES_CONNECTIONS,
    of_established: false,
    why: "nothing listens on the port at times",
    next_step: "check on the server's host: `ss -lun` for the socket",
};

/// One finding for each kind of failure that is frequent enough and not reported already.
pub(super) fn failure_findings(
    summary: &OverloadSummary,
    is_reported: impl Fn(Outcome) -> bool,
) -> Vec<Finding> {
    let statuses = Outcome::ALL.into_iter().filter(|how| matches!(how, Outcome::Failed(_)));
    let rejects = statuses.map(|how| FailureFinding { how, ..REJECTS });
    let failures = FAILURES.iter().map(|&failure| match failure.how {
        Outcome::Refused if summary.is_of_datagrams => REFUSED_DATAGRAMS,
        _ => failure,
    });
    let unreported = failures.chain(rejects).filter(|failure| !is_reported(failure.how));
    unreported.filter_map(|failure| failure.finding(summary)).collect()
}

impl FailureFinding {
    fn finding(&self, summary: &OverloadSummary) -> Option<Finding> {
        let of_established = self.of_established && !summary.is_of_datagrams;
        let (percent_of_whole, whole): (fn(&OverloadPoint, Outcome) -> f64, _) = if of_established {
            (OverloadPoint::percent_of_established, " of those established")
        } else {
            (OverloadPoint::percent, "")
        };
        let worth = match self.how {
            Outcome::Ghost => GHOSTS_PERCENT,
            _ => WORTH_PERCENT,
        };
        let (p, count, share_percent) = worst_trial(summary, self.how, percent_of_whole, worth)?;
        let severity = if self.next_step.is_empty() { Severity::Info } else { Severity::Warning };
        Some(self.code.finding(
            severity,
            format!(
                "{} attempts with {} ({}{whole}) {}, while {}/s were served: {}",
                exact(count),
                one(p.level),
                percent(share_percent),
                end(self.how),
                number(p.row.served_per_s),
                self.why
            ),
            [("count", count), ("percent", share_percent), ("served_per_s", p.row.served_per_s)],
            self.next_step,
        ))
    }
}
