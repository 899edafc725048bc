//! Independent uniform gaps.

use super::{ArrivalProcess, COUNT_SIGMAS, GapLaw, Process, ProcessKind};
use crate::quantity::{ParseError, Rate, Share};
use crate::rng::{self, Rng};
use crate::time::Nanos;

/// Gaps are independent and uniform in [0, 2/λ), the first one counted from 0.
///
/// The superposition of independent streams would not have uniform gaps. So every worker draws the
/// same common schedule, from the same seed, and worker i of W keeps the operations k ≡ i (mod W).
#[derive(Clone, Debug)]
pub struct Uniform {
    gap_max_ns: f64,
    rng: Rng,
    now: Nanos,
    /// Part of the current time below a nanosecond, so that rounding does not shift the rate.
    fraction: f64,
    /// Operations of the common schedule to draw until the next one of this worker.
    step: u32,
    of: u32,
}

impl Uniform {
    /// One worker's share of the common schedule.
    pub fn new(rate: Rate, share: Share, seed: u64) -> Uniform {
        Uniform {
            gap_max_ns: 2e9 / rate.per_s(),
            rng: rng::stream(seed, rng::ARRIVALS),
            now: Nanos::ZERO,
            fraction: 0.0,
            step: share.index + 1,
            of: share.of,
        }
    }
}

impl ArrivalProcess for Uniform {
    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        for _ in 0..self.step {
            let gap = self.fraction + self.gap_max_ns * rng::unit(&mut self.rng);
            self.now += Nanos(gap as u64);
            self.fraction = gap.fract();
        }
        self.step = self.of;
        Some(self.now)
    }

    fn rate_at(&self, _t: Nanos) -> f64 {
        2e9 / (self.gap_max_ns * f64::from(self.of))
    }
}

impl Process for Uniform {
    type Law = ();
    const KIND: ProcessKind = ProcessKind {
        gaps: Some(GapLaw::Uniform),
        is_random: true,
        ..ProcessKind::plain("uniform", "uniform: gaps between 0 and 2/rate.")
    };

    fn parse(_text: &str, arguments: &[&str]) -> Option<Result<(), ParseError>> {
        arguments.is_empty().then_some(Ok(()))
    }

    fn begin(_law: &(), rate: Rate, share: Share, seed: u64) -> Uniform {
        Uniform::new(rate, share, seed)
    }

    fn slack(_law: &(), _rate: Rate, operations: f64) -> f64 {
        // Gaps that vary less than exponential ones make counts that vary less.
        COUNT_SIGMAS * operations.sqrt()
    }
}
