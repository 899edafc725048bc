//! What an arrival process is: its schedule, and its name, help and properties.

use crate::quantity::{ParseError, Rate, Share};
use crate::time::Nanos;
use std::sync::Arc;

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
pub(super) struct ProcessKind {
    /// Name on the command line and in reports.
    pub(super) name: &'static str,
    /// Name with arguments, for help: `burst(a,b,period)`.
    pub(super) shape: &'static str,
    /// Name with the meaning of its arguments, for errors.
    pub(super) meaning: &'static str,
    /// Sentence in the option's help.
    pub(super) help: &'static str,
    /// Whether it carries its own rate, so that --rate is not permitted beside it.
    pub(super) carries_rate: bool,
    /// Whether its length is that of the run.
    pub(super) takes_length: bool,
    /// Whether its one argument is a file.
    pub(super) has_file: bool,
    /// Law of the gaps between operations, if it promises one.
    pub(super) gaps: Option<GapLaw>,
    /// Whether each time is drawn from the one before it.
    pub(super) is_random: bool,
    /// Whether it has operations all the time. Otherwise a silence says nothing about the target.
    pub(super) asks_all_the_time: bool,
    /// Whether its rate is always the same. Otherwise a change of the throughput may be its own.
    pub(super) is_even: bool,
}

impl ProcessKind {
    /// A process without arguments, for the rate of --rate.
    pub(super) const fn plain(name: &'static str, help: &'static str) -> ProcessKind {
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
            is_even: true,
        }
    }
}

/// A process as the table of processes needs it.
pub(super) trait Process: ArrivalProcess + Sized {
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
pub(super) struct RunContext {
    pub(super) length: Nanos,
    /// Times recorded in the file that the process names.
    pub(super) recorded: Option<Arc<[Nanos]>>,
}

/// Standard deviations by which random counts may differ from their mean.
pub(super) const COUNT_SIGMAS: f64 = 4.0;

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
