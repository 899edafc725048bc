//! Independent exponential gaps.

use super::{ArrivalProcess, COUNT_SIGMAS, GapLaw, Process, ProcessKind};
use crate::quantity::{ParseError, Rate, Share};
use crate::rng::{self, Rng};
use crate::time::Nanos;

/// Gaps are independent and exponential, −ln(1−U)/λ, the first one counted from 0.
///
/// Each of W workers draws an independent stream of rate λ/W. The superposition of independent
/// Poisson processes is a Poisson process of the summed rate (Kingman, Poisson Processes, 1993,
/// §2.2). So the whole is exact, and no worker has to know of another.
#[derive(Clone, Debug)]
pub struct Poisson {
    gap_mean_ns: f64,
    rng: Rng,
    now: Nanos,
    /// Part of the current time below a nanosecond, so that rounding does not shift the rate.
    fraction: f64,
}

impl Poisson {
    /// One worker's independent stream of rate/W.
    pub fn new(rate: Rate, share: Share, seed: u64) -> Poisson {
        Poisson {
            gap_mean_ns: 1e9 * f64::from(share.of) / rate.per_s(),
            rng: rng::stream(seed, rng::ARRIVALS + u64::from(share.index)),
            now: Nanos::ZERO,
            fraction: 0.0,
        }
    }
}

impl ArrivalProcess for Poisson {
    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        let gap = self.fraction + self.gap_mean_ns * rng::exp1(&mut self.rng);
        self.now += Nanos(gap as u64);
        self.fraction = gap.fract();
        Some(self.now)
    }

    fn rate_at(&self, _t: Nanos) -> f64 {
        1e9 / self.gap_mean_ns
    }
}

impl Process for Poisson {
    type Law = ();
    const KIND: ProcessKind = ProcessKind {
        gaps: Some(GapLaw::Poisson),
        is_random: true,
        ..ProcessKind::plain("poisson", "poisson: independent exponential gaps.")
    };

    fn parse(_text: &str, arguments: &[&str]) -> Option<Result<(), ParseError>> {
        arguments.is_empty().then_some(Ok(()))
    }

    fn begin(_law: &(), rate: Rate, share: Share, seed: u64) -> Poisson {
        Poisson::new(rate, share, seed)
    }

    fn slack(_law: &(), _rate: Rate, operations: f64) -> f64 {
        COUNT_SIGMAS * operations.sqrt()
    }
}
