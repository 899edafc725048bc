//! Arrival processes: pure, seeded objects that say when the next operation is intended.
//!
//! A process is all in one place: its name, its help, its properties and its schedule. Those with
//! independent gaps are in this file, below the table of all; others have files of their own. Each
//! is built for one worker's [`Share`] of a schedule. Superposed over all workers, the parts are
//! the whole schedule (in law for Poisson, time by time for all others).
//!
//! ```
//! use knee_load::arrival::{ArrivalProcess, Constant};
//! use knee_load::spec::{ParseError, Share, parse_rate};
//! use knee_load::time::Nanos;
//!
//! # fn main() -> Result<(), ParseError> {
//! // Three a second, shared by two workers: times are exact thirds, rounded, and never drift.
//! let rate = parse_rate("3/s")?;
//! let mut first = Constant::new(rate, Share { index: 0, of: 2 });
//! let mut second = Constant::new(rate, Share { index: 1, of: 2 });
//! assert_eq!(first.next(), Some(Nanos(0)));
//! assert_eq!(second.next(), Some(Nanos(333_333_333)));
//! assert_eq!(first.next(), Some(Nanos(666_666_666)));
//! assert_eq!(second.next(), Some(Nanos(1_000_000_000)));
//! # Ok(())
//! # }
//! ```

mod asked;
mod burst;
mod constant;
mod process;
mod ramp;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod trace;

pub use asked::{AskedArrival, either, help, names_with_rate, parse_arrival, shapes};
pub use asked::{is_name, schedules};
pub use burst::{Burst, BurstLaw};
pub use constant::Constant;
pub use process::{ArrivalProcess, GapLaw};
pub use ramp::{Ramp, RampLaw};
pub use steps::{StepOfRate, Steps, StepsLaw};
pub use trace::{Trace, length_of_trace};

use crate::quantity::{ParseError, Rate, Share, error, parse_number, quoted};
use crate::rng::{self, Rng};
use crate::time::Nanos;
use process::{COUNT_SIGMAS, Process, ProcessKind, RunContext};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use table::first;

table::processes! {
    /// Every 1/rate.
    Constant;
    /// Independent exponential gaps of mean 1/rate.
    Poisson;
    /// Independent gaps, uniform between 0 and 2/rate.
    Uniform;
    /// Independent gaps that vary more than exponential ones. The law is their coefficient of
    /// variation, at least 1.
    Hyperexp(cv: f64);
    /// Independent gaps that vary less than exponential ones: each has this number of exponential
    /// stages.
    Erlang(stages: u32);
    /// Two rates in turn.
    Burst(law: BurstLaw);
    /// A rate that moves linearly over the whole run.
    Ramp(law: RampLaw);
    /// Rates one after another.
    Steps(law: StepsLaw);
    /// Recorded times, ascending, from the beginning of the run; it ends with the last one.
    Trace(law: Arc<[Nanos]>);
}

/// Independent gaps of one law, the first one counted from 0.
///
/// All workers draw the same schedule, from the same seed, and worker i of W keeps the operations k
/// ≡ i (mod W). A superposition of independent streams would have gaps of another law, unless they
/// are exponential.
#[derive(Clone, Debug)]
pub struct Renewal<G> {
    gaps: G,
    rng: Rng,
    now: Nanos,
    /// Part of the current time below a nanosecond, so that rounding does not shift the rate.
    fraction: f64,
    /// Gaps to draw until the next operation of this worker.
    step: u32,
    of: u32,
}

impl<G> Renewal<G> {
    /// One worker's share of the schedule that all of them draw.
    fn shared(gaps: G, share: Share, seed: u64) -> Renewal<G> {
        let (step, of) = (share.index + 1, share.of);
        let rng = rng::stream(seed, rng::ARRIVALS);
        Renewal { gaps, rng, now: Nanos::ZERO, fraction: 0.0, step, of }
    }
}

/// A law of gaps at a rate.
trait Gaps {
    /// A gap, in nanoseconds.
    fn draw_ns(&self, rng: &mut Rng) -> f64;

    /// The mean gap, in nanoseconds.
    fn mean_ns(&self) -> f64;
}

impl<G: Gaps> ArrivalProcess for Renewal<G> {
    #[inline]
    fn next(&mut self) -> Option<Nanos> {
        for _ in 0..self.step {
            let gap = self.fraction + self.gaps.draw_ns(&mut self.rng);
            self.now += Nanos(gap as u64);
            self.fraction = gap.fract();
        }
        self.step = self.of;
        Some(self.now)
    }

    fn rate_at(&self, _t: Nanos) -> f64 {
        1e9 / (self.gaps.mean_ns() * f64::from(self.of))
    }
}

/// Exponential gaps, −ln(1−U)/λ.
#[derive(Clone, Debug)]
pub struct ExponentialGaps {
    mean_ns: f64,
}

/// Independent exponential gaps.
///
/// Each of W workers draws an independent stream of rate λ/W. The superposition of independent
/// Poisson processes is a Poisson process of the summed rate (Kingman, Poisson Processes, 1993,
/// §2.2). So the whole is exact, and no worker has to know of another.
pub type Poisson = Renewal<ExponentialGaps>;

impl Poisson {
    /// One worker's independent stream of rate/W.
    pub fn new(rate: Rate, share: Share, seed: u64) -> Poisson {
        let gaps = ExponentialGaps { mean_ns: 1e9 * f64::from(share.of) / rate.per_s() };
        let rng = rng::stream(seed, rng::ARRIVALS + u64::from(share.index));
        Renewal { rng, ..Renewal::shared(gaps, Share::WHOLE, seed) }
    }
}

