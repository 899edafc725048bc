//! knee-fleet runs one experiment on many machines, which meet on NATS.
//!
//! An agent is the engine behind subjects; the coordinator conducts the experiment and has each
//! trial made by all agents together. Shares are those of one process with as many workers, so that
//! merges are exact. Nothing else in knee knows of it. This is the only crate with an async
//! runtime. It begins with the first connection to NATS, so that a run on one machine has none.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod agent;
mod bus;
mod clocks;
mod coordinator;
mod interval_share;
mod leases;
mod nats_access;
mod parcel;
mod permit;
mod protocol;

pub use agent::{Agent, AgentOptions};
pub use coordinator::{
    AgentPresence, CollectedTrial, Fleet, FleetOptions, Selector, clear, collect, present, stop,
};
pub use nats_access::{NatsAccess, Patience};
pub use permit::{Cidr, Permit, least_per_s};
pub use protocol::{
    AgentFacts, CoordinatorFacts, PROTOCOL, TargetAddress, TargetGreeting, TrialKey,
};

use knee_engine::error::RunError;
use std::fmt;

/// Why a fleet cannot do what it is asked, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetError {
    /// The target cannot be reached.
    Unreachable(String),
    /// NATS, its JetStream or an agent cannot be reached.
    Gone(String),
    /// It is not permitted, or not possible.
    Refused(String),
}

impl fmt::Display for FleetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FleetError::Unreachable(line) | FleetError::Gone(line) | FleetError::Refused(line) => {
                f.write_str(line)
            }
        }
    }
}

impl std::error::Error for FleetError {}

impl From<FleetError> for RunError {
    fn from(error: FleetError) -> RunError {
        match error {
            FleetError::Unreachable(line) => RunError::Unreachable(line),
            FleetError::Gone(line) => RunError::FleetLost(line),
            FleetError::Refused(line) => RunError::NotPermitted(line),
        }
    }
}

/// Name of this host.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "host".to_owned(),
        name => name.to_owned(),
    }
}

/// Whether a process of this host died, for example without giving its lease back.
fn is_dead(host: &str, pid: u32) -> bool {
    host == host_name() && !std::path::Path::new(&format!("/proc/{pid}")).exists()
}
