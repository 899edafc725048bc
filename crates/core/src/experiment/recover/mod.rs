//! `knee recover`: whether a service comes back after an overload.
//!
//! A service can stay down after an overload has ended, as retries, timeouts and cold caches keep
//! it overloaded (Bronson et al., HotOS 2021). Base load, trigger and base load again are one trial
//! with one set of connections.

mod analysis;
mod findings;
mod plan;
pub mod report;
#[cfg(test)]
mod tests;

use super::{Answer, Concluded, Experiment, NextTrial};
use crate::consistency::{CheckedReport, ConsistencyCheck, at_most};
use crate::finding::Code;
use crate::trial::report::TrialReport;
use crate::words::percent;
use knee_load::spec::{Rate, TrialSpec};
use knee_load::time::Nanos;
use plan::{RecoverProgress, progress};
use report::{RecoverConclusion, RecoveryVerdict, TriggerTried};
use std::iter;

/// Lengths of the three phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoverPhases {
    /// Base load before the trigger.
    pub before: Nanos,
    /// The trigger; the longest one where it is looked for.
    pub trigger: Nanos,
    /// The load after it, at least.
    pub after: Nanos,
}

impl RecoverPhases {
    /// All three.
    pub fn length(self) -> Nanos {
        self.before + self.trigger + self.after
    }
}

/// The load of the trigger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Trigger {
    /// This rate, then the base load again.
    Load(Rate),
    /// This rate to the end.
    Stays(Rate),
    /// The smallest that keeps the service down is looked for, up to this rate.
    Search(Rate),
}

impl Trigger {
    /// Its rate, or the highest that is tried.
    pub fn rate(self) -> Rate {
        let (Trigger::Load(rate) | Trigger::Stays(rate) | Trigger::Search(rate)) = self;
        rate
    }
}

/// What `knee recover` is to find out.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoverSpec {
    /// Target, limits and retries of all trials; its load is an open one.
    pub base: TrialSpec,
    /// Lengths of the phases.
    pub phases: RecoverPhases,
    /// The last phase goes on while the queue of the service drains.
    pub follows_fall: bool,
    /// Requests per second before and after the trigger.
    pub rate: Rate,
    /// The trigger.
    pub trigger: Trigger,
    /// Whether a service that does not recover is measured again with one thing changed.
    pub explains: bool,
    /// Time of each step of a trial in which the load goes up to the trigger and down again;
    /// `None`: there is no such trial.
    pub hysteresis: Option<Nanos>,
    /// Time before all trials but the first in which hardly anything is offered, so that queues
    /// run empty.
    pub rest: Nanos,
}

/// Policy of `knee recover`. A trial of three phases comes first, or several, where the smallest
/// trigger is looked for. If the service did not recover and an explanation is asked for, the same
/// follows with one thing changed.
#[derive(Clone, Debug)]
pub struct Recover {
    spec: RecoverSpec,
}

impl Recover {
    /// The experiment.
    pub fn new(spec: RecoverSpec) -> Recover {
        Recover { spec }
    }

    fn conclusion(&self, progress: &RecoverProgress<'_>) -> RecoverConclusion {
        let RecoverSpec { phases, rate, trigger, .. } = &self.spec;
        let known = RecoverConclusion {
            rate_per_s: rate.per_s(),
            trigger_per_s: trigger.rate().per_s(),
            trigger_stays: matches!(trigger, Trigger::Stays(_)),
            answer: "Nothing was measured".to_owned(),
            ..RecoverConclusion::default()
        };
        let Some((trial, load, analysis)) = progress.decisive() else {
            return known;
        };
        let triggers = match trigger {
            Trigger::Search(_) => progress.triggers(),
            Trigger::Load(_) | Trigger::Stays(_) => Vec::new(),
        };
        let down = || triggers.iter().filter(|row| row.verdict.is_some_and(|v| v.is_down()));
        let by_size = |a: &&TriggerTried, b: &&TriggerTried| {
            a.rate_per_s.total_cmp(&b.rate_per_s).then(a.duration_ns.cmp(&b.duration_ns))
        };
        let steps = progress.hysteresis(&self.spec);
        let mut conclusion = RecoverConclusion {
            verdict: analysis.verdict,
            recovery_ns: analysis.recovery.map(|t| t.0),
            base: analysis.base,
            after: analysis.after,
            queue: analysis.queue,
            by_goodput: analysis.by_goodput.clone(),
            goodput_at_least_per_s: analysis.goodput_at_least_per_s,
            p99_at_most_ns: analysis.p99_at_most_ns,
            amplification: analysis.amplification,
            failed_requests: analysis.failed_requests,
            decisive_trial: trial,
            trigger_per_s: load.rate.per_s(),
            trigger_ns: phases.before.0,
            after_ns: (phases.before + load.lasting).0,
            smallest_trigger: down().min_by(by_size).map(TriggerTried::load),
            shortest_trigger: down().min_by_key(|row| row.duration_ns).map(TriggerTried::load),
            triggers,
            counterfactuals: progress.counterfactuals(),
            hysteresis_percent: analysis::area_percent(&steps),
            hysteresis: steps,
            ..known
        };
        conclusion.answer = findings::answer(&conclusion, analysis);
        if progress.has_doubtful_steps() {
            conclusion.answer += ". What is served on the way up and down is not known: that load \
                                  was not kept";
        }
        conclusion
    }
}

