//! From a trial of datagrams to its report: where each went, how they were offered and arrived.

mod arrivals;
mod ledger;
mod load;
#[cfg(test)]
pub(crate) mod tests;

pub use ledger::ledger;

use crate::trial::assess::{generator_report, times_report};
use crate::trial::datagrams::{DatagramReport, LedgerReport};
use crate::trial::detail::UdpDetail;
use crate::trial::offered::quantiles;
use crate::trial::report::{TrialReport, Verdict};
use knee_load::experiment::udp::{UdpReceived, UdpTrial};
use knee_load::measure::{Interval, Outcome, Outcomes, Window};
use knee_load::stats::gaps::{Gaps, dispersion};
use knee_load::stats::sample::batch_means_ci95;
use knee_load::stats::stationarity::{THROUGHPUT_SHARE, is_stationary};
use knee_load::time::Nanos;

/// Computes all that is reported of a trial of datagrams.
///
/// `attempted` are those intended, `completed` those received. Rates are over the time of sending.
/// That is all of the duration, or the used part of it where a number of datagrams or the user
/// ended it.
pub fn assess(trial: &UdpTrial) -> TrialReport {
    let length = length(trial);
    let ledger = ledger(trial);
    let (invalid_clauses, invalid_because): (Vec<_>, Vec<_>) =
        load::broken(trial, length).into_iter().unzip();
    let datagrams = datagrams(trial, length);
    let throughput_per_s = datagrams.received_per_s;
    let intervals = intervals(trial, length);
    let series = whole_intervals(trial, &intervals);
    let stationary = is_stationary(&series, THROUGHPUT_SHARE);
    let interval_s = trial.spec.interval.as_secs_f64();
    let round_trip = times_report(&trial.sent.round_trip, None);
    TrialReport {
        label: trial.spec.label.clone(),
        level: trial.spec.level,
        duration_ns: length.0,
        attempted: ledger.intended,
        completed: ledger.received,
        throughput_per_s: Some(throughput_per_s),
        throughput_range_per_s: None,
        throughput_ci95_per_s: batch_means_ci95(&series)
            .filter(|_| stationary)
            .map(|[lo, hi]| [lo.max(0.0) / interval_s, hi / interval_s])
            // Senders that were held up beyond the end: the whole intervals are not all of it.
            .filter(|[lo, hi]| *lo <= throughput_per_s && throughput_per_s <= *hi),
        goodput_per_s: Some(throughput_per_s),
        outcomes: outcomes(&ledger),
        response_time_ns: round_trip.clone(),
        service_time_ns: round_trip,
        offered: load::offered_report(trial, length),
        generator: generator_report(&trial.generator, trial.sent.sent as f64),
        stationary,
        verdict: if invalid_because.is_empty() { Verdict::Valid } else { Verdict::Invalid },
        invalid_because,
        invalid_clauses,
        bytes_received: ledger.received * u64::from(trial.spec.size),
        detail: UdpDetail { ledger, datagrams }.into(),
        intervals,
        kernel: trial.kernel.clone(),
    }
}

/// The time that rates are counted over. A service that vanishes ends a trial early.
fn length(trial: &UdpTrial) -> Nanos {
    let (asked, used) = (trial.spec.duration, trial.sent.elapsed);
    let service_vanished = trial.received.is_none();
    let ended_early = trial.spec.datagrams_max.is_some() || trial.interrupted || service_vanished;
    if ended_early {
        used.min(asked)
    } else {
        // A sender that was blocked at the end may have sent beyond it.
        used.max(asked)
    }
}

/// The outcomes, which sum to what was intended. More than that can have been received only by an
/// error of counting. The ledger shows it as a negative rest, so the excess is left out.
fn outcomes(ledger: &LedgerReport) -> Outcomes {
    let mut left = ledger.intended;
    let mut outcomes = Outcomes::default();
    for (outcome, count) in [
        (Outcome::NotAttempted, ledger.not_attempted),
        (Outcome::SendError, ledger.send_errors),
        (Outcome::Ok, ledger.received),
        (Outcome::Discarded, ledger.discarded),
        (Outcome::Lost, u64::MAX),
    ] {
        let count = count.min(left);
        outcomes.add_many(outcome, count);
        left -= count;
    }
    outcomes
}

