//! How well a machine waits and holds a rate: statistics of what was measured, and what follows.

mod advice;
mod margins;

use crate::experiment::throttle::report::{RateRow, WaitRow};
pub use advice::{BUDGETS_PERCENT, EARLY, ends_early, recommendations};
use knee_load::experiment::throttle::{Chore, HoldMethod, HoldTrial, WaitTrial};
use knee_load::spec::ArrivalLaw;
use knee_load::stats::sample::t9995;
use knee_load::time::Nanos;
pub use margins::{hybrid_margin, margin_rows, margins_of};

/// The delay that a machine's ways to wait are compared at, and the one of a rate of 1,000/s.
pub const REFERENCE_DELAY: Nanos = Nanos::from_millis(1);

/// Of these trials the one without a chore whose delay is nearest to [`REFERENCE_DELAY`], by ratio.
pub(crate) fn at_reference_delay<'a>(
    trials: impl IntoIterator<Item = &'a WaitTrial>,
) -> Option<&'a WaitTrial> {
    let plain = trials
        .into_iter()
        .filter(|t| t.spec.chore == Chore::None && t.waits.samples >= SAMPLES_MIN);
    let away = |t: &&WaitTrial| {
        let ratio = t.spec.delay.0.max(1) as f64 / REFERENCE_DELAY.0 as f64;
        ratio.ln().abs()
    };
    plain.min_by(|a, b| away(a).total_cmp(&away(b)))
}

/// Fewer waits have no spread.
const SAMPLES_MIN: u64 = 2;

/// The statistics of one way to wait; `None` of fewer than two waits (the user ended it early).
///
/// The error is half of the 99.9 % confidence interval of the mean by Student's t,
/// t(0.9995, n − 1)·s/√n, as benchmark harnesses print it (JMH does). It takes the waits as
/// independent, which those of one sleeping thread nearly are.
pub fn wait_row(trial: &WaitTrial) -> Option<WaitRow> {
    let (spec, waits) = (&trial.spec, &trial.waits);
    if waits.samples < SAMPLES_MIN {
        return None;
    }
    let n = waits.samples as f64;
    let std_dev = (waits.deviations_ns2 / (n - 1.0)).sqrt();
    let error = t9995(waits.samples - 1) * std_dev / n.sqrt();
    let late = |q| waits.overshoot.quantile(q).0;
    let has_chore = spec.chore != Chore::None && !waits.chore.is_empty();
    Some(WaitRow {
        method: spec.method.name().to_owned(),
        op: spec.chore.name().to_owned(),
        delay_ns: spec.delay.0,
        mean_ns: waits.mean_ns.round() as u64,
        error_ns: error.round() as u64,
        std_dev_ns: std_dev.round() as u64,
        overshoot_p50_ns: late(0.5),
        overshoot_p1_ns: late(0.01),
        overshoot_p10_ns: late(0.1),
        overshoot_p90_ns: late(0.9),
        overshoot_p99_ns: late(0.99),
        overshoot_max_ns: waits.overshoot.max().0,
        cpu_percent: waits.cpu.thread_percent(waits.elapsed),
        samples: waits.samples,
        stolen_samples: waits.stolen,
        early_samples: waits.early,
        op_mean_ns: has_chore.then(|| waits.chore.mean_ns().round() as u64),
    })
}

/// A rate is held that is right to this share (as for a trial of `knee run`).
const TOLERANCE: f64 = 0.001;
/// Operations that leave less of the time than this share leave no time to wait in.
const ROOM: f64 = 0.02;

/// The statistics of one way to hold a rate; `None` where nothing was run.
///
/// The achieved rate is the reciprocal slope of the operations' begins over their numbers. The
/// drift is the slope of their lateness over the schedule. Both are by least squares, so neither
/// depends on how late the first and the last operation were.
pub fn rate_row(trial: &HoldTrial) -> Option<RateRow> {
    let (spec, holds) = (&trial.spec, &trial.holds);
    let elapsed = holds.elapsed.as_secs_f64();
    if holds.operations == 0 || elapsed <= 0.0 {
        return None;
    }
    let by_count = holds.operations as f64 / elapsed;
    let pace = holds.pace.slope().filter(|s| *s > 0.0).map(f64::recip);
    let gap_cv = match holds.gap.std_dev() {
        Some(std_dev) if holds.gap.mean > 0.0 => std_dev / holds.gap.mean,
        _ => 0.0,
    };
    let late = |q| holds.error.quantile(q).0;
    Some(RateRow {
        method: spec.method.name().to_owned(),
        asked_per_s: spec.rate.per_s(),
        achieved_per_s: pace.unwrap_or(by_count),
        drift_ppm: 1e6 * holds.lateness.slope().unwrap_or(0.0),
        drift_error_ppm: holds.lateness.slope_error().map(|e| 1e6 * e),
        error_p50_ns: late(0.5),
        error_p99_ns: late(0.99),
        error_max_ns: holds.error.max().0,
        gap_cv,
        cpu_percent: holds.cpu.thread_percent(holds.elapsed),
        op_percent: holds.operating.thread_percent(holds.elapsed),
        operations: holds.operations,
        skipped: holds.skipped,
        early: holds.early,
        shifted_ns: holds.shifted.0,
    })
}

