//! By how much the generator and its host may have changed a figure.
//!
//! A figure is *determined* where that is bounded and small, and stated as it was measured.
//! Otherwise it is absent, and its range stands in its place.

use super::figure::{FigureKind, RateRange, TimeRange};
use super::offered::asked;
use super::report::{TimesReport, TrialReport};
use super::timing::ClockKind;
use crate::words::{number, percent};
use knee_load::measure::{Histogram, Measurement, Trial};
use knee_load::spec::Load;
use knee_load::time::Nanos;

/// A time is determined to within this, …
const DETERMINED: Nanos = Nanos::from_micros(20);
/// … or this share of it, whichever is larger; a rate to within this share.
const DETERMINED_SHARE: f64 = 0.10;

/// From this share of the time on, in percent, a cause of delays is named.
const CAUSE_PERCENT: f64 = 1.0;

/// From this share of a core on, polling for deadlines apart, a worker has no time left.
pub(crate) const BUSY_PERCENT: f64 = 95.0;
/// A shorter window is spent on connecting, and a worker may well be busy all through it.
pub(crate) const BUSY_WINDOW: Nanos = Nanos::from_millis(100);

fn is_determined_time(at_least: u64, at_most: u64) -> bool {
    let share = (at_most as f64 * DETERMINED_SHARE) as u64;
    at_most.saturating_sub(at_least) <= DETERMINED.0.max(share)
}

/// Puts ranges in the place of the figures of `report` that the trial does not determine.
pub(super) fn bound(report: &mut TrialReport, trial: &Trial) {
    let measured = &trial.measurement;
    // What an overload offers are connects; it is judged by how punctual those are.
    if !matches!(trial.spec.load, Load::Overload(_)) && !measured.undelayed.is_empty() {
        let because = because("the generator was late", trial);
        bound_times(&mut report.response_time_ns, &measured.undelayed, &because);
    }
    let clock = report.timing().and_then(|timing| timing.clock);
    if clock == Some(ClockKind::Process) {
        let seen_late = trial.generator.wait.as_ref();
        let seen_late = seen_late.map_or(0, |wait| wait.lateness.quantile(0.99).0);
        let because = because("the kernel gave no timestamps", trial);
        bound_each(&mut report.service_time_ns, &because, |_, ns| ns.saturating_sub(seen_late));
    }
    if let Some(range) = throughput_range(report, trial) {
        report.throughput_per_s = None;
        report.throughput_ci95_per_s = None;
        report.goodput_per_s = None;
        report.throughput_range_per_s = Some(range);
    }
}

/// `undelayed`: the same times without the generator's delays.
fn bound_times(times: &mut TimesReport, undelayed: &Histogram, because: &str) {
    bound_each(times, because, |kind, measured| {
        let at_least = match kind {
            FigureKind::Mean => undelayed.mean_ns().round() as u64,
            FigureKind::Min => undelayed.min().0,
            FigureKind::Quantile(q) => undelayed.quantile(q).0,
            FigureKind::Max => undelayed.max().0,
        };
        at_least.min(measured)
    });
}

/// `at_least` has the least that a figure may be, by its kind and its value as measured.
fn bound_each(times: &mut TimesReport, because: &str, at_least: impl Fn(FigureKind, u64) -> u64) {
    for figure in TimesReport::FIGURES {
        let Some(measured) = figure.value(times) else {
            continue;
        };
        let at_least = at_least(figure.kind, measured);
        if is_determined_time(at_least, measured) {
            continue;
        }
        let (value, ci95) = figure.parts(times);
        *value = None;
        if let Some(ci95) = ci95 {
            *ci95 = None;
        }
        let range = TimeRange { at_least, at_most: Some(measured), because: because.to_owned() };
        times.ranges.insert(figure.key.to_owned(), range);
    }
}

