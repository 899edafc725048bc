//! `knee run`: one load, one trial.

use super::{Concluded, Experiment, Next, verdict};
use crate::analysis::findings::trial_findings;
use crate::analysis::table::error_share;
use crate::report::{Conclusion, RunConclusion, TrialReport};
use crate::spec::TrialSpec;

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

impl Experiment for SingleRun {
    type Spec = TrialSpec;
    type Trial = TrialReport;

    fn next(&mut self, past: &[TrialReport]) -> Next<TrialSpec> {
        if past.is_empty() {
            Next::Run(Box::new(self.spec.clone()))
        } else {
            Next::Converged
        }
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded {
        let conclusion = past.last().map(|trial| RunConclusion {
            throughput_per_s: trial.throughput_per_s,
            p50_ns: trial.response_time_ns.p50,
            p95_ns: trial.response_time_ns.p95,
            p99_ns: trial.response_time_ns.p99,
            error_percent: 100.0 * error_share(&trial.outcomes),
        });
        Concluded {
            verdict: verdict(past),
            findings: past.last().map(trial_findings).unwrap_or_default(),
            conclusion: Conclusion::Run(conclusion.unwrap_or_default()),
        }
    }
}
