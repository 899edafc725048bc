//! Servers that pause, stop, rise, fall and change, and steady ones on a noisy host, operation by
//! operation in virtual time: what happened is named with its time, nothing else is, and throughput
//! is what was sustained.

use super::super::Sweep;
use super::codes;
use super::fake::automatic;
use crate::experiment::conduct;
use crate::experiment::sweep::report::SweepConclusion;
use crate::report::contradictions::contradictions_of;
use crate::trial::assess::assess;
use crate::trial::slice::Slice;
use knee_load::law::Law;
use knee_load::rng;
use knee_load::spec::TrialSpec;
use knee_load::time::Nanos;
use knee_sim::series::normal;
use knee_sim::{Stall, World, simulate};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::{ControlFlow, Range};

/// Servers of the usual test. `KNEE_SILENT_SERVERS` asks for another number, or for
/// some, such as `1000..2000` in a process of its own.
const SERVERS: Range<u64> = 0..14;
/// Time between two slices.
const BETWEEN_S: f64 = 0.02;

/// What a server does in the course of time, in s of the experiment.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Behaviour {
    /// Nothing. The generator is stopped now and then.
    Steady,
    /// It pauses for 150 to 500 ms again and again.
    Pauses,
    /// It stops once for 0.3 to 5 s.
    Stops,
    /// It rises and falls by 10 %.
    Cycles { period_s: f64, phase: f64 },
    /// It rises or falls by this share per second.
    Drifts { per_s: f64 },
    /// From this time on it serves this many times as much.
    Changes { at_s: f64, factor: f64 },
}

impl Behaviour {
    fn name(self) -> &'static str {
        match self {
            Behaviour::Steady => "steady",
            Behaviour::Pauses => "pauses",
            Behaviour::Stops => "stops",
            Behaviour::Cycles { .. } => "cycles",
            Behaviour::Drifts { .. } => "drifts",
            Behaviour::Changes { .. } => "changes",
        }
    }

    /// What it serves at a time, as a share of what it serves at first or on average.
    fn speed_at(self, at_s: f64) -> f64 {
        match self {
            Behaviour::Steady | Behaviour::Pauses | Behaviour::Stops => 1.0,
            Behaviour::Cycles { period_s, phase } => {
                1.0 + 0.1 * (std::f64::consts::TAU * (at_s / period_s + phase)).sin()
            }
            Behaviour::Drifts { per_s } => 1.0 + per_s * at_s,
            Behaviour::Changes { at_s: change_s, factor } => {
                if at_s < change_s {
                    1.0
                } else {
                    factor
                }
            }
        }
    }
}

struct Server {
    behaviour: Behaviour,
    world: World,
    /// Stops of the server and of the generator, as times of the experiment in s.
    silences: Vec<[f64; 2]>,
    stalls: Vec<[f64; 2]>,
    per_s: f64,
    /// Standard deviation of the host's speed from slice to slice.
    noise: f64,
}

impl Server {
    fn any(number: u64) -> Server {
        let mut rng = rng::stream(number, 93);
        let mut unit = |lo: f64, hi: f64| lo + (hi - lo) * rng::unit(&mut rng);
        let way = if unit(0.0, 1.0) < 0.5 { 1.0 } else { -1.0 };
        let behaviour = match number % 7 {
            0 | 1 => Behaviour::Steady,
            2 => Behaviour::Pauses,
            3 => Behaviour::Stops,
            4 => Behaviour::Cycles { period_s: unit(4.0, 12.0), phase: unit(0.0, 1.0) },
            5 => Behaviour::Drifts { per_s: 0.1 / 20.0 * way },
            _ => Behaviour::Changes { at_s: unit(2.0, 30.0), factor: 1.25_f64.powf(way) },
        };
        let workers = unit(1.0, 8.0) as u32;
        let service_s = unit(0.002, 0.006);
        let law = if unit(0.0, 1.0) < 0.5 { Law::Exp } else { Law::Fixed };
        let mut world = World::station(workers, law(Nanos::from_secs_f64(service_s)));
        world.transport = Nanos::from_micros(100);
        let length = unit(0.15, 0.5);
        let period = unit((3.0 * length).max(0.5), 10.0);
        let (first, lasts) = (unit(0.0, period), unit(0.3, 5.0));
        let at = unit(0.5, 25.0);
        let silences = match behaviour {
            Behaviour::Pauses => {
                let begins = (0..).map(|k| first + f64::from(k) * period);
                begins.take_while(|t| *t < 200.0).map(|t| [t, t + length]).collect()
            }
            Behaviour::Stops => vec![[at, at + lasts]],
            _ => Vec::new(),
        };
        let is_steady = behaviour == Behaviour::Steady;
        let mut stalls = Vec::new();
        for number in 0..if is_steady { 200 } else { 0 } {
            let begin = f64::from(number) + unit(0.0, 0.4);
            stalls.push([begin, begin + (0.01 * (-unit(1e-6, 1.0).ln()).powi(2)).min(0.6)]);
        }
        let noise = unit(0.0, if is_steady { 0.03 } else { 0.015 });
        Server { behaviour, world, silences, stalls, per_s: f64::from(workers) / service_s, noise }
    }

