//! knee-engine acts: every socket, thread, system call and line of unsafe code is here.

#![warn(unreachable_pub)]

mod control;
pub mod error;
pub mod exchange;
pub mod experiment;
mod generator;
pub mod input;
pub mod interrupt;
mod kernel;
pub mod link;
mod names;
pub mod observe;
mod pool;
mod port;
mod program;
mod reactor;
mod resolve;
mod run;
pub mod serve;
pub mod sys;
mod threads;
mod worker;

use error::RunError;
pub use kernel::limits::{OpenFiles, RESERVED_FILES};
use knee_core::experiment::overload::PreflightFacts;
use knee_core::measure::{IntervalWatcher, Trial};
use knee_core::report::Host;
use knee_core::spec::{Endpoint, HttpTarget, TrialSpec, WorkerRange};
use knee_core::time::Nanos;
pub use link::Greeting;
pub use run::Muster;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// Resolves the target and connects to it once, so that an unreachable one is told before any load
/// is sent, and greets it where it is to be spoken to in TLS or HTTP/2. Each of its addresses has
/// `connect_timeout` to answer. The one that did, as text, and what it told.
///
/// # Errors
/// [`RunError::Unreachable`] with the reason.
pub fn preflight(
    target: &HttpTarget,
    connect_timeout: Nanos,
) -> Result<(String, Greeting), RunError> {
    resolve::meet(target, Duration::from_nanos(connect_timeout.0))
}

/// Resolves the target of an overload, connects to it once, and makes sure that connections can
/// come from `sources`, before any load is sent. The address, and whether it answered: silence is
/// no error, as a server may be overloaded already.
///
/// # Errors
/// [`RunError::Unreachable`]: it refuses, or there is no such host; [`RunError::NotPermitted`]: a
/// source is no address of this host.
pub fn aim(target: &HttpTarget, sources: &[String]) -> Result<(SocketAddr, bool), RunError> {
    let Endpoint::Tcp { host, port } = &target.endpoint else {
        let line = "a Unix socket has no connection attempts that time out";
        return Err(RunError::NotPermitted(line.to_owned()));
    };
    let (address, answers) = resolve::sight(host, *port, PREFLIGHT_PATIENCE)?;
    resolve::check_sources(sources, address)?;
    Ok((address, answers))
}

/// How long [`aim`] waits for an answer.
const PREFLIGHT_PATIENCE: Duration = Duration::from_secs(5);

/// Runs one trial. Setting `stop` ends it early with what was measured; the trial is then marked
/// interrupted. `observer` sees each interval as it ends, on this thread.
///
/// # Errors
/// See [`RunError`]; errors of single operations are outcomes, not errors.
pub fn run(
    spec: &TrialSpec,
    observer: &mut dyn IntervalWatcher,
    stop: &AtomicBool,
) -> Result<Trial, RunError> {
    run::run(spec, observer, stop, None)
}

/// The same, with the server's side watched from a vantage over the measured window: the trial's
/// `observed`. It waits some milliseconds more before it begins, so that nothing is missed.
///
/// # Errors
/// See [`run()`]; a vantage that is lost meanwhile is told in `observed`.
pub fn run_observed(
    spec: &TrialSpec,
    observer: &mut dyn IntervalWatcher,
    stop: &AtomicBool,
    vantage: Option<&mut observe::Vantage>,
) -> Result<Trial, RunError> {
    run::run(spec, observer, stop, vantage)
}

/// Runs what a crew has of a trial that several processes make together: those of its operations,
/// users and connections that the workers of the crew have, from the moment that `muster` says.
/// Nothing is sent before.
///
/// # Errors
/// See [`run()`].
pub fn run_part(
    spec: &TrialSpec,
    crew: WorkerRange,
    muster: &dyn Muster,
    stop: &AtomicBool,
) -> Result<Trial, RunError> {
    run::run_part(spec, crew, muster, stop)
}

/// The most connections that a trial may have open at once.
pub fn connections_of(spec: &TrialSpec) -> u32 {
    run::connections_of(spec)
}

/// Facts about this machine for the report.
pub fn host() -> Host {
    kernel::host::host()
}

/// What of this host decides how an overload of `target` will fare, and is known before it begins:
/// of connections from one address that are closed in order; with the server's settings where it is
/// `on_this_host`.
pub fn preflight_facts(target: IpAddr, on_this_host: bool) -> PreflightFacts {
    kernel::sysctl::preflight_facts(target, on_this_host)
}

/// Processors that this process may use.
pub fn cpus() -> u32 {
    sys::thread::cpu_count()
}

/// How many connections this process may have open at once.
pub fn connections_permitted() -> u32 {
    u32::try_from(kernel::limits::connections_permitted()).unwrap_or(u32::MAX)
}
