//! The reference WebSocket server: an echo after a known service time, a fan-out to all clients, or
//! messages at a rate.
//!
//! One thread over epoll. It shares its frames with the client of a load.

use crate::http::Station;
use crate::listen::{self, SocketFile};
use crate::{ConnectionSlab, Flushed, QueuedSocket};
use knee_engine::exchange::websocket::frame::{close_code, opcode, put, put_close};
use knee_engine::exchange::websocket::handshake::{UpgradeRequest, read_request};
use knee_engine::exchange::websocket::{MessageItem, MessageReader, ReaderSide, put_time};
use knee_engine::sys::clock::{self, MonotonicClock};
use knee_engine::sys::epoll::{Epoll, EpollEvent, EventFd, flags};
use knee_engine::sys::socket::{Address, Listener, Socket, pause_if_exhausted};
use knee_engine::sys::thread::{self, raise_open_files};
use knee_engine::threads::{self, RunningServer, StoppableThread};
use knee_load::law::Law;
use knee_load::rng;
use knee_load::spec::Rate;
use knee_load::time::{Clock, Nanos};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use std::{fmt, io};

/// Configuration of the reference WebSocket server.
#[derive(Clone, Debug)]
pub struct WsServerSpec {
    /// Address to listen on; port 0 picks a free one.
    pub listen: Address,
    /// Workers with one FIFO queue, at least 1; `None`: every message is echoed at once.
    pub workers: Option<u32>,
    /// Service time of a message. Without `workers` it is not used.
    pub service: Law,
    /// Whether a message goes to all clients, and not only to the one that sent it.
    pub fans_out: bool,
    /// Rate of messages that the server publishes to all clients.
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

/// A running WebSocket server; it ends when it is stopped or dropped.
pub type WsServer = RunningServer<Address, WsServerStats>;

/// Listens and serves in its own thread.
///
/// # Errors
/// The address is in use, not permitted or not this machine's; out of descriptors or threads.
pub fn start(spec: WsServerSpec) -> io::Result<WsServer> {
    // A descriptor per connection; if it may not be raised, the present limit remains.
    raise_open_files();
    let wake = Arc::new(EventFd::new()?);
    let server = WsServerLoop::bind(&spec, &wake)?;
    let address = server.listener.local_address()?;
    let thread = StoppableThread::start("serve-ws", Some(wake), |_| server.run());
    Ok(WsServer::new(address, thread.map_err(|e| threads::error(&e))?))
}

/// Tokens of epoll that are no connection's.
const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

/// Connections accepted in a row before open ones get their turn.
const ACCEPTS_PER_PASS: usize = 64;
/// Published messages per pass, so that events are read in between.
const MESSAGES_PER_PASS: usize = 1_024;

/// Connections that the kernel keeps until they are accepted.
const BACKLOG: u32 = 4096;

/// Most bytes of a message.
const MESSAGE_BYTES_MAX: usize = 16 << 20;

/// Most bytes that wait for a client to read.
const UNREAD_BYTES_MAX: usize = 64 << 20;

/// Bytes of one read.
const READ_BYTES: usize = 64 << 10;

struct WsServerLoop {
    epoll: Epoll,
    listener: Listener,
    _socket_file: Option<SocketFile>,
    clock: MonotonicClock,
    connections: ConnectionSlab<WsConnection>,
    station: Option<Station>,
    fans_out: bool,
    /// Echoes that are being served, the next one first.
    due: BinaryHeap<Reverse<Echo>>,
    echoes: u64,
    /// Number of the next published message, and their rate.
    publish: Option<(u64, knee_load::spec::Rate)>,
    stats: WsServerStats,
}

struct WsConnection {
    wire: QueuedSocket<Socket>,
    /// Bytes of the handshake so far; `None` once it is a WebSocket.
    handshake: Option<Vec<u8>>,
    reader: MessageReader,
    /// Whether it is closed once all is sent.
    is_ending: bool,
}

/// An echo that is due at a time. Those of a time are in the order of their messages.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Echo {
    at: Nanos,
    order: u64,
    token: u64,
    frame: Vec<u8>,
}

