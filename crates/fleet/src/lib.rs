//! knee-fleet runs one experiment on many machines, which meet on NATS.
//!
//! An agent is the engine behind subjects; the coordinator conducts the experiment and has each
//! trial made by all agents together. Shares are those of one process with as many workers, so that
//! merges are exact. Nothing else in knee knows of it, and this is the only crate with an async
//! runtime: it begins with the first connection to NATS, so that a run on one machine has none.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

mod access;
mod agent;
mod bus;
mod chrony;
mod clocks;
mod coordinator;
mod live;
mod outline;
mod parcel;
mod part;
mod permit;
mod select;
mod words;

pub use access::Access;
pub use agent::{Agent, AgentOptions};
pub use coordinator::{Collected, Fleet, FleetOptions, Present, clear, collect, present, stop};
pub use permit::{Cidr, Permit};
pub use select::Selector;
pub use words::{AgentFacts, Aimed, CoordinatorFacts, Greeted, PROTOCOL, TrialKey};

use knee_engine::error::RunError;
use std::fmt;

/// Why a fleet cannot do what it is asked, in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FleetError {
    /// The target is not there.
    Unreachable(String),
    /// NATS, its JetStream or an agent is not there.
    Gone(String),
    /// It is there, and does not permit it, or what was asked for cannot be.
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

/// Facts about this host that both sides tell.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    match name.is_empty() {
        true => "host".to_owned(),
        false => name.to_owned(),
    }
}
