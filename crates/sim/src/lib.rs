//! Simulated servers in virtual time: what takes the engine's place in tests of everything that is
//! decided in core.
//!
//! The load comes from the real drivers and is recorded by the real recorder. Only the network, the
//! server and the clock are simulated. The same spec and world give the same trial, to the
//! nanosecond.
#![forbid(unsafe_code)]

mod agenda;
pub mod fixture;
mod generator;
mod path;
pub mod series;
mod station;
pub mod theory;

pub use crate::station::{Faults, RejectAbove};
pub use path::{Path, simulate_flows};

use crate::station::FaultState;
use agenda::{Agenda, SimulatedEvent};
use generator::{Generator, RequestFate};
use knee_load::law::Law;
use knee_load::measure::{GeneratorUse, Histogram, Trial};
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;
use station::{Admission, StationState};
use std::collections::BTreeMap;

/// What the load meets.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// How many operations are served at once; `None`: as many as come.
    pub workers: Option<u32>,
    /// How long one is served; a nanosecond at least, so that time passes.
    pub service: Law,
    /// The most operations at the station, in service or waiting (K in Kendall's notation); one
    /// that comes beyond it is refused. `None`: no limit.
    pub capacity: Option<u32>,
    /// Time from the generator to the station, and the same back.
    pub transport: Nanos,
    /// When the station is stalled: it neither starts nor goes on nor finishes.
    pub server_stalls: Vec<Stall>,
    /// When the generator is stalled: it neither starts nor notices anything.
    pub client_stalls: Vec<Stall>,
    /// The station is slower at first.
    pub slow_start: Option<SlowStart>,
    /// The station slows down all the time: service times grow by this share of the first one per
    /// second. 0: it does not.
    pub drift_per_s: f64,
    /// Each operation at the station beyond the first lengthens the service that begins then by
    /// this share: with more load than workers throughput falls. 0: it does not.
    pub contention: f64,
    /// How the server fails.
    pub faults: Faults,
    /// When the user interrupts the trial, in run time; `None`: it runs to its end.
    pub interrupted_at: Option<Nanos>,
}

impl World {
    /// A station of this number of workers (`None`: unlimited) with an endless queue, no transport
    /// and no trouble.
    pub fn station(workers: impl Into<Option<u32>>, service: Law) -> World {
        World {
            workers: workers.into(),
            service,
            capacity: None,
            transport: Nanos::ZERO,
            server_stalls: Vec::new(),
            client_stalls: Vec::new(),
            slow_start: None,
            drift_per_s: 0.0,
            contention: 0.0,
            faults: Faults::default(),
            interrupted_at: None,
        }
    }
}

/// A time in which something is stalled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// When it begins, in run time.
    pub at: Nanos,
    /// How long it takes.
    pub length: Nanos,
}

impl Stall {
    /// A stall of this length at the end of each `period` until `until`: what a garbage collector
    /// makes of a server.
    pub fn every(period: Nanos, length: Nanos, until: Nanos) -> Vec<Stall> {
        let begins = (1..).map(|k| Nanos(period.0.max(1) * k)).map(|at| at - length);
        let stalls = begins.map(|at| Stall { at, length });
        stalls.take_while(|stall| stall.at < until).collect()
    }
}

/// Service that is slower at first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowStart {
    /// How many times as long service takes at the beginning of the run, at least 1.
    pub factor: f64,
    /// The time over which this falls linearly to 1.
    pub over: Nanos,
}

/// What a simulation yields.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// What the generator measured.
    pub trial: Trial,
    /// Response times as the station logged them itself, from arrival to the end of service. They
    /// are of the operations that came to it within the window and were served before the trial
    /// ended.
    pub station: Histogram,
}

/// Runs one trial against `world` in virtual time, as a single worker whatever the spec says.
///
/// As with the engine, what is in flight at the end of the window is waited for. Since each
/// operation completes or times out, nothing is in flight at the end, unless the trial is
/// interrupted.
pub fn simulate(spec: &TrialSpec, world: &World) -> Simulated {
    let mut agenda = Agenda::default();
    let mut station = StationState::new(spec, world);
    let mut generator = Generator::new(spec, world);
    let mut faults = FaultState::new(&world.faults, spec.seed);
    generator.begin(&mut agenda);
    if let Some(at) = world.faults.crash_at {
        agenda.add(at, SimulatedEvent::Crash);
    }
    if let Some(at) = world.interrupted_at {
        agenda.add(at, SimulatedEvent::Interrupt);
    }
    let (mut interrupted, mut is_enough) = (false, false);
    while !interrupted && !is_enough && !generator.is_over() {
        let Some((now, event)) = agenda.next_until(generator.wakes_at()) else {
            generator.wake(&mut agenda);
            continue;
        };
        match event {
            SimulatedEvent::Arrive(request) => match faults.meets(&request, now) {
                Some(fault) => generator.answer_after(request, fault, now, &mut agenda),
                None => match station.arrive(request, now) {
                    Admission::Begun { ends } => agenda.add(ends, SimulatedEvent::Finish(request)),
                    Admission::Queued => {}
                    Admission::Refused => {
                        generator.answer(request, RequestFate::Refused, now, &mut agenda);
                    }
                },
            },
            SimulatedEvent::Finish(request) => {
                if faults.has_crashed(now) {
                    continue;
                }
                if let Some((next, ends)) = station.finish(request, now) {
                    agenda.add(ends, SimulatedEvent::Finish(next));
                }
                generator.answer(request, faults.answer(), now, &mut agenda);
            }
            SimulatedEvent::Answer { request, answer } => {
                generator.on_answer(request, answer, now, &mut agenda);
            }
            SimulatedEvent::Crash => generator.on_crash(now, &mut agenda),
            SimulatedEvent::Interrupt => {
                generator.interrupt(now);
                interrupted = true;
            }
            SimulatedEvent::Sentinel => {
                is_enough = generator.on_sentinel(now, &mut agenda);
                if is_enough {
                    generator.interrupt(now);
                }
            }
            SimulatedEvent::Deadline(slot) => generator.on_deadline(slot, now, &mut agenda),
        }
    }
    let measurement = generator.finish();
    Simulated {
        trial: Trial {
            spec: spec.clone(),
            measurement,
            generator: GeneratorUse {
                backend: "sim".to_owned(),
                workers: 1,
                ..GeneratorUse::default()
            },
            kernel: BTreeMap::new(),
            observed: None,
            agents: Vec::new(),
            interrupted,
        },
        station: station.into_log(),
    }
}
