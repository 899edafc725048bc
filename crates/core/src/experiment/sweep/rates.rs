//! Which rate to try next, in open loop.

use super::bound;
use super::quality::{next_of_list, peak_again, repeat_of_last, stretch};
use super::{RatePlan, SweepSpec};
use crate::experiment::Next;
use crate::experiment::sweep::knee;
use crate::experiment::sweep::knee::ERROR_SHARE_MAX;
use crate::experiment::sweep::table::{goodput_ci95, points};
use crate::measure::error_share;
use crate::spec::{Rate, TrialSpec};
use crate::trial::findings::queue_grows;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;

/// Where an automatic plan starts, in operations per second.
const START_PER_S: f64 = 100.0;
/// The factor by which it climbs, or descends where not even the start is served.
const STEP: f64 = 4.0;
/// No target is asked for less or for more.
const RANGE_PER_S: [f64; 2] = [0.1, 1e8];
/// The highest rate served and the lowest not served are near enough at this ratio: what lies
/// between them is too near to the capacity to be told within seconds.
const NEAR: f64 = 1.05;
/// A rate is served if what was started is answered, but for this share and the scatter of the
/// few operations that straddle the ends of the window, one standard deviation of a Poisson count.
const UNSERVED_SHARE: f64 = 0.03;
/// What an overloaded target serves is about its capacity: these shares of it are tried in turn.
const OF_CAPACITY: [f64; 6] = [0.98, 1.02, 0.95, 1.06, 0.9, 1.15];
/// Up to this ratio to the capacity a rate that seemed to be served was so by chance; beyond it,
/// the target serves less when it is offered too much.
const BEYOND_CAPACITY: f64 = 1.1;
/// A rate at which so many more operations fail than at the best, as a share, is not served.
const MORE_FAIL: f64 = 0.01;
/// A rate this near to one already measured, as a share, is not worth a trial.
const APART: f64 = 0.012;
/// What decides on the answer is measured this many times.
const CONFIRMED: usize = 2;
/// A rate at which no trial is valid is not approached nearer than this ratio.
const NEAR_UNKNOWN: f64 = 1.5;

/// What to do after these trials.
pub(super) fn next(spec: &SweepSpec, plan: &RatePlan, past: &[TrialReport]) -> Next<TrialSpec> {
    let automatic = *plan == RatePlan::Auto;
    if automatic && past.len() >= spec.trials_max {
        return Next::Converged;
    }
    if let Some(repeat) = repeat_of_last(spec, past) {
        return run(spec, past, value(repeat.level), repeat.stretch);
    }
    let wanted = match plan {
        RatePlan::List(rates) => next_of_list(spec, rates, past).map(|r| r.per_s()),
        RatePlan::Auto => next_rate(spec, past),
    };
    let doubted = || peak_again(past, &knee::read(&points(past))?);
    match wanted.or_else(doubted) {
        Some(per_s) => run(spec, past, per_s, stretch(spec, Some(per_s))),
        None => Next::Converged,
    }
}

/// Whether a trial's rate was served without a growing queue, where at the best rate this share of
/// the operations fails.
fn is_served(t: &TrialReport, failing: f64) -> bool {
    let unserved = UNSERVED_SHARE + 1.0 / (t.attempted.max(1) as f64).sqrt();
    t.completed > 0
        && error_share(&t.outcomes) <= (failing + MORE_FAIL).min(ERROR_SHARE_MAX)
        && t.responses_per_s() >= (1.0 - unserved) * t.offered.achieved_per_s
        && t.verdict == Verdict::Valid
        && !queue_grows(t)
}

/// What is known of the highest rate served.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Limit {
    /// The highest rate known to be served.
    pub within: Option<f64>,
    /// The lowest above it known not to be.
    pub outside: Option<f64>,
    /// What the target served when it was offered `outside`.
    pub capacity_per_s: Option<f64>,
    /// Rates beyond `within`, and below `outside`, that were tried in vain: no trial was valid, or
    /// they contradict each other or the capacity.
    pub unknown: Vec<f64>,
}

/// What the trials of one rate say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Judged {
    Served,
    Unserved,
    Unknown,
}

/// What the trials say. An invalid one says nothing; where valid ones contradict each other, most
/// of them count. A rate that may be beyond what the target serves when it is offered too much is
/// not known to be served, as too near to it no queue shows.
pub(super) fn limit(past: &[TrialReport]) -> Limit {
    let mut rates: Vec<f64> = past.iter().map(|t| value(t.level)).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let judged = |wanted: Judged| {
        let such = rates.iter().copied();
        such.filter(move |r| judge(*r, past) == wanted)
    };
    let is_lowest_above =
        |served: Option<f64>| judged(Judged::Unserved).find(|r| served.is_none_or(|s| *r > s));
    let highest = judged(Judged::Served).next_back();
    let capacity = is_lowest_above(highest).and_then(|outside| capacity(past, outside));
    let is_beyond = |rate: f64| {
        let beyond = |[lower, per_s, _]: [f64; 3]| rate > lower && rate < BEYOND_CAPACITY * per_s;
        capacity.is_some_and(beyond)
    };
    let within = judged(Judged::Served).rfind(|r| !is_beyond(*r));
    let outside = is_lowest_above(within.and(highest));
    let between = |r: &f64| within.is_none_or(|w| *r > w) && outside.is_none_or(|o| *r < o);
    Limit {
        within,
        outside,
        capacity_per_s: outside.and(capacity).map(|[_, per_s, _]| per_s),
        unknown: rates.iter().copied().filter(between).collect(),
    }
}

