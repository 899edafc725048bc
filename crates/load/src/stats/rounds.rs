//! Model of a randomised complete block design: value = level + round + residual. Every level is
//! measured once in each round, in random order. So changes with time meet all levels alike
//! (Fisher, *The Design of Experiments*, 1935).
//!
//! The fit is robust: residuals have Huber's weights (Annals of Mathematical Statistics 35, 1964),
//! starting from Tukey's median polish. Values are usually logarithms, so that effects are ratios.

use super::sample::{mean, t_beyond};

/// Residuals beyond this multiple of their spread lose weight: 95 % efficient for normal ones.
const HUBER: f64 = 1.345;
/// Ratio of a normal law's standard deviation to its median absolute deviation.
pub const MAD: f64 = 1.482_602_218_505_602;
/// Smallest residual spread: figures have five digits.
const SPREAD_MIN: f64 = 1e-5;
/// Passes of the fit. Each costs as much as reading the values; most fits settle within 10.
const PASSES: usize = 60;

/// One value of the design. A cell may be missing, or have several values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BlockCell {
    /// Number of the level, from 0.
    pub level: usize,
    /// Number of the round, from 0.
    pub round: usize,
    /// Measured value.
    pub value: f64,
}

/// An estimate with half the width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Half the width of the interval, by Student's law.
    pub half_width: f64,
}

impl Estimate {
    /// The ends of the interval.
    pub fn ci95(&self) -> [f64; 2] {
        [self.value - self.half_width, self.value + self.half_width]
    }
}

/// The fitted model.
#[derive(Clone, Debug, PartialEq)]
pub struct RoundsFit {
    /// Value of each level in the median round; `None` where it has no value.
    pub levels: Vec<Option<f64>>,
    /// Effect of each round, with a median of 0; `None` where it has no value.
    pub rounds: Vec<Option<f64>>,
    /// Residual of each cell.
    pub residuals: Vec<f64>,
    /// Weight of each cell, 0 to 1; 1 for a residual of the usual size.
    pub weights: Vec<f64>,
    /// Standard deviation of the residuals, from their median absolute deviation.
    pub spread: f64,
    /// Degrees of freedom of the residuals, at least 1.
    pub freedom: usize,
    /// Variance of one value of full weight.
    variance: f64,
    /// Sum of weights by level.
    weight_of_level: Vec<f64>,
}

/// Fits the model to cells of these numbers of levels and rounds; `None` without degrees of freedom
/// for the residuals.
pub fn fit(cells: &[BlockCell], levels: usize, rounds: usize) -> Option<RoundsFit> {
    let filled = |n: usize, of: fn(&BlockCell) -> usize| {
        (0..n).filter(|&i| cells.iter().any(|c| of(c) == i)).count()
    };
    let parameters = filled(levels, |c| c.level) + filled(rounds, |c| c.round);
    let freedom = (cells.len() + 1).checked_sub(parameters)?;
    if freedom == 0 || cells.is_empty() {
        return None;
    }
    let mut effects = Effects { level: vec![0.0; levels], round: vec![0.0; rounds] };
    for _ in 0..PASSES / 3 {
        effects.sweep(cells, |_| 1.0, |values| median(values.iter().map(|v| v.0)));
    }
    let inflation = cells.len() as f64 / freedom as f64;
    let spread_of = |residuals: &[f64]| {
        let median = median(residuals.iter().map(|r| r.abs()));
        (MAD * median * inflation.sqrt()).max(SPREAD_MIN)
    };
    let mut residuals = effects.residuals(cells);
    let mut spread = spread_of(&residuals);
    let mut weights = vec![1.0; cells.len()];
    for _ in 0..PASSES {
        weights = residuals.iter().map(|r| huber_weight(r / spread)).collect();
        effects.sweep(
            cells,
            |i| weights[i],
            |values| {
                let sum: f64 = values.iter().map(|v| v.1).sum();
                values.iter().map(|v| v.0 * v.1).sum::<f64>() / sum
            },
        );
        residuals = effects.residuals(cells);
        spread = spread_of(&residuals);
    }
    let held = residuals.iter().zip(&weights);
    let squares: f64 = held.map(|(r, w)| (w * r).powi(2)).sum();
    // Derivative of Huber's function: 1 for residuals of full weight, else 0.
    let full = weights.iter().filter(|w| **w >= 1.0).count().max(1);
    let efficiency = full as f64 / cells.len() as f64;
    // Few cells per parameter, and missing cells, leave estimates less certain (Huber,
    // *Robust Statistics*, 1981, section 7.6).
    let few = 1.0 + (parameters as f64 / cells.len() as f64) * (1.0 - efficiency) / efficiency;
    let missing = ((levels * rounds) as f64 / cells.len() as f64).max(1.0);
    let variance = squares / freedom as f64 / efficiency.powi(2) * few.powi(2) * missing;
    let sum_of = |level: usize| {
        let here = cells.iter().zip(&weights).filter(|(c, _)| c.level == level);
        here.map(|(_, w)| w).sum::<f64>()
    };
    let has_level = |i: usize| cells.iter().any(|c| c.level == i);
    let has_round = |i: usize| cells.iter().any(|c| c.round == i);
    let filled = (0..rounds).filter(|&i| has_round(i));
    let middle = median(filled.map(|i| effects.round[i]));
    let level = |i: usize| has_level(i).then(|| effects.level[i] + middle);
    let round = |i: usize| has_round(i).then(|| effects.round[i] - middle);
    Some(RoundsFit {
        levels: (0..levels).map(level).collect(),
        rounds: (0..rounds).map(round).collect(),
        weight_of_level: (0..levels).map(sum_of).collect(),
        residuals,
        weights,
        spread,
        freedom,
        variance: variance.max(SPREAD_MIN.powi(2)),
    })
}

