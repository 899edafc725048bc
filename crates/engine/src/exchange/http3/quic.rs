//! A connection of QUIC (RFC 9000) in the time of its caller, by quinn-proto.
//!
//! quinn-proto takes points of `Instant`. They are made of the caller's [`Nanos`] and one base, so
//! that no clock is read. The socket is connected, so that the library's addresses are always the
//! same one, and the path never changes.

pub use super::session::VERSION;
use super::session::{HandshakeResult, SessionConfig};
use crate::exchange::SocketKind;
use bytes::{Bytes, BytesMut};
use knee_load::measure::PacketsMeasured;
use knee_load::time::Nanos;
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, DatagramEvent, Endpoint, EndpointConfig, Event,
    IdleTimeout, TransportConfig, VarInt,
};
use rustls::pki_types::ServerName;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Receive window of a stream by default, in bytes: a gigabit per second over 100 ms and more.
pub const STREAM_WINDOW: u32 = 16 << 20;

/// Receive window of a connection, in bytes. Bounds what is kept of bytes that come out of order.
pub const CONNECTION_WINDOW: u32 = 64 << 20;

/// Most bytes that a connection has written and the peer has not acknowledged.
pub const SEND_WINDOW: u64 = 1 << 20;

/// Streams that a server may open in one direction at a time. It needs three (RFC 9114 §6.2).
pub const UNI_STREAMS_MAX: u32 = 16;

/// Silence after which a connection is closed, unless the peer asks for less.
pub const IDLE_MAX: Duration = Duration::from_secs(30);

/// Most bytes of datagrams that are put out at once; more once those are with the kernel.
const OUTBOX_BYTES_MAX: usize = 64 << 10;

/// Stands for the peer: the socket is connected to it.
const PEER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 443);

/// What the connections of one worker share.
pub struct QuicShared {
    base: Instant,
    endpoint: Arc<EndpointConfig>,
    client: Option<ClientConfig>,
    /// Why there is no client configuration.
    fault: String,
    /// A datagram on its way to the outbox.
    datagram: Vec<u8>,
}

impl fmt::Debug for QuicShared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicShared").finish_non_exhaustive()
    }
}

impl QuicShared {
    /// For connections secured by `config`, to a server of this name. `window` is the receive
    /// window of a stream.
    pub(crate) fn new(
        tls: Option<(&Arc<rustls::ClientConfig>, &ServerName<'static>)>,
        window: u32,
    ) -> QuicShared {
        let session = match tls {
            Some((config, name)) => SessionConfig::new(config, name),
            None => Err("HTTP/3 needs TLS".to_owned()),
        };
        let (client, fault) = match session {
            Ok(session) => {
                let mut client = ClientConfig::new(Arc::new(session));
                client.transport_config(Arc::new(transport(window, UNI_STREAMS_MAX, 0)));
                (Some(client), String::new())
            }
            Err(why) => (None, why),
        };
        let mut endpoint = EndpointConfig::default();
        endpoint.supported_versions(vec![VERSION]);
        QuicShared {
            base: Instant::now(),
            endpoint: Arc::new(endpoint),
            client,
            fault,
            datagram: Vec::new(),
        }
    }

    fn instant(&self, at: Nanos) -> Instant {
        self.base + Duration::from_nanos(at.0)
    }
}

/// How connections of either side are kept: streams that the peer may open, and windows.
///
/// The size of datagrams stays at 1,200 bytes: a larger one that the path does not take is an error
/// of the socket. Requests are short, and the server chooses the size of its own datagrams.
pub fn transport(window: u32, uni: u32, bidi: u32) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let idle = IdleTimeout::try_from(IDLE_MAX).unwrap_or(VarInt::MAX.into());
    transport
        .max_concurrent_uni_streams(uni.into())
        .max_concurrent_bidi_streams(bidi.into())
        .stream_receive_window(window.into())
        .receive_window(CONNECTION_WINDOW.max(window).into())
        .send_window(SEND_WINDOW)
        .mtu_discovery_config(None)
        .max_idle_timeout(Some(idle))
        .datagram_receive_buffer_size(None)
        .enable_segmentation_offload(false);
    transport
}

/// Why a connection could not be secured.
#[derive(Clone, Debug, PartialEq)]
pub enum HandshakeFault {
    /// TLS refused the server, or the reverse.
    Tls(rustls::Error),
    /// Another reason, in words.
    Other(String),
}

// Equality of faults of rustls is total: they hold no floats.
impl Eq for HandshakeFault {}

/// One connection, from the client's side.
pub(super) struct Quic {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    /// Time of the next call, or an earlier one. It moves only to earlier times and once it has
    /// come, so that a caller need not be told of each packet.
    wake: Nanos,
    /// Time of the last received datagram.
    received: Nanos,
    /// There may be datagrams to put out.
    has_output: bool,
}

impl fmt::Debug for Quic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Quic").field("wake", &self.wake).finish_non_exhaustive()
    }
}

