//! How the values of several levels went with time: not at all, along a line, in one step, or in a
//! cycle.
//!
//! Each course is fitted by least squares together with the value of each level. Schwarz's
//! criterion (BIC; Annals of Statistics 6, 1978) compares them: the place of a step and the period
//! of a cycle count as parameters. A difference of 10 is "very strong" evidence (Kass and Raftery,
//! JASA 90, 1995).

/// Difference of the criterion from which one course is better than another.
const BETTER: f64 = 10.0;
/// Smallest standard deviation of the residuals.
const DEVIATION_MIN: f64 = 2e-3;
/// Step between the frequencies that are tried, in cycles over the whole time, and the first.
const FREQUENCY_STEP: f64 = 0.1;
const FREQUENCY_MIN: f64 = 0.5;
/// Least values in a period.
const VALUES_PER_PERIOD: f64 = 2.5;
/// Least periods: fewer are a drift.
const PERIODS_MIN: f64 = 1.8;

/// A value of a level at a time. Values are usually logarithms, so that changes are ratios.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TimedValue {
    /// Number of the level, from 0.
    pub level: usize,
    /// Time.
    pub at: f64,
    /// The value.
    pub value: f64,
}

/// How values changed over time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Course {
    /// No change.
    Constant,
    /// A drift from the begin to the end; where values rose and fell, from the least to the most.
    Drift {
        /// The change.
        by: f64,
    },
    /// One change.
    Step {
        /// Number of the first value after it.
        at: usize,
        /// The change.
        by: f64,
    },
    /// Repeated rise and fall.
    Cycle {
        /// Time from one maximum to the next.
        period: f64,
        /// Half the difference of the most and the least.
        amplitude: f64,
    },
}

/// A course that was fitted.
#[derive(Clone, Copy, Debug)]
pub struct FittedCourse {
    /// Its kind.
    pub course: Course,
    /// The share of the variance that it explains.
    pub explained: f64,
    bic: f64,
    begin: f64,
    /// Change per unit of time, in a line.
    slope: f64,
    /// Radians per unit of time, and the coefficients of sine and cosine.
    frequency: f64,
    wave: [f64; 2],
}

impl FittedCourse {
    /// What a drift or a cycle adds to the values at a time.
    pub fn at(&self, time: f64) -> f64 {
        let since = time - self.begin;
        let (sin, cos) = (self.frequency * since).sin_cos();
        self.slope * since + self.wave[0] * sin + self.wave[1] * cos
    }
}

/// The course of values in the order of their times. A step may be at these places.
pub fn course(values: &[TimedValue], may_be_step: impl Fn(usize) -> bool) -> FittedCourse {
    let fit = CourseFit::of(values);
    let constant = fit.fitted(Course::Constant, fit.squares, 0.0);
    let Some(span) = fit.span.filter(|_| values.len() > 6) else { return constant };
    let best = |a: FittedCourse, b: FittedCourse| if a.bic <= b.bic { a } else { b };
    let line = fit.line(span);
    let step = (1..values.len()).filter(|&at| may_be_step(at)).map(|at| fit.step(at));
    let step = step.reduce(best);
    let most = values.len() as f64 / VALUES_PER_PERIOD;
    let tried = ((most - FREQUENCY_MIN) / FREQUENCY_STEP).max(0.0) as usize;
    let cycles = (0..=tried).map(|i| FREQUENCY_MIN + i as f64 * FREQUENCY_STEP);
    let smooth = cycles.filter_map(|turns| fit.cycle(span, turns)).fold(line, best);
    let change = match step {
        Some(step) if step.bic < smooth.bic - BETTER => step,
        _ => smooth,
    };
    if change.bic < constant.bic - BETTER { change } else { constant }
}

/// Values less the mean of their level.
struct CourseFit<'a> {
    values: &'a [TimedValue],
    levels: usize,
    left: Vec<f64>,
    /// Sum of the squares of `left`.
    squares: f64,
    /// Time from the first to the last, where it passes.
    span: Option<f64>,
}

