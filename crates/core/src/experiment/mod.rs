//! Experiments: pure policies that ask for trials and conclude.

mod conduct;
mod run;
pub mod sweep;
mod verdict;

pub use conduct::{Conducted, Ended, conduct};
pub use run::SingleRun;

use crate::report::{Conclusion, Finding, TrialReport};
use crate::spec::TrialSpec;

/// A pure policy: looks at the trials so far and says what to run next, then what follows.
pub trait Experiment {
    /// What to do after these trials.
    fn next(&mut self, past: &[TrialReport]) -> Next;

    /// What follows from these trials (also when it ended early).
    fn conclude(&self, past: &[TrialReport]) -> (Vec<Finding>, Conclusion);
}

/// What an experiment wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// Another trial.
    Run(Box<TrialSpec>),
    /// Nothing: the question is answered.
    Converged,
    /// Nothing: the question cannot be answered, for this reason.
    Doomed(String),
}
