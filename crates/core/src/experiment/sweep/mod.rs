//! `knee sweep`: the maximum throughput of a target, its knee and the response times there.
//!
//! # Words
//!
//! - **Explored**: measured once, before the rounds, to choose the levels.
//! - **Slice**, **round**: a short trial of one level; one slice of each level, in random order.
//!   The slices of a level make one trial of the report.
//! - **Regime change**: a lasting change of what a target serves, between two slices.
//! - **Host speed**: the generator's processor time per operation against the median of its
//!   level; 1 is the median. Of a whole sweep: against the median of earlier runs of the same
//!   sweep on this host.
//! - **Retrograde**: throughput that falls as load grows beyond its maximum. It is told from a
//!   server that slows with time by measuring the maximum again afterwards.
//! - **Knee**: N\* = X_max·(R₁ + Z), the crossing of the asymptotes. Where the measured
//!   throughput at the crossing is far below the maximum, the crossing is no knee. A sweep then
//!   states the **range** that it lies in.
//! - **Kneedle**: the knee as the point of greatest distance from the chord. (Satopää et al.,
//!   2011)

mod answer;
mod axis;
mod bound;
mod conclude;
mod consistency;
pub mod findings;
mod goals;
mod inference;
pub mod knee;
pub mod models;
mod open_loop;
mod progress;
mod rates;
pub mod report;
mod rows;
mod silences;
mod spec;
pub mod table;
#[cfg(test)]
pub(crate) mod tests;

pub use conclude::conclude_table;
pub use spec::{Bound, BoundedFigures, LevelPlan, SweepAxis, SweepSpec};

use super::{Concluded, Experiment, NextTrial};
use crate::experiment::sweep::report::SweepConclusion;
use crate::trial::report::TrialReport;
use knee_load::spec::TrialSpec;

/// Policy of a sweep. The next step follows from its spec and the trials alone, so that a stored
/// sweep can be replayed.
#[derive(Clone, Debug)]
pub struct Sweep {
    spec: SweepSpec,
}

impl Sweep {
    /// The sweep that does what `spec` asks for.
    pub fn new(spec: SweepSpec) -> Sweep {
        Sweep { spec }
    }

    /// Next step of a sweep over users. An automatic plan ends with a trial in open loop, if that
    /// adds information.
    fn next_of_users(&self, plan: &LevelPlan<u32>, past: &[TrialReport]) -> NextTrial<TrialSpec> {
        let (closed, open) = open_loop::split(past);
        if open.is_empty() {
            let next = progress::next(&self.spec, plan, closed);
            if next != NextTrial::Converged {
                return next;
            }
        }
        let beside = match plan {
            LevelPlan::Auto => open_loop::next(&self.spec, past),
            LevelPlan::List(_) => None,
        };
        beside.map_or(NextTrial::Converged, |trial| NextTrial::Run(Box::new(trial)))
    }
}

impl Experiment for Sweep {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = SweepConclusion;

    fn next(&mut self, past: &[TrialReport]) -> NextTrial<TrialSpec> {
        match &self.spec.axis {
            SweepAxis::Vusers(plan) => self.next_of_users(plan, past),
            SweepAxis::Rate(plan) => rates::next(&self.spec, plan, past),
        }
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<SweepConclusion> {
        match &self.spec.axis {
            SweepAxis::Vusers(plan) => conclude::users(&self.spec, plan, past).0,
            SweepAxis::Rate(_) => conclude::rates(&self.spec, past),
        }
    }

    /// One trial for each level of users, made of its slices.
    fn reported(&self, past: &[TrialReport]) -> Option<Vec<TrialReport>> {
        match &self.spec.axis {
            SweepAxis::Vusers(plan) => Some(conclude::users(&self.spec, plan, past).1),
            SweepAxis::Rate(_) => None,
        }
    }
}