impl Gaps for ExponentialGaps {
    #[inline]
    fn draw_ns(&self, rng: &mut Rng) -> f64 {
        self.mean_ns * rng::exp1(rng)
    }

    fn mean_ns(&self) -> f64 {
        self.mean_ns
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

/// Uniform gaps in [0, 2/λ).
#[derive(Clone, Debug)]
pub struct UniformGaps {
    max_ns: f64,
}

/// Independent uniform gaps.
pub type Uniform = Renewal<UniformGaps>;

impl Uniform {
    /// One worker's share of the common schedule.
    pub fn new(rate: Rate, share: Share, seed: u64) -> Uniform {
        Renewal::shared(UniformGaps { max_ns: 2e9 / rate.per_s() }, share, seed)
    }
}

impl Gaps for UniformGaps {
    #[inline]
    fn draw_ns(&self, rng: &mut Rng) -> f64 {
        self.max_ns * rng::unit(rng)
    }

    fn mean_ns(&self) -> f64 {
        self.max_ns / 2.0
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

/// Hyperexponential gaps with a coefficient of variation c of at least 1.
///
/// A gap is exponential of rate 2pλ with probability p, else of rate 2(1 − p)λ, so that both kinds
/// make up half of the time. p = (1 + √((c² − 1)/(c² + 1)))/2 gives the coefficient c. (Balanced
/// means: Tijms, A First Course in Stochastic Models, 2003, appendix B.) c = 1 is Poisson.
#[derive(Clone, Debug)]
pub struct HyperexpGaps {
    /// Probability of a short gap.
    short_share: f64,
    short_mean_ns: f64,
    long_mean_ns: f64,
}

/// Independent hyperexponential gaps.
pub type Hyperexp = Renewal<HyperexpGaps>;

impl Gaps for HyperexpGaps {
    #[inline]
    fn draw_ns(&self, rng: &mut Rng) -> f64 {
        let is_short = rng::unit(rng) < self.short_share;
        let mean_ns = if is_short { self.short_mean_ns } else { self.long_mean_ns };
        mean_ns * rng::exp1(rng)
    }

    fn mean_ns(&self) -> f64 {
        2.0 * self.short_mean_ns * self.short_share
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
        let cv = *law;
        let short_share = 0.5 * (1.0 + ((cv * cv - 1.0) / (cv * cv + 1.0)).sqrt());
        let half_gap_ns = 0.5e9 / rate.per_s();
        let gaps = HyperexpGaps {
            short_share,
            short_mean_ns: half_gap_ns / short_share,
            long_mean_ns: half_gap_ns / (1.0 - short_share),
        };
        Renewal::shared(gaps, share, seed)
    }

    fn slack(law: &f64, _rate: Rate, operations: f64) -> f64 {
        // The counts of a renewal process have a variance of cv² times their mean. The second term
        // is for a window of few long gaps.
        COUNT_SIGMAS * law * operations.sqrt() + law * law
    }
}

/// Beyond it a run of a few thousand operations has too few long gaps to keep its rate.
const CV_MAX: f64 = 10.0;

/// Gaps of k exponential stages: their coefficient of variation is 1/√k.
#[derive(Clone, Debug)]
pub struct ErlangGaps {
    stages: u32,
    stage_mean_ns: f64,
}

/// Independent gaps of several exponential stages (Erlang 1917).
pub type Erlang = Renewal<ErlangGaps>;

impl Gaps for ErlangGaps {
    #[inline]
    fn draw_ns(&self, rng: &mut Rng) -> f64 {
        self.stage_mean_ns * (0..self.stages).map(|_| rng::exp1(rng)).sum::<f64>()
    }

    fn mean_ns(&self) -> f64 {
        self.stage_mean_ns * f64::from(self.stages)
    }
}

impl Process for Erlang {
    /// The number of stages.
    type Law = u32;
    const KIND: ProcessKind = ProcessKind {
        shape: "erlang(k)",
        meaning: "erlang(K)",
        is_random: true,
        ..ProcessKind::plain(
            "erlang",
            "erlang(k): independent gaps that vary less than Poisson's: each has 2 to 20 \
             exponential stages, such as erlang(4).",
        )
    };

    fn parse(text: &str, arguments: &[&str]) -> Option<Result<u32, ParseError>> {
        let [stages] = arguments else {
            return None;
        };
        let in_range =
            stages.trim().parse().ok().filter(|stages| (2..=STAGES_MAX).contains(stages));
        Some(in_range.ok_or_else(|| {
            error(format!(
                "{} has no number of stages from 2 to 20, such as erlang(4)",
                quoted(text)
            ))
        }))
    }

    fn text(law: &u32, _file: &str) -> String {
        format!("erlang({law})")
    }

    fn begin(law: &u32, rate: Rate, share: Share, seed: u64) -> Erlang {
        let stage_mean_ns = 1e9 / (rate.per_s() * f64::from(*law));
        Renewal::shared(ErlangGaps { stages: *law, stage_mean_ns }, share, seed)
    }

    fn slack(_law: &u32, _rate: Rate, operations: f64) -> f64 {
        // Gaps that vary less than exponential ones make counts that vary less.
        COUNT_SIGMAS * operations.sqrt()
    }
}

/// Each stage is drawn. Beyond it gaps are nearly equal: see `constant`.
const STAGES_MAX: u32 = 20;
