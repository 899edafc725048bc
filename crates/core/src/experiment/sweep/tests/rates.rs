//! The search over rates, against the package MLRsearch and against targets of known behaviour.

use super::super::goals::{Goal, RateEvidence, RateTrials, TrialDemand};
use super::fake::{Fake, blank, bounded, outcomes, rates, sweep};
use super::{levels, near};
use crate::experiment::conduct;
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::sweep::{Bound, Sweep, SweepSpec};
use crate::trial::messages::TimesOf;
use crate::trial::report::{TrialReport, Verdict};
use knee_load::rng;
use knee_load::spec::{Level, TrialSpec};
use knee_load::time::Nanos;
use serde::Deserialize;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// What `bench/mlrsearch/record.py` recorded.
#[derive(Deserialize)]
struct Recorded {
    goal: RecordedGoal,
    runs: Vec<RecordedRun>,
}

#[derive(Deserialize)]
struct RecordedGoal {
    final_trial_duration: f64,
    duration_sum: f64,
}

#[derive(Deserialize)]
struct RecordedRun {
    capacity: f64,
    disturbed: f64,
    /// Rate, seconds, whether anything was lost.
    trials: Vec<(f64, f64, bool)>,
    /// Rate, and whether it is a lower bound, an upper bound, or neither.
    verdicts: Vec<(f64, Option<bool>)>,
    lower: Option<f64>,
    upper: Option<f64>,
}

fn recorded() -> Recorded {
    serde_json::from_str(include_str!("mlrsearch.json")).expect("a table")
}

fn target(goal: &RecordedGoal) -> TrialDemand {
    TrialDemand { trial_s: goal.final_trial_duration, sum_s: goal.duration_sum }
}

#[test]
fn rates_are_classified_as_by_mlrsearch() {
    let recorded = recorded();
    let target = target(&recorded.goal);
    for run in &recorded.runs {
        for (rate, verdict) in &run.verdicts {
            let mut evidence = RateEvidence::default();
            for (_, length_s, is_lost) in run.trials.iter().filter(|t| t.0 == *rate) {
                evidence.add(*length_s, !is_lost, target);
            }
            assert_eq!(evidence.verdict(target), *verdict, "{rate}: {evidence:?}");
        }
    }
}

#[test]
fn relevant_bounds_are_those_of_mlrsearch() {
    let recorded = recorded();
    let target = target(&recorded.goal);
    for run in &recorded.runs {
        let trial = |(rate, length_s, is_lost): &(f64, f64, bool)| {
            let mut report = blank(Level::RatePerS(*rate), &rates(1).base);
            report.duration_ns = (length_s * 1e9) as u64;
            report.attempted = (rate * length_s) as u64;
            report.completed = report.attempted;
            report.offered.achieved_per_s = *rate;
            // A loss is half of what was offered.
            let served = if *is_lost { rate / 2.0 } else { *rate };
            report.throughput_per_s = Some(served);
            report.goodput_per_s = Some(served);
            report.outcomes = outcomes(report.attempted, 0.0);
            report
        };
        let past: Vec<TrialReport> = run.trials.iter().map(trial).collect();
        let limit = RateTrials::of(&past).limit(Goal::NoLoss, |_| target);
        assert_eq!((limit.within, limit.outside), (run.lower, run.upper));
    }
}

fn with_capacity(per_s: f64) -> Fake {
    Fake::new(move |n| per_s * f64::from(n) / (1.0 + f64::from(n)))
}

/// A search over rates with trials of 2 s.
fn two_seconds(seed: u64) -> SweepSpec {
    let mut spec = rates(seed);
    spec.base.duration = Nanos::from_secs(2);
    spec.base.interval = Nanos::from_millis(200);
    spec
}

#[test]
fn a_search_takes_about_the_time_of_mlrsearch() {
    for run in recorded().runs.iter().filter(|run| run.disturbed == 0.0) {
        let mut fake = with_capacity(run.capacity);
        let (conducted, c) = sweep(&mut fake, two_seconds(1));
        let theirs: f64 = run.trials.iter().map(|t| t.1).sum();
        let length = |t: &TrialReport| t.duration_ns as f64 / 1e9;
        let ours: f64 = conducted.trials.iter().map(length).sum();
        let what = format!("{}: {:?}", run.capacity, levels(&conducted));
        let [lo, hi] = c.knee_range.expect("enclosed");
        assert!(lo <= 1.03 * run.capacity && run.capacity <= hi, "{what}");
        assert!(hi / lo <= 1.0501, "{what}");
        // Few operations need longer trials here, as what is in flight counts.
        let factor = if run.capacity < 200.0 { 4.0 } else { 1.5 };
        assert!(ours <= factor * theirs, "{ours} s, {theirs} s: {what}");
    }
}

