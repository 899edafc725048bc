//! The reference DNS server: a fixed zone behind a known service time, over UDP and TCP.
//!
//! One thread over epoll. It shares the reading of messages with the client of a load.

mod server;
mod zone;

use crate::error::RunError;
use crate::port;
use crate::sys::datagrams::DatagramSocket;
use crate::sys::eventfd::EventFd;
use crate::sys::thread::raise_open_files;
use crate::threads::{self, StoppableThread};
use knee_load::law::Law;
use knee_load::time::Nanos;
use serde::Serialize;
use server::DnsServerLoop;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::{fmt, iter};

/// Most arrival times that are kept: 40 MB.
pub const DNS_ARRIVALS_MAX: usize = 5_000_000;

/// Configuration of the reference DNS server.
#[derive(Clone, Debug)]
pub struct DnsServerSpec {
    /// Address of UDP and TCP; port 0 picks one that is free for both.
    pub listen: SocketAddr,
    /// Addresses of each kind that a name has, at least 1.
    pub records: u8,
    /// Workers with one FIFO queue, at least 1; `None`: every query is answered at once.
    pub workers: Option<u32>,
    /// How long a worker serves a query. Without `workers` it is not used.
    pub service: Law,
    /// Seeds service times.
    pub seed: u64,
    /// Arrival times kept.
    pub arrivals_max: usize,
}

/// Counts of a server over its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct DnsServerStats {
    /// Queries received over UDP.
    pub udp_queries: u64,
    /// Queries received over TCP.
    pub tcp_queries: u64,
    /// Answers by response code, sent or not.
    pub answers: BTreeMap<&'static str, u64>,
    /// Answers over UDP without their records, as these did not fit.
    pub truncated: u64,
    /// Answers that the kernel did not take, or whose connection was gone.
    pub unsent: u64,
    /// Messages that are no query: they have no answer.
    pub ignored: u64,
    /// Datagrams that the kernel dropped, as the socket's buffer was full.
    pub dropped: u64,
    /// TCP connections accepted.
    pub connections: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// When queries arrived since the start, as far as that was asked for. Over UDP it is the time
    /// at which the kernel received them.
    #[serde(skip)]
    pub arrivals: Vec<Nanos>,
}

impl DnsServerStats {
    /// Writes the arrival times in nanoseconds, one per line.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write_arrivals(&self, out: &mut dyn Write) -> io::Result<()> {
        self.arrivals.iter().try_for_each(|at| writeln!(out, "{}", at.0))
    }
}

impl fmt::Display for DnsServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (udp, tcp) = (self.udp_queries, self.tcp_queries);
        write!(f, "queries     {udp} over UDP, {tcp} over TCP")?;
        if tcp > 0 {
            let (connections, most) = (self.connections, self.connections_max);
            write!(f, "\nconnections {connections} ({most} at once at most)")?;
        }
        let codes = self.answers.iter().map(|(code, count)| (*code, *count));
        let answers = codes.chain(iter::once(("truncated", self.truncated)));
        let answers = answers.filter(|(_, count)| *count > 0);
        let answers: Vec<String> = answers.map(|(what, count)| format!("{what} {count}")).collect();
        if !answers.is_empty() {
            write!(f, "\nanswers     {}", answers.join(", "))?;
        }
        let lost = [("unsent", self.unsent), ("ignored", self.ignored), ("dropped", self.dropped)];
        for (what, count) in lost.into_iter().filter(|(_, count)| *count > 0) {
            write!(f, "\n{what:<12}{count}")?;
        }
        writeln!(f)
    }
}

/// A running server; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct DnsServer {
    address: SocketAddr,
    thread: StoppableThread<DnsServerStats>,
}

impl DnsServer {
    /// Listens and serves in a thread of its own.
    ///
    /// # Errors
    /// [`RunError::NotPermitted`]: the address is in use, not permitted or not this machine's; out
    /// of descriptors or threads.
    pub fn start(spec: DnsServerSpec) -> Result<DnsServer, RunError> {
        // A descriptor per connection; where it may not be raised, the limit in force must do.
        raise_open_files();
        let sockets = port::bind(spec.listen, DatagramSocket::bind)?;
        let cannot = |e: io::Error| RunError::NotPermitted(format!("cannot serve DNS: {e}"));
        let address = sockets.1.local_address().map_err(cannot)?;
        let wake = Arc::new(EventFd::new().map_err(cannot)?);
        let server = DnsServerLoop::new(&spec, sockets, &wake).map_err(cannot)?;
        let thread = StoppableThread::start("serve-dns", Some(wake), |_| server.run());
        Ok(DnsServer { address, thread: thread.map_err(|e| threads::refused(&e))? })
    }

    /// Address that it listens on, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it, closing all connections, and returns its counts.
    pub fn stop(self) -> DnsServerStats {
        self.thread.stop()
    }
}
