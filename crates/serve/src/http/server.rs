//! The server's thread: one loop over events and timers.

use super::HttpServerSpec;
use super::connection::ServerConnection;
use super::context::Context;
use super::drive::{BUFFER_SIZE, Fate, Tools};
use super::http3::Http3Server;
use super::log::Log;
use super::request::RequestReader;
use super::secure::{SEALED_MAX, Secure, ServerTls};
use super::stats::{HttpServerStats, Trouble};
use super::wire::Wire;
use crate::ConnectionSlab;
use crate::listen::{self, SocketFile};
use knee_engine::Waiter;
use knee_engine::sys::clock::{MonotonicClock, ThreadUse};
use knee_engine::sys::epoll::{Epoll, EpollEvent, EventFd, flags};
use knee_engine::sys::socket::{self, Address, Listener};
use knee_engine::sys::thread;
use knee_load::spec::{Margins, WaitPolicy};
use knee_load::time::Nanos;
use std::io;

/// Tokens of epoll that are no connection's: those count up from zero.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
const DATAGRAMS: u64 = u64::MAX - 2;

/// Connections accepted in a row before open ones get their turn.
const ACCEPTS_PER_PASS: usize = 64;

/// Share of late wake-ups that the margin covers, so that a response is written when its service
/// ends. Higher than a generator's, as clients count the rest as service time.
const PUNCTUAL: f64 = 0.98;

/// A server that listens and is ready to run.
pub(super) struct HttpServerLoop {
    context: Context,
    epoll: Epoll,
    /// Watches the wake-up alone: what a stalled server waits in.
    stalled: Epoll,
    listener: Listener,
    /// Removed when the server ends.
    _socket_file: Option<SocketFile>,
    connections: ConnectionSlab<ServerConnection>,
    /// Largest number of connections that occupy a worker, and the current one.
    occupied_max: usize,
    occupied: usize,
    /// An accept may find something.
    acceptable: bool,
    /// Accept ran out of descriptors or memory: the close of any connection lets it try again.
    exhausted: bool,
    tls: Option<ServerTls>,
    /// Its UDP socket, if it speaks HTTP/3.
    http3: Option<Http3Server>,
    buffer: Vec<u8>,
    /// Buffer for encrypted input.
    sealed: Vec<u8>,
    waiter: Waiter,
}

impl HttpServerLoop {
    /// Listens. `wake` has to outlive the run.
    ///
    /// # Errors
    /// The address is in use, not permitted, or not this machine's; out of descriptors.
    pub(super) fn bind(spec: &HttpServerSpec, wake: &EventFd) -> io::Result<HttpServerLoop> {
        let (listener, socket_file) = listen(spec)?;
        let (epoll, stalled) = (Epoll::new()?, Epoll::new()?);
        epoll.add(&listener, LISTENER, flags::READ | flags::EDGE)?;
        epoll.add(wake, WAKE, flags::READ)?;
        stalled.add(wake, WAKE, flags::READ)?;
        let context = Context::new(spec, MonotonicClock::start());
        let http3 = match (&spec.tls, listener.local_address()?) {
            (Some(tls), Address::Tcp(address)) if spec.http3 => {
                let now = context.now();
                Some(Http3Server::bind(spec, tls, address, &epoll, DATAGRAMS, now)?)
            }
            _ => None,
        };
        Ok(HttpServerLoop {
            context,
            epoll,
            stalled,
            listener,
            _socket_file: socket_file,
            connections: ConnectionSlab::default(),
            occupied_max: spec.occupied_max().unwrap_or(usize::MAX),
            occupied: 0,
            acceptable: false,
            exhausted: false,
            tls: spec.tls.clone(),
            http3,
            buffer: vec![0; BUFFER_SIZE],
            sealed: vec![0; spec.tls.as_ref().map_or(0, |_| SEALED_MAX)],
            waiter: Waiter::new(WaitPolicy::Hybrid, PUNCTUAL, &Margins::UNKNOWN),
        })
    }

    /// Address that it listens on.
    pub(super) fn address(&self) -> io::Result<Address> {
        self.listener.local_address()
    }

