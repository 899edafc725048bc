//! What was counted of SYNs.

use super::{one, within};
use crate::experiment::overload::analysis::{
    BeyondCapacity, OverloadPoint, OverloadSetting, OverloadSummary, PRESSED_FACTOR, times,
};
use crate::finding::{Finding, Severity, codes};
use crate::trial::report::TrialReport;
use crate::words::{exact, number, percent};
use knee_load::spec::Level;

codes! {
    SYNCOOKIES_ACTIVE = "syncookies_active":
        cause "The server's kernel answered SYNs with cookies, because its queue of requests was \
               full. Connections made from cookies lack some TCP options.",
        remedy "Enlarge net.ipv4.tcp_max_syn_backlog and net.core.somaxconn on the server's \
                host, and the backlog in listen(2).";
    SYN_RETRANSMISSIONS = "syn_retransmissions":
        cause "At least one SYN in a hundred reached the server again. The kernel repeats a SYN \
               that is not answered within 1 s. knee counts repeated SYNs apart from first SYNs.",
        remedy "Simple clients: nothing. S-Clients: keep T below 1 s, --connect-timeout 500ms.";
    CAPTURES_DISAGREE = "captures_disagree":
        cause "The capture at the server counted other SYNs than the generator started. Other \
               clients connect, SYNs are lost on the path, or the two windows differ.",
        remedy "Use the server alone. `knee observe --port P` on its host tells who else \
                connects.";
    NOT_OVERLOADED = "not_overloaded":
        cause "No level offered clearly more than the server serves, so nothing is known of it \
               under overload. The descriptors were too few, or the generator could not start \
               more.",
        remedy "Offer more: a higher --descriptors, or a shorter --connect-timeout.";
    SIMPLE_CLIENTS_FLATTEN = "simple_clients_flatten":
        cause "Clients that wait for each answer slow down with the server, so they never offer \
               more than it serves. Only clients that do not wait can overload it.",
        remedy "Nothing: measure overload with S-Clients, as knee does.";
    THROUGHPUT_FALLS = "throughput_falls_under_overload":
        cause "The server serves less when more is offered than it can serve. It spends time on \
               attempts that it does not serve in the end.",
        remedy "Let the server reject what it cannot serve in time, or shorten its backlog; over \
                datagrams, its receive buffer.";
    THROUGHPUT_FLAT = "throughput_flat_under_overload":
        cause "The server serves at its capacity, however much more is offered.",
        remedy "Nothing: this is how a server should behave.";
}

/// SYNs that come again are worth a word from this share of the first ones on.
const AGAIN_SHARE: f64 = 0.01;

pub(super) fn syncookies(trials: &[TrialReport]) -> Option<Finding> {
    let sent = |t: &TrialReport| {
        let names = ["TcpExtSyncookiesSent", "TcpExtTCPReqQFullDoCookies"];
        let seen = t.observed().into_iter().map(|o| &o.kernel).chain([&t.kernel]);
        let counts = seen.flat_map(|kernel| names.iter().filter_map(|name| kernel.get(*name)));
        counts.copied().max().unwrap_or(0).max(0)
    };
    let most = trials.iter().max_by_key(|t| sent(t))?;
    let sent = sent(most) as f64;
    (sent > 0.0).then(|| {
        SYNCOOKIES_ACTIVE.warning(
            format!(
                "the server's kernel answered {} SYNs with cookies with {}: its queue of requests \
                 was full; connections made from cookies lack some TCP options",
                exact(sent),
                one(most.level)
            ),
            [("sent", sent)],
            "make the queues of the server's host longer: sysctl -w \
             net.ipv4.tcp_max_syn_backlog=4096 net.core.somaxconn=4096, and a larger backlog in \
             listen(2)",
        )
    })
}

/// Whoever waits for longer than a second sends again: of S-Clients first, if they do.
pub(super) fn retransmissions(
    summary: &OverloadSummary,
    setting: &OverloadSetting,
) -> Option<Finding> {
    // The difference of two rates has a rounding error.
    let least = AGAIN_SHARE * (1.0 + 1e-9);
    let again = |p: &&OverloadPoint| p.repeated_syn_per_s() > least * p.row.first_syn_per_s;
    let most = |a: &&OverloadPoint, b: &&OverloadPoint| {
        a.repeated_syn_per_s().total_cmp(&b.repeated_syn_per_s())
    };
    let pressed = summary.pressing().filter(again).max_by(most);
    let worst = pressed.or_else(|| summary.simple().filter(again).max_by(most))?;
    // Clients that wait as long as they have to send again: that is how they are.
    let (severity, next_step) = match worst.level {
        Level::Clients(_) => (Severity::Info, ""),
        _ => (Severity::Warning, "keep T below the first repetition: --connect-timeout 500ms"),
    };
    Some(SYN_RETRANSMISSIONS.finding(
        severity,
        format!(
            "with {} SYNs were sent again at {}/s, beside {}/s first SYNs: the kernel repeats a \
             SYN that is not answered within 1 s; the two are counted apart",
            one(worst.level),
            number(worst.repeated_syn_per_s()),
            number(worst.row.first_syn_per_s)
        ),
        [
            ("repeated_per_s", worst.repeated_syn_per_s()),
            ("first_syn_per_s", worst.row.first_syn_per_s),
            ("connect_timeout_ns", setting.patience.0 as f64),
        ],
        next_step,
    ))
}

