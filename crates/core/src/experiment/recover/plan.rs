//! Which trial comes next, from those that were run.

use super::analysis::{self, RecoveryAnalysis, TriggerPlan, analyse, hysteresis_rates};
use super::report::{Counterfactual, HysteresisStep, RecoveryVerdict, TriggerTried};
use super::{RecoverPhases, RecoverSpec, Trigger};
use crate::trial::report::{TrialReport, Verdict};
use knee_load::arrival::{StepOfRate, StepsLaw};
use knee_load::rng;
use knee_load::spec::{ArrivalLaw, Load, Rate, RetryPolicy, SentinelSpec, TrialSpec};
use knee_load::time::Nanos;

/// The load of one trigger.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TriggerLoad {
    /// Requests per second while it lasts.
    pub(super) rate: Rate,
    /// How long it lasts.
    pub(super) lasting: Nanos,
}

/// What a trial is for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum RecoverPart {
    /// A trigger.
    Trigger(TriggerLoad),
    /// The same with one thing changed.
    Changed(Change, TriggerLoad),
    /// Rates up and down in steps.
    Hysteresis,
}

impl RecoverPart {
    /// The trigger of a trial with nothing changed.
    pub(super) fn trigger(self) -> Option<TriggerLoad> {
        match self {
            RecoverPart::Trigger(load) => Some(load),
            RecoverPart::Changed(..) | RecoverPart::Hysteresis => None,
        }
    }
}

/// One thing that differs from the trials before.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    NoRetries,
    RetryBudget,
    HalfTimeout,
    LowerLoad,
}

/// Budget of the trial with a retry budget.
const BUDGET: f64 = 0.1;
/// Share of the base load of the trial with a lower one.
const LOWER_SHARE: f64 = 0.75;
/// Share of the base load that is offered while a service rests.
const REST_SHARE: f64 = 0.01;
/// The search ends where the rate that keeps the service down is less than this above one that
/// does not.
const RATE_PRECISION: f64 = 1.1;
/// [`RATE_PRECISION`] of lengths.
const LENGTH_PRECISION: f64 = 1.2;
/// Trials in a row before which the service had not rested, after which no longer rest is tried.
const UNRESTED_MAX: usize = 3;
/// The longest rest, as a multiple of the first.
const REST_MOST: u64 = 32;
/// Time for which the last phase goes on, at most, until it is known what becomes of the queue.
const UNDECIDED: Nanos = Nanos::from_secs(60);
/// Length of the last phase, at most, while the queue drains.
const DRAINS: Nanos = Nanos::from_secs(240);
/// Time from one sentinel to the next, …
const SENTINEL_EVERY: Nanos = Nanos::from_secs(1);
/// … which are this share of the base load at most.
const SENTINEL_SHARE: f64 = 0.02;
/// Time after the trigger, at most, in which its retries hide what becomes of the queue.
const ECHO: Nanos = Nanos::from_secs(30);
/// A wait up to this, and up to a quarter of the timeout, keeps no service down.
const HARMLESS: Nanos = Nanos::from_millis(100);
/// Intervals in which a queue has to be as short as before.
const CALM_INTERVALS: u64 = 4;
/// The shortest trigger looked for, as a share of the longest.
const SHORTEST_SHARE: f64 = 1.0 / 64.0;

