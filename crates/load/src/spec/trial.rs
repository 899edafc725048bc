//! One trial: the unit that the engine runs.

use super::{EngineOptions, Load, RetryPolicy, Target};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// All that the engine needs to run one trial, and all that is needed to repeat it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialSpec {
    /// A name for people, such as `vusers=10`.
    pub label: String,
    /// The value that the experiment varies.
    pub level: Level,
    /// The rule by which operations start.
    pub load: Load,
    /// The target.
    pub target: Target,
    /// Warm-up time before the measured window.
    pub warmup: Nanos,
    /// Length of the measured window. With `operations_max` it may end earlier.
    pub duration: Nanos,
    /// Number of operations after which the trial ends; `None`: time alone ends it.
    /// Used with `warmup` zero.
    pub operations_max: Option<u64>,
    /// Time limit of an operation, from its intended time.
    pub timeout: Nanos,
    /// What users do after a failed attempt; `None`: an operation is tried once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryPolicy>,
    /// Time limit for establishing a connection.
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
        /// From the generator to the service.
        up: u32,
        /// From the service to the generator.
        down: u32,
    },
}
