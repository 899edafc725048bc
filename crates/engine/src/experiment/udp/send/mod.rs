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

use crate::error::{RunError, reason};
use crate::generator::{WorkerUse, generator_use};
use crate::kernel::host::{self, HostTime, Processors};
use crate::run::STARTS_MAX;
use crate::sys::clock::{MonotonicClock, monotonic_ns};
use crate::sys::udp;
use crate::threads;
use knee_load::experiment::udp::{ClientsAs, UdpSent, UdpTrialSpec};
use knee_load::measure::GeneratorUse;
use knee_load::spec::Share;
use knee_load::time::Nanos;
pub use processes::client_process;
use send_period::SendPeriod;
use sender::{DatagramSender, SenderResult};
use serde::{Deserialize, Serialize};
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::Duration;
use tally::SentIntervals;

/// Interval of looking after senders.
const LOOK: Duration = Duration::from_millis(50);

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
/// there is no room, a sender waits for some. `report` is called for each interval that has passed,
/// with its number and the datagrams sent in it.
///
/// # Errors
/// There is no route to the target, or this machine does not permit what was asked.
pub fn send(
    plan: &SendPlan,
    stop: &AtomicBool,
    report: &mut dyn FnMut(u64, u64),
) -> Result<Sent, RunError> {
    let time = HostTime::now();
    let carry = || match plan.spec.carried_as {
        ClientsAs::Processes => {
            // Two pipes each.
            host::ensure_files(2 * u64::from(plan.spec.clients))?;
            processes::run(plan, stop, report)
        }
        ClientsAs::Multiplexed => run(plan, stop, report),
        ClientsAs::Threads => {
            host::ensure_files(plan.spec.clients.into())?;
            run(plan, stop, report)
        }
    };
    let (carried, processors_busy) = watch_processors(plan, carry);
    let (done, intervals) = carried?;
    let steal_percent = HostTime::now().steal_percent_since(time);
    let costs: Vec<WorkerUse> = done.iter().map(|d| d.cost).collect();
    let interrupted = done.iter().any(|d| d.interrupted);
    let mut sent = tally::merge(done.into_iter().map(|d| d.sent));
    sent.processors_busy = processors_busy;
    intervals.finish(&sent.by_interval, report);
    let backend = if plan.spec.gso { "udp_segment" } else { "sendmmsg" };
    Ok(Sent { sent, generator: generator_use(backend, &costs, steal_percent), interrupted })
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
        let watcher = threads::spawn(scope, "processors", move || {
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

/// What a sender says: a thread over a channel, a process in a line of its output.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum SenderMessage {
    /// An interval has passed: its index, and the datagrams sent in it.
    Passed { index: u64, sent: u64 },
    /// The sender has ended.
    Done(Box<SenderResult>),
    /// The sender could not send, for this reason.
    Failed(String),
}

/// Follows `senders` senders until all have ended, and calls `look` after each message, at least
/// every [`LOOK`]. `report` is called for intervals that all senders have passed. The result of a
/// sender is `None` where it ended without one.
///
/// # Errors
/// The first reason why a sender could not send.
fn follow(
    senders: usize,
    messages: &Receiver<(usize, SenderMessage)>,
    report: &mut dyn FnMut(u64, u64),
    mut look: impl FnMut(),
) -> Result<(Vec<Option<SenderResult>>, SentIntervals), RunError> {
    let mut intervals = SentIntervals::new(senders);
    let mut results: Vec<Option<SenderResult>> = (0..senders).map(|_| None).collect();
    loop {
        match messages.recv_timeout(LOOK) {
            Ok((sender, SenderMessage::Passed { index, sent })) => {
                intervals.passed(sender, index, sent, report);
            }
            Ok((sender, SenderMessage::Done(result))) => {
                results[sender] = Some(*result);
                intervals.ended(sender, report);
            }
            Ok((_, SenderMessage::Failed(why))) => return Err(RunError::NotPermitted(why)),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Ok((results, intervals)),
        }
        look();
    }
}

/// Runs a thread for each sender and returns their results.
fn run(
    plan: &SendPlan,
    stop: &AtomicBool,
    report: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<SenderResult>, SentIntervals), RunError> {
    let spec = &plan.spec;
    let count = match spec.carried_as {
        ClientsAs::Multiplexed => spec.engine.workers.clamp(1, spec.clients.max(1)),
        ClientsAs::Threads | ClientsAs::Processes => spec.clients.max(1),
    };
    let sockets: Vec<UdpSocket> =
        (0..count).map(|_| connect(plan.target)).collect::<Result<_, _>>()?;
    let failed = AtomicBool::new(false);
    let period = period(plan, stop, &failed);
    let (messages, heard) = mpsc::channel();
    thread::scope(|scope| {
        let works = sockets.into_iter().enumerate().map(|(index, socket)| {
            let messages = messages.clone();
            let share = Share { index: index as u32, of: count };
            move || {
                // Nobody listens any more where another sender has failed.
                let mut say = |message| drop(messages.send((index, message)));
                send_share(plan, period, share, socket, &mut say);
                Ok(())
            }
        });
        threads::spawn_all(scope, "udp-sender", works)?;
        drop(messages);
        let (results, intervals) = follow(count as usize, &heard, report, || {})?;
        Ok((results.into_iter().flatten().collect(), intervals))
    })
}

/// Period in which the plan's senders may send.
fn period<'a>(plan: &SendPlan, stop: &'a AtomicBool, failed: &'a AtomicBool) -> SendPeriod<'a> {
    SendPeriod {
        clock: MonotonicClock { origin: plan.origin },
        end: plan.spec.duration,
        stop,
        failed,
    }
}

/// Sends one share, on this thread. `say` gets a message for each interval, and one at the end.
/// Where the share cannot be sent, the period ends for all senders.
fn send_share(
    plan: &SendPlan,
    period: SendPeriod<'_>,
    share: Share,
    socket: UdpSocket,
    say: &mut dyn FnMut(SenderMessage),
) {
    let starts_max = STARTS_MAX / share.of as usize;
    let sender = DatagramSender::new(&plan.spec, plan.session, share, period, socket, starts_max);
    let result = sender.and_then(|sender| {
        let mut emit = |index, sent| say(SenderMessage::Passed { index, sent });
        sender.run(&mut emit).map_err(|e| format!("a sender could not wait: {e}"))
    });
    say(match result {
        Ok(result) => SenderMessage::Done(Box::new(result)),
        Err(why) => {
            period.failed.store(true, Ordering::Relaxed);
            SenderMessage::Failed(why)
        }
    });
}

/// A socket connected to `target`, so that the network's answers come back to it (udp(7)).
///
/// # Errors
/// There is no route, or no descriptor left.
fn connect(target: SocketAddr) -> Result<UdpSocket, RunError> {
    udp::connected(target)
        .map_err(|e| RunError::Unreachable(format!("cannot send to {target}: {}", reason(&e))))
}
