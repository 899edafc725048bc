//! Laws of random lengths of time: think times, service times.

use crate::rng::{self, Rng};
use crate::time::Nanos;
use rand_distr::{Distribution, LogNormal};
use serde::{Deserialize, Serialize};

/// How a length of time is drawn.
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
    /// No time at all.
    pub const ZERO: Law = Law::Fixed(Nanos::ZERO);

    /// Draws a length.
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

    /// Whether it can never be anything but zero.
    pub fn is_zero(&self) -> bool {
        self.mean_ns() == 0.0
    }
}
