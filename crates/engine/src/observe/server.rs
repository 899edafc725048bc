//! `knee observe`: watches a port of this host for permitted clients.

use super::streams::StreamCapture;
use super::watch::{ArmedWatch, PortWatch, syn_source};
use super::wire::{
    ASK_MAX, BEGIN_WITHIN_NS, DURATION_MAX_NS, Hello, ObserverFacts, ObserverReply,
    ObserverRequest, SERVICE,
};
use crate::control::{Service, ServiceClients};
use crate::port;
use crate::sys::clock::monotonic_ns;
use crate::sys::epoll::EventFd;
use crate::threads::{self, StoppableThread};
use knee_load::measure::SynSource;
use knee_load::time::Nanos;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// Longest silence of a client for which nothing is watched.
const IDLE_NS: u64 = 600_000_000_000;

/// Times after which an inactive client loses the observer to another one.
#[derive(Clone, Copy, Debug)]
pub(super) struct HoldLimits {
    /// From hello to the first request.
    pub(super) first: Nanos,
    /// Since the last request, or since the end of the window being watched.
    pub(super) idle: Nanos,
}

const HOLD_LIMITS: HoldLimits =
    HoldLimits { first: Nanos::from_secs(5), idle: Nanos::from_secs(60) };

/// Counts of an observer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserveStats {
    /// Clients that were served, one after another.
    pub clients: u64,
    /// Windows that were watched to their end.
    pub windows: u64,
    /// Connections that were refused: busy, a wrong token, no request.
    pub refused: u64,
}

/// A running observer; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct ObserveServer {
    address: SocketAddr,
    source: SynSource,
    because: Option<String>,
    thread: StoppableThread<ObserveStats>,
}

impl ObserveServer {
    /// Listens at `listen` and watches `port` of this host for one client at a time. Neither the
    /// messages nor the token are encrypted.
    ///
    /// # Errors
    /// Beyond loopback without a token; the address is in use, not permitted or not of this host.
    pub fn start(
        listen: SocketAddr,
        port: u16,
        token: Option<String>,
    ) -> io::Result<ObserveServer> {
        ObserveServer::start_with(listen, port, token, HOLD_LIMITS)
    }

    pub(super) fn start_with(
        listen: SocketAddr,
        port: u16,
        token: Option<String>,
        limits: HoldLimits,
    ) -> io::Result<ObserveServer> {
        let token = token.unwrap_or_default();
        port::check_token(listen, &token)
            .map_err(|e| io::Error::new(ErrorKind::InvalidInput, e))?;
        let listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        let (source, because) = syn_source(port);
        let wake = Arc::new(EventFd::new()?);
        let identity = (SERVICE, token, ObserverFacts { port, source });
        let observer = Observer {
            port,
            limits,
            clients: ServiceClients::new(identity, (listener, wake.clone()), ASK_MAX)?,
            until_ns: 0,
            armed: None,
            watch: None,
            following: None,
            stats: ObserveStats::default(),
        };
        let run = |stop: &Arc<_>| observer.run(stop);
        let thread = StoppableThread::start("observe", Some(wake), run);
        Ok(ObserveServer {
            address,
            source,
            because,
            thread: thread.map_err(|e| threads::error(&e))?,
        })
    }

    /// Listening address, with the port that the kernel chose for 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What counts the SYNs, and why not a capture.
    pub fn source(&self) -> (SynSource, Option<&str>) {
        (self.source, self.because.as_deref())
    }

    /// Stops it and returns its counts.
    pub fn stop(self) -> ObserveStats {
        self.thread.stop()
    }
}

/// The clients, and what is watched for the one that holds the observer.
struct Observer {
    port: u16,
    limits: HoldLimits,
    clients: ServiceClients<ObserverFacts>,
    /// Time from which on another client may take over the observer.
    until_ns: u64,
    armed: Option<ArmedWatch>,
    watch: Option<PortWatch>,
    following: Option<StreamCapture>,
    stats: ObserveStats,
}

impl Service for Observer {
    type Request = ObserverRequest;
    type Facts = ObserverFacts;

    const NO_REQUEST: &'static str = "expected a request in a line of at most 4096 bytes";
    const NO_HELLO: &'static str = "expected hello as the first message";

