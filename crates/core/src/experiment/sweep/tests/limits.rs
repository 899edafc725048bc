//! Bounds on response time, and the highest rate served.

use super::super::{Bound, Sweep};
use super::fake::{Fake, automatic, bounded, list, rates, sweep};
use super::{codes, levels, near};
use crate::experiment::conduct;
use crate::finding::Finding;
use crate::trial::report::Verdict;
use knee_load::spec::{Level, TrialSpec};
use std::convert::Infallible;
use std::ops::ControlFlow;

#[test]
fn a_bound_below_saturation_is_approached_from_both_sides() {
    let bound = "p90=21ms".parse::<Bound>().expect("a bound");
    let station = |n: u32| {
        // One server of 1 ms behind 20 ms: throughput bends gently.
        let station = crate::experiment::sweep::models::MachineRepair {
            servers: 1,
            service_s: 0.001,
            overhead_s: 0.0195,
        };
        station.throughput_per_s(n)
    };
    let within = |n: u32| 1.02 * 1e3 * f64::from(n) / station(n) <= 21.0;
    let truth = (1..100).filter(|&n| within(n)).max().expect("one user is within");
    let mut fake = Fake::new(station);
    let (conducted, conclusion) = sweep(&mut fake, bounded(automatic(1), &[bound]));
    let best = conclusion.best_within_bound.expect("some level is within");
    assert!(best.p90_ns.expect("enough of them") <= 21_000_000);
    assert!(
        best.vusers <= truth && f64::from(best.vusers) >= 0.9 * f64::from(truth) - 1.0,
        "{} of {truth}: {:?}",
        best.vusers,
        levels(&conducted)
    );
    assert_eq!(best.bound, "p90<=21ms");
}

#[test]
fn a_bound_that_no_level_meets_is_said() {
    let bound = "mean=5ms".parse::<Bound>().expect("a bound");
    let mut fake = Fake::station(6, 0.01, 0.0);
    let (conducted, conclusion) = sweep(&mut fake, bounded(automatic(1), &[bound]));
    assert_eq!(conclusion.best_within_bound, None);
    let code = |f: &&Finding| f.code == "bound_unreachable";
    let unmet = conducted.findings.iter().find(code).expect("no level meets it");
    assert!(unmet.text.contains("even 1 user takes"), "{}", unmet.text);
    assert!(unmet.next_step.contains("--bound mean="), "{}", unmet.next_step);
}

#[test]
fn beyond_the_knee_the_fewest_users_are_best_within_a_bound() {
    let bound = "p90=500ms".parse::<Bound>().expect("a bound");
    let mut fake = Fake::station(6, 0.01, 0.0);
    let (_, conclusion) = sweep(&mut fake, bounded(automatic(1), &[bound]));
    let best = conclusion.best_within_bound.expect("all levels are within");
    assert_eq!(best.vusers, 6);
    assert!(best.confident);
}

#[test]
fn a_bound_that_fewer_users_break_is_not_kept_up_to_none() {
    let bound = "p90=15ms".parse::<Bound>().expect("a bound");
    // A user alone waits for 20 ms, two of them for 10.
    let mut fake = Fake::new(|n| if n == 1 { 50.0 } else { 100.0 * f64::from(n.min(6)) });
    let (_, c) = sweep(&mut fake, bounded(list(&[1, 2, 4, 16]), &[bound]));
    assert_eq!(c.best_within_bound.expect("4 users are within").vusers, 4);
    assert!(c.answer.contains("; it is broken at 1 user already."), "{}", c.answer);
}

#[test]
fn any_figure_far_below_its_bound_is_so_for_certain() {
    for metric in ["mean", "p50", "p75", "p90", "p95", "p99", "p999"] {
        let bound: Bound = format!("{metric}=500ms").parse().expect("a bound");
        let mut fake = Fake::station(6, 0.01, 0.0);
        let (_, c) = sweep(&mut fake, bounded(automatic(1), &[bound]));
        let best = c.best_within_bound.expect("all levels are within");
        assert!(best.confident, "{metric}: {}", c.answer);
        assert!(!c.answer.contains("for certain"), "{}", c.answer);
    }
}

