//! The bend of throughput: saturation, the asymptotes and their crossing, and whether other methods
//! agree. Throughput counts operations that did not fail.
//!
//! Checks of the curve: whether it bears the asymptotes out, and whether it falls beyond its
//! maximum.

use super::table::LevelPoint;
use crate::experiment::sweep::models;
use knee_load::stats::rounds::{TrendLine, median};
use knee_load::stats::sample::{Z975, t_beyond, within};

/// Share of failures above which a level says nothing about capacity.
pub const ERROR_SHARE_MAX: f64 = 0.05;

/// Largest difference of levels of one plateau, as a share, without intervals.
const PLATEAU_SHARE: f64 = 0.02;
/// With intervals, the plateau is bounded by the intervals and by these shares.
const PLATEAU_SHARE_MIN: f64 = 0.01;
const PLATEAU_SHARE_MAX: f64 = 0.3;
/// Share of the asymptotes' crossing below which no level is on the plateau, whatever its interval.
const PLATEAU_BEGINS: f64 = 0.9;
/// Share of the maximum that a level with failures has to serve to count. A target that rejects
/// excess load is then at its maximum; one that breaks down is not.
const STILL_SERVES: f64 = 0.95;
/// Exponent of throughput over users below which it is saturated: 5 % for each doubling.
const SATURATED_SLOPE: f64 = 0.07;
/// Exponent of throughput over users above which it is proportional.
const LINEAR_SLOPE: f64 = 0.9;
/// Over a whole table: the exponent below which throughput is flat, and that above which response
/// time is proportional to users.
const FLAT_SLOPE: f64 = 0.05;
const PROPORTIONAL_SLOPE: f64 = 0.8;

/// Target half width of the intervals of the maximum and of the knee, as shares.
const PRECISION: [f64; 2] = [0.02, 0.1];

/// Saturation, knee and fall of a table of levels.
#[derive(Clone, Debug, PartialEq)]
pub struct KneeAnalysis {
    /// Mean throughput of the plateau: the levels that do not differ from the one with the most.
    pub x_max_per_s: f64,
    /// Half the width of its 95 % confidence interval, as a share; `None` where a level has none.
    pub x_max_half_width: Option<f64>,
    /// Levels of the plateau, ascending.
    pub plateau: Vec<f64>,
    /// The bend.
    pub shape: CurveShape,
    /// A fall of throughput beyond the maximum.
    pub fallen: Option<ThroughputFall>,
    /// Rows that the analysis rests on, ascending.
    pub rows: Vec<LevelPoint>,
}

impl KneeAnalysis {
    /// The row with the most throughput.
    pub fn top(&self) -> Option<&LevelPoint> {
        most_throughput(&self.rows)
    }

    /// The rows of the plateau.
    pub fn plateau_rows(&self) -> Vec<&LevelPoint> {
        self.rows.iter().filter(|p| self.plateau.contains(&p.level)).collect()
    }

    /// Whether the intervals of the maximum and of the knee have the target width. A knee with a
    /// range has none.
    pub fn is_precise(&self) -> bool {
        let is_narrow = |half: Option<f64>, limit: f64| half.is_some_and(|h| h <= limit);
        let is_knee_known = match &self.shape {
            CurveShape::Bent(knee) => {
                knee.range.is_some() || is_narrow(knee.half_width, PRECISION[1])
            }
            _ => true,
        };
        is_narrow(self.x_max_half_width, PRECISION[0]) && is_knee_known
    }
}

fn most_throughput(rows: &[LevelPoint]) -> Option<&LevelPoint> {
    rows.iter().max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))
}

/// Whether and where throughput bends.
#[derive(Clone, Debug, PartialEq)]
pub enum CurveShape {
    /// A single level: nothing can be said.
    OneLevel,
    /// Every level is past saturation: the knee is below `lowest`.
    SaturatedBelow {
        /// The lowest level.
        lowest: f64,
    },
    /// Throughput still rises at the last level: the knee is at or beyond `at_least`.
    Rising {
        /// Lower bound of the knee, where the rise from the origin is known.
        at_least: Option<f64>,
        /// How much the last level gained, in percent, over `before`.
        gain_percent: f64,
        /// The level that it is compared with.
        before: f64,
    },
    /// The bend lies between the lowest levels. None of them shows the linear region.
    Unbracketed {
        /// Upper bound of the knee.
        at_most: f64,
    },
    /// It bends at this knee.
    Bent(Knee),
}