/// A search whose trials are invalid where `is_invalid` says so, by rate and number.
fn disturbed(
    mut fake: Fake,
    spec: SweepSpec,
    is_invalid: impl Fn(f64, usize) -> bool,
) -> (Vec<f64>, SweepConclusion) {
    let mut number = 0;
    let run = |spec: &TrialSpec| {
        let mut report = fake.run(spec);
        let Level::RatePerS(rate) = report.level else { unreachable!("a search over rates") };
        if is_invalid(rate, number) {
            report.verdict = Verdict::Invalid;
        }
        number += 1;
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = conduct(&mut Sweep::new(spec), run);
    (levels(&conducted), conducted.conclusion)
}

#[test]
fn undecided_trials_never_lower_the_rate() {
    type IsInvalid = fn(f64, usize) -> bool;
    let cases: [IsInvalid; 5] = [
        |rate, _| rate < 1_000.0,
        |rate, _| rate < 200.0,
        |_, number| number < 2,
        |_, number| number % 2 == 0,
        |rate, number| rate < 500.0 || number % 3 == 0,
    ];
    for (case, is_invalid) in cases.into_iter().enumerate() {
        let (tried, c) = disturbed(with_capacity(4_000.0), two_seconds(1), is_invalid);
        assert!(tried.iter().all(|r| *r >= 100.0), "{case}: {tried:?}");
        let rate = c.knee_rate_per_s.unwrap_or(0.0);
        assert!(near(rate, 4_000.0, 0.05), "{case}: {} {tried:?}", c.answer);
    }
    // The nearest case: a decided trial is a reason to go down.
    let (tried, c) = disturbed(with_capacity(40.0), two_seconds(1), |_, _| false);
    assert_eq!(tried[0], 100.0);
    assert!(near(c.knee_rate_per_s.unwrap_or(0.0), 40.0, 0.06), "{tried:?}");
}

#[test]
fn the_limit_of_the_generator_is_no_upper_bound() {
    let (tried, c) = disturbed(with_capacity(1e6), two_seconds(1), |rate, _| rate > 20_000.0);
    let goal = &c.goals[0];
    assert_eq!(goal.upper_per_s, None, "{tried:?}");
    assert!(goal.lower_per_s.is_some_and(|r| r > 5_000.0), "{tried:?}");
    assert!(!goal.undecided_per_s.is_empty());
    assert!(c.answer.contains("was not decided"), "{}", c.answer);
}

#[test]
fn a_bound_and_the_loss_are_one_search() {
    // Response times are those of one server, 1/(1 − ρ) of the time alone, which is 0.5 ms.
    let limit = Nanos::from_millis(2);
    let bound = Bound::Time { of: TimesOf::Response, metric: "p90", limit };
    let mut fake = with_capacity(4_000.0);
    let (conducted, c) = sweep(&mut fake, bounded(two_seconds(1), &[bound]));
    let what = format!("{} {:?}", c.answer, levels(&conducted));
    let [no_loss, within] = &c.goals[..] else { panic!("{what}") };
    assert_eq!(no_loss.goal, "no_loss");
    assert_eq!(within.goal, "p90<=2ms");
    let enclosed = |goal: &crate::experiment::sweep::report::GoalBounds, truth: f64| {
        let bounds = goal.lower_per_s.zip(goal.upper_per_s);
        bounds.is_some_and(|(lo, hi)| lo <= 1.02 * truth && truth <= 1.02 * hi && hi < 1.2 * lo)
    };
    assert!(enclosed(no_loss, 4_000.0), "{what}");
    // 1.02 · 0.5 ms / (1 − ρ) = 2 ms.
    assert!(enclosed(within, 4_000.0 * (1.0 - 0.255)), "{what}");
    let best = c.best_within_bound.expect("within");
    assert_eq!(best.rate_per_s, within.lower_per_s, "{what}");
    assert!(c.answer.contains("p90<=2ms is kept up to"), "{what}");
}

#[test]
fn bounds_of_many_servers_hold() {
    let (mut covered, mut found, mut narrow) = (0, 0, 0);
    let mut missed = Vec::new();
    for seed in 0..200 {
        let mut rng = rng::stream(seed, 5);
        let capacity = 10f64.powf(1.0 + 4.5 * rng::unit(&mut rng));
        let share = 0.5 * rng::unit(&mut rng);
        let invalid: Vec<bool> = (0..64).map(|_| rng::unit(&mut rng) < share).collect();
        let mut fake = with_capacity(capacity);
        fake.noise = 0.02 * rng::unit(&mut rng);
        let (tried, c) = disturbed(fake, two_seconds(seed), |_, number| invalid[number % 64]);
        assert!(tried.len() <= 56, "{seed}: {tried:?}");
        let Some([lo, hi]) = c.knee_range else {
            missed.push(format!("{seed} {capacity}: {} {tried:?}", c.answer));
            continue;
        };
        found += 1;
        narrow += u32::from(hi / lo <= 1.2);
        let is_covered = lo <= 1.05 * capacity && capacity <= 1.05 * hi;
        covered += u32::from(is_covered);
        if !is_covered {
            missed.push(format!("{seed} {capacity}: {lo} {hi} {tried:?}"));
        }
    }
    assert!(found >= 190, "{found} of 200: {missed:#?}");
    assert!(100 * covered >= 95 * found, "{covered} of {found}: {missed:#?}");
    assert!(100 * narrow >= 85 * found, "{narrow} of {found}");
}
