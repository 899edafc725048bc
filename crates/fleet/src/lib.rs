//! knee-fleet runs one experiment on many machines, which meet on NATS.
//!
//! An agent is the engine behind subjects; the coordinator conducts the experiment and has each
//! trial made by all agents together. Shares are those of one process with as many workers, so that
//! merges are exact. Nothing else in knee knows of it. This is the only crate with an async
//! runtime. It begins with the first connection to NATS, so that a run on one machine has none.
//!
//! Workers are numbered through all agents (`WorkerRange`), which is why shares are those of one
//! process. `protocol` has the subjects. `clocks`, `parcel`, `interval_share` and `permit` are
//! tested without a network.
//!
//! From the bottom up:
//!
//! - `nats_access`, `parcel`, `interval_share`, `permit`; `protocol`: access, values that travel,
//!   what an operator permits; subjects and messages.
//! - `bus`; `clocks` and `leases`: the connection; the distance of clocks, who is there.
//! - `agent`; `coordinator`: the two ends.

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
pub use protocol::{AgentFacts, CoordinatorFacts, PROTOCOL, TrialKey};

/// Name of this host.
fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    match name.trim() {
        "" => "host".to_owned(),
        name => name.to_owned(),
    }
}

/// Whether a process of this host has died, possibly without returning its lease.
fn is_dead(host: &str, pid: u32) -> bool {
    host == host_name() && !std::path::Path::new(&format!("/proc/{pid}")).exists()
}
