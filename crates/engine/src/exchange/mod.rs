//! Application protocols of a connection: operations to bytes, received bytes to events.
//!
//! A conversation does no I/O and reads no clock, so the same code runs over epoll, io_uring, TLS,
//! byte slices in tests and a fuzzer.
//!
//! A [`Conversation`] gets time and bytes as arguments and puts what follows into its
//! [`CallContext`]: output, and events of operations. It has a capacity, a time at which it is
//! called again, and says whether output leaves as soon as an operation starts or once per pass
//! with that of others. The pool asks for nothing else, so that it knows no protocol. Over
//! datagrams each datagram of the output stands behind its length, and each received one comes by
//! itself.
//!
//! - `http1`: HTTP/1.1, one operation at a time.
//! - `http2`: HTTP/2, and gRPC with the status of a call read from its trailers. Messages of gRPC
//!   are encoded before the load, from types that `knee-scenario` reads. Messages that leave at
//!   times of their own are in `http2/client/send`; when each is due is in `knee_load::messages`.
//! - `http3`: HTTP/3 over datagrams, with QUIC by quinn-proto. It has the fields, checks and
//!   limits of `http2`.
//! - `websocket` and `dns`. The names and types of DNS are read in `knee_load::spec`.
//! - `content_coding` undoes the codings of a body between a conversation and its readers
//!   (`events`). A body that nobody reads is not decoded.
//! - `success`: what makes an operation ok, by protocol.

pub mod content_coding;
pub mod dns;
mod events;
pub mod http1;
pub mod http2;
pub mod http3;
pub mod success;
pub mod websocket;

use crate::reactor::WireRequest;
pub use crate::sys::socket::SocketKind;
use dns::Dns;
pub use events::{EventQueue, OpEvent, OperationSink, ResponseSink};
use http1::Http1;
use http2::Http2;
use http3::Http3;
pub use http3::quic::HandshakeFault;
use knee_load::measure::{Handshakes, PacketsMeasured};
use knee_load::session::Fills;
use knee_load::spec::{HttpVersion, Protocol, Target};
use knee_load::time::Nanos;
use rustls::pki_types::ServerName;
use std::sync::Arc;
use websocket::WebSocket;

/// Most interim responses to one request.
pub(crate) const INTERIMS_MAX: u8 = 100;

/// Number of an operation under way, shared by its connection and its pool.
pub type FlightId = u32;

