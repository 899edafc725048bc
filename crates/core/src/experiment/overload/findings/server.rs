//! A server that stops, never answers, or leaves SYNs unanswered.

use super::{WORTH_PERCENT, known, one, worst_trial};
use crate::experiment::overload::analysis::{
    DROPPED_SHARE, OverloadPoint, OverloadSummary, ServerStop, StopEnd, UnansweredCause, end,
};
use crate::finding::{Code, Finding, Severity, codes};
use crate::trial::findings::OUTAGE;
use crate::words::{exact, number, percent};
use knee_load::measure::{Outcome, Outcomes};

codes! {
    SERVER_CRASHED = "server_crashed":
        cause "The server served connections, and then refused them until the end. Its process \
               ended.",
        remedy "Find out why the server ended: its log, and `dmesg` on its host.";
    SERVER_STOPPED = "server_stopped":
        cause "The server served connections, and then served nothing until the end. Its port \
               still listens: the server is stuck, its host is overloaded, or it works on requests \
               whose clients have gone.",
        remedy "Check the server's log, its CPU time, and its accept queue (Recv-Q in `ss \
                -ltn`, over UDP in `ss -lun`).";
    NEVER_ACCEPTS = "never_accepts":
        cause "No attempt received a response, and connections stayed in the server's accept \
               queue. The kernel establishes them, but the server does not call accept.",
        remedy "Check whether the server is stuck: its accept queue is Recv-Q in `ss -ltn`.";
    NEVER_ANSWERS = "never_answers":
        cause "No attempt received a response, although connections were established. The server \
               accepts connections without an answer, or nobody observed whether it accepts. Over \
               datagrams: no answer came within T.",
        remedy "Check whether the server is stuck. `knee observe` on its host tells whether it \
                accepts.";
    ACCEPT_QUEUE_FULL = "accept_queue_full":
        cause "Connects received no answer, because the server's accept queue or its queue of \
               requests was full. This is what overload does to a TCP server.",
        remedy "Nothing: the server is overloaded on purpose.";
    NO_SYN_ACK = "no_syn_ack":
        cause "SYNs received no answer, and a full accept queue does not explain it. A firewall \
               or the path drops them, or no host has this address.",
        remedy "Check the path and the firewalls. `knee observe --port P` on the server's host \
                counts what arrives.";
    RECEIVE_BUFFER_FULL = "receive_buffer_full":
        cause "Datagrams received no answer, because the receive buffer of the server's socket \
               was full. This is what overload does to a UDP server.",
        remedy "Nothing: the server is overloaded on purpose.";
    ANSWERED_LATE = "answered_late":
        cause "Datagrams were answered after T, when their sockets were closed. They waited in \
               the receive buffer of the server's socket for longer than T.",
        remedy "Nothing, or a longer T: --connect-timeout. With a shorter receive buffer the \
                server answers in time what it accepts.";
    DATAGRAMS_UNANSWERED = "datagrams_unanswered":
        cause "Datagrams received no answer within T, and no counter of a kernel tells why. The \
               server does not answer them, or something on the path drops them.",
        remedy "Run `knee observe --port P` on the server's host, and name it with --observe.";
    CONNECTS_UNANSWERED = "connects_unanswered":
        cause "Connects received no answer, and the server's host was not observed. The accept \
               queue was full, or something drops SYNs.",
        remedy "Run `knee observe --port P` on the server's host, and name it with --observe.";
}

/// Maximum stops with a finding each.
const STOPS_MAX: usize = 3;

pub(super) fn stopped(summary: &OverloadSummary) -> Vec<Finding> {
    summary.stops.iter().take(STOPS_MAX).map(stop).collect()
}

fn stop(stop: &ServerStop) -> Finding {
    let code = match (stop.until, stop.has_crashed()) {
        (StopEnd::End, true) => SERVER_CRASHED,
        (StopEnd::End, false) => SERVER_STOPPED,
        _ => OUTAGE,
    };
    let (when, until) = stop.words();
    let before = match stop.served_before {
        0 => String::new(),
        n => format!(", after {} responses,", exact(n as f64)),
    };
    let works_on = stop.works_on();
    let stopped = stop.verb();
    let or_works = works_on.as_ref().map_or(String::new(), |work| format!("; {work}"));
    code.error(
        format!(
            "the server {stopped} {when}{before} and served nothing {until}; {} of {} unserved \
             attempts in these levels {}{or_works}",
            exact(stop.count as f64),
            exact(stop.unserved as f64),
            end(stop.how)
        ),
        [
            ("from_ns", stop.from_ns as f64),
            ("served_before", stop.served_before as f64),
            ("count", stop.count as f64),
            ("not_served", stop.unserved as f64),
        ],
        if works_on.is_some() {
            "check whether the server works on requests whose clients have gone: its CPU time and \
             its log. It could drop those that it has had for longer than clients wait, or take \
             fewer at a time"
        } else if stop.has_crashed() {
            "find out why the server ended: its log, and `dmesg` on its host"
        } else {
            "check whether the server is stuck: its log, its CPU time, and its queue (Recv-Q in \
             `ss -ltn`, over UDP in `ss -lun`)"
        },
    )
}

