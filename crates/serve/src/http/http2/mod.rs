//! A connection with HTTP/2 (RFC 9113): many requests at once, each on its own stream, through the
//! same station as those of HTTP/1.1.

mod receive;
mod send;
mod stream;

use super::context::Context;
use super::drive::{DriveResult, DriveStop, Fate, Tools};
use super::grpc;
use super::queue::QueueOutcome;
use super::request::{HEAD_MAX, Persistence, Request};
use super::response::{ResponseKind, ServerResponse};
use super::service::{RequestService, ServicePhase, record_service};
use super::stats::Trouble;
use super::wire::Wire;
use knee_engine::exchange::http2::connection::{self, ConnectionCore, Side, WINDOW_DEFAULT, id};
use knee_engine::exchange::http2::fields::SectionReader;
use knee_engine::exchange::http2::{ErrorCode, Violation, frame};
use knee_load::time::Nanos;
pub(super) use receive::{Http2RequestHead, RequestSection};
use send::Outgoing;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use stream::{ServerStreams, StreamPhase};

/// Receive window of a stream, in bytes. Request bodies are dropped as they arrive.
const STREAM_WINDOW: u32 = 1 << 20;
/// Receive window of a connection, in bytes.
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Most unsent bytes. Nothing more is read from a client that does not read.
const HELD_BACK_MAX: usize = 256 * 1024;

/// Most bytes of messages of gRPC on a connection that wait for the client to read.
const MESSAGES_UNREAD_MAX: usize = 16 << 20;

/// One connection with HTTP/2.
#[derive(Debug)]
pub(super) struct Http2ServerConnection {
    wire: Wire,
    /// Bytes read and not yet consumed: the start of a frame.
    unread: Vec<u8>,
    /// Whether they were read by another version of HTTP and are not parsed yet.
    is_unread_new: bool,
    /// The client's preface has been received.
    is_greeted: bool,
    core: ConnectionCore,
    sections: SectionReader<RequestSection>,
    streams: ServerStreams,
    /// The highest stream that the client opened.
    last_stream: u32,
    out: Outgoing,
    /// Ends of services, with their streams.
    due: BinaryHeap<Reverse<(Nanos, u32)>>,
    /// Time at which slow bodies go on.
    tick: Option<Nanos>,
    phase: Phase,
    /// Time at which it was ready for the first request, if later than its arrival.
    ready_since: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Requests are accepted.
    Open,
    /// The client has ended. Begun requests are finished.
    Ending,
    /// Unsent bytes are sent, then this side ends.
    Closing,
    /// The client's remaining bytes are read and dropped.
    Draining { dropped: usize },
}

impl Http2ServerConnection {
    /// Continues from bytes that another version of HTTP has read.
    pub(super) fn new(
        wire: Wire,
        unread: Vec<u8>,
        ready_since: Option<Nanos>,
        context: &mut Context,
    ) -> Http2ServerConnection {
        context.tally.http2.connections += 1;
        let mut out = Outgoing::default();
        let settings = [
            (id::MAX_CONCURRENT_STREAMS, context.streams_max),
            (id::INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (id::MAX_HEADER_LIST_SIZE, HEAD_MAX as u32),
        ];
        connection::put_settings(&mut out.bytes, &settings);
        frame::put_window_update(&mut out.bytes, 0, CONNECTION_WINDOW - WINDOW_DEFAULT);
        Http2ServerConnection {
            wire,
            unread,
            is_unread_new: true,
            is_greeted: false,
            core: ConnectionCore::new(Side::Client, CONNECTION_WINDOW),
            sections: SectionReader::default(),
            streams: ServerStreams::default(),
            last_stream: 0,
            out,
            due: BinaryHeap::new(),
            tick: None,
            phase: Phase::Open,
            ready_since,
        }
    }

    /// Handles an event of the socket.
    pub(super) fn on_event(&mut self, event_flags: u32, tools: &mut Tools<'_>) -> Fate {
        self.wire.on_event(event_flags);
        self.drive(tools)
    }

    /// Handles a due timer: services have ended, or slow bodies go on.
    pub(super) fn on_timer(&mut self, tools: &mut Tools<'_>) -> Fate {
        let context = &mut *tools.context;
        while let Some(&Reverse((finish, id))) = self.due.peek()
            && finish <= context.now()
        {
            self.due.pop();
            self.stream_messages(id, context);
            self.finish_service(id, finish, context);
        }
        if self.tick.is_some_and(|at| at <= context.now()) {
            self.tick = None;
            self.streams.resume_slow();
        }
        self.drive(tools)
    }

    /// Ends the service of a stream, unless the client has reset it.
    fn finish_service(&mut self, id: u32, finish: Nanos, context: &mut Context) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        if let StreamPhase::InService(ServicePhase::Serving { arrival, .. }) = stream.stage {
            record_service(arrival, finish, context);
            self.answer(id, context);
        }
    }

    /// Handles the end of a stream's time in the queue.
    pub(super) fn on_queue_outcome(
        &mut self,
        id: u32,
        outcome: QueueOutcome,
        tools: &mut Tools<'_>,
    ) -> Fate {
        let Some(stream) = self.streams.find(id) else {
            return Fate::Open;
        };
        stream.service.on_queue_outcome(outcome, self.wire.log(), tools.context);
        self.answer(id, tools.context);
        self.drive(tools)
    }

