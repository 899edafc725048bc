//! From argv to the text that a person reads, with the simulated station in the engine's place.
//! Only the sockets are missing. Time is virtual, so that every number comes out the same each
//! time.

use super::{MACHINE, parse};
use crate::command::laboratory::{self, ReportSetup};
use crate::command::raw::RawCommand;
use knee_core::experiment::sweep::Sweep;
use knee_core::experiment::{self, Experiment};
use knee_core::report::{Conclusion, Host, Report};
use knee_core::trial::assess::assess;
use knee_core::trial::report::TrialReport;
use knee_core::trial::slice::Slice;
use knee_load::law::Law;
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;
use knee_render::{Json, Renderer, Text, parse_report};
use knee_sim::{Stall, World, simulate};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// What these arguments lead to in this world.
fn report(arguments: &str, world: &World) -> Report {
    let report = match parse(arguments).unwrap() {
        RawCommand::Run(raw) => {
            let (setup, mut experiment) = raw.resolve(&MACHINE).unwrap().split();
            simulated(&setup, &mut experiment, world)
        }
        RawCommand::Sweep(raw) => {
            let sweep = raw.resolve(&MACHINE).unwrap();
            simulated(&sweep.setup, &mut Sweep::new(sweep.spec), world)
        }
        other => panic!("{other:?} conducts nothing"),
    };
    Report { knee_version: "1.2.3".to_string(), ..report }
}

fn simulated<X>(setup: &ReportSetup, experiment: &mut X, world: &World) -> Report
where
    X: Experiment<Spec = TrialSpec, Trial = TrialReport, Conclusion: Into<Conclusion>>,
{
    let mut now = Nanos::ZERO;
    let run = |spec: &_| {
        let trial = simulate(spec, world).trial;
        let mut report = assess(&trial);
        report.set_slice(Some(Slice::of(&trial, now)));
        now += trial.measurement.window.length();
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = experiment::conduct(experiment, run);
    let host = Host { cpus: MACHINE.cpus, backend: "sim".to_string(), ..Host::default() };
    let started_at = "2026-05-04T09:30:00Z".to_string();
    laboratory::report(setup, started_at, host, conducted, |trials| trials)
}

/// The report as text, which must be the same after it was stored and read back.
fn shown(report: &Report) -> String {
    let text = |report: &Report| {
        let mut bytes = Vec::new();
        Text::default().render(report, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    };
    let mut json = Vec::new();
    Json.render(report, &mut json).unwrap();
    let read_back = parse_report(std::str::from_utf8(&json).unwrap()).unwrap();
    assert_eq!(text(&read_back), text(report));
    text(report)
}

fn station(workers: u32, service: Law) -> World {
    World { transport: Nanos::from_micros(25), ..World::station(workers, service) }
}

#[test]
fn a_run_of_poisson_arrivals() {
    let world = station(1, Law::Exp(Nanos::from_micros(120)));
    let arguments = "run http://127.0.0.1:8080/ --rate 5000 --arrival poisson -d 4s --seed 42";
    insta::assert_snapshot!(shown(&report(arguments, &world)));
}

#[test]
fn a_run_into_a_stall() {
    let mut world = station(4, Law::Fixed(Nanos::from_micros(200)));
    world.server_stalls = vec![Stall { at: Nanos::from_secs(5), length: Nanos::from_secs(1) }];
    let arguments = "run http://127.0.0.1:8080/ --rate 1000 -d 10s --seed 42";
    insta::assert_snapshot!(shown(&report(arguments, &world)));
}

#[test]
fn a_sweep_of_users() {
    let world = station(6, Law::Fixed(Nanos::from_micros(700)));
    let arguments = "sweep http://127.0.0.1:8080/ --bound p90=5ms --seed 42";
    insta::assert_snapshot!(shown(&report(arguments, &world)));
}

#[test]
fn a_sweep_of_rates() {
    let world = station(4, Law::Exp(Nanos::from_millis(2)));
    let arguments = "sweep http://127.0.0.1:8080/ --axis rate --arrival poisson --seed 42";
    insta::assert_snapshot!(shown(&report(arguments, &world)));
}
