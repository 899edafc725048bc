//! What a search over rates looks for, and what its trials say of each rate.
//!
//! The terms are those of RFC 9971 (MLRsearch): a goal is reached at a rate, or not; a rate where
//! that is known is a lower or an upper bound. The relevant upper bound is the lowest upper bound;
//! the relevant lower bound is the highest lower bound below that.

use super::{Bound, BoundMetric};
use crate::experiment::sweep::knee::ERROR_SHARE_MAX;
use crate::experiment::sweep::table::goodput_ci95;
use crate::measure::error_share;
use crate::trial::findings::queue_grows;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;

/// A rate is served if responses come to what was started, but for this share and one standard
/// deviation of a Poisson count: operations that straddle the ends of the window.
const UNSERVED_SHARE: f64 = 0.03;
/// A rate at which this share more of the operations fails than at the best rate is not served.
const MORE_FAIL: f64 = 0.01;
/// Up to this ratio to the capacity a rate that seemed to be served was so by chance; beyond it,
/// the target serves less when it is offered too much.
const BEYOND_CAPACITY: f64 = 1.1;
/// Share of the time at a rate that may fail a goal which the rate still reaches: under a half, so
/// that a tie is no lower bound.
const EXCEED_RATIO: f64 = 0.49;
/// Operations that a trial should have for what is in flight at its ends to matter little.
const OPERATIONS_MIN: f64 = 100.0;
/// Observations expected beyond a percentile that has a limit.
const BEYOND_MIN: f64 = 8.0;

/// What is looked for: the highest rate with a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Served without a growing queue, and without failures.
    NoLoss,
    /// The same, within a limit on response time.
    Within(Bound),
}

/// How long trials have to be, and what time of them decides on a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Target {
    /// Shorter trials count for less, in seconds.
    pub trial_s: f64,
    /// Seconds of trials that decide.
    pub sum_s: f64,
}

/// All trials count alike, and the majority of the time decides.
pub(super) const ANY_TRIAL: Target = Target {
    trial_s: 0.0,
    sum_s: 0.0,
};

/// Seconds of decided trials at a rate, by what they say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Evidence {
    /// Trials as long as asked for that reach the goal.
    pub good_long: f64,
    /// Those that do not.
    pub bad_long: f64,
    /// Shorter trials that reach the goal.
    pub good_short: f64,
    /// Those that do not.
    pub bad_short: f64,
}

impl Evidence {
    /// Adds a trial of this length.
    pub(super) fn add(&mut self, length_s: f64, is_good: bool, target: Target) {
        // Lengths are measured: a few milliseconds less are no shorter trial.
        let is_long = length_s >= 0.95 * target.trial_s;
        let sum = match (is_long, is_good) {
            (true, true) => &mut self.good_long,
            (true, false) => &mut self.bad_long,
            (false, true) => &mut self.good_short,
            (false, false) => &mut self.bad_short,
        };
        *sum += length_s;
    }

    /// Whether the goal is reached at the rate; `None` where trials to come may decide that.
    /// RFC 9971, section on load classification: what short trials say for the rate outweighs what
    /// they say against it, never what long ones say.
    pub(super) fn verdict(&self, target: Target) -> Option<bool> {
        let forgiven = self.good_short * EXCEED_RATIO / (1.0 - EXCEED_RATIO);
        let against = self.bad_long + (self.bad_short - forgiven).max(0.0);
        let whole = (self.good_long + against).max(target.sum_s);
        let permitted = whole * EXCEED_RATIO;
        let at_best = against <= permitted;
        let at_worst = whole - self.good_long <= permitted;
        (at_best == at_worst && whole > 0.0).then_some(at_best)
    }
}

impl Goal {
    /// The goals of a sweep.
    pub(super) fn all(bounds: &[Bound]) -> Vec<Goal> {
        let within = bounds.iter().copied().map(Goal::Within);
        std::iter::once(Goal::NoLoss).chain(within).collect()
    }

    /// Operations that a trial should have for its figure to be determined.
    pub(super) fn operations(self) -> f64 {
        let quantile = match self {
            Goal::NoLoss => 0.0,
            Goal::Within(bound) => match bound.metric {
                BoundMetric::Mean | BoundMetric::P50 => 0.5,
                BoundMetric::P75 => 0.75,
                BoundMetric::P90 => 0.9,
                BoundMetric::P95 => 0.95,
                BoundMetric::P99 => 0.99,
                BoundMetric::P999 => 0.999,
            },
        };
        OPERATIONS_MIN.max(BEYOND_MIN / (1.0 - quantile))
    }

    /// Whether a trial reaches the goal, where this share of the operations fails at the best rate;
    /// `None` where the trial does not decide that.
    fn judge(self, t: &TrialReport, failing: f64) -> Option<bool> {
        if t.verdict != Verdict::Valid {
            return None;
        }
        let is_served = is_served(t, failing);
        let Goal::Within(bound) = self else {
            return Some(is_served);
        };
        if !is_served {
            return Some(false);
        }
        // The binomial interval of the percentile decides, or nothing does.
        let times = &t.response_time_ns;
        let figure = bound.figure_ns(times)?;
        match bound.ci95_ns(times) {
            Some([_, upper]) if upper <= bound.limit.0 => Some(true),
            Some([lower, _]) if lower > bound.limit.0 => Some(false),
            Some(_) => None,
            None => Some(figure <= bound.limit.0),
        }
    }
}

