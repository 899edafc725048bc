//! What the ledger shows besides places: what the service discarded, what is missing, order.

use super::{by_name, datagrams, percent_of, was};
use crate::finding::{Finding, Severity, codes};
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::trial::report::TrialReport;
use crate::words::share;

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

pub(super) fn discarded(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let percent = percent_of(l.discarded, l.sent());
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

/// Of trials with a count that is wrong those alone, as others would hide it.
pub(super) fn unexplained(trials: &[&TrialReport]) -> Option<Finding> {
    let ledgers = || trials.iter().filter_map(|t| t.ledger());
    let is_wrong = ledgers().any(|l| l.unexplained < 0);
    let such = ledgers().filter(|l| l.unexplained < 0 || !is_wrong);
    let (count, intended) = such.fold((0_i64, 0), |(count, intended), l| {
        (count.saturating_add(l.unexplained), intended + l.intended)
    });
    let percent = percent_of(count.unsigned_abs(), intended);
    let some = datagrams(count.unsigned_abs());
    let (severity, text, next_step) = if is_wrong {
        (
            Severity::Error,
            format!(
                "{some} more {} received than can have been sent: a count is wrong",
                was(count.unsigned_abs())
            ),
            "repeat it alone on a quiet host; if it persists, please report it",
        )
    } else {
        (
            Severity::Warning,
            format!(
                "{some} ({}) did not arrive, and no counter shows where they were lost",
                share(percent)
            ),
            "look at the counters of both hosts and of the devices between them: nstat -az, \
             ethtool -S DEVICE, tc -s qdisc",
        )
    };
    let evidence = [("unexplained", count as f64), ("percent", percent)];
    (count != 0).then(|| UNEXPLAINED.finding(severity, text, evidence, next_step))
}

pub(super) fn reordering(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let percent = percent_of(d.reordered, l.received);
    (d.reordered > 0).then(|| {
        REORDERING.warning(
            format!(
                "{} ({}) arrived after others that were sent later",
                datagrams(d.reordered),
                share(percent)
            ),
            [("count", d.reordered as f64), ("percent", percent)],
            "look for parallel paths or queues (ECMP, bonding, several receive queues)",
        )
    })
}

pub(super) fn duplicates(l: &LedgerReport, d: &DatagramReport) -> Option<Finding> {
    let percent = percent_of(d.duplicates, l.received);
    (d.duplicates > 0).then(|| {
        DUPLICATES.warning(
            format!("{} ({}) arrived more than once", datagrams(d.duplicates), share(percent)),
            [("count", d.duplicates as f64), ("percent", percent)],
            "look for loops and mirrored ports on the path; tc -s qdisc shows a netem that \
             duplicates",
        )
    })
}
