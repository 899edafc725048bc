//! Whole sweeps over users, against targets of known behaviour.

use super::super::{Sweep, answer};
use super::fake::{Fake, automatic, list, sweep};
use super::{codes, levels, near};
use crate::experiment::sweep::table::LevelPoint;
use crate::experiment::{EndReason, conduct};
use crate::trial::report::Verdict;
use knee_load::spec::{Level, TrialSpec};
use proptest::prelude::*;
use std::convert::Infallible;
use std::ops::ControlFlow;

#[test]
fn six_workers_are_found() {
    let mut fake = Fake::station(6, 700e-6, 60e-6);
    fake.noise = 0.003;
    let (conducted, conclusion) = sweep(&mut fake, automatic(1));
    assert!(near(conclusion.max_throughput_per_s, 8_571.0, 0.03), "{conclusion:?}");
    let knee = conclusion.knee_vusers.expect("a knee");
    assert!((6.0..7.0).contains(&knee), "{knee}");
    let levels = levels(&conducted);
    assert!(levels.is_sorted() && levels[0] == 1.0, "{levels:?}");
    assert_eq!(conducted.ended, EndReason::Converged);
}

#[test]
fn a_knee_at_a_thousand_is_found_within_the_trials() {
    let mut fake = Fake::station(1_000, 0.01, 0.0);
    fake.noise = 0.003;
    let (conducted, conclusion) = sweep(&mut fake, automatic(3));
    assert!(near(conclusion.knee_vusers.expect("a knee"), 1_000.0, 0.03), "{conclusion:?}");
    assert!(levels(&conducted).iter().all(|&n| n <= 4_096.0));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn any_station_is_found(
        servers in 1u32..=64,
        service_us in 50u32..200_000,
        overhead in prop::sample::select(vec![0.0, 0.02, 0.1, 0.5]),
        seed in any::<u64>(),
    ) {
        let service_s = f64::from(service_us) / 1e6;
        let mut fake = Fake::station(servers, service_s, overhead * service_s);
        fake.noise = 0.004;
        let (conducted, conclusion) = sweep(&mut fake, automatic(seed));
        let ceiling = f64::from(servers) / service_s;
        let knee = f64::from(servers) * (1.0 + overhead);
        prop_assert!(conducted.trials.len() <= 20, "{}", conducted.trials.len());
        prop_assert!(
            near(conclusion.max_throughput_per_s, ceiling, 0.03),
            "{} for {ceiling}", conclusion.max_throughput_per_s
        );
        let found = conclusion.knee_vusers;
        prop_assert!(found.is_some_and(|k| near(k, knee, 0.15)), "{found:?} for {knee}");
        let [lo, hi] = conclusion.knee_ci95.expect("all trials have intervals");
        let knee = conclusion.knee_vusers.unwrap();
        prop_assert!(lo <= knee && knee <= hi);
    }
}

#[test]
fn noise_that_cannot_be_averaged_out_is_said() {
    let mut fake = Fake::station(8, 0.01, 0.0);
    fake.noise = 0.5;
    let (conducted, conclusion) = sweep(&mut fake, automatic(5));
    assert!(codes(&conducted.findings).contains(&"throughput_varies"), "{conclusion:?}");
    assert_eq!(conducted.ended, EndReason::Converged);
}

#[test]
fn a_server_that_warms_up_does_not_drag_its_first_seconds_in() {
    for seed in 0..20 {
        let mut fake = Fake::station(6, 0.001, 0.0);
        fake.noise = 0.003;
        // At half its speed for the first ten seconds.
        fake.throughput = Box::new(|n, now_s| {
            let speed = if now_s < 10.0 { 0.5 } else { 1.0 };
            speed * 1_000.0 * f64::from(n.min(6))
        });
        let (conducted, conclusion) = sweep(&mut fake, automatic(seed));
        let found = codes(&conducted.findings);
        assert!(found.contains(&"regime_change"), "{found:?} {:?}", levels(&conducted));
        assert!(near(conclusion.max_throughput_per_s, 6_000.0, 0.03), "{conclusion:?}");
        let knee = conclusion.knee_vusers.expect("a knee");
        assert!(near(knee, 6.0, 0.05), "{knee} {:?}", levels(&conducted));
    }
}

#[test]
fn a_falling_target_is_retrograde() {
    let law = |n: u32| {
        let n = f64::from(n);
        1_000.0 * n / (1.0 + 0.02 * (n - 1.0) + 0.002 * n * (n - 1.0))
    };
    let mut fake = Fake::new(law);
    fake.noise = 0.003;
    let (conducted, conclusion) = sweep(&mut fake, automatic(1));
    let found = codes(&conducted.findings);
    assert!(found.contains(&"retrograde"), "{found:?}");
    let most = (1..100).map(law).fold(0.0, f64::max);
    assert!(near(conclusion.max_throughput_per_s, most, 0.05), "{conclusion:?}");
    let usl = conclusion.models.iter().find(|m| m.name == "universal_scalability_law");
    assert!(usl.is_some_and(|m| m.good), "{:?}", conclusion.models);
}

#[test]
fn a_target_without_a_limit_is_not_saturated() {
    let mut fake = Fake::new(|n| 100.0 * f64::from(n));
    fake.noise = 0.003;
    let (conducted, conclusion) = sweep(&mut fake, automatic(1));
    assert_eq!(codes(&conducted.findings), ["not_saturated"]);
    assert_eq!(conclusion.knee_vusers, None);
    assert_eq!(levels(&conducted).last(), Some(&10_000.0));
    assert!(conclusion.answer.contains("still rises"), "{}", conclusion.answer);
}

