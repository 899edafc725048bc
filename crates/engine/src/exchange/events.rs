//! What conversations tell of operations and connections.

use super::FlightId;
use super::content_coding::{BodyDecoders, ContentCoding};
use super::http3::quic::HandshakeFault;
use knee_load::measure::{Outcome, Status};
use knee_load::messages::{MessagePiece, MessageReaders, ReadMessage};
use knee_load::session::ResponseReaders;
use knee_load::time::Nanos;
use std::ops::{Deref, DerefMut};

/// Event of an operation, or of its connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpEvent {
    /// The whole request is in the outbox. Only of conversations whose requests leave per pass:
    /// others put a request in whole.
    Written(FlightId),
    /// The request was put out with this length, which is not that of others like it. Only of a
    /// start.
    Resized {
        /// The operation.
        op: FlightId,
        /// Bytes of the request as it leaves.
        bytes: u64,
    },
    /// Bytes of the response were received, from the first byte of the call on.
    Received {
        /// The operation.
        op: FlightId,
        /// Bytes of the response, heads and frames included; at least 1.
        bytes: u64,
    },
    /// A message of the response is complete.
    Message(ReadMessage),
    /// A message of the request was put out, or waits for nothing but room.
    MessageLeft {
        /// When it was to leave.
        intended: Nanos,
        /// When it was put out.
        at: Nanos,
    },
    /// The response is complete.
    Answered {
        /// The operation.
        op: FlightId,
        /// The final status.
        status: Status,
    },
    /// The target sent a message by itself, which ends the operation.
    Delivered {
        /// The operation.
        op: FlightId,
        /// Bytes of the message.
        bytes: u64,
        /// When it left, by its own word.
        left: Nanos,
        /// When the kernel received it.
        at: Nanos,
    },
    /// The operation ended without a complete response.
    Failed {
        /// The operation.
        op: FlightId,
        /// The reason.
        outcome: Outcome,
    },
    /// The answer is whole, and says that the operation goes on over a connection of another kind:
    /// one by the further settings of its protocol.
    Diverted(FlightId),
    /// The target will never process the operation. It may be sent again over another connection.
    Unprocessed(FlightId),
    /// The target broke a rule of the protocol, in words. Comes after the failures that follow from
    /// it: of one operation, or of all if the connection is broken.
    Violated(String),
    /// The target ended failed operations within the rules of the protocol; how, in words.
    Reset(String),
    /// The connection may carry operations from now on, after an opening of its own.
    Opened,
    /// The handshake of the conversation failed. No operation is under way.
    NotSecured(HandshakeFault),
    /// The connection will carry no operation: one that waits ends so.
    NotOpened(Outcome),
    /// Unrequested bytes follow a complete response. Comes before that response's event if both
    /// were received together.
    Surplus,
    /// As many operations are under way on the connection as the protocol has numbers for.
    Exhausted,
    /// An answer came that no operation under way waits for: late, repeated or never asked for.
    Unmatched,
}

/// Events of a connection, in order, and the readers of responses.
#[derive(Debug, Default)]
pub struct EventQueue {
    events: Vec<OpEvent>,
    /// Readers of response values; `None` if no response is read.
    pub readings: Option<Box<ResponseReaders>>,
    /// Readers of messages; `None` if no response is split.
    pub messages: Option<Box<MessageReaders>>,
    /// Decoders of the bodies that are compressed and read.
    pub decoders: BodyDecoders,
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
            decoders: &mut self.decoders,
            events: &mut self.events,
        })
    }

    /// Whether any response is read.
    #[inline]
    pub fn has_sinks(&self) -> bool {
        self.readings.is_some()
            || self.messages.as_ref().is_some_and(|messages| messages.is_in_use())
    }

    /// The response of an operation turns out to be a stream of server-sent events, whose body has
    /// this coding.
    #[cold]
    pub fn open_events(&mut self, op: FlightId, coding: ContentCoding) {
        if let Some(messages) = &mut self.messages {
            messages.open_events(op);
            self.decoders.begin(op, coding);
        }
    }
}

/// Takes what a final response says.
pub trait ResponseSink {
    /// Whether anything is taken at all.
    const READS: bool;

    /// A field of its head.
    fn field(&mut self, name: &[u8], value: &[u8]);

    /// Bytes of its body, the transfer coding undone.
    fn body(&mut self, bytes: &[u8]);

    /// A chunk or frame of the body has ended.
    fn border(&mut self) {}
}

/// Takes nothing.
impl ResponseSink for () {
    const READS: bool = false;

    #[inline]
    fn field(&mut self, _: &[u8], _: &[u8]) {}

    #[inline]
    fn body(&mut self, _: &[u8]) {}
}

/// Takes the response of an operation: values for its session, and messages, which become events.
pub struct OperationSink<'a> {
    op: FlightId,
    readings: Option<&'a mut ResponseReaders>,
    messages: Option<&'a mut MessageReaders>,
    decoders: &'a mut BodyDecoders,
    events: &'a mut Vec<OpEvent>,
}

impl OperationSink<'_> {
    /// The body has ended.
    pub fn end(&mut self) {
        if let Some(decoder) = self.decoders.get(self.op)
            && !decoder.end()
            && let Some(readings) = &mut self.readings
        {
            readings.undecoded(self.op);
        }
        if let Some(messages) = &mut self.messages {
            messages.on_end(self.op, |message| self.events.push(OpEvent::Message(message)));
        }
    }
}

impl ResponseSink for OperationSink<'_> {
    const READS: bool = true;

    fn field(&mut self, name: &[u8], value: &[u8]) {
        if name.eq_ignore_ascii_case(b"content-encoding") {
            self.decoders.announce(self.op, value);
        }
        if let Some(readings) = &mut self.readings {
            readings.field(self.op, name, value);
        }
        if let Some(messages) = &mut self.messages {
            messages.on_field(self.op, name, value);
        }
    }

    fn body(&mut self, bytes: &[u8]) {
        let OperationSink { op, readings, messages, decoders, events } = self;
        let mut readers = (readings.as_deref_mut(), messages.as_deref_mut());
        let is_read = readers.0.as_ref().is_some_and(|readings| readings.reads_body(*op))
            || readers.1.as_ref().is_some_and(|messages| messages.is_stream(*op));
        match decoders.get(*op) {
            Some(decoder) if is_read => {
                decoder.feed(bytes, &mut |bytes| read_body(*op, &mut readers, bytes, events));
            }
            _ => read_body(*op, &mut readers, bytes, events),
        }
    }

    fn border(&mut self) {
        if let Some(messages) = &mut self.messages {
            messages.on_border(self.op, |message| self.events.push(OpEvent::Message(message)));
        }
    }
}

/// Bytes of a body, its codings undone.
fn read_body(
    op: FlightId,
    readers: &mut (Option<&mut ResponseReaders>, Option<&mut MessageReaders>),
    bytes: &[u8],
    events: &mut Vec<OpEvent>,
) {
    let event = |message| events.push(OpEvent::Message(message));
    match readers {
        (Some(readings), Some(messages)) => {
            if messages.is_of_json(op) {
                readings.split(op);
            }
            readings.body(op, bytes);
            messages.on_pieces(op, bytes, event, |piece| match piece {
                MessagePiece::Data(data) => readings.message(op, Some(data)),
                MessagePiece::End => readings.message(op, None),
                MessagePiece::Name(_) | MessagePiece::Error(_) => {}
            });
        }
        (Some(readings), None) => readings.body(op, bytes),
        (None, Some(messages)) => messages.on_body(op, bytes, event),
        (None, None) => {}
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
