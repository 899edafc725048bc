//! Where throughput bends: saturation, the asymptotes and their crossing, and whether other methods
//! agree. Throughput is that of operations that did not fail, everywhere here.

mod fall;
mod methods;

pub use methods::DISAGREEMENT;

use super::table::LevelPoint;
use fall::fell;

/// A level at which more than this share of the operations failed says nothing about capacity.
pub const ERROR_SHARE_MAX: f64 = 0.05;

/// Levels of one plateau differ by no more than this share where no intervals are known.
const PLATEAU_SHARE: f64 = 0.02;
/// With intervals the plateau is what the intervals permit, within these shares.
const PLATEAU_SHARE_MIN: f64 = 0.01;
const PLATEAU_SHARE_MAX: f64 = 0.3;
/// No level below this share of the asymptotes' crossing is on the plateau: the rise from the
/// origin holds it below the maximum, whatever the intervals permit.
const PLATEAU_BEGINS: f64 = 0.9;
/// A level at which operations fail counts where it still serves this share of what others do: a
/// target that rejects what is too much is then at its maximum, and one that breaks is not.
const STILL_SERVES: f64 = 0.95;
/// Throughput that grows as users to a power below this, 5 % for each doubling, is saturated.
const SATURATED_SLOPE: f64 = 0.07;
/// Throughput that grows as users to a power above this is proportional to them.
const LINEAR_SLOPE: f64 = 0.9;
/// Over a whole table: throughput is flat below this slope, response time proportional above that.
const FLAT_SLOPE: f64 = 0.05;
const PROPORTIONAL_SLOPE: f64 = 0.8;
/// 97.5 % quantile of the normal distribution.
const Z95: f64 = 1.96;

/// What a table says about saturation.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The mean throughput of the levels that cannot be told from the one with the most.
    pub x_max_per_s: f64,
    /// Half the width of its 95 % confidence interval, as a share; `None` where a level has none.
    pub x_max_half_width: Option<f64>,
    /// The levels of that plateau, ascending.
    pub plateau: Vec<f64>,
    /// Whether and where throughput bends.
    pub shape: Shape,
    /// The last level, where its throughput is significantly below the maximum before it.
    pub fallen: Option<LevelPoint>,
    /// The rows that all this rests on, ascending.
    pub rows: Vec<LevelPoint>,
}

impl Reading {
    /// The row with the most throughput.
    pub fn top(&self) -> Option<&LevelPoint> {
        most_throughput(&self.rows)
    }
}

fn most_throughput(rows: &[LevelPoint]) -> Option<&LevelPoint> {
    rows.iter()
        .max_by(|a, b| a.throughput_per_s.total_cmp(&b.throughput_per_s))
}

/// Whether and where throughput bends.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
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
    /// The bend lies between the lowest levels, none of which shows the linear region.
    Unbracketed {
        /// Upper bound of the knee.
        at_most: f64,
    },
    /// It bends here.
    Bent(Knee),
    /// The target changed for good, and since then too few rounds were measured.
    Untold {
        /// Whole rounds since then.
        rounds: usize,
    },
}

/// The knee and what is known there.
#[derive(Clone, Debug, PartialEq)]
pub struct Knee {
    /// Where the asymptotes X₁·N and X_max cross: N* = X_max/X₁, which without pauses is
    /// X_max·R(1) (Denning and Buzen, Computing Surveys 10(3), 1978; Lazowska et al.,
    /// Quantitative System Performance, 1984, chapter 5).
    pub level: f64,
    /// 95 % confidence interval of it, by the delta method on a logarithmic scale.
    pub ci95: Option<[f64; 2]>,
    /// Half of its width as a share.
    pub half_width: Option<f64>,
    /// Slope of the rise: throughput per user at the lowest level.
    pub x_1_per_s: f64,
    /// Half the width of its confidence interval, as a share.
    pub x_1_half_width: Option<f64>,
    /// Throughput there, interpolated between the measured levels.
    pub throughput_per_s: f64,
    /// 90th percentile of response time there, interpolated.
    pub p90_ns: Option<f64>,
    /// The measured level that Kneedle picks.
    pub kneedle: Option<f64>,
    /// The measured level of the most power, X/R (Kleinrock, ICC 1979).
    pub max_power: Option<f64>,
    /// Where the knee lies, where the measured curve contradicts the asymptotes: then their
    /// crossing is no answer, and nothing narrower than this is known.
    pub range: Option<[f64; 2]>,
}

impl Knee {
    /// Sets the interval to half of this width, as a logarithm.
    pub fn set_half_width(&mut self, half: f64) {
        self.half_width = Some(half);
        self.ci95 = Some(around(self.level, half));
    }
}