    /// Reads and writes as far as possible without waiting.
    pub(super) fn drive(&mut self, tools: &mut Tools<'_>) -> Fate {
        loop {
            match self.step(tools) {
                Ok(()) => {}
                Err(DriveStop::Close) => {
                    self.leave_queues(tools.context);
                    self.abandon(tools.context);
                    self.wire.end(&mut tools.context.tally);
                    return Fate::Closed(None);
                }
                Err(DriveStop::Wait | DriveStop::Switch) => {
                    self.ready_since = None;
                    if self.wire.watch(true, tools.epoll) {
                        return Fate::Open;
                    }
                    tools.context.tally.on_trouble(Trouble::Accept);
                    return Fate::Closed(None);
                }
            }
        }
    }

    /// Reads once, if possible, and writes as much as possible.
    fn step(&mut self, tools: &mut Tools<'_>) -> DriveResult {
        if let Phase::Draining { dropped } = self.phase {
            let dropped = self.wire.drain(dropped, tools.buffer)?;
            self.phase = Phase::Draining { dropped };
            return Ok(());
        }
        if self.wants_read()
            && let Err(DriveStop::Close) = self.read(tools)
        {
            return Err(DriveStop::Close);
        }
        let is_sent = self.write(tools)?;
        match self.phase {
            Phase::Closing if is_sent => {
                self.wire.end_write(&mut tools.context.tally);
                self.phase = Phase::Draining { dropped: 0 };
                Ok(())
            }
            Phase::Ending if is_sent && self.streams.is_empty() => Err(DriveStop::Close),
            // Reading resumes after too much was held back.
            Phase::Open if self.wants_read() => Ok(()),
            _ => Err(DriveStop::Wait),
        }
    }

    fn wants_read(&self) -> bool {
        self.phase == Phase::Open
            && self.out.held_back() < HELD_BACK_MAX
            && (self.is_unread_new || self.wire.readable)
    }

    /// Reads once and processes all whole frames.
    fn read(&mut self, tools: &mut Tools<'_>) -> DriveResult {
        let carry = self.unread.len();
        tools.buffer[..carry].copy_from_slice(&self.unread);
        let is_new = std::mem::take(&mut self.is_unread_new);
        let length = if is_new {
            carry
        } else {
            match self.wire.read(carry, tools)? {
                0 => {
                    self.on_end(tools.context);
                    return Ok(());
                }
                read => carry + read,
            }
        };
        // Every request that these bytes complete has arrived now.
        tools.context.read_clock();
        let input = &tools.buffer[..length];
        match self.take_frames(input, tools.context) {
            Ok(used) => {
                self.unread.clear();
                self.unread.extend_from_slice(&input[used..]);
            }
            Err(violation) => self.refuse(violation, tools.context),
        }
        Ok(())
    }

    /// Handles the end of the client's stream.
    fn on_end(&mut self, context: &mut Context) {
        self.phase = Phase::Ending;
        let is_cut = !self.unread.is_empty() || self.core.in_block();
        let unfinished = self.streams.drop_unfinished();
        if is_cut || unfinished > 0 {
            context.tally.on_trouble(Trouble::Incomplete);
        }
    }

    /// Removes all streams of messages, and all requests from the queue.
    fn leave_queues(&mut self, context: &mut Context) {
        for id in self.streams.queued_or_live() {
            context.leave((self.wire.token, id));
        }
    }

    /// Ends the connection because of a protocol violation.
    fn refuse(&mut self, violation: Violation, context: &mut Context) {
        context.tally.on_trouble(match violation.code() {
            ErrorCode::ENHANCE_YOUR_CALM => Trouble::HeadTooLarge,
            _ => Trouble::Malformed,
        });
        let reason = violation.to_string();
        frame::put_goaway(&mut self.out.bytes, self.last_stream, violation.code(), &reason);
        self.close(context);
    }

    /// Sends what was put out, and nothing else.
    fn close(&mut self, context: &mut Context) {
        self.streams.abandon(context);
        self.leave_queues(context);
        self.streams.clear();
        self.phase = Phase::Closing;
    }

    /// Resets a stream that broke a rule, or on purpose.
    fn reset(&mut self, id: u32, code: ErrorCode, context: &mut Context) {
        frame::put_reset(&mut self.out.bytes, id, code);
        self.forget(id, context);
    }

    /// Schedules the next messages of a stream.
    pub(super) fn schedule_messages(&mut self, at: Nanos, id: u32, context: &mut Context) {
        self.due.push(Reverse((at, id)));
        context.set_timer(at, self.wire.token);
    }

    /// Takes the messages of a stream that are due.
    fn stream_messages(&mut self, id: u32, context: &mut Context) {
        let Some(live) = self.streams.find(id).and_then(|stream| stream.live.as_mut()) else {
            return;
        };
        let bytes = &mut live.bytes;
        let Some(stream) = &mut live.stream else {
            return;
        };
        let next = stream.take(context, |message| bytes.extend_from_slice(message));
        self.streams.resume(id);
        if let Some(at) = next {
            self.schedule_messages(at, id, context);
        }
    }

