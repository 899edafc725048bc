//! Waits of sentinels by hand, each with the nearest case that is another.

use super::QueueTrend::{Calm, Falls, OutOfOrder, Stays, Unknown, Unseen};
use super::*;
use crate::measure::SentinelEnd::{Answered, Pending, Refused};

const SECOND: u64 = 1_000_000_000;

/// An overload from 5 to 10 s, whose retries have ended at 12 s.
const SPEC: SentinelSpec = SentinelSpec {
    every: Nanos(SECOND),
    before: Nanos(5 * SECOND),
    harmless: Nanos(SECOND / 10),
    from: Nanos(12 * SECOND),
    ends_from: Nanos(20 * SECOND),
    undecided_until: Nanos(80 * SECOND),
    follows_fall: false,
    calm: Nanos(2 * SECOND),
};

/// Sentinels of 10 ms before the overload, a wait that rises by 2 s per second in it, and then these
/// waits in seconds; what they show at `at_s`.
fn trend(after: impl Fn(f64) -> f64, at_s: f64) -> QueueTrend {
    QueueTrend::of(&samples(after, at_s), &SPEC, Nanos::from_secs_f64(at_s))
}

fn samples(after: impl Fn(f64) -> f64, at_s: f64) -> Vec<SentinelSample> {
    let wait = |began: f64| match began {
        ..5.0 => 0.01,
        ..=10.0 => 2.0 * (began - 5.0) + 0.01,
        _ => after(began - 10.0),
    };
    let begins = (0..at_s as u64).map(|second| second as f64);
    let sample = |began: f64| {
        let wait = wait(began);
        let is_back = began + wait <= at_s;
        SentinelSample {
            began_ns: (began * 1e9) as u64,
            wait_ns: if is_back { (wait * 1e9) as u64 } else { 0 },
            end: if is_back { Answered } else { Pending },
        }
    };
    begins.map(sample).collect()
}

#[test]
fn fall_is_seen_with_its_rate_once_three_are_back() {
    let falls = |s: f64| (10.0 - 0.31 * s).max(0.01);
    // Those that began at 12 and 13 s are back.
    assert!(matches!(trend(falls, 22.5), Unknown { .. }));
    let Falls(queue) = trend(falls, 24.0) else { panic!("{:?}", trend(falls, 24.0)) };
    assert!((queue.falls_s_per_s - 0.31).abs() < 1e-6, "{queue:?}");
    // It is empty 10 / 0.31 s after the overload, at 42.2 s.
    assert!((queue.back_in.as_secs_f64() - 18.2).abs() < 0.1, "{queue:?}");
    assert!(matches!(trend(falls, 50.0), Calm { .. }));
}

#[test]
fn wait_that_rises_or_is_constant_for_10_s_stays() {
    for slope in [0.0, 0.1, 1.0] {
        let after = |s: f64| 10.0 + slope * s;
        assert!(!matches!(trend(after, 21.5), Stays { .. }), "{slope}");
        assert!(matches!(trend(after, 60.0), Stays { .. }), "{slope}: {:?}", trend(after, 60.0));
    }
    // Nothing of what began since is back: it may fall.
    assert!(matches!(trend(|_| 100.0, 70.0), Unknown { .. }));
}

/// Retries of what timed out keep a queue at a length, with moves that a walk would have too.
#[test]
fn wait_that_hovers_stays_and_one_that_falls_does_not() {
    let moves = [0.3, -0.7, 0.9, 0.1, -0.9, 0.6, -0.2];
    let hovers = |s: f64| 14.5 + moves[s as usize % moves.len()];
    assert!(matches!(trend(hovers, 70.0), Stays { .. }), "{:?}", trend(hovers, 70.0));
    assert!(!matches!(trend(hovers, 30.0), Stays { .. }), "{:?}", trend(hovers, 30.0));
    for slope in [0.06, 0.1, 0.3] {
        let falls = |s: f64| (hovers(s) - slope * s).max(0.01);
        for at_s in [30.0, 50.0, 70.0] {
            assert!(!matches!(trend(falls, at_s), Stays { .. }), "{slope} at {at_s}");
        }
    }
}

#[test]
fn freeze_of_the_server_does_not_hide_a_fall() {
    // From the tenth second on each waits for 2 s more.
    let after = |s: f64| (10.0 - 0.3 * s + if s >= 10.0 { 2.0 } else { 0.0 }).max(0.01);
    for at_s in [24.0, 28.0, 30.0, 32.0, 36.0] {
        assert!(!matches!(trend(after, at_s), Stays { .. }), "{at_s}: {:?}", trend(after, at_s));
    }
    assert!(matches!(trend(after, 40.0), Falls(_)), "{:?}", trend(after, 40.0));
}

#[test]
fn refusals_again_and_again_are_a_queue_at_its_limit() {
    let limited = |every: usize| {
        let mut all = samples(|s| 10.0 + 0.2 * (s * 7.0).sin(), 40.0);
        all.iter_mut().filter(|s| s.began() > SPEC.from).step_by(every).for_each(|sample| {
            (sample.wait_ns, sample.end) = (1_000_000, Refused);
        });
        QueueTrend::of(&all, &SPEC, Nanos::from_secs(40))
    };
    assert!(matches!(limited(2), Stays { .. }), "{:?}", limited(2));
    // A single refusal shows no limit.
    assert!(matches!(limited(100), Unknown { .. } | Stays { .. }), "{:?}", limited(100));
}

#[test]
fn queue_that_is_not_first_come_first_served_is_told_apart() {
    // The newest first: those of the overload are still there.
    let mut newest_first = samples(|_| 0.01, 30.0);
    newest_first[6..=10].iter_mut().for_each(|s| (s.wait_ns, s.end) = (0, Pending));
    assert_eq!(QueueTrend::of(&newest_first, &SPEC, Nanos::from_secs(30)), OutOfOrder);
    // A single one that is lost is no order.
    newest_first[7..=10].iter_mut().for_each(|s| (s.wait_ns, s.end) = (SECOND, Answered));
    let single = QueueTrend::of(&newest_first, &SPEC, Nanos::from_secs(30));
    assert!(matches!(single, Calm { .. }), "{single:?}");
}

#[test]
fn nothing_is_known_without_a_wait_from_before() {
    let mut late = samples(|s| 10.0 - 0.3 * s, 30.0);
    late.retain(|sample| sample.began() >= SPEC.before);
    assert_eq!(QueueTrend::of(&late, &SPEC, Nanos::from_secs(30)), Unseen);
}
