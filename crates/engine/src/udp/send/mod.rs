//! The sending side of a trial of datagrams.

use crate::RunError;
use knee_core::measure::{GeneratorUse, UdpSent};
use knee_core::spec::UdpTrialSpec;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// What is to be sent where, from when on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendPlan {
    /// The trial.
    pub spec: UdpTrialSpec,
    /// Where the datagrams go.
    pub target: SocketAddr,
    /// Tells datagrams of this run from those of others.
    pub session: u64,
    /// CLOCK_MONOTONIC in nanoseconds at which the run begins.
    pub origin: u64,
    /// For [`knee_core::spec::ClientsAs::Processes`]: this program, which run as
    /// `PROGRAM udp-client` calls [`client_process`].
    pub program: PathBuf,
}

/// What came of a plan.
#[derive(Clone, Debug)]
pub struct Sent {
    /// What was sent.
    pub sent: UdpSent,
    /// What it cost.
    pub generator: GeneratorUse,
    /// It was told to stop before its time was over.
    pub interrupted: bool,
}

/// Sends.
///
/// # Errors
/// What this machine does not permit.
pub fn send(
    _plan: &SendPlan,
    _stop: &AtomicBool,
    _tell: &mut dyn FnMut(u64, u64),
) -> Result<Sent, RunError> {
    Err(RunError::NotPermitted("not written yet".into()))
}

/// One client in a process of its own.
///
/// # Errors
/// No plan comes in, or nothing goes out.
pub fn client_process(_input: impl Read, _output: impl Write) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}
