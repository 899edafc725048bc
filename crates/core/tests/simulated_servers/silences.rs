//! Random servers that pause or stop, and steady ones under a noisy host: each silence is named,
//! with its place, and no other. `KNEE_SILENCE_CASES` sets the number of each kind.

use crate::{closed, ms, open};
use knee_core::trial::assess::assess;
use knee_core::trial::silence::SilenceReport;
use knee_load::law::Law;
use knee_load::measure::Trial;
use knee_load::rng::{self, Rng};
use knee_load::spec::{ArrivalLaw, TrialSpec};
use knee_load::time::Nanos;
use knee_sim::fixture::trial;
use knee_sim::{Stall, World, simulate};
use std::env;

/// Cases of each kind.
fn cases() -> u64 {
    env::var("KNEE_SILENCE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(200)
}

/// A load, the server that it meets and when that server stopped.
struct Case {
    spec: TrialSpec,
    world: World,
    stops: Vec<Stall>,
}

fn between(rng: &mut Rng, from: f64, to: f64) -> f64 {
    from + (to - from) * rng::unit(rng)
}

fn length(rng: &mut Rng, from_s: f64, to_s: f64) -> Nanos {
    Nanos::from_secs_f64(between(rng, from_s, to_s))
}

fn one_of<T: Copy>(rng: &mut Rng, all: &[T]) -> T {
    all[(rng::unit(rng) * all.len() as f64) as usize]
}

/// A load that keeps operations under way, or offers up to 70 % of what the server can do.
fn steady(rng: &mut Rng) -> Case {
    let mean_ms = 0.5 * 20_f64.powf(rng::unit(rng));
    let mean = Nanos::from_secs_f64(mean_ms / 1e3);
    let service = match one_of(rng, &[0, 1, 2]) {
        0 => Law::Fixed(mean),
        1 => Law::Exp(mean),
        _ => Law::LogNormal(mean, 0.5),
    };
    let workers = one_of(rng, &[1, 2, 4, 8]);
    let per_s = between(rng, 0.1, 0.7) * f64::from(workers) * 1e3 / (1.2 * mean_ms);
    let load = match one_of(rng, &[0, 1, 2, 3]) {
        0 => open(per_s.max(20.0) as u64, ArrivalLaw::Poisson),
        1 => open(per_s.max(20.0) as u64, ArrivalLaw::Constant),
        2 => closed(one_of(rng, &[8, 16, 64]), Law::Exp(Nanos::from_millis(10))),
        _ => closed(one_of(rng, &[1, 2, 4, 16, 64]), Law::ZERO),
    };
    let mut spec = trial(load, length(rng, 8.0, 14.0));
    spec.warmup = one_of(rng, &[Nanos::ZERO, ms(500), ms(1_000)]);
    spec.timeout = one_of(rng, &[ms(1_000), ms(30_000), ms(60_000)]);
    spec.seed = (rng::unit(rng) * 1e9) as u64;
    Case { spec, world: World::station(workers, service), stops: Vec::new() }
}

/// Several times 150 to 500 ms, every 0.5 to 10 s: after a fixed period or a random one.
fn pausing(rng: &mut Rng) -> Case {
    let mut case = steady(rng);
    let length = length(rng, 0.15, 0.5);
    let period = 2.0 * length.as_secs_f64() + between(rng, 0.2, 3.0);
    let spread = one_of(rng, &[0.0, 0.3]);
    let mut at = between(rng, 0.2, 0.2 + period);
    let end = case.spec.window_end().as_secs_f64() - 0.6;
    while at < end {
        case.stops.push(Stall { at: Nanos::from_secs_f64(at), length });
        at += period * between(rng, 1.0 - spread, 1.0 + spread);
    }
    case
}

/// Once 0.3 to 5 s, at any time up to the end of the window.
fn stopping(rng: &mut Rng) -> Case {
    let mut case = steady(rng);
    let end_s = case.spec.window_end().as_secs_f64();
    let (at, length) = (length(rng, 0.3, end_s), length(rng, 0.3, 5.0));
    case.stops.push(Stall { at, length });
    case
}

/// Stops of the generator of up to 0.6 s, and of the server of up to 80 ms.
fn disturbed(rng: &mut Rng) -> Case {
    let mut case = steady(rng);
    let end_s = case.spec.window_end().as_secs_f64();
    for number in 0..(3.0 * end_s) as u32 {
        // Far enough apart that no two of them are one.
        let slot_s = f64::from(number) / 3.0;
        let at = length(rng, slot_s, slot_s + 0.25);
        let long = Nanos::from_secs_f64((rng::exp1(rng) * 0.02).min(0.08));
        case.world.server_stalls.push(Stall { at, length: long });
        let at = length(rng, 0.0, end_s);
        let long = Nanos::from_secs_f64((rng::exp1(rng).powi(2) * 0.02).min(0.6));
        case.world.client_stalls.push(Stall { at, length: long });
    }
    case
}

/// Begin and end of what was named, in seconds of the run.
fn named(report: &SilenceReport, spec: &TrialSpec) -> Vec<[f64; 2]> {
    let outages = report.outages.iter().map(|outage| [outage.start_ns, outage.end_ns]);
    let pauses = report.pauses.iter().flat_map(|pauses| pauses.times_ns.iter().copied());
    let of_run = |ns: i64| ns as f64 / 1e9 + spec.warmup.as_secs_f64();
    outages.chain(pauses).map(|times| times.map(of_run)).collect()
}

/// The 99th percentile of the times between completions, in seconds.
fn gap_p99_s(trial: &Trial) -> f64 {
    let timeline = &trial.measurement.timeline;
    let ends: Vec<usize> = (0..timeline.good.len()).filter(|&i| timeline.good[i] > 0).collect();
    let mut gaps: Vec<usize> = ends.windows(2).map(|w| w[1] - w[0]).collect();
    gaps.sort_unstable();
    let at = (gaps.len() as f64 * 0.99) as usize;
    gaps.get(at).map_or(0.0, |gap| *gap as f64 * timeline.bin.as_secs_f64())
}

/// Runs cases of a kind. Returns how many stops there were, how many were not named, and how many
/// other silences were, with the first of each in words.
fn run_all(kind: fn(&mut Rng) -> Case) -> (usize, Vec<String>, Vec<String>) {
    let (mut stops, mut missed, mut false_names) = (0, Vec::new(), Vec::new());
    for number in 0..cases() {
        let mut case = kind(&mut rng::stream(number, 77));
        case.world.server_stalls.extend(&case.stops);
        let done = simulate(&case.spec, &case.world).trial;
        let report = assess(&done);
        let named = named(&report.http().expect("one over HTTP").silence, &case.spec);
        let margin = 0.05 + gap_p99_s(&done);
        let last = done.measurement.window.end.as_secs_f64();
        let near = |stop: &Stall, name: &[f64; 2]| {
            let begin = stop.at.as_secs_f64();
            let end = begin + stop.length.as_secs_f64();
            let ends = if stop.length >= case.spec.timeout {
                // The server first serves those who have gone; or the trial ends before it does.
                name[1] >= end.min(last) - margin
            } else {
                (name[1] - end).abs() <= margin
            };
            (name[0] - begin).abs() <= margin && ends
        };
        let what = |word: &str| {
            format!(
                "{number}: {word} {:?} {:?} {:?}: {named:.3?}",
                case.spec.load, case.world.service, case.stops
            )
        };
        stops += case.stops.len();
        for stop in case.stops.iter().filter(|stop| !named.iter().any(|name| near(stop, name))) {
            missed.push(what(&format!("{:.3} s", stop.at.as_secs_f64())));
        }
        let is_false = |name: &&[f64; 2]| !case.stops.iter().any(|stop| near(stop, name));
        if let Some(name) = named.iter().find(is_false) {
            false_names.push(what(&format!("{name:.3?}")));
        }
    }
    (stops, missed, false_names)
}

#[test]
fn pauses_are_named_each_with_begin_and_end() {
    let (stops, missed, false_names) = run_all(pausing);
    println!("pauses: {} of {stops} missed, {} false", missed.len(), false_names.len());
    assert!(missed.len() * 100 <= stops, "{} of {stops}: {missed:#?}", missed.len());
    assert!(false_names.len() as u64 * 100 <= cases(), "{false_names:#?}");
}

#[test]
fn outages_are_named_with_begin_and_end() {
    let (stops, missed, false_names) = run_all(stopping);
    println!("outages: {} of {stops} missed, {} false", missed.len(), false_names.len());
    assert!(missed.len() * 100 <= stops, "{} of {stops}: {missed:#?}", missed.len());
    assert!(false_names.len() as u64 * 100 <= cases(), "{false_names:#?}");
}

#[test]
fn steady_servers_under_a_noisy_host_have_no_silence() {
    let (_, _, false_names) = run_all(disturbed);
    println!("steady: {} false", false_names.len());
    assert!(false_names.len() as u64 * 100 <= cases(), "{false_names:#?}");
}