impl CourseFit<'_> {
    fn of(values: &[TimedValue]) -> CourseFit<'_> {
        let levels = values.iter().map(|v| v.level + 1).max().unwrap_or(0);
        let mut fit = CourseFit { values, levels, left: Vec::new(), squares: 0.0, span: None };
        fit.left = fit.without_levels(|i| values[i].value);
        fit.squares = fit.left.iter().map(|y| y * y).sum();
        let ends = values.first().zip(values.last());
        fit.span = ends.map(|(first, last)| last.at - first.at).filter(|span| *span > 0.0);
        fit
    }

    /// A variable less its mean in each level.
    fn without_levels(&self, of: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![(0.0, 0.0); self.levels];
        for (i, v) in self.values.iter().enumerate() {
            sums[v.level].0 += 1.0;
            sums[v.level].1 += of(i);
        }
        let left = |(i, v): (usize, &TimedValue)| of(i) - sums[v.level].1 / sums[v.level].0;
        self.values.iter().enumerate().map(left).collect()
    }

    /// A course with the criterion for these squares of the residuals and parameters beside the
    /// levels.
    fn fitted(&self, course: Course, squares: f64, parameters: f64) -> FittedCourse {
        let n = self.values.len() as f64;
        let bic = n * (squares / n).max(DEVIATION_MIN.powi(2)).ln() + parameters * n.ln();
        let begin = self.values.first().map_or(0.0, |first| first.at);
        let explained = 1.0 - squares / self.squares.max(f64::MIN_POSITIVE);
        FittedCourse { course, explained, bic, begin, slope: 0.0, frequency: 0.0, wave: [0.0; 2] }
    }

    /// Coefficient of one variable, and the squares that it leaves.
    fn by_one(&self, x: &[f64]) -> (f64, f64) {
        let [xx, xy] = [x, &self.left].map(|other| dot(x, other));
        let slope = if xx > 0.0 { xy / xx } else { 0.0 };
        (slope, self.squares - slope * xy)
    }

    fn line(&self, span: f64) -> FittedCourse {
        let (slope, squares) = self.by_one(&self.without_levels(|i| self.values[i].at));
        let line = self.fitted(Course::Drift { by: slope * span }, squares, 1.0);
        FittedCourse { slope, ..line }
    }

    fn step(&self, at: usize) -> FittedCourse {
        let (by, squares) = self.by_one(&self.without_levels(|i| f64::from(u8::from(i >= at))));
        self.fitted(Course::Step { at, by }, squares, 2.0)
    }

    /// The cycle with this number of turns in the whole time.
    fn cycle(&self, span: f64, turns: f64) -> Option<FittedCourse> {
        let begin = self.values.first()?.at;
        let frequency = std::f64::consts::TAU * turns / span;
        let phase = |i: usize| frequency * (self.values[i].at - begin);
        let [s, c] = [f64::sin, f64::cos].map(|of| self.without_levels(|i| of(phase(i))));
        let [ss, sc, cc] = [dot(&s, &s), dot(&s, &c), dot(&c, &c)];
        let [sy, cy] = [&s, &c].map(|x| dot(x, &self.left));
        let determinant = ss * cc - sc * sc;
        if determinant < 1e-6 * ss * cc {
            return None;
        }
        let (a, b) = ((sy * cc - cy * sc) / determinant, (cy * ss - sy * sc) / determinant);
        let amplitude = a.hypot(b);
        let course = if turns >= PERIODS_MIN {
            Course::Cycle { period: span / turns, amplitude }
        } else {
            let at = |i: usize| a * phase(i).sin() + b * phase(i).cos();
            let all = || (0..self.values.len()).map(at);
            let range = all().fold(f64::MIN, f64::max) - all().fold(f64::MAX, f64::min);
            let rise = at(self.values.len() - 1) - at(0);
            Course::Drift { by: range.copysign(rise) }
        };
        let cycle = self.fitted(course, self.squares - a * sy - b * cy, 3.0);
        Some(FittedCourse { frequency, wave: [a, b], ..cycle })
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng;
    use crate::series::normal;

    /// Nine levels in five rounds, with this course and noise.
    fn values(of: impl Fn(f64) -> f64, sd: f64, rng: &mut rng::Rng) -> Vec<TimedValue> {
        let value = |i: usize| {
            let (level, at) = (4 * i % 9, i as f64);
            TimedValue { level, at, value: level as f64 + of(at / 44.0) + sd * normal(rng) }
        };
        (0..45).map(value).collect()
    }

    fn of(values: &[TimedValue]) -> Course {
        course(values, |at| (9..=36).contains(&at)).course
    }

    #[test]
    fn each_course_is_told_from_the_others() {
        let mut rng = rng::stream(3, 8);
        let mut wrong = Vec::new();
        for i in 0..400 {
            let phase = rng::unit(&mut rng);
            let at = 0.25 + 0.5 * phase;
            let turns = 2.0 + 2.0 * phase;
            let cycle = |t: f64| 0.1 * (std::f64::consts::TAU * (turns * t + phase)).sin();
            let half = |t: f64| 0.2 * (std::f64::consts::TAU * (0.8 * t + phase)).sin();
            let found = match i % 5 {
                0 => of(&values(|_| 0.0, 0.04, &mut rng)) == Course::Constant,
                1 => matches!(
                    of(&values(|t| -0.1 * t, 0.015, &mut rng)),
                    Course::Drift { by } if (by + 0.1).abs() < 0.04
                ),
                2 => matches!(
                    of(&values(|t| if t < at { 0.0 } else { 0.22 }, 0.03, &mut rng)),
                    Course::Step { by, .. } if (by - 0.22).abs() < 0.05
                ),
                3 => matches!(
                    of(&values(cycle, 0.03, &mut rng)),
                    Course::Cycle { period, .. } if (period * turns / 44.0 - 1.0).abs() < 0.1
                ),
                _ => matches!(of(&values(half, 0.03, &mut rng)), Course::Drift { .. }),
            };
            if !found {
                wrong.push(i % 5);
            }
        }
        assert!(wrong.len() <= 4, "{wrong:?}");
    }
}
