//! Clients and a service in virtual time whose losses have one cause, or two, at random.

use super::super::{ExplainSpec, UdpExplain};
use super::{asked, names};
use crate::experiment::conduct;
use crate::experiment::udp::AssessedUdpTrial;
use crate::experiment::udp::analysis::tests::{queued, spec};
use crate::experiment::udp::report::UdpConclusion;
use knee_load::arrival::{ArrivalProcess, Arrivals};
use knee_load::experiment::udp::{ClientWait, UdpTrialSpec};
use knee_load::law::Law;
use knee_load::rng::{self, Rng};
use knee_load::spec::{ArrivalLaw, Rate, Share};
use knee_load::time::Nanos;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::convert::Infallible;
use std::ops::ControlFlow;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// How the second clients, the service and their host behave.
#[derive(Clone, Debug)]
struct World {
    wait: ClientWait,
    clients: u32,
    /// Work per datagram, and datagrams that the receive buffer holds.
    work: u64,
    room: usize,
    /// Processor time of each send of a crowd.
    cost: u64,
    /// The crowd has the service's processor as long as one of its clients has something to send,
    /// for this long at a time.
    fights: Option<u64>,
    /// The service pauses for the second time once in the first.
    pauses: Option<(u64, u64)>,
    /// The share of sends that the kernel refuses.
    refused: f64,
}

/// Times in which a service does not run.
type Away = Vec<(u64, u64)>;

/// The times of sending of a crowd, which share a processor, and when that processor was theirs.
fn crowd(spec: &UdpTrialSpec, world: &World) -> (Vec<u64>, Away) {
    let mut rng = rng::stream(spec.seed, 0);
    let cycle = spec.wait.cycle().expect("they sleep").0;
    let phase = |rng: &mut Rng| {
        if spec.unsynchronised { (rng::unit(rng) * cycle as f64) as u64 } else { 0 }
    };
    let phases: Vec<u64> = (0..spec.clients).map(|_| phase(&mut rng)).collect();
    let mut wakes: BinaryHeap<_> = phases.iter().copied().zip(0..).map(Reverse).collect();
    let (mut starts, mut busy, mut free) = (Vec::new(), Away::new(), 0);
    while let Some(Reverse((wake, client))) = wakes.pop()
        && wake < spec.duration.0
    {
        match busy.last_mut() {
            Some((_, until)) if wake <= *until => *until += world.cost,
            _ => busy.push((wake, wake + world.cost)),
        }
        free = wake.max(free) + world.cost;
        starts.push(free);
        let next = match spec.wait {
            ClientWait::Tick(Nanos(period)) => {
                let phase = phases[client] % period;
                ((free - phase) / period + 2) * period + phase
            }
            ClientWait::Sleep(law) => free + law.sample(&mut rng).0.max(1),
            _ => unreachable!("they sleep"),
        };
        wakes.push(Reverse((next, client)));
    }
    (starts, busy)
}

