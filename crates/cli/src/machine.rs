//! This machine: what it permits, as far as arguments depend on it, its time of day and signals.

use crate::failure::Failure;
use knee_engine::OpenFiles;
use knee_load::spec::Target;
use knee_load::time;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What this machine permits; a value, so that what depends on it can be tested.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// Processors that this process may use.
    pub cpus: u32,
    /// What connections take.
    pub open_files: OpenFiles,
    /// Whether the load comes from other machines, whose sum this is.
    pub is_fleet: bool,
}

/// Most connections that are opened by default.
const CONNECTIONS_DEFAULT: u32 = 10_000;

/// Operations per second that no processor starts: the fastest start about a million.
const STARTS_PER_CPU: f64 = 5e6;

/// Operations that wait at most where no limit is asked for, so that a load beyond what this machine
/// or the target can do takes bounded memory, about 200 MB. Further ones are counted as shed.
pub const IN_FLIGHT_DEFAULT: u32 = 1_000_000;

/// Virtual users at most. Each takes memory before the load.
const USERS_MAX: u32 = 1_000_000;

impl Machine {
    /// Refuses a rate that this machine cannot start, in the name of an argument.
    pub fn check_rate(&self, argument: &str, per_s: f64) -> Result<(), Failure> {
        let most = STARTS_PER_CPU * f64::from(self.cpus.max(1));
        if per_s <= most {
            return Ok(());
        }
        let wrong =
            format!("{per_s:.0}/s is more than this machine can start: at most {most:.0}/s");
        Err(Failure::argument(argument, wrong))
    }

    /// Refuses more users than there is memory for, in the name of an argument.
    pub fn check_users(argument: &str, users: u32) -> Result<(), Failure> {
        if users <= USERS_MAX {
            return Ok(());
        }
        Err(Failure::argument(argument, format!("{users} users are too many: at most {USERS_MAX}")))
    }

    /// The machine that this runs on.
    pub fn this() -> Machine {
        Machine {
            cpus: knee_engine::cpus(),
            open_files: OpenFiles::of_this_process(),
            is_fleet: false,
        }
    }

    /// The part of it that a load on this target takes by default: at least half of the processors
    /// are left to a target on this host.
    pub fn beside(&self, target: &Target) -> Machine {
        if self.is_fleet || !knee_engine::is_on_this_host(target) {
            return *self;
        }
        Machine { cpus: (self.cpus / 2).max(1), ..*self }
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

/// A directory of the user's, by the XDG Base Directory Specification: the one that a variable
/// names, or else `below` the home directory. A path that is not absolute counts as not set.
pub fn user_directory(
    named: Option<OsString>,
    home: Option<OsString>,
    below: &str,
) -> Option<PathBuf> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    named.and_then(absolute).or_else(|| Some(absolute(home?)?.join(below)))
}

/// Now, as RFC 3339 in UTC, to the second.
pub fn now() -> String {
    time::rfc3339(now_unix_ns())
}

/// The time of day, in nanoseconds since 1970-01-01 UTC.
pub fn now_unix_ns() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Waits until a signal asks for the end.
pub fn wait_for_stop(stop: &AtomicBool) {
    while !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(20));
    }
}