/// The knee with the figures there.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// Where the asymptotes X₁·N and X_max cross: N* = X_max/X₁. Without pauses that is X_max·R(1)
    /// (Denning and Buzen, Computing Surveys 10(3), 1978). Lazowska et al. describe it too
    /// (Quantitative System Performance, 1984, chapter 5).
    pub level: f64,
    /// 95 % confidence interval of it, by the delta method on a logarithmic scale.
    pub ci95: Option<[f64; 2]>,
    /// Half of its width as a share.
    pub half_width: Option<f64>,
    /// Slope of the rise: throughput per user at the lowest level.
    pub x_1_per_s: f64,
    /// Half the width of its confidence interval, as a share.
    pub x_1_half_width: Option<f64>,
    /// Throughput there: that of the measured level that it is, rounded, or interpolated.
    pub throughput_per_s: f64,
    /// 90th percentile of response time there, likewise.
    pub p90_ns: Option<f64>,
    /// The measured levels on both sides; both the same where it is one of them.
    pub around: [f64; 2],
    /// The measured level that Kneedle picks.
    pub kneedle: Option<f64>,
    /// The measured level of the most power, X/R (Kleinrock, ICC 1979).
    pub max_power: Option<f64>,
    /// Range of the knee, if the measured curve contradicts the asymptotes. Their crossing is then
    /// no answer.
    pub range: Option<[f64; 2]>,
}

impl Knee {
    /// Sets the interval to half of this width, as a logarithm.
    pub fn set_half_width(&mut self, half: f64) {
        self.half_width = Some(half);
        self.ci95 = Some(around(self.level, half));
    }

    /// The levels that the other methods pick, by their names.
    pub fn alternatives(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let methods = [("kneedle", self.kneedle), ("max_power", self.max_power)];
        methods.into_iter().filter_map(|(method, level)| Some((method, level?)))
    }

    /// Whether the knee by another method is elsewhere.
    pub fn is_far_from(&self, level: f64) -> bool {
        (level / self.level).max(self.level / level) > DISAGREEMENT
    }
}

/// Rows that say something about capacity: operations succeeded, and the trial is valid. If no
/// trial is valid, the invalid ones count.
pub fn usable(points: &[LevelPoint]) -> Vec<LevelPoint> {
    let served = |p: &&LevelPoint| p.throughput_per_s > 0.0;
    let is_measured = points.iter().filter(served).any(|p| p.valid);
    let counts = |p: &&LevelPoint| served(p) && (p.valid || !is_measured);
    let rows: Vec<&LevelPoint> = points.iter().filter(counts).collect();
    let most = rows.iter().filter(|p| !fails(p)).map(|p| p.throughput_per_s).fold(0.0, f64::max);
    rows.into_iter()
        .filter(|p| !fails(p) || p.throughput_per_s >= STILL_SERVES * most)
        .cloned()
        .collect()
}

/// Whether too many operations fail at a level for its response times to count.
pub fn fails(p: &LevelPoint) -> bool {
    p.error_share > ERROR_SHARE_MAX
}

/// Whether operations of a level took longer than its measurement: they did not fail, and none of
/// them ended within it.
pub fn outlasts(p: &LevelPoint) -> bool {
    p.throughput_per_s <= 0.0 && p.operations > 0 && !fails(p)
}

/// Analyses a table of ascending levels; `None` if no row is [`usable`].
pub fn analyse(points: &[LevelPoint]) -> Option<KneeAnalysis> {
    let rows = usable(points);
    let sound: Vec<LevelPoint> = rows.iter().filter(|p| !fails(p)).cloned().collect();
    let analysis = analyse_rows(rows)?;
    // If throughput still rises, operations do not fail for want of capacity.
    let is_mixed = !sound.is_empty() && sound.len() < analysis.rows.len();
    match analysis.shape {
        CurveShape::Rising { .. } if is_mixed => analyse_rows(sound),
        _ => Some(analysis),
    }
}

