//! Drivers, recorder and station together against what is known in closed form.

mod faults;
mod interruption;
mod silences;

use knee_core::experiment::sweep::models::MachineRepair;
use knee_load::law::Law;
use knee_load::measure::{Histogram, Measurement, Outcome};
use knee_load::spec::{ArrivalLaw, Load, OpenLoad, Pause, PauseKind, Rate};
use knee_load::stats::sample::mean;
use knee_load::time::Nanos;
use knee_sim::fixture::trial;
use knee_sim::theory;
use knee_sim::*;
use proptest::prelude::*;

fn open(per_s: u64, arrival: ArrivalLaw) -> Load {
    Load::Open(OpenLoad {
        rate: Rate::per_second(per_s).unwrap(),
        arrival,
        connections_max: 100_000,
        in_flight_max: None,
    })
}

fn closed(vusers: u32, think: Law) -> Load {
    Load::Closed { vusers, pause: Pause { kind: PauseKind::Think, law: think }, stages: Vec::new() }
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn secs(s: u64) -> Nanos {
    Nanos::from_secs(s)
}

/// Exponential and fixed service of 1 ms: 1,000/s per server.
const EXP: Law = Law::Exp(Nanos::from_millis(1));
const FIXED: Law = Law::Fixed(Nanos::from_millis(1));
const PER_S: f64 = 1000.0;

/// Runs `load` for this time, after a warm-up of a tenth.
fn run(load: Load, world: &World, seconds: u64) -> Simulated {
    let mut spec = trial(load, secs(seconds));
    spec.warmup = ms(seconds * 100);
    simulate(&spec, world)
}

fn mean_s(histogram: &Histogram) -> f64 {
    histogram.mean_ns() / 1e9
}

fn quantile_s(histogram: &Histogram, q: f64) -> f64 {
    histogram.quantile(q).as_secs_f64()
}

fn throughput_per_s(measurement: &Measurement) -> f64 {
    let completed: f64 = measurement.series.completed.iter().sum();
    let slots = measurement.series.completed.len() as f64;
    completed / (slots * measurement.series.slot.as_secs_f64())
}

#[track_caller]
fn assert_close(value: f64, expected: f64, within: f64, what: &str) {
    let off = (value / expected - 1.0).abs();
    assert!(off <= within, "{what}: {value}, not {expected} ({off:.4} off)");
}

#[test]
fn mm1() {
    for (per_s, seconds, within) in [(500, 500, 0.015), (800, 1_000, 0.02), (900, 2_000, 0.04)] {
        let done = run(open(per_s, ArrivalLaw::Poisson), &World::station(1, EXP), seconds);
        let response = &done.trial.measurement.response;
        let mean = theory::mm1_response_mean_s(per_s as f64, PER_S);
        assert_close(mean_s(response), mean, within, &format!("mean at {per_s}"));
        for q in [0.5, 0.9, 0.99] {
            let expected = theory::mm1_response_quantile_s(per_s as f64, PER_S, q);
            let what = format!("quantile {q} at {per_s}");
            assert_close(quantile_s(response, q), expected, 1.5 * within, &what);
        }
    }
}

#[test]
fn the_generator_measures_what_the_station_logs() {
    let mut world = World::station(1, EXP);
    let here = run(open(800, ArrivalLaw::Poisson), &world, 20);
    assert_eq!(here.trial.measurement.response, here.station);
    world.transport = Nanos::from_micros(250);
    let away = run(open(800, ArrivalLaw::Poisson), &world, 20);
    let beyond = mean_s(&away.trial.measurement.response) - mean_s(&away.station);
    assert!((beyond - 500e-6).abs() < 1e-6, "{beyond}");
}

#[test]
fn md1() {
    for (per_s, within) in [(500, 0.01), (800, 0.02)] {
        let done = run(open(per_s, ArrivalLaw::Poisson), &World::station(1, FIXED), 1_000);
        let wait = mean_s(&done.trial.measurement.response) - 1.0 / PER_S;
        let expected = theory::md1_wait_mean_s(per_s as f64, PER_S);
        assert_close(wait, expected, within, &format!("wait at {per_s}"));
    }
}

#[test]
fn mmc() {
    for (servers, per_s, within) in [(2, 1_500, 0.02), (8, 6_800, 0.03), (30, 27_000, 0.05)] {
        let world = World::station(servers, EXP);
        let done = run(open(per_s, ArrivalLaw::Poisson), &world, 1_000_000 / per_s);
        let wait = mean_s(&done.trial.measurement.response) - 1.0 / PER_S;
        let expected = theory::mmc_wait_mean_s(servers, per_s as f64, PER_S);
        assert_close(wait, expected, within, &format!("wait of {servers} servers"));
    }
}

#[test]
fn enough_servers_make_no_queue() {
    let done = run(open(5_000, ArrivalLaw::Poisson), &World::station(None, FIXED), 10);
    let response = &done.trial.measurement.response;
    let served = response.quantile(0.0).0.abs_diff(response.max().0);
    assert!(served <= 1_000, "all take 1 ms, but {served}");
}

#[test]
fn dm1() {
    let service = Law::Exp(Nanos::from_micros(120));
    let done = run(open(5_000, ArrivalLaw::Constant), &World::station(1, service), 100);
    let response = &done.trial.measurement.response;
    let per_s = 1.0 / 120e-6;
    let mean = theory::dm1_response_mean_s(5_000.0, per_s);
    assert_close(mean_s(response), mean, 0.01, "mean");
    for q in [0.5, 0.9, 0.99] {
        let expected = theory::dm1_response_quantile_s(5_000.0, per_s, q);
        assert_close(quantile_s(response, q), expected, 0.02, &format!("quantile {q}"));
    }
}

#[test]
fn machine_repair() {
    for (users, servers, think_ms) in [(10, 1, 20), (30, 1, 20), (20, 4, 5), (60, 6, 9), (4, 8, 1)]
    {
        let think = Law::Exp(ms(think_ms));
        let done = run(closed(users, think), &World::station(servers, EXP), 80);
        let model =
            MachineRepair { servers, service_s: 1.0 / PER_S, overhead_s: think_ms as f64 / 1e3 };
        let what = format!("{users} users, {servers} servers, {think_ms} ms");
        let measurement = &done.trial.measurement;
        let per_s = throughput_per_s(measurement);
        assert_close(per_s, model.throughput_per_s(users), 0.01, &what);
        // N/X − Z, by Little's law over the whole cycle.
        let response = f64::from(users) / model.throughput_per_s(users) - model.overhead_s;
        assert_close(mean_s(&measurement.response), response, 0.02, &what);
    }
}

#[test]
fn users_without_pauses_keep_the_station_full() {
    for (users, servers) in [(1, 1), (3, 6), (6, 6), (300, 6)] {
        let done = run(closed(users, Law::ZERO), &World::station(servers, FIXED), 10);
        let measurement = &done.trial.measurement;
        let expected = f64::from(users.min(servers)) * PER_S;
        let what = format!("{users} users, {servers} servers");
        assert_close(throughput_per_s(measurement), expected, 0.001, &what);
        let response = f64::from(users.max(servers)) / f64::from(servers) / PER_S;
        assert_close(mean_s(&measurement.response), response, 0.01, &what);
        assert_eq!(measurement.connections_max, u64::from(users));
    }
}

/// 1,000/s for 10 s, and 1 s of them a stall, of the server or of the client.
fn stalled(of_server: bool) -> Measurement {
    let stall = vec![Stall { at: secs(4), length: secs(1) }];
    let mut world = World::station(None, Law::Fixed(Nanos::from_micros(100)));
    if of_server {
        world.server_stalls = stall;
    } else {
        world.client_stalls = stall;
    }
    let spec = trial(open(1_000, ArrivalLaw::Constant), secs(10));
    simulate(&spec, &world).trial.measurement
}

fn delayed(histogram: &Histogram) -> (u64, f64) {
    let delayed = histogram.iter_recorded().filter(|&(t, _)| t > ms(1));
    let (n, sum_s) = delayed
        .fold((0, 0.0), |(n, sum), (t, count)| (n + count, sum + t.as_secs_f64() * count as f64));
    (n, sum_s / n as f64)
}

#[test]
fn a_stall_delays_all_that_come_in_it_whoever_stalls() {
    for of_server in [true, false] {
        let measurement = stalled(of_server);
        let (n, mean) = delayed(&measurement.response);
        assert!(n.abs_diff(1_000) <= 2, "{n} delayed");
        assert_close(mean, 0.5, 0.005, "their mean delay");
        assert_close(mean_s(&measurement.response), 0.05, 0.01, "mean of all");
        assert_close(quantile_s(&measurement.response, 0.99), 0.9, 0.005, "p99");
        assert_eq!(measurement.outcomes.count(Outcome::Ok), 10_000);
    }
}

#[test]
fn a_server_that_stalls_shows_in_service_time_and_not_in_pacing() {
    let measurement = stalled(true);
    assert_close(quantile_s(&measurement.service, 0.99), 0.9, 0.005, "service p99");
    assert_eq!(measurement.pacing_error.max(), Nanos::ZERO);
    assert_eq!(measurement.stall_ns_max, 0);
}

#[test]
fn a_client_that_stalls_shows_in_pacing_and_not_in_service_time() {
    let measurement = stalled(false);
    assert_close(quantile_s(&measurement.service, 0.99), 100e-6, 0.005, "service p99");
    assert_close(quantile_s(&measurement.pacing_error, 0.99), 0.9, 0.005, "pacing p99");
    assert_close(measurement.stall_ns_max as f64, 1e9, 0.002, "the stall itself");
}

#[test]
fn operations_of_5_s_in_a_window_of_20_s_bias_nothing() {
    let world = World::station(None, Law::Fixed(secs(5)));
    let users = simulate(&trial(closed(10, Law::ZERO), secs(20)), &world);
    let measured = &users.trial.measurement;
    let per_s = mean(&measured.smoothed()) / measured.series.slot.as_secs_f64();
    assert_close(per_s, 2.0, 0.02, "closed loop");

    let mut spec = trial(open(100, ArrivalLaw::Constant), secs(20));
    spec.warmup = secs(6);
    let arrivals = simulate(&spec, &world).trial.measurement;
    assert_close(throughput_per_s(&arrivals), 100.0, 0.02, "open loop");
    assert_eq!(arrivals.response.count(), 2_000);
    assert_close(mean_s(&arrivals.response), 5.0, 0.001, "response");
}

#[test]
fn what_finds_no_room_is_refused_with_erlangs_probability() {
    // M/M/c/c: the share refused is Erlang's B; here by its sum, a^c/c! over all a^k/k!.
    let (servers, offered) = (4u32, 3.0f64);
    let mut world = World::station(servers, EXP);
    world.capacity = Some(servers);
    let done = run(open(3_000, ArrivalLaw::Poisson), &world, 100);
    let outcomes = &done.trial.measurement.outcomes;
    let share = outcomes.count(Outcome::Refused) as f64 / outcomes.total() as f64;
    let terms: Vec<f64> = (0..=servers)
        .scan(1.0, |factorial, k| {
            *factorial *= f64::from(k.max(1));
            Some(offered.powi(k as i32) / *factorial)
        })
        .collect();
    let expected = terms[servers as usize] / terms.iter().sum::<f64>();
    assert_close(share, expected, 0.02, "refused");
    assert_eq!(outcomes.count(Outcome::Ok) + outcomes.count(Outcome::Refused), outcomes.total());
}

#[test]
fn users_who_are_refused_back_off() {
    let mut world = World::station(1, Law::Fixed(secs(100)));
    world.capacity = Some(1);
    let done = simulate(&trial(closed(2, Law::ZERO), secs(10)), &world);
    let outcomes = &done.trial.measurement.outcomes;
    // Every 50 to 100 ms, after the first few.
    let refused = outcomes.count(Outcome::Refused);
    assert!((100..=210).contains(&refused), "{refused}");
    assert_eq!(outcomes.count(Outcome::Timeout), 1);
}

#[test]
fn timeouts_count_from_the_intended_moment_with_the_time_waited() {
    // A station that takes 10 s for the first one, and a timeout of 2 s.
    let world = World::station(1, Law::Fixed(secs(10)));
    let mut spec = trial(open(10, ArrivalLaw::Constant), secs(1));
    spec.timeout = secs(2);
    let measurement = simulate(&spec, &world).trial.measurement;
    assert_eq!(measurement.outcomes.count(Outcome::Timeout), 10);
    assert_close(quantile_s(&measurement.response, 0.0), 2.0, 0.001, "shortest");
    assert_close(measurement.response.max().as_secs_f64(), 2.0, 0.001, "longest");
}

#[test]
fn arrivals_beyond_the_connections_wait_for_one() {
    let mut load = open(1_000, ArrivalLaw::Constant);
    if let Load::Open(open) = &mut load {
        open.connections_max = 2;
    }
    // Two connections carry 200/s: of the 1,000 of one second the last waits about 4 s.
    let world = World::station(None, Law::Fixed(ms(10)));
    let measurement = simulate(&trial(load, secs(1)), &world).trial.measurement;
    assert_close(measurement.connection_wait.max().as_secs_f64(), 3.991, 0.002, "wait");
    assert_close(measurement.service.max().as_secs_f64(), 0.010, 0.001, "service");
    assert_eq!(measurement.pacing_error.max(), Nanos::ZERO);
    assert_eq!((measurement.connections_opened, measurement.connections_max), (2, 2));
}

/// 1,000/s over this number of connections against a server that takes 300 ms, with a timeout of 1
/// s.
fn starved(connections_max: u32) -> Measurement {
    let mut load = open(1_000, ArrivalLaw::Constant);
    if let Load::Open(load) = &mut load {
        load.connections_max = connections_max;
    }
    let mut spec = trial(load, secs(10));
    spec.timeout = secs(1);
    let world = World::station(None, Law::Fixed(ms(300)));
    simulate(&spec, &world).trial.measurement
}

#[test]
fn connections_that_are_too_few_carry_what_they_can() {
    let few = starved(4);
    // 4 connections that are busy for 0.3 s each.
    let per_s = throughput_per_s(&few);
    assert_close(per_s, 13.33, 0.03, "few");
    assert_eq!(few.connections_opened, 4);
    let ended = few.outcomes.count(Outcome::Ok) + few.outcomes.count(Outcome::Timeout);
    assert_eq!(ended, few.outcomes.total());
    let enough = starved(310);
    assert_eq!(enough.outcomes.count(Outcome::Timeout), 0);
}

#[test]
fn shed_arrivals_are_counted() {
    let mut load = open(1_000, ArrivalLaw::Constant);
    if let Load::Open(open) = &mut load {
        open.in_flight_max = Some(2);
    }
    let world = World::station(None, Law::Fixed(ms(10)));
    let outcomes = simulate(&trial(load, secs(1)), &world).trial.measurement.outcomes;
    assert_eq!(outcomes.count(Outcome::Ok), 200);
    assert_eq!(outcomes.count(Outcome::Shed), 800);
}

#[test]
fn a_number_of_operations_ends_the_trial_with_the_last_of_them() {
    for load in [open(1_000, ArrivalLaw::Constant), closed(4, Law::ZERO)] {
        let mut spec = trial(load, secs(3_600));
        spec.operations_max = Some(501);
        let measurement = simulate(&spec, &World::station(4, FIXED)).trial.measurement;
        assert_eq!(measurement.outcomes.count(Outcome::Ok), 501);
        assert!(measurement.window.end < secs(1), "{}", measurement.window.end);
    }
}

#[test]
fn a_station_may_be_slow_at_first_or_slow_down_for_ever() {
    let throughput = |world: &World, from, to| {
        let mut spec = trial(closed(1, Law::ZERO), secs(to - from));
        spec.warmup = secs(from);
        throughput_per_s(&simulate(&spec, world).trial.measurement)
    };
    let mut world = World::station(1, FIXED);
    world.slow_start = Some(SlowStart { factor: 5.0, over: secs(10) });
    assert_close(throughput(&world, 0, 1), 1_000.0 / 4.8, 0.02, "slow at first");
    assert_close(throughput(&world, 5, 6), 1_000.0 / 2.8, 0.02, "halfway");
    assert_close(throughput(&world, 10, 11), 1_000.0, 0.002, "warm");
    let mut world = World::station(1, FIXED);
    world.drift_per_s = 0.1;
    assert_close(throughput(&world, 10, 11), 1_000.0 / 2.05, 0.01, "twice as slow after 10 s");
}

#[test]
fn the_same_seed_replays_a_trial() {
    let outcome = |seed| {
        let mut spec = trial(open(900, ArrivalLaw::Poisson), secs(5));
        spec.seed = seed;
        let done = simulate(&spec, &World::station(1, EXP));
        (done.trial.measurement.response, done.trial.measurement.starts)
    };
    assert_eq!(outcome(1), outcome(1));
    assert_ne!(outcome(1), outcome(2));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// N = X·(R + Z), whatever the world.
    #[test]
    fn littles_law_holds(
        users in 1u32..40, servers in 1u32..10, think_ms in 0u64..20, transport_us in 0u64..2_000,
    ) {
        let mut world = World::station(servers, EXP);
        world.transport = Nanos::from_micros(transport_us);
        let think = Law::Exp(ms(think_ms));
        let done = run(closed(users, think), &world, 8);
        let measurement = &done.trial.measurement;
        let think_s = think_ms as f64 / 1e3;
        let cycle_s = mean_s(&measurement.response) + think_s;
        let n = throughput_per_s(measurement) * cycle_s;
        // The pauses drawn are a sample of their law.
        let sampling = think_s / cycle_s / (measurement.response.count() as f64).sqrt();
        let off = (n / f64::from(users) - 1.0).abs();
        prop_assert!(off < 0.01 + 4.0 * sampling, "{} of {}", n, users);
    }

    /// Nothing is lost: whatever goes wrong, each arrival of the window ends in one outcome.
    #[test]
    fn every_operation_is_accounted_for(
        per_s in 1u64..3_000, capacity in 1u32..50, timeout_ms in 1u64..500, stall_ms in 0u64..900,
        connections in 1u32..20, in_flight in 1u32..100, of_client: bool, keep_alive: bool,
    ) {
        let mut world = World::station(1, EXP);
        world.capacity = Some(capacity);
        world.transport = Nanos::from_micros(300);
        let stall = Stall { at: ms(300), length: ms(stall_ms) };
        if of_client {
            world.client_stalls.push(stall);
        } else {
            world.server_stalls.push(stall);
        }
        let load = Load::Open(OpenLoad {
            rate: Rate::per_second(per_s).unwrap(),
            arrival: ArrivalLaw::Constant,
            connections_max: connections,
            in_flight_max: Some(in_flight),
        });
        let mut spec = trial(load, secs(1));
        spec.timeout = ms(timeout_ms);
        spec.target.keep_alive = keep_alive;
        let measurement = simulate(&spec, &world).trial.measurement;
        prop_assert_eq!(measurement.outcomes.total(), per_s);
        prop_assert!(measurement.connections_max <= u64::from(connections));
    }
}