/// Not where connections are refused or reset: then the server, or its host, does answer. The
/// accept queue of a server that does not accept may be full before the window begins.
pub(super) fn never_answers(summary: &OverloadSummary) -> Option<Finding> {
    if summary.is_of_datagrams {
        return never_answers_datagrams(summary);
    }
    let sum = |outcome: Outcome| -> u64 {
        summary.points.iter().map(|p| p.row.outcomes.count(outcome)).sum()
    };
    let attempts: u64 = summary.points.iter().map(|p| p.row.outcomes.total()).sum();
    let responses: u64 = summary.points.iter().map(|p| p.row.outcomes.responses()).sum();
    let established: u64 = summary.points.iter().map(OverloadPoint::established).sum();
    let waited = sum(Outcome::Ghost) + sum(Outcome::ResponseTimeout) + sum(Outcome::InFlight);
    let fullest = |p: &&OverloadPoint| (queue(p).map(|(most, _)| most), p.established());
    let fullest = summary.points.iter().max_by_key(fullest)?;
    let waits = established > 0 && 2 * waited > established;
    let is_stuck = || {
        let is_full = |p: &OverloadPoint| p.why_unanswered() == UnansweredCause::QueueFull;
        timed_out(summary).is_some_and(|(worst, ..)| is_full(worst))
            && 2 * sum(Outcome::ConnectTimeout) > attempts
    };
    let (code, why) = silence(fullest);
    (responses == 0 && (waits || is_stuck())).then(|| {
        let (queue_max, queue_limit) = queue(fullest).unzip();
        code.error(
            format!(
                "none of {} attempts received a response; {} connections were established; {why}",
                exact(attempts as f64),
                exact(established as f64)
            ),
            [
                ("attempts", attempts as f64),
                ("established", established as f64),
                ("accept_queue_max", known(queue_max)),
                ("accept_queue_limit", known(queue_limit)),
            ],
            "check whether the server is stuck: its accept queue is Recv-Q in `ss -ltn`",
        )
    })
}

fn never_answers_datagrams(summary: &OverloadSummary) -> Option<Finding> {
    let mut outcomes = Outcomes::default();
    summary.points.iter().for_each(|p| outcomes.merge(&p.row.outcomes));
    let (attempts, unanswered) =
        (outcomes.total() as f64, outcomes.count(Outcome::ResponseTimeout) as f64);
    (outcomes.responses() == 0 && 2.0 * unanswered > attempts).then(|| {
        NEVER_ANSWERS.error(
            format!("none of {} requests received an answer in time", exact(attempts)),
            [("attempts", attempts), ("unanswered", unanswered)],
            "check whether the server is stuck: its receive buffer is Recv-Q in `ss -lun`",
        )
    })
}

/// Why datagrams received no answer within T.
pub(super) fn unanswered_datagrams(summary: &OverloadSummary) -> Option<Finding> {
    let timeout = Outcome::ResponseTimeout;
    let (p, count, share) = worst_trial(summary, timeout, OverloadPoint::percent, WORTH_PERCENT)?;
    let drops = p.queue_drops;
    let closed = p.closed_port_datagrams as f64;
    let dropped = drops.filter(|&n| n > 0).map_or(String::new(), |n| {
        format!("the server's kernel dropped {} at full receive buffers", exact(n as f64))
    });
    let late = format!("{} came to closed ports of this host, as late answers do", exact(closed));
    let explained = |number: u64| number as f64 >= DROPPED_SHARE * count;
    let (code, why, next_step) = if explained(drops.unwrap_or(0)) {
        (RECEIVE_BUFFER_FULL, dropped, "")
    } else if explained(drops.unwrap_or(0) + p.closed_port_datagrams) {
        let why = if dropped.is_empty() { late } else { format!("{dropped}, and {late}") };
        (ANSWERED_LATE, why, "")
    } else {
        (
            DATAGRAMS_UNANSWERED,
            "the server does not answer them, or something on the path drops them".to_owned(),
            "to tell which, run `knee observe --port P` on the server's host, and name it with \
             --observe",
        )
    };
    Some(code.info(
        format!(
            "{} requests with {} ({}) received no answer in time: {why}",
            exact(count),
            one(p.level),
            percent(share)
        ),
        [
            ("count", count),
            ("percent", share),
            ("receive_buffer_drops", known(drops.map(|n| n as f64))),
            ("closed_port_datagrams", closed),
        ],
        next_step,
    ))
}