impl WsServerLoop {
    /// Listens. `wake` has to outlive the run.
    ///
    /// # Errors
    /// The address is in use, not permitted, or not this machine's; out of descriptors.
    fn bind(spec: &WsServerSpec, wake: &EventFd) -> io::Result<WsServerLoop> {
        let (listener, socket_file) = listen::bind(&spec.listen, BACKLOG)?;
        if let Address::Tcp(_) = spec.listen {
            listener.set_nodelay()?;
        }
        let epoll = Epoll::new()?;
        epoll.add(&listener, LISTENER, flags::READ)?;
        epoll.add(wake, WAKE, flags::READ)?;
        let random = rng::stream(spec.seed, rng::SERVICE);
        Ok(WsServerLoop {
            epoll,
            listener,
            _socket_file: socket_file,
            clock: MonotonicClock::start(),
            connections: ConnectionSlab::default(),
            station: spec.workers.map(|workers| Station::new(workers, spec.service, random)),
            fans_out: spec.fans_out,
            due: BinaryHeap::new(),
            echoes: 0,
            publish: spec.publish.map(|rate| (1, rate)),
            stats: WsServerStats::default(),
        })
    }

    /// Serves until it is woken.
    fn run(mut self) -> WsServerStats {
        // With the default slack wake-ups are some 50 µs later.
        let _ = thread::set_timer_slack_ns(1);
        let (mut events, mut buffer) = ([EpollEvent::EMPTY; 256], vec![0; READ_BYTES]);
        loop {
            self.send_due();
            let timeout = self.next_due().map(|at| at - self.clock.now());
            let ready = self.epoll.wait(&mut events, timeout);
            for event in ready.expect("epoll_wait fails for wrong arguments alone") {
                match event.token() {
                    WAKE => return self.stats,
                    LISTENER => self.accept(),
                    token => self.on_event(token, *event, &mut buffer),
                }
            }
        }
    }

    fn next_due(&self) -> Option<Nanos> {
        let echo = self.due.peek().map(|Reverse(echo)| echo.at);
        let published = self.publish.map(|(number, rate)| rate.moment(number));
        echo.into_iter().chain(published).min()
    }

    /// Sends what is due.
    fn send_due(&mut self) {
        let now = self.clock.now();
        while let Some(Reverse(echo)) = self.due.peek()
            && echo.at <= now
        {
            if let Some(Reverse(Echo { token, frame, .. })) = self.due.pop() {
                self.deliver(token, &frame);
            }
        }
        for _ in 0..MESSAGES_PER_PASS {
            let Some((number, rate)) = self.publish.filter(|(n, rate)| rate.moment(*n) <= now)
            else {
                return;
            };
            self.publish = Some((number + 1, rate));
            let (mut payload, mut frame) = (Vec::new(), Vec::new());
            put_time(&mut payload, clock::realtime_ns());
            put(&mut frame, opcode::TEXT, true, None, &payload);
            self.deliver_to_all(&frame);
        }
    }

    fn accept(&mut self) {
        for _ in 0..ACCEPTS_PER_PASS {
            let socket = match self.listener.accept() {
                Ok(socket) => socket,
                Err(error) => return pause_if_exhausted(&error),
            };
            let wire = QueuedSocket::new(socket);
            if !wire.watch(&self.epoll, self.connections.next_token()) {
                return;
            }
            self.connections.insert(WsConnection {
                wire,
                handshake: Some(Vec::new()),
                reader: MessageReader::new(ReaderSide::Server, MESSAGE_BYTES_MAX),
                is_ending: false,
            });
            let open = self.connections.len() as u64;
            self.stats.connections += 1;
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
            Ok(0) => self.close(token, close_code::ABNORMAL),
            Ok(count) => self.receive(token, &buffer[..count]),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.close(token, close_code::ABNORMAL),
        }
    }

    fn receive(&mut self, token: u64, bytes: &[u8]) {
        let Some(connection) = self.connections.get(token).filter(|c| !c.is_ending) else {
            return;
        };
        let Some(handshake) = &mut connection.handshake else {
            return self.read(token, bytes);
        };
        handshake.extend_from_slice(bytes);
        match read_request(handshake) {
            UpgradeRequest::More => {}
            UpgradeRequest::Upgrade(length, answer) => {
                let rest = handshake.split_off(length);
                connection.handshake = None;
                connection.wire.out.extend_from_slice(&answer);
                self.stats.upgraded += 1;
                self.read(token, &rest);
                self.flush(token);
            }
            UpgradeRequest::Refused(answer) => {
                connection.wire.out.extend_from_slice(answer.as_bytes());
                connection.is_ending = true;
                self.flush(token);
            }
        }
    }

