//! Which rate to try next, in open loop: a search after MLRsearch (RFC 9971).
//!
//! All goals are searched for at once, first with short trials and coarse steps, then with long
//! ones. A rate that a trial leaves undecided is tried again, and is never a reason to go down.

use super::goals::{Goal, Limit, Target, Trials};
use super::{RatePlan, SweepSpec};
use crate::experiment::Next;
use crate::spec::{Rate, TrialSpec};
use crate::time::Nanos;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;

/// Where an automatic plan starts, in operations per second.
const START_PER_S: f64 = 100.0;
/// The factor by which it climbs, and by which it descends from a rate known not to be served.
const STEP: f64 = 4.0;
/// No target is asked for less or for more.
const RANGE_PER_S: [f64; 2] = [0.1, 1e8];
/// Bounds of a goal are near enough at this ratio.
const NEAR: f64 = 1.05;
/// The same while trials are short.
const NEAR_COARSE: f64 = 1.15;
/// An undecided rate is not approached nearer than this ratio.
const NEAR_UNKNOWN: f64 = 1.5;
/// An overloaded target serves about its capacity: rates at these shares of it are tried first.
const OF_CAPACITY: [f64; 6] = [0.98, 1.02, 0.95, 1.06, 0.9, 1.15];
/// A rate this near to one already measured, as a share, is not worth a trial.
const APART: f64 = 0.012;
/// A short trial is this share of a long one.
const SHORT_SHARE: f64 = 0.25;
/// A trial is longer than asked for by no more than this factor, where operations are few.
const STRETCH_MAX: f64 = 5.0;
/// Long trials whose time decides on a rate: two alike of three.
const LONG_TRIALS: f64 = 3.0;
/// Trials of one rate that may leave it undecided.
const UNDECIDED_MAX: usize = 2;
/// Undecided rates in a row that end a climb.
const CLIMB_UNDECIDED_MAX: usize = 3;
/// No automatic plan runs more trials: short ones count for a share of a full one.
const TRIALS_MAX: usize = 56;

/// How sure the search wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Short,
    Long,
}

/// What to do after these trials.
pub(super) fn next(spec: &SweepSpec, plan: &RatePlan, past: &[TrialReport]) -> Next<TrialSpec> {
    let trial = match plan {
        RatePlan::List(rates) => {
            listed(rates, past).map(|rate| (rate, length(spec, Goal::NoLoss, rate, Stage::Long)))
        }
        RatePlan::Auto if is_spent(spec, past) => None,
        RatePlan::Auto => Search::of(spec, past).next(),
    };
    match trial {
        Some((per_s, length)) => run(spec, past, per_s, length),
        None => Next::Converged,
    }
}

/// The next rate of a list; one that an invalid trial leaves undecided comes once more.
fn listed(rates: &[Rate], past: &[TrialReport]) -> Option<f64> {
    let (mut made, mut is_again) = (0, false);
    for trial in past {
        made += usize::from(!is_again);
        is_again = !is_again && trial.verdict == Verdict::Invalid;
    }
    let again = past.last().filter(|_| is_again).map(|t| value(t.level));
    again.or_else(|| Some(rates.get(made)?.per_s()))
}

/// The length of a trial of this rate: longer than asked for where its operations are few.
fn length(spec: &SweepSpec, goal: Goal, rate: f64, stage: Stage) -> Nanos {
    let full = spec.base.duration.as_secs_f64();
    let needed = (goal.operations() / rate).min(STRETCH_MAX * full);
    let length = match stage {
        Stage::Short => SHORT_SHARE * full,
        Stage::Long => full,
    };
    Nanos((1e9 * length.max(needed)) as u64)
}

/// The time of this many full trials is the most that a search takes.
const FULL_TRIALS: f64 = 14.0;

/// Whether the trials so far took as much time as a search may take.
fn is_spent(spec: &SweepSpec, past: &[TrialReport]) -> bool {
    let full = spec.base.duration.0.max(1) as f64;
    let cost = |t: &TrialReport| (t.duration_ns as f64 / full).clamp(SHORT_SHARE, 1.0);
    past.iter().map(cost).sum::<f64>() > FULL_TRIALS - 1.0 || past.len() >= TRIALS_MAX
}

/// A trial at this rate beside others, as long as one of a list.
pub(super) fn beside(spec: &SweepSpec, rate: Rate, number: usize) -> TrialSpec {
    let length = length(spec, Goal::NoLoss, rate.per_s(), Stage::Long);
    spec.rate_trial(rate, number, length)
}

fn run(spec: &SweepSpec, past: &[TrialReport], per_s: f64, length: Nanos) -> Next<TrialSpec> {
    let Some(rate) = Rate::from_f64(per_s) else {
        return Next::Doomed(format!("a rate of {per_s}/s cannot be offered"));
    };
    let mut trial = spec.rate_trial(rate, past.len(), length);
    // A queue that grows is seen from interval to interval.
    let tenth = Nanos(length.0 / 10).max(Nanos::from_millis(10));
    trial.interval = trial.interval.min(tenth);
    Next::Run(Box::new(trial))
}

/// The search as far as the trials show.
struct Search<'a> {
    spec: &'a SweepSpec,
    trials: Trials<'a>,
}

