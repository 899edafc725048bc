//! Limits, in virtual time.

use super::*;
use crate::fixture::trial as spec;
use crate::law::Law;
use crate::measure::Outcome;
use crate::spec::{
    ArrivalLaw, CloseKind, ConnectScheme, Load, OpenLoad, OverloadLoad, Pause, PauseKind, Rate,
    Share, TrialSpec,
};
use proptest::prelude::*;

const WINDOW: Nanos = Nanos::from_secs(3);

fn open(per_s: u64, arrival: ArrivalLaw) -> Load {
    Load::Open(OpenLoad {
        rate: Rate::per_second(per_s).unwrap(),
        arrival,
        connections_max: 10,
        in_flight_max: None,
    })
}

fn closed(vusers: u32, think: Nanos) -> Load {
    let (kind, law) = (PauseKind::Think, Law::Fixed(think));
    let pause = Pause { kind, law };
    Load::Closed { vusers, pause, stages: Vec::new() }
}

fn overload(scheme: ConnectScheme) -> Load {
    Load::Overload(OverloadLoad { scheme, close: CloseKind::Fin })
}

/// When and for when one worker starts operations that take `service` each.
fn starts(spec: &TrialSpec, share: Share, limit: &RateLimit, service: Nanos) -> Vec<(Nanos, Op)> {
    let mut driver = AnyDriver::new(spec, share).limited(Some(limit.clone()), spec);
    let mut under_way: VecDeque<(Nanos, Op)> = VecDeque::new();
    let mut starts = Vec::new();
    let mut now = Nanos::ZERO;
    let end = spec.window_end() + Nanos::from_secs(1);
    while now < end {
        while let Some(&(at, op)) = under_way.front()
            && at <= now
        {
            under_way.pop_front();
            driver.on_established(op.lane, now);
            driver.on_completion(&Completion::at_once(op, at, Outcome::Ok), now);
        }
        let ends = under_way.front().map_or(Nanos::MAX, |(at, _)| *at);
        now = match driver.poll(now) {
            Action::Start(op) | Action::Retry(op) => {
                starts.push((now, op));
                under_way.push_back((now + service, op));
                now
            }
            Action::Shed(_) => now,
            Action::WaitUntil(at) => at.max(now + Nanos(1)).min(ends),
            Action::WaitForCompletion => ends,
            Action::Done if under_way.is_empty() => break,
            Action::Done => ends,
        };
    }
    starts
}

