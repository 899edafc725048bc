//! The datagram service: takes datagrams, works on each, and accounts for all of them.
//!
//! One thread takes datagrams, so that the socket's receive buffer is the queue: with work it takes
//! one at a time, and a datagram that finds the buffer full is the kernel's to drop and to count.
//! Another thread has the control connection, over TCP on the same port.
//!
//! It is a station with one server and a finite queue, but not quite M/D/1/K where arrivals are
//! Poisson and work is fixed: while datagrams are left of those that were queued when the reader
//! last emptied the kernel's inner queue, the room of those taken is given back only once it makes
//! up a quarter of the buffer (udp_rmem_release in the kernel's net/ipv4/udp.c). So a buffer that
//! holds N from empty takes between 3N/4 and N, and the one in work besides.
//!
//! Nothing is ever sent to anyone but the address that the running session's control connection
//! comes from, and only where the datagram names that session, a number that its client drew at
//! random: what is no reflector for others.

mod buffer;
mod clocks;
mod control;
mod data;
mod session;
mod spec;
mod stats;

pub use spec::UdpServerSpec;
pub use stats::{UdpServerInterval, UdpServerStats};

use crate::control::clients::Clients;
use crate::error::RunError;
use crate::experiment::udp::wire;
use crate::port;
use crate::sys::datagrams::DatagramSocket;
use crate::sys::eventfd::EventFd;
use crate::sys::thread as sys_thread;
use crate::threads;
use control::ControlThread;
use data::{Command, DataThread, Link};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread::{self, JoinHandle};

/// A running service; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct UdpServer {
    address: SocketAddr,
    commands: mpsc::Sender<Command>,
    data_wake: Arc<EventFd>,
    control_wake: Arc<EventFd>,
    hurry: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    control: Option<JoinHandle<()>>,
    data: Option<JoinHandle<UdpServerStats>>,
}

impl UdpServer {
    /// Listens and begins to serve in two threads of its own.
    ///
    /// # Errors
    /// [`RunError::NotPermitted`]: no token for an address that others reach; the address is in
    /// use, not permitted or not this machine's; a processor that is not there.
    pub fn start(spec: UdpServerSpec) -> Result<UdpServer, RunError> {
        check(&spec)?;
        let (listener, socket) = port::bind(spec.listen, DatagramSocket::bind)?;
        let cannot = |e: io::Error| RunError::NotPermitted(format!("cannot serve datagrams: {e}"));
        if let Some(bytes) = spec.rcvbuf {
            socket.set_receive_buffer(bytes).map_err(cannot)?;
        }
        let address = socket.local_address().map_err(cannot)?;
        let limit = socket.memory().map_err(cannot)?.limit;
        let mut facts = data::facts(spec.mode, spec.work, limit);
        facts.cpus = spec.cpu.map_or(facts.cpus, |cpu| vec![cpu]);
        facts.may_be_realtime = sys_thread::may_be_realtime();
        let data_wake = Arc::new(EventFd::new().map_err(cannot)?);
        let control_wake = Arc::new(EventFd::new().map_err(cannot)?);
        let (hurry, stop) = (Arc::<AtomicBool>::default(), Arc::<AtomicBool>::default());
        let (commands, commanded) = mpsc::channel();
        let (replies, replied) = mpsc::channel();
        let link = Link {
            commands: commanded,
            replies,
            wake: data_wake.clone(),
            control: control_wake.clone(),
            hurry: hurry.clone(),
        };
        let clients =
            Clients::new(listener, control_wake.clone(), wire::LINE_MAX).map_err(cannot)?;
        let control = ControlThread {
            token: spec.token.clone(),
            facts,
            commands: commands.clone(),
            replies: replied,
            data: data_wake.clone(),
            hurry: hurry.clone(),
            stop: stop.clone(),
        };
        let data = DataThread::new(spec, socket, link).map_err(cannot)?;
        let mut server = UdpServer {
            address,
            commands,
            data_wake,
            control_wake,
            hurry,
            stop,
            control: None,
            data: None,
        };
        let spawn = |name: &str| thread::Builder::new().name(name.to_owned());
        let data = spawn("serve-udp").spawn(move || data.run());
        server.data = Some(data.map_err(|e| threads::refused(&e))?);
        let control = spawn("serve-udp-tcp").spawn(move || control.run(clients));
        server.control = Some(control.map_err(|e| threads::refused(&e))?);
        Ok(server)
    }

    /// Where it listens, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it, ending a session that runs, and returns what it did.
    pub fn stop(mut self) -> UdpServerStats {
        match self.join() {
            Some(Ok(stats)) => stats,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => UdpServerStats::default(),
        }
    }

    fn join(&mut self) -> Option<thread::Result<UdpServerStats>> {
        self.stop.store(true, Ordering::Relaxed);
        self.hurry.store(true, Ordering::Relaxed);
        let _ = self.commands.send(Command::Stop);
        self.data_wake.notify();
        self.control_wake.notify();
        let control = self.control.take().map(JoinHandle::join);
        let data = self.data.take().map(JoinHandle::join);
        match control {
            Some(Err(panic)) => Some(Err(panic)),
            _ => data,
        }
    }
}

impl Drop for UdpServer {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

fn check(spec: &UdpServerSpec) -> Result<(), RunError> {
    port::check_token(spec.listen, &spec.token)?;
    let permitted = sys_thread::affinity().unwrap_or_default();
    match spec.cpu {
        Some(cpu) if !permitted.contains(&cpu) => Err(RunError::NotPermitted(format!(
            "processor {cpu} is not one that this process may use: {permitted:?}"
        ))),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod namespace_tests;
#[cfg(test)]
mod tests;