    /// Serves until it is woken.
    pub(super) fn run(mut self) -> HttpServerStats {
        // Without it wake-ups are some 50 µs later; they then poll longer.
        let _ = thread::set_timer_slack_ns(1);
        let cpu = ThreadUse::now();
        let mut events = [EpollEvent::EMPTY; 256];
        while self.pass(&mut events) {}
        let elapsed = self.context.read_clock();
        let used = ThreadUse::now().since(cpu);
        if let Some(http3) = &mut self.http3 {
            http3.close(&mut self.context);
        }
        self.connections.each(|connection| connection.abandon(&mut self.context));
        let context = self.context;
        let station = context.station_counts();
        HttpServerStats {
            tls: self.tls.map(|_| context.tally.tls),
            log: context.log.map(Log::finish).unwrap_or_default(),
            stream_log: context.stream_log,
            ..context.tally.finish(elapsed, used, station)
        }
    }

    /// Runs due timers and handles events once; `false` once the server is to stop.
    fn pass(&mut self, events: &mut [EpollEvent]) -> bool {
        self.context.read_clock();
        self.fire_due();
        if !self.wait_out_stall() {
            return false;
        }
        if self.may_accept() {
            self.accept(ACCEPTS_PER_PASS, None);
        }
        let begin = self.context.read_clock();
        let timeout = self.timeout();
        let ready = self.epoll.wait(events, timeout);
        let ready = ready.expect("epoll_wait fails for wrong arguments alone");
        let end = self.context.read_clock();
        if let Some(slept) = timeout.filter(|t| ready.is_empty() && *t > Nanos::ZERO) {
            self.waiter.woke(end - (begin + slept));
        }
        for event in ready {
            match event.token() {
                WAKE => return false,
                LISTENER => self.acceptable = true,
                DATAGRAMS => {
                    if let Some(http3) = &mut self.http3 {
                        http3.on_readable(&mut self.context);
                    }
                }
                token => self.with_connection(token, |connection, tools| {
                    connection.on_event(event.flags(), tools)
                }),
            }
            self.fire_due();
        }
        true
    }

    /// Longest wait for events. `None`: nothing is due.
    fn timeout(&mut self) -> Option<Nanos> {
        if self.may_accept() {
            return Some(Nanos::ZERO);
        }
        let now = self.context.now();
        let timer = self.context.next_timer();
        let stall = self.context.stalls.next_after(now);
        let next = timer.into_iter().chain(stall).min()?;
        Some(self.waiter.sleep_for(now, next))
    }

    fn fire_due(&mut self) {
        while let Some(token) = self.context.take_due() {
            if let Some(http3) = self.http3.as_mut().filter(|_| Http3Server::has(token)) {
                http3.on_timer(token, &mut self.context);
                continue;
            }
            self.with_connection(token, |connection, tools| connection.on_timer(tools));
        }
        while let Some(((token, id), outcome)) = self.context.take_outcome() {
            if let Some(http3) = self.http3.as_mut().filter(|_| Http3Server::has(token)) {
                http3.on_queue_outcome((token, id), outcome, &mut self.context);
                continue;
            }
            self.with_connection(token, |connection, tools| {
                connection.on_queue_outcome(id, outcome, tools)
            });
        }
        while let Some(((token, id), at)) = self.context.take_admitted() {
            self.with_connection(token, |connection, tools| connection.on_admitted(id, at, tools));
        }
    }

    /// Waits for the end of a stall. Returns false if the server is to stop.
    fn wait_out_stall(&mut self) -> bool {
        while let Some(end) = self.context.stalls.end_of_stall(self.context.now()) {
            let rest = end - self.context.now();
            let mut events = [EpollEvent::EMPTY];
            let woken = self.stalled.wait(&mut events, Some(rest));
            if !woken.is_ok_and(<[EpollEvent]>::is_empty) {
                return false;
            }
            self.context.read_clock();
        }
        true
    }

    fn may_accept(&self) -> bool {
        self.acceptable && self.occupied < self.occupied_max
    }

