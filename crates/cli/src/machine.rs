//! This machine: what it permits, as far as arguments depend on it, and its time of day.

use crate::failure::Failure;
use knee_engine::OpenFiles;
use knee_load::time;
use std::time::{SystemTime, UNIX_EPOCH};

/// What this machine permits; a value, so that what depends on it can be tested.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Processors that this process may use.
    pub cpus: u32,
    /// What connections take.
    pub open_files: OpenFiles,
}

/// Most connections that are opened by default.
const CONNECTIONS_DEFAULT: u32 = 10_000;

impl Machine {
    /// The machine that this runs on.
    pub fn this() -> Machine {
        Machine { cpus: knee_engine::cpus(), open_files: OpenFiles::of_this_process() }
    }

    /// Connections that the open files permit, and one that is tried in any case.
    pub fn connections_permitted(&self) -> u32 {
        u32::try_from(self.open_files.connections()).map_or(u32::MAX, |n| n.max(1))
    }

    /// The most connections that are opened unasked.
    pub fn connections_default(&self) -> u32 {
        self.connections_permitted().min(CONNECTIONS_DEFAULT)
    }

    /// Refuses more connections than the open files permit, in the name of an argument.
    pub fn check_connections(&self, argument: &str, connections: u32) -> Result<(), Failure> {
        match self.open_files.refusal(connections.into()) {
            None => Ok(()),
            Some(wrong) => Err(Failure::argument(argument, wrong)),
        }
    }
}

/// Now, as RFC 3339 in UTC, to the second.
pub fn now() -> String {
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    let ns = since_1970.map_or(0, |time| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    time::rfc3339(ns)
}
