//! Whole sweeps of the simulated station, operation by operation, checked against theory.

use super::super::{LevelPlan, Sweep, SweepAxis, SweepSpec};
use super::fake::{automatic, list, rates, slice_of};
use super::{codes, levels, near};
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::{Conducted, conduct};
use crate::trial::merged_slices::merged;
use crate::trial::report::TrialReport;
use knee_load::law::Law;
use knee_load::measure::{BothEnds, HostTimes, Observed};
use knee_load::spec::{Rate, TrialSpec};
use knee_load::time::Nanos;
use knee_sim::{ServiceOrder, Stall, World, simulate};
use proptest::prelude::*;
use std::convert::Infallible;
use std::ops::ControlFlow;

fn sweep(
    world: &World,
    spec: SweepSpec,
) -> (Conducted<TrialReport, SweepConclusion>, SweepConclusion) {
    let mut now_s = 0.0;
    let run = |spec: &TrialSpec| {
        let report = slice_of(&simulate(spec, world).trial, &mut now_s);
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = conduct(&mut Sweep::new(spec), run);
    let conclusion = conducted.conclusion.clone();
    (conducted, conclusion)
}

/// Windows as long as this number of services.
fn lasting(mut spec: SweepSpec, service: Nanos, services: u64) -> SweepSpec {
    spec.base.duration = Nanos(services * service.0);
    spec.budget = Nanos(40 * spec.base.duration.0);
    spec.base.warmup = Nanos(spec.base.duration.0 / 10);
    spec.base.interval = Nanos(spec.base.duration.0 / 10);
    spec.base.timeout = Nanos(1_000 * service.0 + 10_000_000_000);
    spec
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn any_station_is_found(
        servers in 1u32..=64,
        service_us in 100u64..100_000,
        transport_percent in prop::sample::select(vec![0u64, 1, 10]),
        exponential in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let service = Nanos::from_micros(service_us);
        let law = if exponential { Law::Exp(service) } else { Law::Fixed(service) };
        let mut world = World::station(servers, law);
        world.transport = Nanos(service.0 * transport_percent / 200);
        // Enough operations for a single user, and for a single server.
        let services = if exponential { 800.max(10_000 / u64::from(servers)) } else { 200 };
        let (conducted, conclusion) = sweep(&world, lasting(automatic(seed), service, services));
        let ceiling = f64::from(servers) / service.as_secs_f64();
        let knee = f64::from(servers) * (1.0 + transport_percent as f64 / 100.0);
        let most = conclusion.max_throughput_per_s;
        prop_assert!(conducted.trials.len() <= 20);
        prop_assert!(near(most, ceiling, 0.03), "{most} for {ceiling}: {:?}", levels(&conducted));
        let found = conclusion.knee_vusers;
        let is_near = match conclusion.knee_range {
            Some([lo, hi]) => lo <= 1.15 * knee && knee <= 1.15 * hi,
            None => found.is_some_and(|k| near(k, knee, 0.15)),
        };
        prop_assert!(is_near, "{found:?} for {knee}: {}", conclusion.answer);
    }
}

#[test]
fn six_workers_of_700_us_are_found_as_asked() {
    let service = Nanos::from_micros(700);
    let mut world = World::station(6, Law::Fixed(service));
    world.transport = Nanos::from_micros(25);
    let (conducted, conclusion) = sweep(&world, automatic(1));
    assert!(near(conclusion.max_throughput_per_s, 8_571.0, 0.03), "{conclusion:?}");
    let knee = conclusion.knee_vusers.expect("a knee");
    assert!((6.0..=7.0).contains(&knee), "{knee}");
    let found = codes(&conducted.findings);
    assert!(found.iter().all(|c| *c == "past_knee"), "{found:?}");
    let repair = conclusion.models.iter().find(|m| m.name == "machine_repair");
    let servers = repair.and_then(|m| m.parameters.get("servers"));
    assert!(servers.is_none_or(|n| *n == 6.0), "service is not exponential: {servers:?}");
}

#[test]
fn the_highest_rate_of_a_station_is_found() {
    let service = Nanos::from_millis(1);
    let world = World::station(4, Law::Exp(service));
    let (conducted, conclusion) = sweep(&world, lasting(rates(1), service, 4_000));
    let rate = conclusion.knee_rate_per_s.expect("some rate is served");
    assert!(near(rate, 4_000.0, 0.1), "{rate}: {:?}", levels(&conducted));
    assert!(conducted.trials.len() <= 30);
}

/// Two of three trials of a rate have responses of 1 ms, one has 9 ms. No trial alone has this
/// mean, nor this p50 and p90.
#[test]
fn a_row_of_a_repeated_rate_is_of_all_its_trials() {
    let rate = Rate::per_second(400).expect("a rate");
    let mut spec = rates(1);
    spec.axis = SweepAxis::Rate(LevelPlan::List(vec![rate; 3]));
    let mut service_ms = [1, 9, 1].into_iter();
    let mut now_s = 0.0;
    let run = |spec: &TrialSpec| {
        let service = Law::Fixed(Nanos::from_millis(service_ms.next().expect("three trials")));
        let trial = simulate(spec, &World::station(16, service)).trial;
        Ok::<_, Infallible>(ControlFlow::Continue(slice_of(&trial, &mut now_s)))
    };
    let Ok(conducted) = conduct(&mut Sweep::new(spec), run);
    let row = &conducted.conclusion.levels[0];
    assert_eq!((row.trials, row.errors), (3, Some(0)));
    assert!(near(row.throughput_per_s, 400.0, 0.01), "{row:?}");
    let ms = |ns: Option<u64>| ns.map_or(0.0, |ns| ns as f64 / 1e6);
    assert!(near(ms(row.mean_ns), 11.0 / 3.0, 0.01), "{row:?}");
    assert!(near(ms(row.p50_ns), 1.0, 0.01) && near(ms(row.p90_ns), 9.0, 0.01), "{row:?}");
}

/// Times that an observer saw are of all slices of a row, and their percentiles are not averaged.
#[test]
fn times_inside_the_server_host_stay_in_merged_rows() {
    let spec = automatic(1).slice(2, 0, Nanos::ZERO, Nanos::from_millis(400));
    let world = World::station(2, Law::Fixed(Nanos::from_millis(1)));
    let slice = |host_us: u64, is_observed: bool| {
        let mut trial = simulate(&spec, &world).trial;
        let part = [host_us, 100].map(Nanos::from_micros);
        let both_ends = BothEnds::of(std::iter::repeat_n(part, 200));
        let mut times = HostTimes::default();
        times.set(&both_ends);
        trial.measurement.both_ends = both_ends;
        trial.observed =
            Some(Observed { server_host: is_observed.then_some(times), ..Observed::default() });
        slice_of(&trial, &mut 0.0)
    };
    let row = |slices: &[TrialReport]| {
        let all: Vec<&TrialReport> = slices.iter().collect();
        let merged = merged(&all, None).expect("slices");
        merged.observed().and_then(|o| o.server_host.clone())
    };
    let times = row(&[slice(300, true), slice(500, true)]).expect("both are observed");
    assert_eq!(times.operations, 400);
    let us = |ns: Option<u64>| ns.map(|ns| (ns as f64 / 1e3).round());
    assert_eq!(us(times.host_ns.p50), Some(300.0));
    assert_eq!(us(times.host_ns.p90), Some(500.0));
    assert_eq!(us(times.network_ns.p50), Some(100.0));
    assert_eq!(times.host_percent, Some(80.0));
    assert_eq!(row(&[slice(300, false), slice(500, false)]), None);
}

/// A sweep over a list waits longer than its 400 ms for 128 users, who wait for a second: what is
/// starved then and served after the window is no throughput, and who is served first changes none.
#[test]
fn who_is_served_first_changes_no_throughput() {
    use ServiceOrder::{Favourites, FirstCome, LastCome, Random};
    let service = Nanos::from_micros(7_500);
    for (law, share) in [(Law::Fixed(service), 0.003), (Law::Exp(service), 0.07)] {
        for order in [FirstCome, LastCome, Random, Favourites] {
            let world = World { order, ..World::station(1, law) };
            let (_, conclusion) = sweep(&world, list(&[1, 16, 128]));
            for row in &conclusion.levels {
                let per_s = row.throughput_per_s;
                assert!(near(per_s, 1.0 / 7.5e-3, share), "{order:?} {law:?}: {row:?}");
            }
        }
    }
}

/// The nearest case: users who wait for an operation, and not for each other. Their completions come
/// in bunches, of which a slice of 400 ms has none or all.
#[test]
fn operations_that_outlast_a_slice_are_measured_in_longer_ones() {
    for service in [Nanos::from_millis(900), Nanos::from_millis(1_700)] {
        for spec in [list(&[1, 8, 40]), automatic(1)] {
            let (_, conclusion) = sweep(&World::station(16, Law::Fixed(service)), spec);
            for row in conclusion.levels.iter().filter(|row| row.trials > 1) {
                let users = crate::words::value(row.level).min(16.0);
                let per_s = users / service.as_secs_f64();
                assert!(near(row.throughput_per_s, per_s, 0.02), "{service} {row:?}");
            }
        }
    }
}

/// A run of 10 s, also where users are starved or cut off, or have a cold start.
#[test]
fn runs_count_what_completed() {
    use ServiceOrder::{Favourites, FirstCome, LastCome, Random};
    let service = Nanos::from_micros(7_500);
    for order in [FirstCome, LastCome, Random, Favourites] {
        for (vusers, warmup_ms, interrupted) in
            [(128, 0, None), (128, 1_000, None), (4, 0, Some(3))]
        {
            let spec =
                automatic(1).slice(vusers, 0, Nanos::from_millis(warmup_ms), Nanos::from_secs(10));
            let world = World {
                order,
                interrupted_at: interrupted.map(Nanos::from_secs),
                ..World::station(1, Law::Fixed(service))
            };
            let spec = TrialSpec { timeout: Nanos::from_secs(60), ..spec };
            let report = crate::trial::assess::assess(&simulate(&spec, &world).trial);
            let per_s = report.responses_per_s();
            assert!(near(per_s, 1.0 / 7.5e-3, 0.003), "{order:?} {vusers} {warmup_ms}: {per_s}");
            let law = report.as_http().littles_law.as_ref();
            assert!(law.is_none_or(|law| law.ok), "{order:?} {vusers} {warmup_ms}: {law:?}");
        }
    }
}

/// Pauses of 200 ms every 3 s: slices of a level meet more of them or fewer by chance, and its
/// percentiles hold those that users would meet in the long run. 16 users wait for a pause in more
/// than one in a hundred operations; for 2 it is far less.
#[test]
fn percentiles_have_the_share_of_pauses_that_the_whole_time_has() {
    let world = |from: Nanos| World {
        server_stalls: Stall::every(
            Nanos::from_secs(3),
            Nanos::from_millis(200),
            Nanos::from_secs(400),
        )
        .into_iter()
        .take(200)
        .filter_map(|s| Some(Stall { at: Nanos(s.at.0.checked_sub(from.0)?), ..s }))
        .collect(),
        ..World::station(2, Law::Exp(Nanos::from_millis(5)))
    };
    let levels = [2, 16, 64];
    let p99_ms =
        |report: &TrialReport| report.response_time_ns.p99.map_or(0.0, |ns| ns as f64 / 1e6);
    let truth = levels.map(|vusers| {
        let spec = automatic(1).slice(vusers, 0, Nanos::from_secs(1), Nanos::from_secs(300));
        p99_ms(&crate::trial::assess::assess(&simulate(&spec, &world(Nanos::ZERO)).trial))
    });
    let mut off = Vec::new();
    for seed in 0..6 {
        let mut spec = SweepSpec { axis: list(&levels).axis, ..automatic(seed) };
        spec.base.duration = Nanos::from_secs(8);
        let mut now_s = 0.0;
        let run = |spec: &TrialSpec| {
            let trial = simulate(spec, &world(Nanos::from_secs_f64(now_s))).trial;
            Ok::<_, Infallible>(ControlFlow::Continue(slice_of(&trial, &mut now_s)))
        };
        let Ok(conducted) = conduct(&mut Sweep::new(spec), run);
        for (row, truth) in conducted.conclusion.levels.iter().zip(truth) {
            let p99_ms = row.p99_ns.map_or(0.0, |ns| ns as f64 / 1e6);
            if !near(p99_ms, truth, 0.1) {
                off.push(format!("{seed} {:?}: {p99_ms} for {truth}", row.level));
            }
        }
    }
    // A level may have met no pause at all.
    assert!(off.len() <= 3, "{off:#?}");
}
