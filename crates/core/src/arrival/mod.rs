//! Arrival processes: pure, seeded objects that say when the next operation is intended.
//!
//! One file per process, which is all that knows it: what it is called, what it promises, when it
//! has operations. Each is built for one worker's [`Share`] of a schedule:
//! superposed over all workers, the parts are the whole schedule (in law for Poisson, moment by
//! moment for all others).
//!
//! ```
//! use knee_core::arrival::{ArrivalProcess, Constant};
//! use knee_core::spec::{ParseError, Share, parse_rate};
//! use knee_core::time::Nanos;
//!
//! # fn main() -> Result<(), ParseError> {
//! // Three a second, shared by two workers: moments are exact thirds, rounded, and never drift.
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
mod poisson;
mod ramp;
mod table;
#[cfg(test)]
mod tests;
mod trace;
mod uniform;

pub use asked::{AskedArrival, either, help, names_with_rate, parse_arrival, shapes};
pub(crate) use asked::{is_name, schedules};
pub use burst::{Burst, BurstLaw};
pub use constant::Constant;
pub use poisson::Poisson;
pub use ramp::{Ramp, RampLaw};
pub use trace::{Trace, length_of_trace};
pub use uniform::Uniform;

use crate::quantity::{ParseError, Rate, Share};
use crate::time::Nanos;
use asked::Written;
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
    /// Two rates in turn.
    Burst(law: BurstLaw);
    /// A rate that moves linearly over the whole run.
    Ramp(law: RampLaw);
    /// Recorded moments, ascending, from the beginning of the run; it ends with the last one.
    Trace(law: Arc<[Nanos]>);
}

/// A schedule: intended moments, ascending, drawn one at a time. It knows no clock.
pub trait ArrivalProcess {
    /// The next intended moment, or `None` when the schedule has ended.
    fn next(&mut self) -> Option<Nanos>;

    /// Leaves out the next `n` moments. What is computed from an operation's number leaps over
    /// them; what is drawn at random has to draw each.
    fn skip(&mut self, n: u64) {
        for _ in 0..n {
            self.next();
        }
    }

    /// The intended rate of this share around `t`, in operations per second.
    fn rate_at(&self, t: Nanos) -> f64;
}

/// What is to be known of a process: all of it is in its file.
trait Process: ArrivalProcess + Sized {
    /// Its parameters.
    type Law;
    /// On the command line and in reports.
    const NAME: &'static str;
    /// With its arguments, as help has it: `burst(a,b,period)`.
    const SHAPE: &'static str = Self::NAME;
    /// With its arguments by their meaning, as errors have it.
    const MEANING: &'static str = Self::SHAPE;
    /// What it does, in the words of the option's help.
    const HELP: &'static str;
    /// Whether it carries its own rate, so that none is told beside it.
    const CARRIES_RATE: bool = false;
    /// Whether it takes its length from that of the run.
    const TAKES_LENGTH: bool = false;
    /// Whether its one argument is a file to read it from.
    const HAS_FILE: bool = false;
    /// What it promises of the gaps between operations, if anything.
    const GAPS: Option<GapLaw> = None;
    /// Whether each moment is drawn from the one before it.
    const IS_RANDOM: bool = false;
    /// Whether it asks for operations all the time.
    const ASKS_ALL_THE_TIME: bool = true;

    /// Reads its arguments; `None` where they are not as many as it has.
    fn parse(text: &str, arguments: &[&str]) -> Option<Result<Self::Law, ParseError>>;

    /// Takes over what only the run knows, or says what is lacking.
    fn set(_law: &mut Self::Law, _run: &Run) -> Result<(), &'static str> {
        Ok(())
    }

    /// As it is typed.
    fn text(_law: &Self::Law, _file: &str) -> String {
        Self::NAME.to_owned()
    }

    /// One worker's share of it.
    fn begin(law: &Self::Law, rate: Rate, share: Share, seed: u64) -> Self;

    /// The mean rate that it carries.
    fn own_rate(_law: &Self::Law) -> Option<Rate> {
        None
    }

    /// The highest rate by plan, in operations per second.
    fn peak_per_s(_law: &Self::Law, rate: Rate) -> f64 {
        rate.per_s()
    }

    /// The mean number of operations between two times.
    fn operations(_law: &Self::Law, rate: Rate, [start, end]: [Nanos; 2]) -> f64 {
        rate.per_s() * (end - start).as_secs_f64()
    }

    /// By how many they may be off by chance.
    fn slack(_law: &Self::Law, _rate: Rate, _operations: f64) -> f64 {
        0.0
    }
}

/// What an arrival process takes from the run that it is for.
struct Run {
    length: Nanos,
    /// Where it names a file: what was recorded there.
    moments: Option<Arc<[Nanos]>>,
}

/// Random counts may differ from the mean by so many standard deviations.
const COUNT_SIGMAS: f64 = 4.0;

/// The gaps that an arrival process promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapLaw {
    /// All the same.
    Constant,
    /// Uniform from nothing to twice the mean: a coefficient of variation of 1/√3.
    Uniform,
    /// Exponential.
    Poisson,
}

impl GapLaw {
    pub(crate) fn cv(self) -> f64 {
        match self {
            GapLaw::Constant => 0.0,
            GapLaw::Uniform => 1.0 / 3f64.sqrt(),
            GapLaw::Poisson => 1.0,
        }
    }
}
