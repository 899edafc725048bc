//! From a trial of datagrams to its report: where each went, how they were offered and arrived.
//!
//! Arrivals are bunched or even at several time scales. The load that was promised is compared with
//! what was sent.

mod ledger;
#[cfg(test)]
pub(crate) mod tests;

use crate::trial::assess::generator_report;
use crate::trial::detail::{DatagramReport, DispersionAt, LedgerReport, UdpDetail};
use crate::trial::offered::{OfferedReport, gap_evidence_within, schedule_demand};
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::times::{quantiles, times_report};
use crate::trial::validity::{Clause, PacingQuantiles, ValidityEvidence, broken_clauses};
use crate::words::percent;
use knee_load::arrival::{ArrivalProcess, Arrivals};
use knee_load::experiment::udp::{ClientWait, ClientsAs, UdpReceived, UdpTrial};
use knee_load::law::Law;
use knee_load::measure::{Interval, Outcome, Outcomes, Window};
use knee_load::spec::{ArrivalLaw, Rate, Share};
use knee_load::stats::buffer::Buffer;
use knee_load::stats::gaps::{Gaps, WindowCounts, counts, dispersion, exponential_test};
use knee_load::stats::sample::batch_means_ci95;
use knee_load::stats::stationarity::{THROUGHPUT_SHARE, is_stationary};
use knee_load::time::Nanos;
pub use ledger::ledger;

/// Computes all that is reported of a trial of datagrams.
///
/// `attempted` are those intended, `completed` those received. Rates are over the time of sending.
/// That is all of the duration, or the used part of it where a number of datagrams or the user
/// ended it.
pub fn assess(trial: &UdpTrial) -> TrialReport {
    let length = length(trial);
    let ledger = ledger(trial);
    let (invalid_clauses, invalid_because): (Vec<_>, Vec<_>) =
        broken_promises(trial, length).into_iter().unzip();
    let datagrams = datagrams(trial, &ledger, length);
    let throughput_per_s = datagrams.received_per_s;
    let intervals = intervals(trial, length);
    let is_whole = |i: &&Interval| i.end_ns - i.start_ns == trial.spec.interval.0;
    let series: Vec<f64> = intervals.iter().filter(is_whole).map(|i| i.completed as f64).collect();
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
        throughput_is: Default::default(),
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
        offered: offered_report(trial, length),
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
    if trial.interrupted || service_vanished {
        used.min(asked)
    } else if trial.spec.datagrams_max.is_some() {
        (used + last_wait(trial)).min(asked)
    } else {
        // A sender that was blocked at the end may have sent beyond it.
        used.max(asked)
    }
}

