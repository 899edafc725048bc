//! Findings about trials of datagrams, and about their ledger: what the service discarded, what is
//! missing, order.

mod losses;
#[cfg(test)]
mod tests;

use crate::experiment::udp::laws;
use crate::finding::{Code, Finding, Severity, codes, gravest_first};
use crate::trial::detail::{DatagramReport, LedgerReport};
use crate::trial::findings::distorted;
use crate::trial::report::TrialReport;
use crate::trial::validity::Clause;
use crate::words::{exact, levels, list, share};
use knee_load::experiment::udp::DropPlace;
use knee_load::spec::Level;
pub(super) use losses::buffer_covers_ns;

/// All kinds of findings here.
pub(super) fn codes() -> Vec<Code> {
    [losses::CODES, CODES].concat()
}

/// The name of the finding about losses at a place.
pub(super) fn code_at(place: DropPlace) -> &'static str {
    let code = match place {
        DropPlace::ReceiveBuffer => losses::RECEIVE_BUFFER_OVERFLOW,
        DropPlace::Service => losses::VANISHED,
        _ => losses::code_and_next_step(place).map_or(losses::BETWEEN_HOSTS, |(code, _)| code),
    };
    code.name
}

/// The findings about these trials of datagrams, the gravest first. Where there are
/// several kinds of clients, each kind has findings of its own, which name it by its label. They
/// have the figures of all its trials together. `is_explained`: the report has an explanation, so
/// that no next step leads to one.
pub fn datagram_findings(trials: &[&TrialReport], is_explained: bool) -> Vec<Finding> {
    let mut kinds: Vec<(&String, Vec<&TrialReport>)> = Vec::new();
    for trial in trials {
        match kinds.iter_mut().find(|(label, _)| **label == trial.label) {
            Some((_, known)) => known.push(trial),
            None => kinds.push((&trial.label, vec![trial])),
        }
    }
    let is_one = kinds.len() == 1;
    let mut findings: Vec<Finding> = Vec::new();
    for (label, trials) in kinds {
        let named = |f: Finding| {
            if is_one { f } else { Finding { text: format!("with {label}: {}", f.text), ..f } }
        };
        findings.extend(kind_findings(&trials, is_explained).into_iter().map(named));
    }
    findings.extend(generator_distorted(trials));
    gravest_first(&mut findings);
    findings
}

/// What makes trials invalid, except that the generator was too slow, which has its own finding.
fn generator_distorted(trials: &[&TrialReport]) -> Option<Finding> {
    let (mut at, mut clauses): (Vec<Level>, Vec<String>) = Default::default();
    for trial in trials {
        let is_reported = losses::limited(&[trial]).is_some();
        let others =
            trial.clauses().filter(|(c, _)| !(is_reported && *c == Some(Clause::FellBehind)));
        let known = clauses.len();
        clauses.extend(others.map(|(_, text)| text.to_owned()));
        if clauses.len() > known && !at.contains(&trial.level) {
            at.push(trial.level);
        }
    }
    let place = || match trials.len() {
        1 => String::new(),
        _ => format!("at {}: ", levels(&at)),
    };
    let lighter = ", or send less: a lower --rate or fewer --clients";
    (!clauses.is_empty()).then(|| distorted(&place(), &clauses, lighter))
}

/// The findings about these trials of one kind of clients.
fn kind_findings(trials: &[&TrialReport], is_explained: bool) -> Vec<Finding> {
    let Some(datagrams) = laws::datagrams(trials) else {
        return Vec::new();
    };
    let (l, d) = (&laws::ledger(trials), &datagrams);
    let [reordered, duplicated] = disorder(l, d);
    let single = [
        losses::vanished(l, d),
        losses::receive_buffer(l, d, is_explained),
        // An explanation says itself what is a cause.
        losses::saturated(d).filter(|_| !is_explained),
        losses::paused(l, d).filter(|_| !is_explained),
        losses::send_errors(l, d),
        losses::limited(trials),
        discarded(l, d),
        unexplained(trials),
        reordered,
        duplicated,
        losses::host_wide(l),
    ];
    losses::lost(l, d).into_iter().chain(single.into_iter().flatten()).collect()
}

