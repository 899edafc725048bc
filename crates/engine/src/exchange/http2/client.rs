//! The client's side of a connection.

mod receive;
mod reply;
mod send;
#[cfg(test)]
pub(super) mod tests;

use super::connection::{self, ConnectionCore, Side, WINDOW_DEFAULT};
use super::fields::{LIST_BYTES_MAX, ResponseSection, SectionReader};
use super::frame::{self, PREFACE};
use super::requests::{Blocks, Requests};
use super::streams::Streams;
use super::{ErrorCode, Violation};
use crate::exchange::http1::wire_requests;
use crate::exchange::{
    AfterCancel, CallContext, Capacity, ConnectionState, Conversation, EventQueue, FlightId,
    OpEvent, Received, RequestRef, StreamEnd, TargetConversation, WorkerSetup,
};
use crate::reactor::WireRequest;
use knee_load::measure::Outcome;
use knee_load::spec::{Http2Limits, HttpSettings, Protocol, Target};
use knee_load::time::Nanos;
use receive::Reader;
use send::TimedStreams;
use std::collections::VecDeque;

/// Default windows of the connection and of streams: those of h2load, so large that no server waits
/// for an update.
const WINDOW_LARGE: u32 = (1 << 30) - 1;

/// State shared by all HTTP/2 connections of one thread.
#[derive(Debug)]
pub struct Http2Shared {
    requests: Requests,
    limits: Http2Limits,
    /// Whether operations are calls of gRPC, whose status is in their trailers.
    is_grpc: bool,
    /// Most concurrent streams that the server permits, as the last connection learnt it. New
    /// connections use it until their own SETTINGS (RFC 9113 §6.5.2 sets no limit before).
    streams_expected: u32,
    /// Scratch space for a header block.
    block: Vec<u8>,
}

impl Http2Shared {
    /// Encodes the requests of `target`.
    pub fn new(target: &Target) -> Http2Shared {
        Http2Shared {
            requests: Requests::new(target),
            is_grpc: matches!(target.protocol, Protocol::Grpc(_)),
            limits: target.protocol.http().http2,
            streams_expected: Http2Limits::STREAMS_DEFAULT,
            block: Vec::new(),
        }
    }

    /// Receive window of streams.
    fn window(&self) -> u32 {
        self.limits.window_bytes.unwrap_or(WINDOW_LARGE)
    }
}

/// The worker's target, whose calls tell the server their time limit (gRPC over HTTP2, "Timeout").
fn with_deadline(worker: &WorkerSetup<'_>) -> Target {
    let mut target = worker.target.clone();
    let timeout = format!("{}m", worker.timeout.0.div_ceil(1_000_000).min(99_999_999));
    for request in &mut target.requests {
        if !request.has_header("grpc-timeout") {
            request.headers.push(("grpc-timeout".to_owned(), timeout.clone()));
        }
    }
    target
}

/// One HTTP/2 connection, from the client's side.
#[derive(Debug)]
pub struct Http2 {
    streams: Streams,
    state: ConnectionState,
    /// Most concurrent streams by configuration.
    streams_max: u32,
    core: ConnectionCore,
    /// Streams before this one were opened before the server's settings were known.
    first_informed: u32,
    reader: Reader,
    sections: SectionReader<ResponseSection>,
    blocks: Blocks,
    /// Streams with more body to send, in turn.
    senders: VecDeque<u32>,
    /// Bodies with filled holes, by stream.
    bodies: Vec<(u32, Vec<u8>)>,
    /// Streams whose messages leave at times of their own.
    timed: TimedStreams,
    /// Last closed stream on which frames may still be under way.
    forgiven: u32,
    /// Last stream that the server processes, by its GOAWAY.
    last_stream: u32,
    /// Answers put into the outbox since it was last empty.
    answers: u32,
    /// Empty DATA frames in a row.
    empties: u32,
    /// Stream of received bytes without an event yet, and their number.
    received: (u32, u64),
}

/// Parts of a [`CallContext`], whose output is bytes.
struct Io<'a> {
    shared: &'a mut Http2Shared,
    out: &'a mut Vec<u8>,
    events: &'a mut EventQueue,
}

