//! The load that the senders promised, against what they sent.

use crate::trial::offered::{asked_of, gap_evidence_of, quantiles};
use crate::trial::report::OfferedReport;
use crate::trial::validity::{Clause, PacingQuantiles, ValidityEvidence, broken_clauses};
use crate::words::percent;
use knee_load::experiment::udp::{ClientWait, UdpTrial};
use knee_load::measure::Window;
use knee_load::spec::{ArrivalLaw, Rate};
use knee_load::stats::gaps::{Gaps, dispersion, exponential_test};
use knee_load::time::Nanos;

/// How well the senders' load was kept, in a trial of this length.
pub(super) fn offered_report(trial: &UdpTrial, length: Nanos) -> OfferedReport {
    let sent = &trial.sent;
    let length_s = length.as_secs_f64();
    let per_s = |n: f64| if length_s > 0.0 { n / length_s } else { 0.0 };
    let schedule = schedule(trial);
    let poisson = schedule.filter(|(_, arrival)| **arrival == ArrivalLaw::Poisson);
    let asked = schedule.map(|load| asked_of(load, whole(length)));
    OfferedReport {
        asked_per_s: asked.map(|a| per_s(a.operations)),
        achieved_per_s: per_s(sent.sent as f64),
        arrival: trial.spec.wait.name(),
        gap_cv: Gaps::of(&sent.starts).map(|g| g.cv()),
        dispersion: Some(dispersion(&sent.starts, known(trial, length))),
        recorded: None,
        ks_p_value: poisson
            .and_then(|(rate, _)| exponential_test(&sent.starts, rate.per_s()))
            .map(|test| test.p_value),
        pacing_error_ns: quantiles(&sent.pacing_error),
        connection_wait_ns: None,
        stall_ns_max: sent.stall_ns_max,
    }
}

/// The clauses that make a trial invalid. A schedule promises its times. A cost of sending promises
/// processors on which nothing else costs any. Clients that wait from one send to the next, or not
/// at all, promise no rate.
///
/// A processor that is busy all the time is no fault as long as the schedule is kept. Without
/// echoes there is no response time that a late send could distort; what lateness does to the gaps
/// is judged by the gaps.
pub(super) fn broken(trial: &UdpTrial, length: Nanos) -> Vec<(Clause, String)> {
    let shared = processors_shared(trial).map(|text| (Clause::ProcessorsShared, text));
    let shared: Vec<(Clause, String)> = shared.into_iter().collect();
    let Some(load) = schedule(trial) else {
        return shared;
    };
    let sent = &trial.sent;
    let is_whole = trial.spec.datagrams_max.is_none() && !trial.interrupted;
    let mut pacing_error_ns = PacingQuantiles::of(&sent.pacing_error);
    if sent.round_trip.is_empty() {
        (pacing_error_ns.p50, pacing_error_ns.p99) = (0, 0);
    }
    let of_schedule = broken_clauses(&ValidityEvidence {
        asked: is_whole.then(|| asked_of(load, whole(length))),
        window: length,
        open_loop: true,
        attempted: sent.intended,
        started: sent.intended.saturating_sub(sent.not_attempted),
        pacing_error_ns,
        stall_ns_max: sent.stall_ns_max,
        gaps: gap_evidence_of(load, &sent.starts, known(trial, length)),
        ..ValidityEvidence::default()
    });
    of_schedule.into_iter().chain(shared).collect()
}

/// Others may have this share of the processors that the clients are bound to, in percent.
const OTHERS_PERCENT: f64 = 10.0;

/// Where each send takes a stated time of a processor, the rate is what that leaves. Others that
/// use the same processors take it from the clients, and not from all kinds of them alike.
fn processors_shared(trial: &UdpTrial) -> Option<String> {
    if trial.spec.send_cost == Nanos::ZERO {
        return None;
    }
    let others = others_percent(trial)?;
    (others > OTHERS_PERCENT).then(|| {
        format!(
            "others used {} of the processors that the clients are bound to, where each send is \
             to cost {}: the rate is not what these clients alone would make of them",
            percent(others),
            trial.spec.send_cost
        )
    })
}

/// The share of the clients' processors that neither they nor the service used, but somebody.
fn others_percent(trial: &UdpTrial) -> Option<f64> {
    let cpus = &trial.spec.client_cpus;
    let busy_s = trial.sent.processors_busy?.as_secs_f64();
    let all_s = trial.sent.elapsed.as_secs_f64() * cpus.len() as f64;
    let generator = &trial.generator;
    let clients_s = generator.cpu_user_s + generator.cpu_system_s;
    let service = &trial.service;
    let is_there = service.same_host && service.cpus.iter().any(|cpu| cpus.contains(cpu));
    let received = trial.received.as_ref().filter(|_| is_there);
    let service_s = received.map_or(0.0, |r| r.cpu.as_secs_f64());
    (all_s > 0.0).then(|| 100.0 * (busy_s - clients_s - service_s).max(0.0) / all_s)
}

/// The part of the trial in which all times of sending are known.
fn known(trial: &UdpTrial, length: Nanos) -> Window {
    Window { start: Nanos::ZERO, end: length.min(trial.sent.starts_until) }
}

fn whole(length: Nanos) -> Window {
    Window { start: Nanos::ZERO, end: length }
}

/// The rate and the arrival process of senders that keep a schedule.
fn schedule(trial: &UdpTrial) -> Option<(Rate, &ArrivalLaw)> {
    match &trial.spec.wait {
        ClientWait::Schedule { rate, arrival } => Some((*rate, arrival)),
        _ => None,
    }
}
