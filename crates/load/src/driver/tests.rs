//! Drivers, poll by poll.

use super::*;
use crate::fixture::trial as spec;
use crate::law::Law;
use crate::measure::Outcome;
use crate::session::{ScriptGroup, ScriptPlan, SessionPlan};
use crate::spec::{
    ArrivalLaw, Load, OpenLoad, Pause, PauseKind, Rate, Share, TrialSpec, UserStage,
};
use proptest::prelude::*;
use std::sync::Arc;

fn open(per_s: u64, in_flight_max: Option<u32>) -> Load {
    Load::Open(OpenLoad {
        rate: Rate::per_second(per_s).unwrap(),
        arrival: ArrivalLaw::Constant,
        connections_max: 10,
        in_flight_max,
    })
}

fn closed(vusers: u32, pause: Pause) -> Load {
    Load::Closed { vusers, pause, stages: Vec::new() }
}

fn fixed(kind: PauseKind, ms: u64) -> Pause {
    Pause { kind, law: Law::Fixed(Nanos::from_millis(ms)) }
}

fn ms(ms: u64) -> Nanos {
    Nanos::from_millis(ms)
}

fn us(us: u64) -> Nanos {
    Nanos::from_micros(us)
}

fn op(intended: Nanos, lane: u32) -> Op {
    Op { intended, lane }
}

/// An operation that ended at `completed`.
fn ended(op: Op, completed: Nanos, outcome: Outcome) -> Completion {
    Completion::at_once(op, completed, outcome).exchanged(op.intended, op.intended)
}

/// What happens to a driver, and what it must say.
enum Step {
    /// The action that a poll at this time returns.
    Poll(Nanos, Action),
    /// An operation ended at this time.
    End(Op, Nanos, Outcome),
}
use Action::{Done, Shed, Start, WaitForCompletion, WaitUntil};
use Step::{End, Poll};

fn check(spec: &TrialSpec, steps: &[Step]) {
    let mut driver = AnyDriver::new(spec, Share::WHOLE);
    for (i, step) in steps.iter().enumerate() {
        match *step {
            Poll(now, expected) => assert_eq!(driver.poll(now), expected, "step {i}, {now}"),
            End(op, now, outcome) => driver.on_completion(&ended(op, now, outcome), now),
        }
    }
}

#[test]
fn open_loop_starts_late_arrivals_with_their_own_moment() {
    let any = |t| op(t, Op::ANY_LANE);
    check(
        &spec(open(1_000, None), ms(4)),
        &[
            Poll(ms(0), Start(any(ms(0)))),
            Poll(us(200), WaitUntil(ms(1))),
            // Woken late: both that are due, one per poll, with the times of the schedule.
            Poll(us(2_300), Start(any(ms(1)))),
            Poll(us(2_300), Start(any(ms(2)))),
            Poll(us(2_300), WaitUntil(ms(3))),
            Poll(ms(9), Start(any(ms(3)))),
            // The arrival at 4 ms is at the end of the window: not part of it.
            Poll(ms(9), Done),
        ],
    );
}

#[test]
fn open_loop_sheds_beyond_its_limit_and_counts_them() {
    let any = |t| op(t, Op::ANY_LANE);
    let mut spec = spec(open(1_000, Some(2)), ms(100));
    spec.operations_max = Some(5);
    check(
        &spec,
        &[
            Poll(ms(3), Start(any(ms(0)))),
            Poll(ms(3), Start(any(ms(1)))),
            Poll(ms(3), Shed(any(ms(2)))),
            End(any(ms(0)), ms(3), Outcome::Ok),
            Poll(ms(3), Start(any(ms(3)))),
            Poll(ms(3), WaitUntil(ms(4))),
            Poll(ms(4), Shed(any(ms(4)))),
            Poll(ms(4), Done),
        ],
    );
}

#[test]
fn closed_loop_users_begin_in_turn_and_repeat_at_once() {
    check(
        &spec(closed(2, Pause::NONE), ms(1)),
        &[
            Poll(us(0), Start(op(us(0), 0))),
            Poll(us(0), WaitUntil(us(20))),
            // The first user is served before the second begins: it goes on at once.
            End(op(us(0), 0), us(10), Outcome::Ok),
            Poll(us(11), Start(op(us(10), 0))),
            Poll(us(30), Start(op(us(20), 1))),
            Poll(us(30), WaitForCompletion),
            End(op(us(20), 1), us(500), Outcome::HTTP_5XX),
            Poll(us(500), Start(op(us(500), 1))),
            // What completes at the end of the window or after is followed by nothing.
            End(op(us(10), 0), us(1_000), Outcome::Ok),
            Poll(us(1_000), Done),
        ],
    );
}

