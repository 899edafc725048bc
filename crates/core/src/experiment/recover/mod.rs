//! `knee recover`: whether a service comes back after an overload.
//!
//! A service can stay down after an overload has ended, as retries, timeouts and cold caches keep
//! it overloaded (Bronson et al., HotOS 2021). Base load, trigger and base load again are one trial
//! with one set of connections.

mod analysis;
mod findings;
pub mod report;
#[cfg(test)]
mod tests;

use super::answer::Answer;
use super::{Concluded, Experiment, NextTrial};
use crate::finding::Code;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{capital, exact, number, percent, time};
use analysis::{RecoveryAnalysis, analyse};
use knee_load::arrival::{StepOfRate, StepsLaw};
use knee_load::rng;
use knee_load::spec::{ArrivalLaw, Load, Rate, RetryPolicy, TrialSpec};
use knee_load::time::Nanos;
use report::{Counterfactual, RecoverConclusion, RecoveryVerdict};

/// Lengths of the three phases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecoverPhases {
    /// Base load before the trigger.
    pub before: Nanos,
    /// The trigger.
    pub trigger: Nanos,
    /// Base load after it.
    pub after: Nanos,
}

impl RecoverPhases {
    /// All three.
    pub fn length(self) -> Nanos {
        self.before + self.trigger + self.after
    }
}

/// What `knee recover` is to find out.
#[derive(Clone, Debug, PartialEq)]
pub struct RecoverSpec {
    /// Target, limits and retries of all trials; its load is an open one.
    pub base: TrialSpec,
    /// Lengths of the phases.
    pub phases: RecoverPhases,
    /// Requests per second before and after the trigger.
    pub rate: Rate,
    /// Requests per second during the trigger.
    pub trigger: Rate,
    /// Whether a service that does not recover is measured again with one thing changed.
    pub explains: bool,
    /// Time before such a trial in which hardly anything is offered, so that queues run empty.
    pub rest: Nanos,
}

/// Share of the base load that is offered while a service rests.
const REST_SHARE: f64 = 0.01;

/// One thing that differs from the first trial.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Change {
    NoRetries,
    RetryBudget,
    HalfTimeout,
    LowerLoad,
}

/// Budget of the trial with a retry budget.
const BUDGET: f64 = 0.1;
/// Share of the base load of the trial with a lower one.
const LOWER_SHARE: f64 = 0.75;

impl Change {
    fn words(self) -> &'static str {
        match self {
            Change::NoRetries => "without retries",
            Change::RetryBudget => "with a retry budget of 10 %",
            Change::HalfTimeout => "with half the timeout",
            Change::LowerLoad => "with three quarters of the base load",
        }
    }

    /// Those that change anything of this spec.
    fn of(spec: &RecoverSpec) -> Vec<Change> {
        let retry = spec.base.retry.as_ref().filter(|policy| policy.retries_max > 0);
        let is_above = retry.is_some_and(|p| p.budget.is_none_or(|share| share > BUDGET));
        let rows = [
            (retry.is_some(), Change::NoRetries),
            (is_above, Change::RetryBudget),
            (true, Change::HalfTimeout),
            (true, Change::LowerLoad),
        ];
        rows.into_iter().filter(|(applies, _)| *applies).map(|(_, change)| change).collect()
    }

    fn apply(self, spec: &mut RecoverSpec) {
        let retry = spec.base.retry.as_mut();
        match self {
            Change::NoRetries => retry.into_iter().for_each(|p| p.retries_max = 0),
            Change::RetryBudget => retry.into_iter().for_each(|p| p.budget = Some(BUDGET)),
            Change::HalfTimeout => spec.base.timeout = Nanos(spec.base.timeout.0 / 2),
            Change::LowerLoad => {
                spec.rate = share_of(spec.rate, LOWER_SHARE);
            }
        }
    }
}

fn share_of(rate: Rate, share: f64) -> Rate {
    Rate::from_f64(rate.per_s() * share).unwrap_or(rate)
}

