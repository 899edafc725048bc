//! MessageStreams of messages: what came of each, until the recorder takes it.

use super::{HttpClient, Policy};
use crate::exchange::{Conversation, EventQueue, FlightId};
use crate::link::Link;
use crate::pool::client::HandoverQueue;
use crate::pool::deadlines::Deadlines;
use crate::pool::flight::Flight;
use crate::reactor::{Backend, EventTime};
use knee_load::measure::{MessageEvent, Outcome, StreamMessage};
use knee_load::messages::{MessageReaders, MessageRules, ReadMessage, StreamEnding};
use knee_load::spec::Target;
use knee_load::time::Nanos;

/// Messages of the operations under way.
#[derive(Debug)]
pub(super) struct MessageStreams {
    /// Messages that nobody has taken yet, in the order of their arrivals.
    pub(super) messages: HandoverQueue<MessageEvent>,
    /// Times by which the next message has to come.
    pub(super) quiet: Deadlines,
    /// Whether any request has a limit on the time without a message.
    has_timeouts: bool,
    /// How the stream ended that ended last.
    ending: StreamEnding,
    /// Why the first compressed body could not be decoded.
    pub(super) undecodable: Option<String>,
}

impl MessageStreams {
    pub(super) fn new() -> MessageStreams {
        MessageStreams {
            messages: HandoverQueue::new(),
            quiet: Deadlines::new(0),
            has_timeouts: false,
            ending: StreamEnding::Whole,
            undecodable: None,
        }
    }

    /// A message of a request was put out.
    pub(super) fn left(&mut self, intended: Nanos, at: Nanos) {
        self.messages.push(MessageEvent::Left { intended, at });
    }

    /// Ends the reading of an operation's response, and notes in its flight what it was.
    #[inline]
    pub(super) fn end(&mut self, events: &mut EventQueue, op: FlightId, flight: &mut Flight) {
        let finished = events.messages.as_mut().and_then(|messages| messages.finish(op));
        if let Some(ending) = finished {
            self.quiet.clear(op);
            flight.set_stream(op, &ending);
            self.ending = ending;
        }
        if let Some(why) = events.decoders.end(op) {
            flight.set_undecodable();
            self.undecodable.get_or_insert(why);
        }
    }
}

impl<L: Link, X: Conversation, P: Policy> HttpClient<L, X, P> {
    /// Splits the responses of `target` into messages.
    pub(crate) fn of_streams(mut self, target: &Target) -> Self {
        let rules = || target.requests.iter().map(|request| request.messages.as_deref());
        let has_timeout = |rules: &MessageRules| rules.timeout.is_some();
        self.streams.has_timeouts = rules().flatten().any(has_timeout);
        self.events.messages = Some(Box::new(MessageReaders::new(rules())));
        self
    }

    /// An operation began at `now`, which asks for request number `request`.
    #[inline]
    pub(super) fn begin_stream(&mut self, op: FlightId, request: usize, now: Nanos) {
        if let Some(messages) = &mut self.events.messages {
            messages.begin(op, request);
            self.await_message(op, now);
        }
    }

    /// A message came.
    #[inline]
    pub(super) fn on_message(&mut self, message: ReadMessage, time: EventTime) {
        let ReadMessage { op, units, tokens, api, is_output, is_cut } = message;
        let flight = self.flights.get_mut(op);
        let at = flight.no_earlier(time).happened;
        if is_output {
            flight.last_message = at;
        }
        let intended = flight.intended;
        let request = flight.request as u32;
        let message = StreamMessage {
            stream: op,
            request,
            intended,
            at,
            units,
            tokens,
            api,
            is_output,
            is_cut,
        };
        self.streams.messages.push(MessageEvent::Came(message));
        self.await_message(op, time.seen);
    }

    /// The next message of a stream is to come within its limit from `now` on.
    #[inline]
    pub(super) fn await_message(&mut self, op: FlightId, now: Nanos) {
        if self.streams.has_timeouts
            && let Some(messages) = &self.events.messages
            && messages.is_stream(op)
            && let Some(timeout) = messages.timeout(op)
        {
            self.streams.quiet.set(op, now + timeout);
        }
    }

    /// A part of a response came, which may be the head that says that it is a stream.
    #[inline]
    pub(super) fn await_message_of_head(&mut self, op: FlightId, now: Nanos) {
        if self.streams.has_timeouts && !self.streams.quiet.has(op) {
            self.await_message(op, now);
        }
    }

    /// Ends streams without a message in time.
    pub(super) fn expire_streams(&mut self, io: &mut dyn Backend, now: Nanos) {
        while let Some(op) = self.streams.quiet.due(now) {
            self.streams.quiet.clear(op);
            self.expire_operation(io, op, Some(Outcome::MessageTimeout), now);
        }
    }

    /// Keeps what was wrong with a stream.
    #[cold]
    pub(super) fn note_stream_fault(&mut self) {
        if let Some(messages) = &mut self.events.messages {
            messages.note_fault(std::mem::replace(&mut self.streams.ending, StreamEnding::Whole));
        }
    }
}