fn analyse_rows(rows: Vec<LevelPoint>) -> Option<KneeAnalysis> {
    let top = most_throughput(&rows)?;
    let begins = PLATEAU_BEGINS * top.throughput_per_s * per_user(&rows[0]);
    // A target that rejects excess load is below its maximum while it rejects nothing.
    let plateau: Vec<&LevelPoint> = rows
        .iter()
        .filter(|p| alike(p, top) && (p.level >= begins || p.level == top.level))
        .filter(|p| !fails(top) || fails(p))
        .collect();
    let (x_max_per_s, x_max_half_width) = plateau_mean(&plateau);
    let levels: Vec<f64> = plateau.iter().map(|p| p.level).collect();
    let full = levels.first().copied()?;
    Some(KneeAnalysis {
        x_max_per_s,
        x_max_half_width,
        plateau: levels,
        shape: shape(&rows, top, x_max_per_s, full, x_max_half_width),
        fallen: fell(&rows),
        rows,
    })
}

/// `f` at `level`, on the straight line between the rows around it; that of the nearest row
/// outside of them.
pub fn interpolate(
    points: &[LevelPoint],
    level: f64,
    f: impl Fn(&LevelPoint) -> Option<f64>,
) -> Option<f64> {
    let above = points.iter().position(|p| p.level >= level);
    let (lo, hi) = match above {
        None => return f(points.last()?),
        Some(0) => return f(&points[0]),
        Some(i) => (&points[i - 1], &points[i]),
    };
    let (from, to) = (f(lo)?, f(hi)?);
    Some(from + (to - from) * (level - lo.level) / (hi.level - lo.level))
}

/// `full` is the lowest level with the throughput `x_max`.
fn shape(
    points: &[LevelPoint],
    top: &LevelPoint,
    x_max: f64,
    full: f64,
    x_max_half_width: Option<f64>,
) -> CurveShape {
    let (lowest, last) = (&points[0], &points[points.len() - 1]);
    if points.len() == 1 {
        return CurveShape::OneLevel;
    }
    let linear = lowest.level == 1.0 || slope(lowest, &points[1]) >= LINEAR_SLOPE;
    if let Some((before, gain_percent)) = rise(points, top) {
        let at_least = linear.then(|| last.throughput_per_s * per_user(lowest));
        return CurveShape::Rising { at_least, gain_percent, before };
    }
    if lowest.level > 1.0 && saturated(points, top) {
        return CurveShape::SaturatedBelow { lowest: lowest.level };
    }
    let level = x_max * per_user(lowest);
    if !linear {
        return CurveShape::Unbracketed { at_most: level };
    }
    CurveShape::Bent(knee(points, x_max, full, x_max_half_width))
}

fn knee(points: &[LevelPoint], x_max: f64, full: f64, x_max_half_width: Option<f64>) -> Knee {
    let lowest = &points[0];
    // The generator's part of a cycle at the lowest level is not the target's.
    let level = x_max * per_user(lowest) * (1.0 - lowest.generator_share);
    let x_1_half_width = lowest.half_width();
    let half_width = x_max_half_width.zip(x_1_half_width).map(|(a, b)| a.hypot(b));
    // A knee that is a measured level, rounded, has the figures of that level.
    let rounded = level.round().max(1.0);
    let is_measured =
        (level / rounded - 1.0).abs() <= SAME_LEVEL && points.iter().any(|p| p.level == rounded);
    let stated = if is_measured { rounded } else { level };
    let below = points.iter().rfind(|p| p.level <= stated).map(|p| p.level);
    let above = points.iter().find(|p| p.level >= stated).map(|p| p.level);
    let mut knee = Knee {
        level,
        ci95: half_width.map(|h| around(level, h)),
        half_width,
        x_1_per_s: lowest.throughput_per_s / lowest.level,
        x_1_half_width,
        throughput_per_s: interpolate(points, stated, |p| Some(p.throughput_per_s))
            .unwrap_or(lowest.throughput_per_s),
        p90_ns: interpolate(points, stated, |p| p.p90_ns.filter(|_| !fails(p))),
        around: [below.or(above).unwrap_or(stated), above.or(below).unwrap_or(stated)],
        kneedle: kneedle(points),
        max_power: max_power(points),
        range: None,
    };
    knee.range = contradicted(points, &knee, x_max, full);
    knee
}

