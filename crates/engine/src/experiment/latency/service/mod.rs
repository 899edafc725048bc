//! The latency service: the other end of [`crate::experiment::latency`], on one port.
//!
//! One thread has the control connections and answers pings and UDP probes, so that these do not
//! wait behind payload in this process. Others carry the flows. A connection's first line says what
//! it is: a client's control connection, or a flow of the session that it names.
//!
//! One client holds the service at a time; it is busy for others. Flows and probes have to come
//! from the client's address and to name the session, a number that its client drew at random. A
//! UDP probe is answered with the same number of bytes. So the service cannot be used to flood
//! others.

mod control;
mod session;

use crate::error::RunError;
use crate::kernel::host;
use crate::port;
use crate::sys::eventfd::EventFd;
use crate::threads::{self, StoppableThread};
use control::LatencyService;
use knee_load::experiment::latency::LatencyServiceFacts;
use knee_load::measure::Direction;
use knee_load::time::Nanos;
use serde::{Deserialize, Serialize};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::{fmt, io};

/// Configuration of the latency service.
#[derive(Clone, Debug, PartialEq)]
pub struct LatencyServerSpec {
    /// Address of control connections and flows (TCP) and probes (UDP); port 0 picks one that is
    /// free for both.
    pub listen: SocketAddr,
    /// Token that clients need; empty: none, which is permitted only on a loopback address.
    pub token: String,
    /// The longest session that a client may ask for.
    pub session_max: Nanos,
    /// Bytes of its flows after which a session is ended; `None`: no limit.
    pub bytes_max: Option<u64>,
    /// Threads that carry flows, at least 1.
    pub workers: u32,
    /// Deliberate faults in every session.
    pub faults: Vec<FlowFault>,
}

impl Default for LatencyServerSpec {
    /// On a loopback port of the kernel's choice, with one thread per processor.
    fn default() -> LatencyServerSpec {
        LatencyServerSpec {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            token: String::new(),
            session_max: Nanos::from_secs(3_600),
            bytes_max: None,
            workers: crate::sys::thread::cpu_count(),
            faults: Vec::new(),
        }
    }
}

/// A deliberate fault of a flow, to test clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlowFault {
    /// Direction of the flow, as the client sees it.
    pub direction: Direction,
    /// Number of the flow in that direction, from 0.
    pub number: u32,
    /// Time since the session began.
    pub at: Nanos,
    /// Kind of the fault.
    pub kind: FlowFaultKind,
}

/// Kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFaultKind {
    /// The flow is reset.
    Reset,
    /// Nothing is sent or received over the flow for this time.
    Stall(Nanos),
}

/// Counts of a latency service from its start to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyServerStats {
    /// From start to end, in seconds.
    pub elapsed_s: f64,
    /// Sessions that were started.
    pub sessions: u64,
    /// Of them, those whose client vanished before it had its record.
    pub sessions_lost: u64,
    /// Flows that were carried.
    pub flows: u64,
    /// Payload bytes received over uploads.
    pub received_bytes: u64,
    /// Payload bytes that downloads' sockets took.
    pub sent_bytes: u64,
    /// Pings answered over TCP.
    pub pings: u64,
    /// Probes answered over UDP.
    pub probes: u64,
    /// Datagrams that were no probes of the running session.
    pub discarded: u64,
}

impl fmt::Display for LatencyServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gib = |bytes: u64| bytes as f64 / f64::from(1 << 30);
        write!(
            f,
            "carried {} flows of {} sessions in {:.1} s",
            self.flows, self.sessions, self.elapsed_s
        )?;
        if self.sessions_lost > 0 {
            write!(f, " ({} lost their client)", self.sessions_lost)?;
        }
        writeln!(f)?;
        writeln!(f, "received {:.3} GiB", gib(self.received_bytes))?;
        writeln!(f, "sent     {:.3} GiB", gib(self.sent_bytes))?;
        writeln!(f, "answered {} pings over TCP, {} probes over UDP", self.pings, self.probes)?;
        if self.discarded > 0 {
            writeln!(f, "discarded  {} datagrams", self.discarded)?;
        }
        Ok(())
    }
}

/// A running service; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct LatencyServer {
    address: SocketAddr,
    thread: StoppableThread<LatencyServerStats>,
}

impl LatencyServer {
    /// Listens and serves in threads of its own.
    ///
    /// # Errors
    /// [`RunError::NotPermitted`]: no token for an address that others reach; the address is in
    /// use, not permitted or not this machine's.
    pub fn start(spec: LatencyServerSpec) -> Result<LatencyServer, RunError> {
        port::check_token(spec.listen, &spec.token)?;
        let (listener, probes) = port::bind(spec.listen, UdpSocket::bind)?;
        let cannot = |e: io::Error| RunError::NotPermitted(format!("cannot serve flows: {e}"));
        let address = listener.local_addr().map_err(cannot)?;
        let wake = Arc::new(EventFd::new().map_err(cannot)?);
        let host = host::host();
        let facts = LatencyServiceFacts {
            congestion_control: host.congestion_control,
            kernel: host.kernel,
            cpus: host.cpus,
            ..LatencyServiceFacts::default()
        };
        let service =
            LatencyService::new(spec, facts, probes, (listener, wake.clone())).map_err(cannot)?;
        let run = |stop: &Arc<_>| service.run(stop);
        let thread = StoppableThread::start("serve-latency", Some(wake), run);
        Ok(LatencyServer { address, thread: thread.map_err(|e| threads::refused(&e))? })
    }

    /// Address that it listens on, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it, ending a session that runs, and returns its counts.
    pub fn stop(self) -> LatencyServerStats {
        self.thread.stop()
    }
}

#[cfg(test)]
mod tests;
