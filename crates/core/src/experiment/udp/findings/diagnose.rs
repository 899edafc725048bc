//! What the report of a trial of datagrams shows: pure predicates.

use super::{DatagramTrouble, UdpDiagnosis};
use crate::diagnosis::Diagnosis;
use crate::experiment::udp::analysis::pool;
use crate::experiment::udp::measure::DropPlace;
use crate::finding::Finding;
use crate::spec::Level;
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::trial::findings::distorted;
use crate::trial::report::TrialReport;
use crate::trial::validity::Clause;
use crate::words::{drop_place, levels};

/// Senders that do not come to a larger share of their schedule do not keep it.
const NOT_ATTEMPTED_SHARE: f64 = 0.001;
/// Nor do those of which half the datagrams leave later than this.
const BEHIND_NS: f64 = 1_000_000.0;

/// What a person should know about these trials of datagrams, the gravest first. Where there are
/// several kinds of clients, each kind has findings of its own, with the figures of all its trials
/// together, and they name it by its label.
pub fn datagram_findings(trials: &[&TrialReport]) -> Vec<Finding> {
    findings(trials, false)
}

/// The same where the report has an explanation too: no next step leads to it.
pub fn explained_findings(trials: &[&TrialReport]) -> Vec<Finding> {
    findings(trials, true)
}