/// How a rate was held.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct HeldRate {
    /// By how much the rate was missed, as a share of it: positive where too few operations were
    /// made.
    pub shortfall: f64,
    /// Whether it was held: within 0.1 %, or within one operation.
    pub is_held: bool,
    /// Mean time of an operation, in nanoseconds.
    pub operation_ns: f64,
    /// The share of the time that the operations alone would take at the rate asked for.
    pub load: f64,
}

impl HeldRate {
    /// What a trial shows; `None` of fewer than two operations.
    ///
    /// The rate may be missed by the slope of the lateness or by the count of operations up to the
    /// last. A stall that was caught up with bends the slope, a stall at the very end changes the
    /// count. A rate that was not held shows in both, so the smaller of them counts.
    pub fn of(trial: &HoldTrial) -> Option<HeldRate> {
        let (spec, holds) = (&trial.spec, &trial.holds);
        let wanted = holds.operations + holds.skipped;
        let made = holds.operations as f64 / wanted as f64;
        let missed_by = |stretched: f64| 1.0 - made / stretched.max(f64::MIN_POSITIVE);
        // Lateness that grows by s seconds per second stretches the schedule by 1 + s.
        let by_slope = missed_by(1.0 + holds.lateness.slope()?);
        let is_constant = spec.arrival == ArrivalLaw::Constant;
        let shortfall = if is_constant {
            let took = holds.last.as_secs_f64();
            let by_count = missed_by(took * spec.rate.per_s() / (wanted - 1).max(1) as f64);
            if by_count.abs() < by_slope.abs() { by_count } else { by_slope }
        } else {
            by_slope
        };
        // Ways that know no schedule but the constant one leave another by chance.
        let by_chance = if is_constant || follows_any_schedule(spec.method) {
            0.0
        } else {
            4.0 / (holds.operations as f64).sqrt()
        };
        let operation_ns = holds.operating.0 as f64 / holds.operations as f64;
        Some(HeldRate {
            shortfall,
            is_held: shortfall.abs() <= TOLERANCE + by_chance
                || shortfall.abs() * holds.operations as f64 <= 1.0,
            operation_ns,
            load: operation_ns / 1e9 * spec.rate.per_s(),
        })
    }

    /// Whether the operations leave time to hold the rate in.
    pub fn has_room(&self) -> bool {
        self.load < 1.0 - ROOM
    }
}

fn follows_any_schedule(method: HoldMethod) -> bool {
    matches!(method, HoldMethod::Throttle | HoldMethod::Spin)
}

#[cfg(test)]
mod waits_tests {
    use super::*;
    use crate::experiment::throttle::tests::waits;
    use knee_load::experiment::throttle::WaitMethod;
    use knee_load::time::Nanos;

    #[test]
    fn the_row_of_five_waits_by_hand() {
        let late = [1_050_000, 1_060_000, 1_070_000, 1_080_000, 1_090_000].map(|t| t - 1_000_000);
        let mut trial = waits(WaitMethod::Sleep, Nanos::from_millis(1), &late);
        trial.waits.cpu = Nanos::from_micros(10);
        trial.waits.elapsed = Nanos::from_millis(5);
        let row = wait_row(&trial).expect("five waits");
        assert_eq!((row.method.as_str(), row.op.as_str()), ("sleep", "none"));
        assert_eq!((row.delay_ns, row.mean_ns), (1_000_000, 1_070_000));
        // s = 10,000·√2.5 = 15,811 ns; 8.610·s/√5 = 60,882 ns
        assert_eq!(row.std_dev_ns, 15_811);
        assert!(row.error_ns.abs_diff(60_882) < 20, "{}", row.error_ns);
        assert!(row.overshoot_p50_ns.abs_diff(70_000) < 70);
        assert!(row.overshoot_max_ns.abs_diff(90_000) < 90);
        assert!((row.cpu_percent - 0.2).abs() < 1e-9);
        assert_eq!((row.samples, row.op_mean_ns), (5, None));
    }

