//! Options of the generator itself, and where its connections come from: `--source`.

use super::values::{Choices, SeedArgs, one_of, parse_count};
use crate::machine::Machine;
use crate::resolved_options::{Typed, typed};
use clap::Args;
use knee_load::spec::{
    BackendChoice, EngineOptions, Load, ParseError, TimestampsChoice, WaitPolicy,
};
use serde::Serialize;
use serde_json::Value;
use std::net::{IpAddr, Ipv4Addr};

/// Operations per second that one worker schedules with most of its core to spare. Any
/// more would only wake up, each for its part, and take cores away from a target on this machine.
const RATE_PER_WORKER: f64 = 20_000.0;

#[derive(Args, Clone, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Generator")]
pub struct EngineArgs {
    /// Worker threads [default: one per available core, or half as many where the target is on this
    /// host; in an open loop at most one per 20,000 operations per second]
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    #[arg(hide_short_help = true)]
    pub threads: Option<u32>,

    /// Kernel interface for network I/O
    #[arg(long, value_name = "B", default_value = "auto", value_parser = one_of(BACKENDS))]
    #[arg(hide_short_help = true)]
    pub backend: BackendChoice,

    /// Receive timestamps of the kernel: auto, off. Without them the time at which the generator
    /// reads a response is its end
    #[arg(long, value_name = "T", default_value = "auto", value_parser = one_of(TIMESTAMPS))]
    #[arg(hide_short_help = true)]
    pub timestamps: TimestampsChoice,

    /// How a worker waits for a deadline: hybrid (sleep, then poll), sleep, spin (poll) or auto.
    /// Auto is hybrid; it polls where sleeping makes operations late, a processor is idle and the
    /// target is on another host. In an open loop auto takes real-time priority where that is
    /// permitted and takes little of a processor
    #[arg(long, value_name = "W", default_value = "auto", value_parser = one_of(WAITS))]
    #[arg(hide_short_help = true)]
    pub wait: WaitPolicy,

    #[command(flatten)]
    #[serde(flatten)]
    seed: SeedArgs,
}

impl EngineArgs {
    /// The options for one load on this machine.
    pub fn for_load(&self, machine: &Machine, load: &Load) -> EngineOptions {
        let useful = match load {
            Load::Open(open) => (open.peak_per_s() / RATE_PER_WORKER).ceil() as u32,
            Load::Closed { vusers, .. } => *vusers,
            Load::Overload(load) => load.scheme.connecting_max(),
        };
        let cpus = machine.cpus.min(useful.max(1));
        self.resolve(&Machine { cpus, ..*machine })
    }

    /// The options for loads of any size on this machine, whose margins are looked up only once all
    /// else is settled.
    pub fn resolve(&self, machine: &Machine) -> EngineOptions {
        EngineOptions {
            workers: self.threads.unwrap_or(machine.cpus),
            backend: self.backend,
            timestamps: self.timestamps,
            wait: self.wait,
            ..EngineOptions::default()
        }
    }

    /// The seed given, or a random one short enough to be typed.
    pub fn seed(&self) -> u64 {
        self.seed.seed()
    }

    /// Puts what trials use in the place of defaults.
    pub fn settle(&mut self, engine: &EngineOptions, seed: u64) {
        self.threads = Some(engine.workers);
        self.seed.seed = Some(seed);
    }
}

const BACKENDS: Choices<BackendChoice> = &[
    ("auto", BackendChoice::Auto),
    ("epoll", BackendChoice::Epoll),
    ("io_uring", BackendChoice::IoUring),
];

const TIMESTAMPS: Choices<TimestampsChoice> =
    &[("auto", TimestampsChoice::Auto), ("off", TimestampsChoice::Off)];

/// Ways in which a worker waits for a deadline.
/// `auto` stands first.
const WAITS: Choices<WaitPolicy> = &[
    ("auto", WaitPolicy::Auto),
    ("hybrid", WaitPolicy::Hybrid),
    ("sleep", WaitPolicy::Sleep),
    ("spin", WaitPolicy::Spin),
];

