//! Other ways to find the knee, and checks of the curve: whether it bears the asymptotes out, and
//! whether it falls beyond its maximum.

use super::{Knee, around, fails};
use crate::experiment::sweep::models;
use crate::experiment::sweep::table::LevelPoint;
use knee_load::stats::sample::{Z975, t_beyond};

/// Least throughput at the asymptotes' crossing, as a share of the maximum, for it to be a knee.
/// Queues for workers of random service reach at least 79 %, a chain of equal stations only half.
const REACHED: f64 = 0.7;
/// Share by which a level may exceed the rise from the origin. Beyond it, one user alone is served
/// in another way than many.
const ABOVE_RISE: f64 = 0.15;
/// Factor beyond which methods disagree.
pub const DISAGREEMENT: f64 = 2.0;

/// Range of the knee, if the measured curve contradicts the asymptotes. They cross well below the
/// maximum, or throughput rises faster than from the origin, or another method disagrees and no
/// model fits. Throughput reaches its maximum between the crossing and `full`, the lowest level of
/// the plateau.
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

/// The measured level of the most power, X/R. Levels with failures have none, as failures take no
/// time.
pub(super) fn max_power(points: &[LevelPoint]) -> Option<f64> {
    let power = |p: &LevelPoint| {
        if fails(p) { 0.0 } else { p.throughput_per_s / p.response_ns() }
    };
    (points.len() >= 3).then(|| best(points, power))?
}

fn best(points: &[LevelPoint], f: impl Fn(&LevelPoint) -> f64) -> Option<f64> {
    points.iter().max_by(|a, b| f(a).total_cmp(&f(b))).map(|p| p.level)
}

/// Smallest fall, as a logarithm.
const FALL_MIN: f64 = 0.03;
/// Share of flat tables that may seem to fall.
const FALSE_SHARE: f64 = 0.01;
/// The same with noise estimated from the scatter of the levels, by simulation of tables with noise
/// of 1 to 10 %, flat and bent.
const FALSE_SHARE_UNKNOWN: f64 = 0.0125;
/// Least levels for an estimate of noise from their scatter.
const LEVELS_MIN: usize = 5;
/// Fall, as a logarithm, that noise does not explain even in few rows.
const FALL_OF_FEW: f64 = 0.5;
/// Smallest noise of a table.
const NOISE_MIN: f64 = 0.01;
/// Degrees of freedom at which Student's law is the normal one.
const NORMAL: u64 = 400;

/// The last row, if its throughput is significantly below the maximum of the rows before it.
///
/// The maximum of noisy rows exceeds the truth. So the fall has to be significant for as many
/// comparisons as there are rows before the last. Without intervals, noise is the deviation of the
/// rows from the Universal Scalability Law, which may fall itself. Throughput then has to fall from
/// level to level.
pub(super) fn fell(rows: &[LevelPoint]) -> Option<&LevelPoint> {
    let rows: Vec<&LevelPoint> = rows.iter().filter(|p| !fails(p)).collect();
    let (last, earlier) = rows.split_last()?;
    let by_throughput =
        |a: &&&LevelPoint, b: &&&LevelPoint| a.throughput_per_s.total_cmp(&b.throughput_per_s);
    let top = earlier.iter().max_by(by_throughput)?;
    let fall = (top.throughput_per_s / last.throughput_per_s).ln();
    let is_fall = match standard_error(top).zip(standard_error(last)) {
        Some((a, b)) => fall > t_beyond(FALSE_SHARE / earlier.len() as f64, NORMAL) * a.hypot(b),
        None => fell_steadily(&rows, top.level) && fall > unknown_noise(&rows),
    };
    (is_fall && fall > FALL_MIN).then_some(*last)
}

/// Standard error of a row's throughput, as a share.
fn standard_error(p: &LevelPoint) -> Option<f64> {
    p.half_width().map(|half| half / Z975)
}

/// Whether each of at least two levels beyond the maximum has less than the one before.
fn fell_steadily(rows: &[&LevelPoint], top: f64) -> bool {
    let beyond: Vec<f64> =
        rows.iter().filter(|p| p.level >= top).map(|p| p.throughput_per_s).collect();
    beyond.len() >= 3 && beyond.windows(2).all(|pair| pair[1] < pair[0])
}

/// Largest fall of a flat curve by noise, estimated from the scatter of the rows.
fn unknown_noise(rows: &[&LevelPoint]) -> f64 {
    let parameters = 3;
    if rows.len() < LEVELS_MIN {
        return FALL_OF_FEW;
    }
    let freedom = rows.len() - parameters;
    let rows: Vec<LevelPoint> = rows.iter().map(|p| (*p).clone()).collect();
    let squares = models::smooth_residual(&rows).powi(2) * rows.len() as f64;
    let noise = (squares / freedom as f64).sqrt().max(NOISE_MIN);
    2f64.sqrt() * t_beyond(FALSE_SHARE_UNKNOWN, freedom as u64) * noise
}
