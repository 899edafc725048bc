//! The load: open loop or closed loop.

use super::{ConnectScheme, Level, OverloadLoad};
use crate::arrival::{ArrivalLaw, Arrivals};
use crate::law::Law;
use crate::quantity::{Rate, Share};
use serde::{Deserialize, Serialize};

/// Who decides when the next operation starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Load {
    /// A schedule that does not care how the target fares.
    Open(OpenLoad),
    /// Virtual users, each of whom waits for the answer, pauses, and asks again.
    Closed {
        /// How many users, at least 1.
        vusers: u32,
        /// What each does between two operations.
        pause: Pause,
    },
    /// Connections started whatever the server does.
    Overload(OverloadLoad),
}

impl Load {
    /// Whether operations start whatever became of the earlier ones: then their pacing is recorded,
    /// and a completion counts where it falls.
    pub fn is_open_loop(&self) -> bool {
        match self {
            Load::Open(_) => true,
            Load::Closed { .. } => false,
            Load::Overload(load) => !matches!(load.scheme, ConnectScheme::Simple { .. }),
        }
    }

    /// Whether a completion counts where it falls, and not in proportion over the time that it
    /// took.
    pub fn counts_whole(&self) -> bool {
        !matches!(self, Load::Closed { .. })
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
    /// Beyond so many operations in flight or waiting, an arrival is counted as shed; `None`:
    /// never.
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

/// What a virtual user does between two operations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Pause {
    /// From where to where the law counts.
    pub kind: PauseKind,
    /// How long.
    pub law: Law,
}

impl Pause {
    /// The next operation starts as soon as the last one ended.
    pub const NONE: Pause = Pause {
        kind: PauseKind::Think,
        law: Law::ZERO,
    };
}

/// From where to where a pause counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PauseKind {
    /// From the end of one operation to the begin of the next.
    Think,
    /// From begin to begin; an operation that takes longer is followed at once by the next.
    Cycle,
}
