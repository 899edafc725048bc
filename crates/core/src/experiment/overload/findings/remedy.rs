//! What to do about findings about overload.

use super::OverloadDiagnosis;
use crate::experiment::overload::analysis::Why;
use crate::measure::Outcome;
use crate::spec::{CloseKind, Level};

impl OverloadDiagnosis {
    pub(crate) fn next_step(&self) -> String {
        match self {
            OverloadDiagnosis::PortsExhausted { close, .. } => ports_remedy(*close),
            OverloadDiagnosis::DescriptorsExhausted { .. } => {
                "raise the limit (ulimit -Hn and -n), or use fewer descriptors with a shorter T: \
                 --descriptors, --connect-timeout"
                    .into()
            }
            OverloadDiagnosis::FactorNotReached { .. } => {
                "raise the limit (ulimit -Hn and -n), or halve T: the same descriptors then offer \
                 twice as much (--connect-timeout)"
                    .into()
            }
            OverloadDiagnosis::GeneratorLimitsSynRate { .. } => {
                "take levels beyond that rate as “at least”; add workers (-t) or a second \
                 host, and see with one process against two which of them is the limit"
                    .into()
            }
            OverloadDiagnosis::CapturesDisagree { .. } => {
                "have the server to yourself, and see with `knee observe --port P` on its host who \
                 else connects"
                    .into()
            }
            OverloadDiagnosis::SynRetransmissions {
                at: Level::Descriptors(_) | Level::RatePerS(_),
                ..
            } => "keep T below the first repetition: --connect-timeout 500ms".into(),
            OverloadDiagnosis::NeverAnswers { .. } => {
                "see whether the server is stuck: its accept queue is Recv-Q in `ss -ltn`".into()
            }
            OverloadDiagnosis::Stopped(stop) => match stop.has_crashed() {
                true => "see why the server ended: its log, and `dmesg` on its host".into(),
                false => "see whether the server is stuck: its log, its processor time, and its \
                          accept queue (Recv-Q in `ss -ltn`)"
                    .into(),
            },
            OverloadDiagnosis::Unanswered { why, .. } => unanswered_step(*why),
            OverloadDiagnosis::Fails { how, .. } => failure(*how).1.into(),
            OverloadDiagnosis::LevelsLeftOut { .. } => {
                "repeat on a quieter or larger machine".into()
            }
            OverloadDiagnosis::SyncookiesActive { .. } => {
                "a longer queue on the server's host: sysctl -w net.ipv4.tcp_max_syn_backlog=4096, \
                 net.core.somaxconn=4096, and a larger backlog in listen(2)"
                    .into()
            }
            OverloadDiagnosis::ThroughputFalls { .. } => {
                "let the server shed what it cannot serve in time, or accept no more than it can: \
                 a shorter backlog costs nothing here"
                    .into()
            }
            _ => String::new(),
        }
    }
}

/// What makes local ports last.
pub(crate) fn ports_remedy(close: CloseKind) -> String {
    let rst = match close {
        CloseKind::Fin => ", or no TIME_WAIT: --close rst",
        CloseKind::Rst => "",
    };
    format!(
        "more source addresses: --source 127.0.0.2-127.0.0.20 on loopback, else addresses of this \
         host{rst}; or more ports: sysctl -w net.ipv4.ip_local_port_range=\"1024 65535\" \
         net.ipv4.tcp_tw_reuse=1"
    )
}

fn unanswered_step(why: Why) -> String {
    match why {
        Why::QueueFull => String::new(),
        Why::DroppedThere => "on the server's host: `nft list ruleset` or `iptables -vnL`, whose \
                              counters tell which rule drops"
            .into(),
        Why::DroppedBefore | Why::Silent => {
            "see whether the target can be reached: `nc -vz HOST PORT`, `ip route get`, and the \
             firewalls on the way; `knee observe --port P` on the server's host sees what arrives"
                .into()
        }
        Why::Unknown => "to tell which: run `knee observe --port P` on the server's host, and \
                         name it with --observe"
            .into(),
    }
}

/// What it tells that attempts ended so, and what to do about it.
pub(super) fn failure(how: Outcome) -> (&'static str, &'static str) {
    const SOCKET: &str = "on the server's host: sysctl net.ipv4.tcp_abort_on_overflow, and `ss \
                          -ltn` for the listening socket";
    const LOG: &str = "see the server's log and its limits, such as open files (ulimit -n) or \
                       worker connections";
    match how {
        Outcome::Refused => (
            "nothing listens there at times, a firewall rejects, or tcp_abort_on_overflow is set",
            SOCKET,
        ),
        Outcome::Reset => (
            "the server gives up what it has accepted, or tcp_abort_on_overflow is set",
            SOCKET,
        ),
        Outcome::Closed => ("the server accepts more than it has room for", LOG),
        Outcome::Truncated => ("the server gives up what it has begun", LOG),
        Outcome::Malformed => (
            "the server, or something before it, answers otherwise",
            "see what it answers: `curl -v`",
        ),
        Outcome::Http4xx | Outcome::Http5xx => (
            "the server rejects, and such responses do not count as served",
            "see what it answers: `curl -v`, and the server's log",
        ),
        Outcome::ResponseTimeout => (
            "they waited in the accept queue, or the server did not answer them",
            "see whether the server is stuck; or give it more time: --timeout",
        ),
        Outcome::Ghost => (
            "the accept queue was full when the handshake's last segment came",
            "",
        ),
        Outcome::Unreachable => (
            "there is no route, or nobody has this address",
            "see `ip route get` and `ip neigh`",
        ),
        Outcome::Late => ("the answer to their SYN took longer", ""),
        _ => (
            "the operating system reports neither a refusal nor a reset",
            "see `dmesg` on both hosts",
        ),
    }
}