fn any_load() -> impl Strategy<Value = Load> {
    let rate = || 10u64..2_000;
    prop_oneof![
        rate().prop_map(|per_s| open(per_s, ArrivalLaw::Constant)),
        rate().prop_map(|per_s| open(per_s, ArrivalLaw::Poisson)),
        (1u32..200, 0u64..20).prop_map(|(n, ms)| closed(n, Nanos::from_millis(ms))),
        (1u32..50).prop_map(|clients| overload(ConnectScheme::Simple { clients })),
        (1u32..300).prop_map(|descriptors| {
            let sclients = 1;
            overload(ConnectScheme::SClients { sclients, descriptors })
        }),
        rate().prop_map(|per_s| overload(ConnectScheme::Scheduled {
            rate: Rate::per_second(per_s).unwrap(),
            arrival: ArrivalLaw::Poisson,
            descriptors: 100,
        })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// In any time t, all workers together start no more than the limit times t, and the bursts.
    #[test]
    fn starts_in_any_window_obey_the_limit(
        load in any_load(),
        per_s in 1u32..1_500,
        workers in 1u32..4,
        service_us in 0u64..30_000,
        operations_max in proptest::option::of(1u64..3_000),
    ) {
        let mut spec = spec(load, WINDOW);
        spec.operations_max = operations_max;
        let per_s = f64::from(per_s);
        let mut all: Vec<Nanos> = (0..workers)
            .flat_map(|index| {
                let limit = RateLimit::part_of(per_s, workers);
                let share = Share { index, of: workers };
                starts(&spec, share, &limit, Nanos::from_micros(service_us))
            })
            .map(|(at, _)| at)
            .collect();
        all.sort();
        let burst = (per_s / 10.0).max(f64::from(2 * workers));
        for length in [Nanos(0), Nanos::from_millis(100), Nanos::from_secs(1), WINDOW] {
            let allowed = per_s * length.as_secs_f64() + burst + 1e-6;
            for (first, &from) in all.iter().enumerate() {
                let until = all.partition_point(|&at| at <= from + length);
                prop_assert!(
                    (until - first) as f64 <= allowed,
                    "{} within {length}, at most {allowed}",
                    until - first
                );
            }
        }
        // And from the beginning on not even a burst.
        for (n, &at) in all.iter().enumerate() {
            let allowed = per_s * at.as_secs_f64() + f64::from(workers) + 1e-6;
            prop_assert!((n + 1) as f64 <= allowed, "{} until {at}, at most {allowed}", n + 1);
        }
    }
}

#[test]
fn limited_users_are_paced_and_intended_when_the_limit_opens() {
    let limit = RateLimit::part_of(100.0, 1);
    let spec = spec(closed(16, Nanos::ZERO), WINDOW);
    let started = starts(&spec, Share::WHOLE, &limit, Nanos::from_micros(100));
    assert!((299..=301).contains(&started.len()), "{}", started.len());
    for (at, op) in &started {
        assert!(*at < WINDOW, "nothing starts after the window");
        assert!(*at - op.intended < Nanos::from_micros(1), "{at}: {op:?}");
    }
    let used = limit.used();
    assert_eq!((used.started, used.per_s), (started.len() as u64, 100.0));
    assert!(used.held_back >= used.started - 1, "{used:?}");
}

#[test]
fn load_below_the_limit_is_as_without_one() {
    let per_s = 1_000;
    for load in [
        open(per_s, ArrivalLaw::Constant),
        open(per_s / 2, ArrivalLaw::Poisson),
        closed(2, Nanos::from_millis(5)),
    ] {
        let spec = spec(load, WINDOW);
        let service = Nanos::from_micros(300);
        let limit = RateLimit::part_of(per_s as f64, 1);
        let limited = starts(&spec, Share::WHOLE, &limit, service);
        let free = starts(&spec, Share::WHOLE, &RateLimit::part_of(1e9, 1), service);
        let late = limited.iter().filter(|(at, op)| *at > op.intended).count();
        // Users that begin together are held back once, by the time of one operation.
        assert!(free.len() - limited.len() <= 1, "{:?}", spec.load);
        assert!(limit.used().held_back <= 5 && late <= 5, "{:?}", limit.used());
    }
}

#[test]
fn schedule_keeps_its_intended_times_behind_a_limit() {
    let spec = spec(open(200, ArrivalLaw::Constant), WINDOW);
    let limit = RateLimit::part_of(100.0, 1);
    let started = starts(&spec, Share::WHOLE, &limit, Nanos::ZERO);
    for (n, (_, op)) in started.iter().enumerate() {
        assert_eq!(op.intended, Nanos(5_000_000 * n as u64));
    }
    let (at, op) = started[200];
    assert!(at - op.intended >= Nanos::from_millis(900), "{at}: {op:?}");
}

#[test]
fn late_worker_makes_up_for_no_more_than_a_burst() {
    let limit = RateLimit::part_of(1_000.0, 1);
    assert!(limit.take(Nanos::ZERO) && !limit.take(Nanos::ZERO));
    let back = Nanos::from_secs(5);
    let at_once = (0..5_000).filter(|_| limit.take(back)).count();
    assert_eq!(at_once, 100);
}

#[test]
fn gate_holds_in_order_what_the_limit_does_not_let_through() {
    let mut gate = Gate::of(Some(RateLimit::part_of(10.0, 1)));
    assert_eq!(gate.pass(1, Nanos::ZERO), Some(1));
    assert_eq!((gate.pass(2, Nanos::ZERO), gate.next_due()), (None, Nanos::from_millis(100)));
    // One that comes when the limit is open does not overtake.
    assert_eq!(gate.pass(3, Nanos::from_millis(100)), None);
    assert_eq!(gate.release(Nanos::from_millis(100)), Some(2));
    assert_eq!(gate.release(Nanos::from_millis(199)), None);
    assert_eq!(gate.give_up(), [3]);
    assert_eq!(gate.next_due(), Nanos::MAX);
    let mut open = Gate::default();
    assert_eq!(open.pass(4, Nanos::ZERO), Some(4));
}
