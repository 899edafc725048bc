//! Sweeps of a thousand random servers, operation by operation in virtual time: what a report says
//! holds, whatever the server does.

use super::super::{Sweep, SweepSpec};
use super::codes;
use super::fake::{automatic, rates, slice_of};
use crate::experiment::sweep::report::SweepConclusion;
use crate::experiment::{Conducted, conduct};
use crate::report::contradictions::contradictions_of;
use crate::trial::report::TrialReport;
use knee_load::law::Law;
use knee_load::rng::{self, Rng};
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;
use knee_sim::{RejectAbove, Stall, World, simulate};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// What a server does beside serving.
const KINDS: [&str; 10] = [
    "fixed",
    "exponential",
    "lognormal",
    "full",
    "rejects",
    "pauses",
    "slows",
    "crashes",
    "hangs",
    "retrograde",
];
/// Findings that name how a server fails.
const FAILURES: [&str; 8] = [
    "errors",
    "errors_rise",
    "outage",
    "stopped_early",
    "hung_operations",
    "hung_users",
    "server_stalled",
    "littles_law_violation",
];
/// Servers of the usual test; `KNEE_RANDOM_SERVERS` asks for another number.
const SERVERS: u64 = 60;
/// Windows last for this many services.
const SERVICES: u64 = 240;

struct Server {
    kind: &'static str,
    world: World,
    /// Service grows by this share per second of the whole experiment.
    slows_per_s: f64,
    /// The process dies at this time of the whole experiment.
    crashes_at_s: Option<f64>,
    /// X_max·R(1), where theory gives it.
    knee: Option<f64>,
}

impl Server {
    fn any(number: u64) -> Server {
        let kind = KINDS[(number % KINDS.len() as u64) as usize];
        let mut rng = rng::stream(number, 77);
        let service = Nanos(1_000_000);
        let workers = (1.0 + rng::exp1(&mut rng) * 6.0).min(24.0) as u32;
        let transport = 0.01 + 0.1 * rng::unit(&mut rng);
        let law = any_law(kind, service, &mut rng);
        let mut world = World::station(workers, law);
        world.transport = Nanos((transport * law.mean_ns()) as u64);
        let mut server = Server {
            kind,
            world,
            slows_per_s: 0.0,
            crashes_at_s: None,
            knee: Some(f64::from(workers) * (1.0 + 2.0 * transport)),
        };
        server.trouble(workers, transport, &mut rng);
        server
    }

    fn trouble(&mut self, workers: u32, transport: f64, rng: &mut Rng) {
        let window = Nanos(SERVICES * 1_000_000);
        let world = &mut self.world;
        match self.kind {
            "full" => {
                let room = workers + 1 + (10.0 * rng::unit(rng)) as u32;
                world.capacity = Some(room);
            }
            "rejects" => {
                let share = 0.3 + 0.6 * rng::unit(rng);
                world.faults.rejects = Some(RejectAbove {
                    per_s: share * f64::from(workers) * 1e9 / world.service.mean_ns(),
                    burst: 3.0,
                    takes: Nanos(world.transport.0 / 2 + 1),
                });
                let knee = share * f64::from(workers) * (1.0 + 2.0 * transport);
                self.knee = (knee > 1.3).then_some(knee);
            }
            "pauses" => {
                // Often enough for each window to have its share of them.
                let period = Nanos(window.0 / (8 + (8.0 * rng::unit(rng)) as u64));
                let length = Nanos((period.0 as f64 * (0.05 + 0.15 * rng::unit(rng))) as u64);
                world.server_stalls = Stall::every(period, length, Nanos(400 * window.0));
            }
            "slows" => {
                self.slows_per_s = 0.05 + 0.2 * rng::unit(rng);
                // The share of the transport falls, and the knee with it.
                self.knee = None;
            }
            "crashes" => self.crashes_at_s = Some(window.as_secs_f64() * 8.0 * rng::unit(rng)),
            "hangs" => {
                world.faults.hangs_every = 2 + (8.0 * rng::unit(rng)) as u64;
                self.knee = None;
            }
            "retrograde" => {
                world.contention = 0.01 + 0.1 * rng::unit(rng);
                self.knee = None;
            }
            _ => {}
        }
    }