/// Policy of `knee recover`: a trial of three phases. If the service did not recover and an
/// explanation is asked for, the same follows with one thing changed.
#[derive(Clone, Debug)]
pub struct Recover {
    spec: RecoverSpec,
}

impl Recover {
    /// The experiment.
    pub fn new(spec: RecoverSpec) -> Recover {
        Recover { spec }
    }

    /// What is changed in trial `number`; `None` in the first.
    fn change(&self, number: usize) -> Option<Change> {
        Change::of(&self.spec).get(number.checked_sub(1)?).copied()
    }

    fn trial(&self, number: usize) -> TrialSpec {
        let mut spec = self.spec.clone();
        let change = self.change(number);
        change.into_iter().for_each(|change| change.apply(&mut spec));
        let RecoverSpec { base, phases, rate, trigger, rest, .. } = spec;
        let step = |rate, length| StepOfRate { rate, length };
        let (mut steps, mut warmup) = (Vec::new(), base.warmup);
        if change.is_some() && rest > Nanos::ZERO {
            steps.push(step(share_of(rate, REST_SHARE), rest));
            warmup += rest;
        }
        steps.push(step(rate, base.warmup + phases.before));
        steps.push(step(trigger, phases.trigger));
        steps.push(step(rate, phases.after));
        let mut load = base.load.clone();
        if let (Load::Open(open), Some(law)) = (&mut load, StepsLaw::new(steps)) {
            open.arrival = ArrivalLaw::Steps(law);
            open.rate = open.arrival.own_rate().unwrap_or(rate);
        }
        TrialSpec {
            label: change.map_or(base.label.clone(), |change| change.words().to_owned()),
            load,
            warmup,
            duration: phases.length(),
            retry: base.retry.clone().or(Some(RetryPolicy::ONCE)),
            seed: if number == 0 { base.seed } else { rng::of_trial(base.seed, number) },
            ..base
        }
    }

    /// What a trial shows, if it can be trusted.
    fn analysis(&self, trial: &TrialReport) -> Option<RecoveryAnalysis> {
        analyse(trial, self.spec.phases)
    }

    fn counterfactuals(&self, past: &[TrialReport]) -> Vec<Counterfactual> {
        let changed = past.iter().enumerate().skip(1);
        let changed = changed.filter(|(_, trial)| trial.verdict == Verdict::Valid);
        let row = |(number, trial): (usize, &TrialReport)| {
            let shown = self.analysis(trial)?;
            Some(Counterfactual {
                change: self.change(number)?.words().to_owned(),
                verdict: shown.verdict,
                recovery_ns: shown.recovery.map(|t| t.0),
            })
        };
        changed.filter_map(row).collect()
    }

    fn conclusion(&self, past: &[TrialReport]) -> RecoverConclusion {
        let RecoverSpec { phases, rate, trigger, .. } = &self.spec;
        let known = RecoverConclusion {
            rate_per_s: rate.per_s(),
            trigger_per_s: trigger.per_s(),
            trigger_ns: phases.before.0,
            after_ns: (phases.before + phases.trigger).0,
            answer: "Nothing was measured".to_owned(),
            ..RecoverConclusion::default()
        };
        let Some(shown) = past.first().and_then(|trial| self.analysis(trial)) else {
            return known;
        };
        let mut conclusion = RecoverConclusion {
            verdict: shown.verdict,
            recovery_ns: shown.recovery.map(|t| t.0),
            base: shown.base,
            after: shown.after,
            goodput_at_least_per_s: shown.goodput_at_least_per_s,
            p99_at_most_ns: shown.p99_at_most_ns,
            amplification: shown.amplification,
            failed_requests: shown.failed_requests,
            counterfactuals: self.counterfactuals(past),
            ..known
        };
        conclusion.answer = answer(&conclusion, &shown);
        conclusion
    }
}

impl Experiment for Recover {
    type Spec = TrialSpec;
    type Trial = TrialReport;
    type Conclusion = RecoverConclusion;