/// Most that a number of users differs from the measured level that it is stated as, as a share:
/// 1.46 users are not 1.
const SAME_LEVEL: f64 = 0.15;

/// The interval of half a width `share` around `value`, on a logarithmic scale.
fn around(value: f64, share: f64) -> [f64; 2] {
    [value * (-share).exp(), value * share.exp()]
}

/// N/X: users per unit of throughput.
fn per_user(p: &LevelPoint) -> f64 {
    p.level / p.throughput_per_s
}

/// Whether the throughputs of two levels do not differ.
fn alike(a: &LevelPoint, b: &LevelPoint) -> bool {
    let difference = (a.throughput_per_s - b.throughput_per_s).abs();
    difference <= tolerance(a, b) * a.throughput_per_s.max(b.throughput_per_s)
}

/// Largest difference of two levels of one plateau, as a share.
fn tolerance(a: &LevelPoint, b: &LevelPoint) -> f64 {
    match a.relative_half().zip(b.relative_half()) {
        Some((a, b)) => a.hypot(b).clamp(PLATEAU_SHARE_MIN, PLATEAU_SHARE_MAX),
        None => PLATEAU_SHARE,
    }
}

/// Largest difference of two levels by chance, as a share.
fn noise(a: &LevelPoint, b: &LevelPoint) -> f64 {
    let halves = a.relative_half().zip(b.relative_half());
    halves.map_or(PLATEAU_SHARE, |(a, b)| a.hypot(b).max(PLATEAU_SHARE_MIN))
}

/// The rise at the last level, if there is one: the level compared with and the gain over it in
/// percent. The level is the highest one far enough below to distinguish a proportional rise from
/// none.
fn rise(points: &[LevelPoint], top: &LevelPoint) -> Option<(f64, f64)> {
    let (last, earlier) = points.split_last()?;
    if !alike(last, top) {
        return None;
    }
    let is_far = |p: &&LevelPoint| last.level / p.level - 1.0 >= 3.0 * tolerance(p, last);
    let far = earlier.iter().rfind(is_far);
    let before = far.or(earlier.first())?;
    let gain = last.throughput_per_s / before.throughput_per_s - 1.0;
    let rises = match far {
        Some(_) => gain > noise(before, last) && slope(before, last) >= SATURATED_SLOPE,
        None => slope(before, last) >= 0.5,
    };
    rises.then_some((before.level, 100.0 * gain))
}

/// Whether every level is past saturation. The lowest has the most throughput, or throughput is
/// flat over all levels; and response time is proportional to users.
fn saturated(points: &[LevelPoint], top: &LevelPoint) -> bool {
    let flat = regression(points, |p| p.throughput_per_s).abs() < FLAT_SLOPE;
    let full = alike(&points[0], top);
    (flat || full) && regression(points, LevelPoint::response_ns) >= PROPORTIONAL_SLOPE
}

/// Exponent of throughput over users from one level to another.
fn slope(from: &LevelPoint, to: &LevelPoint) -> f64 {
    (to.throughput_per_s / from.throughput_per_s).ln() / (to.level / from.level).ln()
}

/// Exponent of a figure over users across all levels, by least squares of the logarithms.
fn regression(points: &[LevelPoint], f: impl Fn(&LevelPoint) -> f64) -> f64 {
    let logs: Vec<(f64, f64)> = points.iter().map(|p| (p.level.ln(), f(p).ln())).collect();
    TrendLine::through(&logs).slope
}