#[test]
fn closed_loop_ends_with_the_window_though_its_users_have_done() {
    check(
        &spec(closed(1, fixed(PauseKind::Think, 8)), ms(10)),
        &[
            Poll(ms(0), Start(op(ms(0), 0))),
            Poll(ms(1), WaitForCompletion),
            // 3 + 8 ms is beyond the end: nothing will ever start again.
            End(op(ms(0), 0), ms(3), Outcome::Ok),
            Poll(ms(3), WaitUntil(ms(10))),
            Poll(ms(10), Done),
        ],
    );
    // A number of operations ends it at once.
    let spec = spec(closed(1, fixed(PauseKind::Think, 8)), ms(10));
    check(
        &TrialSpec { operations_max: Some(1), ..spec },
        &[
            Poll(ms(0), Start(op(ms(0), 0))),
            End(op(ms(0), 0), ms(3), Outcome::Ok),
            Poll(ms(3), Done),
        ],
    );
}

#[test]
fn think_time_counts_from_the_end_of_an_operation() {
    check(
        &spec(closed(1, fixed(PauseKind::Think, 10)), ms(100)),
        &[
            Poll(ms(0), Start(op(ms(0), 0))),
            End(op(ms(0), 0), ms(3), Outcome::Ok),
            Poll(ms(3), WaitUntil(ms(13))),
            // Started late: the intended time stays.
            Poll(ms(15), Start(op(ms(13), 0))),
            End(op(ms(13), 0), ms(20), Outcome::Ok),
            Poll(ms(20), WaitUntil(ms(30))),
        ],
    );
}

#[test]
fn cycle_counts_from_begin_to_begin() {
    check(
        &spec(closed(1, fixed(PauseKind::Cycle, 10)), ms(100)),
        &[
            Poll(ms(0), Start(op(ms(0), 0))),
            End(op(ms(0), 0), ms(3), Outcome::Ok),
            Poll(ms(3), WaitUntil(ms(10))),
            Poll(ms(10), Start(op(ms(10), 0))),
            // An operation longer than the cycle is followed at once.
            End(op(ms(10), 0), ms(24), Outcome::Ok),
            Poll(ms(24), Start(op(ms(24), 0))),
            End(op(ms(24), 0), ms(25), Outcome::Ok),
            Poll(ms(25), WaitUntil(ms(34))),
        ],
    );
}

#[test]
fn failures_back_off_from_10_ms_to_100_ms_until_a_response_comes() {
    let spec = spec(closed(1, Pause::NONE), Nanos::from_secs(100));
    let mut driver = AnyDriver::new(&spec, Share::WHOLE);
    let mut now = Nanos::ZERO;
    let outcomes = [Outcome::Refused; 6].into_iter().chain([Outcome::Ok, Outcome::Reset]);
    for (outcome, longest) in outcomes.zip([10, 20, 40, 80, 100, 100, 0, 10]) {
        let Start(op) = driver.poll(now) else {
            panic!("the user is due at {now}");
        };
        assert_eq!(op.intended, now);
        driver.on_completion(&ended(op, now, outcome), now);
        if longest > 0 {
            let WaitUntil(next) = driver.poll(now) else { panic!("the user waits") };
            assert!(ms(longest / 2) <= next - now && next - now <= ms(longest), "{next}");
            now = next;
        }
    }
}

/// A server that comes back at any time meets a user soon, and does not meet all at once.
#[test]
fn users_who_failed_together_come_again_one_by_one() {
    for (users, longest) in [(64, ms(100)), (3_000, ms(300)), (50_000, Nanos::from_secs(1))] {
        let spec = spec(closed(users, Pause::NONE), Nanos::from_secs(100));
        let mut driver = AnyDriver::new(&spec, Share::WHOLE);
        let (mut now, mut starts) = (Nanos::ZERO, Vec::new());
        while now < Nanos::from_secs(12) {
            match driver.poll(now) {
                Start(op) => {
                    starts.push(now);
                    driver.on_completion(&ended(op, now, Outcome::Refused), now);
                }
                WaitUntil(next) => now = next,
                _ => panic!("users wait"),
            }
        }
        starts.retain(|at| *at > Nanos::from_secs(6));
        let gap = starts.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap();
        assert!(gap < ms(10), "{users} users: {gap}");
        let per_s = starts.len() as f64 / 6.0;
        let even = f64::from(users) / longest.as_secs_f64();
        assert!(per_s <= 2.0 * even, "{users} users: {per_s}/s");
    }
}

#[test]
fn ten_thousand_users_begin_within_200_ms() {
    for of in [1, 3] {
        let mut begins: Vec<Nanos> = (0..of)
            .flat_map(|index| {
                let spec = spec(closed(10_000, Pause::NONE), Nanos::from_secs(10));
                let mut driver = AnyDriver::new(&spec, Share { index, of });
                let polls = (0..10_001).map(move |_| driver.poll(Nanos::from_secs(1)));
                polls.filter_map(|action| match action {
                    Start(op) => Some(op.intended),
                    _ => None,
                })
            })
            .collect();
        begins.sort_unstable();
        assert_eq!(begins, (0..10_000).map(|k| us(20 * k)).collect::<Vec<_>>());
    }
}

