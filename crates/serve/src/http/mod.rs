//! The reference HTTP server, HTTP/1.1, HTTP/2 and HTTP/3, in clear or over TLS: cheap per request, and
//! exact in what it promises.
//!
//! One thread, edge-triggered epoll, one read and one write per request, no allocation between.
//! With workers it is a station of known queueing behaviour: see [`Station`].
//!
//! `http1`, `http2` and `http3` read requests and write responses. What a whole request goes through
//! between the two is `service`: its fault, the application, the queue or the station, its line in
//! the log.
//!
//! Limits: output that a client does not read (`HELD_BACK_MAX`, beyond which nothing more is read of
//! it; `MESSAGES_UNREAD_MAX`, beyond which its stream is reset), connections of HTTP/3
//! (`CONNECTIONS_MAX`, beyond which further ones are refused), answers of `knee.Echo/Tell` (`TOLD_MAX`,
//! `TOLD_BYTES_MAX`, beyond which the status is RESOURCE_EXHAUSTED).

mod app_request;
mod batch;
mod connection;
mod context;
mod drive;
mod fault;
mod grpc;
mod http1;
mod http2;
mod http3;
mod live_stream;
mod log;
mod queue;
pub mod request;
mod response;
mod secure;
mod server;
mod service;
mod shop;
mod station;
mod stats;
#[cfg(test)]
mod tests;
mod wire;

pub use batch::{StepTime, StreamSpec, parse_stream};
pub use fault::{Fault, parse_fault};
pub use grpc::{ECHO_PROTO, Reflect};
use knee_engine::sys::epoll::EventFd;
use knee_engine::sys::socket::Address;
use knee_engine::sys::thread::raise_open_files;
use knee_engine::threads::{self, RunningServer, StoppableThread};
use knee_load::law::Law;
use knee_load::spec::{ParseError, parse_rate};
use knee_load::time::Nanos;
pub use log::{LOG_MAX, LogEntry, RequestLog, STREAM_LOG_MAX, SentMessage, StreamLog};
pub use queue::{QueueOrder, QueueSpec, parse_queue_order};
pub use secure::{Identity, IdentityError, ServerTls};
use server::HttpServerLoop;
pub use station::{CacheSpec, Station, Visit, parse_cache};
pub use stats::{Http2Stats, HttpServerStats, StationStats, TimeQuantiles, TlsStats};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

/// A running HTTP server; it ends when it is stopped or dropped.
pub type HttpServer = RunningServer<Address, HttpServerStats>;

/// Listens and serves in its own thread. A Unix path that a dead server left behind is
/// taken over.
///
/// # Errors
/// The address is in use, not permitted or not this machine's; out of descriptors or threads.
pub fn start(spec: HttpServerSpec) -> io::Result<HttpServer> {
    // A descriptor per connection; if it may not be raised, the present limit remains.
    raise_open_files();
    let wake = Arc::new(EventFd::new()?);
    let server = HttpServerLoop::bind(&spec, &wake)?;
    let address = server.address()?;
    let thread = StoppableThread::start("serve-http", Some(wake), |_| server.run());
    Ok(HttpServer::new(address, thread.map_err(|e| threads::error(&e))?))
}

/// Configuration of the reference HTTP server.
#[derive(Clone, Debug)]
pub struct HttpServerSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: Address,
    /// How connections are secured; `None`: not at all.
    pub tls: Option<ServerTls>,
    /// Whether it also speaks HTTP/3, on the UDP port of the same number; only with `tls`.
    pub http3: bool,
    /// Most streams of a connection at once, at least 1; HTTP/1.1 has one.
    pub streams_max: u32,
    /// The application that answers; `None`: every request has the same response.
    pub app: Option<App>,
    /// What answers questions to reflection, where requests are calls of the gRPC service
    /// `knee.Echo`; `None`: they are plain requests.
    pub reflect: Option<Reflect>,
    /// Each response is a stream of messages; `None`: it is one body.
    pub stream: Option<StreamSpec>,
    /// Messages that are logged with their times, from the first; 0: none. Each takes 32 bytes.
    pub stream_log_max: usize,
    /// Bytes of each response's body, where no application answers.
    pub body_size: u32,
    /// Workers with one queue, at least 1; `None`: every request is served at once.
    pub workers: Option<u32>,
    /// Management of their queue. Without `workers` it is not used.
    pub queue: QueueSpec,
    /// Service time of a request. Without `workers` it is not used.
    pub service: Law,
    /// When connections are accepted.
    pub accept: AcceptPolicy,
    /// Connections that the kernel keeps until they are accepted (listen(2)); the kernel's limit is
    /// net.core.somaxconn.
    pub backlog: u32,
    /// Deliberate faults.
    pub faults: Vec<Fault>,
    /// Seeds service times and faults.
    pub seed: u64,
    /// Arrival stamps of requests that are kept, from the first; 0: none. Each takes 8 bytes.
    pub arrivals_max: usize,
    /// Requests that are logged with their times, from the first; 0: none. Each takes 64 bytes.
    pub log_max: usize,
}

