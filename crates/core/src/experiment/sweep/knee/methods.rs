//! Other ways to find the knee, and whether the measured curve bears the asymptotes out.

use super::{Knee, around, fails};
use crate::experiment::sweep::models;
use crate::experiment::sweep::table::LevelPoint;

/// The asymptotes' crossing is a knee only where throughput there reaches this share of its
/// maximum. Users who queue for workers of random service reach 79 % there at the least, for any
/// number of workers and any time outside; a chain of equal stations only half.
const REACHED: f64 = 0.7;
/// No level exceeds the rise from the origin by more than this share, unless one user alone is
/// served in another way than many: then the rise is none.
const ABOVE_RISE: f64 = 0.15;
/// Methods that differ by more than this factor disagree.
pub const DISAGREEMENT: f64 = 2.0;

/// Where the knee lies, if the measured curve contradicts the asymptotes' crossing: they cross well
/// below the maximum, or throughput rises faster than from the origin, or another method disagrees
/// while no model fits. Throughput can reach its maximum at the crossing at the earliest, and at
/// `full`, the lowest level of the maximum, it has.
pub(super) fn contradicted(
    points: &[LevelPoint],
    knee: &Knee,
    x_max: f64,
    full: f64,
) -> Option<[f64; 2]> {
    let others = || knee.kneedle.into_iter().chain(knee.max_power);
    let factor = |other: f64| (other / knee.level).max(knee.level / other);
    let above_rise = |p: &LevelPoint| {
        let room = p.half_width().unwrap_or(0.0).max(ABOVE_RISE);
        p.throughput_per_s > (1.0 + room) * knee.x_1_per_s * p.level
    };
    let bears_out = knee.throughput_per_s >= REACHED * x_max && !points.iter().any(above_rise);
    let disagree = others().any(|other| factor(other) > DISAGREEMENT);
    if bears_out && (!disagree || models::any_fits(points)) {
        return None;
    }
    let at_least = around(knee.level, knee.half_width.unwrap_or(0.0))[0];
    let lo = others().fold(at_least.min(full), f64::min);
    let hi = others().fold(full, f64::max);
    Some([lo, hi.max(knee.level.min(full))])
}

/// Kneedle (Satopää, Albrecht, Irwin and Raghavan, ICDCS Workshops 2011): with both axes scaled to
/// 0…1, the level where throughput is furthest above the diagonal.
pub(super) fn kneedle(points: &[LevelPoint]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let xs = points.iter().map(|p| p.throughput_per_s);
    let lo = xs.clone().fold(f64::INFINITY, f64::min);
    let hi = xs.fold(0.0, f64::max);
    if points.len() < 3 || hi <= lo {
        return None;
    }
    let height = |p: &LevelPoint| {
        let x = (p.level - first.level) / (last.level - first.level);
        (p.throughput_per_s - lo) / (hi - lo) - x
    };
    best(points, height)
}

/// The measured level of the most power, X/R. Failures are answered in no time, which is no power.
pub(super) fn max_power(points: &[LevelPoint]) -> Option<f64> {
    let power = |p: &LevelPoint| match fails(p) {
        true => 0.0,
        false => p.throughput_per_s / p.response_ns(),
    };
    (points.len() >= 3).then(|| best(points, power))?
}

fn best(points: &[LevelPoint], f: impl Fn(&LevelPoint) -> f64) -> Option<f64> {
    points
        .iter()
        .max_by(|a, b| f(a).total_cmp(&f(b)))
        .map(|p| p.level)
}
