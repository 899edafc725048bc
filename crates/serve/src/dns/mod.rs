//! The reference DNS server: a fixed zone behind a known service time, over UDP and TCP.
//!
//! One thread over epoll. It shares the reading of messages with the client of a load.

mod zone;

use crate::http::Station;
use crate::{ConnectionSlab, Flushed, QueuedSocket};
use knee_engine::error::RunError;
use knee_engine::port;
use knee_engine::sys::clock::{self, MonotonicClock};
use knee_engine::sys::datagrams::{DatagramBatch, DatagramSocket};
use knee_engine::sys::epoll::{Epoll, EpollEvent, EventFd, flags};
use knee_engine::sys::socket::{RawAddress, pause_if_exhausted};
use knee_engine::sys::thread::{self, raise_open_files};
use knee_engine::threads::{self, RunningServer, StoppableThread};
use knee_load::law::Law;
use knee_load::rng;
use knee_load::time::{Clock, Nanos};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::{fmt, iter};
use zone::{Transport, Zone};

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
    /// Service time of a query. Without `workers` it is not used.
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
    /// Answers that the kernel did not take as a whole, as their client did not read or was gone.
    pub unsent: u64,
    /// Messages that are no query: they have no answer.
    pub ignored: u64,
    /// Datagrams that the kernel dropped, as the socket's buffer was full.
    pub dropped: u64,
    /// TCP connections accepted.
    pub connections: u64,
    /// Most connections open at once.
    pub connections_max: u64,
    /// Arrival times of queries since the start, up to the number asked for. Over UDP those of the
    /// kernel's timestamps.
    #[serde(skip)]
    pub arrivals: Vec<Nanos>,
}

impl DnsServerStats {
    /// Writes the arrival times in nanoseconds, one per line.
    ///
    /// # Errors
    /// Errors of `out`.
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

/// A running DNS server; it ends when it is stopped or dropped.
pub type DnsServer = RunningServer<SocketAddr, DnsServerStats>;

/// Listens and serves in its own thread.
///
/// # Errors
/// [`RunError::NotPermitted`]: the address is in use, not permitted or not this machine's; out
/// of descriptors or threads.
pub fn start(spec: DnsServerSpec) -> Result<DnsServer, RunError> {
    // A descriptor per connection; if it may not be raised, the present limit remains.
    raise_open_files();
    let sockets = port::bind(spec.listen, DatagramSocket::bind)?;
    let cannot = |e: io::Error| RunError::NotPermitted(format!("cannot serve DNS: {e}"));
    let address = sockets.1.local_address().map_err(cannot)?;
    let wake = Arc::new(EventFd::new().map_err(cannot)?);
    let server = DnsServerLoop::new(&spec, sockets, &wake).map_err(cannot)?;
    let thread = StoppableThread::start("serve-dns", Some(wake), |_| server.run());
    Ok(DnsServer::new(address, thread.map_err(|e| threads::refused(&e))?))
}

/// Tokens of epoll that are no connection's.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
const DATAGRAMS: u64 = u64::MAX - 2;

/// Connections accepted in a row before open ones get their turn.
const ACCEPTS_PER_PASS: usize = 64;

/// Datagrams taken in one call.
const BATCH: usize = 64;

/// Longest datagram that is read whole: longer queries are cut, and then no queries.
const QUERY_BYTES_MAX: usize = 1232;

/// Most bytes that wait for a client to read.
const UNREAD_BYTES_MAX: usize = 16 << 20;

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

struct DnsServerLoop {
    epoll: Epoll,
    listener: TcpListener,
    socket: DatagramSocket,
    clock: MonotonicClock,
    /// CLOCK_REALTIME at the start, which the kernel's timestamps count from.
    started_realtime_ns: u64,
    zone: Zone,
    station: Option<Station>,
    connections: ConnectionSlab<DnsConnection>,
    /// Answers to queries that are being served, by time and then by their order.
    due: BTreeMap<(Nanos, u64), (Asker, Vec<u8>)>,
    served: u64,
    arrivals_max: usize,
    stats: DnsServerStats,
}

struct DnsConnection {
    wire: QueuedSocket<TcpStream>,
    /// What has come of a query and its length.
    partial: Vec<u8>,
}

/// Sender of a query: a source of datagrams, or a connection by its token.
enum Asker {
    Source(RawAddress),
    Connection(u64),
}

impl DnsServerLoop {
    /// Serves these sockets. `wake` has to outlive the run.
    ///
    /// # Errors
    /// Out of descriptors.
    fn new(
        spec: &DnsServerSpec,
        (listener, socket): (TcpListener, DatagramSocket),
        wake: &EventFd,
    ) -> io::Result<DnsServerLoop> {
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(&listener, LISTENER, flags::READ)?;
        epoll.add(&socket, DATAGRAMS, flags::READ)?;
        epoll.add(wake, WAKE, flags::READ)?;
        let random = rng::stream(spec.seed, rng::SERVICE);
        Ok(DnsServerLoop {
            epoll,
            listener,
            socket,
            clock: MonotonicClock::start(),
            started_realtime_ns: clock::realtime_ns(),
            zone: Zone { records: spec.records },
            station: spec.workers.map(|workers| Station::new(workers, spec.service, random)),
            connections: ConnectionSlab::default(),
            due: BTreeMap::new(),
            served: 0,
            arrivals_max: spec.arrivals_max,
            stats: DnsServerStats::default(),
        })
    }

