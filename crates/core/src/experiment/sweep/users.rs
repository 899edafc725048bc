//! Which number of users to try next.

use super::bound;
use super::quality::{next_of_list, peak_again, repeat_of_last, stretch, suspect_of_warm_up};
use super::{SweepSpec, VuserPlan};
use crate::experiment::Next;
use crate::experiment::sweep::knee;
use crate::experiment::sweep::knee::{Knee, Reading, Shape, fails};
use crate::experiment::sweep::table::{LevelPoint, points};
use crate::rng;
use crate::spec::{Level, TrialSpec};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;
use rand_core::RngCore;

/// A level that gains less than this share over the one before it gains nothing; as much more as
/// the intervals leave open, but never more than the second.
const GAIN_MIN: f64 = 0.02;
const GAIN_MIN_NOISY: f64 = 0.06;
/// Throughput is proportional to users as long as it grows with them to this power, …
const LINEAR: f64 = 0.95;
/// … and the 90th percentile by less than this factor.
const FLAT: f64 = 1.2;
/// A level this near, as a share, to one already measured is not worth a trial.
const NEAR: f64 = 0.05;
/// Half the width of the confidence intervals that is aimed at, as a share.
const CONFIDENCE: f64 = 0.02;

/// What to do after these trials.
pub(super) fn next(spec: &SweepSpec, plan: &VuserPlan, past: &[TrialReport]) -> Next<TrialSpec> {
    let repeat = repeat_of_last(spec, past);
    match plan {
        VuserPlan::List(levels) => {
            if let Some(repeat) = repeat {
                return run(spec, past, repeat.level, repeat.stretch);
            }
            let doubted = || peak_again(past, &knee::read(&points(past))?).map(|n| n as u32);
            match next_of_list(spec, levels, past).or_else(doubted) {
                Some(n) => run(spec, past, Level::Vusers(n), 1),
                None => Next::Converged,
            }
        }
        VuserPlan::Auto => {
            if let Some(reason) = hopeless(past) {
                return Next::Doomed(reason);
            }
            if past.len() >= spec.trials_max {
                return Next::Converged;
            }
            if let Some(repeat) = repeat {
                return run(spec, past, repeat.level, repeat.stretch);
            }
            match automatic(spec, past) {
                Some(Wanted { level, longer }) => {
                    let stretch = longer * stretch(spec, expected_per_s(level, past));
                    run(spec, past, level, stretch)
                }
                None => Next::Converged,
            }
        }
    }
}

fn run(spec: &SweepSpec, past: &[TrialReport], level: Level, stretch: u64) -> Next<TrialSpec> {
    let Level::Vusers(n) = level else {
        return Next::Doomed("a sweep over users was given a trial of another kind".into());
    };
    Next::Run(Box::new(spec.users_trial(n, past.len(), stretch)))
}

/// Why going on makes no sense: not even one user is served.
fn hopeless(past: &[TrialReport]) -> Option<String> {
    let first = points(past).into_iter().next()?;
    (first.throughput_per_s <= 0.0).then(|| {
        let percent = 100.0 * first.error_share;
        format!(
            "with {} already {percent:.0} % of the operations failed",
            crate::words::users(first.level)
        )
    })
}

/// The throughput to be expected at a level, at least: the most that levels up to it have shown.
fn expected_per_s(level: Level, past: &[TrialReport]) -> Option<f64> {
    let up_to_it = past.iter().filter(|t| value(t.level) <= value(level));
    let shown = up_to_it.map(|t| t.responses_per_s()).reduce(f64::max);
    shown.filter(|&x| x > 0.0)
}

/// The next trial of an automatic plan.
struct Wanted {
    level: Level,
    /// How many times as long as usual it is to be.
    longer: u64,
}

/// Climb to saturation, look closer at what was found, then repeat what is least certain, for twice
/// as long.
fn automatic(spec: &SweepSpec, past: &[TrialReport]) -> Option<Wanted> {
    let table = points(past);
    let climbed = climb(&table, spec.vusers_max, past).map(Level::Vusers);
    if let Some(level) = climbed.or_else(|| closer(spec, &table, past)) {
        return Some(Wanted { level, longer: 1 });
    }
    let reading = knee::read(&table)?;
    let uncertain = least_certain(&table, &reading, past);
    let level = pick(&uncertain, &mut order(spec, past))?;
    Some(Wanted { level, longer: 2 })
}

/// Random numbers for the next choice.
fn order(spec: &SweepSpec, past: &[TrialReport]) -> rng::Rng {
    rng::stream(spec.base.seed, rng::ORDER + past.len() as u64)
}

fn pick(levels: &[u32], order: &mut rng::Rng) -> Option<Level> {
    let n = levels.len() as u64;
    (n > 0).then(|| Level::Vusers(levels[(order.next_u64() % n) as usize]))
}

/// After the climb: the knee itself and the first trial again, levels suspected to be of a cold
/// server, the bounds, then both sides of the knee.
fn closer(spec: &SweepSpec, table: &[LevelPoint], past: &[TrialReport]) -> Option<Level> {
    let reading = knee::read(table)?;
    if let Some(peak) = peak_again(past, &reading) {
        return Some(Level::Vusers(peak as u32));
    }
    let mut order = order(spec, past);
    if let Shape::Bent(knee) = &reading.shape {
        // The first trial met a cold target, so it is made again, in no foreseeable place.
        let mut wanted = uncovered(table, knee, spec.vusers_max, &[1.0]);
        wanted.extend((tried(past, 1) < 2).then_some(1));
        if let Some(level) = pick(&wanted, &mut order) {
            return Some(level);
        }
    }
    suspect_of_warm_up(spec, past)
        .or_else(|| bound::next_users(spec, past, &reading).map(Level::Vusers))
        .or_else(|| {
            let Shape::Bent(knee) = &reading.shape else {
                return None;
            };
            let around = [0.5f64.sqrt(), 2f64.sqrt()];
            let wanted = uncovered(table, knee, spec.vusers_max, &around);
            pick(&wanted, &mut order)
        })
}

