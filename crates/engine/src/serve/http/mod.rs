//! The reference HTTP server, HTTP/1.1 and HTTP/2, in clear or over TLS: cheap per request, and
//! exact in what it promises.
//!
//! One thread, edge-triggered epoll, one read and one write per request, no allocation between.
//! With workers it is a station of known queueing behaviour: see [`Station`].

mod asked;
mod connection;
mod context;
mod fault;
mod http1;
mod http2;
mod listen;
mod log;
pub mod request;
mod response;
mod secure;
mod server;
mod shop;
mod spec;
mod station;
mod stats;
mod wire;

pub use fault::{Fault, parse_fault};
pub use log::{LOG_MAX, LogEntry, RequestLog};
pub use secure::{Identity, IdentityError, ServerTls};
pub use spec::{
    ARRIVALS_MAX, AcceptPolicy, App, HttpServerSpec, STREAMS_MAX, parse_capacity, parse_listen,
};
pub use station::{Station, Visit};
pub use stats::{Http2Stats, HttpServerStats, Quantiles, StationStats, TlsStats};

use crate::sys::eventfd::EventFd;
use crate::sys::socket::Address;
use crate::sys::thread::OpenFilesLimit;
use crate::threads;
use server::Server;
use std::io;
use std::thread::{self, JoinHandle};

/// A running server; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: Address,
    wake: EventFd,
    thread: Option<JoinHandle<HttpServerStats>>,
}

impl HttpServer {
    /// Listens and begins to serve in a thread of its own. A Unix path that a dead server left
    /// behind is taken over.
    ///
    /// # Errors
    /// The address is in use, not permitted or not this machine's; out of descriptors or threads.
    pub fn start(spec: HttpServerSpec) -> io::Result<HttpServer> {
        // A descriptor per connection; where it may not be raised, the limit in force must do.
        let _ = OpenFilesLimit::raise();
        let wake = EventFd::new()?;
        let server = Server::bind(&spec, &wake)?;
        let address = server.address()?;
        let thread = thread::Builder::new()
            .name("serve-http".to_owned())
            .spawn(move || server.run())
            .map_err(|e| threads::error(&e))?;
        Ok(HttpServer {
            address,
            wake,
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Stops it, closing all connections, and returns what it did.
    pub fn stop(mut self) -> HttpServerStats {
        match self.join() {
            Some(Ok(stats)) => stats,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => HttpServerStats::default(),
        }
    }

    fn join(&mut self) -> Option<thread::Result<HttpServerStats>> {
        let thread = self.thread.take()?;
        self.wake.notify();
        Some(thread.join())
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

#[cfg(test)]
mod tests;