    /// One trial at this time of the experiment.
    fn run(&self, spec: &TrialSpec, now_s: f64) -> TrialReport {
        let mut world = self.world.clone();
        let now_ns = (now_s * 1e9) as u64;
        let slower = 1.0 + self.slows_per_s * now_s;
        world.service = scaled(world.service, slower);
        world.faults.crash_at = self.crashes_at_s.map(|at| {
            let left_s = (at - now_s).max(0.0);
            Nanos((left_s * 1e9) as u64)
        });
        // Pauses are of the server's time: each trial meets another part of their period.
        let left = |s: &Stall| Some(Stall { at: Nanos(s.at.0.checked_sub(now_ns)?), ..*s });
        world.server_stalls = world.server_stalls.iter().filter_map(left).collect();
        let mut begin_s = now_s;
        slice_of(&simulate(spec, &world).trial, &mut begin_s)
    }
}

fn any_law(kind: &str, service: Nanos, rng: &mut Rng) -> Law {
    let sigma = 0.2 + 0.8 * rng::unit(rng);
    match (kind, rng::unit(rng)) {
        ("fixed", _) => Law::Fixed(service),
        ("exponential", _) => Law::Exp(service),
        ("lognormal", _) => Law::LogNormal(service, sigma),
        (_, u) if u < 0.4 => Law::Fixed(service),
        (_, u) if u < 0.8 => Law::Exp(service),
        _ => Law::LogNormal(service, sigma),
    }
}

fn scaled(law: Law, factor: f64) -> Law {
    let longer = |t: Nanos| Nanos((t.0 as f64 * factor) as u64);
    match law {
        Law::Fixed(t) => Law::Fixed(longer(t)),
        Law::Exp(t) => Law::Exp(longer(t)),
        Law::Uniform(a, b) => Law::Uniform(longer(a), longer(b)),
        Law::LogNormal(t, sigma) => Law::LogNormal(longer(t), sigma),
    }
}

