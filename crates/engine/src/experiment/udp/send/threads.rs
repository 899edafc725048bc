//! Senders on threads of this process.

use super::send_period::SendPeriod;
use super::sender::{DatagramSender, SenderResult};
use super::tally::SentIntervals;
use super::{SendPlan, reason};
use crate::error::RunError;
use crate::run::STARTS_MAX;
use crate::sys::clock::MonotonicClock;
use crate::sys::udp;
use knee_load::experiment::udp::ClientsAs;
use knee_load::spec::Share;
use std::net::{SocketAddr, UdpSocket};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// Events of a sender.
enum SenderEvent {
    /// Sender, interval, datagrams sent in it.
    Passed(usize, u64, u64),
    /// A sender has ended.
    Ended(usize),
}

/// Runs a thread for each sender and returns their results. `tell` is called on this thread for
/// intervals that all senders have passed.
pub(super) fn run(
    plan: &SendPlan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<SenderResult>, SentIntervals), RunError> {
    let spec = &plan.spec;
    let of = match spec.carried_as {
        ClientsAs::Multiplexed => spec.engine.workers.clamp(1, spec.clients.max(1)),
        ClientsAs::Threads | ClientsAs::Processes => spec.clients.max(1),
    };
    let sockets: Vec<UdpSocket> =
        (0..of).map(|_| connect(plan.target)).collect::<Result<_, _>>()?;
    let failed = AtomicBool::new(false);
    let term = term(plan, stop, &failed);
    let mut intervals = SentIntervals::new(of as usize);
    let (told, heard) = mpsc::channel();
    let done: Result<Vec<SenderResult>, String> = thread::scope(|scope| {
        let start = |(index, socket): (usize, UdpSocket)| {
            let told = told.clone();
            let share = Share { index: index as u32, of };
            thread::Builder::new().spawn_scoped(scope, move || {
                // The receiver outlives the senders; where it is gone its thread has panicked.
                let mut emit = |interval, sent| {
                    let _ = told.send(SenderEvent::Passed(index, interval, sent));
                };
                let done = send_share(plan, term, share, socket, &mut emit);
                if done.is_err() {
                    term.failed.store(true, Ordering::Relaxed);
                }
                let _ = told.send(SenderEvent::Ended(index));
                done
            })
        };
        let mut threads = Vec::with_capacity(of as usize);
        let mut refused = None;
        for sender in sockets.into_iter().enumerate() {
            match start(sender) {
                Ok(thread) => threads.push(thread),
                Err(e) => {
                    failed.store(true, Ordering::Relaxed);
                    refused = Some(crate::threads::refused(&e).to_string());
                    break;
                }
            }
        }
        drop(told);
        for heard in heard {
            match heard {
                SenderEvent::Passed(sender, index, sent) => {
                    intervals.passed(sender, index, sent, tell)
                }
                SenderEvent::Ended(sender) => intervals.ended(sender, tell),
            }
        }
        let done = threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic)));
        let done = done.collect::<Result<Vec<SenderResult>, String>>();
        refused.map_or(done, Err)
    });
    Ok((done.map_err(RunError::NotPermitted)?, intervals))
}

/// Period in which the plan's senders may send.
pub(super) fn term<'a>(
    plan: &SendPlan,
    stop: &'a AtomicBool,
    failed: &'a AtomicBool,
) -> SendPeriod<'a> {
    SendPeriod {
        clock: MonotonicClock { origin: plan.origin },
        end: plan.spec.duration,
        stop,
        failed,
    }
}

/// Sends one share, on this thread.
pub(super) fn send_share(
    plan: &SendPlan,
    term: SendPeriod<'_>,
    share: Share,
    socket: UdpSocket,
    emit: &mut dyn FnMut(u64, u64),
) -> Result<SenderResult, String> {
    let starts_max = STARTS_MAX / share.of as usize;
    let sender = DatagramSender::new(&plan.spec, plan.session, share, term, socket, starts_max)?;
    sender.run(emit).map_err(|e| format!("a sender could not wait: {e}"))
}

/// A socket connected to `target`, so that the network's answers come back to it (udp(7)).
///
/// # Errors
/// There is no route, or no descriptor left.
pub(super) fn connect(target: SocketAddr) -> Result<UdpSocket, RunError> {
    udp::connected(target)
        .map_err(|e| RunError::Unreachable(format!("cannot send to {target}: {}", reason(&e))))
}
