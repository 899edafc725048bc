//! `knee fleet`: who is there, what runs, and what is left of a run.

use crate::args::{NatsArgs, ThresholdArgs};
use crate::command::guarded::GuardedProgram;
use crate::command::laboratory::{self, ReportSetup};
use crate::failure::{Exit, Failure};
use crate::output::OutputArgs;
use crate::resolved_options::ResolvedOptions;
use crate::stdio;
use clap::{Args, Subcommand};
use knee_core::experiment::{Concluded, Conducted, EndReason, Experiment, SingleRun};
use knee_core::report::{Host, Kind};
use knee_core::trial::assess::assess;
use knee_core::words::time;
use knee_engine::interrupt;
use knee_fleet::{AgentFacts, AgentPresence, CoordinatorFacts, NatsAccess};
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// See the agents of a fleet, what runs on them, and end or collect it
#[derive(Args, Clone, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Examples:\n  knee fleet demo\n  knee fleet ls --nats nats://nats:4222\n  \
        knee fleet collect --nats nats://nats:4222 --html report.html"
)]
pub struct RawFleet {
    #[command(subcommand)]
    command: RawFleetCommand,
}

#[derive(Clone, Debug, Subcommand)]
enum RawFleetCommand {
    /// List the agents: version, cores, clock, labels, what each does
    Ls(RawPlace),
    /// Say which run the fleet makes, and for whom
    Status(RawPlace),
    /// End the trial that runs; its coordinator reports what was measured
    Stop(RawPlace),
    /// Report what agents measured for a coordinator that is gone
    Collect(RawCollect),
    /// Delete the results and plans that JetStream keeps, to make room
    Clear(RawPlace),
    /// Try a fleet on this machine: a NATS server, four agents and a sweep
    Demo(RawFleetDemo),
}

#[derive(Args, Clone, Debug)]
struct RawPlace {
    /// Where NATS is [default: the environment variable NATS_URL]
    #[arg(long, value_name = "URL")]
    nats: Option<String>,

    #[command(flatten)]
    access: NatsArgs,
}

#[derive(Args, Clone, Debug)]
struct RawCollect {
    /// The run's name, as 'knee agent' prints it [default: the last one that is left]
    #[arg(value_name = "RUN")]
    run: Option<String>,

    #[command(flatten)]
    place: RawPlace,

    #[command(flatten)]
    output: OutputArgs,
}

impl RawPlace {
    fn access(&self) -> Result<NatsAccess, Failure> {
        self.access.access("--nats", self.nats.as_deref())
    }
}

/// Does what was asked.
pub fn execute(raw: &RawFleet) -> Result<Exit, Failure> {
    match &raw.command {
        RawFleetCommand::Ls(place) => list(&place.access()?),
        RawFleetCommand::Status(place) => status(&place.access()?),
        RawFleetCommand::Stop(place) => {
            let run = knee_fleet::stop(&place.access()?)?;
            stdio::write(|out| writeln!(out, "run {run} was told to end"))?;
            Ok(Exit::Fine)
        }
        RawFleetCommand::Collect(raw) => {
            collect(&raw.place.access()?, raw.run.as_deref(), &raw.output)
        }
        RawFleetCommand::Clear(place) => {
            knee_fleet::clear(&place.access()?)?;
            stdio::write(|out| writeln!(out, "results and plans were deleted"))?;
            Ok(Exit::Fine)
        }
        RawFleetCommand::Demo(raw) => demo(raw),
    }
}

fn list(access: &NatsAccess) -> Result<Exit, Failure> {
    let (agents, _) = knee_fleet::present(access)?;
    if agents.is_empty() {
        let place = access.place();
        let line = format!("no agents: start 'knee agent --nats {place}' on each machine");
        return Err(Failure::nothing_measured(line));
    }
    let rows: Vec<[String; 8]> = agents.iter().map(row).collect();
    let heads = ["agent", "host", "cores", "version", "clock", "labels", "may load", "does"];
    stdio::write(|out| table(&heads.map(str::to_owned), &rows, out))?;
    Ok(Exit::Fine)
}

