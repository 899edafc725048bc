//! Application protocols of a connection: operations to bytes, received bytes to events.
//!
//! An exchange does no I/O and reads no clock, so the same code runs over epoll, io_uring, TLS,
//! byte slices in tests and a fuzzer.

pub mod http1;
pub mod http2;

use knee_load::measure::Outcome;
use knee_load::messages::{MessageReaders, ReadMessage};
use knee_load::session::{Fills, ResponseReaders};
use std::ops::{Deref, DerefMut};

/// Most interim responses to one request.
pub(crate) const INTERIMS_MAX: u8 = 100;

/// Number of an operation under way, shared by its connection and its pool.
pub type FlightId = u32;

/// Protocol state of one connection, from its establishment to its end.
pub trait Exchange: Sized {
    /// State shared by all connections of one thread: encoded requests and caches.
    type Shared;

    /// Whether several operations may share a connection. If not, a request is sent as soon as it
    /// begins; otherwise requests are sent together once all due operations have begun.
    const MULTIPLEXED: bool;

    /// Starts a connection. Bytes to send before any operation are put into `out`.
    fn established(shared: &mut Self::Shared, out: &mut Outbox) -> Self;

    /// Operations that may begin now.
    fn room(&self, shared: &Self::Shared) -> Room;

    /// Begins an operation. The caller has checked [`Exchange::room`].
    fn begin(
        &mut self,
        op: FlightId,
        request: RequestRef<'_>,
        shared: &mut Self::Shared,
        out: &mut Outbox,
        events: &mut EventQueue,
    );

    /// Processes received bytes, at least one. Answers of the protocol are put into `out`.
    fn feed(
        &mut self,
        bytes: &[u8],
        shared: &mut Self::Shared,
        out: &mut Outbox,
        events: &mut EventQueue,
    );

    /// The kernel has taken all of `out`: request bodies that wait for room may continue.
    fn sent(&mut self, shared: &mut Self::Shared, out: &mut Outbox, events: &mut EventQueue);

    /// The peer ended its side of the stream. Every operation under way gets its last event.
    fn ended(&mut self, end: StreamEnd, events: &mut EventQueue);

    /// Cancels an operation, without an event. Returns whether the connection may go on.
    fn cancel(&mut self, op: FlightId, out: &mut Outbox) -> bool;

    /// Further use of the connection.
    fn state(&self) -> ConnectionState;
}

/// A request and the values for its holes.
#[derive(Clone, Copy, Debug)]
pub struct RequestRef<'a> {
    /// Number of the request, from 0.
    pub number: usize,
    /// Values for its holes.
    pub fills: &'a Fills,
}

/// A request without holes.
impl From<usize> for RequestRef<'static> {
    fn from(number: usize) -> RequestRef<'static> {
        static NOTHING: Fills = Fills::new();
        RequestRef { number, fills: &NOTHING }
    }
}

/// Events of a connection, in order, and the readers of responses.
#[derive(Debug, Default)]
pub struct EventQueue {
    events: Vec<OpEvent>,
    /// Readers of response values; `None` if no response is read.
    pub readings: Option<Box<ResponseReaders>>,
    /// Readers of messages; `None` if no response is split.
    pub messages: Option<Box<MessageReaders>>,
}

impl EventQueue {
    /// What takes the response of an operation, if it is read.
    #[inline]
    pub fn sink(&mut self, op: FlightId) -> Option<OperationSink<'_>> {
        let is_read = self.readings.as_ref().is_some_and(|readings| readings.reads(op))
            || self.messages.as_ref().is_some_and(|messages| messages.reads(op));
        is_read.then(|| OperationSink {
            op,
            readings: self.readings.as_deref_mut().filter(|readings| readings.reads(op)),
            messages: self.messages.as_deref_mut(),
            events: &mut self.events,
        })
    }

    /// Whether any response is read.
    #[inline]
    pub fn has_sinks(&self) -> bool {
        self.readings.is_some()
            || self.messages.as_ref().is_some_and(|messages| messages.is_in_use())
    }

    /// The response of an operation turns out to be a stream of server-sent events.
    #[cold]
    pub fn open_events(&mut self, op: FlightId) {
        if let Some(messages) = &mut self.messages {
            messages.open_events(op);
        }
    }
}

/// Takes the response of an operation: values for its session, and messages, which become events.
pub struct OperationSink<'a> {
    op: FlightId,
    readings: Option<&'a mut ResponseReaders>,
    messages: Option<&'a mut MessageReaders>,
    events: &'a mut Vec<OpEvent>,
}

impl OperationSink<'_> {
    /// A field of the head.
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        if let Some(readings) = &mut self.readings {
            readings.field(self.op, name, value);
        }
        if let Some(messages) = &mut self.messages {
            messages.on_field(self.op, name, value);
        }
    }

    /// Bytes of the body.
    pub fn body(&mut self, bytes: &[u8]) {
        if let Some(readings) = &mut self.readings {
            readings.body(self.op, bytes);
        }
        if let Some(messages) = &mut self.messages {
            messages.on_body(self.op, bytes, |message| self.events.push(message.into()));
        }
    }

    /// A chunk or frame of the body has ended.
    pub fn border(&mut self) {
        if let Some(messages) = &mut self.messages {
            messages.on_border(self.op, |message| self.events.push(message.into()));
        }
    }

    /// The body has ended.
    pub fn end(&mut self) {
        if let Some(messages) = &mut self.messages {
            messages.on_end(self.op, |message| self.events.push(message.into()));
        }
    }
}

impl From<ReadMessage> for OpEvent {
    #[inline]
    fn from(message: ReadMessage) -> OpEvent {
        OpEvent::Message(message)
    }
}

impl Deref for EventQueue {
    type Target = Vec<OpEvent>;

    #[inline]
    fn deref(&self) -> &Vec<OpEvent> {
        &self.events
    }
}

impl DerefMut for EventQueue {
    #[inline]
    fn deref_mut(&mut self) -> &mut Vec<OpEvent> {
        &mut self.events
    }
}

/// Room for further operations on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Number of operations that may begin.
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

/// Event of an operation, or of its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpEvent {
    /// The whole request is in the outbox. Multiplexed exchanges only: others put a request in
    /// whole.
    Written(FlightId),
    /// Bytes of the response were received, from the first byte of the call on.
    Received {
        /// The operation.
        op: FlightId,
        /// Bytes of the response, heads and frames included; at least 1.
        bytes: u64,
    },
    /// A message of the response is complete.
    Message(ReadMessage),
    /// The response is complete.
    Answered {
        /// The operation.
        op: FlightId,
        /// The final status.
        status: u16,
    },
    /// The operation ended without a complete response.
    Failed {
        /// The operation.
        op: FlightId,
        /// The reason.
        outcome: Outcome,
    },
    /// The target will never process the operation. It may be sent again over another connection.
    Unprocessed(FlightId),
    /// The target broke a rule of the protocol, in words. Comes after the failures that follow from
    /// it: of one operation, or of all if the connection is broken.
    Violated(String),
    /// The target ended failed operations within the rules of the protocol; how, in words.
    Reset(String),
    /// Unrequested bytes follow a complete response. Comes before that response's event if both
    /// were received together.
    Surplus,
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

/// Reads a number of decimal digits alone, as in Content-Length.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    // `parse` alone would take a sign.
    if !digits.first()?.is_ascii_digit() {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}
