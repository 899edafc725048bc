//! The load (open loop, closed loop, or connections beyond capacity), and the trial that the engine
//! runs of it.

use super::{EngineOptions, RetryPolicy, SentinelSpec, Target};
use crate::arrival::{ArrivalLaw, Arrivals};
use crate::law::Law;
use crate::quantity::{Rate, Share, UserStage};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The rule by which operations start.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// A schedule that does not depend on the target.
    Open(OpenLoad),
    /// Virtual users, each of whom waits for the answer, pauses, and asks again.
    Closed {
        /// How many users, at least 1.
        vusers: u32,
        /// The pause between two operations.
        pause: Pause,
        /// How many of them are there over time, one stage after another; empty: all of them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        stages: Vec<UserStage>,
    },
    /// Connections started whatever the server does.
    Overload(OverloadLoad),
}

impl Load {
    /// Whether operations start whatever became of the earlier ones: then their pacing is recorded.
    pub fn is_open_loop(&self) -> bool {
        match self {
            Load::Open(_) => true,
            Load::Closed { .. } => false,
            Load::Overload(load) => !matches!(load.scheme, ConnectScheme::Simple { .. }),
        }
    }

    /// Mean rate and process, where a schedule starts the operations.
    pub fn schedule(&self) -> Option<(Rate, &ArrivalLaw)> {
        match self {
            Load::Open(open) => Some((open.rate, &open.arrival)),
            Load::Closed { .. } => None,
            Load::Overload(load) => match &load.scheme {
                ConnectScheme::Scheduled { rate, arrival, .. } => Some((*rate, arrival)),
                ConnectScheme::Simple { .. } | ConnectScheme::SClients { .. } => None,
            },
        }
    }

    /// The level that it stands for.
    pub fn level(&self) -> Level {
        match self {
            Load::Open(open) => Level::RatePerS(open.rate.per_s()),
            Load::Closed { vusers, .. } => Level::Vusers(*vusers),
            Load::Overload(load) => match load.scheme {
                ConnectScheme::Simple { clients } => Level::Clients(clients),
                ConnectScheme::SClients { descriptors, .. } => Level::Descriptors(descriptors),
                ConnectScheme::Scheduled { rate, .. } => Level::RatePerS(rate.per_s()),
            },
        }
    }
}

/// An open-loop load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OpenLoad {
    /// Mean operations offered per second, in all.
    pub rate: Rate,
    /// When they come.
    pub arrival: ArrivalLaw,
    /// The most connections that may be open at once.
    pub connections_max: u32,
    /// Most operations in flight or waiting; further arrivals are counted as shed. `None`: no
    /// limit.
    pub in_flight_max: Option<u32>,
}

impl OpenLoad {
    /// The highest rate that the process reaches by plan, in operations per second: the mean but
    /// for a burst's peak and a ramp's higher end.
    pub fn peak_per_s(&self) -> f64 {
        self.arrival.peak_per_s(self.rate)
    }

    /// One worker's share of the schedule. The same seed gives the same schedule.
    pub fn arrivals(&self, share: Share, seed: u64) -> Arrivals {
        Arrivals::of(self.rate, &self.arrival, share, seed)
    }
}

/// The pause of a virtual user between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    /// The two events that the law lies between.
    pub kind: PauseKind,
    /// Its length.
    pub law: Law,
}

impl Pause {
    /// The next operation starts as soon as the last one ended.
    pub const NONE: Pause = Pause { kind: PauseKind::Think, law: Law::ZERO };
}

/// The two events that a pause lies between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// From the end of one operation to the begin of the next.
    Think,
    /// From begin to begin; an operation that takes longer is followed at once by the next.
    Cycle,
}

/// A load of connections, each for one request. The trial's `connect_timeout` is the paper's T.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverloadLoad {
    /// Who starts a connection when.
    pub scheme: ConnectScheme,
    /// How a connection is closed once its response is here.
    pub close: CloseKind,
}

/// Who starts a connection when.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConnectScheme {
    /// Closed loops of connect, request, response, close: a connect waits as long as a blocking one
    /// does.
    Simple {
        /// How many, at least 1.
        clients: u32,
    },
    /// Connects in flight, their starts spread over T. One that is established in time is handed to
    /// the response side and replaced at once. One that is not is closed at T and replaced.
    SClients {
        /// How many S-Clients the descriptors are shared among, at least 1.
        sclients: u32,
        /// Connects in flight of all of them together, at least 1.
        descriptors: u32,
    },
    /// A schedule starts connects, up to a number in flight.
    Scheduled {
        /// Mean connection starts per second.
        rate: Rate,
        /// When they come.
        arrival: ArrivalLaw,
        /// Connects in flight at the most; a start beyond it is shed and counted.
        descriptors: u32,
    },
}

impl ConnectScheme {
    /// The most connects that may be waiting for an answer at once.
    pub fn connecting_max(&self) -> u32 {
        match *self {
            ConnectScheme::Simple { clients } => clients,
            ConnectScheme::SClients { descriptors, .. }
            | ConnectScheme::Scheduled { descriptors, .. } => descriptors,
        }
    }
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CloseKind {
    /// With a FIN: whoever sends it first keeps the port in TIME_WAIT.
    #[default]
    Fin,
    /// With a RST: no TIME_WAIT, but the server sees a reset.
    Rst,
}

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
    /// Patient operations that show how long a queue is and decide when the trial ends; `None`:
    /// there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sentinel: Option<SentinelSpec>,
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

    /// From when on no request begins: the end of the window, or of the time in which the users of
    /// a script may end their iterations after it.
    pub fn last_start(&self) -> Nanos {
        let script = self.target.script().filter(|_| self.operations_max.is_none());
        let graceful_stop = script.and_then(|script| script.graceful_stop);
        self.window_end() + graceful_stop.unwrap_or(Nanos::ZERO)
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