fn is_served(t: &TrialReport, failing: f64) -> bool {
    let unserved = UNSERVED_SHARE + 1.0 / (t.attempted.max(1) as f64).sqrt();
    t.completed > 0
        && error_share(&t.outcomes) <= (failing + MORE_FAIL).min(ERROR_SHARE_MAX)
        && t.responses_per_s() >= (1.0 - unserved) * t.offered.achieved_per_s
        && !queue_grows(t)
}

/// What is known of the highest rate that reaches a goal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Limit {
    /// Relevant lower bound: the highest rate known to reach it below `outside`.
    pub within: Option<f64>,
    /// Relevant upper bound: the lowest rate known not to.
    pub outside: Option<f64>,
    /// What the target served when it was offered `outside`.
    pub capacity_per_s: Option<f64>,
    /// Rates tried beyond `within` and below `outside` that nothing decides on.
    pub unknown: Vec<f64>,
}

/// The trials of a search, looked at for a goal.
pub(super) struct Trials<'a> {
    past: &'a [TrialReport],
    /// Share of the operations that fails at the best rate.
    failing: f64,
    /// Rates tried, ascending.
    rates: Vec<f64>,
}

impl<'a> Trials<'a> {
    pub(super) fn of(past: &'a [TrialReport]) -> Trials<'a> {
        let mut rates: Vec<f64> = past.iter().map(|t| value(t.level)).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let valid = past.iter().filter(|t| t.verdict == Verdict::Valid);
        let failing = valid.map(|t| error_share(&t.outcomes));
        Trials {
            past,
            failing: failing.fold(f64::INFINITY, f64::min),
            rates,
        }
    }

    /// Rates tried, ascending.
    pub(super) fn rates(&self) -> &[f64] {
        &self.rates
    }

    /// Trials at this rate.
    pub(super) fn at(&self, rate: f64) -> impl Iterator<Item = &'a TrialReport> {
        self.past.iter().filter(move |t| value(t.level) == rate)
    }

    /// Whether the rate reaches the goal, by trials as `target` asks for; `None`: not decided.
    pub(super) fn verdict(&self, goal: Goal, rate: f64, target: Target) -> Option<bool> {
        let mut evidence = Evidence::default();
        for t in self.at(rate) {
            if let Some(is_good) = goal.judge(t, self.failing) {
                evidence.add(t.duration_ns as f64 / 1e9, is_good, target);
            }
        }
        evidence.verdict(target)
    }

    /// The relevant bounds of a goal, by trials as `target` asks for at each rate.
    pub(super) fn limit(&self, goal: Goal, target: impl Fn(f64) -> Target) -> Limit {
        let judged = self.rates.iter();
        let judged: Vec<_> = judged
            .map(|&rate| (rate, self.verdict(goal, rate, target(rate))))
            .collect();
        let outside = judged.iter().find(|(_, v)| *v == Some(false));
        let outside = outside.map(|(rate, _)| *rate);
        let capacity = outside.and_then(|rate| self.capacity(rate));
        let is_below = |rate: f64| outside.is_none_or(|o| rate < o);
        // A queue that hardly grows does not show: beyond the capacity no rate is served.
        let is_beyond = |rate: f64| {
            let beyond =
                |[lower, per_s, _]: [f64; 3]| rate > lower && rate < BEYOND_CAPACITY * per_s;
            capacity.is_some_and(beyond)
        };
        let is_within = |(rate, v): &&(f64, Option<bool>)| {
            *v == Some(true) && is_below(*rate) && !is_beyond(*rate)
        };
        let within = judged.iter().rfind(is_within).map(|(rate, _)| *rate);
        let is_between = |rate: &f64| is_below(*rate) && within.is_none_or(|w| *rate > w);
        Limit {
            within,
            outside,
            capacity_per_s: capacity.map(|[_, per_s, _]| per_s),
            unknown: self.rates.iter().copied().filter(is_between).collect(),
        }
    }

    /// What the target served when it was offered this rate, between the ends of its interval.
    fn capacity(&self, rate: f64) -> Option<[f64; 3]> {
        let valid = self.at(rate).filter(|t| t.verdict == Verdict::Valid);
        let served: Vec<&TrialReport> = valid.collect();
        let n = served.len() as f64;
        let per_s = served.iter().map(|t| t.successes_per_s()).sum::<f64>() / n;
        let half = served.iter().map(|t| {
            let interval = goodput_ci95(t).map(|[lo, hi]| (hi - lo) / 2.0);
            interval.unwrap_or(t.successes_per_s() / (t.completed.max(1) as f64).sqrt())
        });
        let half = half.fold(0.0, f64::max);
        (per_s > 0.0).then_some([per_s - half, per_s, per_s + half])
    }
}

/// The relevant bounds of a goal, by the majority of the time at each rate.
pub(super) fn limit(past: &[TrialReport], goal: Goal) -> Limit {
    Trials::of(past).limit(goal, |_| ANY_TRIAL)
}
