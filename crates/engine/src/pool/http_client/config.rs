//! What a client needs to know before the run.

use crate::sys::socket::RawAddress;
use knee_core::time::Nanos;

/// What a client needs to know before the run.
#[derive(Clone)]
pub(crate) struct ClientConfig {
    /// Where to connect.
    pub address: RawAddress,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// The most connections open at once.
    pub connections_max: u32,
    /// Closed loop: how many lanes there are, each with a connection of its own; 0 in open loop.
    pub lanes: u32,
    /// The most operations under way on one connection.
    pub(crate) streams_max: u32,
    /// An operation ends as a timeout so long after its intended time.
    pub timeout: Nanos,
    /// A connect ends as a timeout after so long.
    pub connect_timeout: Nanos,
}

impl ClientConfig {
    /// The most operations under way on all connections.
    pub(super) fn operations_max(&self) -> u64 {
        u64::from(self.connections_max) * u64::from(self.streams_max)
    }

    /// How many connections the backend must have room for: in a closed loop also those that wait
    /// for the server to close them while their lane has a new one already.
    pub(crate) fn slots(&self) -> usize {
        match self.lanes {
            0 => self.connections_max as usize,
            lanes => lanes as usize * if self.keep_alive { 2 } else { 8 } + 16,
        }
    }
}