/// One connection's protocol, from its establishment to its end. Time and bytes are arguments. A
/// call puts what follows into its [`CallContext`]: bytes to send, and events of operations.
pub trait Conversation: Sized + 'static {
    /// State shared by all connections of one thread: encoded requests and caches.
    type Shared;

    /// Whether a request leaves as soon as its operation starts. It is put out whole, and no other
    /// operation is under way. Otherwise requests leave once all due operations have started, and
    /// those of a connection leave together.
    const LEAVES_AT_ONCE: bool;

    /// Whether a handshake of its own secures each connection, and a farewell ends it.
    const HAS_HANDSHAKE: bool = false;

    /// What its socket carries. Over datagrams, coalesced or not, each call of
    /// [`Conversation::receive`] has one, and what is put out is datagrams behind their lengths
    /// ([`SocketKind::first_of`]).
    #[inline]
    fn socket(_: &Self::Shared) -> SocketKind {
        SocketKind::Stream
    }

    /// Starts a connection. Bytes to send before any operation are put out.
    fn established(cx: &mut CallContext<'_, Self::Shared>) -> Self;

    /// Operations that may start now.
    fn capacity(&self, shared: &Self::Shared) -> Capacity;

    /// Starts an operation. The caller has checked [`Conversation::capacity`].
    fn start(
        &mut self,
        op: FlightId,
        request: RequestRef<'_>,
        cx: &mut CallContext<'_, Self::Shared>,
    );

    /// Processes what was received. Answers of the protocol are put out.
    fn receive(&mut self, input: Received<'_>, cx: &mut CallContext<'_, Self::Shared>);

    /// The kernel has taken all that was put out: request bodies that wait for room may continue.
    fn sent(&mut self, _cx: &mut CallContext<'_, Self::Shared>) {}

    /// The peer ended its side of the stream. Every operation under way gets its last event.
    fn ended(&mut self, end: StreamEnd, cx: &mut CallContext<'_, Self::Shared>);

    /// Cancels an operation, without an event.
    fn cancel(&mut self, op: FlightId, cx: &mut CallContext<'_, Self::Shared>) -> AfterCancel;

    /// Time of the next call of [`Conversation::handle_timeout`]; [`Nanos::MAX`] for none.
    #[inline]
    fn poll_timeout(&self) -> Nanos {
        Nanos::MAX
    }

    /// The time of [`Conversation::poll_timeout`] has come.
    fn handle_timeout(&mut self, _cx: &mut CallContext<'_, Self::Shared>) {}

    /// The generator is about to close the connection. A farewell is put out, if there is one.
    fn close(&mut self, _cx: &mut CallContext<'_, Self::Shared>) {}

    /// Further use of the connection.
    fn state(&self) -> ConnectionState;

    /// Whether [`Conversation::flush`] may put something out.
    #[inline]
    fn has_output(&self) -> bool {
        false
    }

    /// Puts out what was held back to leave together. Whether its timer may have moved.
    #[inline]
    fn flush(&mut self, _cx: &mut CallContext<'_, Self::Shared>) -> bool {
        false
    }

    /// Whether its handshake is over. One that secures its connection by itself has one, and no
    /// operation starts before.
    #[inline]
    fn is_secured(&self) -> bool {
        true
    }

    /// Whether one request may leave before its handshake is over.
    fn takes_early(&self) -> bool {
        false
    }

    /// Whether the server took that request. Otherwise it is put out again at the handshake's end.
    fn is_early_taken(&self) -> bool {
        false
    }

    /// Records how it was secured.
    fn note(&self, _of: &mut Handshakes) {}

    /// The packets of all connections that are closed, where the protocol numbers them.
    fn take_packets(_: &mut Self::Shared) -> Option<PacketsMeasured> {
        None
    }

    /// Whether operations wait for what the target sends by itself. The wait has no limit, and at
    /// the end of a run it says nothing.
    #[inline]
    fn waits_for_target(_: &Self::Shared) -> bool {
        false
    }

    /// Learns the CLOCK_REALTIME of time zero, in nanoseconds, before the first connection.
    fn set_epoch(_: &mut Self::Shared, _realtime_ns: u64) {}
}

/// A conversation with targets of a load.
pub(crate) trait TargetConversation: Conversation {
    /// Settings of the protocol.
    type Settings;

    /// State for the connections of one worker.
    fn shared(settings: &Self::Settings, worker: &WorkerSetup<'_>) -> Self::Shared;

    /// The requests of a target as they leave, values for their holes apart.
    fn wire_requests(settings: &Self::Settings, target: &Target) -> Vec<WireRequest>;

    /// Whether the target has shown that it speaks the protocol, as far as it does so before the
    /// first operation.
    fn is_open(&self) -> bool;

    /// Says that a target does not speak the protocol: `why`, with what to do about it.
    fn not_spoken(why: String) -> String {
        why
    }
}

/// What the connections of one worker need to know.
pub(crate) struct WorkerSetup<'a> {
    /// The target.
    pub(crate) target: &'a Target,
    /// How connections are secured, where that is a part of the protocol.
    pub(crate) tls: Option<TlsSetup>,
    /// Most operations under way on a connection.
    pub(crate) streams_max: u32,
    /// Time limit of an operation.
    pub(crate) timeout: Nanos,
    /// Longest wait for a handshake that opens a connection.
    pub(crate) open_timeout: Nanos,
    /// Seed of the run, and number of the worker.
    pub(crate) seed: (u64, u64),
}

/// TLS of connections to one server.
#[derive(Clone)]
pub(crate) struct TlsSetup {
    /// Its settings.
    pub(crate) config: Arc<rustls::ClientConfig>,
    /// The name that the server's certificate has to be for.
    pub(crate) name: ServerName<'static>,
}

/// Something that is done with the conversation of a target, whichever that is.
pub(crate) trait WithConversation {
    /// Its result.
    type Output;

    /// Does it.
    fn with<X: TargetConversation>(self, settings: &X::Settings) -> Self::Output;

    /// Does it with a conversation in cleartext whose operations may go on by other settings
    /// ([`OpEvent::Diverted`]).
    fn with_diversion<X: TargetConversation>(
        self,
        settings: &X::Settings,
        _then: &X::Settings,
    ) -> Self::Output
    where
        Self: Sized,
    {
        self.with::<X>(settings)
    }
}

/// Chooses the conversation with a target by its protocol.
pub(crate) fn with_conversation<W: WithConversation>(target: &Target, work: W) -> W::Output {
    match &target.protocol {
        Protocol::Http(settings) if target.version() == HttpVersion::Http2 => {
            work.with::<Http2>(settings)
        }
        Protocol::Http(settings) if target.version() == HttpVersion::Http3 => {
            work.with::<Http3>(settings)
        }
        Protocol::Http(settings) => work.with::<Http1>(settings),
        Protocol::WebSocket(settings) => work.with::<WebSocket>(settings),
        Protocol::Grpc(_) => work.with::<Http2>(&target.protocol.http()),
        Protocol::Dns(settings) => match settings.after_truncation() {
            Some(then) => work.with_diversion::<Dns>(settings, &then),
            None => work.with::<Dns>(settings),
        },
    }
}

/// Time of a call, and what the call changes beside its connection.
#[derive(Debug)]
pub struct CallContext<'a, S> {
    /// Time of the call.
    pub now: Nanos,
    /// State shared by the connections of the worker.
    pub shared: &'a mut S,
    /// What is to be sent.
    pub out: &'a mut Outbox,
    /// Events, to be drained by the caller.
    pub events: &'a mut EventQueue,
}

/// Received bytes: a piece of a stream, or one datagram.
#[derive(Clone, Copy, Debug)]
pub struct Received<'a> {
    /// The bytes; of a stream at least one.
    pub bytes: &'a [u8],
    /// Time at which the kernel received the last of them.
    pub at: Nanos,
}

/// What an operation that was cancelled leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterCancel {
    /// The connection goes on.
    GoesOn,
    /// The connection is of no further use.
    Broken,
}

/// A request and the values for its holes.
#[derive(Clone, Copy, Debug)]
pub struct RequestRef<'a> {
    /// Number of the request, from 0.
    pub number: usize,
    /// Values for its holes.
    pub fills: &'a Fills,
    /// The intended start of its operation.
    pub intended: Nanos,
}

/// A request without holes, intended at the start.
impl From<usize> for RequestRef<'static> {
    fn from(number: usize) -> RequestRef<'static> {
        static NOTHING: Fills = Fills::new();
        RequestRef { number, fills: &NOTHING, intended: Nanos::ZERO }
    }
}

