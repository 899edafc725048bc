//! Whole sweeps against targets of known behaviour, and tables measured elsewhere.

use super::fake::{Fake, automatic, bounded, list, rates, sweep};
use super::{Bound, BoundMetric, conclude_table};
use crate::analysis::table::parse_csv;
use crate::experiment::{Conducted, Ended};
use crate::report::{Finding, SweepConclusion};
use crate::spec::Level;
use crate::time::Nanos;
use proptest::prelude::*;

const TABLE_ONE: &str = "vusers,throughput_per_s\n5000,\"88,318\"\n10000,88407\n20000,88309\n\
                         25000,88429\n30000,88392\n35000,88440\n";
const TABLE_TWO: &str = "vusers,throughput_per_s\n1,1833\n10,18226\n50,74684\n100,86069\n\
                         200,88455\n300,88375\n";

fn analyzed(csv: &str) -> (Vec<Finding>, SweepConclusion) {
    conclude_table(&parse_csv(csv.as_bytes()).expect(csv))
}

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|f| f.code.as_str()).collect()
}

fn levels(conducted: &Conducted) -> Vec<f64> {
    let levels = conducted.trials.iter().map(|t| t.level);
    levels.map(crate::analysis::words::value).collect()
}

fn near(value: f64, truth: f64, share: f64) -> bool {
    (value / truth - 1.0).abs() <= share
}

#[test]
fn the_classic_mistake_is_caught() {
    let (findings, conclusion) = analyzed(TABLE_ONE);
    assert_eq!(codes(&findings), ["saturated_below_range"]);
    assert!(
        findings[0].text.contains("the knee is below 5,000"),
        "{}",
        findings[0].text
    );
    assert!(
        findings[0].next_step.contains("--vusers 1,"),
        "{}",
        findings[0].next_step
    );
    assert_eq!(conclusion.knee_vusers, None);
    assert!(near(conclusion.max_throughput_per_s, 88_400.0, 0.001));
    assert!(
        conclusion.answer.contains("below 5,000"),
        "{}",
        conclusion.answer
    );
}

#[test]
fn the_classic_table_bends_at_48_users() {
    let (findings, conclusion) = analyzed(TABLE_TWO);
    let knee = conclusion.knee_vusers.expect("a knee");
    assert!((knee - 48.0).abs() <= 3.0, "{knee}");
    assert_eq!(
        conclusion.knee_ci95, None,
        "a table without intervals gives none"
    );
    assert_eq!(codes(&findings), ["past_knee"]);
    assert!(
        findings[0].text.starts_with("200 and 300 users"),
        "{}",
        findings[0].text
    );
    assert_eq!(conclusion.recommended_vusers, Some(48));
    assert_eq!(conclusion.levels.len(), 6);
    assert!(conclusion.levels[2].is_knee, "50 users are nearest");
}

#[test]
fn the_same_throughput_with_fewer_users_answers_sooner() {
    let both = TABLE_TWO.to_owned() + TABLE_ONE.split_once('\n').expect("lines").1;
    let (_, conclusion) = analyzed(&both);
    let answer = &conclusion.answer;
    assert!(answer.contains("200 users instead of 35,000"), "{answer}");
    assert!(answer.contains("about 180 times faster"), "{answer}");
}

#[test]
fn tables_of_every_shape_are_read_right() {
    for (what, rows, expected, knee) in [
        (
            "throughput falls past its maximum",
            "1,100\n2,200\n4,390\n8,600\n16,500\n32,350",
            &["retrograde"][..],
            Some(6.0),
        ),
        (
            "still rising",
            "1,100\n2,199\n4,396\n8,788",
            &["not_saturated"][..],
            None,
        ),
        (
            "rising ever less",
            "1,100\n10,900\n100,4000",
            &["not_saturated"][..],
            None,
        ),
        (
            "one server",
            "1,100\n2,100\n3,100",
            &["past_knee"][..],
            Some(1.0),
        ),
        ("one level", "7,100", &["too_few_levels"][..], None),
        (
            "from 100 on",
            "100,86069\n200,88455\n300,88375",
            &["saturated_below_range"][..],
            None,
        ),
        (
            "bends below the first",
            "5,500\n10,600\n20,600",
            &["knee_not_bracketed"][..],
            None,
        ),
        (
            "linear from 2 on",
            "2,200\n4,398\n8,600\n16,598",
            &[][..],
            Some(5.99),
        ),
    ] {
        let (findings, conclusion) = analyzed(&format!("vusers,throughput_per_s\n{rows}"));
        let found = codes(&findings);
        let found: Vec<&str> = found.into_iter().filter(|c| *c != "past_knee").collect();
        let expected: Vec<&str> = expected
            .iter()
            .copied()
            .filter(|c| *c != "past_knee")
            .collect();
        assert_eq!(found, expected, "{what}");
        match (conclusion.knee_vusers, knee) {
            (Some(found), Some(knee)) => assert!(near(found, knee, 0.02), "{what}: {found}"),
            (found, knee) => assert_eq!(found, knee, "{what}"),
        }
    }
}

