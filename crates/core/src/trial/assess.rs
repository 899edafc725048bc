//! From the raw trial to its report: the one place where a trial's statistics are computed.

use super::agents::skew_ns_max;
use super::attempts::attempts_report;
use super::bounds;
use super::evidence::evidence;
use super::messages::messages_report;
use super::offered::{is_even, littles_law, offered_report};
use super::silence::silence;
use super::times::{times_of_part, times_report};
use super::timing::timing_report;
use super::traffic::traffic_report;
use super::validity::{Clause, broken_clauses};
use super::waiting::WaitReport;
use crate::trial::detail::HttpDetail;
use crate::trial::figure::TimesReport;
use crate::trial::report::{GeneratorReport, TrialReport, Verdict};
use crate::trial::sessions::sessions_report;
use crate::trial::silence::SilenceReport;
use crate::trial::traffic::protocol_report;
use knee_load::measure::{GeneratorUse, Histogram, Measurement, Trial, error_share};
use knee_load::spec::Load;
use knee_load::stats::correlation::Correlation;
use knee_load::stats::sample::{BATCHES_MIN, Z975, batch_means_ci95};
use knee_load::stats::stationarity::{
    RESPONSE_SHARE, THROUGHPUT_SHARE, has_course, is_stationary, transient_slots,
};
use knee_load::time::Nanos;
use std::ops::Range;

/// Computes all that is reported of a trial.
///
/// Throughput is that of the stationary part of the window: after the initial transient that
/// MSER-5 finds. A trial that a number of operations ended has no such part: its users are done one
/// after the other, and all of it counts. Intervals of confidence are given only where the series
/// they come from neither drifts nor jumps, as they mean nothing otherwise.
pub fn assess(trial: &Trial) -> TrialReport {
    let measured = &trial.measurement;
    let outcomes = &measured.outcomes;
    let wait = trial.generator.wait.as_ref();
    let silence = silence(trial);
    let flow = StationaryPart::of(trial, &silence);
    let correlation =
        flow.response_stationary.then(|| Correlation::of(&measured.series, &measured.response));
    let ok_share = good_share(measured, trial);
    let mut report = TrialReport {
        label: trial.spec.label.clone(),
        level: trial.spec.level,
        duration_ns: measured.window.length().0,
        attempted: outcomes.total(),
        completed: outcomes.responses(),
        throughput_per_s: flow.throughput_per_s,
        throughput_ci95_per_s: flow.throughput_ci95_per_s,
        goodput_per_s: flow.throughput_per_s.map(|per_s| per_s * ok_share),
        outcomes: outcomes.clone(),
        response_time_ns: operations_report(&measured.response, measured.response_min, correlation),
        service_time_ns: operations_report(&measured.service, measured.service_min, correlation),
        offered: offered_report(trial),
        generator: GeneratorReport {
            wait: wait.map(|used| WaitReport::of(used, measured.window)),
            woken_by_target_per_s: (trial.generator.woken_by_target)
                .filter(|_| measured.window.length() > Nanos::ZERO)
                .map(|woken| woken as f64 / measured.window.length().as_secs_f64()),
            ..generator_report(&trial.generator, flow.completed)
        },
        stationary: flow.throughput_stationary && flow.response_stationary,
        throughput_is: Default::default(),
        throughput_range_per_s: None,
        verdict: Verdict::Valid,
        invalid_because: Vec::new(),
        invalid_clauses: Vec::new(),
        bytes_received: measured.bytes_received,
        detail: detail(trial, silence, &flow, correlation).into(),
        intervals: measured.intervals.clone(),
        kernel: trial.kernel.clone(),
    };
    let broken = broken_clauses(&evidence(trial));
    if !broken.is_empty() {
        report.verdict = Verdict::Invalid;
    }
    (report.invalid_clauses, report.invalid_because) = broken.into_iter().unzip();
    let fell_behind = report.breaks(Clause::FellBehind);
    bounds::bound(&mut report, trial, fell_behind);
    report
}

/// The share of the responses that goodput counts.
fn good_share(measured: &Measurement, trial: &Trial) -> f64 {
    let share = measured.outcomes.good_share();
    match (&measured.messages, trial.spec.target.stream_bounds) {
        (Some(messages), Some(_)) => share * messages.good as f64 / messages.whole.max(1) as f64,
        _ => share,
    }
}

