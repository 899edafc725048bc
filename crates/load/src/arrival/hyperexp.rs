//! Independent gaps that vary more than exponential ones.

use super::{ArrivalProcess, COUNT_SIGMAS, Process, ProcessKind};
use crate::quantity::parse::{error, parse_number, quoted};
use crate::quantity::{ParseError, Rate, Share};
use crate::rng::{self, Rng};
use crate::time::Nanos;

/// Gaps are independent and hyperexponential with a coefficient of variation of at least 1.
///
/// A gap is exponential of rate 2pλ with probability p, else of rate 2(1 − p)λ, so that both kinds
/// make up half of the time. p = (1 + √((c² − 1)/(c² + 1)))/2 gives the coefficient c. (Balanced
/// means: Tijms, A First Course in Stochastic Models, 2003, appendix B.) c = 1 is Poisson.
///
/// The superposition of independent streams would have other gaps. So every worker draws the same
/// common schedule, from the same seed, and worker i of W keeps the operations k ≡ i (mod W).
#[derive(Clone, Debug)]
pub struct Hyperexp {
    /// Probability of a short gap.
    short_share: f64,
    short_mean_ns: f64,
    long_mean_ns: f64,
    rng: Rng,
    now: Nanos,
    /// Part of the current time below a nanosecond, so that rounding does not shift the rate.
    fraction: f64,
    /// Operations of the common schedule to draw until the next one of this worker.
    step: u32,
    of: u32,
}

impl Hyperexp {
    /// One worker's share of the common schedule. `cv` is the coefficient of variation, at least 1.
    pub fn new(rate: Rate, cv: f64, share: Share, seed: u64) -> Hyperexp {
        let short_share = 0.5 * (1.0 + ((cv * cv - 1.0) / (cv * cv + 1.0)).sqrt());
        let half_gap_ns = 0.5e9 / rate.per_s();
        Hyperexp {
            short_share,
            short_mean_ns: half_gap_ns / short_share,
            long_mean_ns: half_gap_ns / (1.0 - short_share),
            rng: rng::stream(seed, rng::ARRIVALS),
            now: Nanos::ZERO,
            fraction: 0.0,
            step: share.index + 1,
            of: share.of,
        }
    }
}

impl ArrivalProcess for Hyperexp {
    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        for _ in 0..self.step {
            let is_short = rng::unit(&mut self.rng) < self.short_share;
            let mean_ns = if is_short { self.short_mean_ns } else { self.long_mean_ns };
            let gap = self.fraction + mean_ns * rng::exp1(&mut self.rng);
            self.now += Nanos(gap as u64);
            self.fraction = gap.fract();
        }
        self.step = self.of;
        Some(self.now)
    }

    fn rate_at(&self, _t: Nanos) -> f64 {
        0.5e9 / (self.short_mean_ns * self.short_share * f64::from(self.of))
    }
}

impl Process for Hyperexp {
    /// The coefficient of variation.
    type Law = f64;
    const KIND: ProcessKind = ProcessKind {
        shape: "hyperexp(cv)",
        meaning: "hyperexp(CV)",
        is_random: true,
        ..ProcessKind::plain(
            "hyperexp",
            "hyperexp(cv): independent gaps that vary more than Poisson's: their coefficient of \
             variation is 1 to 10, such as hyperexp(3).",
        )
    };

    fn parse(text: &str, arguments: &[&str]) -> Option<Result<f64, ParseError>> {
        let [cv] = arguments else {
            return None;
        };
        let in_range = parse_number(cv).filter(|cv| (1.0..=CV_MAX).contains(cv));
        Some(in_range.ok_or_else(|| {
            error(format!(
                "{} has no coefficient of variation from 1 to 10, such as hyperexp(3)",
                quoted(text)
            ))
        }))
    }

    fn text(law: &f64, _file: &str) -> String {
        format!("hyperexp({law})")
    }

    fn begin(law: &f64, rate: Rate, share: Share, seed: u64) -> Hyperexp {
        Hyperexp::new(rate, *law, share, seed)
    }

    fn slack(law: &f64, _rate: Rate, operations: f64) -> f64 {
        // The counts of a renewal process have a variance of cv² times their mean. The second term
        // is for a window of few long gaps.
        COUNT_SIGMAS * law * operations.sqrt() + law * law
    }
}

/// Beyond it a run of a few thousand operations has too few long gaps to keep its rate.
const CV_MAX: f64 = 10.0;