impl<'a> Io<'a> {
    #[inline]
    fn of(cx: &'a mut CallContext<'_, Http2Shared>) -> Io<'a> {
        Io { shared: &mut *cx.shared, out: cx.out.bytes(), events: &mut *cx.events }
    }
}

impl TargetConversation for Http2 {
    type Settings = HttpSettings;

    fn shared(_: &HttpSettings, worker: &WorkerSetup<'_>) -> Http2Shared {
        match worker.target.protocol {
            Protocol::Grpc(_) => Http2Shared::new(&with_deadline(worker)),
            _ => Http2Shared::new(worker.target),
        }
    }

    fn wire_requests(_: &HttpSettings, target: &Target) -> Vec<WireRequest> {
        wire_requests(target)
    }

    /// The server's preface is its SETTINGS (RFC 9113 §3.4).
    fn is_open(&self) -> bool {
        self.core.has_settings
    }

    fn not_spoken(_: String) -> String {
        "it does not speak HTTP/2 without TLS: use https:// or grpcs://, or --http1.1 for HTTP"
            .to_owned()
    }
}

impl Conversation for Http2 {
    type Shared = Http2Shared;

    const LEAVES_AT_ONCE: bool = false;

    fn established(cx: &mut CallContext<'_, Http2Shared>) -> Http2 {
        let Io { shared, out, .. } = Io::of(cx);
        out.extend_from_slice(PREFACE);
        connection::put_settings(
            out,
            &[
                (connection::id::ENABLE_PUSH, 0),
                (connection::id::INITIAL_WINDOW_SIZE, shared.window()),
                (connection::id::MAX_HEADER_LIST_SIZE, LIST_BYTES_MAX as u32),
            ],
        );
        frame::put_window_update(out, 0, WINDOW_LARGE - WINDOW_DEFAULT);
        Http2 {
            streams: Streams::new(),
            state: ConnectionState::Open,
            streams_max: shared.limits.streams().max(1),
            core: ConnectionCore::new(Side::Server, WINDOW_LARGE),
            first_informed: u32::MAX,
            reader: Reader::default(),
            sections: SectionReader::default(),
            blocks: Blocks::new(&shared.requests),
            senders: VecDeque::new(),
            bodies: Vec::new(),
            timed: TimedStreams::default(),
            forgiven: 0,
            last_stream: frame::MAX_31,
            answers: 0,
            empties: 0,
            received: (0, 0),
        }
    }

    #[inline]
    fn capacity(&self, shared: &Http2Shared) -> Capacity {
        let targets = if self.core.has_settings {
            self.core.peer.streams_max.unwrap_or(u32::MAX)
        } else {
            shared.streams_expected
        };
        let limit = match self.state() {
            ConnectionState::Open => self.streams_max.min(targets),
            ConnectionState::Closing | ConnectionState::Broken => 0,
        };
        Capacity {
            operations: limit.saturating_sub(self.streams.count()),
            is_targets_limit: self.core.has_settings && targets < self.streams_max,
        }
    }

    #[inline]
    fn start(
        &mut self,
        op: FlightId,
        request: RequestRef<'_>,
        cx: &mut CallContext<'_, Http2Shared>,
    ) {
        let now = cx.now;
        self.open_stream(op, request, now, &mut Io::of(cx));
    }

    fn receive(&mut self, input: Received<'_>, cx: &mut CallContext<'_, Http2Shared>) {
        if self.state == ConnectionState::Broken {
            return;
        }
        let mut io = Io::of(cx);
        if let Err(violation) = self.read(input.bytes, &mut io) {
            self.break_off(violation, &mut io);
        }
        self.push_received(io.events);
        if self.state != ConnectionState::Broken {
            if let Some(increment) = self.core.receive_window.due() {
                frame::put_window_update(io.out, 0, increment);
            }
            self.send_bodies(&mut io);
        }
    }

    fn sent(&mut self, cx: &mut CallContext<'_, Http2Shared>) {
        self.answers = 0;
        self.send_bodies(&mut Io::of(cx));
    }

    #[inline]
    fn poll_timeout(&self) -> Nanos {
        self.timed.next_due()
    }