/// The wait that belongs to the last datagrams: a number of them has fewer waits in between than a
/// rate counts. Clients that wait after each datagram all begin with one; a schedule is one for
/// all.
fn last_wait(trial: &UdpTrial) -> Nanos {
    let sent = &trial.sent;
    let attempted = sent.intended.saturating_sub(sent.not_attempted);
    let spec = &trial.spec;
    let in_turn = spec.carried_as == ClientsAs::Multiplexed && spec.wait.cycle().is_none();
    let is_one_by_one = in_turn || schedule(trial).is_some();
    let first = if is_one_by_one { 1 } else { u64::from(spec.clients) };
    let between = sent.elapsed - sent.starts.first().copied().unwrap_or(sent.elapsed);
    let waits = attempted.saturating_sub(first).max(1);
    // A schedule that does not begin at once has had a wait before its first datagram.
    let missing =
        between.0 as f64 * first as f64 / waits as f64 - (sent.elapsed - between).0 as f64;
    Nanos(missing.max(0.0) as u64)
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

fn datagrams(trial: &UdpTrial, ledger: &LedgerReport, length: Nanos) -> DatagramReport {
    let (sent, facts) = (&trial.sent, &trial.service);
    let nothing = UdpReceived::default();
    let got = trial.received.as_ref().unwrap_or(&nothing);
    let length_s = length.as_secs_f64();
    let per_s = |n: u64| {
        if length_s > 0.0 { n as f64 / length_s } else { 0.0 }
    };
    // A service that lags behind works, and waits for its processor, beyond the time of sending.
    let over = got.over.max(length);
    let known = Window { start: Nanos::ZERO, end: length.min(got.arrivals_until) };
    let work_ns = facts.work.map_or(0.0, |law| law.mean_ns());
    DatagramReport {
        sent_per_s: per_s(sent.sent),
        received_per_s: per_s(got.received),
        dropped_per_s: per_s(ledger.attempted().saturating_sub(got.received)),
        loss_percent: ledger.loss_percent(),
        theory_loss_percent: theory_loss_percent(trial, per_s(sent.sent)),
        duplicates: got.duplicates,
        reordered: got.reordered,
        send_errors: sent.send_errors.clone(),
        discarded: got.discarded.clone(),
        blocked: sent.blocked,
        one_way_delay_ns: quantiles(&got.one_way_delay),
        clock_uncertainty_ns: facts.clock_uncertainty_ns,
        arrival_dispersion: dispersion(&got.arrivals, known),
        dispersion_by_scale: dispersion_by_scale(&got.arrivals, known),
        arrival_gap_cv: Gaps::of(&got.arrivals).map(|g| g.cv()),
        burst_max: burst_max(&got.arrivals),
        arrivals_per_ms: per_ms(&got.arrivals, known),
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
    let sent = &trial.sent;
    let received = trial.received.as_ref().map(|r| &r.by_interval);
    let series = [Some(&sent.by_interval), received, Some(&sent.refused_by_interval)];
    // What has no number is 0, so that endless empty intervals need not be kept.
    let known = series.iter().flatten().map(|n| n.len()).max().unwrap_or(0);
    let count_in = |counts: &Vec<u64>, index: usize| -> u64 {
        let last = if index + 1 == count { counts.len() } else { index + 1 };
        counts.get(index..last).map_or(0, |n| n.iter().sum())
    };
    (0..count.min(known.max(INTERVALS_MAX)))
        .map(|index| {
            let sent = count_in(&trial.sent.by_interval, index);
            let attempted = sent + count_in(&trial.sent.refused_by_interval, index);
            let received = received.map(|counts| count_in(counts, index));
            let dropped = received.map(|n| attempted.saturating_sub(n));
            let start_ns = index as u64 * step;
            Interval {
                start_ns,
                end_ns: (start_ns + step).min(length.0),
                attempted,
                completed: received.unwrap_or(0),
                errors: dropped.unwrap_or(attempted),
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

const MS: Nanos = Nanos::from_millis(1);
/// The scales of the plot: three to the decade from here on, as long as there are ten bins.
const SCALE_MIN_NS: u64 = 100_000;
const SCALE_STEPS: [u64; 3] = [1, 2, 5];
const SCALE_DECADES: u32 = 6;
/// Maximum arrivals that are counted in one millisecond.
const PER_MS_MAX: u64 = 10_000;

/// The index of dispersion of ascending `times`, complete within `known`, at three time
/// scales to the decade.
fn dispersion_by_scale(times: &[Nanos], known: Window) -> Vec<DispersionAt> {
    let scales = (0..SCALE_DECADES)
        .flat_map(|decade| SCALE_STEPS.map(|step| step * SCALE_MIN_NS * 10u64.pow(decade)));
    scales
        .filter_map(|scale_ns| {
            let WindowCounts { dispersion, .. } = counts(times, known, Nanos(scale_ns))?;
            Some(DispersionAt { scale_ns, index: dispersion })
        })
        .collect()
}

/// Number of whole milliseconds of `known` by how many of these ascending times they have. Its
/// last entry is not 0.
fn per_ms(times: &[Nanos], known: Window) -> Vec<u64> {
    let whole = known.length().0 / MS.0;
    if whole == 0 {
        return Vec::new();
    }
    let mut by_count: Vec<u64> = vec![0];
    let mut busy = 0;
    let bin_index = |t: &Nanos| (*t - known.start).0 / MS.0;
    for bin in times.chunk_by(|a, b| bin_index(a) == bin_index(b)) {
        if bin_index(&bin[0]) >= whole {
            break;
        }
        let count = (bin.len() as u64).min(PER_MS_MAX) as usize;
        if count >= by_count.len() {
            by_count.resize(count + 1, 0);
        }
        by_count[count] += 1;
        busy += 1;
    }
    by_count[0] = whole - busy;
    by_count
}

/// The most of these ascending times in any millisecond that begins with one of them.
fn burst_max(times: &[Nanos]) -> u64 {
    let mut first = 0;
    let mut most = 0;
    for (last, &t) in times.iter().enumerate() {
        while t - times[first] >= MS {
            first += 1;
        }
        most = most.max(last + 1 - first);
    }
    most as u64
}

/// The share of the datagrams, in percent, that a single server with this fixed work and this
/// buffer loses of what was sent. `None` where work is not fixed or the buffer not known.
///
/// The times of sending themselves go through the buffer, where all are known. On one host a
/// datagram is in the buffer as its send call returns. Where not all times of a Poisson schedule
/// are kept, simulated ones at the achieved rate take their place. The buffer is that of a UDP
/// socket, which has less room than M/D/1/K would (see [`Buffer::of_udp_socket`]).
fn theory_loss_percent(trial: &UdpTrial, sent_per_s: f64) -> Option<f64> {
    let Some(Law::Fixed(work)) = trial.service.work.filter(|work| !work.is_zero()) else {
        return None;
    };
    let buffer = Buffer::of_udp_socket(trial.service.buffer_datagrams?);
    let starts = &trial.sent.starts;
    if starts.is_empty() {
        return None;
    }
    let percent = |lost: u64, sent: usize| 100.0 * lost as f64 / sent as f64;
    if starts.len() as u64 == trial.sent.sent {
        return Some(percent(buffer.lost(starts.iter().copied(), work), starts.len()));
    }
    let ClientWait::Schedule { arrival, .. } = &trial.spec.wait else {
        return None;
    };
    let rate = Rate::from_f64(sent_per_s).filter(|_| *arrival == ArrivalLaw::Poisson)?;
    let mut schedule = Arrivals::of(rate, arrival, Share::WHOLE, trial.spec.seed);
    let simulated = std::iter::from_fn(|| schedule.next()).take(SIMULATED);
    Some(percent(buffer.lost(simulated, work), SIMULATED))
}

/// Enough that chance moves a loss of one in a hundred by a hundredth of itself.
const SIMULATED: usize = 1_000_000;

/// How well the senders' load was kept, in a trial of this length.
fn offered_report(trial: &UdpTrial, length: Nanos) -> OfferedReport {
    let sent = &trial.sent;
    let length_s = length.as_secs_f64();
    let per_s = |n: f64| if length_s > 0.0 { n / length_s } else { 0.0 };
    let schedule = schedule(trial);
    let poisson = schedule.filter(|(_, arrival)| **arrival == ArrivalLaw::Poisson);
    let asked = schedule.map(|load| schedule_demand(load, whole(length)));
    OfferedReport {
        asked_per_s: asked.map(|a| per_s(a.operations)),
        achieved_per_s: per_s(sent.sent as f64),
        arrival: trial.spec.wait.name(),
        changes_by_plan: false,
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
fn broken_promises(trial: &UdpTrial, length: Nanos) -> Vec<(Clause, String)> {
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
    let broken = broken_clauses(&ValidityEvidence {
        asked: is_whole.then(|| schedule_demand(load, whole(length))),
        window: length,
        open_loop: true,
        attempted: sent.intended,
        started: sent.intended.saturating_sub(sent.not_attempted),
        pacing_error_ns,
        stall_ns_max: sent.stall_ns_max,
        // Only what the kernel took has a time of sending: what it refused leaves gaps.
        gaps: gap_evidence_within(load, &sent.starts, known(trial, length))
            .filter(|_| sent.send_errors.values().all(|&n| n == 0)),
        ..ValidityEvidence::default()
    });
    broken.into_iter().chain(shared).collect()
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
    let shares_processors = service.same_host && service.cpus.iter().any(|cpu| cpus.contains(cpu));
    let received = trial.received.as_ref().filter(|_| shares_processors);
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
