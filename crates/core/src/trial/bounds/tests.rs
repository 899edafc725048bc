//! Which figures are determined, and what stands in the place of the others.

use super::*;
use crate::trial::assess::assess;
use crate::trial::assess::tests::{closed, open, spec};
use crate::trial::figure::Figure;
use crate::trial::report::Verdict;
use knee_load::arrival::ArrivalLaw;
use knee_load::measure::{GeneratorUse, Measurement, Stage};
use knee_load::spec::{Pause, PauseKind};
use std::collections::BTreeMap;

const US: u64 = 1_000;

fn trial(load: Load, response_ns: u64, undelayed_ns: u64) -> Trial {
    let mut measured = Measurement {
        started: 100_000,
        answered: 100_000,
        by_kernel: 100_000,
        stages: vec![Histogram::default(); Stage::COUNT],
        ..Measurement::default()
    };
    measured.window.end = Nanos::from_secs(10);
    measured.series.slot = Nanos::from_millis(10);
    measured.series.completed = vec![100.0; 1_000];
    measured.series.response_sum_ns = vec![100.0 * response_ns as f64; 1_000];
    measured.series.response_count = vec![100; 1_000];
    measured.outcomes.add_many(knee_load::measure::Outcome::Ok, 100_000);
    measured.response.record_n(Nanos(response_ns), 100_000);
    measured.undelayed.record_n(Nanos(undelayed_ns), 100_000);
    measured.service.record_n(Nanos(response_ns), 100_000);
    measured.pick_up.record_n(Nanos::ZERO, 1);
    Trial {
        spec: spec(load),
        measurement: measured,
        generator: GeneratorUse::default(),
        kernel: BTreeMap::new(),
        observed: None,
        agents: Vec::new(),
        interrupted: false,
    }
}

/// Whether the median is determined, of a response time and what of it is the generator's delay.
fn is_determined(response_us: u64, own_us: u64) -> bool {
    let trial = trial(open(ArrivalLaw::Constant), response_us * US, (response_us - own_us) * US);
    let report = assess(&trial);
    assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.invalid_because);
    let times = &report.response_time_ns;
    match times.figure("p50") {
        Figure::Exactly(ns) => {
            assert!(ns.abs_diff(response_us * US) <= ns / 500);
            true
        }
        Figure::Within(least, most) => {
            let at_least = (response_us - own_us) * US;
            assert!(least.abs_diff(at_least) <= at_least / 500);
            assert!(most.is_some_and(|most| most >= response_us * US));
            assert!(times.p50_ci95.is_none() && !times.ranges["p50"].because.is_empty());
            false
        }
        Figure::Absent => panic!("absent without a reason"),
    }
}

#[test]
fn times_are_determined_to_20_us_or_a_tenth() {
    assert!(is_determined(100, 19) && !is_determined(100, 22));
    assert!(is_determined(1_000, 98) && !is_determined(1_000, 103));
    assert!(is_determined(50, 0), "a punctual generator");
}

#[test]
fn service_times_are_as_exact_as_their_timestamps() {
    let mut trial = trial(open(ArrivalLaw::Constant), 100 * US, 20 * US);
    let service = |trial: &Trial| assess(trial).service_time_ns;
    assert!(service(&trial).p50.is_some(), "timestamps of the kernel");
    trial.measurement.by_kernel = 0;
    let mut lateness = Histogram::default();
    lateness.record_n(Nanos(30 * US), 100);
    trial.generator.wait = Some(knee_load::measure::WaitUse { lateness, ..wait_use() });
    let times = service(&trial);
    assert!(times.p50.is_none() && times.ranges["p50"].at_least < 71 * US);
}

fn wait_use() -> knee_load::measure::WaitUse {
    knee_load::measure::WaitUse {
        policy: knee_load::spec::WaitPolicy::Auto,
        polling_percent: 0.0,
        realtime_percent: 0.0,
        polled_percent: 0.0,
        changes: Vec::new(),
        lateness: Histogram::default(),
    }
}

/// What users wait for the generator after each response.
fn closed_trial(response_us: u64, read_after_us: u64) -> Trial {
    let mut trial = trial(closed(10), response_us * US, response_us * US);
    let measured = &mut trial.measurement;
    measured.pick_up = Histogram::default();
    measured.pick_up.record_n(Nanos(read_after_us * US), 100_000);
    trial
}

