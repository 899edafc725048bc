//! Laws of random lengths of time: think times, service times.

use crate::rng::{self, Rng};
use crate::time::Nanos;
use rand_distr::{Distribution, LogNormal};
use serde::{Deserialize, Serialize};

/// Law of a random length of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Law {
    /// Always the same.
    Fixed(Nanos),
    /// Exponential with this mean.
    Exp(Nanos),
    /// Uniform between the two, both included.
    Uniform(Nanos, Nanos),
    /// Lognormal with this median and this σ of its logarithm (0 to 5).
    #[serde(rename = "lognormal")]
    LogNormal(Nanos, f64),
}

impl Law {
    /// The length 0.
    pub const ZERO: Law = Law::Fixed(Nanos::ZERO);

    /// Draws a length.
    #[inline]
    pub fn sample(&self, rng: &mut Rng) -> Nanos {
        match *self {
            Law::Fixed(t) => t,
            Law::Exp(mean) => Nanos((mean.0 as f64 * rng::exp1(rng)) as u64),
            Law::Uniform(lo, hi) => {
                Nanos(lo.0 + ((hi - lo).0 as f64 * rng::unit(rng)).round() as u64)
            }
            Law::LogNormal(median, sigma) => {
                let law = LogNormal::new((median.0.max(1) as f64).ln(), sigma);
                Nanos(law.map_or(median.0 as f64, |l| l.sample(rng)) as u64)
            }
        }
    }

    /// The expected length, in nanoseconds.
    pub fn mean_ns(&self) -> f64 {
        match *self {
            Law::Fixed(t) | Law::Exp(t) => t.0 as f64,
            Law::Uniform(lo, hi) => (lo.0 as f64 + hi.0 as f64) / 2.0,
            Law::LogNormal(median, sigma) => median.0 as f64 * (sigma * sigma / 2.0).exp(),
        }
    }

    /// Whether it is always 0.
    #[inline]
    pub fn is_zero(&self) -> bool {
        self.mean_ns() == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn samples(law: Law) -> Vec<f64> {
        let mut rng = rng::stream(11, 0);
        (0..100_000).map(|_| law.sample(&mut rng).0 as f64).collect()
    }

    #[test]
    fn samples_have_the_mean_and_the_spread_of_their_law() {
        let lognormal_cv = ((0.5f64 * 0.5).exp() - 1.0).sqrt();
        for (law, cv) in [
            (Law::Fixed(Nanos(10 * MS)), 0.0),
            (Law::Exp(Nanos(10 * MS)), 1.0),
            (Law::Uniform(Nanos(0), Nanos(20 * MS)), 1.0 / 3f64.sqrt()),
            (Law::LogNormal(Nanos(10 * MS), 0.5), lognormal_cv),
        ] {
            let values = samples(law);
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
            assert!((mean / law.mean_ns() - 1.0).abs() < 0.01, "{law:?}: mean {mean}");
            assert!((variance.sqrt() / mean - cv).abs() < 0.02, "{law:?}: cv {cv}");
        }
    }

    #[test]
    fn half_of_a_lognormal_lies_below_its_median() {
        let values = samples(Law::LogNormal(Nanos(10 * MS), 1.0));
        let below = values.iter().filter(|&&x| x < 10.0 * MS as f64).count();
        assert!(below.abs_diff(50_000) < 700, "{below}");
    }

    #[test]
    fn both_ends_of_a_uniform_law_occur() {
        let values = samples(Law::Uniform(Nanos(3), Nanos(5)));
        for end in [3.0, 4.0, 5.0] {
            assert!(values.contains(&end), "{end}");
        }
        assert!(values.iter().all(|x| (3.0..=5.0).contains(x)));
    }

    #[test]
    fn only_a_law_that_is_always_zero_is_zero() {
        for (law, zero) in [
            (Law::ZERO, true),
            (Law::Exp(Nanos::ZERO), true),
            (Law::Uniform(Nanos::ZERO, Nanos::ZERO), true),
            (Law::Uniform(Nanos::ZERO, Nanos(1)), false),
            (Law::Fixed(Nanos(1)), false),
        ] {
            assert_eq!(law.is_zero(), zero, "{law:?}");
        }
    }
}