#[test]
fn a_worker_without_users_leaves_the_operations_to_the_others() {
    let mut spec = spec(closed(2, Pause::NONE), ms(100));
    spec.operations_max = Some(7);
    let made = [0, 1, 2, 3].map(|index| run(&spec, Share { index, of: 4 }, ms(1)).len());
    assert_eq!(made, [4, 3, 0, 0]);
}

/// Runs one worker against a target that takes `service`; gives each operation with its end.
fn run(spec: &TrialSpec, share: Share, service: Nanos) -> Vec<(Op, Nanos)> {
    let mut driver = AnyDriver::new(spec, share);
    let (mut now, mut made) = (Nanos::ZERO, Vec::new());
    let mut next = 0;
    loop {
        // All take the same time, so they end in the order of their starts.
        let end = made.get(next).map(|&(_, end): &(Op, Nanos)| end);
        now = match (driver.poll(now), end) {
            (Start(op), _) => {
                made.push((op, now + service));
                continue;
            }
            (WaitUntil(moment), Some(end)) => moment.min(end),
            (WaitUntil(moment), None) => moment,
            (_, Some(end)) => end,
            (_, None) => return made,
        };
        if end == Some(now) {
            let (op, end) = made[next];
            driver.on_completion(&ended(op, end, Outcome::Ok), now);
            next += 1;
        }
    }
}

fn any_pause() -> impl Strategy<Value = Pause> {
    let law = prop_oneof![
        Just(Law::ZERO),
        (1u64..20).prop_map(|mean| Law::Exp(ms(mean))),
        (0u64..5, 5u64..20).prop_map(|(from, to)| Law::Uniform(ms(from), ms(to))),
    ];
    let kind = prop_oneof![Just(PauseKind::Think), Just(PauseKind::Cycle)];
    (kind, law).prop_map(|(kind, law)| Pause { kind, law })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn exactly_so_many_operations_are_made(
        n in 0u64..300, vusers in 1u32..20, of in 1u32..8, pause in any_pause(), is_open: bool,
    ) {
        let load = if is_open { open(1_000, None) } else { closed(vusers, pause) };
        let mut spec = spec(load, Nanos::from_secs(3_600));
        spec.operations_max = Some(n);
        let made = (0..of).map(|index| run(&spec, Share { index, of }, ms(1)).len() as u64);
        prop_assert_eq!(made.sum::<u64>(), n);
    }

    #[test]
    fn operations_of_a_user_never_overlap_or_begin_late(
        vusers in 1u32..20, of in 1u32..4, pause in any_pause(), service_us in 1u64..5_000,
    ) {
        let spec = spec(closed(vusers, pause), ms(100));
        for index in 0..of {
            let share = Share { index, of };
            let lanes = share.part(vusers.into());
            let mut free_at = vec![Nanos::ZERO; lanes as usize];
            for (op, end) in run(&spec, share, us(service_us)) {
                prop_assert!(op.intended >= free_at[op.lane as usize]);
                prop_assert!(op.intended < ms(100));
                free_at[op.lane as usize] = end;
            }
        }
    }
}

#[test]
fn groups_of_users_have_their_stages_and_iterations() {
    let s = Nanos::from_secs;
    let stage = |users, length| UserStage { from: users, to: users, length: s(length) };
    let shared =
        ScriptGroup { users: 2, stages: vec![stage(2, 10)], iterations: Some(3), is_each: false };
    let each = ScriptGroup {
        users: 1,
        stages: vec![stage(0, 1), stage(1, 10)],
        iterations: Some(2),
        is_each: true,
    };
    let script = ScriptPlan { groups: vec![shared, each], ..ScriptPlan::default() };
    let plan = SessionPlan { script: Some(Arc::new(script)), ..SessionPlan::default() };
    let load = Load::Closed { vusers: 3, pause: Pause::NONE, stages: vec![stage(3, 11)] };
    let mut spec = spec(load, s(11));
    spec.target.sessions = Some(Arc::new(plan));
    check(
        &spec,
        &[
            Poll(ms(0), Start(op(ms(0), 0))),
            Poll(ms(0), WaitUntil(us(20))),
            Poll(us(20), Start(op(us(20), 1))),
            Poll(us(20), WaitUntil(s(1))),
            End(op(ms(0), 0), ms(10), Outcome::Ok),
            Poll(ms(10), Start(op(ms(10), 0))),
            // The users of the first group have shared their three.
            End(op(us(20), 1), ms(20), Outcome::Ok),
            End(op(ms(10), 0), ms(30), Outcome::Ok),
            Poll(ms(30), WaitUntil(s(1))),
            Poll(s(1), Start(op(s(1), 2))),
            End(op(s(1), 2), s(2), Outcome::Ok),
            Poll(s(2), Start(op(s(2), 2))),
            End(op(s(2), 2), s(3), Outcome::Ok),
            Poll(s(3), Done),
        ],
    );
}
