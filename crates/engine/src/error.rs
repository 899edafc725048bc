//! Why a trial could not be run.

use std::fmt;
use std::io;

/// Why a trial could not be run.
#[derive(Clone, Debug)]
pub enum RunError {
    /// The target could not be reached: attempts and results, in one line.
    Unreachable(String),
    /// What was asked is not permitted or not possible, on this machine (descriptors, io_uring, …)
    /// or in the fleet: one line with the remedy.
    NotPermitted(String),
    /// A helper of the load could not be started: one line.
    NotStarted(String),
    /// Machines of the fleet, or the connection to them, are missing: one line.
    FleetLost(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Unreachable(line)
            | RunError::NotPermitted(line)
            | RunError::NotStarted(line)
            | RunError::FleetLost(line) => f.write_str(line),
        }
    }
}

impl std::error::Error for RunError {}

/// An error in words, without the number of the operating system.
pub fn reason(error: &io::Error) -> String {
    // A read or write with a time limit ends so.
    if error.kind() == io::ErrorKind::WouldBlock {
        return "no answer in time".to_owned();
    }
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let text = text.strip_prefix("failed to lookup address information: ").unwrap_or(text);
    text.to_lowercase()
}
