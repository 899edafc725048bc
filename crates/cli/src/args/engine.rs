//! Options of the generator itself.

use super::values::{Choices, SeedArgs, one_of, parse_count};
use crate::machine::Machine;
use clap::Args;
use knee_load::spec::{BackendChoice, EngineOptions, Load, TimestampsChoice, WaitPolicy};
use serde::Serialize;

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
    pub fn fill_defaults(&mut self, engine: &EngineOptions, seed: u64) {
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
