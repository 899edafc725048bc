//! A fleet of four agents beside one process. Measures what arrives at the server, how far apart
//! agents begin, where a sweep finds the knee, and what many agents take of their coordinator.

use super::contender::{BenchProgram, split};
use super::lab::Lab;
use super::open::{ScheduleFit, compare};
use super::process::{self, BenchServer, free_port, pinned};
use super::reader::json;
use super::round::{MarkdownTable, median, spread};
use crate::repo::LINTED;
use crate::{repo, tools};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

const AGENTS: usize = 4;
const CONSTANT_PER_S: f64 = 2_000.0;
/// Rate of the Poisson check. A thread sends two requests at least 8 µs after each other. At a high
/// rate the missing shorter gaps would be a departure from Poisson that no generator of one thread
/// can avoid.
const POISSON_PER_S: f64 = 200.0;
/// Agents' shares of so slow a schedule cannot be taken for one another's.
const SKEW_PER_S: f64 = 40.0;

/// NATS and agents on the generator's core; two of them have clocks that are `shift_s` off.
struct Fleet {
    url: String,
    _running: Vec<BenchServer>,
}

impl Fleet {
    fn start(lab: &Lab, shift_s: i64) -> Result<Fleet, String> {
        let program = tools::find("nats-server").ok_or("nats-server is missing")?;
        let port = free_port()?;
        let folder = lab.scratch(&format!("nats-{port}"));
        let mut nats = Command::new(program);
        nats.args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"]).arg(&folder);
        let mut running = vec![BenchServer::start_on(port, nats)?];
        let url = format!("nats://127.0.0.1:{port}");
        let ls = || {
            let mut ls = Command::new(&lab.knee);
            ls.args(["fleet", "ls", "--nats", &url]).output().ok()
        };
        let listed = |agents: usize| {
            let shown = |out: std::process::Output| {
                String::from_utf8_lossy(&out.stdout).lines().count() > agents
            };
            ls().is_some_and(shown)
        };
        for number in 0..AGENTS {
            let shift_ns = match number {
                0 => shift_s * 1_000_000_000,
                1 => -shift_s * 1_000_000_000,
                _ => 0,
            };
            let line = format!("agent --nats {url} --name a{number} --clock-shift-ns {shift_ns}");
            let arguments = split(&line);
            let agent = pinned(lab.generator_core, &lab.knee, &arguments);
            let agent = BenchServer::spawn(agent, 0)?;
            let comes = |_| {
                std::thread::sleep(Duration::from_millis(200));
                listed(number + 1)
            };
            if !(0..50).any(comes) {
                return Err(agent.failed("the agent does not come:"));
            }
            running.push(agent);
        }
        Ok(Fleet { url, _running: running })
    }
}

/// `knee run` with this load, alone or on a fleet; when its requests arrived at the server, by the
/// kernel's clock there.
fn arrivals(lab: &Lab, fleet: Option<&Fleet>, load: &str) -> Result<Vec<i64>, String> {
    let log = lab.scratch("fleet-arrivals.csv");
    let serve = format!("http --listen 127.0.0.1:0 --workers 1 --log {}", log.display());
    let server = lab.serve_knee(&serve)?;
    let mut line =
        format!("run http://127.0.0.1:{}/ -t 1 --warmup 0s --quiet --json - {load}", server.port);
    if let Some(fleet) = fleet {
        line += &format!(" --fleet {}", fleet.url);
    }
    let report = server.serve(|_| knee(lab, &line))?;
    let rows = process::log_columns(&process::read(&log)?, ["arrival_ns"])?;
    let mut stamps: Vec<i64> = rows.into_iter().flatten().collect();
    stamps.sort_unstable();
    let completed = report["trials"][0]["completed"].as_u64().unwrap_or_default();
    if completed as usize == stamps.len() {
        Ok(stamps)
    } else {
        Err(format!("{completed} completed, {} arrived", stamps.len()))
    }
}

/// knee with this command line on the generator's core; its report.
fn knee(lab: &Lab, line: &str) -> Result<Value, String> {
    lab.run(BenchProgram::Knee, line)?.ended.read(json)
}