    fn clients(&mut self) -> &mut ServiceClients<ObserverFacts> {
        &mut self.clients
    }

    fn hello(request: ObserverRequest) -> Result<Hello, ObserverRequest> {
        match request {
            ObserverRequest::Hello(hello) => Ok(hello),
            other => Err(other),
        }
    }

    fn answer(&mut self, _id: u64, request: ObserverRequest) -> Result<(), String> {
        let reply = self.reply(&request)?;
        self.clients.send_to_holder(&reply);
        Ok(())
    }

    fn holder_patience_ns(&self) -> u64 {
        self.watch.as_ref().map_or(IDLE_NS, |_| u64::MAX)
    }

    fn abandon(&mut self) {
        (self.armed, self.watch, self.following) = (None, None, None);
    }

    /// Admits a client, in place of an inactive one, or refuses it.
    fn greet(&mut self, id: u64, hello: &Hello, now_ns: u64) {
        let is_free = now_ns >= self.until_ns;
        if is_free && self.clients.admits(hello) && self.clients.dismiss_holder() {
            self.abandon();
            self.stats.refused += 1;
        }
        if self.clients.greet(id, hello) {
            self.until_ns = now_ns.saturating_add(self.limits.first.0);
            self.stats.clients += 1;
        } else {
            self.stats.refused += 1;
        }
    }

    fn on_dismissed(&mut self, count: u64) {
        self.stats.refused += count;
    }

    fn on_refused(&mut self, holds: bool) {
        self.stats.refused += 1;
        if holds {
            self.abandon();
        }
    }
}

impl Observer {
    fn run(mut self, stop: &AtomicBool) -> ObserveStats {
        self.serve(stop);
        self.stats
    }

    /// Carries out a request of the client that holds the observer.
    fn reply(&mut self, request: &ObserverRequest) -> Result<ObserverReply, String> {
        // Time until the end of a window.
        let left_ns = match *request {
            ObserverRequest::Begin { at_ns, duration_ns, .. } => {
                let wait_ns = at_ns.saturating_sub(monotonic_ns()).min(BEGIN_WITHIN_NS);
                wait_ns.saturating_add(duration_ns)
            }
            _ => 0,
        };
        let until_ns = monotonic_ns().saturating_add(left_ns);
        self.until_ns = until_ns.saturating_add(self.limits.idle.0);
        match *request {
            ObserverRequest::Hello(_) => Err("unexpected second hello".to_owned()),
            ObserverRequest::Arm => {
                // A window that was not finished ends here.
                self.watch = None;
                let port = self.port;
                self.armed.get_or_insert_with(|| ArmedWatch::new(port));
                let clock_ns = monotonic_ns();
                Ok(ObserverReply::Armed { clock_ns })
            }
            ObserverRequest::Begin { at_ns, interval_ns, duration_ns } => {
                self.begin(at_ns, Nanos(interval_ns), Nanos(duration_ns))
            }
            ObserverRequest::Finish => {
                let watch = self.watch.take().ok_or("nothing was begun")?;
                self.stats.windows += 1;
                Ok(ObserverReply::Observed(Box::new(watch.finish())))
            }
            ObserverRequest::Follow { one_of } => {
                // Connections followed before are forgotten.
                self.following = Some(StreamCapture::begin(self.port, one_of));
                Ok(ObserverReply::Following)
            }
            ObserverRequest::Seen => {
                let following = self.following.take().ok_or("nothing was followed")?;
                Ok(ObserverReply::Seen(Box::new(following.finish())))
            }
        }
    }

    fn begin(
        &mut self,
        at_ns: u64,
        interval: Nanos,
        duration: Nanos,
    ) -> Result<ObserverReply, String> {
        if duration.0 > DURATION_MAX_NS {
            return Err("a window lasts for at most 30 days".to_owned());
        }
        if at_ns.abs_diff(monotonic_ns()) > BEGIN_WITHIN_NS {
            return Err("a window begins within an hour".to_owned());
        }
        let armed = self.armed.take().ok_or("nothing was armed")?;
        self.watch = Some(armed.begin(at_ns, interval, duration));
        Ok(ObserverReply::Begun)
    }
}
