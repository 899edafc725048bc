//! Options of the generator itself.

use super::seed::SeedArgs;
use super::values::parse_count;
use crate::machine::Machine;
use crate::words::Words;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use knee_core::spec::{BackendChoice, EngineOptions, Load, TimestampsChoice, WaitPolicy};

/// Operations per second that one worker schedules with most of its core to spare. Any
/// more would only wake up, each for its part, and take cores away from a target on this machine.
const RATE_PER_WORKER: f64 = 20_000.0;

#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Generator")]
pub struct EngineArgs {
    /// Worker threads [default: one per available core; in an open loop at most one per 20,000
    /// operations per second]
    #[arg(short, long, value_name = "N", value_parser = parse_count)]
    #[arg(hide_short_help = true)]
    pub threads: Option<u32>,

    /// Kernel interface for network I/O
    #[arg(long, value_name = "B", default_value = "auto", value_parser = backends())]
    #[arg(hide_short_help = true)]
    pub backend: BackendChoice,

    /// Receive timestamps of the kernel: auto, off. Without them the time at which the generator
    /// reads a response is its end
    #[arg(long, value_name = "T", default_value = "auto", value_parser = timestamps())]
    #[arg(hide_short_help = true)]
    pub timestamps: TimestampsChoice,

    /// How a worker waits for a deadline: hybrid (sleep, then poll), sleep, spin (poll), auto
    /// (hybrid; spin where sleeping makes operations late, a processor is idle and the target is on
    /// another host; in an open loop with real-time priority where that is permitted and takes
    /// little of a processor)
    #[arg(long, value_name = "W", default_value = "auto", value_parser = waits())]
    #[arg(hide_short_help = true)]
    pub wait: WaitPolicy,

    #[command(flatten)]
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

    /// The options in the words of the command line.
    pub fn tell(engine: &EngineOptions, seed: u64, words: &mut Words) {
        words.put("threads", engine.workers);
        words.put("backend", word(&BACKENDS, engine.backend));
        words.put("timestamps", word(&TIMESTAMPS, engine.timestamps));
        words.put("wait", word(&WAITS, engine.wait));
        words.put("seed", seed);
    }
}

const BACKENDS: [(&str, BackendChoice); 3] = [
    ("auto", BackendChoice::Auto),
    ("epoll", BackendChoice::Epoll),
    ("io_uring", BackendChoice::IoUring),
];

const TIMESTAMPS: [(&str, TimestampsChoice); 2] = [
    ("auto", TimestampsChoice::Auto),
    ("off", TimestampsChoice::Off),
];

/// The ways in which a worker waits for a deadline, by their words.
pub const WAITS: [(&str, WaitPolicy); 4] = [
    ("auto", WaitPolicy::Auto),
    ("hybrid", WaitPolicy::Hybrid),
    ("sleep", WaitPolicy::Sleep),
    ("spin", WaitPolicy::Spin),
];

fn backends() -> impl TypedValueParser<Value = BackendChoice> {
    PossibleValuesParser::new(BACKENDS.map(|(word, _)| word)).map(|w| meaning(&BACKENDS, &w))
}

fn timestamps() -> impl TypedValueParser<Value = TimestampsChoice> {
    PossibleValuesParser::new(TIMESTAMPS.map(|(word, _)| word)).map(|w| meaning(&TIMESTAMPS, &w))
}

fn waits() -> impl TypedValueParser<Value = WaitPolicy> {
    PossibleValuesParser::new(WAITS.map(|(word, _)| word)).map(|w| meaning(&WAITS, &w))
}

/// Parses a word of [`WAITS`] that settles the way: nothing is decided while datagrams are sent.
pub fn settled_waits() -> impl TypedValueParser<Value = WaitPolicy> {
    let settled = WAITS.into_iter().filter(|(_, w)| *w != WaitPolicy::Auto);
    PossibleValuesParser::new(settled.map(|(word, _)| word)).map(|w| meaning(&WAITS, &w))
}

/// The word of a value; each value has one.
pub fn word<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    let entry = table.iter().find(|(_, v)| *v == value);
    entry.map_or("", |(word, _)| word)
}

/// The value of a word that clap found in the table; the first stands for none.
pub fn meaning<T: Copy>(table: &[(&'static str, T)], word: &str) -> T {
    let entry = table.iter().find(|(w, _)| *w == word);
    entry.unwrap_or(&table[0]).1
}
