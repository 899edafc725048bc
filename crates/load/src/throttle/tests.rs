//! Throttles in virtual time, turn by turn.

use super::*;
use crate::arrival::{ArrivalProcess, Burst, Poisson, Ramp, Trace, Uniform};
use proptest::prelude::*;

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn per_s(operations: u64) -> Throttle {
    Throttle::constant(Rate::per_second(operations).unwrap())
}

fn at_rate(rate: Rate, catch_up: CatchUp, wait_min: Nanos) -> Throttle {
    Throttle::new(Arrivals::Constant(Constant::new(rate, Share::WHOLE)), catch_up, wait_min)
}

fn catching_up(operations: u64, catch_up: CatchUp) -> Throttle {
    at_rate(Rate::per_second(operations).unwrap(), catch_up, Nanos::ZERO)
}

fn waiting(operations: u64, wait_min: Nanos) -> Throttle {
    at_rate(Rate::per_second(operations).unwrap(), CatchUp::ALL, wait_min)
}

/// An operation that was made.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Made {
    begun: Nanos,
    intended: Nanos,
}

/// Operates until `end`, or the schedule's. `lasts` gives the time of each operation by its number
/// and begin. `oversleeps` gives by how much each wait is too long, by its time.
fn run(
    throttle: &mut Throttle,
    end: Nanos,
    lasts: impl Fn(usize, Nanos) -> Nanos,
    oversleeps: impl Fn(Nanos) -> Nanos,
) -> Vec<Made> {
    let (mut now, mut made) = (Nanos::ZERO, Vec::new());
    while now < end {
        match throttle.poll(now) {
            Turn::Operate { intended } => {
                made.push(Made { begun: now, intended });
                now += lasts(made.len() - 1, now);
            }
            Turn::WaitUntil(moment) => {
                assert!(moment > now);
                now = moment + oversleeps(moment);
            }
            Turn::Done => break,
        }
    }
    made
}

fn never(_: Nanos) -> Nanos {
    Nanos::ZERO
}

#[test]
fn rate_has_no_drift_whatever_operations_take() {
    for lasts in [0, 100, 900].map(us) {
        let mut throttle = per_s(1_000);
        let end = Nanos::from_secs(300);
        let made = run(&mut throttle, end, |_, _| lasts, |_| us(70));
        assert_eq!(made.len(), 300_000, "{lasts}");
        for (k, op) in made.iter().enumerate() {
            let planned = ms(k as u64);
            assert_eq!(op.intended, planned);
            // Overslept each time, but never by more than one wait's worth.
            assert!(op.begun - planned <= us(70), "{k} at {}", op.begun);
        }
    }
}

#[test]
fn one_per_hour_and_millions_per_second_stay_on_their_schedules() {
    for rate in
        [Rate::new(1, Nanos::from_secs(3_600)).unwrap(), Rate::per_second(7_000_000).unwrap()]
    {
        let mut throttle = Throttle::constant(rate).with_operations_max(100_000);
        let made = run(&mut throttle, Nanos::MAX, |_, _| Nanos(90), never);
        assert_eq!(made.len(), 100_000);
        for (k, op) in made.iter().enumerate() {
            let planned = rate.moment(k as u64);
            assert_eq!((op.begun, op.intended), (planned, planned));
        }
    }
}

#[test]
fn short_waits_are_gathered_into_groups_of_25_every_12_5_ms() {
    let mut throttle = waiting(2_000, ms(10));
    let made = run(&mut throttle, Nanos::from_secs(10), |_, _| us(100), never);
    assert_eq!(made.len(), 20_000);
    for (k, op) in made.iter().enumerate() {
        let (group, within) = (k as u64 / 25, k as u64 % 25);
        assert_eq!(op.begun, us(12_500 * group + 100 * within), "{k}");
        assert_eq!(op.intended, us(500 * k as u64));
    }
}

#[test]
fn ten_a_minute_of_2_s_wait_4_s_each() {
    for wait_min in [Nanos::ZERO, ms(10), Nanos::from_secs(4)] {
        let rate = Rate::new(10, Nanos::from_secs(60)).unwrap();
        let mut throttle = at_rate(rate, CatchUp::ALL, wait_min);
        for k in 0..100 {
            let begun = Nanos::from_secs(6 * k);
            assert_eq!(throttle.poll(begun), Turn::Operate { intended: begun });
            let next = Turn::WaitUntil(begun + Nanos::from_secs(6));
            assert_eq!(throttle.poll(begun + Nanos::from_secs(2)), next);
        }
    }
}

