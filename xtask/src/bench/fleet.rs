//! A fleet of four agents beside one process. Measures what arrives at the server, how far apart
//! agents begin, and what many agents take of their coordinator.

use super::contender::{Contender, LineValues, OfferedRate, knee, split};
use super::lab::Lab;
use super::open::{read_arrivals, schedule};
use super::process::{self, BenchServer, free_port, pinned};
use super::round::{Contest, Turn, column, median};
use crate::repo::LINTED;
use crate::{repo, tools};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const AGENTS: usize = 4;
const CONSTANT_PER_S: f64 = 2_000.0;
/// Agents' shares of so slow a schedule cannot be taken for one another's.
const SKEW_PER_S: f64 = 40.0;

const ALONE: Contender =
    knee("one process", "run {url} -t 1 --warmup 0s -d {seconds}s -R {rate} --quiet --json -");
const FLEET: Contender = knee(
    "four agents",
    "run {url} -t 1 --warmup 0s -d {seconds}s -R {rate} --quiet --json - --fleet {nats}",
);
const APART: Contender = Contender {
    name: "four agents, clocks ±5 s apart",
    line: "run {url} -t 1 --warmup 0s -d {seconds}s -R {rate} --quiet --json - --fleet {apart}",
    ..FLEET
};

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
            let joins = |_| {
                std::thread::sleep(Duration::from_millis(200));
                listed(number + 1)
            };
            if !(0..50).any(joins) {
                return Err(agent.failed("the agent does not join:"));
            }
            running.push(agent);
        }
        Ok(Fleet { url, _running: running })
    }
}

/// How far apart agents were that send in turn, in microseconds: at their first requests, and in
/// the middle of all.
fn skew_us(stamps: &[i64], per_s: f64) -> (f64, f64) {
    let ideal = |k: usize| k as f64 * 1e6 / per_s;
    let phase = |(k, &t): (usize, &i64)| (t - stamps[0]) as f64 / 1e3 - ideal(k);
    let phases: Vec<f64> = stamps.iter().enumerate().map(phase).collect();
    let range = |values: Vec<f64>| {
        let most = values.iter().copied().fold(f64::MIN, f64::max);
        most - values.into_iter().fold(f64::MAX, f64::min)
    };
    let medians = (0..AGENTS).map(|agent| {
        let of_agent: Vec<f64> = phases.iter().copied().skip(agent).step_by(AGENTS).collect();
        median(&of_agent)
    });
    (range(phases[..AGENTS].to_vec()), range(medians.collect()))
}

/// Runs all benches of fleets.
///
/// # Errors
/// A program does not start.
pub fn run(lab: &Lab) -> Result<String, String> {
    let fleet = Fleet::start(lab, 0)?;
    let serve = |file: &Path| {
        let line = format!("http --listen 127.0.0.1:0 --workers 1 --arrivals {}", file.display());
        lab.serve_knee(&line)
    };
    let values = |seconds, per_s| {
        let values = LineValues::of(seconds).with_rate(OfferedRate::Constant(per_s));
        values.with("nats", &fleet.url)
    };
    let constant = Contest {
        who: "constant 2,000/s",
        contenders: &[ALONE, FLEET],
        values: values(lab.seconds(8.0), CONSTANT_PER_S),
        factor: 1,
    };
    let constant = schedule(lab, &constant, CONSTANT_PER_S, |_, file| serve(file))?;
    let apart = Fleet::start(lab, 5)?;
    let skew = Contest {
        who: "agents apart at the server",
        contenders: &[FLEET, APART],
        values: values(lab.seconds(5.0).max(0.5), SKEW_PER_S).with("apart", &apart.url),
        factor: 1,
    };
    let file = lab.scratch("arrivals");
    let read = || Ok(skew_us(&read_arrivals(&file)?, SKEW_PER_S));
    let rounds = skew.measure(lab, &|_| serve(&file), read)?;
    let columns = [
        column("first requests µs", 0, |t: &Turn<(f64, f64)>| Some(t.at_server.0)),
        column("all requests, medians µs", 0, |t| Some(t.at_server.1)),
    ];
    let skew = skew.show(lab, &columns, &[], &rounds)?;
    drop((fleet, apart));
    Ok(format!(
        "## A fleet of four agents\n\n\
         Agents share one core, the server has another; it stamps each arrival \
         (`knee serve http --arrivals`).\n\n{constant}{skew}{}",
        coordinator(lab)?
    ))
}

/// What a coordinator takes by the number of agents, as rows that a test of its crate prints. A small
/// run takes the tests that are built: for this crate alone cargo would build the crates below it
/// again, with fewer of their features.
fn coordinator(lab: &Lab) -> Result<String, String> {
    let (built, sizes): (_, &[&str]) = if lab.small {
        (repo::built_tests(&["--workspace", "--all-features"], LINTED)?, &["20x2x0"])
    } else {
        let package = ["--release", "--package", "knee-fleet", "--lib"];
        let sizes = &["10x60x0", "100x60x0", "1000x60x0", "1000x60x50"];
        (repo::built_tests(&package, &[])?, sizes)
    };
    let tests = built.into_iter().find(|tests| tests.name == "knee_fleet");
    let tests = tests.ok_or("the tests of the fleet are not built")?;
    let mut text = "Agents whose trials are simulated, of 100 operations per second each, on a real \
                    NATS server that is restarted once where agents are killed. A verdict waits \
                    for the 10 s after which a silent agent is lost.\n\n\
                    | agents | killed | trial s | processor s | of a core % | verdict after its end \
                    s | memory MiB |\n| ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n"
        .to_owned();
    for size in sizes {
        let mut test = Command::new(&tests.program);
        let name = "coordinator::tests::crowd::what_a_coordinator_takes";
        test.args(["--ignored", "--exact", "--nocapture", name])
            .env("KNEE_FLEET", size)
            .current_dir(&tests.folder);
        let ended = process::run_within(Duration::from_secs(1_800), test)?.ended;
        let row = ended.stdout.lines().find_map(|line| line.split_once("| "));
        let (_, row) = row.ok_or_else(|| ended.failed("the crowd:"))?;
        text += &format!("| {row}\n");
    }
    Ok(text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_is_late_is_seen() {
        let late = |k: i64| if k % 4 == 2 { 700_000 } else { 0 };
        let stamps: Vec<i64> = (0..200).map(|k| k * 25_000_000 + late(k)).collect();
        let (first, all) = skew_us(&stamps, 40.0);
        assert!((first - 700.0).abs() < 1e-6 && (all - 700.0).abs() < 1e-6);
    }
}