impl Quic {
    /// Begins a handshake.
    ///
    /// # Errors
    /// Why none can begin.
    pub(super) fn connect(shared: &QuicShared, now: Nanos) -> Result<Quic, HandshakeFault> {
        let Some(client) = &shared.client else {
            return Err(HandshakeFault::Other(shared.fault.clone()));
        };
        let mut endpoint = Endpoint::new(Arc::clone(&shared.endpoint), None, false, None);
        // The name that counts is in the session's configuration.
        let (handle, connection) = endpoint
            .connect(shared.instant(now), client.clone(), PEER, "localhost")
            .map_err(|error| HandshakeFault::Other(error.to_string()))?;
        Ok(Quic {
            endpoint,
            handle,
            connection,
            wake: Nanos::ZERO,
            received: Nanos::ZERO,
            has_output: true,
        })
    }

    /// The library's connection, to write to and read from streams. Datagrams may follow.
    #[inline]
    pub(super) fn connection(&mut self) -> &mut Connection {
        self.has_output = true;
        &mut self.connection
    }

    /// Takes a received datagram.
    pub(super) fn receive(&mut self, datagram: &[u8], at: Nanos, shared: &mut QuicShared) {
        self.received = self.received.max(at);
        let now = shared.instant(self.received);
        shared.datagram.clear();
        let bytes = BytesMut::from(datagram);
        let event = self.endpoint.handle(now, PEER, None, None, bytes, &mut shared.datagram);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.connection.handle_event(event);
            self.exchange_events();
        }
        self.has_output = true;
    }

    /// Passes what the connection tells its endpoint, and the reverse.
    fn exchange_events(&mut self) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(answer) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(answer);
            }
        }
    }

    /// The next event of the connection.
    #[inline]
    pub(super) fn poll(&mut self) -> Option<Event> {
        self.connection.poll()
    }

    /// Time of the last received datagram.
    pub(super) fn received(&self) -> Nanos {
        self.received
    }

    /// Whether [`Quic::put_out`] may put something out.
    #[inline]
    pub(super) fn has_output(&self) -> bool {
        self.has_output
    }

    /// Puts out the datagrams that may leave now, each behind its length.
    pub(super) fn put_out(&mut self, now: Nanos, shared: &mut QuicShared, out: &mut Vec<u8>) {
        if !std::mem::take(&mut self.has_output) {
            return;
        }
        let instant = shared.instant(now);
        loop {
            if out.len() >= OUTBOX_BYTES_MAX {
                self.has_output = true;
                break;
            }
            shared.datagram.clear();
            let sent = self.connection.poll_transmit(instant, 1, &mut shared.datagram);
            let Some(transmit) = sent else {
                break;
            };
            let datagram = &shared.datagram[..transmit.size];
            const { assert!(SocketKind::BORDER_BYTES == 2) };
            out.extend_from_slice(&(datagram.len() as u16).to_be_bytes());
            out.extend_from_slice(datagram);
        }
        self.exchange_events();
        self.set_wake(now, shared);
    }

    fn set_wake(&mut self, now: Nanos, shared: &QuicShared) {
        let next = self.connection.poll_timeout().map_or(Nanos::MAX, |at| {
            let since = at.saturating_duration_since(shared.base).as_nanos();
            Nanos(u64::try_from(since).unwrap_or(u64::MAX))
        });
        if next < self.wake || self.wake <= now {
            self.wake = next;
        }
    }

    /// Time of the next call of [`Quic::handle_timeout`].
    #[inline]
    pub(super) fn wake(&self) -> Nanos {
        self.wake
    }

    /// Handles timers that are due.
    pub(super) fn handle_timeout(&mut self, now: Nanos, shared: &QuicShared) {
        self.connection.handle_timeout(shared.instant(now));
        self.exchange_events();
        self.has_output = true;
        self.set_wake(now, shared);
    }

    /// Closes the connection with a code of HTTP/3 and a reason in words.
    pub(super) fn close(&mut self, now: Nanos, shared: &QuicShared, code: u64, reason: &str) {
        let code = VarInt::from_u64(code).unwrap_or_default();
        let reason = Bytes::copy_from_slice(reason.as_bytes());
        self.connection.close(shared.instant(now), code, reason);
        self.has_output = true;
    }

    /// Whether the server has confirmed the handshake (HANDSHAKE_DONE, RFC 9000 §19.20).
    pub(super) fn is_confirmed(&self) -> bool {
        self.connection.stats().frame_rx.handshake_done > 0
    }

    /// Packets that are known to be lost.
    #[inline]
    pub(super) fn lost(&self) -> u64 {
        self.connection.stats().path.lost_packets
    }

    /// Adds its packets so far.
    pub(super) fn count_packets(&self, to: &mut PacketsMeasured) {
        let stats = self.connection.stats();
        to.sent += stats.path.sent_packets;
        to.lost += stats.path.lost_packets;
        to.received += stats.udp_rx.datagrams;
    }

    /// What came of the handshake.
    pub(super) fn handshake(&self) -> Option<HandshakeResult> {
        let data = self.connection.crypto_session().handshake_data()?;
        data.downcast::<HandshakeResult>().ok().map(|result| *result)
    }
}
