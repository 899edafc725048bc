//! Servers that pause and stop, operation by operation in virtual time: each silence is named with
//! its begin and end, and throughput is what was sustained.

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
use knee_sim::{Stall, World, simulate};
use std::convert::Infallible;
use std::ops::ControlFlow;

/// Servers of the usual test; `KNEE_SILENCE_CASES` sets another number.
const SERVERS: u64 = 12;
/// Time between two slices.
const BETWEEN_S: f64 = 0.02;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// The generator is stopped now and then.
    Steady,
    /// For 150 to 500 ms again and again.
    Pauses,
    /// Once for 0.3 to 5 s.
    Stops,
}

struct Server {
    kind: Kind,
    world: World,
    /// Stops of the server and of the generator, as times of the experiment in s.
    silences: Vec<[f64; 2]>,
    stalls: Vec<[f64; 2]>,
    per_s: f64,
}

impl Server {
    fn any(number: u64) -> Server {
        let mut rng = rng::stream(number, 93);
        let mut unit = |lo: f64, hi: f64| lo + (hi - lo) * rng::unit(&mut rng);
        let kind = [Kind::Steady, Kind::Pauses, Kind::Stops][(number % 3) as usize];
        let workers = unit(1.0, 8.0) as u32;
        let service_s = unit(0.002, 0.006);
        let law = if number.is_multiple_of(2) { Law::Exp } else { Law::Fixed };
        let mut world = World::station(workers, law(Nanos::from_secs_f64(service_s)));
        world.transport = Nanos::from_micros(100);
        let length = unit(0.15, 0.5);
        let period = unit((3.0 * length).max(0.5), 10.0);
        let (first, lasts) = (unit(0.0, period), unit(0.3, 5.0));
        let at = unit(3.0, 22.0);
        let silences = match kind {
            Kind::Steady => Vec::new(),
            Kind::Pauses => {
                let begins = (0..).map(|k| first + f64::from(k) * period);
                begins.take_while(|t| *t < 200.0).map(|t| [t, t + length]).collect()
            }
            Kind::Stops => vec![[at, at + lasts]],
        };
        let mut stalls = Vec::new();
        for number in 0..if kind == Kind::Steady { 200 } else { 0 } {
            let begin = f64::from(number) + unit(0.0, 0.4);
            stalls.push([begin, begin + (0.01 * (-unit(1e-6, 1.0).ln()).powi(2)).min(0.6)]);
        }
        Server { kind, world, silences, stalls, per_s: f64::from(workers) / service_s }
    }

    fn world_at(&self, now_s: f64) -> World {
        let stalls = |all: &[[f64; 2]]| {
            let left = all.iter().filter(|s| s[1] > now_s);
            let stall = |s: &[f64; 2]| {
                let at = (s[0] - now_s).max(0.0);
                let length = Nanos::from_secs_f64(s[1] - now_s - at);
                Stall { at: Nanos::from_secs_f64(at), length }
            };
            left.map(stall).collect()
        };
        World {
            server_stalls: stalls(&self.silences),
            client_stalls: stalls(&self.stalls),
            ..self.world.clone()
        }
    }

    /// Throughput that was sustained up to this time. Outages are kept out of it.
    fn sustained_per_s(&self, now_s: f64) -> f64 {
        let length = |s: &[f64; 2]| (s[1].min(now_s) - s[0]).max(0.0);
        let (pauses, outages): (Vec<f64>, Vec<f64>) =
            self.silences.iter().map(length).partition(|length| *length < 1.0);
        let [paused_s, out_s] = [pauses, outages].map(|all| all.iter().sum::<f64>());
        self.per_s * (1.0 - paused_s / (now_s - out_s))
    }
}

/// What came of a server.
struct SilentCase {
    is_steady: bool,
    line: String,
    codes: Vec<String>,
    wrong: Vec<String>,
    /// Silences that happened while the sweep ran and are not named, and those named that did not
    /// happen.
    misses: Vec<String>,
    silences: usize,
    error: f64,
    is_covered: bool,
}

fn observe(number: u64) -> SilentCase {
    let server = Server::any(number);
    let mut now_s = 0.0;
    let mut loaded: Vec<[f64; 2]> = Vec::new();
    let run = |spec: &TrialSpec| {
        let trial = simulate(spec, &server.world_at(now_s)).trial;
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
    let misses = unnamed.map(|s| format!("{s:?} is not named"));
    let misses: Vec<String> =
        misses.chain(false_ones.map(|n| format!("{n:?} did not happen"))).collect();
    let sustained_per_s = server.sustained_per_s(now_s);
    let covers = |[lo, hi]: [f64; 2]| lo <= sustained_per_s && sustained_per_s <= hi;
    SilentCase {
        is_steady: server.kind == Kind::Steady,
        line: format!(
            "{number} {:?}: {sustained_per_s:.2}/s sustained, {now_s:.0} s, {:?}: {}",
            server.kind,
            codes(&conducted.findings),
            c.answer
        ),
        codes: codes(&conducted.findings).into_iter().map(str::to_owned).collect(),
        wrong: contradictions_of(&conducted),
        misses,
        silences: seen.len(),
        error: c.max_throughput_per_s / sustained_per_s - 1.0,
        is_covered: c.max_throughput_ci95_per_s.is_some_and(covers),
    }
}

#[test]
fn silences_are_named_and_throughput_is_sustained() {
    let asked = std::env::var("KNEE_SILENCE_CASES");
    let servers = asked.ok().and_then(|n| n.parse().ok()).unwrap_or(SERVERS);
    let (mut off, mut falsely, mut uncovered, mut wrong) = (0, 0, 0, 0);
    let (mut silences, mut unnamed) = (0, 0);
    let mut told = Vec::new();
    for number in 0..servers {
        let case = observe(number);
        let has = |code: &str| case.codes.iter().any(|c| c == code);
        let is_false = ["regime_change", "retrograde"].iter().any(|code| has(code))
            || case.is_steady
                && ["cycles_over_time", "drifts_over_time", "pauses", "outage"]
                    .iter()
                    .any(|code| has(code));
        wrong += case.wrong.len();
        off += u64::from(case.error.abs() > 0.02);
        unnamed += case.misses.len();
        silences += case.silences;
        falsely += u64::from(is_false);
        uncovered += u64::from(!case.is_covered);
        let is_right = case.error.abs() <= 0.02 && case.is_covered && case.wrong.is_empty();
        if !is_right || !case.misses.is_empty() || is_false {
            let SilentCase { error, line, misses, wrong, .. } = case;
            told.push(format!("{error:+.3} {line} {misses:?} {wrong:?}"));
        }
    }
    let told = format!(
        "{servers} servers: {off} off, {unnamed} of {silences} silences wrong, {falsely} falsely \
         named, {uncovered} not covered, {wrong} contradictions\n{}",
        told.join("\n")
    );
    println!("{told}");
    assert_eq!(wrong, 0, "{told}");
    // Few of few: one in twenty may be off by chance.
    assert!(20 * off <= servers + 20, "{told}");
    assert!(100 * unnamed <= silences + 100, "{told}");
    assert!(100 * falsely <= servers + 60, "{told}");
    assert!(14 * uncovered <= servers + 14, "{told}");
}