fn findings(trials: &[&TrialReport], is_explained: bool) -> Vec<Finding> {
    let is_one = trials.len() == 1;
    let mut kinds: Vec<(&String, Vec<&TrialReport>)> = Vec::new();
    for trial in trials {
        match kinds.iter_mut().find(|(label, _)| **label == trial.label) {
            Some((_, known)) => known.push(trial),
            None => kinds.push((&trial.label, vec![trial])),
        }
    }
    let all = kinds.iter().flat_map(|(label, trials)| {
        troubles(trials).into_iter().map(|trouble| UdpDiagnosis {
            at: (kinds.len() > 1).then(|| (*label).clone()),
            trouble,
            is_explained,
        })
    });
    let mut at: Vec<Level> = Vec::new();
    let mut clauses: Vec<String> = Vec::new();
    for trial in trials {
        if let Some(broken) = distortions(trial) {
            at = merged(at, (!is_one).then_some(trial.level));
            clauses.extend(broken);
        }
    }
    let place = match at.is_empty() {
        true => String::new(),
        false => format!("at {}: ", levels(&at)),
    };
    let distorted = (!clauses.is_empty()).then(|| Finding {
        // Other options are of use here than elsewhere.
        next_step: "repeat on a quieter or larger machine, or send less: a lower --rate or fewer \
                    --clients"
            .to_owned(),
        ..distorted(&place, &clauses)
    });
    let mut findings: Vec<Finding> = all
        .map(|diagnosis| Diagnosis::Udp(diagnosis).finding())
        .chain(distorted)
        .collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

fn merged<T: PartialEq>(mut all: Vec<T>, one: Option<T>) -> Vec<T> {
    let new = one.filter(|one| !all.contains(one));
    all.extend(new);
    all
}

/// What makes it invalid, but for what the senders being too slow says as well.
fn distortions(trial: &TrialReport) -> Option<Vec<String>> {
    let is_limited = sender_limited(&[trial]).is_some();
    let clauses: Vec<String> = trial
        .clauses()
        .filter(|(clause, _)| !(is_limited && *clause == Some(Clause::FellBehind)))
        .map(|(_, text)| text.to_owned())
        .collect();
    (!clauses.is_empty()).then_some(clauses)
}

/// All that is the matter with these trials of one kind of clients.
pub(super) fn troubles(trials: &[&TrialReport]) -> Vec<DatagramTrouble> {
    let Some(datagrams) = pool::datagrams(trials) else {
        return Vec::new();
    };
    let ledger = pool::ledger(trials);
    let lost = lost_elsewhere(&ledger, &datagrams);
    let single = [
        service_vanished(&ledger, &datagrams),
        receive_buffer(&ledger, &datagrams),
        service_saturated(&datagrams),
        service_paused(&ledger, &datagrams),
        send_errors(&ledger, &datagrams),
        sender_limited(trials),
        discarded(&ledger, &datagrams),
        unexplained(trials),
        reordering(&ledger, &datagrams),
        duplicates(&ledger, &datagrams),
        host_wide(&ledger),
    ];
    lost.into_iter()
        .chain(single.into_iter().flatten())
        .collect()
}

fn percent_of(part: u64, whole: u64) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

fn sent(ledger: &LedgerReport) -> u64 {
    ledger.intended - (ledger.not_attempted + ledger.send_errors).min(ledger.intended)
}

fn lost_at(ledger: &LedgerReport, place: DropPlace) -> u64 {
    ledger.lost.get(place.name()).copied().unwrap_or(0)
}

/// How long the service's buffer takes to fill at the mean rate of sending.
pub(crate) fn buffer_covers_ns(d: &DatagramReport) -> Option<f64> {
    let holds = d.buffer_datagrams?;
    (d.sent_per_s > 0.0).then(|| 1e9 * holds as f64 / d.sent_per_s)
}

fn receive_buffer(l: &LedgerReport, d: &DatagramReport) -> Option<DatagramTrouble> {
    let lost = lost_at(l, DropPlace::ReceiveBuffer);
    (lost > 0).then(|| DatagramTrouble::ReceiveBufferOverflow {
        lost,
        percent: percent_of(lost, sent(l)),
        bytes: d.rcvbuf_bytes,
        holds: d.buffer_datagrams,
        covers_ns: buffer_covers_ns(d),
    })
}

fn send_errors(l: &LedgerReport, d: &DatagramReport) -> Option<DatagramTrouble> {
    let mut by_name: Vec<(String, u64)> = d
        .send_errors
        .iter()
        .filter(|(_, n)| **n > 0)
        .map(|(name, n)| (name.clone(), *n))
        .collect();
    by_name.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    let name = by_name.first()?.0.clone();
    Some(DatagramTrouble::SendErrors {
        name,
        count: l.send_errors,
        percent: percent_of(l.send_errors, l.intended),
        by_name,
    })
}

/// Each place but those that have findings of their own.
fn lost_elsewhere(l: &LedgerReport, d: &DatagramReport) -> Vec<DatagramTrouble> {
    let own = [DropPlace::ReceiveBuffer, DropPlace::Service];
    let places = DropPlace::ALL.into_iter().filter(|p| !own.contains(p));
    places
        .filter_map(|place| {
            let lost = lost_at(l, place);
            let evidence = || {
                let here = l.evidence.iter().filter(|e| e.place == place.name());
                here.filter(|e| e.attributed > 0)
            };
            let told = evidence().map(|e| (e.source.clone(), e.attributed));
            (lost > 0).then(|| DatagramTrouble::LostAt {
                place,
                lost,
                percent: percent_of(lost, sent(l)),
                told: told.collect(),
                is_inferred: evidence().any(|e| e.inferred),
                not_read: d.not_read.clone(),
            })
        })
        .collect()
}

fn discarded(l: &LedgerReport, d: &DatagramReport) -> Option<DatagramTrouble> {
    (l.discarded > 0).then(|| DatagramTrouble::Discarded {
        count: l.discarded,
        percent: percent_of(l.discarded, sent(l)),
        by_reason: d
            .discarded
            .iter()
            .map(|(why, n)| (why.clone(), *n))
            .collect(),
    })
}

/// Of trials with a count that is wrong those alone, as others would hide it.
fn unexplained(trials: &[&TrialReport]) -> Option<DatagramTrouble> {
    let ledgers = || trials.iter().filter_map(|t| t.ledger.as_ref());
    let is_wrong = ledgers().any(|l| l.unexplained < 0);
    let such = ledgers().filter(|l| l.unexplained < 0 || !is_wrong);
    let (count, intended) = such.fold((0_i64, 0), |(count, intended), l| {
        (count.saturating_add(l.unexplained), intended + l.intended)
    });
    (count != 0).then(|| DatagramTrouble::Unexplained {
        count,
        percent: percent_of(count.unsigned_abs(), intended),
    })
}

fn service_vanished(l: &LedgerReport, d: &DatagramReport) -> Option<DatagramTrouble> {
    d.service_lost
        .as_ref()
        .map(|why| DatagramTrouble::ServiceVanished {
            why: why.clone(),
            lost: lost_at(l, DropPlace::Service),
        })
}

fn service_saturated(d: &DatagramReport) -> Option<DatagramTrouble> {
    let capacity_per_s = 1e9 / d.service_work_ns? as f64;
    (d.sent_per_s > capacity_per_s).then_some(DatagramTrouble::ServiceSaturated {
        offered_per_s: d.sent_per_s,
        capacity_per_s,
    })
}

fn sender_limited(trials: &[&TrialReport]) -> Option<DatagramTrouble> {
    let such: Vec<&TrialReport> = trials
        .iter()
        .filter(|t| t.offered.asked_per_s.is_some())
        .copied()
        .collect();
    let datagrams = pool::datagrams(&such)?;
    let l = pool::ledger(&such);
    let behind = such
        .iter()
        .filter_map(|t| t.offered.pacing_error_ns.p50)
        .max();
    let behind_ns = behind.unwrap_or(0) as f64;
    let limit = NOT_ATTEMPTED_SHARE * l.intended as f64;
    let is_limited = l.not_attempted as f64 > limit || behind_ns > BEHIND_NS;
    is_limited.then(|| DatagramTrouble::SenderLimited {
        not_attempted: l.not_attempted,
        percent: percent_of(l.not_attempted, l.intended),
        sent_per_s: datagrams.sent_per_s,
        behind_ns,
        trials: such.len() as u32,
        blocked: datagrams.blocked,
    })
}

fn reordering(l: &LedgerReport, d: &DatagramReport) -> Option<DatagramTrouble> {
    (d.reordered > 0).then(|| DatagramTrouble::Reordering {
        count: d.reordered,
        percent: percent_of(d.reordered, l.received),
    })
}

fn duplicates(l: &LedgerReport, d: &DatagramReport) -> Option<DatagramTrouble> {
    (d.duplicates > 0).then(|| DatagramTrouble::Duplicates {
        count: d.duplicates,
        percent: percent_of(d.duplicates, l.received),
    })
}

/// A pause harms only where it fills the buffer.
fn service_paused(l: &LedgerReport, d: &DatagramReport) -> Option<DatagramTrouble> {
    let covers_ns = buffer_covers_ns(d)?;
    let pause_ns = d.service_pause_ns_max as f64;
    let harms = lost_at(l, DropPlace::ReceiveBuffer) > 0;
    (harms && pause_ns > covers_ns).then_some(DatagramTrouble::ServicePaused {
        pause_ns,
        covers_ns,
        preempted: d.service_preempted,
    })
}

fn host_wide(l: &LedgerReport) -> Option<DatagramTrouble> {
    let told = || {
        l.evidence
            .iter()
            .filter(|e| e.host_wide && e.attributed > 0)
    };
    let count = told().map(|e| e.attributed).sum();
    let mut places: Vec<String> = told().map(|e| drop_place(&e.place)).collect();
    places.dedup();
    (count > 0).then_some(DatagramTrouble::HostWideEvidence { count, places })
}
