//! One connection: its requests, each on its own stream.

use super::super::app_request::AppRequest;
use super::super::context::{Context, QueueEntry};
use super::super::http2::{Http2RequestHead, RequestSection};
use super::super::log::{ConnectionLog, LogEntry};
use super::super::queue::QueueOutcome;
use super::super::request::Persistence;
use super::super::response::{Response, ResponseKind, ServerResponse};
use super::super::station::Visit;
use super::super::stats::Trouble;
use bytes::Bytes;
use knee_engine::exchange::http3::frame::{self, FramePiece, FrameReader, FrameStream, kind};
use knee_engine::exchange::http3::qpack::SectionDecoder;
use knee_engine::exchange::http3::{CriticalStreams, Http3Code, Http3Violation, Role};
use knee_engine::sys::socket::RawAddress;
use knee_load::time::Nanos;
use quinn_proto::{
    Connection, ConnectionEvent, ConnectionHandle, Dir, Endpoint, Event, ReadError, Side,
    StreamEvent, StreamId, VarInt,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Instant;

/// What a connection is known by.
pub(super) struct ConnectionParts {
    /// Token of its timers and of its requests in the station.
    pub(super) token: u64,
    pub(super) handle: ConnectionHandle,
    /// Its client, for the socket.
    pub(super) to: RawAddress,
    /// The client's port.
    pub(super) port: u16,
}

/// One connection with HTTP/3.
pub(super) struct Http3ServerConnection {
    connection: Connection,
    open: ConnectionParts,
    critical: CriticalStreams,
    sections: SectionDecoder<RequestSection>,
    streams: HashMap<StreamId, Http3ServerStream>,
    /// Ends of services, with their streams.
    due: BinaryHeap<Reverse<(Nanos, StreamId)>>,
    log: Option<ConnectionLog>,
    /// Time of the next timer of QUIC that is set.
    wake: Nanos,
}

/// One request and its response.
struct Http3ServerStream {
    reader: FrameReader,
    head: Option<Http2RequestHead>,
    /// Trailers have come.
    has_trailers: bool,
    /// Bytes of its body so far.
    received: u64,
    /// The whole request, for an application.
    app_request: Option<Box<AppRequest>>,
    /// The application's response.
    app_response: Option<Box<Response>>,
    stage: Http3Stage,
    /// Its line in the log, if requests are logged.
    entry: Option<LogEntry>,
}

/// Progress of a request.
enum Http3Stage {
    Receiving,
    Queued {
        answer: ServerResponse,
    },
    Serving {
        answer: ServerResponse,
        arrival: Nanos,
    },
    /// `sent` bytes of `head` and of the body are written.
    Sending {
        answer: ServerResponse,
        head: Vec<u8>,
        sent: usize,
    },
}

fn code(code: Http3Code) -> VarInt {
    VarInt::from_u64(code.0).unwrap_or_default()
}

impl Http3ServerConnection {
    pub(super) fn new(
        connection: Connection,
        open: ConnectionParts,
        context: &mut Context,
    ) -> Http3ServerConnection {
        let log = context.log.as_mut().map(|log| ConnectionLog::of_port(open.port, log));
        Http3ServerConnection {
            connection,
            open,
            critical: CriticalStreams::new(Role::Client),
            sections: SectionDecoder::default(),
            streams: HashMap::new(),
            due: BinaryHeap::new(),
            log,
            wake: Nanos::MAX,
        }
    }

    /// Takes a datagram that was read at `now`.
    pub(super) fn take_datagram(&mut self, event: ConnectionEvent, now: Nanos, ns: Option<u64>) {
        if let Some(log) = &mut self.log {
            log.on_read(now, ns);
        }
        self.connection.handle_event(event);
    }

    pub(super) fn to(&self) -> &RawAddress {
        &self.open.to
    }

    pub(super) fn handle(&self) -> ConnectionHandle {
        self.open.handle
    }

    pub(super) fn is_over(&self) -> bool {
        self.connection.is_drained()
    }

    /// Writes a datagram that may leave; its length.
    pub(super) fn transmit(&mut self, at: Instant, out: &mut Vec<u8>) -> Option<usize> {
        self.connection.poll_transmit(at, 1, out).map(|transmit| transmit.size)
    }

    pub(super) fn exchange_events(&mut self, endpoint: &mut Endpoint) {
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(answer) = endpoint.handle_event(self.open.handle, event) {
                self.connection.handle_event(answer);
            }
        }
    }

    pub(super) fn close(&mut self, at: Instant) {
        self.connection.close(at, code(Http3Code::NO_ERROR), Bytes::new());
    }

    /// Lines of requests that have no whole response.
    pub(super) fn take_entries(&mut self) -> impl Iterator<Item = LogEntry> {
        self.streams.values_mut().filter_map(|stream| stream.entry.take())
    }

    /// Sets the timer of QUIC, unless one comes earlier.
    pub(super) fn set_timer(&mut self, time: impl Fn(Instant) -> Nanos, context: &mut Context) {
        let next = self.connection.poll_timeout().map_or(Nanos::MAX, time);
        if next < self.wake || self.wake <= context.now() {
            self.wake = next;
            if next < Nanos::MAX {
                context.set_timer(next, self.open.token);
            }
        }
    }

    /// Handles timers that are due: those of QUIC, and services that have ended.
    pub(super) fn on_timer(&mut self, at: Instant, context: &mut Context) {
        if self.wake <= context.now() {
            self.connection.handle_timeout(at);
        }
        while let Some(&Reverse((finish, id))) = self.due.peek()
            && finish <= context.now()
        {
            self.due.pop();
            self.finish_service(id, finish, context);
        }
    }

    fn finish_service(&mut self, id: StreamId, finish: Nanos, context: &mut Context) {
        let Some(stream) = self.streams.get(&id) else {
            return;
        };
        let Http3Stage::Serving { answer, arrival } = stream.stage else {
            return;
        };
        context.tally.sojourn.record(finish - arrival);
        let late = context.read_clock() - finish;
        context.tally.write_lateness.record(late);
        self.answer(id, answer, context);
    }

    /// Handles the end of a request's time in the queue.
    pub(super) fn on_queue_outcome(
        &mut self,
        number: u32,
        outcome: QueueOutcome,
        context: &mut Context,
    ) {
        let id = StreamId::new(Side::Client, Dir::Bi, number.into());
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let Http3Stage::Queued { answer } = stream.stage else {
            return;
        };
        match outcome {
            QueueOutcome::Dropped => self.answer(id, answer.rejected(), context),
            QueueOutcome::Served(Visit { arrival, start, finish }) => {
                stream.stage = Http3Stage::Serving { answer, arrival };
                self.note(id, start, finish, context);
                self.finish_service(id, finish, context);
            }
        }
    }

    /// Notes the line of a request in the log.
    fn note(&mut self, id: StreamId, start: Nanos, end: Nanos, context: &mut Context) {
        if let (Some(own), Some(log)) = (&mut self.log, &mut context.log)
            && let Some(stream) = self.streams.get_mut(&id)
        {
            stream.entry = Some(own.next_entry(log, start, end));
        }
    }

    /// Serves what has come.
    pub(super) fn serve(&mut self, at: Instant, endpoint: &mut Endpoint, context: &mut Context) {
        self.exchange_events(endpoint);
        while let Some(event) = self.connection.poll() {
            let handled = match event {
                Event::Connected => {
                    CriticalStreams::open(&mut self.connection);
                    Ok(())
                }
                Event::ConnectionLost { .. } => {
                    self.leave_queues(context);
                    Ok(())
                }
                Event::Stream(event) => self.on_stream(event, context),
                _ => Ok(()),
            };
            if let Err(violation) = handled {
                context.tally.on_trouble(Trouble::Malformed);
                let reason = Bytes::from(violation.to_string());
                self.connection.close(at, code(violation.code()), reason);
                return self.leave_queues(context);
            }
        }
    }

    fn on_stream(
        &mut self,
        event: StreamEvent,
        context: &mut Context,
    ) -> Result<(), Http3Violation> {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = self.connection.streams().accept(dir) {
                    self.read(id, context)?;
                }
                Ok(())
            }
            StreamEvent::Readable { id } => self.read(id, context),
            StreamEvent::Writable { id } => {
                self.write(id, context);
                Ok(())
            }
            StreamEvent::Stopped { id, .. } => {
                self.forget(id, context);
                let _ = self.connection.send_stream(id).reset(code(Http3Code::REQUEST_CANCELLED));
                Ok(())
            }
            StreamEvent::Finished { .. } | StreamEvent::Available { .. } => Ok(()),
        }
    }

    /// Reads what has come on a stream.
    fn read(&mut self, id: StreamId, context: &mut Context) -> Result<(), Http3Violation> {
        if id.dir() == Dir::Uni {
            return self.critical.read(id, &mut self.connection);
        }
        let stream = self.streams.entry(id).or_insert_with(|| Http3ServerStream {
            reader: FrameReader::new(FrameStream::Request),
            head: None,
            has_trailers: false,
            received: 0,
            app_request: None,
            app_response: None,
            stage: Http3Stage::Receiving,
            entry: None,
        });
        let mut receiver = self.connection.recv_stream(id);
        let Ok(mut chunks) = receiver.read(true) else {
            return Ok(());
        };
        let mut wants_continue = false;
        let end = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => match stream.take(&chunk.bytes, &mut self.sections, context) {
                    Ok(wants) => wants_continue |= wants,
                    Err(violation) => break Err(violation),
                },
                Ok(None) => break Ok(Some(true)),
                Err(ReadError::Reset(_)) => break Ok(Some(false)),
                Err(ReadError::Blocked) => break Ok(None),
            }
        };
        drop(chunks);
        match end {
            Ok(None) => {
                if wants_continue {
                    let section = &context.responses.of(ResponseKind::Continue).section;
                    let mut interim = Vec::new();
                    frame::put(&mut interim, kind::HEADERS, section);
                    let _ = self.connection.send_stream(id).write(&interim);
                }
                Ok(())
            }
            Ok(Some(true)) => self.end_request(id, context),
            Ok(Some(false)) => {
                self.reset(id, Http3Code::REQUEST_CANCELLED, context);
                Ok(())
            }
            Err(violation) if violation.is_of_stream() => {
                context.tally.on_trouble(Trouble::Malformed);
                self.reset(id, violation.code(), context);
                Ok(())
            }
            Err(violation) => Err(violation),
        }
    }

    /// The client has ended a stream.
    fn end_request(&mut self, id: StreamId, context: &mut Context) -> Result<(), Http3Violation> {
        let Some(stream) = self.streams.get(&id) else {
            return Ok(());
        };
        if !stream.reader.is_between() {
            return Err(Http3Violation::FrameCut);
        }
        let wrong = match stream.head {
            None => Some(Http3Code::REQUEST_INCOMPLETE),
            Some(head) if head.length.is_some_and(|length| length != stream.received) => {
                Some(Http3Code::MESSAGE_ERROR)
            }
            Some(_) => None,
        };
        if let Some(wrong) = wrong {
            context.tally.on_trouble(Trouble::Malformed);
            self.reset(id, wrong, context);
        } else {
            self.serve_request(id, context);
        }
        Ok(())
    }

    /// Serves a whole request.
    fn serve_request(&mut self, id: StreamId, context: &mut Context) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let (now, key) = (context.now(), (self.open.token, id.index() as u32));
        context.tally.on_request(now);
        let mut answer = ServerResponse {
            head_only: stream.head.is_some_and(|head| head.head_only),
            ..ServerResponse::with(context.mishaps.draw(), Persistence::KeepAlive)
        };
        let request = stream.app_request.take();
        stream.app_response = context.reply(request.as_deref(), &mut answer);
        match context.enter_queue(key, now, request.as_deref()) {
            Some(QueueEntry::Waits) => {
                stream.stage = Http3Stage::Queued { answer };
                return;
            }
            Some(QueueEntry::Rejected) => return self.answer(id, answer.rejected(), context),
            Some(QueueEntry::AtOnce) | None => {}
        }
        let (mut start, mut end) = (now, now);
        if let Some(station) = &mut context.station {
            let visit = station.arrive(context.stalls.worked(now));
            start = context.stalls.moment(visit.start);
            end = context.stalls.moment(visit.finish);
        }
        self.note(id, start, end, context);
        if context.station.is_none() {
            return self.answer(id, answer, context);
        }
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.stage = Http3Stage::Serving { answer, arrival: now };
        }
        self.due.push(Reverse((end, id)));
        context.set_timer(end, self.open.token);
    }

    /// Begins the response.
    fn answer(&mut self, id: StreamId, answer: ServerResponse, context: &mut Context) {
        if answer.reset {
            context.tally.on_trouble(Trouble::Reset);
            return self.reset(id, Http3Code::INTERNAL_ERROR, context);
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let response = context.responses.pick(answer.kind, stream.app_response.as_deref());
        let mut head = Vec::new();
        if answer.kind == ResponseKind::Garbage {
            context.tally.on_trouble(Trouble::Garbage);
        } else {
            frame::put(&mut head, kind::HEADERS, &response.section);
            let body = if answer.head_only { 0 } else { response.body().len() };
            if body > 0 {
                frame::put_head(&mut head, kind::DATA, body);
            }
        }
        stream.stage = Http3Stage::Sending { answer, head, sent: 0 };
        self.write(id, context);
    }

    /// Writes as much of a response as windows permit.
    fn write(&mut self, id: StreamId, context: &mut Context) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let Http3Stage::Sending { answer, head, sent } = &mut stream.stage else {
            return;
        };
        let answer = *answer;
        let response = context.responses.pick(answer.kind, stream.app_response.as_deref());
        let body = if answer.head_only { &[] } else { response.body() };
        let until = if answer.halved { body.len() / 2 } else { body.len() };
        let mut sender = self.connection.send_stream(id);
        loop {
            let rest = match head.get(*sent..) {
                Some(rest @ [_, ..]) => rest,
                _ => &body[*sent - head.len()..until],
            };
            if rest.is_empty() {
                break;
            }
            match sender.write(rest) {
                Ok(written) => *sent += written,
                Err(_) => return,
            }
        }
        if answer.halved {
            context.tally.on_trouble(Trouble::Truncate);
            return self.reset(id, Http3Code::INTERNAL_ERROR, context);
        }
        let _ = sender.finish();
        if answer.kind != ResponseKind::Garbage {
            context.tally.on_response(answer.kind);
        }
        let entry = self.streams.remove(&id).and_then(|stream| stream.entry);
        if let Some(entry) = entry {
            let written = Some(context.read_clock());
            if let Some(log) = &mut context.log {
                log.push(LogEntry { written, ..entry });
            }
        }
    }

    /// Resets a stream that broke a rule, or on purpose.
    fn reset(&mut self, id: StreamId, why: Http3Code, context: &mut Context) {
        let _ = self.connection.send_stream(id).reset(code(why));
        let _ = self.connection.recv_stream(id).stop(code(why));
        self.forget(id, context);
    }

    /// Removes a stream without a whole response.
    fn forget(&mut self, id: StreamId, context: &mut Context) {
        context.leave((self.open.token, id.index() as u32));
        if let Some(stream) = self.streams.remove(&id)
            && let (Some(log), Some(entry)) = (&mut context.log, stream.entry)
        {
            log.push(entry);
        }
    }

    /// Removes all requests, those in the queue too.
    pub(super) fn leave_queues(&mut self, context: &mut Context) {
        let all: Vec<StreamId> = self.streams.keys().copied().collect();
        all.into_iter().for_each(|id| self.forget(id, context));
    }
}

