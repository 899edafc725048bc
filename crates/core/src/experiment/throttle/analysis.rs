//! How well a machine waits and holds a rate: statistics of what was measured, and what follows.
//!
//! What follows are the margins that a hybrid wait needs, and the best wait within a budget of
//! processor time.

#[cfg(test)]
mod tests;

use crate::experiment::throttle::report::{MarginRow, RateRow, WaitAdvice, WaitRow};
use knee_load::experiment::throttle::{Chore, HoldMethod, HoldTrial, WaitMethod, WaitTrial};
use knee_load::measure::Histogram;
use knee_load::spec::{ArrivalLaw, Margins};
use knee_load::stats::sample::t9995;
use knee_load::time::Nanos;

/// The delay that a machine's ways to wait are compared at, and the one of a rate of 1,000/s.
pub const REFERENCE_DELAY: Nanos = Nanos::from_millis(1);

/// Of these trials the one without a chore whose delay is nearest to [`REFERENCE_DELAY`], by ratio.
pub(crate) fn at_reference_delay<'a>(
    trials: impl IntoIterator<Item = &'a WaitTrial>,
) -> Option<&'a WaitTrial> {
    let distance = |t: &&WaitTrial| {
        let ratio = t.spec.delay.0.max(1) as f64 / REFERENCE_DELAY.0 as f64;
        ratio.ln().abs()
    };
    trials
        .into_iter()
        .filter(|t| t.spec.chore == Chore::None && t.waits.samples >= SAMPLES_MIN)
        .min_by(|a, b| distance(a).total_cmp(&distance(b)))
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
    let std_dev = waits.lengths.std_dev()?;
    let error = t9995(waits.samples - 1) * std_dev / n.sqrt();
    let late = |q| waits.overshoot.quantile(q).0;
    let has_chore = spec.chore != Chore::None && !waits.chore.is_empty();
    Some(WaitRow {
        method: spec.method.name().to_owned(),
        op: spec.chore.name().to_owned(),
        delay_ns: spec.delay.0,
        mean_ns: waits.lengths.mean.round() as u64,
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
    let by_count = (holds.operations > 1).then_some(holds.operations as f64 / elapsed);
    let pace = holds.pace.slope().filter(|s| *s > 0.0).map(f64::recip);
    let gap_cv = match holds.gap.std_dev() {
        Some(std_dev) if holds.gap.mean > 0.0 => std_dev / holds.gap.mean,
        _ => 0.0,
    };
    let late = |q| holds.error.quantile(q).0;
    Some(RateRow {
        method: spec.method.name().to_owned(),
        asked_per_s: spec.rate.per_s(),
        achieved_per_s: pace.or(by_count),
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
    /// count. A rate that was not held shows in both, so the smaller of them counts. A schedule
    /// that the catch-up policy moved back hides a stall from the slope, and is longer by it.
    pub fn of(trial: &HoldTrial) -> Option<HeldRate> {
        let (spec, holds) = (&trial.spec, &trial.holds);
        let wanted = holds.operations + holds.skipped;
        let made_share = holds.operations as f64 / wanted as f64;
        let missed_by = |stretched: f64| 1.0 - made_share / stretched.max(f64::MIN_POSITIVE);
        // Lateness that grows by s seconds per second stretches the schedule by 1 + s.
        let asked_s = (holds.elapsed - holds.shifted).as_secs_f64().max(f64::MIN_POSITIVE);
        let moved = holds.elapsed.as_secs_f64() / asked_s;
        let by_slope = missed_by((1.0 + holds.lateness.slope()?) * moved);
        let is_constant = spec.arrival == ArrivalLaw::Constant;
        let shortfall = if is_constant {
            let took = holds.last.as_secs_f64();
            let by_count = missed_by(took * spec.rate.per_s() / (wanted - 1).max(1) as f64);
            if by_count.abs() < by_slope.abs() { by_count } else { by_slope }
        } else {
            by_slope
        };
        // Ways that know no schedule but the constant one leave another by chance.
        let follows_any = matches!(spec.method, HoldMethod::Throttle | HoldMethod::Spin);
        let by_chance =
            if is_constant || follows_any { 0.0 } else { 4.0 / (holds.operations as f64).sqrt() };
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

/// The share of late wake-ups that a margin covers where no hybrid wait was measured: the same that
/// a worker's settles at.
const COVERED: f64 = 0.85;
/// A machine that wakes later than this is stalled, not slow: no margin is longer.
const MARGIN_MAX: Nanos = Nanos::from_millis(1);

/// The margins to begin with on the machine that these waits were measured on. For each length of
/// sleep it is the margin at which a hybrid wait arrived. Otherwise it covers 85 % of the late
/// wake-ups of `sleep-absolute-min-slack`. `None` where neither was measured.
///
/// Lengths between two measured ones are filled in linearly by their power of two, so that they
/// rise or fall as their neighbours do. Those beyond the shortest or the longest take its margin.
pub fn margins_of(trials: &[WaitTrial]) -> Option<Margins> {
    let measured = by_bucket(trials);
    let known: Vec<(usize, u64)> =
        (0..Margins::COUNT).filter_map(|bucket| Some((bucket, measured[bucket]?.0))).collect();
    let (first, last) = (*known.first()?, *known.last()?);
    let filled = std::array::from_fn(|bucket| {
        let below = known.iter().rev().find(|k| k.0 <= bucket).unwrap_or(&first);
        let above = known.iter().find(|k| k.0 >= bucket).unwrap_or(&last);
        let apart = above.0.saturating_sub(below.0).max(1) as f64;
        let share = bucket.saturating_sub(below.0) as f64 / apart;
        let (low, high) = (below.1 as f64, above.1 as f64);
        if bucket >= last.0 { last.1 } else { (low + share * (high - low)).round() as u64 }
    });
    Some(Margins::from_buckets(filled))
}

/// The margin for a deadline 1 ms away; `None` where none was measured.
pub fn hybrid_margin(trials: &[WaitTrial]) -> Option<Nanos> {
    let hybrid = trials
        .iter()
        .filter(|t| t.spec.delay == REFERENCE_DELAY && t.spec.method == WaitMethod::Hybrid);
    at_reference_delay(hybrid)
        .and_then(learnt)
        .or_else(|| Some(margins_of(trials)?.at(REFERENCE_DELAY)))
}

/// The margins of those lengths of sleep that were measured, the shortest first.
pub fn margin_rows(trials: &[WaitTrial]) -> Vec<MarginRow> {
    let rows = by_bucket(trials).into_iter().enumerate().map(|(bucket, margin)| {
        Some(MarginRow { sleep_ns: Margins::length_min(bucket).0, margin_ns: margin?.0 })
    });
    rows.flatten().collect()
}

/// The measured margin of each length of sleep; the largest of the delays that fall into it.
fn by_bucket(trials: &[WaitTrial]) -> [Option<Nanos>; Margins::COUNT] {
    let mut by_hybrid: [Option<Nanos>; Margins::COUNT] = [None; Margins::COUNT];
    let mut by_sleep = by_hybrid;
    let plain = trials.iter().filter(|t| t.spec.chore == Chore::None && t.waits.samples > 0);
    for trial in plain {
        let bucket = Margins::bucket(trial.spec.delay);
        by_hybrid[bucket] = by_hybrid[bucket].max(learnt(trial));
        if trial.spec.method == SLEEP {
            let covering = trial.waits.overshoot.quantile(COVERED);
            by_sleep[bucket] = by_sleep[bucket].max(Some(covering));
        }
    }
    std::array::from_fn(|b| by_hybrid[b].or(by_sleep[b]).map(|m| m.min(MARGIN_MAX)))
}

/// The margin at which a hybrid wait arrived. One that is as long as the delay left nothing to
/// sleep for, so it was never put to the test and is nothing learnt.
fn learnt(trial: &WaitTrial) -> Option<Nanos> {
    let margin = trial.waits.margin?;
    (trial.spec.method == WaitMethod::Hybrid && margin < trial.spec.delay).then_some(margin)
}

/// The budgets that advice is given for, in percent of a core.
pub const BUDGETS_PERCENT: [f64; 7] = [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0];

/// A short delay for which advice is given besides the usual one: that of 10,000/s.
const SHORT: Nanos = Nanos::from_micros(100);

/// A larger share of waits that end too early is no accident.
pub const EARLY: f64 = 0.01;

/// Whether these waits do not wait long enough: that they end no later than they were to is no
/// punctuality then.
pub fn ends_early(trial: &WaitTrial) -> bool {
    trial.waits.early as f64 > EARLY * trial.waits.samples as f64
}

/// The sleep that a hybrid wait begins with.
const SLEEP: WaitMethod = WaitMethod::SleepAbsoluteMinSlack;

/// Least share of hybrid waits that were not woken too late.
const PUNCTUAL: f64 = 0.1;

/// For each budget and delay the way to wait with the least 99th percentile of overshoot, among
/// equals the least median, among equals the cheapest. There is no advice for a budget that no way
/// to wait keeps within, and no way is advised whose waits end early.
///
/// What is compared is what one wait per delay costs. The delays are 1 ms, a rate of 1,000/s, or
/// the measured one nearest to it, and 100 µs where that was measured.
///
/// Ways to wait stand as they were measured, except `hybrid`, whose margin may be chosen. What it
/// would do with the best margin is computed from how late its sleeps ended (see `Sleeper`). Where
/// those were not measured it stands as measured too.
pub fn recommendations(trials: &[WaitTrial]) -> Vec<WaitAdvice> {
    let is_plain = |t: &&WaitTrial| {
        t.spec.chore == Chore::None && t.waits.samples >= SAMPLES_MIN && !ends_early(t)
    };
    let plain: Vec<&WaitTrial> = trials.iter().filter(is_plain).collect();
    let Some(reference) = at_reference_delay(plain.iter().copied()) else {
        return Vec::new();
    };
    let mut delays = vec![reference.spec.delay];
    if reference.spec.delay != SHORT && plain.iter().any(|t| t.spec.delay == SHORT) {
        delays.insert(0, SHORT);
    }
    let mut advice = Vec::new();
    for delay in delays {
        let at_delay = || plain.iter().copied().filter(|t| t.spec.delay == delay);
        let by_method = |method| at_delay().find(|t| t.spec.method == method);
        let sleeper = by_method(SLEEP).map(Sleeper::of);
        // A hybrid wait cannot be more punctual than the spinning that it ends in. Where that was
        // not measured, the punctual ones among the measured hybrid waits show it.
        let spun = |q| match (by_method(WaitMethod::Spin), by_method(WaitMethod::Hybrid)) {
            (Some(spin), _) => spin.waits.overshoot.quantile(q),
            (None, Some(hybrid)) => hybrid.waits.overshoot.quantile(PUNCTUAL),
            (None, None) => Nanos::ZERO,
        };
        for budget_percent in BUDGETS_PERCENT {
            let measured = at_delay()
                .filter(|t| t.spec.method != WaitMethod::Hybrid || sleeper.is_none())
                .map(|trial| WaitAdvice {
                    budget_percent,
                    delay_ns: delay.0,
                    method: trial.spec.method.name().to_owned(),
                    margin_ns: trial.waits.margin.map(|m| m.0),
                    overshoot_p50_ns: trial.waits.overshoot.quantile(0.5).0,
                    overshoot_p99_ns: trial.waits.overshoot.quantile(0.99).0,
                    // One wait per delay, also of a method so late that it makes fewer.
                    cpu_percent: (100.0 * cpu_ns(trial) / delay.0.max(1) as f64).min(100.0),
                });
            let computed = sleeper.as_ref().and_then(|sleeper| {
                let margin = sleeper.margin_within(budget_percent)?;
                let late = |q| sleeper.overshoot(margin, q).max(spun(q)).0;
                Some(WaitAdvice {
                    budget_percent,
                    delay_ns: delay.0,
                    method: WaitMethod::Hybrid.name().to_owned(),
                    margin_ns: Some(margin.0),
                    overshoot_p50_ns: late(0.5),
                    overshoot_p99_ns: late(0.99),
                    cpu_percent: sleeper.cpu_percent(margin),
                })
            });
            let late = |a: &WaitAdvice| (a.overshoot_p99_ns, a.overshoot_p50_ns);
            let affordable = measured.chain(computed).filter(|a| a.cpu_percent <= budget_percent);
            advice.extend(affordable.min_by(|a, b| {
                late(a).cmp(&late(b)).then(a.cpu_percent.total_cmp(&b.cpu_percent))
            }));
        }
    }
    advice
}

/// Processor time of a wait, in nanoseconds.
fn cpu_ns(trial: &WaitTrial) -> f64 {
    trial.waits.cpu.0 as f64 / trial.waits.samples.max(1) as f64
}

/// A sleep that is part of a hybrid wait: how late it ends, and what it costs.
struct Sleeper<'a> {
    /// The delay that it was measured at.
    delay: Nanos,
    late: &'a Histogram,
    /// Processor time of one sleep, in nanoseconds.
    cpu_ns: f64,
}

impl Sleeper<'_> {
    fn of(trial: &WaitTrial) -> Sleeper<'_> {
        Sleeper { delay: trial.spec.delay, late: &trial.waits.overshoot, cpu_ns: cpu_ns(trial) }
    }

    /// The mean time spent spinning where the sleep is to end `margin` before the deadline.
    fn spin_ns(&self, margin: Nanos) -> f64 {
        let spun = self.late.iter_recorded().map(|(l, n)| (margin - l).0 as f64 * n as f64);
        spun.sum::<f64>() / self.late.count().max(1) as f64
    }

    /// The quantile `q` of the lateness that is left beyond the margin.
    fn overshoot(&self, margin: Nanos, q: f64) -> Nanos {
        self.late.quantile(q) - margin
    }

    /// What a hybrid wait for every `delay` costs with this margin, in percent of a core: the
    /// spinning and the sleep itself.
    ///
    /// The sleep is shorter by the margin than the one that was measured. A shorter sleep ends less
    /// late, so this errs on the safe side.
    fn cpu_percent(&self, margin: Nanos) -> f64 {
        100.0 * (self.spin_ns(margin) + self.cpu_ns) / self.delay.0.max(1) as f64
    }

    /// The largest margin of use within this budget; `None` where the sleep alone costs more.
    ///
    /// A margin is of no use beyond the lateness of 99 % of the sleeps, as the 99th percentile is
    /// compared. Nor is one beyond nine tenths of the delay: next to nothing is left to sleep for.
    fn margin_within(&self, budget_percent: f64) -> Option<Nanos> {
        let most = Nanos(self.delay.0 / 10 * 9).min(self.late.quantile(0.99));
        let fits = |margin: u64| self.cpu_percent(Nanos(margin)) <= budget_percent;
        // A longer margin never costs less: halve the range that holds the limit.
        let (mut within, mut beyond) = (0, most.0 + 1);
        while beyond - within > 1 {
            let middle = within + (beyond - within) / 2;
            if fits(middle) {
                within = middle;
            } else {
                beyond = middle;
            }
        }
        fits(within).then_some(Nanos(within))
    }
}