fn detail(
    trial: &Trial,
    silence: SilenceReport,
    flow: &StationaryPart,
    correlation: Option<Correlation>,
) -> HttpDetail {
    let measured = &trial.measurement;
    HttpDetail {
        timing: timing_report(trial),
        transient_ns: flow.transient_ns,
        throughput_whole_per_s: flow.whole_per_s,
        served_time_ns: served(measured, correlation).map(Box::new),
        silence,
        littles_law: match trial.spec.load {
            // Where a number of operations ends the trial, some users have done before others.
            // How long users of sessions pause is up to the sessions, and users who try again
            // pause for that.
            Load::Closed { vusers, pause, .. }
                if trial.spec.operations_max.is_none()
                    && measured.sessions.is_none()
                    && trial.spec.retry.is_none() =>
            {
                littles_law(measured, vusers, pause)
                    .filter(|_| !trial.spec.target.protocol.subscribes())
            }
            _ => None,
        },
        malformed_because: measured.malformed_because.clone(),
        undecodable_because: measured.undecodable_because.clone(),
        stream_reset_because: measured.stream_reset_because.clone(),
        traffic: traffic_report(trial),
        protocol: protocol_report(trial),
        sessions: sessions_report(trial),
        messages: messages_report(trial, correlation),
        requests: attempts_report(trial),
        connections_opened: measured.connections_opened,
        connections_max: measured.connections_max,
        routed: measured.routed.clone(),
        observed: trial.observed.clone(),
        agents: trial.agents.clone(),
        slices: measured.slices,
        slice: None,
        agents_skew_ns_max: skew_ns_max(&trial.agents),
    }
}

/// The part of a window that counts for the throughput.
#[derive(Clone, Copy, PartialEq, Eq)]
enum WindowKind {
    /// The whole slots after an initial transient.
    Steady,
    /// All whole slots, as the target failed or was silent, or as the load itself changes.
    Whole,
    /// All of it, from the first operation to the last, as their number ended it. An operation that
    /// takes long is then the end, and no cut may leave it alone.
    Counted,
}

impl WindowKind {
    fn of(trial: &Trial, silence: &SilenceReport) -> WindowKind {
        let (spec, measured) = (&trial.spec, &trial.measurement);
        let ended_early = measured.window.end < spec.window_end();
        let is_counted = |n| ended_early || measured.started_first() >= n;
        if spec.operations_max.is_some_and(is_counted) {
            WindowKind::Counted
        } else if shows_failure(measured, silence) || !is_even(&spec.load) {
            WindowKind::Whole
        } else {
            WindowKind::Steady
        }
    }
}

/// Whether the trial shows that the target failed or was silent. A transient is how a working
/// target comes to its pace. Where the target does not work, a cut would leave the failure or what
/// came before it, and both belong to the window.
fn shows_failure(measured: &Measurement, silence: &SilenceReport) -> bool {
    let failed = error_share(&measured.outcomes);
    !silence.is_none() || failed >= FAILED_SHARE
}

/// Share of failed operations from which on the trial shows a failure.
const FAILED_SHARE: f64 = 0.01;

/// Whether, in an open loop, more completes after the cut than was started. The cut then took the
/// stall and left the draining of its backlog, and both belong to the window.
fn drains(measured: &Measurement, steady: &[f64], slot: Nanos) -> bool {
    // Of sessions, what was started is not what is served.
    let is_open_loop = !measured.starts.is_empty() && measured.sessions.is_none();
    let per_slot = |n: f64, slots: f64| n / slots.max(1.0);
    let window_slots = measured.window.length().0 as f64 / slot.0.max(1) as f64;
    let started = per_slot(measured.started as f64, window_slots);
    let served = per_slot(steady.iter().sum(), steady.len() as f64);
    is_open_loop && served > started * (1.0 + DRAIN_SHARE)
}

/// Whether an operation waited for about as long as the cut would be, and far longer than others:
/// fewer users may have been at work then, and that belongs to the window.
fn waited_through(measured: &Measurement, cut: Nanos) -> bool {
    let longest = measured.response.max();
    2 * longest.0 >= cut.0 && longest.0 >= STALL_MEDIANS * measured.response.quantile(0.5).0
}

/// Medians of the response time that an operation waits at least that others do not wait for.
const STALL_MEDIANS: u64 = 20;

