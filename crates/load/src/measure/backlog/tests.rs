//! Generators with known delays before servers in virtual time.

use super::*;
use crate::measure::{Completion, Op, Outcome, Recorder, RecorderConfig, Window};
use crate::rng::{self, Rng};
use rand_core::RngCore;

/// A case: a load, a server and a generator, by random choice.
struct Case {
    gap_ns: f64,
    is_poisson: bool,
    servers: usize,
    service_ns: f64,
    is_exponential: bool,
    kind: u64,
    delay_ns: f64,
    every: u64,
}

fn exponential(rng: &mut Rng, mean: f64) -> f64 {
    mean * rng::exp1(rng)
}

fn log_uniform(rng: &mut Rng, lo: f64, hi: f64) -> f64 {
    lo * (hi / lo).powf(rng::unit(rng))
}

impl Case {
    fn draw(rng: &mut Rng) -> Case {
        let gap_ns = log_uniform(rng, 50e3, 2e6);
        let servers = 1 + (rng.next_u64() % 4) as usize;
        let utilisation = 0.1 + 0.8 * rng::unit(rng);
        Case {
            gap_ns,
            is_poisson: rng.next_u64().is_multiple_of(2),
            servers,
            service_ns: gap_ns * utilisation * servers as f64,
            is_exponential: rng.next_u64().is_multiple_of(2),
            kind: rng.next_u64() % 3,
            delay_ns: log_uniform(rng, 10e3, 5e6),
            every: 5 + rng.next_u64() % 500,
        }
    }

    fn intended(&self, rng: &mut Rng, count: usize) -> Vec<u64> {
        let mut at = 0.0;
        let gaps = std::iter::repeat_with(|| {
            at += if self.is_poisson { exponential(rng, self.gap_ns) } else { self.gap_ns };
            at as u64
        });
        gaps.take(count).collect()
    }

    /// When the generator starts the operation, whose predecessors end at these times.
    fn start(&self, rng: &mut Rng, k: usize, intended: u64, ends: &[u64]) -> u64 {
        let delay = match self.kind {
            // Each wake-up is late by chance.
            0 => exponential(rng, self.delay_ns.min(300e3)),
            // The generator does not run for a while.
            1 if (k as u64).is_multiple_of(self.every) => self.delay_ns,
            // It is late while many are in flight.
            2 => {
                let under_way = ends.iter().rev().take(64).filter(|end| **end > intended);
                (under_way.count() as f64 * self.delay_ns / 64.0).min(1e6)
            }
            _ => 0.0,
        };
        intended + delay as u64
    }
}

/// When operations that start at these times end at a first-in-first-out server.
struct Station {
    free: Vec<u64>,
}

impl Station {
    fn serve(&mut self, start: u64, service: u64) -> u64 {
        let free = self.free.iter_mut().min().unwrap();
        *free = start.max(*free) + service;
        *free
    }
}

/// Response times of a punctual generator, ascending, and what a recorder says of this one.
fn compare(case: &Case, rng: &mut Rng) -> (Vec<u64>, crate::measure::Measurement) {
    const COUNT: usize = 4_000;
    let intended = case.intended(rng, COUNT);
    let service: Vec<u64> = (0..COUNT)
        .map(|_| {
            if case.is_exponential {
                exponential(rng, case.service_ns) as u64
            } else {
                case.service_ns as u64
            }
        })
        .collect();
    let station = || Station { free: vec![0; case.servers] };
    let mut punctual = station();
    let pairs = intended.iter().zip(&service);
    let mut truth: Vec<u64> = pairs.map(|(&a, &s)| punctual.serve(a, s) - a).collect();
    truth.sort_unstable();

    let (mut real, mut last) = (station(), 0);
    let mut operations: Vec<[u64; 3]> = Vec::new();
    let mut ends = Vec::new();
    for (k, (&a, &s)) in intended.iter().zip(&service).enumerate() {
        last = case.start(rng, k, a, &ends).max(last + 2_000);
        ends.push(real.serve(last, s));
        operations.push([a, last, ends[k]]);
    }
    (truth, record(&operations))
}

fn record(operations: &[[u64; 3]]) -> crate::measure::Measurement {
    let end = Nanos(1 << 50);
    let mut recorder = Recorder::new(RecorderConfig {
        window: Window { start: Nanos::ZERO, end },
        interval: Nanos::from_secs(1_000),
        open_loop: true,
        of_sessions: false,
        starts_max: 0,
        targets: 1,
    });
    let starts = operations.iter().map(|&[_, at, _]| (at, true));
    let ends = operations.iter().map(|&[_, _, at]| (at, false));
    let mut events: Vec<(u64, bool, usize)> = (starts.enumerate())
        .chain(ends.enumerate())
        .map(|(k, (at, is_start))| (at, is_start, k))
        .collect();
    events.sort_unstable();
    for (at, is_start, k) in events {
        let [intended, started, _] = operations[k].map(Nanos);
        let op = Op { intended, lane: Op::ANY_LANE };
        if is_start {
            recorder.on_start(op, started);
        } else {
            let ended = Completion::at_once(op, Nanos(at), Outcome::Ok);
            recorder.on_completion(&ended.exchanged(started, started));
        }
    }
    recorder.finish(end)
}