fn percentage(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn lost_at(ledger: &LedgerReport, place: DropPlace) -> u64 {
    ledger.lost.get(place.name()).copied().unwrap_or(0)
}

/// `1 datagram`, `12,345 datagrams`.
fn datagrams(n: u64) -> String {
    let noun = if n == 1 { "datagram" } else { "datagrams" };
    format!("{} {noun}", exact(n as f64))
}

fn was(n: u64) -> &'static str {
    if n == 1 { "was" } else { "were" }
}

/// Counts by name: `EPERM 21 and EAGAIN 9`.
fn by_name<'a>(counts: impl IntoIterator<Item = (&'a String, &'a u64)>) -> String {
    let counts = counts.into_iter();
    let counts = counts.map(|(name, n)| format!("{} {}", name.replace('_', " "), exact(*n as f64)));
    list(&counts.collect::<Vec<String>>())
}

codes! {
    DISCARDED = "datagrams_discarded":
        cause "Datagrams reached the service, but their content was changed or truncated. It \
               could not count them as those of this run.",
        remedy "Compare captures of both hosts to find what changes them.";
    UNEXPLAINED = "datagrams_unexplained":
        cause "Datagrams did not arrive, and no counter that knee reads moved for them. Where \
               more arrived than was sent, a count is wrong.",
        remedy "Look at the counters of both hosts and of the devices between them.";
    REORDERING = "reordering":
        cause "Datagrams arrived after others that were sent later. Parallel paths or queues \
               have different delays.",
        remedy "Look for parallel paths and queues, such as ECMP, bonding or several receive \
                queues.";
    DUPLICATES = "duplicates":
        cause "Datagrams arrived more than once. A loop or a mirrored port on the path copied \
               them, or a netem that duplicates.",
        remedy "Look for what copies them on the path.";
}

fn discarded(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let percent = percentage(l.discarded, l.sent());
    (l.discarded > 0).then(|| {
        DISCARDED.warning(
            format!(
                "{} ({}) reached the service changed or truncated, and it discarded them; all \
                 that it discarded: {}",
                datagrams(l.discarded),
                share(percent),
                by_name(&d.discarded)
            ),
            [("count", l.discarded as f64), ("percent", percent)],
            "find what changes datagrams on the path: compare captures of both hosts (tcpdump -ni \
             any -w FILE udp)",
        )
    })
}

/// If a count of some trials is wrong, only these trials count, as others would hide it.
fn unexplained(trials: &[&TrialReport]) -> Option<Finding> {
    let ledgers = || trials.iter().filter_map(|t| t.ledger());
    let is_wrong = ledgers().any(|l| l.unexplained < 0);
    let counted = ledgers().filter(|l| l.unexplained < 0 || !is_wrong);
    let (count, intended) = counted.fold((0_i64, 0), |(count, intended), l| {
        (count.saturating_add(l.unexplained), intended + l.intended)
    });
    let percent = percentage(count.unsigned_abs(), intended);
    let amount = datagrams(count.unsigned_abs());
    let (severity, text, next_step) = if is_wrong {
        (
            Severity::Error,
            format!(
                "{amount} more {} received than can have been sent: a count is wrong",
                was(count.unsigned_abs())
            ),
            "repeat it alone on a quiet host; if it persists, please report it",
        )
    } else {
        (
            Severity::Warning,
            format!(
                "{amount} ({}) did not arrive, and no counter shows where they were lost",
                share(percent)
            ),
            "look at the counters of both hosts and of the devices between them: nstat -az, \
             ethtool -S DEVICE, tc -s qdisc",
        )
    };
    let evidence = [("unexplained", count as f64), ("percent", percent)];
    (count != 0).then(|| UNEXPLAINED.finding(severity, text, evidence, next_step))
}

/// Datagrams out of order, and those that came more than once.
fn disorder(l: &LedgerReport, d: &DatagramReport) -> [Option<Finding>; 2] {
    [
        (
            REORDERING,
            d.reordered,
            "arrived after others that were sent later",
            "look for parallel paths or queues (ECMP, bonding, several receive queues)",
        ),
        (
            DUPLICATES,
            d.duplicates,
            "arrived more than once",
            "look for loops and mirrored ports on the path; tc -s qdisc shows a netem that \
             duplicates",
        ),
    ]
    .map(|(code, count, what, next_step)| {
        let percent = percentage(count, l.received);
        (count > 0).then(|| {
            code.warning(
                format!("{} ({}) {what}", datagrams(count), share(percent)),
                [("count", count as f64), ("percent", percent)],
                next_step,
            )
        })
    })
}