#[test]
fn wait_is_made_from_exactly_the_least_wait_on() {
    let mut throttle = waiting(1_000, us(300));
    assert_eq!(throttle.poll(ms(0)), Turn::Operate { intended: ms(0) });
    assert_eq!(throttle.poll(us(700)), Turn::WaitUntil(ms(1)));
    let early = us(700) + Nanos(1);
    assert_eq!(throttle.poll(early), Turn::Operate { intended: ms(1) });
}

#[test]
fn first_operation_is_never_early_in_a_group() {
    let moments = [ms(5), ms(6)].into();
    let arrivals = Arrivals::Trace(Trace::new(moments, Share::WHOLE));
    let mut throttle = Throttle::new(arrivals, CatchUp::ALL, ms(10));
    assert_eq!(throttle.poll(ms(0)), Turn::WaitUntil(ms(5)));
    assert_eq!(throttle.poll(ms(5)), Turn::Operate { intended: ms(5) });
    assert_eq!(throttle.poll(ms(5)), Turn::Operate { intended: ms(6) });
    assert_eq!(throttle.poll(ms(5)), Turn::Done);
    assert_eq!(throttle.poll(Nanos::MAX), Turn::Done);
}

/// 1,000/s where the operation of 100 ms takes 50 ms: all that is made from then until 250 ms.
fn after_a_stall(catch_up: CatchUp) -> (Vec<Made>, Throttle) {
    let mut throttle = catching_up(1_000, catch_up);
    let stalls = |k, _| if k == 100 { ms(50) } else { Nanos::ZERO };
    let mut made = run(&mut throttle, ms(250), stalls, never);
    for (k, op) in made.drain(..101).enumerate() {
        assert_eq!((op.begun, op.intended), (ms(k as u64), ms(k as u64)));
    }
    (made, throttle)
}

/// Operations by the times at which they begin (µs) and for which they count (ms).
fn sequence(moments: impl Iterator<Item = (u64, u64)>) -> Vec<Made> {
    let made = moments.map(|(begun, intended)| Made { begun: us(begun), intended: ms(intended) });
    made.collect()
}

#[test]
fn a_burst_makes_all_50_at_once() {
    let (made, throttle) = after_a_stall(CatchUp::ALL);
    let expected = (101..250).map(|k| (k.max(150) * 1_000, k));
    assert_eq!(made, sequence(expected));
    assert_eq!((throttle.skipped(), throttle.shifted()), (0, Nanos::ZERO));
}

#[test]
fn a_burst_of_20_skips_30_and_makes_20_at_once() {
    let (made, throttle) = after_a_stall(CatchUp::Burst(20));
    let expected = (131..250).map(|k| (k.max(150) * 1_000, k));
    assert_eq!(made, sequence(expected));
    assert_eq!((throttle.skipped(), throttle.shifted()), (30, Nanos::ZERO));
}

#[test]
fn skip_skips_49_and_is_on_time_again_at_once() {
    let (made, throttle) = after_a_stall(CatchUp::Skip);
    assert_eq!(made, sequence((150..250).map(|k| (k * 1_000, k))));
    assert_eq!((throttle.skipped(), throttle.shifted()), (49, Nanos::ZERO));
}

#[test]
fn spread_at_twice_the_rate_catches_up_at_199_ms() {
    let (made, throttle) = after_a_stall(CatchUp::Spread(2.0));
    let expected = (101..250).map(|k| ((150_000 + (k - 101) * 500).max(k * 1_000), k));
    assert_eq!(made, sequence(expected));
    assert!(made.iter().all(|op| op.begun > op.intended || op.intended >= ms(199)));
    assert_eq!((throttle.skipped(), throttle.shifted()), (0, Nanos::ZERO));
}

#[test]
fn delay_moves_the_rest_back_by_49_ms() {
    let (made, throttle) = after_a_stall(CatchUp::Delay);
    assert_eq!(made, sequence((150..250).map(|k| (k * 1_000, k))));
    assert_eq!((throttle.skipped(), throttle.shifted()), (0, ms(49)));
}

