//! One trial: the unit that the engine runs.

use super::{HttpTarget, Load, Margins};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// All that the engine needs to run one trial, and all that is needed to repeat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// A name for people, such as `vusers=10`.
    pub label: String,
    /// What this trial varies.
    pub level: Level,
    /// Who decides when an operation starts.
    pub load: Load,
    /// What it is sent to.
    pub target: HttpTarget,
    /// Time that is run before the measured window and not counted.
    pub warmup: Nanos,
    /// Length of the measured window. With `operations_max` it may end earlier.
    pub duration: Nanos,
    /// Exactly so many operations are made, then the trial ends; `None`: time alone ends it.
    /// Used with `warmup` zero.
    pub operations_max: Option<u64>,
    /// An operation that has not completed so long after its intended time is a timeout.
    pub timeout: Nanos,
    /// A connect that has not been answered for so long is a connect timeout.
    pub connect_timeout: Nanos,
    /// Length of the intervals of the time series.
    pub interval: Nanos,
    /// Seeds every random choice.
    pub seed: u64,
    /// How the generator itself works.
    pub engine: EngineOptions,
}

impl TrialSpec {
    /// When the measured window ends, from the beginning of the run.
    pub fn window_end(&self) -> Nanos {
        self.warmup + self.duration
    }
}

/// The value that a trial of an experiment varies.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Virtual users of a closed loop.
    Vusers(u32),
    /// Operations offered per second in an open loop.
    RatePerS(f64),
    /// Clients: senders of datagrams, or simple clients that connect for each request.
    Clients(u32),
    /// Descriptors of S-Clients.
    Descriptors(u32),
    /// Flows in both directions: `{"up": 1, "down": 31}`.
    #[serde(untagged)]
    Flows {
        /// From here to the service.
        up: u32,
        /// From the service to here.
        down: u32,
    },
}

/// How the generator itself works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EngineOptions {
    /// Worker threads, at least 1.
    pub workers: u32,
    /// Which kernel interface carries the traffic.
    pub backend: BackendChoice,
    /// Whether the kernel tells when bytes came.
    #[serde(default)]
    pub timestamps: TimestampsChoice,
    /// How a worker waits for a deadline.
    pub wait: WaitPolicy,
    /// How long before a deadline a sleep has to end on this machine, where that was measured.
    pub margins: Margins,
}

impl Default for EngineOptions {
    /// One worker; all else as on the command line where nothing is said.
    fn default() -> EngineOptions {
        EngineOptions {
            workers: 1,
            backend: BackendChoice::Auto,
            timestamps: TimestampsChoice::Auto,
            wait: WaitPolicy::Hybrid,
            margins: Margins::UNKNOWN,
        }
    }
}

/// Which kernel interface carries the traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackendChoice {
    /// The one that measured best among those that this machine permits.
    Auto,
    /// epoll(7).
    Epoll,
    /// io_uring(7); an error where it is not permitted.
    IoUring,
}

/// Whether the kernel tells when bytes came (receive timestamps), so that a generator that wakes
/// late does not count its delay as the target's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimestampsChoice {
    /// Wherever it does.
    #[default]
    Auto,
    /// Never: the time at which bytes are read stands in.
    Off,
}

/// How a worker waits for a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitPolicy {
    /// As `hybrid`, and polls all the time where sleeping makes operations late, a processor is to
    /// spare, and polling helps.
    Auto,
    /// Sleeps until a margin before it, learnt from its own late wake-ups, then polls.
    Hybrid,
    /// Sleeps until it.
    Sleep,
    /// Never sleeps.
    Spin,
}
