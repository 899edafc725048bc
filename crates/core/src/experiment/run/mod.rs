//! `knee run`: one load, one trial.

mod conclusion;
pub mod report;
use super::{Concluded, Experiment, Next, verdict};
use crate::experiment::run::report::RunConclusion;
use crate::measure::error_share;
use crate::spec::TrialSpec;
use crate::trial::findings::trial_findings;
use crate::trial::report::TrialReport;

/// One trial, its findings, its figures.
#[derive(Clone, Debug)]
pub struct SingleRun {
    spec: TrialSpec,
}

impl SingleRun {
    /// The experiment that runs just this.
    pub fn new(spec: TrialSpec) -> SingleRun {
        SingleRun { spec }
    }
}

/// The rate asked for, where less was served than chance accounts for.
fn asked_in_vain(trial: &TrialReport) -> Option<f64> {
    let asked_per_s = trial.offered.asked_per_s?;
    let chance = CHANCE_SIGMAS / (trial.attempted.max(1) as f64).sqrt();
    let kept_up = trial.responses_per_s() >= asked_per_s * (KEPT_UP_SHARE - chance);
    (!kept_up).then_some(asked_per_s)
}

/// What is in flight at the ends of a window accounts for less than what this leaves.
const KEPT_UP_SHARE: f64 = 0.98;
/// Random arrivals may be fewer by this many standard deviations.
const CHANCE_SIGMAS: f64 = 4.0;

impl Experiment for SingleRun {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = RunConclusion;

    fn next(&mut self, past: &[TrialReport]) -> Next<TrialSpec> {
        if past.is_empty() {
            Next::Run(Box::new(self.spec.clone()))
        } else {
            Next::Converged
        }
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<RunConclusion> {
        let conclusion = past.last().map(|trial| RunConclusion {
            throughput_per_s: trial.throughput_per_s,
            asked_per_s: asked_in_vain(trial),
            p50_ns: trial.response_time_ns.p50,
            p95_ns: trial.response_time_ns.p95,
            p99_ns: trial.response_time_ns.p99,
            error_percent: 100.0 * error_share(&trial.outcomes),
        });
        Concluded {
            verdict: verdict(past),
            findings: past.last().map(trial_findings).unwrap_or_default(),
            conclusion: conclusion.unwrap_or_default(),
        }
    }
}