/// Whether a server that answers nothing accepts connections.
fn silence(fullest: &OverloadPoint) -> (Code, String) {
    match (fullest.accepts(), queue(fullest)) {
        (Some(false), Some(held)) => (
            NEVER_ACCEPTS,
            format!(
                "the server does not accept them: its accept queue held {} (the kernel \
                 establishes connections until that queue is full)",
                held_of_limit(held)
            ),
        ),
        (Some(false), None) => (
            NEVER_ACCEPTS,
            "the server does not accept them (its kernel establishes connections until the accept \
             queue is full)"
                .to_owned(),
        ),
        (Some(true), held) => (
            NEVER_ANSWERS,
            format!(
                "the server accepts them, as its accept queue {}, and does not answer",
                match held {
                    Some(held) => format!("held at most {}", held_of_limit(held)),
                    None => "cannot hold them all".to_owned(),
                }
            ),
        ),
        (None, _) => (
            NEVER_ANSWERS,
            "the server does not accept them, or does not answer them; its accept queue was not \
             observed"
                .to_owned(),
        ),
    }
}

/// The longest accept queue that was observed, and its limit.
fn queue(p: &OverloadPoint) -> Option<(u32, u32)> {
    p.row.accept_queue_max.zip(p.row.accept_queue_limit)
}

/// `129 of 128`: the accept queue at the most, and its limit.
fn held_of_limit((most, limit): (u32, u32)) -> String {
    format!("{} of {}", exact(f64::from(most)), exact(f64::from(limit)))
}

fn timed_out(summary: &OverloadSummary) -> Option<(&OverloadPoint, f64, f64)> {
    worst_trial(summary, Outcome::ConnectTimeout, OverloadPoint::percent, WORTH_PERCENT)
}

pub(super) fn unanswered(summary: &OverloadSummary) -> Option<Finding> {
    let (p, count, share) = timed_out(summary)?;
    let drops = p.queue_drops;
    let (code, because, next_step) = unanswered_because(p, drops.unwrap_or(0));
    let severity = if code == NO_SYN_ACK { Severity::Warning } else { Severity::Info };
    let (queue_max, queue_limit) = queue(p).unzip();
    Some(code.finding(
        severity,
        format!(
            "{} connects with {} ({}) received no answer: {because}",
            exact(count),
            one(p.level),
            percent(share)
        ),
        [
            ("count", count),
            ("percent", share),
            ("first_syn_per_s", p.row.first_syn_per_s),
            ("listen_drops", known(drops.map(|n| n as f64))),
            ("accept_queue_max", known(queue_max)),
            ("accept_queue_limit", known(queue_limit)),
        ],
        next_step,
    ))
}

/// Why connects were not answered, and the next step.
fn unanswered_because(p: &OverloadPoint, drops: u64) -> (Code, String, &'static str) {
    const REACH: &str = "check whether the target can be reached: `nc -vz HOST PORT`, `ip route \
                         get`, and the firewalls on the path; `knee observe --port P` on the \
                         server's host counts what arrives";
    match p.why_unanswered() {
        UnansweredCause::QueueFull => {
            let full = queue(p).map_or("or the queue of requests was full".into(), |held| {
                format!("was full ({})", held_of_limit(held))
            });
            let dropped = match drops {
                0 => String::new(),
                n => format!(", and the server's kernel dropped {}", exact(n as f64)),
            };
            (ACCEPT_QUEUE_FULL, format!("the accept queue {full}{dropped}"), "")
        }
        UnansweredCause::DroppedThere => (
            NO_SYN_ACK,
            format!(
                "the server's listening sockets dropped {}; something else drops SYNs or their \
                 answers, such as a packet filter",
                match drops {
                    0 => "none".to_owned(),
                    n => format!("only {}", exact(n as f64)),
                }
            ),
            "check on the server's host: `nft list ruleset` or `iptables -vnL`, whose counters \
             tell which rule drops",
        ),
        UnansweredCause::DroppedBefore => (
            NO_SYN_ACK,
            format!(
                "only {}/s SYNs reached the server; something on the path drops them, such as a \
                 firewall",
                number(p.row.first_syn_per_s)
            ),
            REACH,
        ),
        UnansweredCause::Silent => (
            NO_SYN_ACK,
            "a firewall drops SYNs, no host has this address, or the accept queue was full from \
             the start; the server was not observed"
                .to_owned(),
            REACH,
        ),
        UnansweredCause::Unknown => (
            CONNECTS_UNANSWERED,
            "the accept queue was full, or something drops SYNs; the server was not observed"
                .to_owned(),
            "to tell which, run `knee observe --port P` on the server's host, and name it with \
             --observe",
        ),
    }
}