#[test]
fn no_policy_skips_or_moves_anything_for_a_lateness_below_a_gap() {
    for catch_up in [CatchUp::Burst(1), CatchUp::Skip, CatchUp::Delay] {
        let mut throttle = catching_up(1_000, catch_up);
        let made = run(&mut throttle, ms(1_000), |_, _| us(999), |_| us(999));
        assert_eq!(made.len(), 1_000, "{catch_up}");
        assert_eq!((throttle.skipped(), throttle.shifted()), (0, Nanos::ZERO));
    }
}

#[test]
fn a_spread_is_gathered_into_groups_of_its_own_rate() {
    let catch_up = CatchUp::Spread(2.0);
    let mut throttle = at_rate(Rate::per_second(1_000).unwrap(), catch_up, ms(10));
    // Polled for the first time after 50 ms: 20 operations per 10 ms until the schedule is reached.
    let mut begun = Vec::new();
    for now in [50, 60, 70].map(ms) {
        while let Turn::Operate { .. } = throttle.poll(now) {
            begun.push(now);
        }
        assert_eq!(throttle.poll(now), Turn::WaitUntil(now + ms(10)));
    }
    let of = |now| begun.iter().filter(|&&at| at == now).count();
    assert_eq!([50, 60, 70].map(|t| of(ms(t))), [20, 20, 20]);
}

#[test]
fn an_hour_at_a_million_per_second_is_skipped_in_no_time() {
    let an_hour = Nanos::from_secs(3_600);
    let rate = Rate::per_second(1_000_000).unwrap();
    let moments: Vec<Nanos> = (0..1_000_000).map(Nanos::from_micros).collect();
    let ramp = Ramp::new(rate, rate, ms(1), Share::WHOLE);
    let burst = Burst::new(rate, 2.0, 0.5, ms(10), Share::WHOLE);
    let trace = Trace::new(moments.into(), Share::WHOLE);
    for (arrivals, due) in [
        (Arrivals::Constant(Constant::new(rate, Share::WHOLE)), 3_600_000_001),
        (Arrivals::Ramp(ramp), 3_600_000_001),
        (Arrivals::Burst(burst), 3_600_000_001),
        (Arrivals::Trace(trace), 1_000_000),
    ] {
        let mut throttle = Throttle::new(arrivals, CatchUp::Burst(3), Nanos::ZERO);
        let mut made = 0;
        while let Turn::Operate { .. } = throttle.poll(an_hour) {
            made += 1;
        }
        assert_eq!((made, throttle.skipped()), (3, due - 3));
    }
}

#[test]
fn a_policy_out_of_range_is_taken_for_the_nearest_that_works() {
    let (mut none, mut one) = (catching_up(10, CatchUp::Burst(0)), catching_up(10, CatchUp::Skip));
    let (mut slow, mut even) =
        (catching_up(10, CatchUp::Spread(f64::NAN)), catching_up(10, CatchUp::Spread(1.0)));
    for t in 0..100 {
        let now = ms(t * 77);
        assert_eq!(none.poll(now), one.poll(now));
        assert_eq!(slow.poll(now), even.poll(now));
    }
}

#[test]
fn an_operations_limit_counts_those_that_are_left_out() {
    for catch_up in [CatchUp::ALL, CatchUp::Skip, CatchUp::Burst(4), CatchUp::Delay] {
        for n in [0, 1, 2, 7] {
            let mut throttle = catching_up(10, catch_up).with_operations_max(n);
            let made = run(&mut throttle, Nanos::MAX, |_, _| ms(330), never);
            assert_eq!(made.len() as u64 + throttle.skipped(), n, "{catch_up}");
        }
    }
}

#[test]
fn ten_calls_over_four_lanes_are_ten_calls() {
    let mut lanes = Lanes::new(4, 10);
    let (mut running, mut most, mut values) = (Vec::new(), 0, Vec::new());
    while !lanes.is_done() {
        while let Some(call) = lanes.begin() {
            running.push(call);
        }
        most = most.max(running.len());
        assert_eq!(lanes.in_flight(), running.len() as u64);
        // Those in the middle end first: results come as they come.
        let call = running.remove(running.len() / 2);
        let number = call.number();
        let std::ops::ControlFlow::Continue(value) = lanes.end(call, Ok::<_, ()>(number)) else {
            panic!("no call fails");
        };
        values.push(value);
    }
    values.sort_unstable();
    assert_eq!(values, (0..10).collect::<Vec<_>>());
    assert_eq!((most, lanes.begun(), lanes.succeeded()), (4, 10, 10));
}