#[test]
fn six_workers_are_found() {
    let mut fake = Fake::station(6, 700e-6, 60e-6);
    fake.noise = 0.003;
    let (conducted, conclusion) = sweep(&mut fake, automatic(1));
    assert!(conducted.trials.len() <= 14);
    assert!(
        near(conclusion.max_throughput_per_s, 8_571.0, 0.03),
        "{conclusion:?}"
    );
    let knee = conclusion.knee_vusers.expect("a knee");
    assert!((6.0..7.0).contains(&knee), "{knee}");
    assert_eq!(&levels(&conducted)[..6], [1.0, 2.0, 4.0, 16.0, 8.0, 32.0]);
    assert_eq!(conducted.ended, Ended::Converged);
    let labels: Vec<&str> = conducted.trials.iter().map(|t| t.label.as_str()).collect();
    assert_eq!(labels[3], "vusers=16");
}

#[test]
fn a_knee_at_a_thousand_is_found_within_the_trials() {
    let mut fake = Fake::station(1_000, 0.01, 0.0);
    fake.noise = 0.003;
    let (conducted, conclusion) = sweep(&mut fake, automatic(3));
    assert!(conducted.trials.len() <= 14);
    assert!(
        near(conclusion.knee_vusers.expect("a knee"), 1_000.0, 0.03),
        "{conclusion:?}"
    );
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
        prop_assert!(conducted.trials.len() <= 14);
        prop_assert!(
            near(conclusion.max_throughput_per_s, ceiling, 0.03),
            "{} for {ceiling}", conclusion.max_throughput_per_s
        );
        let found = conclusion.knee_vusers;
        prop_assert!(found.is_some_and(|k| near(k, knee, 0.15)), "{found:?} for {knee}");
        let [lo, hi] = conclusion.knee_ci95.expect("all trials have intervals");
        prop_assert!(lo <= conclusion.knee_vusers.unwrap() && conclusion.knee_vusers.unwrap() <= hi);
    }
}

#[test]
fn noise_that_cannot_be_averaged_out_is_said() {
    let mut fake = Fake::station(8, 0.01, 0.0);
    fake.noise = 0.06;
    let (conducted, conclusion) = sweep(&mut fake, automatic(5));
    assert_eq!(conducted.trials.len(), 14);
    assert!(
        codes(&conducted.findings).contains(&"confidence_not_reached"),
        "{conclusion:?}"
    );
    assert_eq!(conducted.ended, Ended::Converged);
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
        assert!(
            found.contains(&"warmed_up"),
            "{found:?} {:?}",
            levels(&conducted)
        );
        assert!(
            near(conclusion.max_throughput_per_s, 6_000.0, 0.03),
            "{conclusion:?}"
        );
        let knee = conclusion.knee_vusers.expect("a knee");
        assert!(near(knee, 6.0, 0.05), "{knee} {:?}", levels(&conducted));
    }
}

#[test]
fn a_server_that_drifts_all_the_time_is_said_to() {
    let mut fake = Fake::station(6, 0.001, 0.0);
    fake.drifts = true;
    let (conducted, _) = sweep(&mut fake, automatic(1));
    let found = codes(&conducted.findings);
    assert!(found.contains(&"non_stationary"), "{found:?}");
    assert_eq!(found.iter().filter(|c| **c == "non_stationary").count(), 1);
    assert_eq!(&levels(&conducted)[..2], [1.0, 1.0], "repeated once");
    let durations: Vec<u64> = conducted.trials.iter().map(|t| t.duration_ns).collect();
    assert_eq!(durations[1], 2 * durations[0]);
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
    assert!(
        near(conclusion.max_throughput_per_s, most, 0.05),
        "{conclusion:?}"
    );
    let usl = conclusion
        .models
        .iter()
        .find(|m| m.name == "universal_scalability_law");
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
    assert!(
        conclusion.answer.contains("still rises"),
        "{}",
        conclusion.answer
    );
}

#[test]
fn failures_stop_the_climb() {
    let mut fake = Fake::station(64, 0.01, 0.0);
    fake.failures = Box::new(|n| if n > 20 { 0.3 } else { 0.0 });
    let (conducted, _) = sweep(&mut fake, automatic(1));
    let found = codes(&conducted.findings);
    assert!(
        found.contains(&"errors_rise") && found.contains(&"not_saturated"),
        "{found:?}"
    );
    assert!(
        levels(&conducted).iter().all(|&n| n <= 64.0),
        "{:?}",
        levels(&conducted)
    );
}

