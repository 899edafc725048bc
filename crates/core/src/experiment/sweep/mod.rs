//! `knee sweep`: how much a target can take, and what that costs its users.

mod answer;
mod beside;
mod bound;
mod conclude;
mod conclusion;
mod course;
#[cfg(test)]
pub(crate) mod fake;
pub mod findings;
mod goals;
mod infer;
pub mod knee;
mod levels;
pub mod models;
mod pauses;
mod rates;
pub mod report;
mod slices;
mod spec;
pub mod table;
#[cfg(test)]
mod tests;

pub use conclude::conclude_table;
pub use spec::{Axis, Bound, BoundMetric, RatePlan, SweepSpec, VuserPlan};

use super::{Concluded, Experiment, Next};
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

    /// Users first. An automatic plan ends with the open loop beside them, where that tells more.
    fn next_of_users(&self, plan: &VuserPlan, past: &[TrialReport]) -> Next<TrialSpec> {
        let (closed, open) = beside::split(past);
        if open.is_empty() {
            let next = course::next(&self.spec, plan, closed);
            if next != Next::Converged {
                return next;
            }
        }
        let beside = match plan {
            VuserPlan::Auto => beside::next(&self.spec, past),
            VuserPlan::List(_) => None,
        };
        beside.map_or(Next::Converged, |trial| Next::Run(Box::new(trial)))
    }
}

impl Experiment for Sweep {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = SweepConclusion;

    fn next(&mut self, past: &[TrialReport]) -> Next<TrialSpec> {
        match &self.spec.axis {
            Axis::Vusers(plan) => self.next_of_users(plan, past),
            Axis::Rate(plan) => rates::next(&self.spec, plan, past),
        }
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<SweepConclusion> {
        match &self.spec.axis {
            Axis::Vusers(plan) => conclude::users(&self.spec, plan, past).0,
            Axis::Rate(_) => conclude::rates(&self.spec, past),
        }
    }

    /// One trial for each level of users, made of its slices.
    fn reported(&self, past: &[TrialReport]) -> Option<Vec<TrialReport>> {
        match &self.spec.axis {
            Axis::Vusers(plan) => Some(conclude::users(&self.spec, plan, past).1),
            Axis::Rate(_) => None,
        }
    }
}
