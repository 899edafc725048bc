//! Sessions in virtual time, over a backend that only remembers what it was told.

use super::*;
use crate::exchange::http1::{self, Http1};
use crate::link::Tls;
use crate::pool::http_client::tests::{Remembers, parts};
use crate::pool::http_client::{HttpClient, Pooled};
use crate::pool::requests::{RequestSet, serialise_all};
use crate::reactor::Piece;
use knee_load::law::Law;
use knee_load::rng;
use knee_load::session::{Instruction, RequestStep, SessionKind, SessionPlan};
use std::collections::BTreeMap;
use std::sync::Arc;

const OK: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

/// Visitors get request 0, buyers pause for 20 ns and get request 1.
fn plan() -> SessionPlan {
    let kind = |name: &str, program| SessionKind {
        name: name.to_owned(),
        weight: 1,
        data: Vec::new(),
        program,
        variables: Vec::new(),
        repetitions: Vec::new(),
        new_connection: false,
    };
    let pause = Instruction::Think(Law::Fixed(Nanos(20)));
    let step = |kind| RequestStep { name: "step".to_owned(), kind, ..RequestStep::default() };
    SessionPlan {
        kinds: vec![
            kind("visitor", vec![Instruction::Request(0)]),
            kind("buyer", vec![pause, Instruction::Request(1)]),
        ],
        requests: vec![step(0), step(1)],
        ..SessionPlan::default()
    }
}

struct Bench {
    client: SessionClient,
    io: Remembers,
}

impl Bench {
    /// At most `sessions_max` sessions may be under way. A step may take 100 ns; the window is
    /// 1,000 ns long.
    fn new(sessions_max: u32) -> Bench {
        Bench::of(plan(), sessions_max)
    }

    fn of(plan: SessionPlan, sessions_max: u32) -> Bench {
        let lanes = sessions_max * plan.width();
        let (config, _, mut target) = parts(lanes, lanes, "GET");
        target.requests.push(target.requests[0].clone());
        let plan = Arc::new(plan);
        target.sessions = Some(Arc::clone(&plan));
        let requests = RequestSet::new(&target, serialise_all(&target), 0, rng::stream(1, 1));
        let inner = HttpClient::<Tls, Http1>::new(
            config,
            Pooled::default(),
            requests,
            None,
            http1::Shared::new(&target),
        );
        let config = SessionConfig {
            sessions_max,
            window: Window { start: Nanos::ZERO, end: Nanos(1_000) },
            timeout: Nanos(100),
            retries: None,
        };
        let users = Users::new(plan, (0, 1), 1);
        Bench {
            client: SessionClient::new(Box::new(inner), config, users, &target),
            io: Remembers::default(),
        }
    }

    fn start(&mut self, at: u64) {
        let op = Op { intended: Nanos(at), lane: Op::ANY_LANE };
        self.client.start(&mut self.io, op, Nanos(at));
    }

    fn event(&mut self, at: u64, event: Event<'_>) {
        self.event_of(0, at, event);
    }

    /// An event of the connection in this slot.
    fn event_of(&mut self, slot: u32, at: u64, event: Event<'_>) {
        let time = EventTime::seen(Nanos(at));
        self.client.on_event(&mut self.io, slot, event, time);
    }

    /// The steps that have ended so, by their requests.
    fn steps(&mut self, outcome: Outcome) -> BTreeMap<u32, u64> {
        let mut steps = BTreeMap::new();
        for step in std::iter::from_fn(|| self.client.take_completed().copied()) {
            assert_eq!(step.outcome, outcome);
            *steps.entry(step.target).or_default() += 1;
        }
        steps
    }

    /// The kinds of the sessions that have ended so.
    fn sessions(&mut self, outcome: Outcome) -> BTreeMap<u32, u64> {
        let mut kinds = BTreeMap::new();
        for session in std::iter::from_fn(|| self.client.take_ended()) {
            assert_eq!(session.outcome, outcome);
            *kinds.entry(session.target).or_default() += 1;
        }
        kinds
    }
}