fn row(agent: &AgentPresence) -> [String; 8] {
    let facts = &agent.facts;
    let labels = facts.labels.iter().map(|(key, value)| format!("{key}={value}"));
    let labels: Vec<String> = labels.collect();
    [
        facts.name.clone(),
        facts.host.clone(),
        facts.cores.to_string(),
        facts.version.clone(),
        match &agent.clock {
            Ok(clock) => {
                let sign = if clock.offset_ns < 0 { "-" } else { "+" };
                let offset = time(clock.offset_ns.unsigned_abs() as f64);
                let chrony = match clock.agrees_with_chrony {
                    None => "",
                    Some(true) => ", as chrony says",
                    Some(false) => ", which chrony rules out",
                };
                format!("{sign}{offset} ± {}{chrony}", time(clock.uncertainty_ns as f64))
            }
            Err(why) => why.clone(),
        },
        words_or_dash(labels.join(",")),
        may_load(facts),
        match &facts.run {
            Some(run) => format!("run {run}"),
            None => "waits".to_owned(),
        },
    ]
}

fn may_load(facts: &AgentFacts) -> String {
    let networks =
        if facts.targets.is_empty() { "loopback".to_owned() } else { facts.targets.join(",") };
    match facts.rate_max {
        Some(rate) => format!("{networks}, {rate:.0}/s"),
        None => networks,
    }
}

fn words_or_dash(words: String) -> String {
    if words.is_empty() { "-".to_owned() } else { words }
}

fn table(heads: &[String; 8], rows: &[[String; 8]], out: &mut dyn Write) -> std::io::Result<()> {
    let wide = |column: usize| {
        rows.iter().chain([heads]).map(|row| row[column].chars().count()).max().unwrap_or(0)
    };
    for row in [heads].into_iter().chain(rows) {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let rest = wide(column) - cell.chars().count();
            format!("{cell}{}", " ".repeat(rest))
        });
        let line: Vec<String> = cells.collect();
        writeln!(out, "{}", line.join("  ").trim_end())?;
    }
    Ok(())
}

fn status(access: &NatsAccess) -> Result<Exit, Failure> {
    let (agents, conducts) = knee_fleet::present(access)?;
    let busy = agents.iter().filter(|a| a.facts.run.is_some()).count();
    stdio::write(|out| {
        match &conducts {
            None => writeln!(out, "nothing runs")?,
            Some(CoordinatorFacts { run, host, pid, since }) => {
                writeln!(out, "run {run} since {since}, for {host} (process {pid})")?
            }
        }
        writeln!(out, "{} agents, {busy} of them busy", agents.len())
    })?;
    Ok(Exit::Fine)
}

/// Reports a run whose coordinator is gone.
fn collect(access: &NatsAccess, run: Option<&str>, output: &OutputArgs) -> Result<Exit, Failure> {
    let output = output.resolve()?;
    let collected = knee_fleet::collect(access, run)?;
    let trial = &collected.trial;
    let mut options = ResolvedOptions::default();
    options.put("collected", collected.key.run.as_str());
    options.put("nats", access.place());
    options.put("trial", collected.key.trial + 1);
    let (seed, thresholds) = (trial.spec.seed, ThresholdArgs::default());
    let setup = ReportSetup::new(Kind::Run, seed, options, thresholds, output);
    let host = Host { backend: trial.generator.backend.clone(), ..knee_engine::host() };
    let trials = vec![assess(trial)];
    let Concluded { verdict, findings, conclusion } =
        SingleRun::new(trial.spec.clone()).conclude(&trials);
    let conducted = Conducted {
        trials,
        verdict,
        findings,
        conclusion,
        ended: if trial.interrupted { EndReason::Interrupted } else { EndReason::Converged },
    };
    let report = laboratory::report(&setup, collected.started_at, host, conducted, |t| t);
    laboratory::deliver(setup.output, &report, None)
}

/// Agents that are started.
const AGENTS: u32 = 4;
/// A NATS server that is there starts within this.
const PATIENCE: Duration = Duration::from_secs(10);

/// Try a fleet on this machine: a NATS server, four agents and a sweep
///
/// Nothing leaves this machine. All agents share its cores, so that together they make no more load
/// than one knee would. The demo shows how they work together.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:\n  knee fleet demo --html fleet.html")]
struct RawFleetDemo {
    /// Where the page goes
    #[arg(long, value_name = "FILE", default_value = "knee-fleet.html")]
    html: String,

    /// The NATS server to start
    #[arg(long, value_name = "PATH", default_value = "nats-server")]
    nats_server: PathBuf,
}

/// A folder that goes with this, however this process ends: a shell removes it that waits for the
/// end of its input.
struct Folder {
    path: PathBuf,
    remover: Child,
}

/// The folder's path is `$0`. What ends with this process may still write to it.
const REMOVER: &str =
    "read -r _; for _ in 1 2 3 4 5 6 7 8 9; do rm -rf -- \"$0\" && exit; sleep 0.1; done";

