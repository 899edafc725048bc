//! The sending side of a trial of datagrams.
//!
//! A `sender` is a thread that sends for some of the clients over one connected socket: many
//! clients where they are multiplexed, one where each has a thread or a process. It keeps to the
//! moments of a `source`, or waits in the very way that the trial names, and hands datagrams to
//! the kernel through its `outlet`, all that are due in one call.

mod cost;
mod intervals;
mod outlet;
mod processes;
mod processors;
mod replies;
mod sender;
mod source;
mod tally;
mod term;
#[cfg(test)]
mod tests;
mod threads;

use crate::error::RunError;
use crate::error::reason;
use crate::generator::{WorkerUse, generator_use};
use crate::kernel::host::HostTime;
use crate::kernel::limits;
use knee_core::experiment::udp::measure::UdpSent;
use knee_core::experiment::udp::spec::{ClientsAs, UdpTrialSpec};
use knee_core::measure::GeneratorUse;
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
    /// CLOCK_MONOTONIC in nanoseconds at which the run begins, [`UdpTrialSpec::lead`] after
    /// [`send`] is called; a sender that is not ready by then begins late.
    pub origin: u64,
    /// For [`ClientsAs::Processes`]: this program, which run as `PROGRAM udp-client` calls
    /// [`client_process`].
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

/// Sends from the plan's origin on until its time is over, its datagrams are used up, or `stop` is
/// set. What the kernel refuses is counted by the name of the error and not tried again; where
/// there is no room, a sender waits for some. `tell` hears of each interval that has passed: its
/// number, and the datagrams sent in it.
///
/// # Errors
/// There is no way to the target at all, or this machine does not permit what was asked.
pub fn send(
    plan: &SendPlan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<Sent, RunError> {
    let time = HostTime::now();
    let carry = || match plan.spec.carried_as {
        ClientsAs::Processes => {
            // Two pipes each.
            limits::ensure_files(2 * u64::from(plan.spec.clients))?;
            processes::run(plan, stop, tell)
        }
        ClientsAs::Multiplexed => threads::run(plan, stop, tell),
        ClientsAs::Threads => {
            limits::ensure_files(plan.spec.clients.into())?;
            threads::run(plan, stop, tell)
        }
    };
    let (carried, processors_busy) = processors::watch(plan, carry);
    let (done, intervals) = carried?;
    let steal_percent = HostTime::now().steal_percent_since(time);
    let costs: Vec<WorkerUse> = done.iter().map(|d| d.cost).collect();
    let interrupted = done.iter().any(|d| d.interrupted);
    let mut sent = tally::merge(done.into_iter().map(|d| d.sent));
    sent.processors_busy = processors_busy;
    intervals.finish(&sent.by_interval, tell);
    let backend = if plan.spec.gso {
        "udp_segment"
    } else {
        "sendmmsg"
    };
    Ok(Sent {
        sent,
        generator: generator_use(backend, &costs, steal_percent),
        interrupted,
    })
}

/// One client in a process of its own: reads its order from `input`, sends, and writes what came
/// of it to `output`, as [`send`] wants both. SIGTERM ends it early, with what it has.
///
/// # Errors
/// What comes in is no order, or nothing goes out.
pub fn client_process(input: impl Read, output: impl Write) -> io::Result<()> {
    processes::client(input, output)
}
