//! knee-engine acts: every socket, thread, system call and line of unsafe code is here.

pub mod sys;

use knee_core::measure::{Observer, Trial};
use knee_core::report::Host;
use knee_core::spec::{HttpTarget, TrialSpec};
use std::fmt;
use std::sync::atomic::AtomicBool;

/// Why a trial could not be run.
#[derive(Debug)]
pub enum RunError {
    /// The target could not be reached: what was tried and what came of it, in one line.
    Unreachable(String),
    /// This machine does not permit what was asked (descriptors, io_uring, …): one line with the
    /// remedy.
    NotPermitted(String),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Unreachable(line) | RunError::NotPermitted(line) => f.write_str(line),
        }
    }
}

impl std::error::Error for RunError {}

/// Resolves the target and connects to it once, so that an unreachable one is told before any load
/// is sent. The address that answered, as text.
///
/// # Errors
/// [`RunError::Unreachable`] with the reason.
pub fn preflight(_target: &HttpTarget) -> Result<String, RunError> {
    todo!()
}

/// Runs one trial. Setting `stop` ends it early with what was measured; the trial is then marked
/// interrupted. `observer` sees each interval as it ends, on this thread.
///
/// # Errors
/// See [`RunError`]; errors of single operations are outcomes, not errors.
pub fn run(
    _spec: &TrialSpec,
    _observer: &mut dyn Observer,
    _stop: &AtomicBool,
) -> Result<Trial, RunError> {
    todo!()
}

/// Facts about this machine for the report.
pub fn host() -> Host {
    todo!()
}

/// Processors that this process may use.
pub fn cpus() -> u32 {
    todo!()
}