pub(super) fn captures_disagree(
    trials: &[TrialReport],
    summary: &OverloadSummary,
) -> Option<Finding> {
    let differ = summary.points.iter().filter_map(|p| Some((p, p.capture_differs_percent()?)));
    let (p, apart) = differ.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let at_level = trials.iter().filter(|t| t.level == p.level);
    let lost = at_level.filter_map(|t| Some(t.observed()?.capture_lost)).max().unwrap_or(0) as f64;
    let also_lost = match lost {
        0.0 => String::new(),
        n => format!("; the capture itself lost {} packets", exact(n)),
    };
    Some(CAPTURES_DISAGREE.warning(
        format!(
            "with {} the capture at the server counted {}/s first SYNs, but {}/s were started ({} \
             apart): other clients connect, SYNs are lost on the path, or the two windows \
             differ{also_lost}",
            one(p.level),
            number(p.row.first_syn_per_s),
            number(p.attempts_per_s),
            percent(apart)
        ),
        [
            ("captured_per_s", p.row.first_syn_per_s),
            ("started_per_s", p.attempts_per_s),
            ("percent", apart),
            ("capture_lost", lost),
        ],
        "use the server alone, and see with `knee observe --port P` on its host who else connects",
    ))
}

/// No level offered more than is served.
pub(super) fn not_overloaded(summary: &OverloadSummary) -> Option<Finding> {
    let offered_per_s = summary.most_offered_per_s()?;
    let capacity_per_s = summary.capacity_per_s;
    // What is served leaves out how the server came to its pace, so that it may be a little more.
    let served = if capacity_per_s < offered_per_s {
        format!("{}/s are served", number(capacity_per_s))
    } else {
        "all of them were served".to_owned()
    };
    (capacity_per_s > 0.0 && !summary.is_overloaded()).then(|| {
        NOT_OVERLOADED.warning(
            format!(
                "nothing was overloaded: at most {}/s were offered, and {served}",
                number(offered_per_s)
            ),
            [("offered_per_s", offered_per_s), ("capacity_per_s", capacity_per_s)],
            "offer more: a higher --descriptors, or a shorter --connect-timeout",
        )
    })
}

/// Simple clients are flat where none of them offers more than this many times the capacity.
const FLAT_FACTOR: f64 = 1.1;

pub(super) fn simple_clients_flatten(summary: &OverloadSummary) -> Option<Finding> {
    let most = |a: &&OverloadPoint, b: &&OverloadPoint| {
        a.row.first_syn_per_s.total_cmp(&b.row.first_syn_per_s)
    };
    let most_per_s = summary.simple().max_by(most)?.row.first_syn_per_s;
    let clients = f64::from(summary.simple().filter_map(OverloadPoint::clients).max()?);
    let pressed_per_s = summary.most_offered_per_s()?;
    let capacity_per_s = summary.capacity_per_s;
    let is_flat = most_per_s <= FLAT_FACTOR * capacity_per_s;
    let is_pressed = pressed_per_s >= PRESSED_FACTOR * capacity_per_s.max(most_per_s);
    (capacity_per_s > 0.0 && is_flat && is_pressed && clients > 1.0).then(|| {
        SIMPLE_CLIENTS_FLATTEN.info(
            format!(
                "clients that wait for each answer cannot overload a server: up to {} of them \
                 never asked for more than {}/s, and {}/s are served; without waiting, {}/s were \
                 offered, {} times the capacity",
                exact(clients),
                number(most_per_s),
                number(capacity_per_s),
                number(pressed_per_s),
                times(pressed_per_s, capacity_per_s)
            ),
            [
                ("clients", clients),
                ("first_syn_per_s", most_per_s),
                ("capacity_per_s", capacity_per_s),
                ("offered_per_s", pressed_per_s),
                ("times_capacity", pressed_per_s / capacity_per_s),
            ],
            "",
        )
    })
}

pub(super) fn beyond_capacity(summary: &OverloadSummary) -> Option<Finding> {
    let capacity_per_s = summary.capacity_per_s;
    match summary.beyond_capacity() {
        BeyondCapacity::Falls(least) => Some(THROUGHPUT_FALLS.warning(
            format!(
                "throughput falls under overload: of {}/s offered {}/s are served{}, {} less than \
                 the capacity of {}/s",
                number(least.row.first_syn_per_s),
                number(least.row.served_per_s),
                within(least.row.served_ci95_per_s),
                percent(100.0 * (1.0 - least.row.served_per_s / capacity_per_s)),
                number(capacity_per_s)
            ),
            evidence(least, capacity_per_s),
            format!(
                "let the server reject what it cannot serve in time, or accept no more than it \
                 can serve: a shorter {} costs no throughput",
                if summary.is_of_datagrams { "receive buffer" } else { "backlog" }
            ),
        )),
        BeyondCapacity::Flat(last) => Some(THROUGHPUT_FLAT.info(
            format!(
                "throughput does not suffer from overload: with {}/s offered, {} times the \
                 capacity, {}/s are served{}",
                number(last.row.first_syn_per_s),
                times(last.row.first_syn_per_s, capacity_per_s),
                number(last.row.served_per_s),
                within(last.row.served_ci95_per_s)
            ),
            evidence(last, capacity_per_s),
            "",
        )),
        BeyondCapacity::Unknown => None,
    }
}

fn evidence(p: &OverloadPoint, capacity_per_s: f64) -> [(&'static str, f64); 6] {
    let [low, high] = p.row.served_ci95_per_s.unwrap_or([f64::NAN; 2]);
    [
        ("capacity_per_s", capacity_per_s),
        ("served_per_s", p.row.served_per_s),
        ("served_low_per_s", low),
        ("served_high_per_s", high),
        ("offered_per_s", p.row.first_syn_per_s),
        ("times_capacity", p.row.first_syn_per_s / capacity_per_s),
    ]
}