#[test]
fn where_everything_fails_the_sweep_ends_at_once() {
    let mut fake = Fake::station(6, 0.01, 0.0);
    fake.failures = Box::new(|_| 1.0);
    let (conducted, conclusion) = sweep(&mut fake, automatic(1));
    assert_eq!(levels(&conducted), [1.0]);
    assert!(matches!(conducted.ended, Ended::Doomed(_)));
    assert_eq!(conducted.findings[0].code, "stopped_early");
    assert!(
        conclusion.answer.contains("failed"),
        "{}",
        conclusion.answer
    );
}

#[test]
fn a_list_runs_just_its_levels() {
    let levels_asked = [1, 10, 50, 100, 200, 300, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12];
    let mut fake = Fake::station(48, 0.01, 0.0);
    let (conducted, conclusion) = sweep(&mut fake, list(&levels_asked));
    let asked: Vec<f64> = levels_asked.iter().map(|&n| f64::from(n)).collect();
    assert_eq!(levels(&conducted), asked);
    assert!(near(conclusion.knee_vusers.expect("a knee"), 48.0, 0.03));
    let seeds: std::collections::BTreeSet<String> =
        conducted.trials.iter().map(|t| t.label.clone()).collect();
    assert_eq!(seeds.len(), levels_asked.len());
}

#[test]
fn a_bound_below_saturation_is_approached_from_both_sides() {
    // 64 servers, so that 1 user takes 10 ms and 100 take 15.6 ms.
    let bound = Bound {
        metric: BoundMetric::P90,
        limit: Nanos::from_millis(21),
    };
    let station = |n: u32| {
        // One server of 1 ms behind 20 ms: throughput bends gently.
        let station = crate::analysis::models::MachineRepair {
            servers: 1,
            service_s: 0.001,
            overhead_s: 0.0195,
        };
        station.throughput_per_s(n)
    };
    let within = |n: u32| 1.02 * 1e3 * f64::from(n) / station(n) <= 21.0;
    let truth = (1..100)
        .filter(|&n| within(n))
        .max()
        .expect("one user is within");
    let mut fake = Fake::new(station);
    let (conducted, conclusion) = sweep(&mut fake, bounded(automatic(1), &[bound]));
    let best = conclusion.best_within_bound.expect("some level is within");
    assert!(best.p90_ns <= 21_000_000);
    assert!(
        best.vusers <= truth && f64::from(best.vusers) >= 0.9 * f64::from(truth) - 1.0,
        "{} of {truth}: {:?}",
        best.vusers,
        levels(&conducted)
    );
    assert_eq!(best.bound, "p90<=21ms");
    assert!(conducted.trials.len() <= 14);
}

#[test]
fn a_bound_that_no_level_meets_is_said() {
    let bound = Bound {
        metric: BoundMetric::Mean,
        limit: Nanos::from_millis(5),
    };
    let mut fake = Fake::station(6, 0.01, 0.0);
    let (conducted, conclusion) = sweep(&mut fake, bounded(automatic(1), &[bound]));
    assert_eq!(conclusion.best_within_bound, None);
    assert!(codes(&conducted.findings).contains(&"bound_unreachable"));
}

#[test]
fn beyond_the_knee_the_fewest_users_are_best_within_a_bound() {
    let bound = Bound {
        metric: BoundMetric::P90,
        limit: Nanos::from_millis(500),
    };
    let mut fake = Fake::station(6, 0.01, 0.0);
    let (_, conclusion) = sweep(&mut fake, bounded(automatic(1), &[bound]));
    let best = conclusion.best_within_bound.expect("all levels are within");
    assert_eq!(best.vusers, 6);
    assert!(best.confident);
}

#[test]
fn the_highest_rate_served_is_found() {
    for (capacity, seed) in [(8_571.0, 1), (130.0, 2), (7.0, 3), (250_000.0, 4)] {
        let mut fake = Fake::new(move |n| capacity * f64::from(n) / (1.0 + f64::from(n)));
        fake.noise = 0.002;
        let (conducted, conclusion) = sweep(&mut fake, rates(seed));
        let rate = conclusion.knee_rate_per_s.expect("some rate is served");
        assert!(
            near(rate, capacity, 0.05),
            "{rate} of {capacity}: {:?}",
            levels(&conducted)
        );
        assert!(conducted.trials.len() <= 14);
        let first = conducted.trials[0].level;
        assert_eq!(first, Level::RatePerS(100.0));
        assert!(codes(&conducted.findings).contains(&"target_queue_grows"));
    }
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