/// Multiples of the middle interval and of the lower quartile from which a level is less certain
/// than the others: intervals of few rounds differ by chance.
const UNCERTAIN: [f64; 2] = [2.0, 4.0];

/// Weights of levels in a mean: levels that are less certain than the others, such as those of a
/// starved host, do not draw it down.
pub fn weights(levels: &[&LevelPoint]) -> Vec<f64> {
    let halves: Vec<f64> = levels.iter().map(|p| p.relative_half().unwrap_or(0.0)).collect();
    let mut sorted = halves.clone();
    sorted.sort_by(f64::total_cmp);
    let quartile = sorted.get(sorted.len().saturating_sub(1) / 4).copied().unwrap_or(0.0);
    let [middle, low] = UNCERTAIN;
    let usual = (middle * median(sorted.into_iter())).min(low * quartile).max(f64::MIN_POSITIVE);
    halves.iter().map(|half| (usual / half.max(usual)).powi(2)).collect()
}

/// Mean of values with these weights.
pub fn weighted_mean(values: impl Iterator<Item = f64>, weights: &[f64]) -> f64 {
    values.zip(weights).map(|(x, w)| x * w).sum::<f64>() / weights.iter().sum::<f64>()
}

/// Mean of the plateau, and half the width of its 95 % interval as a share: the larger of that by
/// the levels' intervals and that by their scatter.
fn plateau_mean(plateau: &[&LevelPoint]) -> (f64, Option<f64>) {
    let k = plateau.len() as f64;
    let weights = weights(plateau);
    let mean = weighted_mean(plateau.iter().map(|p| p.throughput_per_s), &weights);
    let halves: Option<Vec<f64>> = plateau.iter().map(|p| p.half_width()).collect();
    let half = halves.map(|halves| {
        let within = halves.iter().zip(&weights).map(|(h, w)| (h * w).powi(2)).sum::<f64>();
        let within = within.sqrt() / weights.iter().sum::<f64>();
        let scatter = plateau.iter().map(|p| (p.throughput_per_s / mean - 1.0).powi(2));
        let between = Z975 * (weighted_mean(scatter, &weights) / (k - 1.0).max(1.0)).sqrt();
        within.max(between)
    });
    (mean, half)
}

/// Least throughput at the asymptotes' crossing, as a share of the maximum, for it to be a knee.
/// Queues for workers of random service reach at least 79 %, a chain of equal stations only half.
const REACHED: f64 = 0.7;
/// Share by which a level may exceed the rise from the origin. Beyond it, one user alone is served
/// in another way than many.
const ABOVE_RISE: f64 = 0.15;
/// Factor beyond which methods disagree.
const DISAGREEMENT: f64 = 2.0;