/// The ways without `auto`: nothing is decided while datagrams are sent.
pub const SETTLED_WAITS: Choices<WaitPolicy> = WAITS.split_at(1).1;

#[derive(Args, Clone, Debug, Serialize)]
pub struct SourceArgs {
    /// Local addresses that connections come from in turn, such as 127.0.0.2-127.0.0.20; each has
    /// its own range of ports [default: the kernel's choice]
    #[arg(long, value_name = "A[-B][,...]", value_parser = parse_sources)]
    #[arg(help_heading = "Load", hide_short_help = true)]
    #[serde(serialize_with = "typed")]
    source: Option<Sources>,
}

/// Addresses, and how they were typed.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Sources {
    typed: String,
    addresses: Vec<IpAddr>,
}

/// More addresses than any rate needs: each gives some 28,000 ports.
const SOURCES_MAX: u32 = 4096;

impl SourceArgs {
    /// The addresses; none where the kernel is to choose.
    pub fn addresses(&self) -> Vec<String> {
        self.source.iter().flat_map(|s| &s.addresses).map(ToString::to_string).collect()
    }
}

impl Typed for Sources {
    fn typed(&self) -> Value {
        self.typed.as_str().into()
    }
}

/// Addresses and ranges of IPv4 addresses, separated by commas.
fn parse_sources(text: &str) -> Result<Sources, ParseError> {
    let mut addresses = Vec::new();
    for part in text.split(',').map(str::trim) {
        match part.split_once('-') {
            Some((first, last)) => addresses.extend(range(part, first, last)?),
            None => addresses.push(address(part)?),
        }
    }
    if addresses.len() > SOURCES_MAX as usize {
        return Err(too_many(text));
    }
    Ok(Sources { typed: text.to_owned(), addresses })
}

fn address(text: &str) -> Result<IpAddr, ParseError> {
    text.parse().map_err(|_| {
        ParseError(format!(
            "'{text}' is no IP address of this host, such as 127.0.0.2, nor a range such as \
             127.0.0.2-127.0.0.20"
        ))
    })
}

fn range(text: &str, first: &str, last: &str) -> Result<Vec<IpAddr>, ParseError> {
    let (IpAddr::V4(first), IpAddr::V4(last)) = (address(first)?, address(last)?) else {
        let wrong = format!("'{text}' is a range, which only IPv4 addresses can make: name each");
        return Err(ParseError(wrong));
    };
    let (first, last) = (u32::from(first), u32::from(last));
    if first > last {
        let wrong = format!("'{text}' has its ends the wrong way round");
        return Err(ParseError(wrong));
    }
    if last - first >= SOURCES_MAX {
        return Err(too_many(text));
    }
    Ok((first..=last).map(|ip| Ipv4Addr::from(ip).into()).collect())
}

fn too_many(text: &str) -> ParseError {
    ParseError(format!("'{text}' names more than {SOURCES_MAX} addresses: name fewer"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ranges() {
        let listed = |text: &str| {
            let sources = parse_sources(text).unwrap().addresses;
            sources.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(listed("127.0.0.2"), ["127.0.0.2"]);
        assert_eq!(
            listed("127.0.0.254-127.0.1.1, ::1"),
            ["127.0.0.254", "127.0.0.255", "127.0.1.0", "127.0.1.1", "::1"]
        );
        assert_eq!(listed("10.0.0.0-10.0.15.255").len(), SOURCES_MAX as usize);
    }

    #[test]
    fn what_is_wrong_is_said() {
        for (text, expected) in [
            ("", "'' is no IP address"),
            ("eth0", "'eth0' is no IP address"),
            ("127.0.0.2-", "'' is no IP address"),
            ("127.0.0.9-127.0.0.2", "'127.0.0.9-127.0.0.2' has its ends"),
            ("::1-::9", "'::1-::9' is a range, which only IPv4"),
            ("10.0.0.0-10.255.0.0", "'10.0.0.0-10.255.0.0' names more than 4096"),
        ] {
            let wrong = parse_sources(text).unwrap_err().0;
            assert!(wrong.starts_with(expected), "{text}: {wrong}");
        }
    }
}
