//! Renewal processes: gaps are independent and of one law. They are equal, exponential, uniform, or
//! vary more than exponential ones.

use super::{ArrivalProcess, COUNT_SIGMAS, GapLaw, Process, ProcessKind};
use crate::quantity::{ParseError, Rate, Share, error, parse_number, quoted};
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

/// Operation k is intended at ⌊k·period/operations⌋ ns, the first at 0.
///
/// Each time is exact, in integers, so no error adds up: a step is a whole number of nanoseconds,
/// and its remainder is carried. Worker i of W takes the k ≡ i (mod W), so that the workers' parts
/// interleave.
#[derive(Clone, Debug)]
pub struct Constant {
    rate: Rate,
    share: Share,
    /// The next operation of this worker.
    k: u64,
    /// Its intended time ⌊k·period/operations⌋, and the remainder k·period mod operations.
    intended: (Nanos, u64),
    /// Quotient and remainder from one operation of this worker to its next.
    step: (Nanos, u64),
}

impl Constant {
    /// One worker's share of operations at `rate`.
    pub fn new(rate: Rate, share: Share) -> Constant {
        let k = u64::from(share.index);
        Constant {
            rate,
            share,
            k,
            intended: quotient_and_rest(rate, k),
            step: quotient_and_rest(rate, share.of.into()),
        }
    }
}

/// k·period over operations: the whole nanoseconds, and the rest in units of 1/operations ns.
fn quotient_and_rest(rate: Rate, k: u64) -> (Nanos, u64) {
    let rest = u128::from(k) * u128::from(rate.period().0) % u128::from(rate.operations());
    (rate.moment(k), rest as u64)
}

impl ArrivalProcess for Constant {
    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        let (intended, rest) = self.intended;
        let (step, step_rest) = self.step;
        self.k += u64::from(self.share.of);
        // Compared without adding: the sum of the two remainders could overflow.
        let lacking = self.rate.operations() - step_rest;
        self.intended = if rest >= lacking {
            (intended + step + Nanos(1), rest - lacking)
        } else {
            (intended + step, rest + step_rest)
        };
        Some(intended)
    }

    fn skip(&mut self, n: u64) {
        self.k += n * u64::from(self.share.of);
        self.intended = quotient_and_rest(self.rate, self.k);
    }

    fn rate_at(&self, _t: Nanos) -> f64 {
        self.rate.per_s() / f64::from(self.share.of)
    }
}

impl Process for Constant {
    type Law = ();
    const KIND: ProcessKind = ProcessKind {
        gaps: Some(GapLaw::Constant),
        ..ProcessKind::plain("constant", "constant (the default): every 1/rate.")
    };

    fn parse(_text: &str, arguments: &[&str]) -> Option<Result<(), ParseError>> {
        arguments.is_empty().then_some(Ok(()))
    }

    fn begin(_law: &(), rate: Rate, share: Share, _seed: u64) -> Constant {
        Constant::new(rate, share)
    }
}

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