#[test]
fn the_highest_rate_served_is_found() {
    for (capacity, seed) in [(8_571.0, 1), (130.0, 2), (7.0, 3), (250_000.0, 4)] {
        let mut fake = Fake::new(move |n| capacity * f64::from(n) / (1.0 + f64::from(n)));
        fake.noise = 0.002;
        let (conducted, conclusion) = sweep(&mut fake, rates(seed));
        let rate = conclusion.knee_rate_per_s.expect("some rate is served");
        // A few operations a second cannot be told apart within seconds.
        let share = if capacity < 10.0 { 0.1 } else { 0.05 };
        assert!(near(rate, capacity, share), "{rate} of {capacity}: {:?}", levels(&conducted));
        assert!(conducted.trials.len() <= 30, "{:?}", levels(&conducted));
        let first = conducted.trials[0].level;
        assert_eq!(first, Level::RatePerS(100.0));
        assert!(!codes(&conducted.findings).contains(&"target_queue_grows"), "no news here");
    }
}

#[test]
fn bounds_are_read_from_the_command_line() {
    let bound: Bound = "p90=50ms".parse().expect("a bound");
    assert_eq!((bound.name(), bound.typed()), ("p90".to_owned(), "p90=50ms".to_owned()));
    assert_eq!(bound.to_string(), "p90<=50ms");
    assert!("p95=50ms".parse::<Bound>().is_ok());
    assert!("p999=1.5s".parse::<Bound>().is_ok());
    for text in ["first_message_p99=500ms", "gap_p50=50ms", "good_streams=99.5%"] {
        assert_eq!(text.parse::<Bound>().expect(text).typed(), text);
    }
    for (text, hint) in [
        ("50ms", "has no `=`"),
        ("p85=50ms", "`p85` is not a figure"),
        ("max=50ms", "`max` is not a figure"),
        ("p90=0ms", "cannot be met"),
        ("p90=50", "has no unit"),
        ("p90=0.05", "has no unit"),
        ("p90=fast", "fast"),
    ] {
        let error = text.parse::<Bound>().expect_err(text).to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}

#[test]
fn an_invalid_trial_is_no_answer() {
    // Every third trial is disturbed: invalid, and with too few responses.
    for seed in 0..10 {
        let mut fake = Fake::new(|n| 1_667.0 * f64::from(n) / (1.0 + f64::from(n)));
        fake.noise = 0.01;
        let mut number = seed;
        let run = |spec: &TrialSpec| {
            let mut report = fake.run(spec);
            number += 1;
            if number % 3 == 0 {
                report.verdict = Verdict::Invalid;
                report.throughput_per_s = report.throughput_per_s.map(|x| 0.5 * x);
                report.goodput_per_s = report.goodput_per_s.map(|x| 0.5 * x);
            }
            Ok::<_, Infallible>(ControlFlow::Continue(report))
        };
        let Ok(conducted) = conduct(&mut Sweep::new(rates(seed)), run);
        let conclusion = &conducted.conclusion;
        let [lo, hi] = conclusion.knee_range.expect("enclosed");
        let what = format!("{} {:?}", conclusion.answer, levels(&conducted));
        assert!(lo < 1_667.0 * 1.01 && hi > 1_667.0 * 0.99, "{what}");
        assert!(hi / lo < 1.2, "{what}");
        assert!(conducted.trials.len() <= 40, "{what}");
    }
}

#[test]
fn where_no_trial_is_valid_no_rate_is_said_to_be_refused() {
    let mut fake = Fake::new(|n| 1_667.0 * f64::from(n) / (1.0 + f64::from(n)));
    let run = |spec: &TrialSpec| {
        let mut report = fake.run(spec);
        report.verdict = Verdict::Invalid;
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = conduct(&mut Sweep::new(rates(1)), run);
    let conclusion = &conducted.conclusion;
    assert!(conclusion.answer.starts_with("No rate could be measured"), "{}", conclusion.answer);
    assert!(conducted.trials.len() <= 6, "{:?}", levels(&conducted));
    let found = codes(&conducted.findings);
    assert!(!found.contains(&"saturated_below_range"), "{found:?}");
}
