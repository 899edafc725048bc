//! Which rate to try next, in open loop.

use super::bound::{self, Bracket};
use super::quality::{repeat_of_last, stretch};
use super::{RatePlan, SweepSpec};
use crate::analysis::findings::queue_grows;
use crate::analysis::knee::ERROR_SHARE_MAX;
use crate::analysis::table::{LevelPoint, error_share, points};
use crate::experiment::Next;
use crate::report::{TrialReport, Verdict};
use crate::spec::{Level, Rate, TrialSpec};

/// Where an automatic plan starts, in operations per second.
const START_PER_S: f64 = 100.0;
/// The factor by which it climbs, or descends where not even the start is served.
const STEP: f64 = 4.0;
/// No target is asked for less or for more.
const RANGE_PER_S: [f64; 2] = [0.1, 1e8];
/// The highest rate served and the lowest not served are near enough at this ratio.
const NEAR: f64 = 1.03;
/// A rate is served if what was started is answered, but for this share and the scatter of the
/// few operations that straddle the ends of the window, one standard deviation of a Poisson count.
const UNSERVED_SHARE: f64 = 0.03;
/// What an overloaded target serves is about its capacity: these shares of it are tried first.
const BELOW_CAPACITY: f64 = 0.98;
const ABOVE_CAPACITY: f64 = 1.02;

/// What to do after these trials.
pub fn next(spec: &SweepSpec, plan: &RatePlan, past: &[TrialReport]) -> Next<TrialSpec> {
    let automatic = *plan == RatePlan::Auto;
    if automatic && past.len() >= spec.trials_max {
        return Next::Converged;
    }
    if let Some(repeat) = repeat_of_last(spec, past) {
        return run(
            spec,
            past,
            crate::analysis::words::value(repeat.level),
            repeat.stretch,
        );
    }
    let wanted = match plan {
        RatePlan::List(rates) => {
            let tried = |r: &&Rate| past.iter().any(|t| t.level == Level::RatePerS(r.per_s()));
            rates.iter().find(|r| !tried(r)).map(|r| r.per_s())
        }
        RatePlan::Auto => next_rate(spec, past),
    };
    match wanted {
        Some(per_s) => run(spec, past, per_s, stretch(spec, Some(per_s))),
        None => Next::Converged,
    }
}

/// Whether a trial's rate was served without a growing queue.
pub fn is_served(t: &TrialReport) -> bool {
    let unserved = UNSERVED_SHARE + 1.0 / (t.attempted.max(1) as f64).sqrt();
    t.completed > 0
        && error_share(&t.outcomes) <= ERROR_SHARE_MAX
        && t.responses_per_s() >= (1.0 - unserved) * t.offered.achieved_per_s
        && t.verdict == Verdict::Valid
        && !queue_grows(t)
}

/// The highest rate served and the lowest above it that was not, of those that were tried.
pub fn served_bracket(past: &[TrialReport]) -> Bracket {
    let table = points(past);
    let served = |p: &&LevelPoint| {
        let here = |t: &&TrialReport| t.level == Level::RatePerS(p.level);
        past.iter().filter(here).any(is_served)
    };
    let within = table.iter().rfind(|p| served(p)).map(|p| p.level);
    let above = |p: &&LevelPoint| within.is_none_or(|w| p.level > w);
    let outside = table.iter().find(above).map(|p| p.level);
    Bracket { within, outside }
}

fn run(spec: &SweepSpec, past: &[TrialReport], per_s: f64, stretch: u64) -> Next<TrialSpec> {
    match Rate::from_f64(per_s) {
        Some(rate) => Next::Run(Box::new(spec.rate_trial(rate, past.len(), stretch))),
        None => Next::Doomed(format!("a rate of {per_s}/s cannot be offered")),
    }
}

fn next_rate(spec: &SweepSpec, past: &[TrialReport]) -> Option<f64> {
    let served = served_bracket(past);
    let Some(wanted) = toward(served, past) else {
        // The limit is known; now the bounds below it.
        let table = points(past);
        let kept = bound::bracket(&spec.bounds, &table);
        let (within, outside) = (kept.within?, kept.outside?);
        let below = served.within.is_some_and(|limit| outside <= limit);
        let far = outside / within > NEAR;
        return (below && far).then(|| rounded((within * outside).sqrt()));
    };
    Some(wanted)
}

/// The next rate toward the limit: up or down until it is enclosed, then between.
fn toward(served: Bracket, past: &[TrialReport]) -> Option<f64> {
    let [least, most] = RANGE_PER_S;
    match (served.within, served.outside) {
        (None, None) => Some(START_PER_S),
        (Some(within), None) => Some(within * STEP).filter(|&r| r <= most),
        (None, Some(outside)) => Some(outside / STEP).filter(|&r| r >= least),
        (Some(within), Some(outside)) => {
            let inside = |r: f64| r > within * 1.005 && r < outside / 1.005;
            let near = outside / within <= NEAR;
            let middle = rounded((within * outside).sqrt());
            let guesses = capacity(past, outside)
                .into_iter()
                .flat_map(|c| [c * BELOW_CAPACITY, c * ABOVE_CAPACITY])
                .map(rounded);
            let guess = guesses.into_iter().find(|&r| inside(r)).unwrap_or(middle);
            (!near).then_some(guess)
        }
    }
}

/// What the target served when it was offered too much.
fn capacity(past: &[TrialReport], outside: f64) -> Option<f64> {
    past.iter()
        .filter(|t| t.level == Level::RatePerS(outside) && t.verdict == Verdict::Valid)
        .map(|t| t.responses_per_s())
        .next_back()
}

/// To four significant digits, for people's sake.
fn rounded(per_s: f64) -> f64 {
    let unit = 10f64.powf(per_s.log10().floor() - 3.0);
    let value = (per_s / unit).round() * unit;
    (value * 1e6).round() / 1e6
}