/// Capacity of a connection for further operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// Number of operations that may start.
    pub operations: u32,
    /// Whether the target sets the limit, and not the configuration.
    pub is_targets_limit: bool,
}

/// Further use of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConnectionState {
    /// Further operations may begin, as far as there is room.
    #[default]
    Open,
    /// Operations under way may end, none may begin. Then either side closes the connection.
    Closing,
    /// No further use. The connection is to be closed at once.
    Broken,
}

/// How the peer ended its side of the stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamEnd {
    /// A FIN, without TLS.
    Fin,
    /// A `close_notify` of TLS (RFC 8446 §6.1). The FIN is still to come.
    CloseNotify,
    /// A FIN over TLS without `close_notify`: anyone on the path may have cut the stream.
    Cut,
}

impl StreamEnd {
    /// State of a connection after this end, from its state `before`.
    pub fn state_after(self, before: ConnectionState) -> ConnectionState {
        match self {
            StreamEnd::CloseNotify if before != ConnectionState::Broken => ConnectionState::Closing,
            _ => ConnectionState::Broken,
        }
    }
}

/// Bytes to send over a connection, in order.
#[derive(Debug, Default)]
pub struct Outbox {
    /// A registered request, sent before `bytes`.
    request: Option<usize>,
    bytes: Vec<u8>,
}

impl Outbox {
    /// Adds a registered request, whole. The outbox must be empty.
    #[inline]
    pub fn put_request(&mut self, request: usize) {
        debug_assert!(self.is_empty());
        self.request = Some(request);
    }

    /// The bytes, to be appended to.
    #[inline]
    pub fn bytes(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Whether nothing is to be sent.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.request.is_none() && self.bytes.is_empty()
    }

    /// Length of the bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.request = None;
        self.bytes.clear();
    }

    /// Removes and returns the registered request.
    #[inline]
    pub fn take_request(&mut self) -> Option<usize> {
        self.request.take()
    }
}

/// The elements of a comma-separated list, empty ones included (RFC 9110 §5.6.1).
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&b| b == b',').map(<[u8]>::trim_ascii)
}

/// Reads a number of decimal digits alone, as in Content-Length.
pub fn decimal(digits: &[u8]) -> Option<u64> {
    // `parse` alone would take a sign.
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
