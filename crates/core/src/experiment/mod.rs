//! Experiments: pure policies that ask for trials and conclude, and what reports ask of
//! conclusions.
//!
//! Each has a folder with its spec, the analysis of its trials, its policy, its findings and its
//! report. [`Answer`] is what a report asks of any conclusion. [`conduct`] is the loop that all run
//! in, `ending` how they end.

pub mod ending;
pub mod latency;
pub mod overload;
pub mod recover;
pub mod run;
pub mod sweep;
pub mod throttle;
pub mod udp;

use crate::consistency::{CheckedReport, ConsistencyCheck};
use crate::finding::{Code, Finding, gravest_first};
use crate::trial::findings::{GENERATOR_DISTORTED, RATE_MAX_REACHED};
use crate::trial::report::{TrialReport, Verdict};
pub use ending::verdict;
use knee_load::measure::Outcomes;
use knee_load::spec::Level;
pub use run::SingleRun;
use serde::Serialize;
use serde_json::Value;
use std::ops::ControlFlow;

/// A pure policy: decides from the trials so far what to run next, then concludes.
pub trait Experiment {
    /// Everything that one trial needs.
    type Spec;
    /// Statistics of one trial.
    type Trial;
    /// Answer of the experiment.
    type Conclusion;

    /// The next step after these trials.
    fn next(&mut self, past: &[Self::Trial]) -> NextTrial<Self::Spec>;

    /// The conclusion from these trials, also after an early end.
    fn conclude(&self, past: &[Self::Trial]) -> Concluded<Self::Conclusion>;

    /// The trials as a report lists them, unless it lists each as it was made.
    fn reported(&self, _: &[Self::Trial]) -> Option<Vec<Self::Trial>> {
        None
    }

    /// Advice where the question could not be answered; `None`: the general one.
    fn next_step_if_doomed(&self) -> Option<String> {
        None
    }
}

/// Next step of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub enum NextTrial<S> {
    /// Run another trial.
    Run(Box<S>),
    /// Stop: the question is answered.
    Converged,
    /// Stop: the question cannot be answered, for this reason.
    Doomed(String),
}

/// Conclusion of an experiment with its verdict and findings.
#[derive(Clone, Debug, PartialEq)]
pub struct Concluded<C> {
    /// Whether the trials as a whole can be trusted.
    pub verdict: Verdict,
    /// Findings in any order.
    pub findings: Vec<Finding>,
    /// The answer.
    pub conclusion: C,
}

/// Trials, findings and conclusion of an experiment that has ended.
#[derive(Clone, Debug, PartialEq)]
pub struct Conducted<T, C> {
    /// Trials in the order they ran.
    pub trials: Vec<T>,
    /// Whether the trials as a whole can be trusted.
    pub verdict: Verdict,
    /// Findings, the gravest first.
    pub findings: Vec<Finding>,
    /// The answer.
    pub conclusion: C,
    /// Why it ended.
    pub ended: EndReason,
}

impl<T, C> Conducted<T, C> {
    /// Replaces an interruption by the loss of the target or of the fleet. `lost` is
    /// [`ending::unreachable`] or [`ending::fleet_lost`].
    pub fn end_without(&mut self, lost: Finding, reason: &str) {
        self.findings.retain(|f| !ending::is_interruption(f));
        self.findings.insert(0, lost);
        self.ended = EndReason::Doomed(reason.to_owned());
    }
}

/// Why an experiment ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndReason {
    /// Its question is answered, as far as it can be.
    Converged,
    /// Its question cannot be answered, for this reason.
    Doomed(String),
    /// The user interrupted it.
    Interrupted,
}

/// Result of one trial: its report, or on an interruption what was measured until then.
pub type TrialResult<X, E> =
    Result<ControlFlow<Option<<X as Experiment>::Trial>, <X as Experiment>::Trial>, E>;

/// Maximum trials of any experiment. A policy that asks for more has an error.
const TRIALS_MAX: usize = 10_000;

