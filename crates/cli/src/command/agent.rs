//! `knee agent`: a machine that makes load for a `knee --fleet` on another one.

use crate::args::{NatsArgs, PatienceArgs, parse_rate_max};
use crate::command::udp::{Cpus, parse_cpus};
use crate::failure::{Exit, Failure};
use crate::stdio::Notes;
use crate::{margins, stdio};
use clap::Args;
use knee_engine::interrupt;
use knee_engine::permit::{Cidr, Permit};
use knee_engine::sys::thread;
use knee_fleet::{Agent, AgentOptions};

/// Wait on NATS for a share of the load of a knee run, sweep or overload with --fleet
///
/// Each machine that is to make load runs one. It needs a NATS with JetStream, and no open port. It
/// sends load to loopback only, until --allow-target names networks. It prints its name when it is
/// ready, and runs until SIGTERM, SIGHUP or Ctrl-C.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  knee agent --nats nats://nats:4222 --allow-target 10.0.0.0/8",
    after_long_help = "Examples:\n  \
        knee agent --nats nats://127.0.0.1:4222\n  \
        knee agent --nats nats://nats:4222 --labels zone=a --allow-target 10.0.0.0/8\n  \
        knee agent --nats tls://nats:4222 --nats-creds load.creds --cpus 0-3 --rate-max 20000\n\n\
        Exit codes: 0 ran and was stopped; 2 bad arguments; 4 no NATS there, or it refuses."
)]
pub struct RawAgent {
    /// Where NATS is [default: the environment variable NATS_URL]
    #[arg(long, value_name = "URL")]
    nats: Option<String>,

    /// Name of this agent: letters, digits, - and _ [default: this host's, with a number where that
    /// is taken]
    #[arg(long, value_name = "NAME")]
    name: Option<String>,

    /// Labels that --agents selects by: zone=a,rack=2
    #[arg(long, value_name = "KEY=VALUE,...", value_parser = parse_labels)]
    labels: Option<Labels>,

    /// Processors to use, such as 0-3 [default: all that this process may use]
    #[arg(long, value_name = "LIST", value_parser = parse_cpus)]
    cpus: Option<Cpus>,

    /// Network that load may be sent to, such as 10.0.0.0/8; repeatable. Loopback needs none
    #[arg(long, value_name = "CIDR", value_parser = Cidr::parse)]
    allow_target: Vec<Cidr>,

    /// Most operations per second that this agent makes, whoever asks [default: no limit]
    #[arg(long, value_name = "N", value_parser = parse_rate_max)]
    rate_max: Option<f64>,

    #[command(flatten)]
    patience: PatienceArgs,

    #[command(flatten)]
    access: NatsArgs,

    /// Nanoseconds that its clocks pretend to be ahead, for tests
    #[arg(long, value_name = "N", default_value_t = 0, hide = true)]
    #[arg(allow_hyphen_values = true)]
    clock_shift_ns: i64,
}

/// Labels as they were typed.
#[derive(Clone, Debug)]
struct Labels(Vec<(String, String)>);

fn parse_labels(text: &str) -> Result<Labels, String> {
    let parsed = text.split(',').map(|part| match part.trim().split_once('=') {
        Some((key, value)) if !key.is_empty() && !value.is_empty() => {
            Ok((key.to_owned(), value.to_owned()))
        }
        _ => Err(format!(
            "'{part}' is no label: expected KEY=VALUE, such as zone=a, with commas between them"
        )),
    });
    parsed.collect::<Result<_, _>>().map(Labels)
}

/// Serves until a signal ends it.
pub fn execute(raw: RawAgent) -> Result<Exit, Failure> {
    let access = raw.access.access("--nats", raw.nats.as_deref())?;
    if let Some(Cpus(cpus)) = &raw.cpus {
        thread::set_affinity(cpus)
            .map_err(|e| Failure::argument("--cpus", format!("not on this machine: {e}")))?;
    }
    let place = access.place();
    let agent = Agent::join(AgentOptions {
        access,
        name: raw.name,
        patience: raw.patience.resolve(),
        labels: raw.labels.map(|labels| labels.0).unwrap_or_default(),
        permit: Permit { targets: raw.allow_target, rate_max: raw.rate_max },
        margins: margins::of_this_machine(Notes { quiet: false }),
        clock_shift_ns: raw.clock_shift_ns,
    })?;
    // Until here a signal ends it at once.
    let stop = interrupt::catch();
    let facts = agent.facts();
    let targets = if facts.targets.is_empty() {
        "loopback only: --allow-target permits more".to_owned()
    } else {
        format!("loopback and {}", facts.targets.join(", "))
    };
    stdio::write(|out| {
        writeln!(out, "agent {} waits at {place}", facts.name)?;
        writeln!(out, "{} cores; load goes to {targets}", facts.cores)
    })?;
    let say = |line: &str| {
        // What it does goes on where nobody reads it.
        let _ = stdio::write(|out| writeln!(out, "{line}"));
    };
    agent.serve(stop, &say)?;
    Ok(Exit::Fine)
}
