//! Senders on threads of this process.

use super::intervals::Intervals;
use super::sender::{Done, Sender};
use super::term::Term;
use super::{SendPlan, reason};
use crate::error::RunError;
use crate::run::STARTS_MAX;
use crate::sys::clock::MonotonicClock;
use knee_core::experiment::udp::spec::ClientsAs;
use knee_core::spec::Share;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;

/// What a sender tells.
enum Told {
    /// Sender, interval, datagrams sent in it.
    Passed(usize, u64, u64),
    /// This sender has ended.
    Ended(usize),
}

/// Runs a thread for each sender and returns what each brought back; `tell` hears of the intervals
/// on this thread, all but those that only the sum of all can tell.
pub(super) fn run(
    plan: &SendPlan,
    stop: &AtomicBool,
    tell: &mut dyn FnMut(u64, u64),
) -> Result<(Vec<Done>, Intervals), RunError> {
    let spec = &plan.spec;
    let of = match spec.carried_as {
        ClientsAs::Multiplexed => spec.engine.workers.clamp(1, spec.clients.max(1)),
        ClientsAs::Threads | ClientsAs::Processes => spec.clients.max(1),
    };
    let sockets: Vec<UdpSocket> = (0..of)
        .map(|_| connect(plan.target))
        .collect::<Result<_, _>>()?;
    let failed = AtomicBool::new(false);
    let term = term(plan, stop, &failed);
    let mut intervals = Intervals::new(of as usize);
    let (told, heard) = mpsc::channel();
    let done: Result<Vec<Done>, String> = thread::scope(|scope| {
        let start = |(index, socket): (usize, UdpSocket)| {
            let told = told.clone();
            let share = Share {
                index: index as u32,
                of,
            };
            thread::Builder::new().spawn_scoped(scope, move || {
                // The receiver outlives the senders; where it is gone its thread has panicked.
                let mut emit = |interval, sent| {
                    let _ = told.send(Told::Passed(index, interval, sent));
                };
                let done = send_share(plan, term, share, socket, &mut emit);
                if done.is_err() {
                    term.failed.store(true, Ordering::Relaxed);
                }
                let _ = told.send(Told::Ended(index));
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
                Told::Passed(sender, index, sent) => intervals.passed(sender, index, sent, tell),
                Told::Ended(sender) => intervals.ended(sender, tell),
            }
        }
        let done = threads.into_iter().map(|thread| match thread.join() {
            Ok(done) => done,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        let done = done.collect::<Result<Vec<Done>, String>>();
        refused.map_or(done, Err)
    });
    Ok((done.map_err(RunError::NotPermitted)?, intervals))
}

/// When the plan's senders may send.
pub(super) fn term<'a>(plan: &SendPlan, stop: &'a AtomicBool, failed: &'a AtomicBool) -> Term<'a> {
    Term {
        clock: MonotonicClock {
            origin: plan.origin,
        },
        end: plan.spec.duration,
        stop,
        failed,
    }
}

/// Sends one share, on this thread.
pub(super) fn send_share(
    plan: &SendPlan,
    term: Term<'_>,
    share: Share,
    socket: UdpSocket,
    emit: &mut dyn FnMut(u64, u64),
) -> Result<Done, String> {
    let starts_max = STARTS_MAX / share.of as usize;
    let sender = Sender::new(&plan.spec, plan.session, share, term, socket, starts_max)?;
    let done = sender.run(emit);
    done.map_err(|e| format!("a sender could not wait: {e}"))
}

/// A socket connected to `target`, so that the network's answers come back to it (udp(7)).
///
/// # Errors
/// There is no way there, or no descriptor left.
pub(super) fn connect(target: SocketAddr) -> Result<UdpSocket, RunError> {
    let any: SocketAddr = match target {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let connected = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(target)?;
        Ok(socket)
    });
    connected.map_err(|e: io::Error| {
        RunError::Unreachable(format!("cannot send to {target}: {}", reason(&e)))
    })
}
