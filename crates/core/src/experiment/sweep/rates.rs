//! Next rate of a sweep in open loop: a search after MLRsearch (RFC 9971).
//!
//! All goals are searched at once, first with short trials and coarse steps, then with long ones.
//! An undecided rate is tried again, and is never a reason to go down.

use super::goals::{Goal, GoalLimit, RateTrials, TrialDemand};
use super::{LevelPlan, SweepSpec};
use crate::experiment::NextTrial;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;
use knee_load::spec::{Rate, TrialSpec};
use knee_load::time::Nanos;

/// First rate of an automatic plan, in operations per second.
const START_PER_S: f64 = 100.0;
/// Factor between rates while it climbs, or descends from a rate that is not served.
const STEP: f64 = 4.0;
/// Least and greatest rate.
const RANGE_PER_S: [f64; 2] = [0.1, 1e8];
/// Least ratio to an undecided rate.
const NEAR_UNKNOWN: f64 = 1.5;
/// Shares of the throughput of an overloaded target, about its capacity, that are tried first.
const CAPACITY_SHARES: [f64; 6] = [0.98, 1.02, 0.95, 1.06, 0.9, 1.15];
/// Least distance to a measured rate, as a share.
const APART: f64 = 0.012;
/// Largest factor by which a trial with few operations is lengthened.
const STRETCH_MAX: f64 = 5.0;
/// Undecided rates in a row that end the climb.
const CLIMB_UNDECIDED_MAX: usize = 3;
/// Most trials of an automatic plan.
const TRIALS_MAX: usize = 56;

/// Stage of the search.
#[derive(Clone, Copy, Debug, PartialEq)]
struct SearchStage {
    /// Length of a trial as a share of a full one.
    length_share: f64,
    /// Trials whose time decides on a rate.
    trials: f64,
    /// Most trials of an undecided rate.
    tries_max: usize,
    /// Ratio of the bounds of a goal that is near enough.
    near: f64,
}

/// Short trials, in coarse steps.
const SHORT: SearchStage =
    SearchStage { length_share: 0.25, trials: 1.0, tries_max: 2, near: 1.15 };
/// Full trials: two of three decide.
const LONG: SearchStage = SearchStage { length_share: 1.0, trials: 3.0, tries_max: 5, near: 1.05 };

/// The next step after these trials.
pub(super) fn next(
    spec: &SweepSpec,
    plan: &LevelPlan<Rate>,
    past: &[TrialReport],
) -> NextTrial<TrialSpec> {
    let trial = match plan {
        LevelPlan::List(rates) => {
            listed(rates, past).map(|rate| (rate, length(spec, Goal::NoLoss, rate, LONG)))
        }
        LevelPlan::Auto if is_spent(spec, past) => None,
        LevelPlan::Auto => RateSearch { spec, trials: RateTrials::of(past) }.next(),
    };
    match trial {
        Some((per_s, length)) => offer(spec, past, per_s, length),
        None => NextTrial::Converged,
    }
}

/// The next rate of a list. One with an invalid trial is measured once more.
fn listed(rates: &[Rate], past: &[TrialReport]) -> Option<f64> {
    let (mut measured, mut is_again) = (0, false);
    for trial in past {
        measured += usize::from(!is_again);
        is_again = !is_again && trial.verdict == Verdict::Invalid;
    }
    let again = past.last().filter(|_| is_again).map(|t| value(t.level));
    again.or_else(|| Some(rates.get(measured)?.per_s()))
}

/// Length of a trial at this rate, lengthened for few operations.
fn length(spec: &SweepSpec, goal: Goal, rate: f64, stage: SearchStage) -> Nanos {
    let full = spec.base.duration.as_secs_f64();
    let needed = (goal.operations() / rate).min(STRETCH_MAX * full);
    Nanos((1e9 * (stage.length_share * full).max(needed)) as u64)
}

/// Time limit of a search, in full trials.
const FULL_TRIALS: f64 = 14.0;

/// Whether the search has no time left for another trial.
fn is_spent(spec: &SweepSpec, past: &[TrialReport]) -> bool {
    let full = spec.base.duration.0.max(1) as f64;
    let cost = |t: &TrialReport| (t.duration_ns as f64 / full).clamp(SHORT.length_share, 1.0);
    past.iter().map(cost).sum::<f64>() > FULL_TRIALS - 1.0 || past.len() >= TRIALS_MAX
}

/// A single trial at this rate, as long as one of a list.
pub(super) fn beside(spec: &SweepSpec, rate: Rate, number: usize) -> TrialSpec {
    let length = length(spec, Goal::NoLoss, rate.per_s(), LONG);
    spec.rate_trial(rate, number, length)
}

fn offer(
    spec: &SweepSpec,
    past: &[TrialReport],
    per_s: f64,
    length: Nanos,
) -> NextTrial<TrialSpec> {
    let Some(rate) = Rate::from_f64(per_s) else {
        return NextTrial::Doomed(format!("a rate of {per_s}/s cannot be offered"));
    };
    let mut trial = spec.rate_trial(rate, past.len(), length);
    // A queue that grows is seen from interval to interval.
    let tenth = Nanos(length.0 / 10).max(Nanos::from_millis(10));
    trial.interval = trial.interval.min(tenth);
    NextTrial::Run(Box::new(trial))
}

/// State of the search after some trials.
struct RateSearch<'a> {
    spec: &'a SweepSpec,
    trials: RateTrials<'a>,
}

