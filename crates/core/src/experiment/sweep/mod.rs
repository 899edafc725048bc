//! `knee sweep`: how much a target can take, and what that costs its users.

mod answer;
mod bound;
mod conclude;
#[cfg(test)]
pub(crate) mod fake;
pub mod findings;
pub mod knee;
mod levels;
pub mod models;
mod quality;
mod rates;
pub mod report;
mod spec;
pub mod table;
#[cfg(test)]
mod tests;
mod users;

pub use conclude::conclude_table;
pub use spec::{Axis, Bound, BoundMetric, RatePlan, SweepSpec, VuserPlan};

use super::{Concluded, Experiment, Next, verdict};
use crate::experiment::sweep::report::SweepConclusion;
use crate::spec::TrialSpec;
use crate::trial::report::TrialReport;

/// The sweep as a policy. What it does next follows from its spec and the trials alone, so that
/// a stored sweep can be replayed.
#[derive(Clone, Debug)]
pub struct Sweep {
    spec: SweepSpec,
}

impl Sweep {
    /// The sweep that does what `spec` asks for.
    pub fn new(spec: SweepSpec) -> Sweep {
        Sweep { spec }
    }
}

impl Experiment for Sweep {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = SweepConclusion;

    fn next(&mut self, past: &[TrialReport]) -> Next<TrialSpec> {
        match &self.spec.axis {
            Axis::Vusers(plan) => users::next(&self.spec, plan, past),
            Axis::Rate(plan) => rates::next(&self.spec, plan, past),
        }
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<SweepConclusion> {
        let (findings, conclusion) = conclude::conclude(&self.spec, past);
        Concluded {
            verdict: verdict(past),
            findings,
            conclusion,
        }
    }
}