/// The rows that say something about capacity: operations succeeded, and the generator measured
/// the target. Where it nowhere did, its rows are taken as they are.
pub fn usable(points: &[LevelPoint]) -> Vec<LevelPoint> {
    let served = |p: &&LevelPoint| p.throughput_per_s > 0.0;
    let is_measured = points.iter().filter(served).any(|p| p.valid);
    let counts = |p: &&LevelPoint| served(p) && (p.valid || !is_measured);
    let rows: Vec<&LevelPoint> = points.iter().filter(counts).collect();
    let sound = rows.iter().filter(|p| !fails(p));
    let most = sound.map(|p| p.throughput_per_s).fold(0.0, f64::max);
    rows.into_iter()
        .filter(|p| !fails(p) || p.throughput_per_s >= STILL_SERVES * most)
        .cloned()
        .collect()
}

/// Whether too many operations fail at a level for its response times to mean anything.
pub fn fails(p: &LevelPoint) -> bool {
    p.error_share > ERROR_SHARE_MAX
}

/// Reads a table of ascending levels; `None` where no row is [`usable`].
pub fn read(points: &[LevelPoint]) -> Option<Reading> {
    let rows = usable(points);
    let sound: Vec<LevelPoint> = rows.iter().filter(|p| !fails(p)).cloned().collect();
    let reading = read_rows(rows)?;
    // Where throughput rises on although operations fail, they do not fail for want of capacity.
    let is_mixed = !sound.is_empty() && sound.len() < reading.rows.len();
    match reading.shape {
        Shape::Rising { .. } if is_mixed => read_rows(sound),
        _ => Some(reading),
    }
}