fn judge(rate: f64, past: &[TrialReport]) -> Judged {
    let valid = || valid_at(rate, past);
    let failing = past.iter().filter(|t| t.verdict == Verdict::Valid);
    let failing = failing.map(|t| error_share(&t.outcomes));
    let failing = failing.fold(f64::INFINITY, f64::min);
    let served = valid().filter(|t| is_served(t, failing)).count();
    match (2 * served).cmp(&valid().count()) {
        std::cmp::Ordering::Greater => Judged::Served,
        std::cmp::Ordering::Less => Judged::Unserved,
        std::cmp::Ordering::Equal => Judged::Unknown,
    }
}

fn valid_at(rate: f64, past: &[TrialReport]) -> impl Iterator<Item = &TrialReport> {
    let here = move |t: &&TrialReport| value(t.level) == rate && t.verdict == Verdict::Valid;
    past.iter().filter(here)
}

fn run(spec: &SweepSpec, past: &[TrialReport], per_s: f64, stretch: u64) -> Next<TrialSpec> {
    match Rate::from_f64(per_s) {
        Some(rate) => Next::Run(Box::new(spec.rate_trial(rate, past.len(), stretch))),
        None => Next::Doomed(format!("a rate of {per_s}/s cannot be offered")),
    }
}

fn next_rate(spec: &SweepSpec, past: &[TrialReport]) -> Option<f64> {
    let limit = limit(past);
    toward(&limit, past).or_else(|| {
        // The limit is known; now the bounds below it.
        let table = points(past);
        let kept = bound::bracket(&spec.bounds, &table);
        let (within, outside) = (kept.within?, kept.outside?);
        let below = limit.within.is_some_and(|highest| outside <= highest);
        let far = outside / within > NEAR;
        let middle = rounded((within * outside).sqrt());
        (below && far && is_new(middle, past)).then_some(middle)
    })
}

fn is_new(rate: f64, past: &[TrialReport]) -> bool {
    past.iter().all(|t| value(t.level) != rate)
}

/// The rate, if it has not been tried often enough to rest an answer on it.
fn unconfirmed(rate: f64, past: &[TrialReport]) -> Option<f64> {
    (valid_at(rate, past).count() < CONFIRMED && tried(rate, past) <= CONFIRMED).then_some(rate)
}

fn tried(rate: f64, past: &[TrialReport]) -> usize {
    past.iter().filter(|t| value(t.level) == rate).count()
}

/// The next rate toward the limit: up or down until it is enclosed, then between; at last those
/// that the answer rests on once more.
fn toward(limit: &Limit, past: &[TrialReport]) -> Option<f64> {
    let [least, most] = RANGE_PER_S;
    match (limit.within, limit.outside) {
        (None, None) => {
            let lowest = limit.unknown.first().copied().unwrap_or(START_PER_S);
            let again = unconfirmed(lowest, past);
            // One more attempt where the generator has less to do.
            again.or_else(|| Some(START_PER_S / STEP).filter(|&r| is_new(r, past)))
        }
        (Some(within), None) => match limit.unknown.first() {
            None => Some(within * STEP).filter(|&r| r <= most),
            Some(&unknown) => unconfirmed(unknown, past).or_else(|| {
                let middle = rounded((within * unknown).sqrt());
                (unknown / within > NEAR_UNKNOWN && is_new(middle, past)).then_some(middle)
            }),
        },
        (None, Some(outside)) => unconfirmed(outside, past).or_else(|| {
            let lower = outside / STEP;
            (lower >= least && is_new(lower, past)).then_some(lower)
        }),
        (Some(within), Some(outside)) => {
            let between = between(within, outside, past);
            between
                .or_else(|| unconfirmed(outside, past))
                .or_else(|| unconfirmed(within, past))
        }
    }
}

/// A new rate between the two, unless they are near enough: nearer and nearer to the capacity from
/// outside, or where that is not known the middle.
fn between(within: f64, outside: f64, past: &[TrialReport]) -> Option<f64> {
    if outside / within <= NEAR {
        return None;
    }
    let is_apart = |r: f64| {
        past.iter()
            .all(|t| (value(t.level) / r - 1.0).abs() > APART)
    };
    let inside = |r: &f64| *r > within && *r < outside && is_apart(*r);
    let middle = rounded((within * outside).sqrt());
    let known = capacity(past, outside).map(|[_, per_s, _]| per_s);
    let guesses = known.map(|c| OF_CAPACITY.map(|share| rounded(c * share)));
    let guess = guesses.into_iter().flatten().find(inside);
    let is_wide = known.is_none() || outside / within > NEAR_UNKNOWN;
    guess.or_else(|| Some(middle).filter(|r| is_wide && inside(r)))
}

/// What the target served when it was offered `outside`, between the ends of its interval.
fn capacity(past: &[TrialReport], outside: f64) -> Option<[f64; 3]> {
    let served: Vec<&TrialReport> = valid_at(outside, past).collect();
    let n = served.len() as f64;
    let per_s = served.iter().map(|t| t.successes_per_s()).sum::<f64>() / n;
    let half = served.iter().map(|t| {
        let interval = goodput_ci95(t).map(|[lo, hi]| (hi - lo) / 2.0);
        interval.unwrap_or(t.successes_per_s() / (t.completed.max(1) as f64).sqrt())
    });
    let half = half.fold(0.0, f64::max);
    (per_s > 0.0).then_some([per_s - half, per_s, per_s + half])
}

/// To four significant digits, for people's sake.
fn rounded(per_s: f64) -> f64 {
    let unit = 10f64.powf(per_s.log10().floor() - 3.0);
    let value = (per_s / unit).round() * unit;
    (value * 1e6).round() / 1e6
}