    /// Serves until it is woken.
    fn run(mut self) -> DnsServerStats {
        // With the default slack wake-ups are some 50 µs later.
        let _ = thread::set_timer_slack_ns(1);
        let (mut events, mut buffer) = ([EpollEvent::EMPTY; 256], vec![0; READ_BYTES]);
        let (mut batch, mut answer) = (DatagramBatch::new(BATCH, QUERY_BYTES_MAX), Vec::new());
        loop {
            self.send_due();
            let next = self.due.first_key_value().map(|(&(at, _), _)| at);
            let timeout = next.map(|at| at - self.clock.now());
            let ready = self.epoll.wait(&mut events, timeout);
            for event in ready.expect("epoll_wait fails for wrong arguments alone") {
                match event.token() {
                    WAKE => return self.finish(),
                    LISTENER => self.accept(),
                    DATAGRAMS => self.take_datagrams(&mut batch, &mut answer),
                    token => self.on_event(token, *event, &mut buffer),
                }
            }
        }
    }

    fn finish(mut self) -> DnsServerStats {
        self.stats.dropped = self.socket.memory().map_or(0, |memory| memory.drops.into());
        for place in 0..self.connections.places() {
            self.remove(self.connections.token_at(place));
        }
        self.stats
    }

    fn send_due(&mut self) {
        let now = self.clock.now();
        while let Some(entry) = self.due.first_entry()
            && entry.key().0 <= now
        {
            let (asker, answer) = entry.remove();
            match asker {
                Asker::Source(source) => self.send_datagram(&answer, &source),
                Asker::Connection(token) => match self.connections.get(token) {
                    None => self.stats.unsent += 1,
                    Some(connection) => {
                        connection.wire.out.extend_from_slice(&answer);
                        self.flush(token);
                    }
                },
            }
        }
    }

    fn take_datagrams(&mut self, batch: &mut DatagramBatch, answer: &mut Vec<u8>) {
        // An error of a UDP socket's receive is one that ICMP told of an answer.
        let count = self.socket.receive(batch, BATCH).unwrap_or(0);
        for index in 0..count {
            answer.clear();
            if !self.compose(batch.bytes(index), Transport::Udp, answer) {
                continue;
            }
            let stamp = batch.received_realtime_ns(index);
            let stamp = stamp.map(|ns| Nanos(ns.saturating_sub(self.started_realtime_ns)));
            match self.serve(stamp) {
                None => self.send_datagram(answer, &batch.sender(index)),
                Some(key) => {
                    self.due.insert(key, (Asker::Source(batch.sender(index)), answer.clone()));
                }
            }
        }
    }

    /// Appends the answer to a query, if it is one.
    fn compose(&mut self, query: &[u8], over: Transport, out: &mut Vec<u8>) -> bool {
        let Some(answer) = self.zone.answer(query, over, out) else {
            self.stats.ignored += 1;
            return false;
        };
        match over {
            Transport::Udp => self.stats.udp_queries += 1,
            Transport::Tcp => self.stats.tcp_queries += 1,
        }
        self.stats.truncated += u64::from(answer.is_truncated);
        *self.stats.answers.entry(answer.rcode.name()).or_default() += 1;
        true
    }

