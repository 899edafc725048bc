//! Goals of a search over rates, and the bounds that its trials give for each.
//!
//! The terms are those of RFC 9971 (MLRsearch). A rate is a lower bound if the goal is known to be
//! reached at it. It is an upper bound if the goal is known not to be reached. The relevant upper
//! bound is the lowest upper bound; the relevant lower bound is the highest lower bound below that.
//!
//! An **undecided** trial or rate shows neither. It is repeated, and never a reason to go to lower
//! rates.

use super::Bound;
use crate::experiment::sweep::knee::ERROR_SHARE_MAX;
use crate::experiment::sweep::table::goodput_ci95;
use crate::trial::findings::queue_grows;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;
use knee_load::measure::error_share;

/// Share of the operations that may lack a response at a rate that is served: those that straddle
/// the ends of the window. One standard deviation of a Poisson count is added.
const UNSERVED_SHARE: f64 = 0.03;
/// Share of failures, beyond that of the best rate, at which a rate is not served.
const MORE_FAIL: f64 = 0.01;
/// Up to this multiple of the capacity, a rate is served by chance only. Beyond it, the target
/// serves less when it is offered too much.
const BEYOND_CAPACITY: f64 = 1.1;
/// Share of the time at a rate that may miss the goal although the rate reaches it. Under a half,
/// so that a tie is no lower bound.
const EXCEED_RATIO: f64 = 0.49;
/// Least operations of a trial. With fewer, those in flight at its ends matter.
const OPERATIONS_MIN: f64 = 100.0;
/// Observations that a trial should have beyond a bounded percentile.
const BEYOND_MIN: f64 = 8.0;

/// Least share beyond a bounded quantile that trials are made long for.
const QUANTILE_REST_MIN: f64 = 0.001;

/// Condition that the highest rate searched for must meet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Goal {
    /// Served without a growing queue, and without failures.
    NoLoss,
    /// The same, within a limit on response time.
    Within(Bound),
}

/// Length of trials, and the time of them that decides on a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrialDemand {
    /// Shorter trials count for less, in seconds.
    pub trial_s: f64,
    /// Seconds of trials that decide.
    pub sum_s: f64,
}

/// Counts all trials alike; the majority of the time decides.
const ANY_TRIAL: TrialDemand = TrialDemand { trial_s: 0.0, sum_s: 0.0 };

/// Seconds of decided trials at a rate, by length and outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct RateEvidence {
    /// Long trials that reach the goal.
    pub good_long: f64,
    /// Long trials that do not.
    pub bad_long: f64,
    /// Shorter trials that reach the goal.
    pub good_short: f64,
    /// Shorter trials that do not.
    pub bad_short: f64,
}

impl RateEvidence {
    /// Adds a trial of this length.
    pub(super) fn add(&mut self, length_s: f64, is_good: bool, demand: TrialDemand) {
        // Measured lengths: a few milliseconds less are the same length.
        let is_long = length_s >= 0.95 * demand.trial_s;
        let sum = match (is_long, is_good) {
            (true, true) => &mut self.good_long,
            (true, false) => &mut self.bad_long,
            (false, true) => &mut self.good_short,
            (false, false) => &mut self.bad_short,
        };
        *sum += length_s;
    }

    /// Whether the goal is reached at the rate; `None` where further trials may decide (RFC 9971,
    /// load classification). Short trials for the rate outweigh short ones against it, never long
    /// ones.
    pub(super) fn verdict(&self, demand: TrialDemand) -> Option<bool> {
        let forgiven = self.good_short * EXCEED_RATIO / (1.0 - EXCEED_RATIO);
        let against = self.bad_long + (self.bad_short - forgiven).max(0.0);
        let whole = (self.good_long + against).max(demand.sum_s);
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

    /// Operations of a trial that determine its figure.
    pub(super) fn operations(self) -> f64 {
        let quantile = match self {
            Goal::NoLoss => 0.0,
            Goal::Within(bound) => bound.quantile(),
        };
        OPERATIONS_MIN.max(BEYOND_MIN / (1.0 - quantile).max(QUANTILE_REST_MIN))
    }

    /// Whether a trial reaches the goal; `None` where it does not decide that. `failing` is the
    /// share of failures at the best rate.
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
        bound.judge(t.into())
    }
}