/// The largest distance between the distribution of gaps and an exponential one of this rate, and
/// the probability of as much by chance. Kolmogorov 1933, Stephens 1970 for small numbers.
fn kolmogorov_smirnov(stamps: &[i64], per_s: f64) -> (f64, f64) {
    let gaps = stamps.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e9);
    let mut gaps: Vec<f64> = gaps.collect();
    gaps.sort_by(f64::total_cmp);
    let n = gaps.len() as f64;
    let apart = |(rank, gap): (usize, &f64)| {
        let expected = 1.0 - (-gap * per_s).exp();
        let [below, above] = [rank as f64 / n, (rank as f64 + 1.0) / n];
        (expected - below).abs().max((above - expected).abs())
    };
    let distance = gaps.iter().enumerate().map(apart).fold(0.0, f64::max);
    let x = (n.sqrt() + 0.12 + 0.11 / n.sqrt()) * distance;
    let terms = (1..=100).map(|k| {
        let k = f64::from(k);
        let sign = if k as u32 % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * k * k * x * x).exp()
    });
    (distance, terms.sum::<f64>().clamp(0.0, 1.0))
}

/// The variance of the numbers of arrivals in slots of this length over their mean: 1 of Poisson.
fn dispersion(stamps: &[i64], slot_s: f64) -> f64 {
    let Some((&first, &last)) = stamps.first().zip(stamps.last()) else {
        return 0.0;
    };
    let slot_ns = (slot_s * 1e9) as i64;
    let slots = ((last - first) / slot_ns).max(1) as usize;
    let mut counts = vec![0.0; slots];
    for stamp in stamps {
        if let Some(count) = counts.get_mut(((stamp - first) / slot_ns) as usize) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / slots as f64;
    let squares: f64 = counts.iter().map(|c| (c - mean).powi(2)).sum();
    squares / slots as f64 / mean
}

/// How far apart agents were that send in turn, in microseconds: at their first requests, and in
/// the middle of all.
fn skew_us(stamps: &[i64], per_s: f64) -> (f64, f64) {
    let ideal = |k: usize| k as f64 * 1e6 / per_s;
    let phase = |(k, &t): (usize, &i64)| (t - stamps[0]) as f64 / 1e3 - ideal(k);
    let phases: Vec<f64> = stamps.iter().enumerate().map(phase).collect();
    let range = |of: Vec<f64>| {
        let most = of.iter().copied().fold(f64::MIN, f64::max);
        most - of.into_iter().fold(f64::MAX, f64::min)
    };
    let medians = (0..AGENTS).map(|agent| {
        let of_agent: Vec<f64> = phases.iter().copied().skip(agent).step_by(AGENTS).collect();
        median(&of_agent)
    });
    (range(phases[..AGENTS].to_vec()), range(medians.collect()))
}

/// All of it.
///
/// # Errors
/// Something does not start, or loses a request.
pub fn run(lab: &Lab) -> Result<String, String> {
    let fleet = Fleet::start(lab, 0)?;
    let mut text = String::from("## A fleet of four agents\n\n");
    text += "Agents share one core, the server has another; arrivals are the server's log \
             (`knee serve http --log`), by the kernel's timestamps.\n\n";
    text += &constant(lab, &fleet)?;
    text += &poisson(lab, &fleet)?;
    text += &skew(lab, &fleet)?;
    text += &knees(lab, &fleet)?;
    drop(fleet);
    text += &coordinator(lab)?;
    Ok(text)
}

fn constant(lab: &Lab, fleet: &Fleet) -> Result<String, String> {
    let load = format!("-R {CONSTANT_PER_S} -d {}s", lab.seconds(8.0));
    let head = ["constant 2,000/s", "arrived/s", "CV of gaps", "off the schedule p50 µs", "p99 µs"];
    let mut table = MarkdownTable::new(&head);
    let mut kept = [Vec::new(), Vec::new()];
    for _ in 0..lab.rounds {
        for (of, fleet) in kept.iter_mut().zip([None, Some(fleet)]) {
            of.push(compare(&arrivals(lab, fleet, &load)?, CONSTANT_PER_S)?);
        }
    }
    for (who, kept) in ["one process", "four agents"].iter().zip(kept) {
        let column = |of: fn(&ScheduleFit) -> f64, digits| {
            spread(&kept.iter().map(of).collect::<Vec<_>>(), digits)
        };
        table.row(&[
            (*who).to_owned(),
            column(|k| k.rate_per_s, 1),
            column(|k| k.gap_cv, 3),
            column(|k| k.deviation_p50_us, 1),
            column(|k| k.deviation_p99_us, 0),
        ]);
    }
    Ok(table.finish())
}

fn poisson(lab: &Lab, fleet: &Fleet) -> Result<String, String> {
    let head = ["Poisson 200/s", "n", "KS distance", "p", "dispersion, 50 ms", "500 ms"];
    let mut table = MarkdownTable::new(&head);
    for round in 1..=lab.rounds {
        for (who, fleet) in [("one process", None), ("four agents", Some(fleet))] {
            let seconds = lab.seconds(10.0);
            let load = format!("-R {POISSON_PER_S} -d {seconds}s --arrival poisson --seed {round}");
            let stamps = arrivals(lab, fleet, &load)?;
            let (distance, p) = kolmogorov_smirnov(&stamps, POISSON_PER_S);
            table.row(&[
                format!("{who}, seed {round}"),
                stamps.len().to_string(),
                format!("{distance:.4}"),
                format!("{p:.2}"),
                format!("{:.2}", dispersion(&stamps, 0.05)),
                format!("{:.2}", dispersion(&stamps, 0.5)),
            ]);
        }
    }
    Ok(table.finish())
}

fn skew(lab: &Lab, fleet: &Fleet) -> Result<String, String> {
    let load = format!("-R {SKEW_PER_S} -d {}s", lab.seconds(5.0).max(0.5));
    let apart = Fleet::start(lab, 5)?;
    let head = ["agents apart at the server", "first requests µs", "all requests, medians µs"];
    let mut table = MarkdownTable::new(&head);
    for (who, fleet) in [("clocks of one host", fleet), ("clocks ±5 s apart", &apart)] {
        let mut first = Vec::new();
        let mut all = Vec::new();
        for _ in 0..lab.rounds {
            let (at_first, middle) = skew_us(&arrivals(lab, Some(fleet), &load)?, SKEW_PER_S);
            first.push(at_first);
            all.push(middle);
        }
        table.row(&[who.to_owned(), spread(&first, 0), spread(&all, 0)]);
    }
    Ok(table.finish())
}

fn knees(lab: &Lab, fleet: &Fleet) -> Result<String, String> {
    let mut table = MarkdownTable::new(&["the knee, in users", "95 %", "at most per second"]);
    for round in 1..=lab.rounds.min(3) {
        for (who, fleet) in [("one process", None), ("four agents", Some(fleet))] {
            let server = lab.serve_knee("http --listen 127.0.0.1:0 --workers 4 --service 1ms")?;
            let seconds = lab.seconds(0.5);
            let mut line = format!(
                "sweep http://127.0.0.1:{}/ -t 1 -d {seconds}s --warmup 200ms --quiet --json -",
                server.port
            );
            if let Some(fleet) = fleet {
                line += &format!(" --fleet {}", fleet.url);
            }
            if lab.small {
                // To look for levels takes a budget of its own.
                line += " --vusers 1,8";
            }
            let report = server.serve(|_| knee(lab, &line))?;
            let conclusion = &report["conclusion"];
            let number = |v: &Value| v.as_f64().map_or("–".to_owned(), |v| format!("{v:.2}"));
            let ends = &conclusion["knee_ci95"];
            table.row(&[
                format!("{who}, {round}: {}", number(&conclusion["knee_vusers"])),
                format!("{} to {}", number(&ends[0]), number(&ends[1])),
                number(&conclusion["max_throughput_per_s"]),
            ]);
        }
    }
    Ok(table.finish())
}

/// The tests of the fleet's crate. A small run takes those that are built. For this crate alone
/// cargo would build the crates below it again, with fewer of their features.
fn fleet_tests(lab: &Lab) -> Result<PathBuf, String> {
    let built = if lab.small {
        repo::built_tests(&["--workspace"], LINTED)
    } else {
        repo::built_tests(&["--release", "--package", "knee-fleet", "--lib"], &[])
    };
    let tests = built?.into_iter().find(|tests| tests.name == "knee_fleet");
    tests.map(|tests| tests.program).ok_or_else(|| "the tests of the fleet are not built".into())
}

/// What a coordinator takes by the number of agents, as a test of the crate measures it.
fn coordinator(lab: &Lab) -> Result<String, String> {
    let sizes: &[&str] =
        if lab.small { &["20x2x0"] } else { &["10x60x0", "100x60x0", "1000x60x0", "1000x60x50"] };
    let head = [
        "agents",
        "killed",
        "trial s",
        "processor s",
        "of a core over the trial %",
        "verdict after its end s",
        "memory MiB",
    ];
    let mut table = MarkdownTable::new(&head);
    let tests = fleet_tests(lab)?;
    for size in sizes {
        let mut test = Command::new(&tests);
        let name = "coordinator::tests::crowd::what_a_coordinator_takes";
        test.args(["--ignored", "--exact", "--nocapture", name])
            .env("KNEE_FLEET", size)
            .current_dir(repo::root().join("crates/fleet"));
        let ended = process::run_within(Duration::from_secs(1_800), test)?.ended;
        let told = ended.stdout.lines().find_map(|line| line.split_once("took ")?.1.into());
        let told: Vec<&str> = told.map(|t: &str| t.split(' ').collect()).unwrap_or_default();
        let [_, agents, _, seconds, _, lost, _, cpu_s, _, wall_s, _, verdict_s, _, memory] =
            told[..]
        else {
            return Err(ended.failed("the crowd:"));
        };
        let [cpu, over] = [cpu_s, wall_s].map(|t| t.parse::<f64>().unwrap_or(f64::NAN));
        table.row(&[
            agents.to_owned(),
            lost.to_owned(),
            seconds.to_owned(),
            cpu_s.to_owned(),
            format!("{:.1}", 100.0 * cpu / over),
            verdict_s.to_owned(),
            memory.to_owned(),
        ]);
    }
    Ok(format!(
        "Agents whose trials are simulated, of 100 operations per second each, on a real NATS \
         server that is restarted once where agents are killed. A verdict waits for the 10 s after \
         which a silent agent is lost.\n\n{}",
        table.finish()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn poisson_is_told_from_a_metronome() {
        let mut state = 1_u64;
        let mut at = 0.0;
        let poisson: Vec<i64> = (0..2_000)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let unit = ((state >> 11) as f64 + 0.5) / (1_u64 << 53) as f64;
                at -= unit.ln() / 200.0 * 1e9;
                at as i64
            })
            .collect();
        let (_, p) = kolmogorov_smirnov(&poisson, 200.0);
        assert!(p > 0.05, "{p}");
        assert!((dispersion(&poisson, 0.05) - 1.0).abs() < 0.3);
        let even: Vec<i64> = (0..2_000).map(|k| k * 5_000_000).collect();
        let (distance, p) = kolmogorov_smirnov(&even, 200.0);
        assert!(p < 1e-6 && distance > 0.5, "{p}");
        assert!(dispersion(&even, 0.05) < 0.1);
    }

    #[test]
    fn an_agent_that_is_late_is_seen() {
        let late = |k: i64| if k % 4 == 2 { 700_000 } else { 0 };
        let stamps: Vec<i64> = (0..200).map(|k| k * 25_000_000 + late(k)).collect();
        let (first, all) = skew_us(&stamps, 40.0);
        assert!((first - 700.0).abs() < 1e-6 && (all - 700.0).abs() < 1e-6);
    }
}