/// The range of the throughput; `None` where it is determined.
fn throughput_range(report: &TrialReport, trial: &Trial) -> Option<RateRange> {
    let at_least = report.throughput_per_s?;
    let measured = &trial.measurement;
    let range = |at_most, because| RateRange { at_least, at_most, because };
    match trial.spec.load {
        Load::Overload(_) => None,
        Load::Open(_) => {
            let demand = asked(trial)?;
            let started = measured.started_first().max(1) as f64;
            let by_chance = demand.operations - demand.slack <= started;
            let due = if by_chance { started } else { demand.operations };
            let at_most = at_least * due / started;
            let is_determined = at_most - at_least <= DETERMINED_SHARE * at_most;
            let because = || because("the generator did not start all that was due", trial);
            (!is_determined && measured.sessions.is_none()).then(|| range(Some(at_most), because()))
        }
        // Pauses, limits and what the target sends by itself pace the users, not the generator.
        Load::Closed { pause, .. }
            if pause.law.mean_ns() > 0.0
                || trial.spec.target.protocol.subscribes()
                || measured.rate_limit.is_some()
                || measured.attempts.is_some()
                || measured.sessions.is_some() =>
        {
            None
        }
        Load::Closed { .. } => {
            let (own_ns, cycle_ns) = own_cycle_ns(measured)?;
            if report.timing()?.clock == Some(ClockKind::Process) {
                let busy = busy_percent(trial);
                let is_full = busy > BUSY_PERCENT && measured.window.length() >= BUSY_WINDOW;
                return is_full.then(|| range(None, because("the generator was busy", trial)));
            }
            let is_determined = own_ns <= (DETERMINED.0 as f64).max(DETERMINED_SHARE * cycle_ns);
            let at_most = at_least / (1.0 - own_ns / cycle_ns).max(f64::EPSILON);
            (!is_determined).then(|| {
                let because = because("the generator read responses late", trial);
                range(Some(at_most), because)
            })
        }
    }
}

/// The generator's part of a user's cycle, and the cycle: a response, and what the generator takes
/// to see it. Mean values; `None` where no response came.
pub(super) fn own_cycle_ns(measured: &Measurement) -> Option<(f64, f64)> {
    let pacing_ns = measured.stage(knee_load::measure::Stage::Pacing)?.mean_ns();
    let own_ns = pacing_ns + measured.pick_up.mean_ns();
    let cycle_ns = measured.response.mean_ns() + measured.pick_up.mean_ns();
    (cycle_ns > 0.0).then_some((own_ns, cycle_ns))
}

fn busy_percent(trial: &Trial) -> f64 {
    trial.generator.busiest_worker_percent - trial.generator.busiest_worker_spin_percent
}

/// An event with its cause as the host shows it, in words.
fn because(what: &str, trial: &Trial) -> String {
    let used = &trial.generator;
    let busy = busy_percent(trial);
    let steal = used.steal_percent.unwrap_or(0.0);
    let cause = if steal >= CAUSE_PERCENT {
        format!(": the host gave {} of its time to others", percent(steal))
    } else if used.busiest_worker_waiting_percent >= CAUSE_PERCENT {
        let waiting = percent(used.busiest_worker_waiting_percent);
        format!(": others had its processor for {waiting} of the time")
    } else if busy > BUSY_PERCENT {
        format!(": it used {} of a processor", percent(busy))
    } else {
        String::new()
    };
    format!("{what}{cause}")
}

/// Least number of operations from which an undetermined trial is INVALID.
const OPERATIONS_MIN: u64 = 100;

/// Why neither the throughput nor the median is determined; `None` where one is.
pub(super) fn undetermined(report: &TrialReport) -> Option<String> {
    let throughput = report.throughput_range_per_s.as_ref()?;
    if report.attempted < OPERATIONS_MIN {
        return None;
    }
    let median = report.response_time_ns.ranges.get("p50")?;
    let most = match throughput.at_most {
        Some(most) => format!(" to {}/s", number(most)),
        None => "/s or more".to_owned(),
    };
    Some(format!(
        "neither throughput ({}{most}) nor the median is determined: {}",
        number(throughput.at_least),
        median.because
    ))
}

#[cfg(test)]
mod tests;