#[test]
fn range_covers_what_a_punctual_generator_measures() {
    const CASES: u64 = 1_000;
    // Of the histogram: three significant digits.
    const GRAIN: f64 = 1.0 / 500.0;
    let mut outside = [0; 3];
    for seed in 0..CASES {
        let mut rng = rng::stream(seed, rng::ORDER);
        let case = Case::draw(&mut rng);
        let (truth, measured) = compare(&case, &mut rng);
        for (missed, q) in outside.iter_mut().zip([0.5, 0.9, 0.99]) {
            let exact = truth[((q * truth.len() as f64).ceil() as usize).max(1) - 1] as f64;
            let low = measured.undelayed.quantile(q).0 as f64;
            let high = measured.response.quantile(q).0 as f64;
            let is_covered = low * (1.0 - GRAIN) <= exact && exact <= high * (1.0 + GRAIN);
            *missed += u64::from(!is_covered);
        }
    }
    assert!(
        outside.iter().all(|&missed| missed <= CASES / 20),
        "outside the range: {outside:?} of {CASES}"
    );
}

#[test]
fn operations_apart_are_not_a_backlog() {
    let mut backlogs = Backlogs::default();
    for k in 1..=100 {
        let late = Nanos::from_micros(k % 80);
        let now = Nanos::from_millis(k) + late;
        backlogs.on_start(now, late);
        assert_eq!(backlogs.added(now, late), Nanos::ZERO, "{k}");
        backlogs.on_end();
    }
}

#[test]
fn followers_of_a_late_operation_may_owe_its_delay() {
    let mut backlogs = Backlogs::default();
    let [late, now] = [Nanos::from_millis(2), Nanos::from_millis(10)];
    for k in 0..4 {
        backlogs.on_start(now + Nanos(k), late - Nanos::from_micros(k * 500));
    }
    let added = |k: u64| backlogs.added(now + Nanos(k), late - Nanos::from_micros(k * 500));
    assert_eq!([0, 1, 3].map(|k| added(k).0), [0, 500_000, 1_500_000]);
    // Punctual ones that find the queue still longer than before owe it too.
    backlogs.on_end();
    let next = now + Nanos::from_micros(500);
    backlogs.on_start(next, Nanos::ZERO);
    assert_eq!(backlogs.added(next, Nanos::ZERO), late);
    (0..4).for_each(|_| backlogs.on_end());
    let after = now + Nanos::from_millis(5);
    backlogs.on_start(after, Nanos::ZERO);
    assert_eq!(backlogs.added(after, Nanos::ZERO), Nanos::ZERO);
    assert_eq!(backlogs.added(next, Nanos::ZERO), late, "it is remembered");
}

/// What an operation would do to others ends as soon as as few are in flight as it found.
#[test]
fn a_delay_is_handed_on_to_a_longer_queue_only() {
    let mut backlogs = Backlogs::default();
    let ms = Nanos::from_millis;
    for k in 1..=4 {
        backlogs.on_start(ms(k), Nanos::ZERO);
    }
    backlogs.on_start(ms(10), ms(5));
    backlogs.on_start(ms(11), Nanos::ZERO);
    assert_eq!(backlogs.added(ms(11), Nanos::ZERO), ms(5), "it queues behind the late one");
    (0..2).for_each(|_| backlogs.on_end());
    backlogs.on_start(ms(12), Nanos::ZERO);
    assert_eq!(backlogs.added(ms(12), Nanos::ZERO), Nanos::ZERO, "four were in flight again");
    assert_eq!(backlogs.added(ms(11), Nanos::ZERO), ms(5), "it is remembered");
}

#[test]
fn long_operations_do_not_inherit_delays_of_long_ago() {
    let mut backlogs = Backlogs::default();
    let mut now = Nanos::ZERO;
    let mut start = |backlogs: &mut Backlogs, late: Nanos| {
        now = Nanos(now.0 + 1_000_000);
        backlogs.on_start(now, late);
        now
    };
    start(&mut backlogs, Nanos::from_secs(1));
    backlogs.on_end();
    let mut short = |backlogs: &mut Backlogs, count: u64| {
        let mut last = Nanos::ZERO;
        for k in 0..count {
            last = start(backlogs, Nanos::from_micros(10 + k % 70));
            backlogs.on_end();
        }
        last
    };
    short(&mut backlogs, 600);
    let long = short(&mut backlogs, 1);
    short(&mut backlogs, 2_000);
    assert!(backlogs.changes.len() <= KEPT);
    assert!(backlogs.added(long, Nanos::ZERO) < Nanos::from_millis(1));
}

/// One delay of 5 ms among 4,000 operations of a server that nearly always has some in it: the times
/// of the others are what they are.
#[test]
fn one_delay_leaves_the_times_of_a_busy_server_determined() {
    for seed in 0..20 {
        let mut rng = rng::stream(seed, rng::ORDER);
        let case = Case {
            gap_ns: 3.5e6,
            is_poisson: true,
            servers: 1,
            service_ns: 3e6,
            is_exponential: true,
            kind: 1,
            delay_ns: 5e6,
            every: 3_999,
        };
        let (_, measured) = compare(&case, &mut rng);
        for q in [0.5, 0.9] {
            let [least, most] =
                [&measured.undelayed, &measured.response].map(|times| times.quantile(q).0 as f64);
            assert!(least >= 0.9 * most, "{seed}: {q}: {least} to {most}");
        }
    }
}

/// A response cannot be shorter than its service, nor can the least of it.
#[test]
fn the_least_response_is_not_below_the_least_service() {
    for seed in 0..50 {
        let mut rng = rng::stream(seed, rng::ORDER);
        let case = Case::draw(&mut rng);
        let (_, measured) = compare(&case, &mut rng);
        let mut service = measured.service.without(&measured.held_up);
        service.merge(&measured.held_up_least);
        assert_eq!(service.count(), measured.undelayed.count());
        for q in [0.1, 0.5, 0.9, 0.99, 1.0] {
            let [service, response] =
                [&service, &measured.undelayed].map(|times| times.quantile(q).0);
            assert!(response >= service, "{seed}: {q}: {response} below {service}");
        }
    }
}