/// Shortest window in which steps and cycles are looked for.
const COURSE_WINDOW: Nanos = Nanos::from_secs(2);

/// Chance and the ends of the window account for less.
const DRAIN_SHARE: f64 = 0.02;

/// Whether the mean without the first `cut` slots is that of all slots, but for chance and for
/// [`SAME_SHARE`]. There is no transient then: the throughput is that of the whole window.
fn is_by_chance(slots: &[f64], cut: usize) -> bool {
    let mean = |slots: &[f64]| slots.iter().sum::<f64>() / slots.len().max(1) as f64;
    let steady = mean(&slots[cut..]);
    let low = batch_means_ci95(&slots[cut..]).map_or(steady, |[low, _]| low);
    mean(slots) >= low.min(steady * (1.0 - SAME_SHARE))
}

/// What a cut has to change.
const SAME_SHARE: f64 = 0.01;

/// Throughput and stationarity of the window's series.
struct StationaryPart {
    /// `None` where not one response came.
    throughput_per_s: Option<f64>,
    throughput_ci95_per_s: Option<[f64; 2]>,
    throughput_stationary: bool,
    response_stationary: bool,
    transient_ns: u64,
    /// Throughput of the whole window where a transient is cut.
    whole_per_s: Option<f64>,
    /// Responses within the window.
    completed: f64,
}

/// A throughput that is uncertain by this share has a hole or a jump and is not one number …
const UNDETERMINED_SHARE: f64 = 0.5;
/// … unless chance alone, with so few operations, makes it uncertain by a fifth of that.
const BEYOND_CHANCE: f64 = 5.0;

impl StationaryPart {
    fn of(trial: &Trial, silence: &SilenceReport) -> StationaryPart {
        let measured = &trial.measurement;
        let kind = WindowKind::of(trial, silence);
        if measured.slices > 1 {
            return StationaryPart::mean_of_slices(measured);
        }
        let series = &measured.series;
        let slots = series.whole_slots(measured.window.length());
        let completed: f64 = series.completed.iter().sum();
        let whole = match trial.spec.load {
            Load::Closed { .. } => &measured.smoothed()[..],
            _ => &series.completed[..slots],
        };
        // Each is a mean over this number of slots.
        let over = (slots + 1).saturating_sub(whole.len().max(1));
        let cut = transient_slots(whole);
        // A start that is slower than the rest never holds more than it. A target that became slow
        // leaves the rest with less.
        let sum = |slots: &[f64]| slots.iter().sum::<f64>();
        let has_less = sum(&whole[cut..]) <= sum(&whole[..cut]);
        let is_kept = kind != WindowKind::Steady
            || has_less
            || is_by_chance(whole, cut)
            || drains(measured, &whole[cut..], series.slot)
            || waited_through(measured, Nanos(series.slot.0 * cut as u64));
        let transient = if is_kept { 0 } else { cut };
        let steady = &whole[transient..];
        let by_chance = Z975 / completed.sqrt();
        let widest = UNDETERMINED_SHARE.max(BEYOND_CHANCE * by_chance);
        let determined = |slots: &[f64]| {
            batch_means_ci95(slots).filter(|[lo, hi]| (hi - lo) / (hi + lo) < widest)
        };
        // A silence is a finding of its own, and neither a drift nor a jump.
        let between = |slots, over| slots_between(silence, slots, over, series.slot);
        let judged = between(transient..whole.len(), over);
        let judged: Vec<f64> = judged.into_iter().map(|slot| whole[slot]).collect();
        // Enough values and no interval: they move as slowly as the window is long.
        let settled = judged.len() < BATCHES_MIN || determined(&judged).is_some();
        let responses = series.means_ns(between(transient..slots, 1).into_iter());
        let is_long = measured.window.length() >= COURSE_WINDOW;
        let keeps_level = |values: &[f64], grain| !(is_long && has_course(values, grain));
        let throughput_stationary =
            settled && is_stationary(&judged, THROUGHPUT_SHARE) && keeps_level(&judged, 1.0);
        let window_s = measured.window.length().as_secs_f64();
        let slot_s = series.slot.as_secs_f64();
        let throughput_per_s = if kind != WindowKind::Counted && !steady.is_empty() {
            sum(steady) / (slot_s * steady.len() as f64)
        } else if window_s > 0.0 {
            completed / window_s
        } else {
            0.0
        };
        // One operation more or less may have fallen to either side of the ends.
        let grain_per_s = 1.0 / (slot_s * (slots - transient) as f64);
        let ci95 = determined(steady).filter(|_| throughput_stationary && measured.answered > 0);
        StationaryPart {
            throughput_per_s: (measured.answered > 0).then_some(throughput_per_s),
            throughput_ci95_per_s: ci95.map(|[lo, hi]| {
                let low = (lo / slot_s).min(throughput_per_s - grain_per_s);
                [low.max(0.0), (hi / slot_s).max(throughput_per_s + grain_per_s)]
            }),
            throughput_stationary,
            response_stationary: is_stationary(&responses, RESPONSE_SHARE)
                && keeps_level(&responses, 0.0),
            transient_ns: series.slot.0 * transient as u64,
            whole_per_s: (transient > 0).then(|| completed / window_s),
            completed,
        }
    }