/// Runs an experiment to its end, on the command line and in the simulator. `run` makes one trial.
/// An error of it ends everything.
pub fn conduct<X: Experiment, E>(
    experiment: &mut X,
    mut run: impl FnMut(&X::Spec) -> TrialResult<X, E>,
) -> Result<Conducted<X::Trial, X::Conclusion>, E> {
    conduct_in_view(experiment, |_, _, spec| run(spec))
}

/// As [`conduct`]; `run` also gets the experiment and its trials so far.
pub fn conduct_in_view<X: Experiment, E>(
    experiment: &mut X,
    mut run: impl FnMut(&X, &[X::Trial], &X::Spec) -> TrialResult<X, E>,
) -> Result<Conducted<X::Trial, X::Conclusion>, E> {
    let mut trials = Vec::new();
    let ended = loop {
        let next =
            if trials.len() < TRIALS_MAX { experiment.next(&trials) } else { NextTrial::Converged };
        let spec = match next {
            NextTrial::Run(spec) => spec,
            NextTrial::Converged => break EndReason::Converged,
            NextTrial::Doomed(reason) => break EndReason::Doomed(reason),
        };
        match run(experiment, &trials, &spec)? {
            ControlFlow::Continue(report) => trials.push(report),
            ControlFlow::Break(partial) => {
                trials.extend(partial);
                break EndReason::Interrupted;
            }
        }
    };
    let Concluded { verdict, mut findings, conclusion } = experiment.conclude(&trials);
    let trial_count = trials.len();
    let trials = experiment.reported(&trials).unwrap_or(trials);
    if verdict == Verdict::Valid {
        let distortions = [GENERATOR_DISTORTED, RATE_MAX_REACHED];
        let is_distortion = |f: &Finding| distortions.iter().any(|&code| f.is(code));
        for finding in &mut findings {
            if is_distortion(finding) {
                *finding = ending::left_out(finding.clone());
            }
        }
    }
    match &ended {
        EndReason::Converged => {}
        EndReason::Doomed(reason) => {
            let step = experiment.next_step_if_doomed();
            findings.push(ending::stopped_early(reason, step));
        }
        EndReason::Interrupted => findings.push(ending::interrupted(trial_count)),
    }
    gravest_first(&mut findings);
    Ok(Conducted { trials, verdict, findings, conclusion, ended })
}

/// A conclusion as a report sees it. The defaults hold for most experiments.
pub trait Answer {
    /// The codes of the findings that only this experiment has.
    fn codes() -> Vec<Code>
    where
        Self: Sized,
    {
        Vec::new()
    }

    /// Concludes from a single trial that did not end; `words` describe it.
    fn cut_short(&mut self, trial: &TrialReport, words: String);

    /// Number of its rows that rest on no trial of the report.
    fn rows(&self) -> usize {
        0
    }

    /// Its rows, for row files if no trial has intervals.
    ///
    /// # Errors
    /// A row that is no JSON.
    fn table(&self) -> serde_json::Result<Vec<Value>> {
        Ok(Vec::new())
    }

    /// Trials that represent the experiment: thresholds apply to them.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        most_responses(trials).into_iter().collect()
    }

    /// Operations at a level in trials that an outage left out of it, where some failed. Thresholds
    /// on counts apply to them too.
    fn left_out(&self, _level: Level) -> Outcomes {
        Outcomes::default()
    }

    /// Whether bounds on response times or streams were asked for, and met.
    fn meets_bounds(&self, _trials: &[TrialReport]) -> bool {
        false
    }

    /// Noun for one of its operations.
    fn operation(&self) -> &'static str {
        "operation"
    }

    /// Whether its trials fail on purpose, to explain something.
    fn fails_on_purpose(&self) -> bool {
        false
    }

    /// Records contradictions within it or with the rest of the report.
    fn check(&self, _report: CheckedReport<'_>, _check: &mut ConsistencyCheck) {}
}

/// The trial with the most responses per second.
pub(crate) fn most_responses(trials: &[TrialReport]) -> Option<&TrialReport> {
    let per_s = TrialReport::responses_per_s;
    trials.iter().max_by(|a, b| per_s(a).total_cmp(&per_s(b)))
}

/// Rows as JSON.
pub(crate) fn values(rows: &[impl Serialize]) -> serde_json::Result<Vec<Value>> {
    rows.iter().map(serde_json::to_value).collect()
}