fn datagrams(trial: &UdpTrial, length: Nanos) -> DatagramReport {
    let (sent, facts) = (&trial.sent, &trial.service);
    let nothing = UdpReceived::default();
    let got = trial.received.as_ref().unwrap_or(&nothing);
    let length_s = length.as_secs_f64();
    let per_s = |n: u64| {
        if length_s > 0.0 { n as f64 / length_s } else { 0.0 }
    };
    // A service that lags behind works, and waits for its processor, beyond the time of sending.
    let over = got.over.max(length);
    let missing = sent.sent.saturating_sub(got.received);
    let known = Window { start: Nanos::ZERO, end: length.min(got.arrivals_until) };
    let work_ns = facts.work.map_or(0.0, |law| law.mean_ns());
    DatagramReport {
        sent_per_s: per_s(sent.sent),
        received_per_s: per_s(got.received),
        dropped_per_s: per_s(missing),
        loss_percent: 100.0 * missing as f64 / sent.sent.max(1) as f64,
        theory_loss_percent: arrivals::theory_loss_percent(trial, per_s(sent.sent)),
        duplicates: got.duplicates,
        reordered: got.reordered,
        send_errors: sent.send_errors.clone(),
        discarded: got.discarded.clone(),
        blocked: sent.blocked,
        one_way_delay_ns: quantiles(&got.one_way_delay),
        clock_uncertainty_ns: facts.clock_uncertainty_ns,
        arrival_dispersion: dispersion(&got.arrivals, known),
        dispersion_by_scale: arrivals::dispersion_by_scale(&got.arrivals, known),
        arrival_gap_cv: Gaps::of(&got.arrivals).map(|g| g.cv()),
        burst_max: arrivals::burst_max(&got.arrivals),
        arrivals_per_ms: arrivals::per_ms(&got.arrivals, known),
        rcvbuf_bytes: facts.rcvbuf_bytes,
        buffer_datagrams: facts.buffer_datagrams,
        buffer_work_ns: facts
            .buffer_datagrams
            .filter(|_| work_ns > 0.0)
            .map(|holds| (holds as f64 * work_ns).round() as u64),
        service_work_ns: (work_ns > 0.0).then_some(work_ns.round() as u64),
        service_lost: trial
            .received
            .is_none()
            .then(|| trial.service_lost.as_deref().unwrap_or("it told nothing").to_owned()),
        not_read: trial.not_read.clone(),
        service_pause_ns_max: got.pause_ns_max,
        service_preempted: got.preempted,
        service_scheduled: got.scheduled,
        service_waiting_percent: got.kept_waiting.thread_percent(over),
        service_cpu_percent: got.cpu.thread_percent(over),
        by_client: by_client(trial, got),
    }
}

/// Least and most of any one client, those that nothing was received of included.
fn by_client(trial: &UdpTrial, got: &UdpReceived) -> [u64; 2] {
    let heard_of_all = got.by_client.len() >= trial.spec.clients as usize;
    let least = got.by_client.iter().min().filter(|_| heard_of_all);
    let most = got.by_client.iter().max();
    [least, most].map(|n| n.copied().unwrap_or(0))
}

/// The time series. A datagram counts in the interval in which it was sent, wherever it ended. The
/// last one also has what was sent beyond the end.
fn intervals(trial: &UdpTrial, length: Nanos) -> Vec<Interval> {
    let step = trial.spec.interval.0.max(1);
    let asked = length.min(trial.spec.duration);
    let count = (asked.0.div_ceil(step) as usize).max(1);
    let told = [Some(&trial.sent.by_interval), trial.received.as_ref().map(|r| &r.by_interval)];
    // What has no number is 0, so that endless empty intervals need not be kept.
    let known = told.iter().flatten().map(|n| n.len()).max().unwrap_or(0);
    let of = |counts: &Vec<u64>, index: usize| -> u64 {
        let last = if index + 1 == count { counts.len() } else { index + 1 };
        counts.get(index..last).map_or(0, |n| n.iter().sum())
    };
    (0..count.min(known.max(INTERVALS_MAX)))
        .map(|index| {
            let sent = of(&trial.sent.by_interval, index);
            let received = told[1].map(|counts| of(counts, index));
            let dropped = received.map(|n| sent.saturating_sub(n));
            let start_ns = index as u64 * step;
            Interval {
                start_ns,
                end_ns: (start_ns + step).min(length.0),
                attempted: sent,
                completed: received.unwrap_or(0),
                errors: dropped.unwrap_or(sent),
                sent: Some(sent),
                received,
                dropped,
                ..Interval::default()
            }
        })
        .collect()
}

/// No more intervals in which nothing is known to have happened are listed.
const INTERVALS_MAX: usize = 100_000;

/// Datagrams received of each whole interval.
fn whole_intervals(trial: &UdpTrial, intervals: &[Interval]) -> Vec<f64> {
    let whole = |i: &&Interval| i.end_ns - i.start_ns == trial.spec.interval.0;
    intervals.iter().filter(whole).map(|i| i.completed as f64).collect()
}
