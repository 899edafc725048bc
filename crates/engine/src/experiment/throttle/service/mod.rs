//! The quote of the day service, RFC 865: a short text to whoever connects or sends a datagram.
//!
//! What a datagram says of its sender can be forged, so a service that answers each is a means to
//! send traffic to others. Beyond loopback this one answers only those it was told of.

mod quotes;
mod server;

pub use quotes::{QUOTE_MAX, of_the_day, parse_quote};

use crate::sys::eventfd::EventFd;
use crate::threads;
use serde::Serialize;
use server::Server;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread::{self, JoinHandle};

/// What the service is asked to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QotdSpec {
    /// Where it listens, with UDP and TCP alike; port 0 picks one that is free for both.
    pub listen: SocketAddr,
    /// What it says: see [`parse_quote`].
    pub quote: String,
    /// Whose datagrams are answered where it does not listen on loopback.
    pub allow: Vec<IpAddr>,
}

impl Default for QotdSpec {
    fn default() -> QotdSpec {
        QotdSpec {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 1717)),
            quote: of_the_day(),
            allow: Vec::new(),
        }
    }
}

/// What the service has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct QotdStats {
    /// Datagrams received.
    pub datagrams: u64,
    /// Of them, those answered.
    pub answered: u64,
    /// Of them, those not answered on purpose: the sender is not one of those allowed, or its port
    /// is below 1024 or the service's own, where an answer might be answered again, for ever.
    pub refused: u64,
    /// Connections, each of which was sent the quote.
    pub connections: u64,
}

/// A running service; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct QotdServer {
    address: SocketAddr,
    wake: EventFd,
    thread: Option<JoinHandle<QotdStats>>,
}

impl QotdServer {
    /// Listens and begins to serve in a thread of its own.
    ///
    /// # Errors
    /// The address is in use, not permitted (ports below 1024 need a right) or not this machine's.
    pub fn start(spec: QotdSpec) -> io::Result<QotdServer> {
        let wake = EventFd::new()?;
        let server = Server::bind(spec, &wake)?;
        let address = server.address()?;
        let thread = thread::Builder::new()
            .name("serve-qotd".to_owned())
            .spawn(move || server.run())
            .map_err(|e| threads::error(&e))?;
        Ok(QotdServer {
            address,
            wake,
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that was picked where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops it and returns what it did.
    pub fn stop(mut self) -> QotdStats {
        match self.join() {
            Some(Ok(stats)) => stats,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => QotdStats::default(),
        }
    }

    fn join(&mut self) -> Option<thread::Result<QotdStats>> {
        let thread = self.thread.take()?;
        self.wake.notify();
        Some(thread.join())
    }
}

impl Drop for QotdServer {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

#[cfg(test)]
mod tests;