    /// Serves a query that came at this time of the kernel. Returns when its answer is due, unless
    /// that is now.
    fn serve(&mut self, stamp: Option<Nanos>) -> Option<(Nanos, u64)> {
        let now = self.clock.now();
        if self.stats.arrivals.len() < self.arrivals_max {
            self.stats.arrivals.push(stamp.unwrap_or(now));
        }
        let at = self.station.as_mut()?.arrive(now).finish;
        self.served += 1;
        (at > now).then_some((at, self.served))
    }

    fn send_datagram(&mut self, answer: &[u8], to: &RawAddress) {
        self.stats.unsent += u64::from(!self.socket.send_to(answer, to));
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_PASS {
            let socket = match self.listener.accept() {
                Ok((socket, _)) => socket,
                Err(error) => return pause_if_exhausted(&error),
            };
            if socket.set_nonblocking(true).and_then(|()| socket.set_nodelay(true)).is_err() {
                continue;
            }
            let wire = QueuedSocket::new(socket);
            if !wire.watch(&self.epoll, self.connections.next_token()) {
                return;
            }
            self.connections.insert(DnsConnection { wire, partial: Vec::new() });
            self.stats.connections += 1;
            let open = self.connections.len() as u64;
            self.stats.connections_max = self.stats.connections_max.max(open);
        }
    }

    fn on_event(&mut self, token: u64, event: EpollEvent, buffer: &mut [u8]) {
        if event.is_writable() {
            self.flush(token);
        }
        let Some(connection) = self.connections.get(token).filter(|_| event.is_readable()) else {
            return;
        };
        match connection.wire.socket.read(buffer) {
            Ok(count @ 1..) => self.read(token, &buffer[..count]),
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Ok(_) | Err(_) => self.remove(token),
        }
    }

    /// Serves the whole queries of a connection. Each stands behind its length.
    fn read(&mut self, token: u64, bytes: &[u8]) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let mut come = std::mem::take(&mut connection.partial);
        let mut out = std::mem::take(&mut connection.wire.out);
        come.extend_from_slice(bytes);
        let mut rest = &come[..];
        while let Some((length, after)) = rest.split_first_chunk::<2>()
            && let Some((query, next)) = after.split_at_checked(u16::from_be_bytes(*length).into())
        {
            rest = next;
            let begin = out.len();
            out.extend_from_slice(&[0; 2]);
            if !self.compose(query, Transport::Tcp, &mut out) {
                out.truncate(begin);
                continue;
            }
            let length = (out.len() - begin - 2) as u16;
            out[begin..begin + 2].copy_from_slice(&length.to_be_bytes());
            if let Some(key) = self.serve(None) {
                self.due.insert(key, (Asker::Connection(token), out.split_off(begin)));
            }
        }
        let left = rest.len();
        come.drain(..come.len() - left);
        if let Some(connection) = self.connections.get(token) {
            (connection.partial, connection.wire.out) = (come, out);
        }
        self.flush(token);
    }

    /// Passes to the kernel what is to be sent.
    fn flush(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        let send = |mut socket: &TcpStream, bytes: &[u8]| socket.write(bytes);
        match connection.wire.flush((&self.epoll, token), UNREAD_BYTES_MAX, send) {
            Flushed::Fine => {}
            Flushed::Unread | Flushed::Gone => self.remove(token),
        }
    }

    /// Closes a connection. Answers that wait in it are not sent.
    fn remove(&mut self, token: u64) {
        if let Some(connection) = self.connections.get(token) {
            let (out, sent) = (&connection.wire.out, connection.wire.sent);
            let (mut rest, mut end) = (&out[..], 0);
            while let Some((length, after)) = rest.split_first_chunk::<2>() {
                let length = usize::from(u16::from_be_bytes(*length));
                end += 2 + length;
                self.stats.unsent += u64::from(end > sent);
                rest = after.get(length..).unwrap_or_default();
            }
            self.connections.remove(token);
        }
    }
}
