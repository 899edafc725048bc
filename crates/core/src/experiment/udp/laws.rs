//! What clients of one law did and got, their trials pooled.

use super::pool::{self, ledger};
use crate::experiment::udp::report::LawRow;
use crate::experiment::verdict;
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{drop_place, exact, list, number, share};
use knee_load::experiment::udp::{DropPlace, UdpTrialSpec};
use knee_load::stats::sample::mean_and_ci95;
use std::collections::BTreeMap;

/// The row of the clients of `spec`. Rates are means over the trials; the loss is that of all their
/// datagrams together.
pub(super) fn law_row(spec: &UdpTrialSpec, trials: &[&TrialReport]) -> LawRow {
    let all: Vec<&DatagramReport> = trials.iter().filter_map(|t| t.datagrams()).collect();
    let each = |of: fn(&DatagramReport) -> f64| all.iter().map(|d| of(d)).collect::<Vec<f64>>();
    let mean = |of| mean_and_ci95(&each(of)).0;
    let (sent_per_s, sent_ci95) = mean_and_ci95(&each(|d| d.sent_per_s));
    let (_, loss_ci95) = mean_and_ci95(&each(|d| d.loss_percent));
    let dispersion: Vec<f64> = all.iter().filter_map(|d| d.arrival_dispersion.ms10).collect();
    LawRow {
        label: spec.label.clone(),
        wait: spec.wait.name(),
        clients: spec.clients,
        trials: trials.len() as u32,
        sent_per_s,
        sent_ci95_per_s: sent_ci95.map(|[lo, hi]| [lo.max(0.0), hi]),
        received_per_s: mean(|d| d.received_per_s),
        dropped_per_s: mean(|d| d.dropped_per_s),
        loss_percent: loss_percent(trials),
        loss_ci95_percent: loss_ci95.map(|[lo, hi]| [lo.max(0.0), hi.min(100.0)]),
        dispersion: (!dispersion.is_empty()).then(|| mean_and_ci95(&dispersion).0),
        burst_max: all.iter().map(|d| d.burst_max).max().unwrap_or(0),
        ledger: ledger(trials),
        intervals: pool::intervals(trials),
        arrivals_per_ms: pool::arrivals_per_ms(trials),
        dispersion_by_scale: pool::dispersion_by_scale(trials),
    }
}

/// The loss of all datagrams of these trials together, in percent.
pub(super) fn loss_percent(trials: &[&TrialReport]) -> f64 {
    let ledgers = || trials.iter().filter_map(|t| t.ledger());
    let sent: u64 = ledgers().map(LedgerReport::sent).sum();
    let missing: u64 = ledgers().map(sent_but_missing).sum();
    100.0 * missing as f64 / sent.max(1) as f64
}

fn sent_but_missing(l: &LedgerReport) -> u64 {
    l.sent().saturating_sub(l.received)
}

/// Missing datagrams that have no place.
const DISCARDED: &str = "discarded";
const UNEXPLAINED: &str = "unexplained";

/// Datagrams lost in these trials by the place's name, discarded and unexplained ones among them,
/// the most first.
pub(super) fn lost_by_place(trials: &[&TrialReport]) -> Vec<(String, u64)> {
    let mut places: BTreeMap<&str, u64> = BTreeMap::new();
    for ledger in trials.iter().filter_map(|t| t.ledger()) {
        for (place, count) in &ledger.lost {
            *places.entry(place).or_default() += count;
        }
        *places.entry(DISCARDED).or_default() += ledger.discarded;
        *places.entry(UNEXPLAINED).or_default() += ledger.unexplained.max(0) as u64;
    }
    let mut places: Vec<(String, u64)> = places
        .into_iter()
        .filter(|(_, n)| *n > 0)
        .map(|(place, n)| (place.to_owned(), n))
        .collect();
    places.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    places
}

/// ` Of what is missing: 12,345 in the receive buffer.`, or nothing where nothing was.
pub(super) fn lost_where(trials: &[&TrialReport]) -> String {
    let places: Vec<String> = lost_by_place(trials)
        .into_iter()
        .map(|(place, n)| match place.as_str() {
            DISCARDED | UNEXPLAINED => format!("{} {place}", exact(n as f64)),
            _ => format!("{} {}", exact(n as f64), drop_place(&place)),
        })
        .collect();
    if places.is_empty() {
        String::new()
    } else {
        format!(" Of what is missing: {}.", list(&places))
    }
}

/// `exp(200us)*128 sent 98,400/s and lost 1.2 % of it.`
pub(super) fn in_words(row: &LawRow) -> String {
    if row.ledger.received == 0 && row.ledger.lost.contains_key(DropPlace::Service.name()) {
        return format!(
            "{} sent {}/s until the service vanished: what it received is not known.",
            row.label,
            number(row.sent_per_s)
        );
    }
    let lost = if row.dropped_per_s > 0.0 {
        format!("lost {} of it", share(row.loss_percent))
    } else {
        "lost nothing".to_owned()
    };
    format!("{} sent {}/s and {lost}.", row.label, number(row.sent_per_s))
}

/// Invalid where the trials of any one law are: then it is not that law that was measured.
pub(super) fn law_verdict(by_law: &[Vec<&TrialReport>]) -> Verdict {
    let is_invalid =
        |trials: &Vec<&TrialReport>| verdict(trials.iter().copied()) == Verdict::Invalid;
    if by_law.iter().any(is_invalid) { Verdict::Invalid } else { Verdict::Valid }
}