impl Change {
    pub(super) fn words(self) -> &'static str {
        match self {
            Change::NoRetries => "without retries",
            Change::RetryBudget => "with a retry budget of 10 %",
            Change::HalfTimeout => "with half the timeout",
            Change::LowerLoad => "with three quarters of the base load",
        }
    }

    /// The changes that make a difference to this spec.
    fn applicable(spec: &RecoverSpec) -> Vec<Change> {
        let retry = spec.base.retry.as_ref().filter(|policy| policy.retries_max > 0);
        let is_above = retry.is_some_and(|p| p.budget.is_none_or(|share| share > BUDGET));
        let rows = [
            (retry.is_some(), Change::NoRetries),
            (is_above, Change::RetryBudget),
            (true, Change::HalfTimeout),
            // A load that rose to stay is the question.
            (!matches!(spec.trigger, Trigger::Stays(_)), Change::LowerLoad),
        ];
        rows.into_iter().filter(|(applies, _)| *applies).map(|(_, change)| change).collect()
    }

    fn apply(self, spec: &mut RecoverSpec) {
        let retry = spec.base.retry.as_mut();
        match self {
            Change::NoRetries => retry.into_iter().for_each(|p| p.retries_max = 0),
            Change::RetryBudget => retry.into_iter().for_each(|p| p.budget = Some(BUDGET)),
            Change::HalfTimeout => spec.base.timeout = Nanos(spec.base.timeout.0 / 2),
            Change::LowerLoad => spec.rate = scaled(spec.rate, LOWER_SHARE),
        }
    }
}

fn scaled(rate: Rate, factor: f64) -> Rate {
    Rate::from_f64(rate.per_s() * factor).unwrap_or(rate)
}

/// A trial that was run.
pub(super) struct RecoverTrial {
    /// What it was for.
    pub(super) part: RecoverPart,
    /// Whether it can be trusted.
    trial_verdict: Verdict,
    /// What it shows; `None` of one in steps.
    pub(super) analysis: Option<RecoveryAnalysis>,
    /// Whether it counts: the service had rested before it, or does not come to rest.
    counts: bool,
}

impl RecoverTrial {
    /// Whether the service did not come back; `None` where that is not known.
    fn stays_down(&self) -> Option<bool> {
        Some(self.analysis.as_ref()?.verdict?.is_down())
    }

    /// Whether the service stays down, for the search: a queue so long that its trend is not known
    /// counts as that, so that smaller triggers are tried.
    fn is_not_back(&self) -> Option<bool> {
        let is_long = self.analysis.as_ref()?.queue.is_some();
        self.stays_down().or(is_long.then_some(true))
    }
}

/// What is known so far, and what comes next.
pub(super) struct RecoverProgress<'a> {
    past: &'a [TrialReport],
    pub(super) trials: Vec<RecoverTrial>,
    pub(super) next: Option<RecoverPart>,
}