#[test]
fn a_bend_just_below_the_most_users_is_seen() {
    let mut fake = Fake::station(7_000, 0.01, 0.0);
    fake.noise = 0.003;
    let (conducted, conclusion) = sweep(&mut fake, automatic(1));
    let knee = conclusion.knee_vusers.expect("a knee");
    assert!(near(knee, 7_000.0, 0.03), "{knee} {:?}", levels(&conducted));
}

#[test]
fn an_invalid_level_does_not_end_the_climb() {
    let mut experiment = Sweep::new(automatic(1));
    let mut fake = Fake::new(|n| 100.0 * f64::from(n.min(10)));
    let run = |spec: &TrialSpec| {
        let mut report = fake.run(spec);
        if report.level == Level::Vusers(16) {
            report.verdict = Verdict::Invalid;
            report.generator.busiest_worker_percent = 99.0;
        }
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = conduct(&mut experiment, run);
    let conclusion = &conducted.conclusion;
    assert!(levels(&conducted).contains(&64.0), "the climb goes on");
    let row = conclusion.levels.iter().find(|l| l.level == Level::Vusers(16));
    let excluded = row.and_then(|l| l.excluded_because.as_deref());
    assert!(matches!(excluded, Some("invalid" | "explored only")), "{row:?}");
    let knee = conclusion.knee_vusers.expect("other levels show it");
    assert!(near(knee, 10.0, 0.03), "{knee}");
}

#[test]
fn operations_longer_than_a_measurement_have_not_failed() {
    let slow = LevelPoint { operations: 10, mean_ns: Some(3e9), ..LevelPoint::default() };
    let words = answer::nothing(std::slice::from_ref(&slow));
    assert!(words.contains("takes 3 s; measure longer: --duration 30s"), "{words}");
    let failing = LevelPoint { error_share: 1.0, ..slow };
    assert!(answer::nothing(&[failing]).contains("all operations failed"));
}

#[test]
fn a_list_runs_just_its_levels() {
    let levels_asked = [1, 10, 50, 100, 200, 300, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12];
    let mut fake = Fake::station(48, 0.01, 0.0);
    let (conducted, conclusion) = sweep(&mut fake, list(&levels_asked));
    let mut sorted: Vec<f64> = levels_asked.iter().map(|&n| f64::from(n)).collect();
    sorted.sort_by(f64::total_cmp);
    assert_eq!(levels(&conducted), sorted);
    assert_eq!(conclusion.slices.len(), 10 * sorted.len(), "4 s in slices of 400 ms");
    assert!(near(conclusion.knee_vusers.expect("a knee"), 48.0, 0.03));
    let seeds: std::collections::BTreeSet<String> =
        conducted.trials.iter().map(|t| t.label.clone()).collect();
    assert_eq!(seeds.len(), levels_asked.len());
}

#[test]
fn the_same_seed_makes_the_same_sweep() {
    let run = |seed| {
        let mut fake = Fake::station(10, 0.01, 0.001);
        fake.noise = 0.01;
        sweep(&mut fake, automatic(seed)).0
    };
    assert_eq!(run(7), run(7));
    assert_ne!(run(7).trials, run(8).trials);
}

#[test]
fn rounds_visit_each_level_once_in_random_order() {
    let mut fake = Fake::station(3, 0.01, 0.0);
    fake.noise = 0.01;
    let (_, conclusion) = sweep(&mut fake, list(&[1, 2, 3, 4]));
    let order = |round: u32| -> Vec<Level> {
        let slices = conclusion.slices.iter().filter(|s| s.round == round);
        slices.map(|s| s.level).collect()
    };
    for round in 1..=10 {
        let mut levels = order(round);
        levels.sort_by(|a, b| crate::words::value(*a).total_cmp(&crate::words::value(*b)));
        assert_eq!(levels, [1, 2, 3, 4].map(Level::Vusers));
    }
    assert!((2..=10).any(|round| order(round) != order(1)));
    assert!(conclusion.levels.iter().all(|l| l.trials >= 5), "slices of a row");
}

#[test]
fn a_target_that_slows_with_time_is_not_retrograde() {
    for seed in 0..20 {
        for spec in [automatic(seed), list(&[1, 2, 4, 8, 16, 32, 64])] {
            let mut fake = Fake::station(8, 0.001, 0.0);
            fake.noise = 0.004;
            // 0.6 % less each second, whatever the load.
            fake.throughput =
                Box::new(|n, now_s| 1_000.0 * f64::from(n.min(8)) * (1.0 - 0.006 * now_s));
            let (conducted, conclusion) = sweep(&mut fake, spec);
            let found = codes(&conducted.findings);
            assert!(!found.contains(&"retrograde"), "{found:?}");
            assert!(
                found.contains(&"drifts_over_time"),
                "{found:?} {:?} {conclusion:?}",
                levels(&conducted)
            );
        }
    }
}

#[test]
fn a_list_that_falls_is_retrograde() {
    let mut fake = Fake::new(|n| if n <= 8 { 1_000.0 * f64::from(n) } else { 5_000.0 });
    fake.noise = 0.004;
    let (conducted, _) = sweep(&mut fake, list(&[1, 2, 4, 8, 16]));
    assert_eq!(levels(&conducted), [1.0, 2.0, 4.0, 8.0, 16.0]);
    let found = codes(&conducted.findings);
    assert!(found.contains(&"retrograde"), "{found:?}");
    assert!(!found.contains(&"drifts_over_time"), "{found:?}");
}