    /// Reads frames of a WebSocket.
    fn read(&mut self, token: u64, mut bytes: &[u8]) {
        while let Some(connection) = self.connections.get(token) {
            match connection.reader.read(&mut bytes) {
                Ok(None) => break,
                Ok(Some(MessageItem::Message { is_text })) => {
                    let kind = if is_text { opcode::TEXT } else { opcode::BINARY };
                    let mut frame = Vec::new();
                    put(&mut frame, kind, true, None, connection.reader.payload());
                    self.on_message(token, frame);
                }
                Ok(Some(MessageItem::Ping)) => {
                    let payload = connection.reader.control();
                    put(&mut connection.wire.out, opcode::PONG, true, None, payload);
                }
                Ok(Some(MessageItem::Pong)) => {}
                Ok(Some(MessageItem::Close(code))) => {
                    put_close(&mut connection.wire.out, code, None);
                    connection.is_ending = true;
                    *self.stats.closes.entry(code).or_default() += 1;
                    break;
                }
                Err(violation) => {
                    put_close(&mut connection.wire.out, violation.close_code(), None);
                    connection.is_ending = true;
                    *self.stats.violations.entry(violation.to_string()).or_default() += 1;
                    break;
                }
            }
        }
        self.flush(token);
    }

    fn on_message(&mut self, token: u64, frame: Vec<u8>) {
        self.stats.received += 1;
        let now = self.clock.now();
        let at = self.station.as_mut().map_or(now, |station| station.arrive(now).finish);
        if at > now {
            self.echoes += 1;
            let order = self.echoes;
            self.due.push(Reverse(Echo { at, order, token, frame }));
        } else if self.fans_out {
            self.deliver_to_all(&frame);
        } else if let Some(connection) = self.connections.get(token) {
            // Together with the echoes of what else was read.
            connection.wire.out.extend_from_slice(&frame);
            self.stats.sent += 1;
        }
    }

    /// Sends an echo, or what it fans out to.
    fn deliver(&mut self, token: u64, frame: &[u8]) {
        if self.fans_out {
            self.deliver_to_all(frame);
        } else if let Some(connection) = self.connections.get(token) {
            connection.wire.out.extend_from_slice(frame);
            self.stats.sent += 1;
            self.flush(token);
        }
    }

    fn deliver_to_all(&mut self, frame: &[u8]) {
        for place in 0..self.connections.places() {
            let token = self.connections.token_at(place);
            if let Some(connection) = self.connections.get(token)
                && connection.handshake.is_none()
                && !connection.is_ending
            {
                connection.wire.out.extend_from_slice(frame);
                self.stats.sent += 1;
                self.flush(token);
            }
        }
    }

    /// Passes to the kernel what is to be sent.
    fn flush(&mut self, token: u64) {
        let Some(connection) = self.connections.get(token) else {
            return;
        };
        match connection.wire.flush((&self.epoll, token), UNREAD_BYTES_MAX, Socket::send) {
            Flushed::Fine if connection.is_ending && connection.wire.out.is_empty() => {
                self.connections.remove(token);
            }
            Flushed::Fine => {}
            Flushed::Unread => {
                self.stats.dropped += 1;
                self.connections.remove(token);
            }
            Flushed::Gone => self.close(token, close_code::ABNORMAL),
        }
    }

    /// Removes a connection that its client ended without a close frame.
    fn close(&mut self, token: u64, code: u16) {
        let is_open = |c: &&mut WsConnection| c.handshake.is_none() && !c.is_ending;
        if self.connections.get(token).as_ref().is_some_and(is_open) {
            *self.stats.closes.entry(code).or_default() += 1;
        }
        self.connections.remove(token);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch_for_tests::ScratchPath;

    #[test]
    fn its_unix_socket_goes_with_it_and_a_dead_one_is_taken_over() {
        let path = ScratchPath::new("serve-ws");
        drop(std::os::unix::net::UnixListener::bind(&path.0).unwrap());
        let spec = WsServerSpec {
            listen: Address::Unix(path.0.clone()),
            workers: None,
            service: Law::Fixed(Nanos::ZERO),
            fans_out: false,
            publish: None,
            seed: 1,
        };
        let server = start(spec.clone()).unwrap();
        let refused = start(spec).map(drop).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::AddrInUse);
        server.stop();
        assert!(!path.0.exists());
    }
}
