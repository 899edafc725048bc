//! Simulated servers in virtual time. They take the engine's place in tests of the core.
//!
//! The load comes from the real drivers and is recorded by the real recorder. Only the network, the
//! server and the clock are simulated. The same spec and world give the same trial, to the
//! nanosecond.
//!
//! `path` simulates a path that flows fill. The crate knows `knee-load` alone, so that tests of any
//! crate above can use it.
#![forbid(unsafe_code)]

mod agenda;
pub mod fixture;
mod generator;
mod path;
mod request;
pub mod series;
mod station;
pub mod theory;

pub use crate::station::{Faults, RejectAbove};
pub use path::{Path, simulate_flows};

use crate::station::FaultState;
use agenda::{Agenda, SimulatedEvent};
use generator::Generator;
use knee_load::law::Law;
use knee_load::measure::{GeneratorUse, Histogram, Trial};
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;
use request::RequestFate;
use station::{Admission, StationState};
use std::collections::BTreeMap;

/// The simulated server and path.
#[derive(Clone, Debug, PartialEq)]
pub struct World {
    /// Operations served at once; `None`: no limit.
    pub workers: Option<u32>,
    /// Order of service.
    pub order: ServiceOrder,
    /// Service time; at least a nanosecond, so that virtual time advances.
    pub service: Law,
    /// Maximum operations at the station, in service or waiting (K in Kendall's notation); further
    /// ones are refused. `None`: no limit.
    pub capacity: Option<u32>,
    /// Time from the generator to the station, and the same back.
    pub transport: Nanos,
    /// Stalls of the station, in which it makes no progress.
    pub server_stalls: Vec<Stall>,
    /// Stalls of the generator, in which it neither starts nor notices anything.
    pub client_stalls: Vec<Stall>,
    /// Slower service at first.
    pub slow_start: Option<SlowStart>,
    /// Growth of service times per second, as a share of the first one.
    pub drift_per_s: f64,
    /// Share by which each further operation at the station lengthens a service. With more load
    /// than workers throughput falls.
    pub contention: f64,
    /// Faults of the server.
    pub faults: Faults,
    /// Time at which the user interrupts the trial; `None`: it runs to its end.
    pub interrupted_at: Option<Nanos>,
}

impl World {
    /// A station of this number of workers (`None`: unlimited) with an endless queue, no transport
    /// and no trouble.
    pub fn station(workers: impl Into<Option<u32>>, service: Law) -> World {
        World {
            workers: workers.into(),
            order: ServiceOrder::FirstCome,
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

/// The waiting operation that a free worker serves next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServiceOrder {
    /// The one that came first.
    FirstCome,
    /// The one that came last.
    LastCome,
    /// Any.
    Random,
    /// One of every fourth connection before all others.
    Favourites,
}

/// A stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Begin, in run time.
    pub at: Nanos,
    /// Length.
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
    /// Factor of service times at the beginning of the run, at least 1.
    pub factor: f64,
    /// Time over which the factor falls linearly to 1.
    pub over: Nanos,
}

/// Result of a simulation.
#[derive(Clone, Debug)]
pub struct Simulated {
    /// The trial as measured by the generator.
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
            SimulatedEvent::Arrive(request) => match faults.fault_of(&request, now) {
                Some(fault) => generator.answer_if_any(request, fault, now, &mut agenda),
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