fn simulated(spec: &UdpTrialSpec, world: &World) -> AssessedUdpTrial {
    let (mut starts, mut away) = match &spec.wait {
        ClientWait::Schedule { rate, arrival } => {
            let mut schedule = Arrivals::of(*rate, arrival, Share::WHOLE, spec.seed);
            let times = std::iter::from_fn(|| schedule.next()).map(|t| t.0);
            (times.take_while(|&t| t < spec.duration.0).collect(), Away::new())
        }
        // The other clients, which have no trouble.
        ClientWait::Yield => ((0..spec.duration.0).step_by(MS as usize).collect(), Away::new()),
        _ => crowd(spec, world),
    };
    let keeps_away = world.fights.filter(|_| !spec.setup.realtime && spec.setup.cpu.is_none());
    away = match keeps_away {
        // The service has 1 ms after each of the crowd's turns.
        Some(turn) => away
            .iter()
            .flat_map(|&(from, until)| {
                let turns = (from..until).step_by((turn + MS) as usize);
                turns.map(move |begin| (begin, until.min(begin + turn)))
            })
            .collect(),
        None => Away::new(),
    };
    let is_kept = !away.is_empty();
    if let Some((every, length)) = world.pauses {
        away = (every / 2..spec.duration.0)
            .step_by(every as usize)
            .map(|begin| (begin, begin + length))
            .collect();
    }
    let work = match spec.setup.work {
        Some(Law::Fixed(work)) => work.0,
        _ => world.work,
    };
    let room = if spec.setup.rcvbuf.is_some() { usize::MAX } else { world.room };
    let intended = starts.len() as u64;
    let mut rng = rng::stream(spec.seed, 1);
    starts.retain(|_| rng::unit(&mut rng) >= world.refused);
    let refused = intended - starts.len() as u64;
    let (mut waiting, mut free) = (VecDeque::new(), 0_u64);
    let (mut next_away, mut waited, mut longest) = (0, 0, 0);
    let mut serve_until = |now: u64, waiting: &mut VecDeque<u64>| {
        while let Some(&first) = waiting.front() {
            let mut begin = free.max(first);
            while away.get(next_away).is_some_and(|&(_, until)| until <= begin) {
                next_away += 1;
            }
            if let Some(&(from, until)) = away.get(next_away)
                && from <= begin
            {
                waited += until - begin;
                longest = longest.max(until - begin);
                begin = until;
            }
            if begin > now {
                free = begin;
                return;
            }
            waiting.pop_front();
            free = begin + work;
        }
    };
    let times = starts.iter().map(|&t| Nanos(t)).collect();
    let mut trial = queued(spec.clone(), times, |start| {
        serve_until(start.0, &mut waiting);
        let has_room = waiting.len() < room;
        if has_room {
            waiting.push_back(start.0);
        }
        has_room
    });
    serve_until(u64::MAX, &mut waiting);
    trial.sent.intended = intended;
    trial.sent.send_errors = [("ENOBUFS".to_owned(), refused)].into();
    trial.service.work = Some(Law::Fixed(Nanos(work)));
    trial.service.buffer_datagrams = Some(room.min(1 << 20) as u64);
    let received = trial.received.as_mut().expect("it tells");
    received.cpu = Nanos(work * received.received);
    received.kept_waiting = Nanos(if is_kept { waited } else { 0 });
    received.scheduled = received.received;
    received.pause_ns_max = longest;
    AssessedUdpTrial::of(&trial)
}

fn explained(world: &World, seed: u64) -> UdpConclusion {
    let duration = Nanos::from_millis(300);
    let second = spec(world.clients, world.wait.clone(), duration);
    let first = spec(2, ClientWait::Yield, duration);
    let asked = ExplainSpec { first, second, realtime: true, seed, ..asked(&[0, 1]) };
    let result = conduct(&mut UdpExplain::new(asked), |spec| {
        Ok::<_, Infallible>(ControlFlow::Continue(simulated(spec, world)))
    });
    result.unwrap_or_else(|never| match never {}).conclusion
}

const SYNCHRONISED: &str = "synchronised_wakeups";
const WAITS: &str = "service_waits_for_processor";

/// Explains the losses of random worlds of one kind. Of the causes of a loss, exactly `expected`
/// are supported.
fn explains(expected: &[&str], world: impl Fn(&mut dyn FnMut(u64, u64) -> u64) -> World) {
    for seed in 0..6 {
        let mut rng = rng::stream(seed, 2);
        let world = world(&mut |from, to| from + (rng::unit(&mut rng) * (to - from) as f64) as u64);
        let conclusion = explained(&world, seed);
        let no_causes = ["per_send_overhead", "receive_buffer"];
        let mut causes = names(&conclusion.supported);
        causes.retain(|name| !no_causes.contains(name));
        assert_eq!(causes, expected, "{world:?} {conclusion:#?}");
        let names_both =
            expected.iter().filter(|name| [SYNCHRONISED, WAITS].contains(name)).all(|name| {
                let necessary = conclusion.answer.split_once("Necessary for the loss");
                necessary.is_some_and(|(_, names)| names.contains(&name.replace('_', " ")))
            });
        assert!(names_both, "{}", conclusion.answer);
    }
}