impl Http3ServerStream {
    /// Takes bytes of a request. Whether the client waits for 100 before it sends the body.
    fn take(
        &mut self,
        bytes: &[u8],
        sections: &mut SectionDecoder<RequestSection>,
        context: &Context,
    ) -> Result<bool, Http3Violation> {
        let mut rest = bytes;
        let mut wants_continue = false;
        while let Some(piece) = self.reader.next(&mut rest)? {
            match piece {
                FramePiece::Data { bytes, .. } => {
                    if self.head.is_none() {
                        return Err(Http3Violation::DataBeforeHead);
                    }
                    if self.has_trailers {
                        return Err(Http3Violation::AfterTrailers);
                    }
                    wants_continue = false;
                    self.received += bytes.len() as u64;
                    if let Some(request) = &mut self.app_request {
                        request.add_body(bytes);
                    }
                }
                FramePiece::Whole { payload, .. } if self.head.is_some() => {
                    if std::mem::replace(&mut self.has_trailers, true) {
                        return Err(Http3Violation::AfterTrailers);
                    }
                    if !sections.read(payload)?.is_trailers() {
                        return Err(Http3Violation::Message(super::PSEUDO_IN_TRAILERS));
                    }
                }
                FramePiece::Whole { payload, .. } => {
                    let keeps = context.keeps_app_requests();
                    self.app_request = keeps.then(Box::<AppRequest>::default);
                    let section = match &mut self.app_request {
                        None => sections.read(payload)?,
                        Some(app_request) => {
                            let mut add = |_: &RequestSection, name: &[u8], value: &[u8]| {
                                if let Ok(name) = std::str::from_utf8(name) {
                                    app_request.add_header(name, value);
                                }
                            };
                            sections.read_into(payload, &mut add)?
                        }
                    };
                    self.head = section.request();
                    let head = self.head.ok_or(Http3Violation::NoResponse)?;
                    wants_continue = head.expects_continue;
                }
            }
        }
        Ok(wants_continue)
    }
}