    /// The mean over slices: what lies between them is unknown, so that no statistic of a series
    /// applies. The experiment that made them computes how they vary.
    fn mean_of_slices(measured: &Measurement) -> StationaryPart {
        let series = &measured.series;
        let completed: f64 = series.completed.iter().sum();
        let covered_s = series.slot.as_secs_f64() * series.completed.len() as f64;
        let per_s = if covered_s > 0.0 { completed / covered_s } else { 0.0 };
        StationaryPart {
            throughput_per_s: (measured.answered > 0).then_some(per_s),
            throughput_ci95_per_s: None,
            throughput_stationary: true,
            response_stationary: true,
            transient_ns: 0,
            whole_per_s: None,
            completed,
        }
    }
}

/// The slots of a window from which on no silence touches this number of slots, nor the time after
/// it in which what waited is made up for: as long again.
fn slots_between(
    silence: &SilenceReport,
    slots: Range<usize>,
    over: usize,
    slot: Nanos,
) -> Vec<usize> {
    let outages = silence.outages.iter().map(|outage| [outage.start_ns, outage.end_ns]);
    let pauses = silence.pauses.iter().flat_map(|pauses| pauses.times_ns.iter().copied());
    let silent: Vec<[i64; 2]> =
        outages.chain(pauses).map(|[start, end]| [start, 2 * end - start]).collect();
    let touches = |i: &usize| {
        let [from, until] = [*i, i + over].map(|i| (i as u64 * slot.0) as i64);
        silent.iter().any(|[start, end]| from < *end && *start < until)
    };
    slots.filter(|i| !touches(i)).collect()
}

/// Response times of the operations that succeeded, where others did not.
fn served(measured: &Measurement, correlation: Option<Correlation>) -> Option<TimesReport> {
    let served = (!measured.failed.is_empty()).then(|| measured.response.without(&measured.failed));
    served.filter(|served| !served.is_empty()).map(|served| times_of_part(&served, correlation))
}

/// Like [`times_report`], for times that may be censored; `shortest` is the smallest uncensored
/// one.
fn operations_report(
    histogram: &Histogram,
    shortest: Option<Nanos>,
    correlation: Option<Correlation>,
) -> TimesReport {
    TimesReport { min: shortest.map(|t| t.0), ..times_report(histogram, correlation) }
}

pub(crate) fn generator_report(used: &GeneratorUse, completed: f64) -> GeneratorReport {
    let per_million = |seconds: f64| (completed > 0.0).then(|| seconds * 1e6 / completed);
    GeneratorReport {
        backend: used.backend.clone(),
        workers: used.workers,
        cpu_user_s: used.cpu_user_s,
        cpu_system_s: used.cpu_system_s,
        cpu_s_per_million_ops: per_million(used.cpu_user_s + used.cpu_system_s),
        cpu_user_s_per_million_ops: per_million(used.cpu_user_s),
        busiest_worker_percent: used.busiest_worker_percent,
        busiest_worker_spin_percent: used.busiest_worker_spin_percent,
        busiest_worker_waiting_percent: used.busiest_worker_waiting_percent,
        steal_percent: used.steal_percent,
        peak_rss_bytes: used.peak_rss_bytes,
        woken_by_target_per_s: None,
        wait: None,
    }
}

#[cfg(test)]
pub(crate) mod tests;
