//! A closed loop that the user interrupts: what its operations in flight count for.

use super::*;

/// Throughput by the series, over the true one, of a trial of 10 users that is interrupted after
/// this many ms. It has a warm-up in which the users fall out of step. Each user has a worker, so
/// the true throughput is 10/mean.
fn share_measured(service: Law, at_ms: u64, seed: u64) -> f64 {
    let mut world = World::station(None, service);
    world.interrupted_at = Some(ms(1_000 + at_ms));
    let mut spec = trial(closed(10, Law::Fixed(Nanos::ZERO)), secs(60));
    spec.seed = seed;
    spec.warmup = secs(1);
    let done = simulate(&spec, &world);
    let measured = &done.trial.measurement;
    assert!(done.trial.interrupted);
    assert_eq!(measured.window.length(), ms(at_ms));
    assert_eq!(measured.outcomes.count(Outcome::InFlight), 10);
    mean(&measured.smoothed()) / measured.series.slot.0 as f64 * service.mean_ns() / 10.0
}

#[test]
fn operations_of_one_length_count_for_the_part_that_is_over() {
    for at_ms in [1_500, 2_500, 3_900, 7_250] {
        let share = share_measured(Law::Fixed(secs(1)), at_ms, 1);
        assert!((share - 1.0).abs() < 1e-2, "{share} after {at_ms} ms");
    }
}

/// Left out, they would cost half an operation per user: 2.5 % after 20 of them.
#[test]
fn interrupted_throughput_is_off_by_little_per_user() {
    let trials = 200;
    let shares = (0..trials).map(|seed| share_measured(Law::Exp(ms(100)), 2_000, seed));
    let bias = shares.sum::<f64>() / trials as f64 - 1.0;
    // The standard error is 0.1 of an operation.
    assert!((bias * 20.0).abs() < 0.4, "{} of an operation", bias * 20.0);
}

#[test]
fn without_one_response_nothing_is_credited() {
    let mut world = World::station(None, Law::Fixed(secs(5)));
    world.interrupted_at = Some(secs(3));
    let done = simulate(&trial(closed(4, Law::Fixed(Nanos::ZERO)), secs(60)), &world);
    assert_eq!(throughput_per_s(&done.trial.measurement), 0.0);
}