/// An application that answers requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum App {
    /// A login, a catalogue and carts.
    Shop,
}

/// When connections are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AcceptPolicy {
    /// At once.
    #[default]
    Eager,
    /// As a worker becomes free, it accepts one, serves it until it is closed, and accepts the
    /// next. So the kernel's accept queue is the queue. Without `workers` there is one. A
    /// connection takes a worker up from the first byte of its first request on. Until then it is
    /// set aside and the next accepted.
    PerWorker,
}

/// Default of the most streams of an HTTP/2 connection.
pub const STREAMS_MAX: u32 = 128;

/// Most arrival stamps that `--arrivals` keeps: 40 MB.
pub const ARRIVALS_MAX: usize = 5_000_000;

impl Default for HttpServerSpec {
    fn default() -> HttpServerSpec {
        HttpServerSpec {
            listen: Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 8080))),
            tls: None,
            http3: false,
            streams_max: STREAMS_MAX,
            app: None,
            reflect: None,
            stream: None,
            stream_log_max: 0,
            body_size: 1294,
            workers: None,
            queue: QueueSpec::default(),
            service: Law::ZERO,
            accept: AcceptPolicy::Eager,
            backlog: 4096,
            faults: Vec::new(),
            seed: 1,
            arrivals_max: 0,
            log_max: 0,
        }
    }
}

impl HttpServerSpec {
    /// Limit of connections that occupy a worker at once.
    fn occupied_max(&self) -> Option<usize> {
        match self.accept {
            AcceptPolicy::Eager => None,
            AcceptPolicy::PerWorker => Some(self.workers.unwrap_or(1).max(1) as usize),
        }
    }
}

/// `127.0.0.1:8080`, `[::1]:0`, `unix:/run/knee.sock`.
///
/// # Errors
/// Anything else; names are not resolved.
pub fn parse_listen(text: &str) -> Result<Address, ParseError> {
    if let Some(path) = text.strip_prefix("unix:") {
        if path.is_empty() {
            return Err(ParseError("unix: needs a path behind it".to_owned()));
        }
        return Ok(Address::Unix(path.into()));
    }
    text.parse().map(Address::Tcp).map_err(|_| {
        ParseError(format!(
            "{text:?} is no address to listen at: give ADDR:PORT such as 127.0.0.1:8080, \
             or unix:PATH"
        ))
    })
}

/// Service time of a single worker with this capacity: `130` or `130/s` is `fixed(1/130 s)`, to the
/// nearest nanosecond.
///
/// # Errors
/// Not a rate.
pub fn parse_capacity(text: &str) -> Result<Law, ParseError> {
    let rate = parse_rate(text)?;
    let (operations, period) = (rate.operations(), rate.period());
    Ok(Law::Fixed(Nanos(period.0.saturating_add(operations / 2) / operations)))
}

#[cfg(test)]
mod spec_tests {
    use super::*;
    use knee_load::spec::parse_law;

    #[test]
    fn listens_at_an_address_or_a_path() {
        for good in ["127.0.0.1:8080", "[::1]:0", "unix:/tmp/a.sock"] {
            assert_eq!(parse_listen(good).expect(good).to_string(), good);
        }
        for bad in ["", "8080", "localhost:8080", "127.0.0.1", "unix:"] {
            assert!(parse_listen(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_capacity_is_a_fixed_service_time() {
        let law = parse_capacity("130").unwrap();
        assert_eq!(law, Law::Fixed(Nanos(7_692_308)));
        assert_eq!(parse_law("fixed(1/130 s)"), Ok(law));
        assert!(parse_capacity("0").is_err());
    }
}