/// Whether the throughput is determined, of a worker that was busy for this share of the time.
fn is_determined_rate(trial: &mut Trial, busy_percent: f64) -> bool {
    trial.generator.busiest_worker_percent = busy_percent;
    let report = assess(trial);
    assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.invalid_because);
    let achieved = report.throughput_per_s.expect("what was achieved");
    assert!((achieved - 10_000.0).abs() < 1.0, "{achieved}");
    assert_eq!(report.throughput_range_per_s, None);
    let is_determined = report.throughput_is.is_determined();
    let most = [report.throughput().at_most(), report.goodput().at_most()];
    assert_eq!(most.map(|most| most.is_some()), [is_determined; 2]);
    is_determined
}

#[test]
fn a_busy_generator_with_a_share_of_each_cycle_is_the_limit() {
    let mut own_10_percent = closed_trial(900, 101);
    assert!(!is_determined_rate(&mut own_10_percent, 96.0));
    assert!(is_determined_rate(&mut own_10_percent, 94.0), "it had time left");
    own_10_percent.generator.busiest_worker_spin_percent = 30.0;
    assert!(is_determined_rate(&mut own_10_percent, 100.0), "it polled");
    assert!(is_determined_rate(&mut closed_trial(910, 90), 99.0), "users wait for the target");
    // Slow to read, and not busy: that is what users of this host get.
    assert!(is_determined_rate(&mut closed_trial(500, 500), 60.0));
    let mut paced = closed_trial(900, 101);
    let pause = knee_load::law::Law::Fixed(Nanos::from_millis(1));
    paced.spec.load = Load::Closed {
        vusers: 10,
        pause: Pause { kind: PauseKind::Think, law: pause },
        stages: Vec::new(),
    };
    assert!(is_determined_rate(&mut paced, 99.0), "users wait for their pauses");
}

#[test]
fn busy_generator_without_timestamps_is_the_limit() {
    let mut trial = closed_trial(750, 0);
    trial.measurement.by_kernel = 0;
    assert!(is_determined_rate(&mut trial, 94.0));
    assert!(!is_determined_rate(&mut trial, 96.0));
}

#[test]
fn a_stall_leaves_what_it_cannot_have_changed() {
    let mut trial = closed_trial(750, 0);
    let max = |trial: &Trial| assess(trial).response_time_ns.figure("max").at_least().unwrap();
    assert!(max(&trial) > 700 * US);
    trial.measurement.response.record(Nanos::from_millis(150));
    trial.measurement.undelayed.record(Nanos::from_millis(150));
    assert!(max(&trial) > 149_000 * US);
    trial.measurement.stall_ns_max = 120_000 * US;
    let report = assess(&trial);
    assert_eq!(report.verdict, Verdict::Valid, "of 10 s");
    assert!(report.response_time_ns.p50.is_some() && report.throughput_is.is_determined());
    assert!(report.response_time_ns.max.is_none() && max(&trial) < 31_000 * US);
}

#[test]
fn reasons_name_what_the_host_shows() {
    let mut trial = trial(open(ArrivalLaw::Constant), 100 * US, 50 * US);
    let because = |trial: &Trial| assess(trial).response_time_ns.ranges["p50"].because.clone();
    assert_eq!(because(&trial), "the generator was late");
    trial.generator.busiest_worker_waiting_percent = 12.0;
    assert!(because(&trial).ends_with("others had its processor for 12 % of the time"));
    trial.generator.steal_percent = Some(3.0);
    assert!(because(&trial).ends_with("the host gave 3 % of its time to others"));
}

/// 3 % of the operations left together, and the least of them is not known. The others answer for
/// the shortest.
#[test]
fn operations_that_left_together_widen_both_times() {
    let mut trial = trial(open(ArrivalLaw::Constant), 3_000 * US, 3_000 * US);
    let measured = &mut trial.measurement;
    for times in [&mut measured.response, &mut measured.service, &mut measured.held_up] {
        times.record_n(Nanos::from_millis(9), 3_000);
    }
    for times in [&mut measured.undelayed, &mut measured.held_up_least] {
        times.record_n(Nanos(10), 3_000);
    }
    let report = assess(&trial);
    for times in [&report.response_time_ns, &report.service_time_ns] {
        assert!(times.p50.is_some() && times.mean.is_some(), "{times:?}");
        assert!(times.ranges.keys().eq(["max", "p99", "p999"]), "{:?}", times.ranges);
        let [response, service] = [&report.response_time_ns, &report.service_time_ns]
            .map(|times| times.figure("p99").at_least().unwrap());
        assert!(response >= service);
    }
}