/// Range of the knee, if the measured curve contradicts the asymptotes. They cross well below the
/// maximum, or throughput rises faster than from the origin, or another method disagrees and no
/// model fits. Throughput reaches its maximum between the crossing and `full`, the lowest level of
/// the plateau.
fn contradicted(points: &[LevelPoint], knee: &Knee, x_max: f64, full: f64) -> Option<[f64; 2]> {
    let others = || knee.alternatives().map(|(_, level)| level);
    let above_rise = |p: &LevelPoint| {
        let room = p.half_width().unwrap_or(0.0).max(ABOVE_RISE);
        p.throughput_per_s > (1.0 + room) * knee.x_1_per_s * p.level
    };
    let bears_out = knee.throughput_per_s >= REACHED * x_max && !points.iter().any(above_rise);
    let disagree = others().any(|level| knee.is_far_from(level));
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
fn kneedle(points: &[LevelPoint]) -> Option<f64> {
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
fn max_power(points: &[LevelPoint]) -> Option<f64> {
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
/// Least probability of what seems to be a fall of a flat table of n levels, times n². With it one
/// of 400 flat tables falls: by simulation of tables of 3 to 16 levels.
const FALSE: f64 = 0.008;
/// [`FALSE`] where the deviations from a smooth curve are the noise, by simulation of tables with
/// noise of 1 to 10 %, flat and bent.
const FALSE_OF_CURVE: f64 = 0.005;
/// Least levels for an estimate of noise from their scatter.
const LEVELS_MIN: usize = 5;
/// Fall, as a logarithm, that noise does not explain even in few rows.
const FALL_OF_FEW: f64 = 0.5;
/// Smallest fall, as a logarithm, after a rise that shows no noise, …
const FALL_AFTER_RISE: f64 = 0.25;
/// … and the fewest levels of such a rise, the maximum included.
const RISE_LEVELS: usize = 5;
/// Smallest noise of a table.
const NOISE_MIN: f64 = 0.01;
/// Degrees of freedom at which Student's law is the normal one.
const NORMAL: u64 = 400;
/// Difference of the last level from the mean of all that fell, as a logarithm, up to which the
/// fall is a step.
const STEP_FLAT: f64 = 0.05;

/// A fall of throughput beyond its maximum.
#[derive(Clone, Debug, PartialEq)]
pub struct ThroughputFall {
    /// The last level before it.
    pub peak: f64,
    /// The first level after it.
    pub from: f64,
    /// Mean throughput before it and after it.
    pub per_s: [f64; 2],
    /// The last level.
    pub last: LevelPoint,
    /// Whether throughput is the same at all levels after it.
    pub is_step: bool,
}

/// The fall of throughput at the last levels, if it is significant.
///
/// The levels of any part of the table are compared with all levels after it: the pair that chance
/// explains least is the fall. Noise is that of the intervals or, without any, the scatter within
/// both parts. The probability by chance allows for the number of pairs, among them the maximum of
/// noisy rows. Throughput that falls from level to level is compared with the deviation of the rows
/// from the Universal Scalability Law as well. A single level with the most, without others alike,
/// is compared with the rise to it.
fn fell(rows: &[LevelPoint]) -> Option<ThroughputFall> {
    let rows: Vec<LevelPoint> = rows.iter().filter(|p| !fails(p)).cloned().collect();
    let n = rows.len();
    let last = rows.last()?;
    let least = FALSE / (n * n) as f64;
    // The first level that is lower itself, and for it the part before that chance explains least.
    let first = (1..n).find_map(|cut| {
        let chance = |from: &usize| probability_by_chance(&rows[*from..cut], &rows[cut..]);
        let from = (0..cut).min_by(|a, b| chance(a).total_cmp(&chance(b)))?;
        let lower = (mean_throughput(&rows[from..cut]) / rows[cut].throughput_per_s).ln();
        (chance(&from) < least && lower > FALL_MIN).then_some((from, cut))
    });
    let has_intervals = rows.iter().all(|p| p.half_width().is_some());
    let steadily = || {
        let top = most_throughput(&rows[..n - 1])?;
        let fall = (top.throughput_per_s / last.throughput_per_s).ln();
        let falls = !has_intervals
            && fell_steadily(&rows, top.level)
            && fall > noise_of_curve(&rows).min(FALL_OF_FEW);
        let top = rows.iter().position(|p| p.level == top.level).filter(|_| falls)?;
        Some((top, top + 1))
    };
    let peaked = || {
        let top = most_throughput(&rows)?.level;
        let top = rows.iter().position(|p| p.level == top)?;
        let (rise, after) = rows.split_at(top + 1);
        let fall = (rows[top].throughput_per_s / most_throughput(after)?.throughput_per_s).ln();
        (!has_intervals && fall > FALL_AFTER_RISE && rose_evenly(rise)).then_some((top, top + 1))
    };
    let (from, cut) = first.or_else(steadily).or_else(peaked)?;
    // It falls from the plateau: levels that do not reach it say nothing of it.
    let most = most_throughput(&rows[from..cut])?.throughput_per_s;
    let is_of_plateau = |p: &&LevelPoint| (most / p.throughput_per_s).ln() <= STEP_FLAT;
    let plateau: Vec<LevelPoint> = rows[from..cut].iter().filter(is_of_plateau).cloned().collect();
    let per_s = [&plateau, &rows[cut..]].map(mean_throughput);
    let is_step = (last.throughput_per_s / per_s[1]).ln().abs() <= STEP_FLAT;
    ((per_s[0] / per_s[1]).ln() > FALL_MIN).then(|| ThroughputFall {
        peak: rows[cut - 1].level,
        from: rows[cut].level,
        per_s,
        last: last.clone(),
        is_step,
    })
}

fn mean_throughput(rows: &[LevelPoint]) -> f64 {
    rows.iter().map(|p| p.throughput_per_s).sum::<f64>() / rows.len() as f64
}

/// The probability that chance makes the second part as much lower than the first.
fn probability_by_chance(before: &[LevelPoint], after: &[LevelPoint]) -> f64 {
    let [mean_before, mean_after] = [before, after].map(mean_throughput);
    let fall = (mean_before / mean_after).ln();
    let both = || before.iter().chain(after);
    let n = before.len() + after.len();
    let parts = 1.0 / before.len() as f64 + 1.0 / after.len() as f64;
    let chance = |variance: f64, freedom: u64| {
        (1.0 - within(fall / (variance * parts).sqrt(), freedom.min(NORMAL))) / 2.0
    };
    let standard_error = |p: &LevelPoint| {
        let quantile = p.freedom.map_or(Z975, |freedom| t_beyond(0.05, freedom));
        p.relative_half().map(|half| half / quantile)
    };
    let errors: Option<Vec<f64>> = both().map(standard_error).collect();
    match errors {
        _ if fall <= 0.0 => 1.0,
        Some(errors) => {
            let freedom = both().filter_map(|p| p.freedom).min();
            let freedom = freedom.map_or(NORMAL, |f| f * (n as u64 - 1));
            chance(errors.iter().map(|e| e * e).sum::<f64>() / n as f64, freedom)
        }
        None if n > 2 => {
            let scatter = |part: &[LevelPoint], mean: f64| -> f64 {
                part.iter().map(|p| (p.throughput_per_s / mean).ln().powi(2)).sum()
            };
            let squares = scatter(before, mean_before) + scatter(after, mean_after);
            let freedom = n as u64 - 2;
            // Few rows may agree by chance; and none are without any noise.
            let of_scatter = chance((squares / freedom as f64).max(1e-12), freedom);
            of_scatter.max(chance(NOISE_MIN.powi(2), NORMAL))
        }
        None => 1.0,
    }
}

/// Whether each of at least two levels beyond the maximum has less than the one before.
fn fell_steadily(rows: &[LevelPoint], top: f64) -> bool {
    let beyond: Vec<f64> =
        rows.iter().filter(|p| p.level >= top).map(|p| p.throughput_per_s).collect();
    beyond.len() >= 3 && beyond.windows(2).all(|pair| pair[1] < pair[0])
}

/// Whether throughput rises from each level to the next, by ever less for each user: noise rarely
/// leaves as many rows so.
fn rose_evenly(rows: &[LevelPoint]) -> bool {
    let gain = |pair: &[LevelPoint]| {
        (pair[1].throughput_per_s - pair[0].throughput_per_s) / (pair[1].level - pair[0].level)
    };
    let gains: Vec<f64> = rows.windows(2).map(gain).collect();
    rows.len() >= RISE_LEVELS
        && gains.iter().all(|gain| *gain > 0.0)
        && gains.windows(2).all(|pair| pair[1] <= pair[0])
}

/// Largest fall of a flat curve by noise, estimated from the deviations from a smooth curve.
fn noise_of_curve(rows: &[LevelPoint]) -> f64 {
    let parameters = 3;
    if rows.len() < LEVELS_MIN {
        return FALL_OF_FEW;
    }
    let freedom = rows.len() - parameters;
    let squares = models::smooth_residual(rows).powi(2) * rows.len() as f64;
    let noise = (squares / freedom as f64).sqrt().max(NOISE_MIN);
    2f64.sqrt() * t_beyond(FALSE_OF_CURVE, freedom as u64) * noise
}