#[test]
fn without_lanes_or_calls_all_is_done() {
    for (n, total) in [(0, 10), (4, 0)] {
        let mut lanes = Lanes::new(n, total);
        assert!(lanes.is_done() && !lanes.is_free() && lanes.begin().is_none());
    }
}

#[test]
fn lanes_hold_a_rate_with_a_throttle() {
    // 100/s of 35 ms over 4 lanes: no operation waits for a lane, four are in flight at most.
    let mut throttle = per_s(100).with_operations_max(50);
    let mut lanes = Lanes::new(4, 50);
    let (mut now, mut ends, mut begun) = (Nanos::ZERO, Vec::new(), Vec::new());
    while !lanes.is_done() {
        let turn = if lanes.is_free() { throttle.poll(now) } else { Turn::Done };
        if let Turn::Operate { .. } = turn {
            begun.push(now);
            ends.push((now + ms(35), lanes.begin().unwrap()));
            continue;
        }
        let end = ends.first().map(|&(end, _)| end);
        now = match (turn, end) {
            (Turn::WaitUntil(moment), Some(end)) => moment.min(end),
            (Turn::WaitUntil(moment), None) => moment,
            (_, end) => end.unwrap(),
        };
        if end == Some(now) {
            let (_, call) = ends.remove(0);
            assert!(lanes.end(call, Ok::<_, ()>(())).is_continue());
        }
    }
    assert_eq!(begun, (0..50).map(|k| ms(10 * k)).collect::<Vec<_>>());
}

fn any_arrivals() -> impl Strategy<Value = Arrivals> {
    // From one per hour to millions per second.
    let rate = prop_oneof![
        (1u64..20, 60u64..=3_600).prop_map(|(n, s)| Rate::new(n, Nanos::from_secs(s)).unwrap()),
        (1u64..5_000_000).prop_map(|n| Rate::per_second(n).unwrap()),
    ];
    (rate, 0..6, any::<u64>()).prop_map(|(rate, which, seed)| {
        let whole = Share::WHOLE;
        let poisson = Poisson::new(rate, whole, seed);
        match which {
            0 => Arrivals::Constant(Constant::new(rate, whole)),
            1 => Arrivals::Uniform(Uniform::new(rate, whole, seed)),
            2 => Arrivals::Burst(Burst::new(rate, 3.0, 0.2, ms(100), whole)),
            3 => {
                let to = Rate::new(rate.operations() * 3, rate.period()).unwrap();
                Arrivals::Ramp(Ramp::new(rate, to, ms(500), whole))
            }
            4 => {
                let mut poisson = poisson;
                let moments: Vec<Nanos> = (0..500).map_while(|_| poisson.next()).collect();
                Arrivals::Trace(Trace::new(moments.into(), whole))
            }
            _ => Arrivals::Poisson(poisson),
        }
    })
}

/// How long operations take, in thousandths of the mean gap: mostly little, sometimes a stall.
fn any_stalls() -> impl Strategy<Value = Vec<u64>> {
    let one = prop_oneof![3 => 0u64..900, 1 => 900u64..60_000];
    prop::collection::vec(one, 1..40)
}

const N: u64 = 400;

