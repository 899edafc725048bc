//! By how much the generator and its host may have changed a figure.
//!
//! A time is *determined* where that is bounded and small, and stated as it was measured.
//! Otherwise it is absent, and its range stands in its place. Throughput is what was achieved. It
//! is a lower bound of what the target can do where the generator was the limit.

use super::figure::{FigureKind, RateCertainty, TimeRange, TimesReport};
use super::report::TrialReport;
use super::timing::{ClockKind, own_cycle_ns};
use super::validity::STALL_NS;
use crate::words::percent;
use knee_load::measure::{Histogram, Trial};
use knee_load::spec::Load;
use knee_load::time::Nanos;

/// A time is determined to within this, …
const DETERMINED: Nanos = Nanos::from_micros(20);
/// … or this share of it, whichever is larger.
const DETERMINED_SHARE: f64 = 0.10;
/// A lower end says nothing below this part of the upper one.
const NOTHING_PART: u64 = 4;
/// A busy generator is the limit of a closed loop from this share of a user's cycle on.
const LIMIT_SHARE: f64 = 0.10;

/// From this share of the time on, in percent, a cause of delays is named.
const CAUSE_PERCENT: f64 = 1.0;

/// From this share of the time on, polling for deadlines apart, a worker has no time left.
pub(crate) const BUSY_PERCENT: f64 = 95.0;
/// A shorter window is spent on connecting, and a worker may well be busy all through it.
pub(crate) const BUSY_WINDOW: Nanos = Nanos::from_millis(100);

/// Puts ranges in the place of the times of `report` that the trial does not determine, and says
/// where the throughput is a bound. `fell_behind`: not all that was due was started.
pub(super) fn bound(report: &mut TrialReport, trial: &Trial, fell_behind: bool) {
    let measured = &trial.measurement;
    let late = because("the generator was late", trial);
    // A stall may lie between the begin of an operation and its sending.
    let stalled_ns = Some(measured.stall_ns_max).filter(|ns| *ns >= STALL_NS).unwrap_or(0);
    // None that was held up would have taken less than the shortest of the others.
    let prompt = measured.service.without(&measured.held_up);
    let least = |undelayed: &Histogram, kind| match kind {
        FigureKind::Mean => undelayed.mean_ns().round() as u64,
        FigureKind::Min => undelayed.min().0.max(prompt.min().0),
        FigureKind::Quantile(q) => undelayed.quantile(q).0,
        FigureKind::Max => undelayed.max().0.saturating_sub(stalled_ns),
    };
    // What an overload offers are connects; it is judged by how punctual those are.
    if !matches!(trial.spec.load, Load::Overload(_)) && !measured.undelayed.is_empty() {
        let undelayed = &measured.undelayed;
        bound_each(&mut report.response_time_ns, &late, |kind, _| least(undelayed, kind));
        if let Some(served) = report.served_mut() {
            let undelayed = undelayed.without(&measured.failed_undelayed);
            bound_each(served, &late, |kind, _| least(&undelayed, kind));
        }
    }
    let clock = report.timing().and_then(|timing| timing.clock);
    if clock == Some(ClockKind::Process) {
        let wait = trial.generator.wait.as_ref();
        let seen_late = wait.map_or(0, |wait| wait.lateness.quantile(0.99).0);
        let because = because("the kernel gave no timestamps", trial);
        bound_each(&mut report.service_time_ns, &because, |_, ns| ns.saturating_sub(seen_late));
    } else if !measured.held_up.is_empty() {
        let mut undelayed = prompt.clone();
        undelayed.merge(&measured.held_up_least);
        bound_each(&mut report.service_time_ns, &late, |kind, _| least(&undelayed, kind));
    }
    if report.throughput_per_s.is_some() && was_the_limit(report, trial, fell_behind) {
        report.throughput_is = RateCertainty::AtLeast;
        report.throughput_ci95_per_s = None;
    }
}

/// Puts ranges in the place of undetermined times. `at_least` gives the least that a figure may be,
/// from its kind and its measured value.
fn bound_each(times: &mut TimesReport, because: &str, at_least: impl Fn(FigureKind, u64) -> u64) {
    for figure in TimesReport::FIGURES {
        let Some(measured) = figure.value(times) else {
            continue;
        };
        let at_least = at_least(figure.kind, measured).min(measured);
        let share = (measured as f64 * DETERMINED_SHARE) as u64;
        if measured.saturating_sub(at_least) <= DETERMINED.0.max(share) {
            continue;
        }
        let (value, ci95) = figure.parts(times);
        *value = None;
        if let Some(ci95) = ci95 {
            *ci95 = None;
        }
        // An end that far away says nothing.
        let at_least = if at_least < measured / NOTHING_PART { 0 } else { at_least };
        let range = TimeRange { at_least, at_most: Some(measured), because: because.to_owned() };
        times.ranges.insert(figure.key.to_owned(), range);
    }
}

/// Whether the generator was the limit: a worker had no time left, and the load had to wait for it.
fn was_the_limit(report: &TrialReport, trial: &Trial, fell_behind: bool) -> bool {
    let measured = &trial.measurement;
    if busy_percent(trial) < BUSY_PERCENT || measured.window.length() < BUSY_WINDOW {
        return false;
    }
    match trial.spec.load {
        Load::Overload(_) => false,
        Load::Open(_) => fell_behind,
        // Limits, sessions and what the target sends by itself pace the users, not the generator.
        Load::Closed { .. }
            if trial.spec.target.protocol.subscribes()
                || measured.rate_limit.is_some()
                || measured.attempts.is_some()
                || measured.sessions.is_some() =>
        {
            false
        }
        // Without timestamps of the kernel a part of the delay is in the response times.
        Load::Closed { .. }
            if report.timing().and_then(|timing| timing.clock) == Some(ClockKind::Process) =>
        {
            true
        }
        Load::Closed { pause, .. } => own_cycle_ns(measured).is_some_and(|(own_ns, cycle_ns)| {
            own_ns >= LIMIT_SHARE * (cycle_ns + pause.law.mean_ns())
        }),
    }
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
    } else if busy >= BUSY_PERCENT {
        format!(": it used {} of a processor", percent(busy))
    } else {
        String::new()
    };
    format!("{what}{cause}")
}

#[cfg(test)]
mod tests;
