//! What was counted of SYNs.

use super::one;
use crate::experiment::overload::analysis::{Point, Setting, Summary};
use crate::finding::{Code, Finding, Severity};
use crate::spec::Level;
use crate::trial::report::TrialReport;
use crate::words::{exact, number, percent};

pub(super) const SYNCOOKIES_ACTIVE: Code = Code {
    name: "syncookies_active",
    cause: "The server's kernel answered SYNs with cookies, because its queue of requests was \
            full. Connections made from cookies lack some TCP options.",
    remedy: "Enlarge net.ipv4.tcp_max_syn_backlog and net.core.somaxconn on the server's host, \
             and the backlog in listen(2).",
};
pub(super) const SYN_RETRANSMISSIONS: Code = Code {
    name: "syn_retransmissions",
    cause: "At least one SYN in a hundred reached the server again. The kernel repeats a SYN that \
            is not answered within 1 s. knee counts repeated SYNs apart from first SYNs.",
    remedy: "Simple clients: nothing. S-Clients: keep T below 1 s, --connect-timeout 500ms.",
};
pub(super) const CAPTURES_DISAGREE: Code = Code {
    name: "captures_disagree",
    cause: "The capture at the server counted other SYNs than the generator started. Other \
            clients connect, SYNs are lost on the path, or the two windows differ.",
    remedy: "Use the server alone. `knee observe --port P` on its host tells who else connects.",
};

/// SYNs that come again are worth a word from this share of the first ones on.
const AGAIN_SHARE: f64 = 0.01;

pub(super) fn syncookies(trials: &[TrialReport]) -> Option<Finding> {
    let sent = |t: &TrialReport| {
        let names = ["TcpExtSyncookiesSent", "TcpExtTCPReqQFullDoCookies"];
        let seen = t
            .observed()
            .into_iter()
            .map(|o| &o.kernel)
            .chain([&t.kernel]);
        let counts = seen.flat_map(|kernel| names.iter().filter_map(|name| kernel.get(*name)));
        counts.copied().max().unwrap_or(0).max(0)
    };
    let most = trials.iter().max_by_key(|t| sent(t))?;
    let sent = sent(most) as f64;
    (sent > 0.0).then(|| {
        SYNCOOKIES_ACTIVE.finding(
            Severity::Warning,
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
pub(super) fn retransmissions(summary: &Summary, setting: &Setting) -> Option<Finding> {
    let again = |p: &&Point| p.repeated_syn_per_s > AGAIN_SHARE * p.first_syn_per_s;
    let most = |a: &&Point, b: &&Point| a.repeated_syn_per_s.total_cmp(&b.repeated_syn_per_s);
    let pressed = summary.pressing().filter(again).max_by(most);
    let worst = pressed.or_else(|| summary.simple().filter(again).max_by(most))?;
    // Clients that wait as long as they have to send again: that is how they are.
    let (severity, next_step) = match worst.level {
        Level::Clients(_) => (Severity::Info, ""),
        _ => (
            Severity::Warning,
            "keep T below the first repetition: --connect-timeout 500ms",
        ),
    };
    Some(SYN_RETRANSMISSIONS.finding(
        severity,
        format!(
            "with {} SYNs were sent again at {}/s, beside {}/s first SYNs: the kernel repeats a \
             SYN that is not answered within 1 s; the two are counted apart",
            one(worst.level),
            number(worst.repeated_syn_per_s),
            number(worst.first_syn_per_s)
        ),
        [
            ("repeated_per_s", worst.repeated_syn_per_s),
            ("first_syn_per_s", worst.first_syn_per_s),
            ("connect_timeout_ns", setting.patience.0 as f64),
        ],
        next_step,
    ))
}

pub(super) fn captures_disagree(trials: &[TrialReport], summary: &Summary) -> Option<Finding> {
    let differ = summary.points.iter();
    let differ = differ.filter_map(|p| Some((p, p.capture_differs_percent()?)));
    let (p, apart) = differ.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let there = trials.iter().filter(|t| t.level == p.level);
    let lost = there.filter_map(|t| Some(t.observed()?.capture_lost));
    let lost = lost.max().unwrap_or(0) as f64;
    let also_lost = match lost {
        0.0 => String::new(),
        n => format!("; the capture itself lost {} packets", exact(n)),
    };
    Some(CAPTURES_DISAGREE.finding(
        Severity::Warning,
        format!(
            "with {} the capture at the server counted {}/s first SYNs, but {}/s were started ({} \
             apart): other clients connect, SYNs are lost on the path, or the two windows \
             differ{also_lost}",
            one(p.level),
            number(p.first_syn_per_s),
            number(p.attempts_per_s),
            percent(apart)
        ),
        [
            ("captured_per_s", p.first_syn_per_s),
            ("started_per_s", p.attempts_per_s),
            ("percent", apart),
            ("capture_lost", lost),
        ],
        "use the server alone, and see with `knee observe --port P` on its host who else connects",
    ))
}
