//! The sending side of a UDP trial.
//!
//! A `sender` is a thread that sends for some of the clients over one connected socket. Multiplexed
//! clients share one; otherwise each has a thread or a process. It keeps to the times of a
//! `source`, or waits in the way that the trial names. It hands datagrams to the kernel through its
//! `outlet`, all that are due in one call.

mod outlet;
mod processes;
mod send_period;
mod sender;
mod source;
mod tally;
#[cfg(test)]
mod tests;
mod threads;

use crate::error::{RunError, reason};
use crate::generator::{WorkerUse, generator_use};
use crate::kernel::host::{HostTime, Processors};
use crate::kernel::limits;
use crate::sys::clock::monotonic_ns;
use knee_load::experiment::udp::{ClientsAs, UdpSent, UdpTrialSpec};
use knee_load::measure::GeneratorUse;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

/// What to send, where, and from when on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SendPlan {
    /// The trial.
    pub spec: UdpTrialSpec,
    /// Destination of the datagrams.
    pub target: SocketAddr,
    /// Session number of this run's datagrams.
    pub session: u64,
    /// CLOCK_MONOTONIC in nanoseconds at which the run begins, [`UdpTrialSpec::lead`] after
    /// [`send`] is called; a sender that is not ready by then begins late.
    pub origin: u64,
    /// For [`ClientsAs::Processes`]: this program, which run as `PROGRAM udp-client` calls
    /// [`client_process`].
    pub program: PathBuf,
}

/// Result of a plan.
#[derive(Clone, Debug)]
pub struct Sent {
    /// Counts of the datagrams.
    pub sent: UdpSent,
    /// Cost of sending.
    pub generator: GeneratorUse,
    /// Whether it was stopped before its time was over.
    pub interrupted: bool,
}

/// Sends from the plan's origin until its time is over, its datagrams are used up, or `stop` is
/// set. What the kernel refuses is counted by the name of the error and not tried again. Where
/// there is no room, a sender waits for some. `tell` is called for each interval that has passed,
/// with its number and the datagrams sent in it.
///
/// # Errors
/// There is no route to the target, or this machine does not permit what was asked.
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
    let (carried, processors_busy) = watch_processors(plan, carry);
    let (done, intervals) = carried?;
    let steal_percent = HostTime::now().steal_percent_since(time);
    let costs: Vec<WorkerUse> = done.iter().map(|d| d.cost).collect();
    let interrupted = done.iter().any(|d| d.interrupted);
    let mut sent = tally::merge(done.into_iter().map(|d| d.sent));
    sent.processors_busy = processors_busy;
    intervals.finish(&sent.by_interval, tell);
    let backend = if plan.spec.gso { "udp_segment" } else { "sendmmsg" };
    Ok(Sent { sent, generator: generator_use(backend, &costs, steal_percent), interrupted })
}

/// Runs one client in this process: reads its order from `input`, sends, and writes its result to
/// `output`, in the formats of [`send`]. SIGTERM ends it early.
///
/// # Errors
/// The input is no order, or the output cannot be written.
pub fn client_process(input: impl Read, output: impl Write) -> io::Result<()> {
    processes::client(input, output)
}

/// Runs `run`. Returns its result, and how long the clients' processors were busy from the plan's
/// origin to its end. `None`: the clients are bound to no processors, or no cost of a send is set.
fn watch_processors<T>(plan: &SendPlan, run: impl FnOnce() -> T) -> (T, Option<Nanos>) {
    let spec = &plan.spec;
    if spec.client_cpus.is_empty() || spec.send_cost == Nanos::ZERO {
        return (run(), None);
    }
    thread::scope(|scope| {
        let (running, over) = mpsc::channel::<()>();
        let watcher = crate::threads::spawn(scope, "processors", move || {
            wait(&over, plan.origin);
            let before = Processors::now(&spec.client_cpus);
            wait(&over, plan.origin.saturating_add(spec.duration.0));
            before.busy_since()
        });
        let made = run();
        drop(running);
        // Where no thread can be had it stays unknown.
        let busy = watcher.ok().and_then(|watcher| watcher.join().ok());
        (made, busy.flatten())
    })
}

/// Sleeps until `until_ns`, or until `over` is closed.
fn wait(over: &Receiver<()>, until_ns: u64) {
    let left = until_ns.saturating_sub(monotonic_ns());
    // An error either way, as nothing is ever sent.
    let _ = over.recv_timeout(Duration::from_nanos(left));
}
