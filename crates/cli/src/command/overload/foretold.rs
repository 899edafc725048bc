//! An experiment of which something was foreseen before its load.

use knee_core::experiment::{Concluded, Experiment, Next};
use knee_core::finding::Finding;

/// What another experiment does, with what was foreseen among the findings.
#[derive(Debug)]
pub struct Foretold<X> {
    experiment: X,
    foreseen: Vec<Finding>,
}

impl<X> Foretold<X> {
    /// The experiment, and what was foreseen of it.
    pub fn new(experiment: X, foreseen: Vec<Finding>) -> Foretold<X> {
        Foretold {
            experiment,
            foreseen,
        }
    }
}

impl<X: Experiment> Experiment for Foretold<X> {
    type Spec = X::Spec;
    type Trial = X::Trial;
    type Conclusion = X::Conclusion;

    fn next(&mut self, past: &[X::Trial]) -> Next<X::Spec> {
        self.experiment.next(past)
    }

    fn conclude(&self, past: &[X::Trial]) -> Concluded<X::Conclusion> {
        let mut concluded = self.experiment.conclude(past);
        concluded.findings.extend(self.foreseen.iter().cloned());
        concluded
    }
}
