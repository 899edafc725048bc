//! `knee fleet`: who is there, what runs, and what is left of a run.

mod collected;
mod demo;

use crate::args::NatsArgs;
use crate::failure::{Exit, Failure};
use crate::output::OutputArgs;
use crate::stdout;
use clap::{Args, Subcommand};
use knee_core::words::time;
use knee_engine::error::RunError;
use knee_fleet::{AgentFacts, AgentPresence, CoordinatorFacts, NatsAccess};
use std::io::Write;

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
    Demo(demo::RawFleetDemo),
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
            let run = knee_fleet::stop(&place.access()?).map_err(RunError::from)?;
            stdout::write(|out| writeln!(out, "run {run} was told to end"))?;
            Ok(Exit::Fine)
        }
        RawFleetCommand::Collect(raw) => {
            collected::execute(&raw.place.access()?, raw.run.as_deref(), &raw.output)
        }
        RawFleetCommand::Clear(place) => {
            knee_fleet::clear(&place.access()?).map_err(RunError::from)?;
            stdout::write(|out| writeln!(out, "results and plans were deleted"))?;
            Ok(Exit::Fine)
        }
        RawFleetCommand::Demo(raw) => demo::execute(raw),
    }
}

fn list(access: &NatsAccess) -> Result<Exit, Failure> {
    let (agents, _) = knee_fleet::present(access).map_err(RunError::from)?;
    if agents.is_empty() {
        let place = access.place();
        let line = format!("no agents: start 'knee agent --nats {place}' on each machine");
        return Err(Failure::nothing_measured(line));
    }
    let rows: Vec<[String; 8]> = agents.iter().map(row).collect();
    let heads = ["agent", "host", "cores", "version", "clock", "labels", "may load", "does"];
    stdout::write(|out| table(&heads.map(str::to_owned), &rows, out))?;
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
    let (agents, conducts) = knee_fleet::present(access).map_err(RunError::from)?;
    let busy = agents.iter().filter(|a| a.facts.run.is_some()).count();
    stdout::write(|out| {
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
