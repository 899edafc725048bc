//! Why a trial could not be run.

use std::fmt;
use std::io;

/// Why a trial could not be run.
#[derive(Debug)]
pub enum RunError {
    /// The target could not be reached: what was tried and what came of it, in one line.
    Unreachable(String),
    /// This machine does not permit what was asked (descriptors, io_uring, …): one line with the
    /// remedy.
    NotPermitted(String),
    /// Something beside the generator that the load needs could not be started: one line.
    NotStarted(String),
    /// The machines that were to make the load, or what joins them, are not there: one line.
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
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let text = text
        .strip_prefix("failed to lookup address information: ")
        .unwrap_or(text);
    text.to_lowercase()
}