impl RateSearch<'_> {
    /// The next rate and the length of its trial: the shortest trial that a goal needs, and of
    /// those the highest rate.
    fn next(&self) -> Option<(f64, Nanos)> {
        let goals = Goal::all(&self.spec.bounds);
        let wanted = goals.into_iter().filter_map(|goal| self.next_for_goal(goal));
        wanted.min_by(|a, b| a.1.cmp(&b.1).then(b.0.total_cmp(&a.0)))
    }

    fn next_for_goal(&self, goal: Goal) -> Option<(f64, Nanos)> {
        [SHORT, LONG].into_iter().find_map(|stage| {
            let rate = self.next_for_stage(goal, stage)?;
            // A long trial may decide where a short one did not.
            let is_again = self.trials.at(rate).next().is_some();
            let stage = if is_again { LONG } else { stage };
            Some((rate, length(self.spec, goal, rate, stage)))
        })
    }

    fn next_for_stage(&self, goal: Goal, stage: SearchStage) -> Option<f64> {
        let limit = self.limit(goal, stage);
        let is_open = |rate: &f64| {
            self.verdict(goal, *rate, stage).is_none()
                && limit.within.is_none_or(|w| *rate > w)
                && limit.outside.is_none_or(|o| *rate < o)
                && self.tries(goal, *rate, stage) < stage.tries_max
        };
        // Confirm the result of the stage before; finish rates that were begun.
        let earlier = if stage == LONG { self.limit(goal, SHORT) } else { GoalLimit::default() };
        // Where short trials decide nothing, longer repeats do not either.
        if stage == LONG && earlier.within.or(earlier.outside).is_none() {
            return None;
        }
        let begun = limit.unknown.iter().copied().filter(|r| self.tries(goal, *r, stage) > 0);
        let unconfirmed = [earlier.within, earlier.outside].into_iter().flatten();
        unconfirmed.chain(begun).find(is_open).or_else(|| self.toward(&limit, stage.near))
    }

    fn limit(&self, goal: Goal, stage: SearchStage) -> GoalLimit {
        self.trials.limit(goal, |rate| self.demand(goal, rate, stage))
    }

    fn verdict(&self, goal: Goal, rate: f64, stage: SearchStage) -> Option<bool> {
        self.trials.verdict(goal, rate, self.demand(goal, rate, stage))
    }

    /// Trials of this rate that are long enough for the stage.
    fn tries(&self, goal: Goal, rate: f64, stage: SearchStage) -> usize {
        let least = 0.95 * self.demand(goal, rate, stage).trial_s;
        self.trials.at(rate).filter(|t| t.duration_ns as f64 / 1e9 >= least).count()
    }

    fn demand(&self, goal: Goal, rate: f64, stage: SearchStage) -> TrialDemand {
        let trial_s = length(self.spec, goal, rate, stage).as_secs_f64();
        TrialDemand { trial_s, sum_s: stage.trials * trial_s }
    }

    /// A new rate toward the limit: up or down until it is enclosed, then between.
    fn toward(&self, limit: &GoalLimit, near: f64) -> Option<f64> {
        let [least, most] = RANGE_PER_S;
        let unknown = &limit.unknown;
        match (limit.within, limit.outside) {
            (None, None) => match unknown.last() {
                None => Some(START_PER_S),
                Some(last) => (unknown.len() < CLIMB_UNDECIDED_MAX).then(|| rounded(last * STEP)),
            },
            (Some(within), None) => match unknown.len() {
                n if n < CLIMB_UNDECIDED_MAX - 1 => {
                    let highest = unknown.last().copied().unwrap_or(within);
                    Some(rounded(highest * STEP)).filter(|&r| r <= most)
                }
                _ => self.middle(within, unknown[0], NEAR_UNKNOWN),
            },
            (None, Some(outside)) => {
                let from = unknown.last().and_then(|u| self.middle(*u, outside, NEAR_UNKNOWN));
                let lowest = unknown.first().copied().unwrap_or(outside);
                let lower = rounded(lowest / STEP);
                let served = limit.capacity_per_s.map(|c| rounded(CAPACITY_SHARES[0] * c));
                let guess = served.filter(|&r| r >= least && r < lowest && self.is_apart(r));
                from.or(guess).or_else(|| Some(lower).filter(|&r| r >= least && self.is_apart(r)))
            }
            (Some(within), Some(outside)) => self.between(within, outside, limit, near),
        }
    }

    /// A new rate between the two, unless they are near enough. It is near a known capacity,
    /// otherwise in the middle of the widest gap between tried rates.
    fn between(&self, within: f64, outside: f64, limit: &GoalLimit, near: f64) -> Option<f64> {
        if outside / within <= near {
            return None;
        }
        let inside = |r: &f64| *r > within && *r < outside && self.is_apart(*r);
        let guesses = limit.capacity_per_s.map(|c| CAPACITY_SHARES.map(|share| rounded(c * share)));
        let guess = guesses.into_iter().flatten().find(inside);
        guess.or_else(|| {
            let mut tried = vec![within];
            tried.extend(&limit.unknown);
            tried.push(outside);
            let gaps = tried.windows(2).map(|pair| [pair[0], pair[1]]);
            let [lower, upper] = gaps.max_by(|a, b| (a[1] / a[0]).total_cmp(&(b[1] / b[0])))?;
            self.middle(lower, upper, near)
        })
    }

    fn middle(&self, lower: f64, upper: f64, near: f64) -> Option<f64> {
        let middle = rounded((lower * upper).sqrt());
        (upper / lower > near && self.is_apart(middle)).then_some(middle)
    }

    fn is_apart(&self, rate: f64) -> bool {
        self.trials.rates.iter().all(|r| (r / rate - 1.0).abs() > APART)
    }
}

/// Rounds to four significant digits.
fn rounded(per_s: f64) -> f64 {
    let unit = 10f64.powf(per_s.log10().floor() - 3.0);
    let value = (per_s / unit).round() * unit;
    (value * 1e6).round() / 1e6
}