#[test]
fn sessions_that_wait_too_long_fail_at_their_first_step() {
    let mut bench = Bench::new(1);
    (0..101).for_each(|_| bench.start(10));
    assert_eq!(bench.client.take_begun(), 101);
    // The first has the only connection, over which no response comes.
    bench.client.expire(&mut bench.io, Nanos(30));
    bench.event(35, Event::Connected);
    bench.client.expire(&mut bench.io, Nanos(109));
    assert_eq!(bench.client.tally().in_flight, 101, "not before their time");
    bench.client.expire(&mut bench.io, Nanos(110));
    let waited = bench.sessions(Outcome::Timeout);
    assert!(waited.values().sum::<u64>() >= 100, "{waited:?}");
    assert!(waited[&0] > 30 && waited[&1] > 30, "{waited:?}");
    // Each request is the first of the kind of its number.
    assert_eq!(bench.steps(Outcome::Timeout), waited);
    let measured = bench.client.finish(Nanos::ZERO).sessions.unwrap();
    for (request, kind) in (0..).zip(&measured.kinds) {
        assert_eq!((kind.completed, kind.unfinished), (0, 0));
        assert_eq!((kind.failed, kind.unanswered), (waited[&request], waited[&request]));
        assert_eq!(kind.failed_at, BTreeMap::from([(request, kind.failed)]));
    }
}

#[test]
fn a_session_that_waited_counts_from_when_it_was_intended() {
    let mut bench = Bench::new(1);
    bench.start(10);
    bench.start(20);
    // A buyer's pause is over, and it opens its connection.
    bench.client.expire(&mut bench.io, Nanos(30));
    bench.event(30, Event::Connected);
    let mut now = 30;
    while bench.client.tally().in_flight > 0 {
        now += 20;
        bench.client.expire(&mut bench.io, Nanos(now));
        bench.event(now, Event::Received(Piece::of(OK)));
    }
    assert_eq!(bench.steps(Outcome::Ok).values().sum::<u64>(), 2);
    assert_eq!(bench.sessions(Outcome::Ok).values().sum::<u64>(), 2);
    let measured = bench.client.finish(Nanos::ZERO).sessions.unwrap();
    let longest = measured.kinds.iter().map(|kind| kind.time.max());
    assert_eq!(longest.max(), Some(Nanos(now - 20)));
}

#[test]
fn sessions_that_wait_when_the_load_ends_are_unfinished() {
    let mut bench = Bench::new(1);
    (0..41).for_each(|_| bench.start(10));
    bench.client.abandon(Nanos(60));
    assert_eq!(bench.client.tally().in_flight, 0);
    let ended = bench.sessions(Outcome::InFlight);
    assert_eq!(ended.values().sum::<u64>(), 41);
    let measured = bench.client.finish(Nanos::ZERO).sessions.unwrap();
    let unfinished = measured.kinds.iter().map(|kind| kind.unfinished);
    assert_eq!(unfinished.collect::<Vec<_>>(), [ended[&0], ended[&1]]);
    assert!(measured.kinds.iter().all(|kind| kind.failed == 0));
}

#[test]
fn steps_beyond_the_limit_wait_and_each_is_accounted_for() {
    let mut bench = Bench::new(64);
    // One request in 50 ns.
    bench.client = bench.client.within(RateLimit::part_of(2e7, 1));
    (0..10).for_each(|_| bench.start(10));
    let started = |bench: &Bench| bench.client.rate_limit().map(|l| l.used().started);
    assert_eq!(started(&bench), Some(1));
    // The pauses of the buyers are over: they wait too.
    bench.client.expire(&mut bench.io, Nanos(30));
    assert_eq!(bench.client.next_due(), Nanos(50));
    bench.client.expire(&mut bench.io, Nanos(49));
    assert_eq!(started(&bench), Some(1));
    bench.client.expire(&mut bench.io, Nanos(50));
    assert_eq!(started(&bench), Some(2));
    // After the end of the window nothing begins.
    bench.client.expire(&mut bench.io, Nanos(1_000));
    assert_eq!(started(&bench), Some(2));
    bench.client.abandon(Nanos(1_000));
    assert_eq!(bench.client.tally().in_flight, 0);
    let (mut steps, mut sessions) = (0, 0);
    while bench.client.take_completed().is_some() {
        steps += 1;
    }
    while bench.client.take_ended().is_some() {
        sessions += 1;
    }
    assert_eq!((steps, sessions, bench.client.take_begun()), (10, 10, 10));
}