fn tried(past: &[TrialReport], n: u32) -> usize {
    past.iter().filter(|t| t.level == Level::Vusers(n)).count()
}

/// The next level of the climb: 1, 2, 4, then twice, or four times as long as throughput is
/// proportional to users. A leap of four that lands past the bend is followed by the level that it
/// left out. Ends when two levels in succession gain nothing while response time rises, when
/// operations fail, when the generator gives out, or at `vusers_max`.
fn climb(table: &[LevelPoint], vusers_max: u32, past: &[TrialReport]) -> Option<u32> {
    let served: Vec<&LevelPoint> = table
        .iter()
        .filter(|p| p.throughput_per_s > 0.0 && !fails(p))
        .collect();
    let Some(top) = served.last() else {
        // One user alone is too much: with two it shows whether more are served no better.
        return [1, 2].into_iter().find(|&n| tried(past, n) == 0);
    };
    let n = top.level as u32;
    if let Some(failing) = table.iter().find(|p| p.level > top.level) {
        // After a leap of four the level that it left out is tried, and where as much is served as
        // before one more: whether a target that rejects what is too much is at its maximum.
        let left_out = is_leap(top, failing).then_some(2 * n);
        let twice = (2 * failing.level as u32).min(vusers_max);
        let still_serves = failing.throughput_per_s >= top.throughput_per_s;
        return left_out.or((still_serves && tried(past, twice) == 0).then_some(twice));
    }
    let linear = served.len() >= 3 && is_linear(served[served.len() - 2], top);
    if let [.., before_that, before, _] = served.as_slice() {
        if !linear && is_leap(before, top) {
            return Some(2 * before.level as u32);
        }
        if gains_nothing(before_that, before) && gains_nothing(before, top) {
            return None;
        }
    }
    if n >= vusers_max || generator_gave_out(n, past) {
        return None;
    }
    let step = if linear { 4 } else { 2 };
    Some(n.saturating_mul(step).min(vusers_max))
}

/// Whether a level at twice the lower one lies well between the two.
fn is_leap(lower: &LevelPoint, upper: &LevelPoint) -> bool {
    upper.level >= 2.2 * lower.level
}

fn gains_nothing(before: &LevelPoint, after: &LevelPoint) -> bool {
    let gain = after.throughput_per_s / before.throughput_per_s - 1.0;
    let rises = match before.p90_ns.zip(after.p90_ns) {
        Some((before, after)) => after > before,
        None => after.response_ns() > before.response_ns(),
    };
    let noise = before.half_width().zip(after.half_width());
    let noise = noise.map_or(0.0, |(a, b)| a.hypot(b));
    gain < noise.clamp(GAIN_MIN, GAIN_MIN_NOISY) && rises
}

fn is_linear(before: &LevelPoint, after: &LevelPoint) -> bool {
    let growth = (after.throughput_per_s / before.throughput_per_s).ln();
    let flat = before
        .p90_ns
        .zip(after.p90_ns)
        .is_none_or(|(before, after)| after <= FLAT * before);
    flat && growth >= LINEAR * (after.level / before.level).ln()
}

fn generator_gave_out(n: u32, past: &[TrialReport]) -> bool {
    let mut here = past
        .iter()
        .filter(|t| t.level == Level::Vusers(n))
        .peekable();
    here.peek().is_some() && here.all(|t| t.verdict == Verdict::Invalid)
}

/// Those multiples of the knee that no level is near to.
fn uncovered(table: &[LevelPoint], knee: &Knee, vusers_max: u32, factors: &[f64]) -> Vec<u32> {
    factors
        .iter()
        .map(|f| (f * knee.level).round().clamp(1.0, f64::from(vusers_max)))
        .filter(|n| table.iter().all(|p| (p.level - n).abs() > NEAR * n))
        .map(|n| n as u32)
        .collect()
}

/// The levels whose repetition would narrow the wider of the two intervals that the answer rests
/// on, those with the fewest trials; none where both are narrow enough.
fn least_certain(table: &[LevelPoint], reading: &Reading, past: &[TrialReport]) -> Vec<u32> {
    let unknown = f64::INFINITY;
    let ceiling = reading.x_max_half_width.unwrap_or(unknown);
    let rise = match &reading.shape {
        Shape::Bent(knee) => knee.x_1_half_width.unwrap_or(unknown),
        _ => 0.0,
    };
    if ceiling.hypot(rise) <= CONFIDENCE {
        return Vec::new();
    }
    let levels: Vec<u32> = if rise > ceiling {
        table.iter().take(1).map(|p| p.level as u32).collect()
    } else {
        reading.plateau.iter().map(|&n| n as u32).collect()
    };
    let fewest = levels.iter().map(|&n| tried(past, n)).min();
    let few = |n: &u32| Some(tried(past, *n)) == fewest;
    levels.into_iter().filter(few).collect()
}
