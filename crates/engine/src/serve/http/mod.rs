//! The reference HTTP server, HTTP/1.1 and HTTP/2, in clear or over TLS: cheap per request, and
//! exact in what it promises.
//!
//! One thread, edge-triggered epoll, one read and one write per request, no allocation between.
//! With workers it is a station of known queueing behaviour: see [`Station`].

mod asked;
mod batch;
mod cache;
mod connection;
mod context;
mod fault;
mod grpc;
mod http1;
mod http2;
mod listen;
mod live_stream;
mod log;
mod queue;
pub mod request;
mod response;
mod secure;
mod server;
mod shop;
mod spec;
mod station;
mod stats;
mod stream_log;
mod wire;

pub use batch::{StepTime, StreamSpec, parse_stream};
pub use cache::{CacheSpec, parse_cache};
pub use fault::{Fault, parse_fault};
pub use grpc::{ECHO_PROTO, Reflect};
pub use log::{LOG_MAX, LogEntry, RequestLog};
pub use queue::{QueueOrder, QueueSpec, parse_queue_order};
pub use secure::{Identity, IdentityError, ServerTls};
pub use spec::{
    ARRIVALS_MAX, AcceptPolicy, App, HttpServerSpec, STREAMS_MAX, parse_capacity, parse_listen,
};
pub use station::{Station, Visit};
pub use stats::{Http2Stats, HttpServerStats, StationStats, TimeQuantiles, TlsStats};
pub use stream_log::{STREAM_LOG_MAX, SentMessage, StreamLog};

use crate::sys::eventfd::EventFd;
use crate::sys::socket::Address;
use crate::sys::thread::raise_open_files;
use crate::threads::{self, StoppableThread};
use server::HttpServerLoop;
use std::io;
use std::sync::Arc;

/// A running server; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct HttpServer {
    address: Address,
    thread: StoppableThread<HttpServerStats>,
}

impl HttpServer {
    /// Listens and serves in a thread of its own. A Unix path that a dead server left behind is
    /// taken over.
    ///
    /// # Errors
    /// The address is in use, not permitted or not this machine's; out of descriptors or threads.
    pub fn start(spec: HttpServerSpec) -> io::Result<HttpServer> {
        // A descriptor per connection; where it may not be raised, the limit in force must do.
        raise_open_files();
        let wake = Arc::new(EventFd::new()?);
        let server = HttpServerLoop::bind(&spec, &wake)?;
        let address = server.address()?;
        let thread = StoppableThread::start("serve-http", Some(wake), |_| server.run());
        Ok(HttpServer { address, thread: thread.map_err(|e| threads::error(&e))? })
    }

    /// Address that it listens on, with the port that the kernel picked where 0 was asked for.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Stops it, closing all connections, and returns its counts.
    pub fn stop(self) -> HttpServerStats {
        self.thread.stop()
    }
}

#[cfg(test)]
mod tests;