/// Huber's weight of a deviation in standard deviations: 1 up to 1.345 of them.
pub fn huber_weight(deviation: f64) -> f64 {
    (HUBER / deviation.abs().max(1e-300)).min(1.0)
}

/// Effects while they are fitted.
struct Effects {
    level: Vec<f64>,
    round: Vec<f64>,
}

impl Effects {
    /// Sets the levels, then the rounds, to the centre of what the other leaves. `centre` takes
    /// pairs of value and weight.
    fn sweep(
        &mut self,
        cells: &[BlockCell],
        weight: impl Fn(usize) -> f64,
        centre: impl Fn(&[(f64, f64)]) -> f64,
    ) {
        let all = || cells.iter().enumerate();
        for level in 0..self.level.len() {
            let here = all().filter(|(_, c)| c.level == level);
            let left: Vec<_> =
                here.map(|(i, c)| (c.value - self.round[c.round], weight(i))).collect();
            if !left.is_empty() {
                self.level[level] = centre(&left);
            }
        }
        for round in 0..self.round.len() {
            let here = all().filter(|(_, c)| c.round == round);
            let left: Vec<_> =
                here.map(|(i, c)| (c.value - self.level[c.level], weight(i))).collect();
            if !left.is_empty() {
                self.round[round] = centre(&left);
            }
        }
    }

    fn residuals(&self, cells: &[BlockCell]) -> Vec<f64> {
        let of = |c: &BlockCell| c.value - self.level[c.level] - self.round[c.round];
        cells.iter().map(of).collect()
    }
}

/// The widest half of an interval. Values are logarithms: the ends of two such intervals together
/// are still numbers as powers of e, and a wider one says no more.
const HALF_WIDTH_MAX: f64 = 300.0;

impl RoundsFit {
    /// Value of a level. The interval is against other levels: it has no difference between rounds,
    /// which all levels share.
    pub fn level(&self, level: usize) -> Option<Estimate> {
        let value = (*self.levels.get(level)?)?;
        let half_width = self.half_width(1.0 / self.weight_of_level[level]);
        Some(Estimate { value, half_width })
    }

    /// Difference of level `b` from level `a`.
    pub fn difference(&self, a: usize, b: usize) -> Option<Estimate> {
        let value = (*self.levels.get(b)?)? - (*self.levels.get(a)?)?;
        let [a, b] = [a, b].map(|level| 1.0 / self.weight_of_level[level]);
        Some(Estimate { value, half_width: self.half_width(a + b) })
    }

    /// Half the width of the interval of a mean with this multiple of one value's variance.
    pub fn half_width(&self, multiple: f64) -> f64 {
        let half = t_beyond(0.05, self.freedom as u64) * (self.variance * multiple).sqrt();
        half.min(HALF_WIDTH_MAX)
    }
}

/// The straight line of least squares through points of (time, value).
pub struct TrendLine {
    mean_x: f64,
    mean_y: f64,
    /// Sum of the squared deviations of the times.
    pub sxx: f64,
    /// Rise per unit of time.
    pub slope: f64,
}

impl TrendLine {
    /// The line through these points.
    pub fn through(points: &[(f64, f64)]) -> TrendLine {
        let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
        let (mean_x, mean_y) = (mean(&xs), mean(&ys));
        let sxx: f64 = xs.iter().map(|x| (x - mean_x).powi(2)).sum();
        let sxy = points.iter().map(|(x, y)| (x - mean_x) * (y - mean_y));
        let slope = sxy.sum::<f64>() / sxx.max(f64::MIN_POSITIVE);
        TrendLine { mean_x, mean_y, sxx, slope }
    }

    /// Value of the point less that of the line.
    pub fn residual(&self, (x, y): &(f64, f64)) -> f64 {
        y - self.mean_y - self.slope * (x - self.mean_x)
    }
}

/// Rise of the least-squares line through points of (time, value), from the first time to the last.
/// `None` below three points, and where all have the same time.
pub fn trend(points: &[(f64, f64)]) -> Option<Estimate> {
    let freedom = points.len().checked_sub(2).filter(|&f| f > 0)?;
    let line = TrendLine::through(points);
    if line.sxx <= 0.0 {
        return None;
    }
    let squares: f64 = points.iter().map(|p| line.residual(p).powi(2)).sum();
    let variance = squares / freedom as f64;
    let xs = || points.iter().map(|p| p.0);
    let length = xs().fold(f64::MIN, f64::max) - xs().fold(f64::MAX, f64::min);
    Some(Estimate {
        value: line.slope * length,
        half_width: t_beyond(0.05, freedom as u64) * (variance / line.sxx).sqrt() * length,
    })
}

/// The estimate that `of` makes of all groups of the data, with its interval by the jackknife
/// (Tukey, Annals of Mathematical Statistics 29, 1958): `of` is also given the group to leave out.
/// `None` below three groups, and where it cannot be made without one.
pub fn jackknife(groups: usize, of: impl Fn(Option<usize>) -> Option<f64>) -> Option<Estimate> {
    let value = of(None)?;
    let without: Vec<f64> = (0..groups).map(|group| of(Some(group))).collect::<Option<_>>()?;
    let n = groups as f64;
    (groups >= 3).then(|| {
        let middle = mean(&without);
        let squares: f64 = without.iter().map(|x| (x - middle).powi(2)).sum();
        let error = ((n - 1.0) / n * squares).sqrt().max(SPREAD_MIN);
        Estimate { value, half_width: t_beyond(0.05, groups as u64 - 1) * error }
    })
}

/// The median; 0 without values.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        n if n % 2 == 1 => sorted[n / 2],
        n => (sorted[n / 2 - 1] + sorted[n / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests;