    #[test]
    fn one_wait_alone_has_no_spread_and_makes_no_row() {
        let trial = |late: &[u64]| waits(WaitMethod::Spin, Nanos::from_micros(50), late);
        assert_eq!(wait_row(&trial(&[])), None);
        assert_eq!(wait_row(&trial(&[7])), None);
        let row = wait_row(&trial(&[7, 7])).expect("two");
        assert_eq!((row.std_dev_ns, row.error_ns), (0, 0));
    }

    #[test]
    fn the_chore_is_timed_apart() {
        let mut trial = waits(WaitMethod::Spin, Nanos::from_micros(50), &[7, 7]);
        trial.spec.chore = Chore::Udp("127.0.0.1:9".into());
        trial.waits.chore.record(Nanos(4_000));
        trial.waits.chore.record(Nanos(6_000));
        let row = wait_row(&trial).expect("two");
        let op = row.op_mean_ns.expect("a chore");
        assert_eq!(row.op, "udp");
        assert!(op.abs_diff(5_000) < 10, "{op}");
    }
}

#[cfg(test)]
mod rates_tests {
    use super::*;
    use crate::experiment::throttle::tests::holds;
    use knee_load::experiment::throttle::HoldStats;
    use knee_load::time::Nanos;

    const OPERATION: Nanos = Nanos::from_micros(100);

    #[test]
    fn a_constant_lateness_is_no_drift() {
        let trial = holds(HoldMethod::Throttle, OPERATION, |_| Nanos(40_000));
        let row = rate_row(&trial).expect("operations");
        assert!((row.achieved_per_s - 1_000.0).abs() < 1e-6);
        assert!(row.drift_ppm.abs() < 1e-6 && row.gap_cv < 1e-6);
        assert!(row.error_p50_ns.abs_diff(40_000) < 40);
        assert!((row.op_percent - 10.0).abs() < 0.01);
        assert!(HeldRate::of(&trial).expect("a line").is_held);
    }

    #[test]
    fn a_loop_at_half_the_rate_drifts_by_a_second_per_second() {
        let trial = holds(HoldMethod::NaiveSleep, OPERATION, Nanos::from_millis);
        let row = rate_row(&trial).expect("operations");
        assert!((row.achieved_per_s - 500.0).abs() < 1e-6);
        assert!((row.drift_ppm - 1e6).abs() < 1e-3);
        let hold = HeldRate::of(&trial).expect("a line");
        assert!(!hold.is_held && (hold.shortfall - 0.5).abs() < 1e-9);
        assert!((hold.load - 0.1).abs() < 1e-9 && hold.has_room());
    }

    #[test]
    fn a_thousandth_is_held_and_more_is_not() {
        let drifting = |ns| holds(HoldMethod::Tick, OPERATION, move |k| Nanos(k * ns));
        // The last of 1,000 operations is late by one gap at 1 µs each.
        assert!(HeldRate::of(&drifting(1_000)).expect("a line").is_held);
        assert!(!HeldRate::of(&drifting(1_010)).expect("a line").is_held);
    }

    #[test]
    fn a_stall_that_was_caught_up_with_is_no_drift() {
        // Late by 100 ms in the first tenth, in the last tenth, and from the middle on.
        let held = |range: std::ops::Range<u64>| {
            let late = move |k| Nanos::from_millis(if range.contains(&k) { 100 } else { 0 });
            HeldRate::of(&holds(HoldMethod::Throttle, OPERATION, late)).expect("a line")
        };
        assert!(held(100..200).is_held && held(800..900).is_held);
        let shifted = held(500..1_000);
        assert!(!shifted.is_held && (shifted.shortfall - 0.09).abs() < 0.01);
    }

    #[test]
    fn what_was_left_out_is_missing() {
        let mut trial = holds(HoldMethod::Throttle, OPERATION, |_| Nanos::ZERO);
        trial.holds.skipped = 250;
        trial.holds.last = trial.spec.rate.moment(1_249);
        let hold = HeldRate::of(&trial).expect("a line");
        assert!((hold.shortfall - 0.2).abs() < 1e-9 && !hold.is_held);
    }

    #[test]
    fn nothing_run_is_no_row_and_one_operation_no_line() {
        let mut trial = holds(HoldMethod::Throttle, OPERATION, |_| Nanos::ZERO);
        trial.holds = HoldStats::default();
        assert_eq!(rate_row(&trial), None);
        trial.holds.record(Nanos::ZERO, Nanos(5));
        trial.holds.elapsed = Nanos::from_millis(500);
        let row = rate_row(&trial).expect("one operation");
        assert_eq!((row.achieved_per_s, row.drift_ppm, row.gap_cv), (2.0, 0.0, 0.0));
        assert_eq!(HeldRate::of(&trial), None);
    }
}
