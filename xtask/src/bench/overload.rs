//! New connections: how many one core makes, answered or not.

use super::lab::Lab;
use super::peer::{self, Peer};
use super::process::{self, Server};
use super::stats::{ratios, spread};
use super::table::{Table, command_lines};
use std::path::PathBuf;
use std::time::Duration;

/// Connections at once of those who wait for the answer.
const CONNECTIONS: usize = 64;
/// How long a connect that is not answered is kept.
const PATIENCE_MS: u64 = 500;
/// Connects kept at once: more than a core can start in that time, so that it is what limits.
const DESCRIPTORS: usize = 19_000;
/// Short turns, as the host may change its speed from second to second.
const TURN_S: f64 = 1.0;
/// The flood needs T to come into its stride.
const FLOOD_S: f64 = 3.0;
/// The place of the port in a command line.
const PORT: &str = "PORT";

/// Who makes connections, and how what it says is read.
struct Contender {
    name: String,
    program: PathBuf,
    arguments: String,
    reads: Reads,
}

/// What a contender writes.
#[derive(Clone, Copy)]
enum Reads {
    /// A report of knee: connections started per second.
    Started,
    /// A report of knee: responses per second.
    Served,
    /// What such a peer writes.
    As(Peer),
}

impl Contender {
    /// One turn: connections per second, and processor time per million of them.
    fn turn(&self, lab: &Lab, port: u16) -> Result<(f64, f64), String> {
        let arguments = self.arguments.replace(PORT, &port.to_string());
        let arguments: Vec<String> = arguments.split_whitespace().map(String::from).collect();
        let command = process::pinned(lab.generator_core, &self.program, &arguments);
        let run = process::run(command, Duration::from_secs(60))?;
        let said = |e: String| format!("{}: {e}: {}{}", self.name, run.stdout, run.stderr);
        let (per_s, seconds) = self.read(&run.stdout).map_err(said)?;
        let made = (per_s * seconds).max(1.0);
        Ok((per_s, (run.cpu_user_s + run.cpu_system_s) / made * 1e6))
    }

    /// Connections per second, and for how long.
    fn read(&self, out: &str) -> Result<(f64, f64), String> {
        let path = match self.reads {
            Reads::As(peer) => {
                let sample = peer.parse(out)?;
                return Ok((sample.requests / sample.seconds, sample.seconds));
            }
            Reads::Started => "/trials/0/offered/achieved_per_s",
            Reads::Served => "/trials/0/throughput_per_s",
        };
        let report = serde_json::from_str(out).map_err(|e| format!("no JSON: {e}"))?;
        let seconds = peer::number(&report, "/trials/0/duration_ns")? / 1e9;
        Ok((peer::number(&report, path)?, seconds))
    }
}

/// Connections per second of knee, the bare loops and its peers.
///
/// # Errors
/// A contender or a server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let mut text = format!(
        "## New connections: how many a core makes\n\n\
         The first table: nobody answers a SYN (`bench/connect_server.c` with a full accept \
         queue), each connect is given up after {PATIENCE_MS} ms. The others: {CONNECTIONS} at \
         once, each connects, asks, reads 1,294 bytes and closes. Ratios are to the bare loop of \
         the same round.\n\n"
    );
    text += &table(lab, "silent", "never answered", &floods(lab))?;
    for close in ["rst", "fin"] {
        text += &table(
            lab,
            "serve",
            &format!("served, {close}"),
            &servings(lab, close),
        )?;
    }
    Ok(text)
}

fn floods(lab: &Lab) -> Vec<Contender> {
    let seconds = lab.seconds(FLOOD_S);
    let descriptors = if lab.small { 100 } else { DESCRIPTORS };
    vec![
        Contender {
            name: "bare loop".into(),
            program: lab.bare.join("connect_flood"),
            arguments: format!("{PORT} {seconds} {PATIENCE_MS} {descriptors}"),
            reads: Reads::As(Peer::BareEpoll),
        },
        Contender {
            name: "knee".into(),
            program: lab.knee.clone(),
            arguments: format!(
                "overload http://127.0.0.1:{PORT}/ --sclients 1 --descriptors {descriptors} \
                 --connect-timeout {PATIENCE_MS}ms -d {seconds}s \
                 --warmup 0s --observe none --json -"
            ),
            reads: Reads::Started,
        },
    ]
}

fn servings(lab: &Lab, close: &str) -> Vec<Contender> {
    let seconds = lab.seconds(TURN_S);
    let whole = seconds.ceil();
    let url = format!("http://127.0.0.1:{PORT}/");
    let mut contenders = vec![
        Contender {
            name: "bare loop".into(),
            program: lab.bare.join("connect_served"),
            arguments: format!("{PORT} {CONNECTIONS} {seconds} {close}"),
            reads: Reads::As(Peer::BareEpoll),
        },
        Contender {
            name: "knee".into(),
            program: lab.knee.clone(),
            arguments: format!(
                "overload {url} --simple {CONNECTIONS} -d {seconds}s --close {close} \
                 --warmup 0s --observe none --json -"
            ),
            reads: Reads::Served,
        },
    ];
    // The peers know one way to close.
    let peers = [
        (
            Peer::Ab,
            format!("-q -c {CONNECTIONS} -t {whole} -n 100000000 {url}"),
        ),
        (
            Peer::Wrk,
            format!("-t1 -c{CONNECTIONS} -d{whole}s --latency -H Connection:close {url}"),
        ),
        (
            Peer::Oha,
            format!(
                "--no-tui --output-format json -z {whole}s -c {CONNECTIONS} \
                 --disable-keepalive {url}"
            ),
        ),
    ];
    contenders.extend(peers.into_iter().filter_map(|(peer, arguments)| {
        Some(Contender {
            name: peer.program().to_string(),
            program: lab.program(peer)?,
            arguments,
            reads: Reads::As(peer),
        })
    }));
    contenders
}

/// Lets them take turns against one server.
fn table(lab: &Lab, mode: &str, title: &str, all: &[Contender]) -> Result<String, String> {
    let arguments = ["0".to_string(), mode.to_string()];
    let server: Server = lab.serve(&lab.bare.join("connect_server"), &arguments)?;
    let mut turns: Vec<Vec<(f64, f64)>> = all.iter().map(|_| Vec::new()).collect();
    for _ in 0..lab.rounds {
        for (contender, turns) in all.iter().zip(&mut turns) {
            turns.push(contender.turn(lab, server.port)?);
        }
    }
    server.stop()?;
    let mut table = Table::new(&[
        title,
        "connections/s",
        "against the bare loop",
        "CPU s per million",
    ]);
    let rates = |turns: &[(f64, f64)]| turns.iter().map(|t| t.0).collect::<Vec<f64>>();
    let bare = rates(&turns[0]);
    for (contender, turns) in all.iter().zip(&turns) {
        let costs: Vec<f64> = turns.iter().map(|t| t.1).collect();
        table.row(&[
            contender.name.clone(),
            spread(&rates(turns), 0),
            spread(&ratios(&rates(turns), &bare), 2),
            spread(&costs, 2),
        ]);
    }
    let lines = all.iter().map(|c| {
        let program = c.program.file_name().unwrap_or_default().to_string_lossy();
        format!("{program} {}", c.arguments)
    });
    Ok(format!("{}{}", table.finish(), command_lines(lines)))
}
