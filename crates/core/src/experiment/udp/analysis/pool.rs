//! Trials of the same clients taken together.

use crate::trial::datagrams::{DatagramReport, LedgerReport, LossEvidence};
use crate::trial::report::TrialReport;
use std::collections::BTreeMap;

/// The sum of their ledgers. It balances, as each of them does.
pub(crate) fn ledger(trials: &[&TrialReport]) -> LedgerReport {
    let mut sum = LedgerReport::default();
    for ledger in trials.iter().filter_map(|t| t.ledger()) {
        sum.intended += ledger.intended;
        sum.not_attempted += ledger.not_attempted;
        sum.send_errors += ledger.send_errors;
        sum.received += ledger.received;
        sum.discarded += ledger.discarded;
        sum.unexplained += ledger.unexplained;
        for (place, count) in &ledger.lost {
            *sum.lost.entry(place.clone()).or_default() += count;
        }
        for evidence in &ledger.evidence {
            add_evidence(&mut sum.evidence, evidence);
        }
    }
    sum
}

fn add_evidence(all: &mut Vec<LossEvidence>, one: &LossEvidence) {
    let same = |e: &&mut LossEvidence| {
        e.place == one.place
            && e.source == one.source
            && (e.host_wide, e.inferred) == (one.host_wide, one.inferred)
    };
    match all.iter_mut().find(same) {
        Some(known) => {
            known.counted += one.counted;
            known.attributed += one.attributed;
        }
        None => all.push(one.clone()),
    }
}

/// What they show together: counts add, rates are means, and of what is the most in a trial the
/// most of all. What describes the service is that of the first. `None` where there are none.
pub(crate) fn datagrams(trials: &[&TrialReport]) -> Option<DatagramReport> {
    let all: Vec<&DatagramReport> = trials.iter().filter_map(|t| t.datagrams()).collect();
    let mut pooled = (*all.first()?).clone();
    let sum = |of: fn(&DatagramReport) -> u64| all.iter().map(|d| of(d)).sum::<u64>();
    let mean =
        |of: fn(&DatagramReport) -> f64| all.iter().map(|d| of(d)).sum::<f64>() / all.len() as f64;
    pooled.sent_per_s = mean(|d| d.sent_per_s);
    pooled.received_per_s = mean(|d| d.received_per_s);
    pooled.dropped_per_s = mean(|d| d.dropped_per_s);
    pooled.duplicates = sum(|d| d.duplicates);
    pooled.reordered = sum(|d| d.reordered);
    pooled.blocked = sum(|d| d.blocked);
    pooled.service_preempted = sum(|d| d.service_preempted);
    pooled.service_scheduled = sum(|d| d.service_scheduled);
    let longest = all.iter().map(|d| d.service_pause_ns_max).max();
    pooled.service_pause_ns_max = longest.unwrap_or(0);
    pooled.send_errors = by_name(all.iter().map(|d| &d.send_errors));
    pooled.discarded = by_name(all.iter().map(|d| &d.discarded));
    pooled.service_lost = all.iter().find_map(|d| d.service_lost.clone());
    pooled.not_read = all.iter().flat_map(|d| d.not_read.clone()).collect();
    pooled.not_read.sort();
    pooled.not_read.dedup();
    Some(pooled)
}

fn by_name<'a>(all: impl Iterator<Item = &'a BTreeMap<String, u64>>) -> BTreeMap<String, u64> {
    let mut sum = BTreeMap::new();
    for (name, count) in all.flatten() {
        *sum.entry(name.clone()).or_default() += count;
    }
    sum
}