fn read_rows(rows: Vec<LevelPoint>) -> Option<Reading> {
    let top = most_throughput(&rows)?;
    let begins = PLATEAU_BEGINS * top.throughput_per_s * per_user(&rows[0]);
    // A target that rejects what is too much is below its maximum where it rejects nothing.
    let is_full = |p: &&LevelPoint| !fails(top) || fails(p);
    let plateau: Vec<&LevelPoint> = rows
        .iter()
        .filter(|p| alike(p, top) && (p.level >= begins || p.level == top.level))
        .filter(is_full)
        .collect();
    let (x_max_per_s, x_max_half_width) = plateau_mean(&plateau);
    let levels: Vec<f64> = plateau.iter().map(|p| p.level).collect();
    let full = levels.first().copied()?;
    Some(Reading {
        x_max_per_s,
        x_max_half_width,
        plateau: levels,
        shape: shape(&rows, top, [x_max_per_s, full], x_max_half_width),
        fallen: fell(&rows).cloned(),
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
    [x_max, full]: [f64; 2],
    half: Option<f64>,
) -> Shape {
    let (lowest, last) = (&points[0], &points[points.len() - 1]);
    if points.len() == 1 {
        return Shape::OneLevel;
    }
    let linear = lowest.level == 1.0 || slope(lowest, &points[1]) >= LINEAR_SLOPE;
    if let Some((before, gain_percent)) = rise(points, top) {
        let at_least = linear.then(|| last.throughput_per_s * per_user(lowest));
        return Shape::Rising {
            at_least,
            gain_percent,
            before,
        };
    }
    if lowest.level > 1.0 && saturated(points, top) {
        return Shape::SaturatedBelow {
            lowest: lowest.level,
        };
    }
    let level = x_max * per_user(lowest);
    if !linear {
        return Shape::Unbracketed { at_most: level };
    }
    Shape::Bent(knee(points, [x_max, full], half))
}

fn knee(points: &[LevelPoint], [x_max, full]: [f64; 2], x_max_half_width: Option<f64>) -> Knee {
    let lowest = &points[0];
    // The generator's part of a cycle at the lowest level is none of the target's.
    let level = x_max * per_user(lowest) * (1.0 - lowest.generator_share);
    let x_1_half_width = lowest.half_width();
    let half_width = x_max_half_width
        .zip(x_1_half_width)
        .map(|(a, b)| a.hypot(b));
    let sound = |p: &LevelPoint| !fails(p);
    let mut knee = Knee {
        level,
        ci95: half_width.map(|h| around(level, h)),
        half_width,
        x_1_per_s: lowest.throughput_per_s / lowest.level,
        x_1_half_width,
        // The maximum is a mean over several levels, which one of them may exceed by chance.
        throughput_per_s: interpolate(points, level, |p| Some(p.throughput_per_s))
            .unwrap_or(lowest.throughput_per_s)
            .min(x_max),
        p90_ns: interpolate(points, level, |p| p.p90_ns.filter(|_| sound(p))),
        kneedle: methods::kneedle(points),
        max_power: methods::max_power(points),
        range: None,
    };
    knee.range = methods::contradicted(points, &knee, x_max, full);
    knee
}

/// The interval of half a width `share` around `value`, on a logarithmic scale.
fn around(value: f64, share: f64) -> [f64; 2] {
    [value * (-share).exp(), value * share.exp()]
}

/// N/X: users per unit of throughput.
fn per_user(p: &LevelPoint) -> f64 {
    p.level / p.throughput_per_s
}

/// Whether the throughputs of two levels cannot be told apart.
fn alike(a: &LevelPoint, b: &LevelPoint) -> bool {
    let difference = (a.throughput_per_s - b.throughput_per_s).abs();
    difference <= tolerance(a, b) * a.throughput_per_s.max(b.throughput_per_s)
}

/// By which share two levels of one plateau may differ.
fn tolerance(a: &LevelPoint, b: &LevelPoint) -> f64 {
    match a.half_width().zip(b.half_width()) {
        Some((a, b)) => a.hypot(b).clamp(PLATEAU_SHARE_MIN, PLATEAU_SHARE_MAX),
        None => PLATEAU_SHARE,
    }
}

/// By which share two levels may differ by chance alone.
fn noise(a: &LevelPoint, b: &LevelPoint) -> f64 {
    let halves = a.half_width().zip(b.half_width());
    halves.map_or(PLATEAU_SHARE, |(a, b)| a.hypot(b).max(PLATEAU_SHARE_MIN))
}

/// Whether throughput still rises at the last level: the level that it is compared with, and the
/// gain over it in percent. That is the highest one far enough below for a proportional rise to be
/// told from none.
fn rise(points: &[LevelPoint], top: &LevelPoint) -> Option<(f64, f64)> {
    let (last, earlier) = points.split_last()?;
    if !alike(last, top) {
        return None;
    }
    let telling = |p: &&LevelPoint| last.level / p.level - 1.0 >= 3.0 * tolerance(p, last);
    let told = earlier.iter().rfind(telling);
    let before = told.or(earlier.first())?;
    let gain = last.throughput_per_s / before.throughput_per_s - 1.0;
    let rises = match told {
        Some(_) => gain > noise(before, last) && slope(before, last) >= SATURATED_SLOPE,
        None => slope(before, last) >= 0.5,
    };
    rises.then_some((before.level, 100.0 * gain))
}

/// Whether every level is past saturation: the lowest already has the most throughput, or
/// throughput is flat over all levels, and response time is proportional to users.
fn saturated(points: &[LevelPoint], top: &LevelPoint) -> bool {
    let flat = regression(points, |p| p.throughput_per_s).abs() < FLAT_SLOPE;
    let full = alike(&points[0], top);
    (flat || full) && regression(points, LevelPoint::response_ns) >= PROPORTIONAL_SLOPE
}

/// Power of users that throughput grows with, from one level to another.
fn slope(from: &LevelPoint, to: &LevelPoint) -> f64 {
    (to.throughput_per_s / from.throughput_per_s).ln() / (to.level / from.level).ln()
}

/// The same for any figure over all levels, by least squares of the logarithms.
fn regression(points: &[LevelPoint], f: impl Fn(&LevelPoint) -> f64) -> f64 {
    let n = points.len() as f64;
    let logs = || points.iter().map(|p| (p.level.ln(), f(p).ln()));
    let (sum_x, sum_y) = logs().fold((0.0, 0.0), |(a, b), (x, y)| (a + x, b + y));
    let (mean_x, mean_y) = (sum_x / n, sum_y / n);
    let sxy: f64 = logs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let sxx: f64 = logs().map(|(x, _)| (x - mean_x).powi(2)).sum();
    sxy / sxx
}

/// The mean of the plateau, the more certain levels counting for more, and half the width of its
/// 95 % interval as a share: the larger of what the levels' own intervals imply and what the
/// scatter between them shows.
fn plateau_mean(plateau: &[&LevelPoint]) -> (f64, Option<f64>) {
    let k = plateau.len() as f64;
    let halves: Option<Vec<f64>> = plateau.iter().map(|p| p.half_width()).collect();
    let weight = |half: &f64| half.max(PLATEAU_SHARE_MIN).powi(-2);
    let weights: Vec<f64> = match &halves {
        Some(halves) => halves.iter().map(weight).collect(),
        None => plateau.iter().map(|_| 1.0).collect(),
    };
    let sum: f64 = weights.iter().sum();
    let rows = || plateau.iter().zip(&weights);
    let mean = rows().map(|(p, w)| w * p.throughput_per_s).sum::<f64>() / sum;
    let half = halves.map(|halves| {
        let within = halves.iter().zip(&weights).map(|(h, w)| (h * w).powi(2));
        let within = within.sum::<f64>().sqrt() / sum;
        let scatter = rows().map(|(p, w)| w * (p.throughput_per_s / mean - 1.0).powi(2));
        let between = Z95 * (scatter.sum::<f64>() / sum / (k - 1.0).max(1.0)).sqrt();
        within.max(between)
    });
    (mean, half)
}