impl RecoverProgress<'_> {
    /// The trials that count.
    fn counted(&self) -> impl Iterator<Item = &RecoverTrial> + Clone {
        self.trials.iter().filter(|trial| trial.counts)
    }

    /// The rest before the next trial, which is longer after each before which it was too short.
    fn rest(&self, first: Nanos) -> Nanos {
        let short = self.trials.iter().filter(|trial| !trial.counts).count();
        Nanos(first.0 * REST_MOST.min(1 << short.min(60)))
    }

    /// The trial that the answer is about: of those with nothing changed the mildest after which
    /// the service stayed down, else the first. Its number, its trigger and what it shows.
    pub(super) fn decisive(&self) -> Option<(usize, TriggerLoad, &RecoveryAnalysis)> {
        let trigger =
            |(index, trial): (usize, &'_ RecoverTrial)| Some((index, trial.part.trigger()?));
        let triggers: Vec<(usize, TriggerLoad)> =
            self.trials.iter().enumerate().filter_map(trigger).collect();
        let down = triggers.iter().filter(|(i, _)| self.trials[*i].stays_down() == Some(true));
        let mildest = down.min_by(|(_, a), (_, b)| {
            a.rate.per_s().total_cmp(&b.rate.per_s()).then(a.lasting.cmp(&b.lasting))
        });
        let (index, load) = *mildest.or(triggers.first())?;
        Some((index, load, self.trials[index].analysis.as_ref()?))
    }

    /// Whether the answer can be trusted: a trigger whose load was not kept makes it doubtful.
    pub(super) fn verdict(&self) -> Verdict {
        let triggers = self.trials.iter().filter(|trial| trial.part.trigger().is_some());
        let mut verdicts = triggers.map(|trial| trial.trial_verdict);
        verdicts.find(|verdict| *verdict != Verdict::Valid).unwrap_or(Verdict::Valid)
    }

    /// The first trigger before which the base load was not carried, with the share that was, in
    /// percent.
    pub(super) fn not_carried(&self) -> Option<(usize, f64)> {
        let triggers = self.trials.iter().enumerate();
        let triggers = triggers.filter(|(_, trial)| {
            trial.counts && trial.part.trigger().is_some() && trial.trial_verdict == Verdict::Valid
        });
        let mut analyses =
            triggers.filter_map(|(index, trial)| Some((index, trial.analysis.as_ref()?)));
        let (index, analysis) = analyses.find(|(_, analysis)| !analysis.is_carried)?;
        Some((index, analysis.carried_percent))
    }

    /// The triggers that were tried, in the order in which they were.
    pub(super) fn triggers(&self) -> Vec<TriggerTried> {
        let rows = self.counted().filter_map(|trial| {
            let (load, analysis) = (trial.part.trigger()?, trial.analysis.as_ref()?);
            Some(TriggerTried {
                rate_per_s: load.rate.per_s(),
                duration_ns: load.lasting.0,
                verdict: analysis.verdict,
                recovery_ns: analysis.recovery.map(|t| t.0),
            })
        });
        rows.collect()
    }

    /// The valid trials with one thing changed.
    pub(super) fn counterfactuals(&self) -> Vec<Counterfactual> {
        let rows = self.counted().filter(|trial| trial.trial_verdict == Verdict::Valid);
        let rows = rows.filter_map(|trial| {
            let (RecoverPart::Changed(change, _), Some(analysis)) = (trial.part, &trial.analysis)
            else {
                return None;
            };
            Some(Counterfactual {
                change: change.words().to_owned(),
                verdict: analysis.verdict,
                recovery_ns: analysis.recovery.map(|t| t.0),
                queue: analysis
                    .queue
                    .filter(|_| analysis.verdict == Some(RecoveryVerdict::Recovering)),
            })
        });
        rows.collect()
    }

    /// Whether steps up and down were made whose load was not kept.
    pub(super) fn has_doubtful_steps(&self) -> bool {
        let mut steps = self.trials.iter().filter(|trial| trial.part == RecoverPart::Hysteresis);
        steps.any(|trial| trial.trial_verdict != Verdict::Valid)
    }

    /// Goodput on both ways, where the load went up and down in steps.
    pub(super) fn hysteresis(&self, spec: &RecoverSpec) -> Vec<HysteresisStep> {
        let is_steps = |trial: &RecoverTrial| {
            trial.part == RecoverPart::Hysteresis
                && trial.counts
                && trial.trial_verdict == Verdict::Valid
        };
        let index = self.trials.iter().position(is_steps);
        index.map_or(Vec::new(), |index| analysis::measured_steps(spec, &self.past[index]))
    }
}

/// The part that each trial was, and the next one.
pub(super) fn progress<'a>(spec: &RecoverSpec, past: &'a [TrialReport]) -> RecoverProgress<'a> {
    let mut progress = RecoverProgress { past, trials: Vec::with_capacity(past.len()), next: None };
    for trial in past {
        let Some(part) = next_part(spec, &progress) else {
            break;
        };
        let analysis =
            spec.trigger_plan(part).and_then(|plan| analyse(trial, &plan, spec.rise_after()));
        let trial_verdict = trial.verdict;
        let is_carried = match &analysis {
            Some(analysis) => analysis.is_carried,
            None => analysis::is_first_carried(&analysis::measured_steps(spec, trial)),
        };
        let is_unrested =
            trial_verdict == Verdict::Valid && !progress.trials.is_empty() && !is_carried;
        let before = progress.trials.iter().rev().take_while(|trial| !trial.counts).count();
        let counts = !is_unrested || before + 1 >= UNRESTED_MAX;
        progress.trials.push(RecoverTrial { part, trial_verdict, analysis, counts });
    }
    progress.next = next_part(spec, &progress);
    progress
}