    /// Removes a stream without a whole response.
    fn forget(&mut self, id: u32, context: &mut Context) {
        context.leave((self.wire.token, id));
        if let Some(mut stream) = self.streams.remove(id) {
            stream.service.log_lost(context);
        }
    }

    /// Serves a whole request.
    fn serve(&mut self, id: u32, context: &mut Context) {
        let arrival = self.ready_since.take().unwrap_or(context.now());
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        let key = (self.wire.token, id);
        let content = stream.app_request.take();
        let request = Request { head_only: stream.head_only, persistence: Persistence::KeepAlive };
        stream.service = RequestService::new(request, arrival, content.as_deref(), context);
        let log = self.wire.log();
        if let Some((live, next)) = stream.service.begin_stream(key, arrival, log, context) {
            let block = &context.responses.of(stream.service.answer.kind).block;
            self.out.put_head(id, false, block, self.core.peer.frame_bytes);
            self.streams.begin_live(id, Some(live));
            if let Some(at) = next {
                self.schedule_messages(at, id, context);
            }
            return;
        }
        if stream.call.as_ref().is_some_and(|call| call.answers_at_once()) {
            return self.end_call(id);
        }
        let log = self.wire.log();
        match stream.service.begin(key, arrival, content.as_deref(), log, context) {
            Some(phase) => {
                stream.stage = StreamPhase::InService(phase);
                if let ServicePhase::Serving { finish, .. } = phase {
                    self.due.push(Reverse((finish, id)));
                }
            }
            None => self.answer(id, context),
        }
    }

    /// Begins the response.
    fn answer(&mut self, id: u32, context: &mut Context) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        let answer = stream.service.answer;
        if answer.reset {
            context.tally.on_trouble(Trouble::Reset);
            return self.reset(id, ErrorCode::INTERNAL_ERROR, context);
        }
        let is_whole = answer.kind == ResponseKind::Ok(Persistence::KeepAlive);
        if is_whole && context.reflect.is_some() {
            return self.end_call(id);
        }
        let response = stream.service.response(&context.responses);
        if answer.kind == ResponseKind::Garbage {
            self.out.bytes.extend_from_slice(response.body());
            context.tally.on_trouble(Trouble::Garbage);
            return self.close(context);
        }
        let body = if answer.head_only { 0 } else { response.body().len() };
        if answer.halved && body == 0 {
            context.tally.on_trouble(Trouble::Truncate);
            return self.reset(id, ErrorCode::INTERNAL_ERROR, context);
        }
        let block = &response.block;
        self.out.put_head(id, body == 0, block, self.core.peer.frame_bytes);
        if body == 0 {
            return self.complete(id);
        }
        let begun = context.slow.map(|_| context.read_clock());
        self.streams.begin_body(id, begun);
    }

    /// Takes bytes of a call of gRPC, and answers what is answered at once.
    pub(super) fn feed_call(&mut self, id: u32, bytes: &[u8], context: &mut Context) {
        let Some(call) = self.streams.find(id).and_then(|stream| stream.call.as_mut()) else {
            return;
        };
        let mut messages = Vec::new();
        call.receive(bytes, &mut messages);
        if !call.answers_at_once() {
            return;
        }
        self.answer_call(id, messages, None);
        if self.streams.messages_unread() > MESSAGES_UNREAD_MAX {
            context.tally.on_trouble(Trouble::Write);
            self.reset(id, ErrorCode::ENHANCE_YOUR_CALM, context);
        }
    }

    /// Ends the response to a call of gRPC.
    fn end_call(&mut self, id: u32) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        let Some(call) = &mut stream.call else {
            return;
        };
        let mut messages = Vec::new();
        let trailers = call.end(&mut messages);
        // Calls have no faults.
        stream.service.answer = ServerResponse::whole(ResponseKind::Ok(Persistence::KeepAlive));
        self.answer_call(id, messages, Some(trailers));
    }

    /// Adds messages to the response to a call of gRPC, and the trailers that end it.
    fn answer_call(&mut self, id: u32, mut messages: Vec<u8>, trailers: Option<Vec<u8>>) {
        if self.streams.find(id).is_some_and(|stream| stream.live.is_none()) {
            self.out.put_head(id, false, &grpc::head(), self.core.peer.frame_bytes);
            self.streams.begin_live(id, None);
        }
        if let Some(live) = self.streams.find(id).and_then(|stream| stream.live.as_mut()) {
            live.bytes.append(&mut messages);
            live.trailers = trailers;
        }
        self.streams.resume(id);
    }

    /// Notes that all of a response has been put out.
    fn complete(&mut self, id: u32) {
        if let Some(stream) = self.streams.remove(id) {
            self.out.complete(stream.service.answer.kind, stream.service.entry);
        }
    }

    /// Logs the requests under way, which will have no response.
    pub(super) fn abandon(&mut self, context: &mut Context) {
        self.streams.abandon(context);
        self.out.abandon(context);
    }
}
