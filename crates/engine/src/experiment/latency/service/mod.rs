//! The latency service: the other end of [`crate::experiment::latency`], on one port.
//!
//! One thread has the control connections and answers pings and UDP probes, so that these do not
//! wait behind payload in this process; others carry the flows. A connection's first line says what
//! it is: a client's control connection, or a flow of the session that it names.
//!
//! One client has the service at a time; another is told that it is busy. Flows and probes have to
//! name the session, a number that its client drew at random, and to come from the client's
//! address; a UDP probe is answered with as many bytes as it has. So the service is no reflector
//! for others.

mod control;
mod session;
mod spec;
mod stats;

pub use spec::{FlowFault, FlowFaultKind, LatencyServerSpec};
pub use stats::LatencyServerStats;

use crate::error::RunError;
use crate::kernel::host;
use crate::port;
use crate::sys::eventfd::EventFd;
use crate::threads;
use control::Room;
use knee_core::experiment::latency::measure::LatencyServiceFacts;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A running service; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct LatencyServer {
    address: SocketAddr,
    wake: Arc<EventFd>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<LatencyServerStats>>,
}

impl LatencyServer {
    /// Listens and begins to serve in threads of its own.
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
        let stop = Arc::<AtomicBool>::default();
        let host = host::host();
        let facts = LatencyServiceFacts {
            congestion_control: host.congestion_control,
            kernel: host.kernel,
            cpus: host.cpus,
            ..LatencyServiceFacts::default()
        };
        let (ours, stopped) = (wake.clone(), stop.clone());
        let room = Room::new(spec, facts, listener, probes, ours).map_err(cannot)?;
        let thread = thread::Builder::new().name("serve-latency".to_owned());
        let thread = thread.spawn(move || room.run(&stopped));
        let thread = thread.map_err(|e| threads::refused(&e))?;
        Ok(LatencyServer {
            address,
            wake,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it, ending a session that runs, and returns what it did.
    pub fn stop(mut self) -> LatencyServerStats {
        match self.join() {
            Some(Ok(stats)) => stats,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => LatencyServerStats::default(),
        }
    }

    fn join(&mut self) -> Option<thread::Result<LatencyServerStats>> {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.notify();
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for LatencyServer {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

#[cfg(test)]
mod tests;