fn next_part(spec: &RecoverSpec, progress: &RecoverProgress<'_>) -> Option<RecoverPart> {
    // Nothing follows from a trial that cannot be trusted.
    if progress.verdict() != Verdict::Valid {
        return None;
    }
    let counted = progress.counted();
    let changes_tried =
        counted.clone().filter(|trial| matches!(trial.part, RecoverPart::Changed(..))).count();
    let has_steps = counted.clone().any(|trial| trial.part == RecoverPart::Hysteresis);
    if changes_tried == 0
        && !has_steps
        && let Some(load) = next_trigger(spec, counted)
    {
        return Some(RecoverPart::Trigger(load));
    }
    let (_, load, analysis) = progress.decisive()?;
    let verdict = analysis.verdict?;
    // No change of the clients helps if the service refuses connections.
    let can_change = verdict.is_down() && verdict != RecoveryVerdict::Crashed;
    let changes = if spec.explains && can_change { Change::applicable(spec) } else { Vec::new() };
    if let Some(change) = changes.get(changes_tried) {
        return Some(RecoverPart::Changed(*change, load));
    }
    (spec.hysteresis.is_some() && !has_steps).then_some(RecoverPart::Hysteresis)
}

/// The next trigger to try; `None` where those made are enough.
fn next_trigger<'a>(
    spec: &RecoverSpec,
    mut counted: impl Iterator<Item = &'a RecoverTrial> + Clone,
) -> Option<TriggerLoad> {
    let lasting = match spec.trigger {
        Trigger::Stays(_) => Nanos::ZERO,
        Trigger::Load(_) | Trigger::Search(_) => spec.phases.trigger,
    };
    let first = TriggerLoad { rate: spec.trigger.rate(), lasting };
    let Trigger::Search(most) = spec.trigger else {
        return counted.next().is_none().then_some(first);
    };
    let number = counted.clone().count();
    let tried = counted.filter_map(|trial| Some((trial.part.trigger()?, trial.is_not_back()?)));
    let tried: Vec<(TriggerLoad, bool)> = tried.collect();
    if tried.len() < number {
        return None;
    }
    let Some((_, is_down)) = tried.first() else {
        return Some(first);
    };
    if !is_down {
        return None;
    }
    let rates = tried.iter().filter(|(load, _)| load.lasting == first.lasting);
    let rates = rates.map(|(load, is_down)| (load.rate.per_s(), *is_down));
    let between = middle(rates, spec.rate.per_s(), RATE_PRECISION);
    if let Some(rate) = between.and_then(Rate::from_f64) {
        return Some(TriggerLoad { rate, ..first });
    }
    let lengths = tried.iter().filter(|(load, _)| load.rate == most);
    let lengths = lengths.map(|(load, is_down)| (load.lasting.as_secs_f64(), *is_down));
    let shortest = first.lasting.as_secs_f64() * SHORTEST_SHARE;
    let between = middle(lengths, shortest, LENGTH_PRECISION)?;
    Some(TriggerLoad { lasting: Nanos::from_secs_f64(between), ..first })
}

/// The geometric mean of two values: the least after which the service stays down, and the largest
/// after which it does not, at least `least`. `None` where they are as close as `precision`.
fn middle(
    tried: impl Iterator<Item = (f64, bool)> + Clone,
    least: f64,
    precision: f64,
) -> Option<f64> {
    let down = tried.clone().filter(|(_, is_down)| *is_down).map(|(value, _)| value);
    let down = down.fold(f64::INFINITY, f64::min);
    let back = tried.filter(|(value, is_down)| !is_down && *value < down).map(|(value, _)| value);
    let back = back.fold(least, f64::max);
    (down.is_finite() && down > back * precision).then(|| (down * back).sqrt())
}

impl RecoverSpec {
    /// The spec with the change of this part applied.
    fn changed_for(&self, part: RecoverPart) -> RecoverSpec {
        let mut spec = self.clone();
        if let RecoverPart::Changed(change, _) = part {
            change.apply(&mut spec);
        }
        spec
    }

