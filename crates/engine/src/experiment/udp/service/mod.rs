//! The datagram service: takes datagrams, works on each, and accounts for all of them.
//!
//! One thread takes datagrams, so that the socket's receive buffer is the queue. With work it takes
//! one at a time, and the kernel drops and counts a datagram that finds the buffer full. Another
//! thread has the control connection, over TCP on the same port.
//!
//! It is a station with one server and a finite queue, but not quite M/D/1/K where arrivals are
//! Poisson and work is fixed. The kernel moves queued datagrams into an inner queue when the reader
//! has emptied that. While some of these are left, the room of those taken is given back only in
//! lumps. A lump is a quarter of the buffer (udp_rmem_release in the kernel's net/ipv4/udp.c). So a
//! buffer that holds N from empty takes between 3N/4 and N, and the one in work besides.
//!
//! Answers go only to the address that the running session's control connection comes from. The
//! datagram has to name that session, a number that its client drew at random. So the service
//! cannot be used to flood others.

mod data_thread;
#[cfg(test)]
mod namespace_tests;
mod session;
#[cfg(test)]
mod tests;

use crate::control::{IDLE_NS, Service, ServiceClients};
use crate::error::RunError;
use crate::experiment::udp::wire::{
    Hello, LINE_MAX, SERVICE, UdpReply, UdpRequest, UdpSessionSpec,
};
use crate::port;
use crate::sys::datagrams::DatagramSocket;
use crate::sys::epoll::EventFd;
use crate::sys::{clock, thread as sys_thread};
use crate::threads::{self, StoppableThread};
use data_thread::{DataCommand, DataThread, ThreadLink};
use knee_load::experiment::udp::{ServiceFacts, ServiceMode};
use knee_load::law::Law;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::{fmt, io};

/// Configuration of the datagram service.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpServerSpec {
    /// Address of datagrams (UDP) and control connections (TCP); port 0 picks one that is free for
    /// both.
    pub listen: SocketAddr,
    /// What the service does with a datagram.
    pub mode: ServiceMode,
    /// Work per datagram: time for which the processor is kept busy.
    pub work: Law,
    /// Receive buffer as given to setsockopt(2); `None`: net.core.rmem_default.
    pub rcvbuf: Option<u32>,
    /// Processor of the thread of datagrams; `None`: any.
    pub cpu: Option<u32>,
    /// Token that clients need; empty: none, which is permitted only on a loopback address.
    pub token: String,
    /// Seed of the work's lengths.
    pub seed: u64,
    /// Length of the intervals of [`UdpServerStats`].
    pub interval: Nanos,
}

impl Default for UdpServerSpec {
    fn default() -> UdpServerSpec {
        UdpServerSpec {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7007)),
            mode: ServiceMode::Sink,
            work: Law::ZERO,
            rcvbuf: None,
            cpu: None,
            token: String::new(),
            seed: 1,
            interval: Nanos::from_secs(10),
        }
    }
}

/// Intervals kept. Later events count in the last one.
const INTERVALS_MAX: usize = 100_000;

/// Counts of a datagram service from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct UdpServerStats {
    /// From start to end, in seconds.
    pub elapsed_s: f64,
    /// Sessions that were begun.
    pub sessions: u64,
    /// Of them, those whose client vanished before it had its record.
    pub sessions_lost: u64,
    /// Datagrams taken that were of the running session.
    pub received: u64,
    /// Other datagrams, by reason: `not_of_this_run`, `malformed`.
    pub discarded: BTreeMap<String, u64>,
    /// Datagrams that the kernel dropped at the service's socket (SO_MEMINFO).
    pub drops: u64,
    /// Datagrams sent back.
    pub replies: u64,
    /// Length of the intervals, in seconds.
    pub interval_s: f64,
    /// Counts of each interval since the start.
    pub intervals: Vec<UdpServerInterval>,
}

/// Counts of one interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UdpServerInterval {
    /// Datagrams of the running session.
    pub received: u64,
    /// Other datagrams.
    pub discarded: u64,
    /// Drops at the socket, counted when they were noticed.
    pub dropped: u64,
}

