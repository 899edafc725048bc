//! What the measurements of `knee throttle` say.

use super::ThrottleDiagnosis;
use crate::diagnosis::Diagnosis;
use crate::experiment::throttle::analysis::{EARLY, Hold, rate_row, usual};
use crate::experiment::throttle::hold::HoldMethod;
use crate::experiment::throttle::holds::HoldTrial;
use crate::experiment::throttle::wait::WaitMethod;
use crate::experiment::throttle::waits::WaitTrial;
use crate::spec::ArrivalLaw;
use crate::time::Nanos;

/// A sleep that takes so much more than asked for overshoots.
const OVERSHOOTS: f64 = 0.01;
/// Less timer slack than this is not worth a word, in nanoseconds.
const SLACK_NS: f64 = 10_000.0;
/// Lateness of the throttle below this is no stall however short its gaps are, in nanoseconds.
const STALL_NS: f64 = 100_000.0;
/// A method's gaps vary by itself, not by the machine, where they do so many times as much as the
/// throttle's did.
const OF_ITSELF: f64 = 2.0;
/// A larger share of stolen samples shapes the table.
const STOLEN: f64 = 0.01;
/// A coefficient of variation of the gaps of a constant schedule from which they come in lumps: a
/// Poisson process has 1.
const LUMPY: f64 = 0.5;

/// What waits say.
pub fn wait_diagnoses(trials: &[WaitTrial]) -> Vec<Diagnosis> {
    let found = sleep_overshoots(trials)
        .into_iter()
        .chain(timer_slack(trials))
        .chain(host_steals(trials))
        .chain(waits_end_early(trials));
    found.map(Diagnosis::Throttle).collect()
}

fn sleep_overshoots(trials: &[WaitTrial]) -> Option<ThrottleDiagnosis> {
    let sleep = usual(trials.iter().filter(|t| t.spec.method == WaitMethod::Sleep))?;
    let asked_ns = sleep.spec.delay.0 as f64;
    let mean_ns = sleep.waits.mean_ns;
    (mean_ns > asked_ns * (1.0 + OVERSHOOTS))
        .then_some(ThrottleDiagnosis::SleepOvershoots { asked_ns, mean_ns })
}

fn timer_slack(trials: &[WaitTrial]) -> Option<ThrottleDiagnosis> {
    let of = |method: WaitMethod| usual(trials.iter().filter(|t| t.spec.method == method));
    let (default, least) = (of(WaitMethod::Sleep)?, of(WaitMethod::SleepMinSlack)?);
    let late = |t: &WaitTrial| t.waits.overshoot.quantile(0.5).0 as f64;
    let (default_ns, least_ns) = (late(default), late(least));
    let is_most = default_ns - least_ns >= SLACK_NS && least_ns <= default_ns / 2.0;
    (is_most && default.spec.delay == least.spec.delay).then_some(ThrottleDiagnosis::TimerSlack {
        asked_ns: default.spec.delay.0 as f64,
        default_ns,
        least_ns,
    })
}

fn host_steals(trials: &[WaitTrial]) -> Option<ThrottleDiagnosis> {
    let samples = trials.iter().map(|t| t.waits.samples).sum::<u64>() as f64;
    let stolen = trials.iter().map(|t| t.waits.stolen).sum::<u64>() as f64;
    (stolen > STOLEN * samples).then(|| ThrottleDiagnosis::HostSteals {
        percent: 100.0 * stolen / samples,
        samples,
    })
}

fn waits_end_early(trials: &[WaitTrial]) -> Vec<ThrottleDiagnosis> {
    let of = |method: WaitMethod| {
        let rows = || trials.iter().filter(|t| t.spec.method == method);
        let samples = rows().map(|t| t.waits.samples).sum::<u64>() as f64;
        let early = rows().map(|t| t.waits.early).sum::<u64>() as f64;
        (early > EARLY * samples).then(|| ThrottleDiagnosis::WaitsEndEarly {
            method: method.name(),
            percent: 100.0 * early / samples,
            early,
        })
    };
    WaitMethod::ALL.into_iter().filter_map(of).collect()
}

