//! Arrival processes: pure, seeded objects that say when the next operation is intended.
//!
//! A process is all in one place: its name, its help, its properties and its schedule. Each
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
mod ramp;
mod renewal;
mod steps;
mod table;
#[cfg(test)]
mod tests;
mod trace;

pub use asked::{AskedArrival, either, help, names_with_rate, parse_arrival, shapes};
pub use asked::{is_name, schedules};
pub use burst::{Burst, BurstLaw};
pub use ramp::{Ramp, RampLaw};
pub use renewal::{Constant, Hyperexp, Poisson, Uniform};
pub use steps::{StepOfRate, Steps, StepsLaw};
pub use trace::{Trace, length_of_trace};

use crate::quantity::{ParseError, Rate, Share};
use crate::time::Nanos;
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
    /// Two rates in turn.
    Burst(law: BurstLaw);
    /// A rate that moves linearly over the whole run.
    Ramp(law: RampLaw);
    /// Rates one after another.
    Steps(law: StepsLaw);
    /// Recorded times, ascending, from the beginning of the run; it ends with the last one.
    Trace(law: Arc<[Nanos]>);
}

/// A schedule: intended times, ascending, drawn one at a time. It knows no clock.
pub trait ArrivalProcess {
    /// The next intended time, or `None` when the schedule has ended.
    fn next(&mut self) -> Option<Nanos>;

    /// Leaves out the next `n` times. A random process has to draw each of them.
    fn skip(&mut self, n: u64) {
        for _ in 0..n {
            self.next();
        }
    }

    /// The intended rate of this share around `t`, in operations per second.
    fn rate_at(&self, t: Nanos) -> f64;
}

/// Name, help and properties of a process.
struct ProcessKind {
    /// Name on the command line and in reports.
    name: &'static str,
    /// Name with arguments, for help: `burst(a,b,period)`.
    shape: &'static str,
    /// Name with the meaning of its arguments, for errors.
    meaning: &'static str,
    /// Sentence in the option's help.
    help: &'static str,
    /// Whether it carries its own rate, so that --rate is not permitted beside it.
    carries_rate: bool,
    /// Whether its length is that of the run.
    takes_length: bool,
    /// Whether its one argument is a file.
    has_file: bool,
    /// Law of the gaps between operations, if it promises one.
    gaps: Option<GapLaw>,
    /// Whether each time is drawn from the one before it.
    is_random: bool,
    /// Whether it has operations all the time. Otherwise a silence says nothing about the target.
    asks_all_the_time: bool,
}

impl ProcessKind {
    /// A process without arguments, for the rate of --rate.
    const fn plain(name: &'static str, help: &'static str) -> ProcessKind {
        ProcessKind {
            name,
            shape: name,
            meaning: name,
            help,
            carries_rate: false,
            takes_length: false,
            has_file: false,
            gaps: None,
            is_random: false,
            asks_all_the_time: true,
        }
    }
}

/// A process as the table above needs it.
trait Process: ArrivalProcess + Sized {
    /// Its parameters.
    type Law;
    /// Its name, help and properties.
    const KIND: ProcessKind;

    /// Reads the arguments; `None` where their number is wrong.
    fn parse(text: &str, arguments: &[&str]) -> Option<Result<Self::Law, ParseError>>;

    /// Sets the parameters that depend on the run. The error says what is missing.
    fn set(_law: &mut Self::Law, _run: &RunContext) -> Result<(), &'static str> {
        Ok(())
    }

    /// The process as it is typed.
    fn text(_law: &Self::Law, _file: &str) -> String {
        Self::KIND.name.to_owned()
    }

    /// One worker's share of the schedule.
    fn begin(law: &Self::Law, rate: Rate, share: Share, seed: u64) -> Self;

    /// Its own mean rate, if it carries one.
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

    /// Number of operations by which chance may change their number.
    fn slack(_law: &Self::Law, _rate: Rate, _operations: f64) -> f64 {
        0.0
    }
}

/// Properties of the run that a process depends on.
struct RunContext {
    length: Nanos,
    /// Times recorded in the file that the process names.
    recorded: Option<Arc<[Nanos]>>,
}

/// Standard deviations by which random counts may differ from their mean.
const COUNT_SIGMAS: f64 = 4.0;

/// Law of the gaps between operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GapLaw {
    /// Equal gaps.
    Constant,
    /// Uniform from 0 to twice the mean.
    Uniform,
    /// Exponential gaps.
    Poisson,
}

impl GapLaw {
    /// Coefficient of variation.
    pub fn cv(self) -> f64 {
        match self {
            GapLaw::Constant => 0.0,
            GapLaw::Uniform => 1.0 / 3f64.sqrt(),
            GapLaw::Poisson => 1.0,
        }
    }
}
