//! The loop that every experiment runs in, shared by the command line and the simulator.

use super::{Concluded, Experiment, Next};
use crate::analysis::findings::Diagnosis;
use crate::report::{Conclusion, Finding, Verdict};
use std::ops::ControlFlow;

/// An experiment that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Conducted<T> {
    /// Its trials in the order they were run.
    pub trials: Vec<T>,
    /// Whether they can be trusted as a whole.
    pub verdict: Verdict,
    /// What follows from them, the gravest first.
    pub findings: Vec<Finding>,
    /// The answer.
    pub conclusion: Conclusion,
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
pub fn conduct<X: Experiment, E>(
    experiment: &mut X,
    mut run: impl FnMut(&X::Spec) -> Result<ControlFlow<Option<X::Trial>, X::Trial>, E>,
) -> Result<Conducted<X::Trial>, E> {
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
                    trials.push(report);
                }
                break;
            }
        };
        trials.push(report);
    }
    let Concluded {
        verdict,
        mut findings,
        conclusion,
    } = experiment.conclude(&trials);
    match &ended {
        Ended::Converged => {}
        Ended::Doomed(reason) => findings.push(Diagnosis::stopped_early(reason).finding()),
        Ended::Interrupted => findings.push(Diagnosis::interrupted(trials.len()).finding()),
    }
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    Ok(Conducted {
        trials,
        verdict,
        findings,
        conclusion,
        ended,
    })
}