    /// The world of a slice, with the speed that the host has in it.
    fn world_at(&self, now_s: f64, host_speed: f64) -> World {
        let stalls = |all: &[[f64; 2]]| {
            let left = all.iter().filter(|s| s[1] > now_s);
            let stall = |s: &[f64; 2]| {
                let at = (s[0] - now_s).max(0.0);
                let length = Nanos::from_secs_f64(s[1] - now_s - at);
                Stall { at: Nanos::from_secs_f64(at), length }
            };
            left.map(stall).collect()
        };
        let speed = self.behaviour.speed_at(now_s) * host_speed;
        let slower = |t: Nanos| Nanos((t.0 as f64 / speed) as u64);
        World {
            server_stalls: stalls(&self.silences),
            client_stalls: stalls(&self.stalls),
            service: match self.world.service {
                Law::Exp(t) => Law::Exp(slower(t)),
                Law::Fixed(t) => Law::Fixed(slower(t)),
                other => other,
            },
            ..self.world.clone()
        }
    }

    /// Throughput that was sustained over the rounds, after a lasting change that is named. Outages
    /// are kept out of it.
    fn sustained_per_s(&self, c: &SweepConclusion, now_s: f64) -> f64 {
        let length = |s: &[f64; 2]| (s[1].min(now_s) - s[0]).max(0.0);
        let (pauses, outages): (Vec<f64>, Vec<f64>) =
            self.silences.iter().map(length).partition(|length| *length < 1.0);
        let [paused_s, out_s] = [pauses, outages].map(|all| all.iter().sum::<f64>());
        let change_ns = c.regime_change.as_ref().and_then(|change| change.at_ns).unwrap_or(0);
        let begins = c.slices.iter().filter(|s| s.round > 0).filter_map(|s| s.begin_ns);
        let begin_s = begins.filter(|ns| *ns >= change_ns).min().unwrap_or(0) as f64 / 1e9;
        let steps = 1_000;
        let at = |i: u32| begin_s + (now_s - begin_s) * (f64::from(i) + 0.5) / f64::from(steps);
        let speed = (0..steps).map(|i| self.behaviour.speed_at(at(i))).sum::<f64>();
        self.per_s * speed / f64::from(steps) * (1.0 - paused_s / (now_s - out_s))
    }

