//! Bounds on response time, and the highest rate served.

use super::super::fake::{Fake, automatic, bounded, rates, sweep};
use super::super::{Bound, BoundMetric};
use super::{codes, levels, near};
use crate::spec::Level;
use crate::time::Nanos;

#[test]
fn a_bound_below_saturation_is_approached_from_both_sides() {
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
    assert!(best.p90_ns.expect("enough of them") <= 21_000_000);
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
        // A few operations a second cannot be told apart within seconds.
        let share = if capacity < 10.0 { 0.1 } else { 0.05 };
        assert!(
            near(rate, capacity, share),
            "{rate} of {capacity}: {:?}",
            levels(&conducted)
        );
        assert!(conducted.trials.len() <= 14);
        let first = conducted.trials[0].level;
        assert_eq!(first, Level::RatePerS(100.0));
        assert!(
            !codes(&conducted.findings).contains(&"target_queue_grows"),
            "no news here"
        );
    }
}

#[test]
fn bounds_are_read_from_the_command_line() {
    let bound: Bound = "p90=50ms".parse().expect("a bound");
    assert_eq!(
        (bound.metric, bound.limit),
        (BoundMetric::P90, Nanos::from_millis(50))
    );
    assert_eq!(bound.to_string(), "p90<=50ms");
    assert!("p999=1.5s".parse::<Bound>().is_ok());
    for (text, hint) in [
        ("50ms", "has no `=`"),
        ("p95=50ms", "`p95` is not a figure"),
        ("p90=0", "cannot be met"),
        ("p90=fast", "fast"),
    ] {
        let error = text.parse::<Bound>().expect_err(text).to_string();
        assert!(error.contains(hint), "{text}: {error}");
    }
}
