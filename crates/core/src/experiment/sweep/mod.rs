//! `knee sweep`: how much a target can take, and what that costs its users.

mod answer;
mod beside;
mod bound;
mod conclude;
mod conclusion;
#[cfg(test)]
pub(crate) mod fake;
pub mod findings;
mod goals;
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

    /// Users first. An automatic plan ends with the open loop beside them, where that tells more,
    /// and keeps a trial for it.
    fn next_of_users(&self, plan: &VuserPlan, past: &[TrialReport]) -> Next<TrialSpec> {
        let (closed, open) = beside::split(past);
        let beside = match plan {
            VuserPlan::Auto => beside::next(&self.spec, past),
            VuserPlan::List(_) => None,
        };
        let is_last = past.len() + 1 >= self.spec.trials_max;
        if open.is_empty() && !(beside.is_some() && is_last) {
            let next = users::next(&self.spec, plan, closed);
            if next != Next::Converged {
                return next;
            }
        }
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
        let (findings, conclusion) = conclude::conclude(&self.spec, past);
        Concluded {
            verdict: verdict(past),
            findings,
            conclusion,
        }
    }
}