impl UdpServerStats {
    /// The interval of the time `at`.
    fn interval(&mut self, at: Nanos, length: Nanos) -> &mut UdpServerInterval {
        let index = ((at.0 / length.0.max(1)) as usize).min(INTERVALS_MAX - 1);
        if index >= self.intervals.len() {
            self.intervals.resize(index + 1, UdpServerInterval::default());
        }
        &mut self.intervals[index]
    }
}

impl fmt::Display for UdpServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "received {} datagrams of {} sessions in {:.1} s",
            self.received, self.sessions, self.elapsed_s
        )?;
        if self.sessions_lost > 0 {
            write!(f, " ({} lost their client)", self.sessions_lost)?;
        }
        writeln!(f)?;
        writeln!(f, "dropped  {} at the socket", self.drops)?;
        if self.replies > 0 {
            writeln!(f, "replies  {}", self.replies)?;
        }
        if !self.discarded.is_empty() {
            let list = self.discarded.iter().map(|(why, n)| format!("{why} {n}"));
            writeln!(f, "discarded  {}", list.collect::<Vec<_>>().join(", "))?;
        }
        Ok(())
    }
}

/// A running service; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct UdpServer {
    address: SocketAddr,
    control: StoppableThread<()>,
    data: StoppableThread<UdpServerStats>,
}

impl UdpServer {
    /// Listens and serves in two threads of its own.
    ///
    /// # Errors
    /// [`RunError::NotPermitted`]: no token for an address that others reach. Or the address is in
    /// use, not permitted or not this machine's, or a processor does not exist.
    pub fn start(spec: UdpServerSpec) -> Result<UdpServer, RunError> {
        check(&spec)?;
        let (listener, socket) = port::bind(spec.listen, DatagramSocket::bind)?;
        let cannot = |e: io::Error| RunError::NotPermitted(format!("cannot serve datagrams: {e}"));
        if let Some(bytes) = spec.rcvbuf {
            socket.set_receive_buffer(bytes).map_err(cannot)?;
        }
        let address = socket.local_address().map_err(cannot)?;
        let limit = socket.memory().map_err(cannot)?.limit;
        let mut facts = data_thread::facts(spec.mode, spec.work, limit);
        facts.cpus = spec.cpu.map_or(facts.cpus, |cpu| vec![cpu]);
        facts.may_be_realtime = sys_thread::may_be_realtime();
        let data_wake = Arc::new(EventFd::new().map_err(cannot)?);
        let control_wake = Arc::new(EventFd::new().map_err(cannot)?);
        let hurry = Arc::<AtomicBool>::default();
        let (commands, commanded) = mpsc::channel();
        let (replies, replied) = mpsc::channel();
        let link = ThreadLink {
            commands: commanded,
            replies,
            wake: data_wake.clone(),
            control: control_wake.clone(),
            hurry: hurry.clone(),
        };
        let identity = (SERVICE, spec.token.clone(), facts);
        let listen = (listener, control_wake.clone());
        let clients = ServiceClients::new(identity, listen, LINE_MAX).map_err(cannot)?;
        let mut service = UdpService {
            clients,
            commands,
            replies: replied,
            data: data_wake.clone(),
            hurry,
            stage: SessionStage::Idle,
            serial: 0,
            alive_ns: 0,
        };
        let data = DataThread::new(spec, socket, link).map_err(cannot)?;
        let data = move |stop: &Arc<_>| data.run(stop);
        let data = StoppableThread::start("serve-udp", Some(data_wake), data);
        let data = data.map_err(|e| threads::refused(&e))?;
        let control = move |stop: &Arc<_>| service.serve(stop);
        let control = StoppableThread::start("serve-udp-tcp", Some(control_wake), control);
        Ok(UdpServer { address, control: control.map_err(|e| threads::refused(&e))?, data })
    }

