//! Retries, poll by poll.

use super::*;
use crate::fixture::trial;
use crate::spec::{ArrivalLaw, Backoff, Jitter, Load, OpenLoad, Pause, Rate, RetryCauses};
use proptest::prelude::*;

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn policy(retries_max: u32, budget: Option<f64>) -> RetryPolicy {
    RetryPolicy {
        retries_max,
        backoff: Backoff::Exp(ms(10), ms(1_000)),
        jitter: Jitter::None,
        budget,
        causes: RetryCauses::DEFAULT,
    }
}

fn open(per_s: u64) -> Load {
    Load::Open(OpenLoad {
        rate: Rate::per_second(per_s).unwrap(),
        arrival: ArrivalLaw::Constant,
        connections_max: 10,
        in_flight_max: None,
    })
}

fn driver(load: Load, duration: Nanos, policy: RetryPolicy) -> AnyDriver {
    let spec = TrialSpec { retry: Some(policy), ..trial(load, duration) };
    AnyDriver::new(&spec, Share::WHOLE)
}

fn op(intended: Nanos, lane: u32) -> Op {
    Op { intended, lane }
}

fn end(driver: &mut AnyDriver, op: Op, at: Nanos, outcome: Outcome) {
    driver.on_completion(&Completion::at_once(op, at, outcome), at);
}

#[test]
fn failed_attempt_is_retried_after_its_pause() {
    let mut driver = driver(open(10), ms(1_000), policy(2, None));
    let first = op(ms(0), 0);
    assert_eq!(driver.poll(ms(0)), Action::Start(first));
    end(&mut driver, first, ms(5), Outcome::Timeout);
    assert_eq!(driver.poll(ms(5)), Action::WaitUntil(ms(15)));
    let second = op(ms(15), 0);
    assert_eq!(driver.poll(ms(16)), Action::Retry(second));
    end(&mut driver, second, ms(20), Outcome::HTTP_5XX);
    assert_eq!(driver.poll(ms(40)), Action::Retry(op(ms(40), 0)));
    // The second retry was the last.
    end(&mut driver, op(ms(40), 0), ms(50), Outcome::Timeout);
    assert_eq!(driver.poll(ms(50)), Action::WaitUntil(ms(100)));
    let measured = driver.finish(ms(1_000)).unwrap();
    assert_eq!((measured.offered, measured.attempted), (1, 3));
    assert_eq!((measured.good, measured.failed), (0, 1));
    assert_eq!((measured.retries, measured.retries_started), (2, 2));
}

#[test]
fn failures_have_their_causes() {
    let ends = |outcome, status| {
        let ended = Completion::at_once(op(ms(0), 0), ms(1), outcome);
        cause_of(&Completion { status, ..ended })
    };
    assert_eq!(ends(Outcome::Timeout, 0), Some(RetryCause::Timeout));
    assert_eq!(ends(Outcome::HTTP_4XX, 429), Some(RetryCause::Http429));
    assert_eq!(ends(Outcome::HTTP_4XX, 404), None);
    assert_eq!(ends(Outcome::HTTP_5XX, 503), Some(RetryCause::Http5xx));
    assert_eq!(ends(Outcome::StreamError, 200), Some(RetryCause::StreamError));
    assert_eq!(ends(Outcome::Ok, 200), None);
    assert_eq!(ends(Outcome::InFlight, 0), None);
}

#[test]
fn good_and_other_failures_are_not_retried() {
    for outcome in [Outcome::Ok, Outcome::HTTP_4XX, Outcome::Malformed] {
        let mut driver = driver(open(10), ms(1_000), policy(3, None));
        let first = op(ms(0), 0);
        assert_eq!(driver.poll(ms(0)), Action::Start(first));
        end(&mut driver, first, ms(5), outcome);
        assert_eq!(driver.poll(ms(5)), Action::WaitUntil(ms(100)), "{outcome:?}");
        // The place is free for the next request.
        assert_eq!(driver.poll(ms(100)), Action::Start(op(ms(100), 0)));
        let measured = driver.finish(ms(1_000)).unwrap();
        let is_good = u64::from(outcome.is_good());
        assert_eq!((measured.good, measured.failed), (is_good, 1 - is_good));
    }
}

#[test]
fn served_retry_counts_once_from_the_first_attempt() {
    let mut driver = driver(open(10), ms(1_000), policy(1, None));
    assert_eq!(driver.poll(ms(0)), Action::Start(op(ms(0), 0)));
    end(&mut driver, op(ms(0), 0), ms(20), Outcome::Refused);
    assert_eq!(driver.poll(ms(30)), Action::Retry(op(ms(30), 0)));
    end(&mut driver, op(ms(30), 0), ms(37), Outcome::Ok);
    let measured = driver.finish(ms(1_000)).unwrap();
    assert_eq!((measured.good, measured.failed, measured.attempted), (1, 0, 2));
    assert_eq!(measured.served.max().0 / 1_000_000, 37);
}

