//! What the report of a trial of datagrams shows: pure predicates.

use super::{DatagramTrouble, UdpDiagnosis};
use crate::analysis::findings::Diagnosis;
use crate::analysis::validity::FELL_BEHIND;
use crate::analysis::words::drop_place;
use crate::measure::DropPlace;
use crate::report::{DatagramReport, Finding, LedgerReport, TrialReport};

/// Senders that do not come to a larger share of their schedule do not keep it.
const NOT_ATTEMPTED_SHARE: f64 = 0.001;
/// Nor do those of which half the datagrams leave later than this.
const BEHIND_NS: f64 = 1_000_000.0;

/// What a person should know about these trials of datagrams, the gravest first: each kind once,
/// with the numbers of the trial in which it is worst. Where they are several, the trials that it
/// holds for are named by their labels.
pub fn datagram_findings(trials: &[&TrialReport]) -> Vec<Finding> {
    let is_one = trials.len() == 1;
    let mut all: Vec<UdpDiagnosis> = Vec::new();
    let mut distorted: Option<Diagnosis> = None;
    for trial in trials {
        for trouble in troubles(trial) {
            gather(&mut all, trouble, (!is_one).then_some(&trial.label));
        }
        if let Some(clauses) = distortions(trial) {
            let (at, known) = match distorted.take() {
                Some(Diagnosis::GeneratorDistorted { at, clauses }) => (at, clauses),
                _ => (Vec::new(), Vec::new()),
            };
            distorted = Some(Diagnosis::GeneratorDistorted {
                at: merged(at, (!is_one).then_some(trial.level)),
                clauses: known.into_iter().chain(clauses).collect(),
            });
        }
    }
    let mut findings: Vec<Finding> = all
        .into_iter()
        .map(Diagnosis::Udp)
        .chain(distorted)
        .map(|diagnosis| diagnosis.finding())
        .collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

fn merged<T: PartialEq>(mut all: Vec<T>, one: Option<T>) -> Vec<T> {
    let new = one.filter(|one| !all.contains(one));
    all.extend(new);
    all
}

fn gather(all: &mut Vec<UdpDiagnosis>, trouble: DatagramTrouble, label: Option<&String>) {
    let same = all.iter_mut().find(|d| d.trouble.code() == trouble.code());
    let Some(same) = same else {
        let at = label.into_iter().cloned().collect();
        all.push(UdpDiagnosis { at, trouble });
        return;
    };
    same.at = merged(std::mem::take(&mut same.at), label.cloned());
    if trouble.weight() > same.trouble.weight() {
        same.trouble = trouble;
    }
}

/// What makes it invalid, but for what the senders being too slow says as well.
fn distortions(trial: &TrialReport) -> Option<Vec<String>> {
    let is_limited = ledgers(trial).is_some_and(|(l, d)| sender_limited(trial, l, d).is_some());
    let other = |clause: &&String| !(is_limited && clause.contains(FELL_BEHIND));
    let clauses: Vec<String> = trial
        .invalid_because
        .iter()
        .filter(other)
        .cloned()
        .collect();
    (!clauses.is_empty()).then_some(clauses)
}

fn ledgers(trial: &TrialReport) -> Option<(&LedgerReport, &DatagramReport)> {
    trial.ledger.as_ref().zip(trial.datagrams.as_ref())
}

/// All that is the matter with one trial.
pub(super) fn troubles(trial: &TrialReport) -> Vec<DatagramTrouble> {
    let Some((ledger, datagrams)) = ledgers(trial) else {
        return Vec::new();
    };
    [
        service_vanished(ledger, datagrams),
        receive_buffer(ledger, datagrams),
        service_saturated(datagrams),
        service_paused(ledger, datagrams),
        send_errors(ledger, datagrams),
        sender_limited(trial, ledger, datagrams),
        unexplained(ledger),
        reordering(ledger, datagrams),
        duplicates(ledger, datagrams),
        host_wide(ledger),
    ]
    .into_iter()
    .flatten()
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

fn unexplained(l: &LedgerReport) -> Option<DatagramTrouble> {
    (l.unexplained != 0).then(|| DatagramTrouble::Unexplained {
        count: l.unexplained,
        percent: percent_of(l.unexplained.unsigned_abs(), l.intended),
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

fn sender_limited(
    t: &TrialReport,
    l: &LedgerReport,
    d: &DatagramReport,
) -> Option<DatagramTrouble> {
    t.offered.asked_per_s?;
    let behind_ns = t.offered.pacing_error_ns.p50? as f64;
    let limit = NOT_ATTEMPTED_SHARE * l.intended as f64;
    let is_limited = l.not_attempted as f64 > limit || behind_ns > BEHIND_NS;
    is_limited.then(|| DatagramTrouble::SenderLimited {
        not_attempted: l.not_attempted,
        percent: percent_of(l.not_attempted, l.intended),
        sent_per_s: d.sent_per_s,
        behind_ns,
        blocked: d.blocked,
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
