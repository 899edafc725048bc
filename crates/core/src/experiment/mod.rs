//! Experiments: pure policies that ask for trials and conclude.

pub mod answer;
mod conduct;
pub mod ending;
pub mod latency;
pub mod overload;
pub mod run;
pub mod sweep;
pub mod throttle;
pub mod udp;
mod verdict;

pub use conduct::{Conducted, Ended, Made, conduct, conduct_in_view};
pub use run::SingleRun;
pub use verdict::verdict;

use crate::finding::Finding;
use crate::trial::report::Verdict;

/// A pure policy: looks at the trials so far and says what to run next, then what follows.
pub trait Experiment {
    /// What it asks for: all that is needed to run one trial.
    type Spec;
    /// What comes back of it: the statistics of one trial.
    type Trial;
    /// Its own answer.
    type Conclusion;

    /// What to do after these trials.
    fn next(&mut self, past: &[Self::Trial]) -> Next<Self::Spec>;

    /// What follows from these trials (also when it ended early).
    fn conclude(&self, past: &[Self::Trial]) -> Concluded<Self::Conclusion>;

    /// The trials as a report lists them, where that is not one by one as they were made.
    fn reported(&self, _: &[Self::Trial]) -> Option<Vec<Self::Trial>> {
        None
    }

    /// What a person should do where the question could not be answered; `None`: the same as for
    /// any experiment.
    fn next_step_if_doomed(&self) -> Option<String> {
        None
    }
}

/// What an experiment wants next.
#[derive(Clone, Debug, PartialEq)]
pub enum Next<S> {
    /// Another trial.
    Run(Box<S>),
    /// Nothing: the question is answered.
    Converged,
    /// Nothing: the question cannot be answered, for this reason.
    Doomed(String),
}

/// What follows from an experiment's trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Concluded<C> {
    /// Whether the trials as a whole can be trusted.
    pub verdict: Verdict,
    /// What a person should know.
    pub findings: Vec<Finding>,
    /// The answer.
    pub conclusion: C,
}