    fn next(&mut self, past: &[TrialReport]) -> NextTrial<TrialSpec> {
        let Some(first) = past.first() else {
            return NextTrial::Run(Box::new(self.trial(0)));
        };
        let Some(shown) = self.analysis(first).filter(|_| first.verdict == Verdict::Valid) else {
            return NextTrial::Converged;
        };
        if !shown.is_carried {
            return NextTrial::Doomed(format!(
                "the service does not carry the base load: before the trigger it served {} of the \
                 requests in time",
                percent(shown.carried_percent)
            ));
        }
        let is_back = shown.verdict.is_none_or(|verdict| verdict == RecoveryVerdict::Recovered);
        if !self.spec.explains || is_back || self.change(past.len()).is_none() {
            return NextTrial::Converged;
        }
        NextTrial::Run(Box::new(self.trial(past.len())))
    }

    fn conclude(&self, past: &[TrialReport]) -> Concluded<RecoverConclusion> {
        let conclusion = self.conclusion(past);
        let verdict = past.first().map_or(Verdict::Valid, |first| first.verdict);
        let findings = findings::all(past, &conclusion, verdict);
        Concluded { verdict, findings, conclusion }
    }

    /// The time until the service was back belongs to each trial, for thresholds.
    fn reported(&self, past: &[TrialReport]) -> Option<Vec<TrialReport>> {
        let with_recovery = |trial: &TrialReport| {
            let mut trial = trial.clone();
            let recovery = self.analysis(&trial).and_then(|shown| shown.recovery);
            trial.set_recovery(recovery.map(|t| t.0));
            trial
        };
        Some(past.iter().map(with_recovery).collect())
    }

    fn next_step_if_doomed(&self) -> Option<String> {
        Some("Find its capacity first: knee sweep URL --axis rate".to_owned())
    }
}

fn answer(c: &RecoverConclusion, shown: &RecoveryAnalysis) -> String {
    let before = c.base.goodput_per_s.max(f64::MIN_POSITIVE);
    let share = percent(100.0 * c.after.goodput_per_s / before);
    let mut sentences = vec![match c.verdict {
        Some(RecoveryVerdict::Recovered) => {
            let after = match c.recovery_ns {
                None | Some(0) => "at once".to_owned(),
                Some(ns) => format!("{} after the trigger", time(ns as f64)),
            };
            let failed = exact(c.failed_requests as f64);
            format!("Recovered {after}; {failed} requests failed meanwhile")
        }
        Some(RecoveryVerdict::Degraded) => {
            let p99 = |ns: Option<u64>| ns.map_or("unknown".to_owned(), |ns| time(ns as f64));
            format!(
                "Degraded: {share} of the goodput of before, p99 {} instead of {}",
                p99(c.after.p99_ns),
                p99(c.base.p99_ns)
            )
        }
        Some(RecoveryVerdict::Stuck) => {
            let attempts = c.amplification.map_or(String::new(), |times| {
                format!(", {} attempts for each request", number(times))
            });
            format!("Stuck: {share} of the goodput of before, at the same load{attempts}")
        }
        Some(RecoveryVerdict::Crashed) => {
            "Crashed: connections are refused, and nothing is served".to_owned()
        }
        None if !shown.is_carried => format!(
            "The service does not carry the base load: {} served in time",
            percent(shown.carried_percent)
        ),
        None => "The time after the trigger is too short for an answer".to_owned(),
    }];
    let remedy = c.counterfactuals.iter().filter(|row| row.recovery_ns.is_some());
    if let Some(row) = remedy.min_by_key(|row| row.recovery_ns) {
        let within = match row.recovery_ns {
            None | Some(0) => "at once".to_owned(),
            Some(ns) => format!("in {}", time(ns as f64)),
        };
        sentences.push(format!("{} it recovers {within}", capital(&row.change)));
    }
    sentences.join(". ")
}

impl Answer for RecoverConclusion {
    fn codes() -> Vec<Code> {
        findings::CODES.to_vec()
    }

    /// The first trial: the others have something changed.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        trials.first().into_iter().collect()
    }

    /// A trigger overloads on purpose. What fails after it has a finding of its own.
    fn fails_on_purpose(&self) -> bool {
        true
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }
}