impl<'a> Search<'a> {
    fn of(spec: &'a SweepSpec, past: &'a [TrialReport]) -> Search<'a> {
        let trials = Trials::of(past);
        Search { spec, trials }
    }

    /// The next rate and the length of its trial: the shortest trial that any goal asks for, and of
    /// those the highest rate.
    fn next(&self) -> Option<(f64, Nanos)> {
        let goals = Goal::all(&self.spec.bounds);
        let wanted = goals.into_iter().filter_map(|goal| self.of_goal(goal));
        wanted.min_by(|a, b| a.1.cmp(&b.1).then(b.0.total_cmp(&a.0)))
    }

    fn of_goal(&self, goal: Goal) -> Option<(f64, Nanos)> {
        [Stage::Short, Stage::Long].into_iter().find_map(|stage| {
            let rate = self.of_stage(goal, stage)?;
            // What a short trial left undecided may be decided by a long one.
            let is_again = stage == Stage::Short && self.trials.at(rate).next().is_some();
            let stage = if is_again { Stage::Long } else { stage };
            Some((rate, self.length(goal, rate, stage)))
        })
    }

    fn of_stage(&self, goal: Goal, stage: Stage) -> Option<f64> {
        let limit = self.limit(goal, stage);
        let is_open = |rate: &f64| {
            self.verdict(goal, *rate, stage).is_none()
                && limit.within.is_none_or(|w| *rate > w)
                && limit.outside.is_none_or(|o| *rate < o)
                && self.tries(goal, *rate, stage) < self.tries_max(stage)
        };
        // What the stage before found is made sure of; what was begun is ended.
        let earlier = match stage {
            Stage::Short => Limit::default(),
            Stage::Long => self.limit(goal, Stage::Short),
        };
        // Where short trials decide nothing, nor do the longer repeats of each.
        let is_known = earlier.within.or(earlier.outside).is_some();
        if stage == Stage::Long && !is_known {
            return None;
        }
        let begun = limit.unknown.iter().copied();
        let begun = begun.filter(|r| self.tries(goal, *r, stage) > 0);
        let found = [earlier.within, earlier.outside].into_iter().flatten();
        found.chain(begun).find(is_open).or_else(|| {
            let near = match stage {
                Stage::Short => NEAR_COARSE,
                Stage::Long => NEAR,
            };
            self.toward(&limit, near)
        })
    }

    fn limit(&self, goal: Goal, stage: Stage) -> Limit {
        self.trials
            .limit(goal, |rate| self.target(goal, rate, stage))
    }

    fn verdict(&self, goal: Goal, rate: f64, stage: Stage) -> Option<bool> {
        self.trials
            .verdict(goal, rate, self.target(goal, rate, stage))
    }

    /// Trials of this rate that are long enough for the stage.
    fn tries(&self, goal: Goal, rate: f64, stage: Stage) -> usize {
        let least = 0.95 * self.target(goal, rate, stage).trial_s;
        let here = self.trials.at(rate);
        here.filter(|t| t.duration_ns as f64 / 1e9 >= least).count()
    }

    fn tries_max(&self, stage: Stage) -> usize {
        match stage {
            Stage::Short => UNDECIDED_MAX,
            Stage::Long => UNDECIDED_MAX + LONG_TRIALS as usize,
        }
    }

    fn target(&self, goal: Goal, rate: f64, stage: Stage) -> Target {
        let trial_s = self.length(goal, rate, stage).as_secs_f64();
        let trials = match stage {
            Stage::Short => 1.0,
            Stage::Long => LONG_TRIALS,
        };
        Target {
            trial_s,
            sum_s: trials * trial_s,
        }
    }

    fn length(&self, goal: Goal, rate: f64, stage: Stage) -> Nanos {
        length(self.spec, goal, rate, stage)
    }

    /// The next new rate toward the limit: up or down until it is enclosed, then between.
    fn toward(&self, limit: &Limit, near: f64) -> Option<f64> {
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
                let from = unknown
                    .last()
                    .and_then(|u| self.middle(*u, outside, NEAR_UNKNOWN));
                let lowest = unknown.first().copied().unwrap_or(outside);
                let lower = rounded(lowest / STEP);
                let served = limit.capacity_per_s.map(|c| rounded(OF_CAPACITY[0] * c));
                let guess = served.filter(|&r| r >= least && r < lowest && self.is_apart(r));
                from.or(guess)
                    .or_else(|| Some(lower).filter(|&r| r >= least && self.is_apart(r)))
            }
            (Some(within), Some(outside)) => self.between(within, outside, limit, near),
        }
    }

    /// A new rate between the two, unless they are near enough: near the capacity where that is
    /// known, else in the middle of the widest gap between rates that were tried.
    fn between(&self, within: f64, outside: f64, limit: &Limit, near: f64) -> Option<f64> {
        if outside / within <= near {
            return None;
        }
        let inside = |r: &f64| *r > within && *r < outside && self.is_apart(*r);
        let guesses = limit.capacity_per_s;
        let guesses = guesses.map(|c| OF_CAPACITY.map(|share| rounded(c * share)));
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
        let tried = self.trials.rates();
        tried.iter().all(|r| (r / rate - 1.0).abs() > APART)
    }
}

/// To four significant digits, for people's sake.
fn rounded(per_s: f64) -> f64 {
    let unit = 10f64.powf(per_s.log10().floor() - 3.0);
    let value = (per_s / unit).round() * unit;
    (value * 1e6).round() / 1e6
}
