//! Connections with HTTP/3 (RFC 9114): one UDP socket, and all connections of its clients, through
//! the same station as those of TCP. QUIC is quinn-proto's.

mod connection;

use super::HttpServerSpec;
use super::context::Context;
use super::queue::QueueOutcome;
use super::secure::ServerTls;
use super::stats::Trouble;
use bytes::BytesMut;
use connection::{ConnectionParts, Http3ServerConnection};
use knee_engine::exchange::http2::Violation;
use knee_engine::exchange::http3::quic;
use knee_engine::sys::datagrams::{DatagramBatch, DatagramSocket};
use knee_engine::sys::epoll::{Epoll, flags};
use knee_engine::sys::socket::{Address, RawAddress};
use knee_load::time::Nanos;
use quinn_proto::{
    ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Incoming, ServerConfig,
};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Marks the tokens of connections over UDP. Those of TCP count up from zero.
const UDP_TOKEN: u64 = 1 << 62;

/// Datagrams received in one call, and calls per event. The rest is left to the next event.
const BATCH: usize = 64;
const BATCHES_PER_EVENT: usize = 16;

/// Largest datagram that is taken, in bytes: larger ones do not come over a path of Ethernet.
const DATAGRAM_BYTES_MAX: usize = 1500;

/// Receive buffer of the socket, in bytes: bursts of all clients wait in it.
const RECEIVE_BUFFER: u32 = 4 << 20;

/// Most connections at once; further ones are refused.
const CONNECTIONS_MAX: usize = 16_384;

/// Receive window of a stream, in bytes. Request bodies are dropped as they arrive.
const STREAM_WINDOW: u32 = 1 << 20;

/// Trailers of a request with what only its head may have.
const PSEUDO_IN_TRAILERS: Violation = Violation::PseudoInTrailers;

/// All connections of one socket.
pub(super) struct Http3Server {
    socket: DatagramSocket,
    batch: DatagramBatch,
    endpoint: Endpoint,
    /// Two readings of the same time.
    base: (Instant, Nanos),
    /// The connections by their numbers.
    connections: HashMap<u64, Http3ServerConnection>,
    /// Numbers of connections by their handles.
    numbers: HashMap<ConnectionHandle, u64>,
    opened: u64,
    /// Numbers of connections that a batch had datagrams for.
    touched: Vec<u64>,
    /// A datagram to be sent.
    out: Vec<u8>,
}

impl Http3Server {
    /// Listens at an address whose TCP port the server has.
    ///
    /// # Errors
    /// The address is in use or not permitted; TLS 1.3 is off.
    pub(super) fn bind(
        spec: &HttpServerSpec,
        tls: &ServerTls,
        address: SocketAddr,
        epoll: &Epoll,
        token: u64,
        now: Nanos,
    ) -> io::Result<Http3Server> {
        let socket = DatagramSocket::bind(address)?;
        socket.set_receive_buffer(RECEIVE_BUFFER)?;
        epoll.add(&socket, token, flags::READ)?;
        let crypto = tls.for_quic().map_err(io::Error::other)?;
        let mut config = ServerConfig::with_crypto(Arc::new(crypto));
        let transport = quic::transport(STREAM_WINDOW, quic::UNI_STREAMS_MAX, spec.streams_max);
        config.transport_config(Arc::new(transport)).migration(false);
        let mut of_endpoint = EndpointConfig::default();
        of_endpoint.supported_versions(vec![quic::VERSION]);
        Ok(Http3Server {
            socket,
            batch: DatagramBatch::new(BATCH, DATAGRAM_BYTES_MAX),
            endpoint: Endpoint::new(Arc::new(of_endpoint), Some(Arc::new(config)), false, None),
            base: (Instant::now(), now),
            connections: HashMap::new(),
            numbers: HashMap::new(),
            opened: 0,
            touched: Vec::new(),
            out: Vec::new(),
        })
    }

    /// Whether a token is one of a connection over UDP.
    pub(super) fn has(token: u64) -> bool {
        token & UDP_TOKEN != 0 && token < u64::MAX - 16
    }

    fn instant(&self, now: Nanos) -> Instant {
        self.base.0 + Duration::from_nanos((now - self.base.1).0)
    }

    /// Receives datagrams and serves what came.
    pub(super) fn on_readable(&mut self, context: &mut Context) {
        for _ in 0..BATCHES_PER_EVENT {
            let Ok(count @ 1..) = self.socket.receive(&mut self.batch, BATCH) else {
                return;
            };
            let now = context.read_clock();
            for index in 0..count {
                context.tally.stats.bytes_received += self.batch.bytes(index).len() as u64;
                self.take_datagram(index, now, context);
            }
            let mut touched = std::mem::take(&mut self.touched);
            touched.sort_unstable();
            touched.dedup();
            for number in touched.drain(..) {
                self.drive(number, context);
            }
            self.touched = touched;
        }
    }