/// Clients that wake with every second tick of 10 ms.
fn ticking(between: &mut dyn FnMut(u64, u64) -> u64) -> World {
    let clients = between(64, 160);
    World {
        wait: ClientWait::Tick(Nanos(10 * MS)),
        clients: clients as u32,
        work: US * between(2, 20),
        room: between(clients / 4, clients / 2) as usize,
        cost: 0,
        fights: None,
        pauses: None,
        refused: 0.0,
    }
}

/// Clients whose waits are random, with a mean of 20 ms.
fn random(between: &mut dyn FnMut(u64, u64) -> u64) -> World {
    World { wait: ClientWait::Sleep(Law::Exp(Nanos(20 * MS))), ..ticking(between) }
}

#[test]
fn ticks_and_a_fight_for_the_processor_are_both_necessary() {
    explains(&[WAITS, SYNCHRONISED], |between| {
        let world = ticking(between);
        let cost = between(6, 10) * MS / u64::from(world.clients);
        World { cost, fights: Some(100 * MS), ..world }
    });
}

#[test]
fn ticks_alone_are_the_cause_where_nobody_fights() {
    explains(&[SYNCHRONISED], ticking);
    explains(&[SYNCHRONISED], |between| World {
        wait: ClientWait::Sleep(Law::Fixed(Nanos(MS * between(8, 20)))),
        ..ticking(between)
    });
}

#[test]
fn a_fight_alone_is_the_cause_where_waits_are_random() {
    explains(&[WAITS], |between| World {
        wait: ClientWait::Sleep(Law::Exp(Nanos(200 * US))),
        cost: US * between(60, 90),
        work: 2 * US,
        room: between(10, 20) as usize,
        fights: Some(4 * MS),
        ..random(between)
    });
}

#[test]
fn a_slow_service_is_blamed_whoever_wakes_when() {
    let slow = |world: World, between: &mut dyn FnMut(u64, u64) -> u64| World {
        // Clients send once in 20 ms.
        work: between(14, 20) * 2 * MS / u64::from(world.clients),
        room: 2 * world.clients as usize,
        ..world
    };
    let expected = ["offered_beyond_capacity"];
    explains(&expected, |between| slow(ticking(between), between));
    explains(&expected, |between| slow(random(between), between));
}

#[test]
fn variance_alone_overflows_a_small_buffer() {
    let small = |wait: ClientWait, between: &mut dyn FnMut(u64, u64) -> u64| World {
        wait,
        clients: 64,
        work: US * between(220, 260),
        room: between(2, 4) as usize,
        ..ticking(between)
    };
    // 3,200/s either way.
    let rate = Rate::per_second(3_200).expect("not zero");
    explains(&["poisson_variance"], |between| {
        small(ClientWait::Schedule { rate, arrival: ArrivalLaw::Poisson }, between)
    });
    explains(&["poisson_variance"], |between| {
        small(ClientWait::Sleep(Law::Exp(Nanos(20 * MS))), between)
    });
}

#[test]
fn a_service_that_pauses_is_blamed_for_it() {
    explains(&["receiver_pauses"], |between| World {
        room: 10,
        pauses: Some((MS * between(60, 100), MS * between(20, 30))),
        ..random(between)
    });
}

#[test]
fn a_kernel_that_refuses_is_blamed_for_it() {
    explains(&["sender_drops_or_blocks"], |between| World {
        room: 1_000,
        refused: between(5, 60) as f64 / 100.0,
        ..ticking(between)
    });
}