/// What rates say.
///
/// The operations are too long where they leave no room and the best of the ways to hold the rate
/// missed it; nothing more is said then, as nothing could have held it. Otherwise each way that
/// missed it, and each that held it in lumps, is named; the throttle's own failure is an error.
pub fn hold_diagnoses(trials: &[HoldTrial]) -> Vec<Diagnosis> {
    if let Some(found) = operations_too_long(trials) {
        return vec![Diagnosis::Throttle(found)];
    }
    // One that groups operations as it is told makes lumps of its own.
    let is_plain =
        |t: &&HoldTrial| t.spec.method == HoldMethod::Throttle && t.spec.wait_min == Nanos::ZERO;
    let throttle = trials.iter().find(is_plain).and_then(rate_row);
    let disturbance = throttle.map_or(0.0, |row| row.gap_cv);
    let of = |trial: &HoldTrial| {
        let other = || late(trial).or_else(|| in_lumps(trial, disturbance));
        missed(trial).or_else(other)
    };
    let found = trials.iter().filter_map(of);
    found.map(Diagnosis::Throttle).collect()
}

fn operations_too_long(trials: &[HoldTrial]) -> Option<ThrottleDiagnosis> {
    let holds = || trials.iter().filter_map(|t| Some((t, Hold::of(t)?)));
    if holds().any(|(_, hold)| hold.is_held || hold.has_room()) {
        return None;
    }
    let (trial, quickest) =
        holds().min_by(|(_, a), (_, b)| a.operation_ns.total_cmp(&b.operation_ns))?;
    Some(ThrottleDiagnosis::OperationsTooLong {
        operation_ns: quickest.operation_ns,
        gap_ns: 1e9 / trial.spec.rate.per_s(),
    })
}

fn missed(trial: &HoldTrial) -> Option<ThrottleDiagnosis> {
    let hold = Hold::of(trial).filter(|hold| !hold.is_held)?;
    let row = rate_row(trial)?;
    if trial.spec.method == HoldMethod::Throttle && hold.has_room() {
        return Some(ThrottleDiagnosis::ThrottleNotHeld {
            asked_per_s: row.asked_per_s,
            achieved_per_s: row.achieved_per_s,
            load_percent: 100.0 * hold.load,
            error_max_ns: row.error_max_ns as f64,
            skipped: row.skipped as f64,
        });
    }
    Some(ThrottleDiagnosis::RateNotHeld {
        method: trial.spec.method,
        asked_per_s: row.asked_per_s,
        achieved_per_s: row.achieved_per_s,
        operation_ns: hold.operation_ns,
    })
}

/// A throttle that was told to group operations, or whose schedule has gaps of any length, cannot
/// be told to be late from its gap.
fn late(trial: &HoldTrial) -> Option<ThrottleDiagnosis> {
    let spec = &trial.spec;
    let is_regular = spec.arrival == ArrivalLaw::Constant && spec.wait_min == Nanos::ZERO;
    if spec.method != HoldMethod::Throttle || !is_regular {
        return None;
    }
    let row = rate_row(trial)?;
    let p99_ns = row.error_p99_ns as f64;
    (p99_ns > (1e9 / row.asked_per_s).max(STALL_NS)).then_some(ThrottleDiagnosis::ThrottleLate {
        error_p99_ns: p99_ns,
        error_max_ns: row.error_max_ns as f64,
        load_percent: 100.0 * Hold::of(trial)?.load,
    })
}

/// The throttle is left out: it groups operations only where it is told to. `disturbance` is how
/// much its gaps varied on this machine.
fn in_lumps(trial: &HoldTrial, disturbance: f64) -> Option<ThrottleDiagnosis> {
    let spec = &trial.spec;
    if spec.method == HoldMethod::Throttle || spec.arrival != ArrivalLaw::Constant {
        return None;
    }
    let least = LUMPY.max(OF_ITSELF * disturbance);
    let row = rate_row(trial).filter(|row| row.gap_cv > least)?;
    Some(ThrottleDiagnosis::HeldInLumps {
        method: spec.method,
        gap_cv: row.gap_cv,
        error_p50_ns: row.error_p50_ns as f64,
    })
}