impl Folder {
    fn make(path: PathBuf) -> std::io::Result<Folder> {
        std::fs::create_dir_all(&path)?;
        let mut shell = Command::new("sh");
        shell.args(["-c", REMOVER]).arg(&path).stdin(Stdio::piped()).stderr(Stdio::null());
        let remover = shell.process_group(0).spawn()?;
        Ok(Folder { path, remover })
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        drop(self.remover.stdin.take());
        let _ = self.remover.wait();
    }
}

/// Starts all of it, sweeps, and ends all of it.
fn demo(raw: &RawFleetDemo) -> Result<Exit, Failure> {
    interrupt::catch();
    let cannot = |what: &str, e: &std::io::Error| Failure::input(format!("{what}: {e}"));
    let folder = std::env::temp_dir().join(format!("knee-fleet-demo-{}", std::process::id()));
    let folder = Folder::make(folder).map_err(|e| cannot("a folder for NATS", &e))?;
    let port = free_port().map_err(|e| cannot("no port for NATS", &e))?;
    let _nats = start_nats(raw, &folder, port)?;
    let url = format!("nats://127.0.0.1:{port}");
    stdio::write(|out| writeln!(out, "$ nats-server -js -a 127.0.0.1 -p {port}"))?;
    let knee = std::env::current_exe().map_err(|e| cannot("knee itself", &e))?;
    let mut agents = Vec::new();
    for number in 1..=AGENTS {
        let name = format!("demo-{number}");
        stdio::write(|out| writeln!(out, "$ knee agent --nats {url} --name {name} &"))?;
        let mut agent = Command::new(&knee);
        agent.args(["agent", "--nats", &url, "--name", &name]);
        let started = GuardedProgram::start(agent.stdin(Stdio::null()).stdout(Stdio::piped()));
        agents.push(started.map_err(|e| cannot("an agent", &e))?);
    }
    for agent in &mut agents {
        wait_for_line(agent)?;
    }
    let arguments =
        format!("sweep --fleet {url} -t 1 -d 500ms --warmup 200ms --no-tui --html {}", raw.html);
    stdio::write(|out| writeln!(out, "$ knee {arguments}"))?;
    let mut sweep = Command::new(&knee);
    sweep.args(["sweep", "--fleet", &url, "-t", "1", "-d", "500ms", "--warmup", "200ms"]);
    sweep.args(["--no-tui", "--html", &raw.html]);
    let status = GuardedProgram::start(&mut sweep).and_then(|mut sweep| sweep.wait());
    let status = status.map_err(|e| cannot("the sweep", &e))?;
    stdio::write(|out| writeln!(out, "the page: {}", raw.html))?;
    Ok(match status.code() {
        Some(0) => Exit::Fine,
        Some(1) => Exit::Failed,
        Some(2) => Exit::BadInput,
        Some(3) => Exit::Invalid,
        _ => super::laboratory::ended_by_signal().unwrap_or(Exit::NothingMeasured),
    })
}

fn start_nats(raw: &RawFleetDemo, folder: &Folder, port: u16) -> Result<GuardedProgram, Failure> {
    let mut command = Command::new(&raw.nats_server);
    command
        .args(["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"])
        .arg(&folder.path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut nats = GuardedProgram::start(&mut command).map_err(|e| match e.kind() {
        ErrorKind::NotFound => Failure::argument(
            "--nats-server",
            format!(
                "there is no {}: install NATS (Debian: apt-get install nats-server), or give its \
                 path",
                raw.nats_server.display()
            ),
        ),
        _ => Failure::argument("--nats-server", e),
    })?;
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let ended = nats.child.try_wait().ok().flatten();
        if ended.is_some() || since.elapsed() > PATIENCE {
            let wrong = "it does not start, or not with JetStream: try it with -js";
            return Err(Failure::argument("--nats-server", wrong));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(nats)
}

/// An agent says its name when it is ready. What it says later is read and let go, so that it never
/// waits for us.
fn wait_for_line(agent: &mut GuardedProgram) -> Result<(), Failure> {
    let not_ready = || Failure::nothing_measured("an agent did not get ready");
    let out = agent.child.stdout.take().ok_or_else(not_ready)?;
    let mut lines = BufReader::new(out).lines();
    let first = lines.next().and_then(Result::ok).ok_or_else(not_ready)?;
    if !first.starts_with("agent ") {
        return Err(not_ready());
    }
    let thread = std::thread::Builder::new().spawn(move || lines.for_each(drop));
    thread.map_err(|e| Failure::input(format!("cannot start a thread: {e}")))?;
    Ok(())
}

fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}
