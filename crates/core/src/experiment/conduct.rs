//! The loop that every experiment runs in, shared by the command line and the simulator.

use super::{Concluded, Experiment, Next, ending};
use crate::finding::{Finding, gravest_first};
use crate::trial::findings::{GENERATOR_DISTORTED, RATE_MAX_REACHED};
use crate::trial::report::Verdict;
use std::ops::ControlFlow;

/// An experiment that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Conducted<T, C> {
    /// Its trials in the order they were run.
    pub trials: Vec<T>,
    /// Whether they can be trusted as a whole.
    pub verdict: Verdict,
    /// What follows from them, the gravest first.
    pub findings: Vec<Finding>,
    /// The answer.
    pub conclusion: C,
    /// Why it ended.
    pub ended: Ended,
}

impl<T, C> Conducted<T, C> {
    /// It was not the user who ended it: something that it needs was lost, for this reason. `lost`
    /// says what: [`ending::unreachable`] or [`ending::fleet_lost`].
    pub fn end_without(&mut self, lost: Finding, reason: &str) {
        self.findings.retain(|f| !ending::is_interruption(f));
        self.findings.insert(0, lost);
        self.ended = Ended::Doomed(reason.to_owned());
    }
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

/// A trial that was made, the last one where it breaks, or why it could not be made.
pub type Made<X, E> =
    Result<ControlFlow<Option<<X as Experiment>::Trial>, <X as Experiment>::Trial>, E>;

/// No experiment needs more trials; one that asks for more has lost its way.
const TRIALS_MAX: usize = 10_000;

/// Runs an experiment to its end. `run` makes one trial: it continues with the trial's report, or
/// breaks with what was measured, if anything, when the user interrupts; an error ends everything.
pub fn conduct<X: Experiment, E>(
    experiment: &mut X,
    mut run: impl FnMut(&X::Spec) -> Made<X, E>,
) -> Result<Conducted<X::Trial, X::Conclusion>, E> {
    conduct_in_view(experiment, |_, _, spec| run(spec))
}

/// The same; `run` sees the experiment and its trials so far as well.
pub fn conduct_in_view<X: Experiment, E>(
    experiment: &mut X,
    mut run: impl FnMut(&X, &[X::Trial], &X::Spec) -> Made<X, E>,
) -> Result<Conducted<X::Trial, X::Conclusion>, E> {
    let mut trials = Vec::new();
    let ended = loop {
        let next = match trials.len() < TRIALS_MAX {
            true => experiment.next(&trials),
            false => Next::Converged,
        };
        let spec = match next {
            Next::Run(spec) => spec,
            Next::Converged => break Ended::Converged,
            Next::Doomed(reason) => break Ended::Doomed(reason),
        };
        match run(experiment, &trials, &spec)? {
            ControlFlow::Continue(report) => trials.push(report),
            ControlFlow::Break(partial) => {
                trials.extend(partial);
                break Ended::Interrupted;
            }
        }
    };
    let Concluded {
        verdict,
        mut findings,
        conclusion,
    } = experiment.conclude(&trials);
    let made = trials.len();
    let trials = experiment.reported(&trials).unwrap_or(trials);
    if verdict == Verdict::Valid {
        let distortions = [GENERATOR_DISTORTED, RATE_MAX_REACHED];
        let is_distortion = |f: &Finding| distortions.iter().any(|&code| f.is(code));
        findings = findings
            .into_iter()
            .map(|f| match is_distortion(&f) {
                true => ending::left_out(f),
                false => f,
            })
            .collect();
    }
    match &ended {
        Ended::Converged => {}
        Ended::Doomed(reason) => {
            let step = experiment.next_step_if_doomed();
            findings.push(ending::stopped_early(reason, step));
        }
        Ended::Interrupted => findings.push(ending::interrupted(made)),
    }
    gravest_first(&mut findings);
    Ok(Conducted {
        trials,
        verdict,
        findings,
        conclusion,
        ended,
    })
}
