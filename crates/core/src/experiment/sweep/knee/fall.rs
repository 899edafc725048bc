//! Whether throughput falls beyond its maximum: not by chance.

use super::{Z95, fails};
use crate::experiment::sweep::models;
use crate::experiment::sweep::table::LevelPoint;
use crate::stats::sample::t_beyond;

/// A smaller fall is nobody's concern.
const FALL_MIN: f64 = 0.03;
/// Flat curves seem to fall in no more than this share of tables.
const FALSE_SHARE: f64 = 0.01;
/// The same where noise has to be told from the scatter of the levels: by simulation of tables with
/// noise of 1 to 10 %, flat and bent.
const FALSE_SHARE_UNKNOWN: f64 = 0.0125;
/// So many levels are needed to tell noise from their scatter.
const LEVELS_MIN: usize = 5;
/// From so large a fall on, as a logarithm, noise is no explanation though the rows are few.
const FALL_OF_FEW: f64 = 0.5;
/// No table is more exact than this.
const NOISE_MIN: f64 = 0.01;
/// Degrees of freedom at which Student's law is the normal one.
const NORMAL: u64 = 400;

/// The last row, where throughput there is significantly below the maximum of the rows before it.
///
/// The maximum of several noisy rows exceeds the truth, so the fall has to be significant for as
/// many comparisons as there are rows before the last. Where a row has no interval, noise is what
/// the rows deviate from the smooth curve that fits best (the Universal Scalability Law, which may
/// fall itself), and throughput has to fall from level to level beyond the maximum.
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
    p.half_width().map(|half| half / Z95)
}

/// Whether, from the maximum on, each of at least two levels has less than the one before.
fn fell_steadily(rows: &[&LevelPoint], top: f64) -> bool {
    let beyond: Vec<f64> = rows
        .iter()
        .filter(|p| p.level >= top)
        .map(|p| p.throughput_per_s)
        .collect();
    beyond.len() >= 3 && beyond.windows(2).all(|pair| pair[1] < pair[0])
}

/// The largest fall that noise makes of a flat curve, told from the scatter of the rows.
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