#[test]
fn no_retry_starts_after_the_window() {
    let mut driver = driver(open(10), ms(100), policy(1, None));
    assert_eq!(driver.poll(ms(0)), Action::Start(op(ms(0), 0)));
    end(&mut driver, op(ms(0), 0), ms(95), Outcome::Timeout);
    assert_eq!(driver.poll(ms(95)), Action::WaitUntil(ms(100)));
    assert_eq!(driver.poll(ms(100)), Action::Done);
    let measured = driver.finish(ms(100)).unwrap();
    assert_eq!((measured.offered, measured.good, measured.failed), (1, 0, 0));
}

#[test]
fn spent_budget_ends_the_request() {
    let mut driver = driver(open(1_000), ms(1_000), policy(3, Some(0.1)));
    let mut retries = 0;
    let mut now = ms(0);
    while now < ms(500) {
        match driver.poll(now) {
            Action::Start(op) => end(&mut driver, op, now, Outcome::Timeout),
            Action::Retry(op) => {
                retries += 1;
                end(&mut driver, op, now, Outcome::Timeout);
            }
            Action::WaitUntil(at) => now = at,
            other => panic!("{other:?}"),
        }
    }
    let measured = driver.finish(ms(1_000)).unwrap();
    assert!((40..=50).contains(&retries), "{retries} of {}", measured.offered);
    assert!(measured.over_budget > 400, "{}", measured.over_budget);
}

#[test]
fn user_retries_on_its_own_lane_before_it_pauses() {
    let load = Load::Closed { vusers: 2, pause: Pause::NONE, stages: Vec::new() };
    let mut driver = driver(load, ms(1_000), policy(1, None));
    assert_eq!(driver.poll(ms(0)), Action::Start(op(ms(0), 0)));
    let second = op(Nanos::from_micros(20), 1);
    assert_eq!(driver.poll(ms(1)), Action::Start(second));
    end(&mut driver, second, ms(2), Outcome::HTTP_5XX);
    assert_eq!(driver.poll(ms(2)), Action::WaitUntil(ms(12)));
    assert_eq!(driver.poll(ms(12)), Action::Retry(op(ms(12), 1)));
    end(&mut driver, op(ms(12), 1), ms(13), Outcome::Ok);
    assert_eq!(driver.poll(ms(13)), Action::Start(op(ms(13), 1)));
}

proptest! {
    /// Requests sum up whatever becomes of attempts, and shares of workers merge exactly.
    #[test]
    fn requests_sum_up(
        ends in proptest::collection::vec((0_usize..4, 1_u64..60), 1..200),
        retries in 1_u32..5,
        jitter in any::<bool>(),
        budget in proptest::option::of(0.05_f64..1.0),
    ) {
        let jitter = if jitter { Jitter::Full } else { Jitter::None };
        let policy = RetryPolicy { jitter, ..policy(retries, budget) };
        let mut driver = driver(open(200), ms(1_000), policy);
        let (mut now, mut under_way, mut next) = (ms(0), Vec::<(Nanos, Op, Outcome)>::new(), 0);
        let mut started = 0;
        loop {
            let action = driver.poll(now);
            if let Action::Start(op) | Action::Retry(op) = action {
                prop_assert!(op.intended <= now && op.intended < ms(1_000));
                let (end, takes) = ends[next % ends.len()];
                next += 1;
                started += 1;
                let all = [Outcome::Ok, Outcome::Timeout, Outcome::HTTP_5XX, Outcome::HTTP_4XX];
                under_way.push((now + ms(takes), op, all[end]));
                continue;
            }
            let wakes = match action {
                Action::WaitUntil(at) => at,
                _ => Nanos::MAX,
            };
            under_way.sort_by_key(|(at, ..)| *at);
            match under_way.first().copied() {
                Some((at, op, outcome)) if at <= wakes => {
                    now = now.max(at);
                    under_way.remove(0);
                    end(&mut driver, op, now, outcome);
                }
                _ if wakes < Nanos::MAX => now = now.max(wakes),
                _ => break,
            }
        }
        let measured = driver.finish(ms(1_000)).unwrap();
        prop_assert_eq!(measured.offered, 200);
        prop_assert_eq!(measured.attempted, started);
        prop_assert!(measured.good + measured.failed <= measured.offered);
        prop_assert!(measured.attempted <= measured.offered * u64::from(retries + 1));
        let of_slots = |of: fn(&crate::measure::AttemptsSlot) -> u64| {
            measured.slots.iter().map(of).sum::<u64>()
        };
        prop_assert_eq!(of_slots(|slot| slot.offered), measured.offered);
        prop_assert_eq!(of_slots(|slot| slot.attempted), measured.attempted);
        let mut twice = measured.clone();
        twice.merge(measured.clone());
        prop_assert_eq!(twice.good, 2 * measured.good);
        prop_assert_eq!(twice.slots[0].offered, 2 * measured.slots[0].offered);
    }
}