    /// The phases of the trial for this part and its sentinels; `None` where it has steps.
    fn trigger_plan(&self, part: RecoverPart) -> Option<TriggerPlan> {
        let (RecoverPart::Trigger(load) | RecoverPart::Changed(_, load)) = part else {
            return None;
        };
        let RecoverSpec { base, phases, rate, .. } = self.changed_for(part);
        let phases = RecoverPhases { trigger: load.lasting, ..phases };
        let trigger_ends = phases.before + phases.trigger;
        let retry = base.retry.as_ref().unwrap_or(&RetryPolicy::ONCE);
        let sentinel = SentinelSpec {
            every: Nanos::from_secs_f64(1.0 / (SENTINEL_SHARE * rate.per_s())).max(SENTINEL_EVERY),
            before: phases.before,
            harmless: Nanos(base.timeout.0 / 4).min(HARMLESS),
            from: trigger_ends + retry.lasts_at_most(base.timeout).min(ECHO),
            ends_from: phases.length(),
            undecided_until: phases.length() + UNDECIDED,
            follows_fall: self.follows_fall,
            calm: Nanos(CALM_INTERVALS * base.interval.0).max(SENTINEL_EVERY),
        };
        Some(TriggerPlan { phases, sentinel })
    }

    /// How many times the base load is offered after the trigger.
    fn rise_after(&self) -> f64 {
        match self.trigger {
            Trigger::Stays(rate) => rate.per_s() / self.rate.per_s(),
            Trigger::Load(_) | Trigger::Search(_) => 1.0,
        }
    }

    /// The trial that follows, for this part.
    pub(super) fn trial(&self, progress: &RecoverProgress<'_>, part: RecoverPart) -> TrialSpec {
        let number = progress.trials.len();
        let RecoverSpec { base, phases, rate, .. } = self.changed_for(part);
        let plan = self.trigger_plan(part);
        let rest = progress.rest(self.rest);
        let step = |rate, length| StepOfRate { rate, length };
        let (mut steps, mut warmup) = (Vec::new(), base.warmup);
        if number > 0 && rest > Nanos::ZERO {
            steps.push(step(scaled(rate, REST_SHARE), rest));
            warmup += rest;
        }
        let (label, duration) = match part {
            RecoverPart::Trigger(load) | RecoverPart::Changed(_, load) => {
                steps.push(step(rate, base.warmup + phases.before));
                if load.lasting > Nanos::ZERO {
                    steps.push(step(load.rate, load.lasting));
                }
                let stays = matches!(self.trigger, Trigger::Stays(_));
                let after = phases.after + UNDECIDED;
                let after = if self.follows_fall { after.max(DRAINS) } else { after };
                steps.push(step(if stays { load.rate } else { rate }, after));
                (self.label(part, load), phases.before + load.lasting + after)
            }
            RecoverPart::Hysteresis => {
                let rates = hysteresis_rates(self);
                let lasting = self.hysteresis.unwrap_or_default();
                let warm = rates.first().map(|&first| step(first, base.warmup));
                steps.extend(warm.filter(|step| step.length > Nanos::ZERO));
                steps.extend(rates.iter().map(|&rate| step(rate, lasting)));
                ("up and down in steps".to_owned(), Nanos(lasting.0 * rates.len() as u64))
            }
        };
        let mut load = base.load.clone();
        if let (Load::Open(open), Some(law)) = (&mut load, StepsLaw::new(steps)) {
            open.arrival = ArrivalLaw::Steps(law);
            open.rate = open.arrival.own_rate().unwrap_or(rate);
        }
        TrialSpec {
            label,
            load,
            warmup,
            duration,
            retry: base.retry.clone().or(Some(RetryPolicy::ONCE)),
            sentinel: plan.map(|plan| plan.sentinel),
            seed: if number == 0 { base.seed } else { rng::of_trial(base.seed, number) },
            ..base
        }
    }

    fn label(&self, part: RecoverPart, load: TriggerLoad) -> String {
        match (part, self.trigger) {
            (RecoverPart::Changed(change, _), _) => change.words().to_owned(),
            (_, Trigger::Search(_)) => {
                format!("trigger {} for {}", load.rate.exactly(), load.lasting.exactly())
            }
            _ => self.base.label.clone(),
        }
    }
}
