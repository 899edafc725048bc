//! Connections started at rates that do not depend on the server: S-Clients (Banga and Druschel,
//! "Measuring the Capacity of a Web Server", USITS 1997).

use super::{ArrivalLaw, Rate};
use serde::{Deserialize, Serialize};

/// A load of connections, each for one request. The trial's `connect_timeout` is the paper's T.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OverloadLoad {
    /// Who starts a connection when.
    pub scheme: ConnectScheme,
    /// Local addresses that connections come from, in turn; empty: the kernel's choice. Each has
    /// its own range of ports.
    pub sources: Vec<String>,
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
    /// the response side and replaced at once; one that is not is closed at T and replaced.
    SClients {
        /// How many S-Clients the descriptors are shared among, at least 1.
        sclients: u32,
        /// Connects in flight of all of them together, at least 1.
        descriptors: u32,
    },
    /// A schedule starts connects, up to so many in flight at once.
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
