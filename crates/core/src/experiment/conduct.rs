//! The loop that every experiment runs in, shared by the command line and the simulator.

use super::verdict::verdict;
use super::{Experiment, Next};
use crate::analysis::findings::Diagnosis;
use crate::report::{Conclusion, Finding, TrialReport, Verdict};
use crate::spec::TrialSpec;
use std::ops::ControlFlow;

/// An experiment that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Conducted {
    /// Its trials in the order they were run.
    pub trials: Vec<TrialReport>,
    /// What follows from them, the gravest first.
    pub findings: Vec<Finding>,
    /// Its answer.
    pub conclusion: Conclusion,
    /// Whether its trials as a whole can be trusted.
    pub verdict: Verdict,
    /// Why it ended.
    pub ended: Ended,
}

/// Why an experiment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its question is answered, as far as it can be.
    Converged,
    /// It cannot be answered, for this reason.
    Doomed(String),
    /// The user wanted it to end.
    Interrupted,
}

/// No experiment needs more trials; one that asks for more has lost its way.
const TRIALS_MAX: usize = 10_000;

/// Runs an experiment to its end. `run` makes one trial: it continues with the trial's report, or
/// breaks with what was measured, if anything, when the user interrupts; an error ends everything.
/// `seen` is shown each report, with its number from 0, as the trial ends.
pub fn conduct<E>(
    experiment: &mut dyn Experiment,
    mut run: impl FnMut(&TrialSpec) -> Result<ControlFlow<Option<TrialReport>, TrialReport>, E>,
    mut seen: impl FnMut(usize, &TrialReport),
) -> Result<Conducted, E> {
    let mut trials = Vec::new();
    let mut ended = Ended::Converged;
    while trials.len() < TRIALS_MAX {
        let spec = match experiment.next(&trials) {
            Next::Run(spec) => spec,
            Next::Converged => break,
            Next::Doomed(reason) => {
                ended = Ended::Doomed(reason);
                break;
            }
        };
        let report = match run(&spec)? {
            ControlFlow::Continue(report) => report,
            ControlFlow::Break(partial) => {
                ended = Ended::Interrupted;
                if let Some(report) = partial {
                    seen(trials.len(), &report);
                    trials.push(report);
                }
                break;
            }
        };
        seen(trials.len(), &report);
        trials.push(report);
    }
    let (mut findings, conclusion) = experiment.conclude(&trials);
    match &ended {
        Ended::Converged => {}
        Ended::Doomed(reason) => findings.push(Diagnosis::stopped_early(reason).finding()),
        Ended::Interrupted => findings.push(Diagnosis::interrupted(trials.len()).finding()),
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    Ok(Conducted {
        verdict: verdict(trials.iter().map(|t| (t.verdict, t.throughput_per_s))),
        trials,
        findings,
        conclusion,
        ended,
    })
}