    fn handle_timeout(&mut self, cx: &mut CallContext<'_, Http2Shared>) {
        let now = cx.now;
        let mut io = Io::of(cx);
        self.release_messages(now, &mut io);
        self.send_bodies(&mut io);
    }

    fn ended(&mut self, end: StreamEnd, cx: &mut CallContext<'_, Http2Shared>) {
        for id in self.streams.ids() {
            if let Some(stream) = self.streams.close(id) {
                let outcome = if stream.has_begun { Outcome::Truncated } else { Outcome::Closed };
                let op = stream.op;
                cx.events.push(OpEvent::Failed { op, outcome });
            }
        }
        self.senders.clear();
        self.bodies.clear();
        self.timed = TimedStreams::default();
        self.state = end.state_after(self.state);
    }

    fn cancel(&mut self, op: FlightId, cx: &mut CallContext<'_, Http2Shared>) -> AfterCancel {
        let found = self.streams.iter().find(|stream| stream.op == op);
        if let Some(id) = found.map(|stream| stream.id) {
            self.give_up(id, ErrorCode::CANCEL, cx.out.bytes());
        }
        match self.state {
            ConnectionState::Broken => AfterCancel::Broken,
            ConnectionState::Open | ConnectionState::Closing => AfterCancel::GoesOn,
        }
    }

    #[inline]
    fn state(&self) -> ConnectionState {
        match self.state {
            ConnectionState::Open if self.streams.is_exhausted() => ConnectionState::Closing,
            state => state,
        }
    }
}

impl Http2 {
    /// Closes a stream with RST_STREAM. Frames of the server on it are ignored from then on.
    fn give_up(&mut self, id: u32, code: ErrorCode, out: &mut Vec<u8>) {
        frame::put_reset(out, id, code);
        self.forgiven = self.forgiven.max(id);
        self.forget(id);
    }

    /// Removes a stream. Returns its operation.
    fn forget(&mut self, id: u32) -> Option<FlightId> {
        let stream = self.streams.close(id)?;
        self.drop_body(id);
        if stream.is_queued {
            self.senders.retain(|other| *other != id);
        }
        Some(stream.op)
    }

    /// Fails a stream's operation, as its response breaks a rule. Others go on.
    #[cold]
    fn refuse(&mut self, id: u32, violation: Violation, io: &mut Io) {
        let Some(op) = self.streams.get(id).map(|stream| stream.op) else {
            return;
        };
        self.push_received(io.events);
        let outcome = Outcome::Malformed;
        io.events.push(OpEvent::Failed { op, outcome });
        io.events.push(OpEvent::Violated(violation.to_string()));
        self.give_up(id, violation.code(), io.out);
    }

    /// Ends the connection and all its operations, as the server breaks a rule.
    #[cold]
    fn break_off(&mut self, violation: Violation, io: &mut Io) {
        self.push_received(io.events);
        let reason = violation.to_string();
        frame::put_goaway(io.out, 0, violation.code(), &reason);
        self.fail_all(Outcome::Malformed, io.events);
        io.events.push(OpEvent::Violated(reason));
        self.state = ConnectionState::Broken;
    }

    /// Fails every operation under way.
    fn fail_all(&mut self, outcome: Outcome, events: &mut EventQueue) {
        for id in self.streams.ids() {
            if let Some(op) = self.forget(id) {
                events.push(OpEvent::Failed { op, outcome });
            }
        }
    }

    /// Queues the event of received bytes that were only counted.
    #[inline]
    fn push_received(&mut self, events: &mut EventQueue) {
        let (id, bytes) = std::mem::take(&mut self.received);
        if bytes > 0
            && let Some(stream) = self.streams.get(id)
        {
            let op = stream.op;
            events.push(OpEvent::Received { op, bytes });
        }
    }

    /// Counts received bytes of a stream.
    #[inline]
    fn credit(&mut self, id: u32, bytes: usize, events: &mut EventQueue) {
        if bytes == 0 {
            return;
        }
        if self.received.0 != id {
            let Some(stream) = self.streams.get(id) else {
                return;
            };
            stream.has_begun = true;
            self.push_received(events);
            self.received.0 = id;
        }
        self.received.1 += bytes as u64;
    }
}
