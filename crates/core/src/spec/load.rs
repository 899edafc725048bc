//! The load: open loop or closed loop.

use super::rate::Rate;
use super::{ConnectScheme, Level, OverloadLoad};
use crate::law::Law;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

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
        match &self.arrival {
            ArrivalLaw::Burst { peak_ratio, .. } => self.rate.per_s() * peak_ratio,
            ArrivalLaw::Ramp { from, to, .. } => from.per_s().max(to.per_s()),
            _ => self.rate.per_s(),
        }
    }
}

/// When the operations of an open loop come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ArrivalLaw {
    /// Every 1/rate.
    Constant,
    /// Independent exponential gaps of mean 1/rate.
    Poisson,
    /// Independent gaps, uniform between 0 and 2/rate.
    Uniform,
    /// Two rates in turn (Banga and Druschel, USITS 1997): `peak_ratio` (a > 1) is the peak rate
    /// over the mean, `peak_share` (0 < b < 1, a·b ≤ 1) the share of each `period` spent at the
    /// peak.
    Burst {
        /// Peak rate over mean rate.
        peak_ratio: f64,
        /// Share of the time at the peak rate.
        peak_share: f64,
        /// Length of one cycle.
        period: Nanos,
    },
    /// The rate moves linearly from one to the other over the whole run.
    Ramp {
        /// Rate at the beginning.
        from: Rate,
        /// Rate at the end.
        to: Rate,
        /// The time over which it moves.
        over: Nanos,
    },
    /// Recorded moments, ascending, from the beginning of the run; it ends with the last one.
    Trace(Arc<[Nanos]>),
}

impl ArrivalLaw {
    /// Its name in reports.
    pub fn name(&self) -> &'static str {
        match self {
            ArrivalLaw::Constant => "constant",
            ArrivalLaw::Poisson => "poisson",
            ArrivalLaw::Uniform => "uniform",
            ArrivalLaw::Burst { .. } => "burst",
            ArrivalLaw::Ramp { .. } => "ramp",
            ArrivalLaw::Trace(_) => "trace",
        }
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