    /// What is wrong in what a sweep says of its changes with time.
    fn misnamed(&self, c: &SweepConclusion, codes: &[&str]) -> Option<String> {
        let begins = || c.slices.iter().filter_map(|s| Some((s.round, s.begin_ns? as f64 / 1e9)));
        let first_s = begins().find(|(round, _)| *round > 0).map_or(0.0, |(_, at)| at);
        let last_s = begins().next_back().map_or(0.0, |(_, at)| at);
        let span_s = last_s - first_s;
        let has = |code: &str| codes.contains(&code);
        let named: Vec<&str> = [
            "cycles_over_time",
            "drifts_over_time",
            "regime_change",
            "retrograde",
            "pauses",
            "periodic_pauses",
            "outage",
            "host_speed_varied",
        ]
        .into_iter()
        .filter(|code| has(code))
        .collect();
        let only = |own: &[&str]| named.iter().all(|code| own.contains(code));
        let is_right = match self.behaviour {
            Behaviour::Steady => named.is_empty(),
            Behaviour::Pauses => only(&["pauses", "periodic_pauses"]),
            Behaviour::Stops => only(&["pauses", "outage"]),
            Behaviour::Cycles { period_s, .. } => {
                let is_near = |found_ns: u64| (found_ns as f64 / 1e9 / period_s - 1.0).abs() < 0.1;
                let is_named = c.cycle.is_some_and(|cycle| is_near(cycle.period_ns));
                (is_named || span_s < 2.0 * period_s)
                    && only(&["cycles_over_time", "drifts_over_time"])
            }
            Behaviour::Drifts { per_s } => {
                let by = c.drift_percent.unwrap_or(0.0) / 100.0;
                let is_named = by * per_s > 0.0;
                (is_named || (per_s * span_s).abs() < 0.1) && only(&["drifts_over_time"])
            }
            Behaviour::Changes { at_s, factor } => {
                let after = begins().find(|(_, at)| *at >= at_s).map_or(u32::MAX, |(r, _)| r);
                let last = begins().map(|(round, _)| round).max().unwrap_or(0);
                let is_seen = after > 3 && last >= after.saturating_add(3);
                let is_near = |change: &crate::experiment::sweep::report::RegimeChange| {
                    let off_s = change.at_ns.unwrap_or(0) as f64 / 1e9 - at_s;
                    let by = change.after_per_s / change.before_per_s / factor;
                    (-2.0..=3.0).contains(&off_s) && (by - 1.0).abs() < 0.05
                };
                let is_named = c.regime_change.as_ref().is_some_and(is_near);
                if is_seen {
                    is_named && only(&["regime_change"])
                } else {
                    only(&["regime_change", "drifts_over_time"])
                }
            }
        };
        (!is_right).then(|| {
            format!("named {named:?} {:?} {:?} {:?}", c.cycle, c.drift_percent, c.regime_change)
        })
    }
}

/// What came of a server.
struct SilentCase {
    name: &'static str,
    line: String,
    wrong: Vec<String>,
    /// Silences that happened while the sweep ran and are not named, and those named that did not
    /// happen.
    misses: Vec<String>,
    misnamed: Option<String>,
    silences: usize,
    error: f64,
    is_covered: bool,
}

fn observe(number: u64) -> SilentCase {
    let server = Server::any(number);
    let mut rng = rng::stream(number, 94);
    let mut now_s = 0.0;
    let mut loaded: Vec<[f64; 2]> = Vec::new();
    let run = |spec: &TrialSpec| {
        let host_speed = 1.0 + server.noise * normal(&mut rng);
        let trial = simulate(spec, &server.world_at(now_s, host_speed)).trial;
        let slice = Slice::of(&trial, Nanos::from_secs_f64(now_s));
        loaded.push([now_s, slice.end_ns as f64 / 1e9]);
        now_s = slice.end_ns as f64 / 1e9 + BETWEEN_S;
        let mut report = assess(&trial);
        report.set_slice(Some(slice));
        Ok::<_, Infallible>(ControlFlow::Continue(report))
    };
    let Ok(conducted) = conduct(&mut Sweep::new(automatic(number)), run);
    let c: &SweepConclusion = &conducted.conclusion;
    let seconds = |ns: u64| ns as f64 / 1e9;
    let outages = c.outages.iter().filter_map(|o| Some([o.begin_ns?, o.end_ns?]));
    let pauses = c.pauses.iter().flat_map(|p| p.times_ns.iter().map(|t| t.map(|ns| ns as u64)));
    let named: Vec<[f64; 2]> = outages.chain(pauses).map(|s| s.map(seconds)).collect();
    // The longest gap of the slowest level, whose single user waits for one service.
    let room_s = 0.05 + 6.0 * server.world.service.mean_ns() / 1e9;
    let is_near = |a: &[f64; 2], b: &[f64; 2]| {
        (a[0] - b[0]).abs() <= room_s + BETWEEN_S && (a[1] - b[1]).abs() <= room_s
    };
    let is_seen = |s: &&[f64; 2]| {
        let common = loaded.iter().map(|l| (l[1].min(s[1]) - l[0].max(s[0])).max(0.0));
        common.sum::<f64>() > 0.8 * (s[1] - s[0]) && s[1] < now_s - 0.1
    };
    let seen: Vec<&[f64; 2]> = server.silences.iter().filter(is_seen).collect();
    let unnamed = seen.iter().filter(|s| !named.iter().any(|n| is_near(n, s)));
    let false_ones = named
        .iter()
        .filter(|n| !server.silences.iter().any(|s| n[0] < s[1] + room_s && s[0] - room_s < n[1]));
    let misses = unnamed.map(|s| format!("{s:.3?} is not named"));
    let misses: Vec<String> =
        misses.chain(false_ones.map(|n| format!("{n:.3?} did not happen"))).collect();
    let codes = codes(&conducted.findings);
    let sustained_per_s = server.sustained_per_s(c, now_s);
    let covers = |[lo, hi]: [f64; 2]| lo <= sustained_per_s && sustained_per_s <= hi;
    SilentCase {
        name: server.behaviour.name(),
        line: format!(
            "{number} {:?} {:?} x{:?} noise {:.3}: {sustained_per_s:.2}/s sustained, {now_s:.0} s, \
             {codes:?}: {}",
            server.behaviour, server.world.service, server.world.workers, server.noise, c.answer
        ),
        wrong: contradictions_of(&conducted),
        misses,
        misnamed: server.misnamed(c, &codes),
        silences: seen.len(),
        error: c.max_throughput_per_s / sustained_per_s - 1.0,
        is_covered: c.max_throughput_ci95_per_s.is_some_and(covers),
    }
}