fn is_served(t: &TrialReport, failing: f64) -> bool {
    let unserved = UNSERVED_SHARE + 1.0 / (t.attempted.max(1) as f64).sqrt();
    t.completed > 0
        && error_share(&t.outcomes) <= (failing + MORE_FAIL).min(ERROR_SHARE_MAX)
        && t.responses_per_s() >= (1.0 - unserved) * t.offered.achieved_per_s
        && !queue_grows(t)
}

/// Bounds of the highest rate that reaches a goal.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct GoalLimit {
    /// Relevant lower bound: the highest rate known to reach it below `outside`.
    pub within: Option<f64>,
    /// Relevant upper bound: the lowest rate known not to.
    pub outside: Option<f64>,
    /// Throughput at the offered rate `outside`.
    pub capacity_per_s: Option<f64>,
    /// Undecided rates between `within` and `outside`.
    pub unknown: Vec<f64>,
}

/// Trials of a search by rate.
pub(super) struct RateTrials<'a> {
    past: &'a [TrialReport],
    /// Share of the operations that fails at the best rate.
    failing: f64,
    /// Rates tried, ascending.
    pub(super) rates: Vec<f64>,
}

impl<'a> RateTrials<'a> {
    pub(super) fn of(past: &'a [TrialReport]) -> RateTrials<'a> {
        let mut rates: Vec<f64> = past.iter().map(|t| value(t.level)).collect();
        rates.sort_by(f64::total_cmp);
        rates.dedup();
        let valid = past.iter().filter(|t| t.verdict == Verdict::Valid);
        let failing = valid.map(|t| error_share(&t.outcomes));
        RateTrials { past, failing: failing.fold(f64::INFINITY, f64::min), rates }
    }

    /// Trials at this rate.
    pub(super) fn at(&self, rate: f64) -> impl Iterator<Item = &'a TrialReport> {
        self.past.iter().filter(move |t| value(t.level) == rate)
    }

    /// Whether the rate reaches the goal; `None`: not decided.
    pub(super) fn verdict(&self, goal: Goal, rate: f64, demand: TrialDemand) -> Option<bool> {
        let mut evidence = RateEvidence::default();
        for t in self.at(rate) {
            if let Some(is_good) = goal.judge(t, self.failing) {
                evidence.add(t.duration_ns as f64 / 1e9, is_good, demand);
            }
        }
        evidence.verdict(demand)
    }

    /// Relevant bounds of a goal. `demand` is what the trials of a rate have to meet.
    pub(super) fn limit(&self, goal: Goal, demand: impl Fn(f64) -> TrialDemand) -> GoalLimit {
        let rates = self.rates.iter();
        let judged: Vec<_> =
            rates.map(|&rate| (rate, self.verdict(goal, rate, demand(rate)))).collect();
        let outside = judged.iter().find(|(_, v)| *v == Some(false)).map(|(rate, _)| *rate);
        let capacity = outside.and_then(|rate| self.capacity(rate));
        let is_below = |rate: f64| outside.is_none_or(|o| rate < o);
        // A queue that grows slowly is not seen in a trial, but beyond the capacity each one grows.
        let is_beyond = |rate: f64| {
            capacity.is_some_and(|[lower, per_s, _]| rate > lower && rate < BEYOND_CAPACITY * per_s)
        };
        let within = judged
            .iter()
            .rfind(|(rate, v)| *v == Some(true) && is_below(*rate) && !is_beyond(*rate))
            .map(|(rate, _)| *rate);
        let is_between = |rate: &f64| is_below(*rate) && within.is_none_or(|w| *rate > w);
        GoalLimit {
            within,
            outside,
            capacity_per_s: capacity.map(|[_, per_s, _]| per_s),
            unknown: self.rates.iter().copied().filter(is_between).collect(),
        }
    }

    /// Throughput at this offered rate: lower end, mean and upper end of its interval.
    fn capacity(&self, rate: f64) -> Option<[f64; 3]> {
        let served: Vec<&TrialReport> =
            self.at(rate).filter(|t| t.verdict == Verdict::Valid).collect();
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

/// Relevant bounds of a goal by the majority of the time at each rate.
pub(super) fn limit(past: &[TrialReport], goal: Goal) -> GoalLimit {
    RateTrials::of(past).limit(goal, |_| ANY_TRIAL)
}