/// One kind of session, which asks for both requests at the same time and then for the first.
fn forked() -> SessionPlan {
    let mut plan = plan();
    plan.kinds.truncate(1);
    plan.kinds[0].program = vec![
        Instruction::Fork(vec![3]),
        Instruction::Request(0),
        Instruction::Join(5),
        Instruction::Request(1),
        Instruction::Join(5),
        Instruction::Request(0),
    ];
    plan
}

#[test]
fn branches_run_at_once_and_the_last_one_ends_them() {
    let mut bench = Bench::of(forked(), 1);
    bench.start(10);
    assert_eq!(bench.client.take_begun(), 2);
    bench.event_of(0, 12, Event::Connected);
    bench.event_of(1, 14, Event::Connected);
    bench.event_of(1, 20, Event::Received(Piece::of(OK)));
    assert_eq!((bench.client.take_begun(), bench.client.tally().in_flight), (0, 1));
    bench.event_of(0, 50, Event::Received(Piece::of(OK)));
    assert_eq!(bench.client.take_begun(), 1, "after both branches the session goes on");
    let next: Vec<_> = std::iter::from_fn(|| bench.client.take_completed().copied()).collect();
    assert_eq!(next.iter().map(|step| step.intended).collect::<Vec<_>>(), [Nanos(10); 2]);
    // The seat of the branch that ended last goes on at the end of that one.
    for slot in [0, 1] {
        bench.event_of(slot, 90, Event::Received(Piece::of(OK)));
    }
    let last = *bench.client.take_completed().expect("the last step has ended");
    assert_eq!((last.intended, last.outcome), (Nanos(50), Outcome::Ok));
    assert_eq!(bench.sessions(Outcome::Ok), BTreeMap::from([(0, 1)]));
}

#[test]
fn a_branch_that_fails_ends_the_session_after_the_others() {
    let mut bench = Bench::of(forked(), 1);
    bench.start(10);
    bench.event_of(0, 12, Event::Connected);
    bench.event_of(1, 14, Event::Connected);
    bench.event_of(
        0,
        20,
        Event::Received(Piece::of(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n")),
    );
    assert_eq!(bench.client.tally().in_flight, 1, "the other request is still under way");
    assert!(bench.client.take_ended().is_none());
    bench.event_of(1, 60, Event::Received(Piece::of(OK)));
    let ended = bench.client.take_ended().expect("both branches have ended");
    assert_eq!((ended.completed, ended.outcome), (Nanos(60), Outcome::HTTP_5XX));
    assert_eq!((bench.client.tally().in_flight, bench.client.take_begun()), (0, 2));
}

#[test]
fn branches_under_way_at_the_end_are_one_unfinished_session() {
    let mut bench = Bench::of(forked(), 1);
    bench.start(10);
    bench.event_of(0, 12, Event::Connected);
    bench.event_of(0, 20, Event::Received(Piece::of(OK)));
    // The first branch is the last to send.
    assert_eq!(bench.steps(Outcome::Ok), BTreeMap::from([(1, 1)]));
    bench.client.abandon(Nanos(60));
    assert_eq!(bench.steps(Outcome::InFlight), BTreeMap::from([(0, 1)]));
    assert_eq!(bench.sessions(Outcome::InFlight), BTreeMap::from([(0, 1)]));
    assert_eq!(bench.client.tally().in_flight, 0);
}