    /// Address that it listens on, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it, ending a session that runs, and returns its counts.
    pub fn stop(self) -> UdpServerStats {
        self.control.stop();
        self.data.stop()
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

/// Interval of the signs of life to the client of a running session.
const ALIVE_NS: u64 = 1_000_000_000;

/// State of the session of the client that holds the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SessionStage {
    /// No session.
    Idle,
    /// Between begin and ready.
    Preparing,
    Ready,
    /// Between start and end.
    Running,
    /// Between end and record.
    Draining,
}

/// The state of the control thread.
struct UdpService {
    clients: ServiceClients<ServiceFacts>,
    commands: mpsc::Sender<DataCommand>,
    replies: mpsc::Receiver<(u64, UdpReply)>,
    /// Wakes the thread of datagrams.
    data: Arc<EventFd>,
    /// Makes that thread leave its work.
    hurry: Arc<AtomicBool>,
    stage: SessionStage,
    /// Number of the session begun last.
    serial: u64,
    alive_ns: u64,
}

impl Service for UdpService {
    type Request = UdpRequest;
    type Facts = ServiceFacts;

    fn clients(&mut self) -> &mut ServiceClients<ServiceFacts> {
        &mut self.clients
    }

    fn hello(request: UdpRequest) -> Result<Hello, UdpRequest> {
        match request {
            UdpRequest::Hello(hello) => Ok(hello),
            other => Err(other),
        }
    }

    fn answer(&mut self, id: u64, request: UdpRequest) -> Result<(), String> {
        match (request, self.stage) {
            (UdpRequest::Ping { n }, _) => {
                let at_ns = clock::monotonic_ns();
                self.clients.send_to_holder(&UdpReply::Pong { n, at_ns });
            }
            (UdpRequest::Begin(begin), SessionStage::Idle) => self.begin(id, begin)?,
            (UdpRequest::Start { origin_ns }, SessionStage::Ready) => {
                self.stage = SessionStage::Running;
                self.command(DataCommand::Start(origin_ns));
            }
            (UdpRequest::End { sent }, SessionStage::Running) => {
                self.stage = SessionStage::Draining;
                self.command(DataCommand::End(sent));
            }
            _ => return Err("this is not the time for that".to_owned()),
        }
        Ok(())
    }

    fn holder_patience_ns(&self) -> u64 {
        match self.stage {
            SessionStage::Idle => IDLE_NS,
            _ => u64::MAX,
        }
    }

    fn abandon(&mut self) {
        if self.stage != SessionStage::Idle {
            self.stage = SessionStage::Idle;
            self.hurry.store(true, Ordering::Relaxed);
            self.command(DataCommand::Abandon);
        }
    }

    fn advance(&mut self) {
        self.pass_on_replies();
        let now_ns = clock::monotonic_ns();
        if self.stage != SessionStage::Idle && now_ns.saturating_sub(self.alive_ns) > ALIVE_NS {
            self.alive_ns = now_ns;
            self.clients.send_to_holder(&UdpReply::Alive);
        }
    }
}

impl UdpService {
    fn command(&self, command: DataCommand) {
        // The thread of datagrams is gone only where the service ends.
        let _ = self.commands.send(command);
        self.data.notify();
    }

    fn begin(&mut self, id: u64, begin: UdpSessionSpec) -> Result<(), String> {
        begin.check()?;
        if let Some(connection) = self.clients.get(id) {
            let peer = connection.peer;
            self.stage = SessionStage::Preparing;
            self.serial += 1;
            self.command(DataCommand::Begin(self.serial, begin.into(), peer));
        }
        Ok(())
    }

    /// Passes on replies of the thread of datagrams. Those for a client that is gone are dropped.
    fn pass_on_replies(&mut self) {
        while let Ok((serial, reply)) = self.replies.try_recv() {
            if serial != self.serial {
                continue;
            }
            self.stage = match (&reply, self.stage) {
                (UdpReply::Ready { .. }, SessionStage::Preparing) => SessionStage::Ready,
                (UdpReply::Refused { .. }, SessionStage::Preparing) => SessionStage::Idle,
                (UdpReply::Started, SessionStage::Running) => SessionStage::Running,
                (UdpReply::Record(_), SessionStage::Draining) => SessionStage::Idle,
                _ => continue,
            };
            self.clients.send_to_holder(&reply);
        }
    }
}