    fn take_datagram(&mut self, index: usize, now: Nanos, context: &mut Context) {
        let to = self.batch.sender(index);
        let Ok(Address::Tcp(from)) = to.decode() else {
            return;
        };
        let at = self.instant(now);
        let came_ns = self.batch.received_realtime_ns(index);
        let bytes = BytesMut::from(self.batch.bytes(index));
        self.out.clear();
        match self.endpoint.handle(at, from, None, None, bytes, &mut self.out) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(number) = self.numbers.get(&handle)
                    && let Some(connection) = self.connections.get_mut(number)
                {
                    connection.take_datagram(event, now, came_ns);
                    self.touched.push(*number);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.accept(incoming, at, (to, from), context);
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.socket.send_to(&self.out[..transmit.size], &to);
            }
            None => {}
        }
    }

    fn accept(
        &mut self,
        incoming: Incoming,
        at: Instant,
        (to, from): (RawAddress, SocketAddr),
        context: &mut Context,
    ) {
        if self.connections.len() >= CONNECTIONS_MAX {
            let refusal = self.endpoint.refuse(incoming, &mut self.out);
            self.socket.send_to(&self.out[..refusal.size], &to);
            return context.tally.on_trouble(Trouble::Accept);
        }
        match self.endpoint.accept(incoming, at, &mut self.out, None) {
            Ok((handle, connection)) => {
                let number = self.opened;
                self.opened += 1;
                let opened =
                    ConnectionParts { token: UDP_TOKEN | number, handle, to, port: from.port() };
                let connection = Http3ServerConnection::new(connection, opened, context);
                self.connections.insert(number, connection);
                self.numbers.insert(handle, number);
                self.touched.push(number);
                let tally = &mut context.tally.stats;
                tally.connections += 1;
                tally.connections_max = tally.connections_max.max(self.connections.len() as u64);
            }
            Err(error) => {
                if let Some(transmit) = error.response {
                    self.socket.send_to(&self.out[..transmit.size], &to);
                }
                context.tally.on_trouble(Trouble::Accept);
            }
        }
    }

    /// Handles a timer of a connection.
    pub(super) fn on_timer(&mut self, token: u64, context: &mut Context) {
        let number = token & !UDP_TOKEN;
        let at = self.instant(context.now());
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.on_timer(at, context);
            self.drive(number, context);
        }
    }

    /// Handles the outcome of a request that was queued.
    pub(super) fn on_queue_outcome(
        &mut self,
        (token, id): (u64, u32),
        outcome: QueueOutcome,
        context: &mut Context,
    ) {
        let number = token & !UDP_TOKEN;
        if let Some(connection) = self.connections.get_mut(&number) {
            connection.on_queue_outcome(id, outcome, context);
            self.drive(number, context);
        }
    }

    /// Serves what has come over a connection, and sends what may leave.
    fn drive(&mut self, number: u64, context: &mut Context) {
        let at = self.instant(context.now());
        let (base, zero) = self.base;
        let Some(connection) = self.connections.get_mut(&number) else {
            return;
        };
        connection.serve(at, &mut self.endpoint, context);
        loop {
            self.out.clear();
            let Some(size) = connection.transmit(at, &mut self.out) else {
                break;
            };
            context.tally.stats.bytes_sent += size as u64;
            // One that the kernel does not take is lost, and sent again by QUIC.
            self.socket.send_to(&self.out[..size], &connection.open.to);
        }
        connection.exchange_events(&mut self.endpoint);
        if connection.is_over() {
            let handle = connection.open.handle;
            connection.leave_queues(context);
            connection.abandon(context);
            self.connections.remove(&number);
            self.numbers.remove(&handle);
        } else {
            let since = |at: Instant| at.saturating_duration_since(base).as_nanos();
            // Rounded up, so that the time has come then.
            let time = |at| zero + Nanos(u64::try_from(since(at)).unwrap_or(u64::MAX / 2) + 1);
            connection.set_timer(time, context);
        }
    }

    /// Closes all connections, and logs the requests under way.
    pub(super) fn close(&mut self, context: &mut Context) {
        let at = self.instant(context.read_clock());
        for connection in self.connections.values_mut() {
            connection.close(at);
            self.out.clear();
            while let Some(size) = connection.transmit(at, &mut self.out) {
                self.socket.send_to(&self.out[..size], &connection.open.to);
                self.out.clear();
            }
            connection.abandon(context);
        }
    }
}