/// How many servers of one kind there were, and what was wrong with them.
#[derive(Debug, Default)]
struct ServerTally {
    servers: u64,
    /// Throughput is off by more than 2 %.
    off: u64,
    uncovered: u64,
    misnamed: u64,
    silences: u64,
    /// Silences not named, and those that did not happen.
    silences_wrong: u64,
    contradictions: u64,
}

impl ServerTally {
    fn add(&mut self, case: &SilentCase) {
        self.servers += 1;
        self.off += u64::from(case.error.abs() > 0.02);
        self.uncovered += u64::from(!case.is_covered);
        self.misnamed += u64::from(case.misnamed.is_some());
        self.silences += case.silences as u64;
        self.silences_wrong += case.misses.len() as u64;
        self.contradictions += case.wrong.len() as u64;
    }
}

/// The servers that are asked for.
fn asked() -> Range<u64> {
    let asked = std::env::var("KNEE_SILENT_SERVERS").unwrap_or_default();
    let number = |text: &str| text.parse().ok();
    let range = match asked.split_once("..") {
        Some((from, until)) => number(from).zip(number(until)),
        None => number(&asked).map(|n| (0, n)),
    };
    range.map_or(SERVERS, |(from, until)| from..until)
}

#[test]
fn what_servers_did_is_named_and_what_they_sustained() {
    let mut tallies = BTreeMap::<&str, ServerTally>::new();
    for number in asked() {
        let case = observe(number);
        tallies.entry(case.name).or_default().add(&case);
        tallies.entry("all").or_default().add(&case);
        let is_right = case.error.abs() <= 0.02 && case.is_covered && case.wrong.is_empty();
        if !is_right || !case.misses.is_empty() || case.misnamed.is_some() {
            let SilentCase { error, line, misses, wrong, misnamed, is_covered, .. } = case;
            let covers = if is_covered { "" } else { "UNCOVERED " };
            println!("{error:+.3} {covers}{misnamed:?} {misses:?} {wrong:?} {line}");
        }
    }
    for (name, tally) in &tallies {
        println!("{name}: {tally:?}");
    }
    let all = &tallies["all"];
    assert_eq!(all.contradictions, 0, "{tallies:#?}");
    // Few of few: one or two may be wrong by chance.
    assert!(20 * all.off <= all.servers + 20, "{tallies:#?}");
    assert!(100 * all.silences_wrong <= all.silences + 200, "{tallies:#?}");
    assert!(100 * all.misnamed <= all.servers + 100, "{tallies:#?}");
    assert!(14 * all.uncovered <= all.servers + 28, "{tallies:#?}");
}
