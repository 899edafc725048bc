//! The reference WebSocket server: an echo after a known service time, a fan-out to all clients, or
//! messages at a rate.
//!
//! One thread over epoll. It shares its frames with the client of a load.

mod server;

use crate::sys::eventfd::EventFd;
use crate::sys::socket::Address;
use crate::sys::thread::raise_open_files;
use crate::threads::{self, StoppableThread};
use knee_load::law::Law;
use knee_load::spec::Rate;
use serde::Serialize;
use server::WsServerLoop;
use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::sync::Arc;

/// Configuration of the reference WebSocket server.
#[derive(Clone, Debug)]
pub struct WsServerSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: Address,
    /// Workers with one FIFO queue, at least 1; `None`: every message is echoed at once.
    pub workers: Option<u32>,
    /// How long a worker serves a message. Without `workers` it is not used.
    pub service: Law,
    /// Whether a message goes to all clients, and not only to the one that sent it.
    pub fans_out: bool,
    /// Rate of messages to all clients of the server's own.
    pub publish: Option<Rate>,
    /// Seeds service times.
    pub seed: u64,
}

/// Counts of a server over its run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WsServerStats {
    /// Connections accepted.
    pub connections: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// Connections that became a WebSocket.
    pub upgraded: u64,
    /// Messages received.
    pub received: u64,
    /// Messages sent.
    pub sent: u64,
    /// Connections dropped, as their client did not read.
    pub dropped: u64,
    /// Close codes of clients; 1006 without a close frame.
    pub closes: BTreeMap<u16, u64>,
    /// Rules that clients broke.
    pub violations: BTreeMap<String, u64>,
}

impl fmt::Display for WsServerStats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "connections {} ({} at once at most, {} upgraded, {} dropped)",
            self.connections, self.connections_max, self.upgraded, self.dropped
        )?;
        writeln!(f, "messages    {} received, {} sent", self.received, self.sent)?;
        for (code, count) in &self.closes {
            writeln!(f, "closed      {code}: {count}")?;
        }
        for (rule, count) in &self.violations {
            writeln!(f, "violated    {rule}: {count}")?;
        }
        Ok(())
    }
}

/// A running server; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct WsServer {
    address: Address,
    thread: StoppableThread<WsServerStats>,
}

impl WsServer {
    /// Listens and serves in a thread of its own.
    ///
    /// # Errors
    /// The address is in use, not permitted or not this machine's; out of descriptors or threads.
    pub fn start(spec: WsServerSpec) -> io::Result<WsServer> {
        // A descriptor per connection; where it may not be raised, the limit in force must do.
        raise_open_files();
        let wake = Arc::new(EventFd::new()?);
        let server = WsServerLoop::bind(&spec, &wake)?;
        let address = server.address()?;
        let thread = StoppableThread::start("serve-ws", Some(wake), |_| server.run());
        Ok(WsServer { address, thread: thread.map_err(|e| threads::error(&e))? })
    }

    /// Address that it listens on, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Stops it, closing all connections, and returns its counts.
    pub fn stop(self) -> WsServerStats {
        self.thread.stop()
    }
}