fn sweep(
    server: &Server,
    spec: SweepSpec,
) -> (Conducted<TrialReport, SweepConclusion>, SweepConclusion) {
    let mut now_s = 0.0;
    let run = |spec: &TrialSpec| {
        let report = server.run(spec, now_s);
        now_s += spec.window_end().as_secs_f64();
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = conduct(&mut Sweep::new(spec), run);
    let conclusion = conducted.conclusion.clone();
    (conducted, conclusion)
}

fn short(mut spec: SweepSpec) -> SweepSpec {
    spec.base.duration = Nanos(SERVICES * 1_000_000);
    spec.base.warmup = Nanos(spec.base.duration.0 / 10);
    spec.base.interval = Nanos(spec.base.duration.0 / 20);
    spec.base.timeout = Nanos(5 * spec.base.duration.0);
    spec.vusers_max = 512;
    spec
}

/// What came of all servers of one kind.
#[derive(Debug, Default)]
struct Tally {
    stated: u32,
    covered: u32,
    retrograde: u32,
    servers: u32,
}

#[test]
fn a_thousand_random_servers_are_reported_right() {
    let mut tallies: BTreeMap<&str, Tally> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut missed = Vec::new();
    let servers = std::env::var("KNEE_RANDOM_SERVERS").ok().and_then(|n| n.parse().ok());
    for number in 0..servers.unwrap_or(SERVERS) {
        let server = Server::any(number);
        let (conducted, c) = sweep(&server, short(automatic(number)));
        let found = codes(&conducted.findings);
        let line = format!("{number} {}: {} {found:?}", server.kind, c.answer);
        for what in contradictions_of(&conducted) {
            wrong.push(format!("{line}: {what}"));
        }
        if fails(&conducted.trials) && !found.iter().any(|f| FAILURES.contains(f)) {
            wrong.push(format!("{line}: fails, and no finding says how"));
        }
        let tally = tallies.entry(server.kind).or_default();
        tally.servers += 1;
        tally.retrograde += u32::from(found.contains(&"retrograde"));
        let stated = c.knee_range.or(c.knee_ci95);
        if let Some(([lo, hi], knee)) = stated.zip(server.knee) {
            let is_covered = lo <= knee && knee <= hi;
            tally.stated += 1;
            tally.covered += u32::from(is_covered);
            if !is_covered {
                missed.push(format!("{knee:.2} not in {lo:.2} to {hi:.2}: {line}"));
            }
        }
    }
    let (wrong, missed) = (wrong.join("\n"), missed.join("\n"));
    println!("{missed}");
    assert!(wrong.is_empty(), "{wrong}\n{tallies:?}\n{missed}");
    let all = tallies.values();
    let (covered, stated) = all.fold((0, 0), |(c, s), t| (c + t.covered, s + t.stated));
    // Of one or two of a kind any number may be missed by chance.
    let is_enough = |kind: &Tally| kind.stated <= 2 || 2 * kind.covered >= kind.stated;
    assert!(10 * covered >= 9 * stated && tallies.values().all(is_enough), "{tallies:?}\n{missed}");
    let steady = tallies.iter().filter(|(kind, _)| **kind != "retrograde");
    let (all, false_ones) = steady.fold((0, 0), |(n, f), (_, t)| (n + t.servers, f + t.retrograde));
    assert!(100 * false_ones <= all, "{false_ones} of {all} are called retrograde: {tallies:?}");
    let falling = &tallies["retrograde"];
    assert!(2 * falling.retrograde >= falling.servers, "{tallies:?}");
}

/// Whether something failed that matters: more than a percent of a trial, or a user without an
/// answer.
fn fails(trials: &[TrialReport]) -> bool {
    let failed = |t: &TrialReport| {
        let ok = t.outcomes.count(knee_load::measure::Outcome::Ok);
        100 * (t.outcomes.total() - ok) > t.outcomes.total().max(1)
    };
    trials.iter().any(failed)
}

#[test]
fn rates_of_random_servers_are_reported_right() {
    let (mut covered, mut stated) = (0, 0);
    let mut missed = Vec::new();
    for number in 0..60 {
        let mut server = Server::any(number % 3);
        let mut rng = rng::stream(number, 78);
        let workers = 1 + (4.0 * rng::unit(&mut rng)) as u32;
        let service_s = 0.002 + 0.008 * rng::unit(&mut rng);
        server.world.workers = Some(workers);
        let mean_s = server.world.service.mean_ns() / 1e9;
        server.world.service = scaled(server.world.service, service_s / mean_s);
        let mut capacity = f64::from(workers) / service_s;
        if number % 4 == 3 {
            capacity *= 0.5;
            server.world.faults.rejects =
                Some(RejectAbove { per_s: capacity, burst: 5.0, takes: Nanos::from_micros(100) });
        }
        let mut spec = rates(number);
        spec.base.duration = Nanos::from_secs(3);
        spec.base.interval = Nanos::from_millis(100);
        let (conducted, c) = sweep(&server, spec);
        let wrong = contradictions_of(&conducted);
        assert_eq!(wrong, Vec::<String>::new(), "{}", c.answer);
        stated += 1;
        let holds = |[lo, hi]: [f64; 2]| lo <= 1.01 * capacity && capacity <= 1.03 * hi;
        let is_covered = c.knee_range.is_some_and(holds);
        covered += u32::from(is_covered);
        if !is_covered {
            missed.push(format!("{number}: capacity {capacity}: {}", c.answer));
        }
    }
    assert!(10 * covered >= 9 * stated, "{covered} of {stated}: {missed:#?}");
}