/// The first `N` times of a schedule, and what becomes of them. Operations take the times in
/// `stalls`, and each wait is a tenth of a gap too long.
fn made_of(
    arrivals: &Arrivals,
    catch_up: CatchUp,
    wait_min: u64,
    stalls: &[u64],
) -> (Vec<Nanos>, Vec<Made>, Throttle) {
    let mut source = arrivals.clone();
    let moments: Vec<Nanos> = (0..N).map_while(|_| source.next()).collect();
    let gap = *moments.last().unwrap() - moments[0];
    let part =
        |thousandths: u64| Nanos((gap.0 as f64 / N as f64 / 1e3 * thousandths as f64) as u64);
    let throttle = Throttle::new(arrivals.clone(), catch_up, part(wait_min));
    let mut throttle = throttle.with_operations_max(N);
    let lasts = |k: usize, _| part(stalls[k % stalls.len()]);
    let made = run(&mut throttle, Nanos::MAX, lasts, |_| part(100));
    (moments, made, throttle)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_burst_without_bound_makes_every_operation(
        arrivals in any_arrivals(), stalls in any_stalls(), wait_min in 0u64..20_000,
    ) {
        let (moments, made, throttle) = made_of(&arrivals, CatchUp::ALL, wait_min, &stalls);
        let intended: Vec<Nanos> = made.iter().map(|op| op.intended).collect();
        prop_assert_eq!(intended, moments);
        prop_assert_eq!(throttle.skipped(), 0);
        for op in made.iter().skip(1).filter(|op| op.begun < op.intended) {
            prop_assert!(op.intended - op.begun < throttle.lead_later + Nanos(1));
        }
    }

    /// Whatever is due is either made or counted as skipped, and a made one is never older than
    /// the newest `max`.
    #[test]
    fn what_is_not_made_is_counted(
        arrivals in any_arrivals(), stalls in any_stalls(),
        max in 1u64..30, wait_min in 0u64..5_000,
    ) {
        let catch_up = CatchUp::Burst(max);
        let (moments, made, throttle) = made_of(&arrivals, catch_up, wait_min, &stalls);
        prop_assert_eq!(made.len() as u64 + throttle.skipped(), moments.len() as u64);
        let mut from = 0;
        for op in &made {
            let due = moments.partition_point(|&t| t <= op.begun);
            from = from.max(due.saturating_sub(max as usize));
            prop_assert_eq!(op.intended, moments[from]);
            from += 1;
        }
    }

    #[test]
    fn a_spread_never_exceeds_so_many_times_the_rate(
        arrivals in any_arrivals(), stalls in any_stalls(), times in 1.1f64..5.0,
    ) {
        let (moments, made, _) = made_of(&arrivals, CatchUp::Spread(times), 0, &stalls);
        let intended: Vec<Nanos> = made.iter().map(|op| op.intended).collect();
        prop_assert_eq!(intended, moments);
        for pair in made.windows(2) {
            let planned = (pair[1].intended - pair[0].intended).0 as f64;
            let real = (pair[1].begun - pair[0].begun).0 as f64;
            prop_assert!(real * times >= planned * (1.0 - 1e-12), "{real} of {planned}");
        }
    }

    /// Every operation is made, at most a gap late. The schedule ends later by what all the missed
    /// ones moved it.
    #[test]
    fn delay_counts_its_shift_exactly(
        arrivals in any_arrivals(), stalls in any_stalls(), wait_min in 0u64..5_000,
    ) {
        let (moments, made, throttle) = made_of(&arrivals, CatchUp::Delay, wait_min, &stalls);
        prop_assert_eq!(made.len(), moments.len());
        let mut shift = Nanos::ZERO;
        for (k, op) in made.iter().enumerate() {
            let later = moments.get(k + 1).map_or(Nanos::MAX, |&t| t + shift);
            if later <= op.begun {
                shift += op.begun - (moments[k] + shift);
            }
            prop_assert_eq!(op.intended, moments[k] + shift);
        }
        prop_assert_eq!(throttle.shifted(), shift);
        prop_assert!(made.is_sorted_by_key(|op| op.intended));
    }

    #[test]
    fn lanes_make_an_exact_number_of_calls_and_stop_on_error(
        n in 1u32..9, total in 0u64..60, fails in prop::option::of(0u64..80), picks: Vec<u8>,
    ) {
        let mut lanes = Lanes::new(n, total);
        let (mut running, mut ended, mut error) = (Vec::new(), 0u64, None);
        while !lanes.is_done() {
            while let Some(call) = lanes.begin() {
                prop_assert!(error.is_none());
                let mut taken = running.iter().map(LaneCall::lane);
                prop_assert!(taken.all(|lane| lane != call.lane()) && call.lane() < n);
                running.push(call);
            }
            let pick = picks.get(ended as usize % picks.len().max(1)).copied().unwrap_or(0);
            let call = running.swap_remove(usize::from(pick) % running.len());
            let number = call.number();
            let result = if fails == Some(number) { Err(number) } else { Ok(()) };
            error = error.or(lanes.end(call, result).break_value());
            prop_assert_eq!(error.is_some(), lanes.failed() > 0);
            ended += 1;
        }
        prop_assert!(running.is_empty());
        prop_assert_eq!(ended, lanes.begun());
        prop_assert_eq!(error, fails.filter(|&number| number < total));
        if error.is_none() {
            prop_assert_eq!((ended, lanes.succeeded()), (total, total));
        }
    }
}