impl Experiment for Recover {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = RecoverConclusion;

    fn next(&mut self, past: &[TrialReport]) -> NextTrial<TrialSpec> {
        let progress = progress(&self.spec, past);
        match (progress.not_carried(), progress.next) {
            (Some((0, percent_carried)), _) => NextTrial::Doomed(format!(
                "the service does not carry the base load: before the trigger it served {} of the \
                 requests in time",
                percent(percent_carried)
            )),
            (Some(_), _) => NextTrial::Doomed(format!(
                "after rests from {} on the service did not carry the base load again: a longer \
                 --rest is needed",
                self.spec.rest.exactly()
            )),
            (None, Some(part)) => NextTrial::Run(Box::new(self.spec.trial(&progress, part))),
            (None, None) => NextTrial::Converged,
        }
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<RecoverConclusion> {
        let progress = progress(&self.spec, past);
        let conclusion = self.conclusion(&progress);
        let verdict = progress.verdict();
        let findings = findings::list(past, &conclusion, verdict);
        Concluded { verdict, findings, conclusion }
    }

    /// The time until the service was back belongs to each trial, for thresholds.
    fn reported(&self, past: &[TrialReport]) -> Option<Vec<TrialReport>> {
        let trials = progress(&self.spec, past).trials;
        let recoveries = trials
            .iter()
            .map(|trial| trial.analysis.as_ref().and_then(|analysis| analysis.recovery))
            .chain(iter::repeat(None));
        let with_recovery = |(trial, recovery): (&TrialReport, Option<Nanos>)| {
            let mut trial = trial.clone();
            if let Some(requests) = trial.requests_mut() {
                requests.recovery_ns = recovery.map(|t| t.0);
            }
            trial
        };
        Some(past.iter().zip(recoveries).map(with_recovery).collect())
    }

    fn next_step_if_doomed(&self) -> Option<String> {
        Some("Find its capacity first: knee sweep URL --axis rate".to_owned())
    }
}

impl Answer for RecoverConclusion {
    fn codes() -> Vec<Code> {
        findings::CODES.to_vec()
    }

    /// The trial that the answer is about: others have something changed.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        trials.get(self.decisive_trial).into_iter().collect()
    }

    /// A trigger overloads on purpose. What fails after it has a finding of its own.
    fn fails_on_purpose(&self) -> bool {
        true
    }

    /// The verdict follows from the figures beside it.
    fn check(&self, report: CheckedReport<'_>, check: &mut ConsistencyCheck) {
        let Some(verdict) = self.verdict else { return };
        let is_back = verdict == RecoveryVerdict::Recovered;
        check.require(is_back == self.recovery_ns.is_some(), || {
            format!("{}, after {:?} ns", verdict.word(), self.recovery_ns)
        });
        let (served, least) = (self.after.goodput_per_s, self.goodput_at_least_per_s);
        let is_quick = self.p99_at_most_ns.is_none_or(|most| self.after.p99_ns <= Some(most));
        check.require(!is_back || at_most(least, served) && is_quick, || {
            format!("recovered, and at the end {served}/s with a p99 of {:?} ns", self.after.p99_ns)
        });
        let drains = self.queue.and_then(|queue| queue.back_in_ns).is_some();
        check.require(!drains || verdict == RecoveryVerdict::Recovering, || {
            format!("{}, and its queue drains", verdict.word())
        });
        let is_metastable = report.findings.iter().any(|finding| finding.is(findings::METASTABLE));
        check.require(!is_metastable || verdict.is_down(), || {
            format!("{}, and a metastable failure", verdict.word())
        });
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }
}
