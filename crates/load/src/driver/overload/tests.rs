//! Overload drivers in virtual time, against tiny servers.

use super::super::AnyDriver;
use super::*;
use crate::fixture::trial;
use crate::measure::Outcome;
use crate::spec::{CloseKind, ConnectScheme, Load, OverloadLoad};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// What a server makes of connects.
#[derive(Clone, Copy, Debug)]
enum Server {
    /// Serves this many per second, evenly, and keeps up to `queue` more. What finds the queue full
    /// is not answered.
    Serves { per_s: u64, queue: u64 },
    /// Answers none.
    Silent,
    /// Refuses each at once.
    Refuses,
}

/// All that a run yields: starts in their order, and how many were established and shed.
#[derive(Debug, Default)]
struct Seen {
    starts: Vec<Nanos>,
    lanes: Vec<u32>,
    established: u64,
    shed: u64,
    connecting_max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Happens {
    Established(u32),
    Ends(u32, Outcome, Nanos),
}

fn spec(scheme: ConnectScheme, patience_ms: u64, duration: Nanos) -> TrialSpec {
    let load = Load::Overload(OverloadLoad { scheme, close: CloseKind::Fin });
    TrialSpec { connect_timeout: Nanos::from_millis(patience_ms), ..trial(load, duration) }
}

fn s_clients(descriptors: u32) -> ConnectScheme {
    ConnectScheme::SClients { sclients: 1, descriptors }
}

/// How long a response takes once its connection is established: far longer than T.
const RESPONSE: Nanos = Nanos::from_millis(1_700);

/// Runs all workers' drivers at once against one server. Every wake-up is `late`.
fn run(spec: &TrialSpec, workers: u32, server: Server, late: Nanos) -> Seen {
    let share = |index| Share { index, of: workers };
    let mut drivers: Vec<AnyDriver> =
        (0..workers).map(|index| AnyDriver::new(spec, share(index))).collect();
    let mut agenda: BinaryHeap<Reverse<(Nanos, usize, Happens)>> = BinaryHeap::new();
    let mut seen = Seen::default();
    let (mut now, mut connecting, mut taken) = (Nanos::ZERO, 0_u64, 0_u64);
    loop {
        let mut wake = Nanos::MAX;
        for (index, driver) in drivers.iter_mut().enumerate() {
            let op = loop {
                match driver.poll(now) {
                    Action::Start(op) | Action::Retry(op) => {
                        seen.starts.push(op.intended);
                        seen.lanes.push(op.lane);
                        connecting += 1;
                        seen.connecting_max = seen.connecting_max.max(connecting);
                        let mut add = |at, what| agenda.push(Reverse((at, index, what)));
                        answer(spec, server, op, now, &mut taken, &mut add);
                    }
                    Action::Shed(_) => seen.shed += 1,
                    action => break action,
                }
            };
            if let Action::WaitUntil(moment) = op {
                wake = wake.min(moment + late);
            }
        }
        let next = agenda.peek().map_or(Nanos::MAX, |Reverse((at, ..))| *at);
        if wake == Nanos::MAX && next == Nanos::MAX {
            return seen;
        }
        now = now.max(wake.min(next));
        while let Some(&Reverse((at, index, what))) = agenda.peek()
            && at <= now
        {
            agenda.pop();
            match what {
                Happens::Established(lane) => {
                    connecting -= 1;
                    seen.established += 1;
                    drivers[index].on_established(lane, now);
                }
                Happens::Ends(lane, outcome, intended) => {
                    connecting -= u64::from(outcome != Outcome::Served);
                    let completion = Completion::at_once(Op { intended, lane }, now, outcome);
                    drivers[index].on_completion(&completion, now);
                }
            }
        }
    }
}

/// What comes of a connect that starts at `now`, `taken` having been taken in so far.
fn answer(
    spec: &TrialSpec,
    server: Server,
    op: Op,
    now: Nanos,
    taken: &mut u64,
    add: &mut impl FnMut(Nanos, Happens),
) {
    let ends = |outcome| Happens::Ends(op.lane, outcome, op.intended);
    match server {
        Server::Serves { per_s, queue } if *taken < now.0 * per_s / 1_000_000_000 + queue => {
            *taken += 1;
            let there = now + Nanos::from_micros(30);
            add(there, Happens::Established(op.lane));
            add(there + RESPONSE, ends(Outcome::Served));
        }
        Server::Refuses => add(now, ends(Outcome::Refused)),
        _ => add(now + spec.connect_timeout, ends(Outcome::ConnectTimeout)),
    }
}

/// The schedule of slots that nothing answers, in order.
fn unanswered(descriptors: u64, patience: Nanos, duration: Nanos) -> Vec<Nanos> {
    let at = |k: u64| patience.0 * (k / descriptors) + k % descriptors * patience.0 / descriptors;
    let moments = (0..).map(|k| Nanos(at(k)));
    moments.take_while(|&t| t < duration).collect()
}

#[test]
fn silent_or_refusing_server_is_offered_d_over_t() {
    let minute = Nanos::from_secs(60);
    for server in [Server::Silent, Server::Refuses] {
        for late in [Nanos::ZERO, Nanos::from_micros(70)] {
            let spec = spec(s_clients(64), 500, minute);
            let seen = run(&spec, 1, server, late);
            assert_eq!(seen.starts.len(), 64 * 120);
            let spacing = Nanos(500_000_000 / 64);
            assert!(seen.starts.windows(2).all(|w| w[1] - w[0] == spacing));
            let last = seen.starts[seen.starts.len() - 1];
            assert_eq!(last, minute - spacing, "no drift");
        }
    }
}

#[test]
fn what_is_established_is_replaced_at_once() {
    let ten = Nanos::from_secs(10);
    let server = Server::Serves { per_s: 130, queue: 128 };
    for descriptors in [100, 1_000] {
        for workers in [1, 3] {
            let spec = spec(s_clients(descriptors), 500, ten);
            let seen = run(&spec, workers, server, Nanos::ZERO);
            assert!((1_300..=1_428).contains(&seen.established), "{seen:?}");
            // Each that is established moves its slot's schedule, so the ends fall differently.
            let expected = seen.established + u64::from(descriptors) * 20;
            let most = u64::from(descriptors);
            assert!(
                (seen.starts.len() as u64).abs_diff(expected) <= most,
                "{} starts, not {expected}",
                seen.starts.len()
            );
            assert_eq!(seen.connecting_max, most);
        }
    }
}

#[test]
fn a_response_that_comes_late_does_not_disturb_its_old_slot() {
    let spec = spec(s_clients(1), 100, Nanos::from_secs(1));
    let mut driver = AnyDriver::new(&spec, Share::WHOLE);
    let ms = Nanos::from_millis;
    let start = |driver: &mut AnyDriver, at| match driver.poll(at) {
        Action::Start(op) => op,
        other => panic!("{other:?}"),
    };
    let first = start(&mut driver, ms(0));
    driver.on_established(first.lane, ms(3));
    let second = start(&mut driver, ms(3));
    assert_eq!(second.intended, ms(3));
    // The slot ignores all later events of the first.
    driver.on_established(first.lane, ms(4));
    driver.on_completion(&Completion::at_once(first, ms(5), Outcome::Served), ms(5));
    assert_eq!(driver.poll(ms(6)), Action::WaitUntil(ms(103)));
    let third = start(&mut driver, ms(104));
    assert_eq!(third.intended, ms(103));
    driver.on_established(second.lane, ms(105));
    assert_eq!(driver.poll(ms(106)), Action::WaitUntil(ms(203)));
}

#[test]
fn a_worker_that_stood_still_makes_up_for_all_of_it_in_order() {
    let spec = spec(s_clients(10), 100, Nanos::from_secs(1));
    let mut driver = AnyDriver::new(&spec, Share::WHOLE);
    let mut starts = Vec::new();
    while let Action::Start(op) = driver.poll(Nanos::from_millis(955)) {
        starts.push(op.intended);
    }
    let expected: Vec<Nanos> = (0..96).map(|k| Nanos::from_millis(10 * k)).collect();
    assert_eq!(starts, expected);
}

#[test]
fn exactly_so_many_are_started_where_a_number_is_given() {
    for workers in [1, 2, 7] {
        let mut spec = spec(s_clients(5), 500, Nanos::from_secs(3_600));
        spec.operations_max = Some(1_234);
        let seen = run(&spec, workers, Server::Silent, Nanos::ZERO);
        assert_eq!(seen.starts.len(), 1_234, "{workers} workers");
    }
}

#[test]
fn schedule_sheds_connects_beyond_the_limit() {
    let scheme = ConnectScheme::Scheduled {
        rate: Rate::per_second(1_000).unwrap(),
        arrival: ArrivalLaw::Constant,
        descriptors: 100,
    };
    let spec = spec(scheme, 500, Nanos::from_secs(10));
    let seen = run(&spec, 1, Server::Silent, Nanos::ZERO);
    // 100 connects of 500 ms each: 200 a second.
    assert_eq!(seen.starts.len(), 2_000);
    assert_eq!(seen.shed, 8_000);
    assert_eq!(seen.connecting_max, 100);
    let served = Server::Serves { per_s: 2_000, queue: 1 };
    let seen = run(&spec, 1, served, Nanos::ZERO);
    assert_eq!((seen.starts.len(), seen.shed), (10_000, 0));
    assert_eq!(seen.established, 10_000, "responses take no connect's place");
}

#[test]
fn simple_clients_offer_no_more_than_is_served() {
    let simple = ConnectScheme::Simple { clients: 8 };
    let spec = spec(simple, 500, Nanos::from_secs(10));
    let server = Server::Serves { per_s: 130, queue: 128 };
    let seen = run(&spec, 2, server, Nanos::ZERO);
    // Six responses of 1.7 s each, one after the other, end within 10 s; the last begin before.
    assert_eq!(seen.starts.len(), 8 * 6);
}

#[test]
fn tickets_are_issued_anew_before_they_run_out() {
    let mut tickets = Tickets(vec![u32::MAX - 3, 1, 2]);
    // MAX − 3 belongs to slot 0, as MAX is divisible by three.
    assert!(tickets.is_valid(u32::MAX - 3));
    assert_eq!(tickets.renew(u32::MAX - 3), 0);
    assert_eq!(tickets.renew(0), 3);
    assert!(!tickets.is_valid(0) && tickets.is_valid(3));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn slots_of_all_workers_are_spread_evenly(
        descriptors in 1u32..200, patience_ms in 1u64..900, workers in 1u32..6, refuses: bool,
    ) {
        let duration = Nanos::from_secs(3);
        let spec = spec(s_clients(descriptors), patience_ms, duration);
        let server = if refuses { Server::Refuses } else { Server::Silent };
        let mut seen = run(&spec, workers, server, Nanos::ZERO);
        seen.starts.sort_unstable();
        let patience = Nanos::from_millis(patience_ms);
        let expected = unanswered(descriptors.into(), patience, duration);
        prop_assert_eq!(seen.starts, expected);
        prop_assert_eq!(seen.shed, 0);
    }

    #[test]
    fn starts_are_what_was_established_and_d_over_t(
        descriptors in 1u32..200, patience_ms in 50u64..900, workers in 1u32..6,
        per_s in 1u64..500, queue in 0u64..200,
    ) {
        let spec = spec(s_clients(descriptors), patience_ms, Nanos::from_secs(4));
        let server = Server::Serves { per_s, queue };
        let seen = run(&spec, workers, server, Nanos::ZERO);
        let by_time = f64::from(descriptors) * 4_000.0 / patience_ms as f64;
        let expected = seen.established as f64 + by_time;
        // A slot that is established moves its schedule, by the 30 µs that it took.
        let deviation = (seen.starts.len() as f64 - expected).abs();
        prop_assert!(deviation <= f64::from(descriptors) + seen.established as f64 * 1e-3 + 1.0,
            "{} starts, {expected}", seen.starts.len());
        prop_assert!(seen.connecting_max <= u64::from(descriptors));
    }
}