    /// Accepts up to `count` connections and serves what they sent already. `ready_since`: ideal
    /// time since which a worker has been free for the first of them.
    fn accept(&mut self, count: usize, mut ready_since: Option<Nanos>) {
        for _ in 0..count {
            if !self.may_accept() {
                return;
            }
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                Err(e) if self.on_accept_error(&e) => continue,
                Err(_) => return,
            };
            let Ok(secure) = self.secure() else {
                self.context.tally.on_trouble(Trouble::Accept);
                continue;
            };
            let ready = ready_since.take();
            let reader = RequestReader::new(self.context.keeps_app_requests());
            let token = self.connections.next_token();
            let wire = Wire::new(socket, token, secure);
            self.connections.insert(ServerConnection::new(wire, ready, reader));
            let open = self.connections.len() as u64;
            let tally = &mut self.context.tally;
            tally.stats.connections += 1;
            tally.stats.connections_max = tally.stats.connections_max.max(open);
            let free_since = self.drive(token, |connection, tools| connection.drive(tools));
            // A connection without a request leaves the worker free for the next one.
            let passed_on = ready.filter(|_| self.occupied < self.occupied_max);
            ready_since = free_since.or(passed_on);
        }
    }

    /// Creates TLS for one connection, if the server uses it.
    fn secure(&self) -> io::Result<Option<Box<Secure>>> {
        let accept = |tls: &ServerTls| tls.accept().map(Box::new);
        self.tls.as_ref().map(accept).transpose()
    }

    /// Notes a failed accept. Returns whether the next one may succeed.
    fn on_accept_error(&mut self, error: &io::Error) -> bool {
        if error.kind() == io::ErrorKind::WouldBlock {
            self.acceptable = false;
            return false;
        }
        self.context.tally.on_trouble(Trouble::Accept);
        self.exhausted = socket::is_exhaustion(error);
        self.acceptable = !self.exhausted;
        self.acceptable
    }

    /// Drives a connection and, where that freed a worker, accepts the next.
    fn with_connection(
        &mut self,
        token: u64,
        act: impl FnOnce(&mut ServerConnection, &mut Tools<'_>) -> Fate,
    ) {
        let free_since = self.drive(token, act);
        if free_since.is_some() && self.occupied_max < usize::MAX {
            self.accept(ACCEPTS_PER_PASS, free_since);
        }
    }

    /// Lets a connection act, and drops it if that ended it. Returns the ideal time since which
    /// its worker has been free then. A token whose connection is gone is ignored.
    fn drive(
        &mut self,
        token: u64,
        act: impl FnOnce(&mut ServerConnection, &mut Tools<'_>) -> Fate,
    ) -> Option<Nanos> {
        let place = self.connections.find(token)?;
        let connection = place.as_mut()?;
        let mut tools = Tools {
            context: &mut self.context,
            epoll: &self.epoll,
            buffer: &mut self.buffer,
            sealed: &mut self.sealed,
        };
        let before = connection.occupies_worker();
        let mut fate = act(connection, &mut tools);
        if fate == Fate::Switched {
            let before = place.take()?;
            fate = place.insert(before.into_http2(tools.context)).drive(&mut tools);
        }
        let occupies = place.as_ref().is_some_and(ServerConnection::occupies_worker);
        let after = !matches!(fate, Fate::Closed(_)) && occupies;
        self.occupied = self.occupied + usize::from(after) - usize::from(before);
        match fate {
            Fate::Open | Fate::Switched => None,
            Fate::Closed(free_since) => {
                self.connections.remove(token);
                self.acceptable |= std::mem::take(&mut self.exhausted);
                free_since
            }
        }
    }
}

/// Binds, and sets what accepted connections inherit.
fn listen(spec: &HttpServerSpec) -> io::Result<(Listener, Option<SocketFile>)> {
    let (listener, file) = listen::bind(&spec.listen, spec.backlog)?;
    if let Address::Tcp(_) = spec.listen {
        listener.set_nodelay()?;
    }
    if spec.log_max > 0 {
        // A kernel that has no timestamps leaves the time of the read.
        let _ = listener.set_timestamps();
    }
    Ok((listener, file))
}
