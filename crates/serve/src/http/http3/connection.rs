//! One connection: its requests, each on its own stream.

use super::super::app_request::AppRequest;
use super::super::context::Context;
use super::super::http2::{Http2RequestHead, RequestSection};
use super::super::log::ConnectionLog;
use super::super::queue::QueueOutcome;
use super::super::request::{Persistence, Request};
use super::super::response::ResponseKind;
use super::super::service::{RequestService, ServicePhase, record_service};
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
    pub(super) open: ConnectionParts,
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
    stage: Http3Stage,
    /// Its service, once all of it has come.
    service: RequestService,
}

/// Progress of a request.
enum Http3Stage {
    Receiving,
    InService(ServicePhase),
    /// `sent` bytes of `head` and of the body are written.
    Sending {
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

    /// Logs the requests under way, which will have no whole response.
    pub(super) fn abandon(&mut self, context: &mut Context) {
        self.streams.values_mut().for_each(|stream| stream.service.log_lost(context));
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
        if let Some(stream) = self.streams.get(&id)
            && let Http3Stage::InService(ServicePhase::Serving { arrival, .. }) = stream.stage
        {
            record_service(arrival, finish, context);
            self.answer(id, context);
        }
    }

    /// Handles the end of a request's time in the queue.
    pub(super) fn on_queue_outcome(
        &mut self,
        number: u32,
        outcome: QueueOutcome,
        context: &mut Context,
    ) {
        let id = StreamId::new(Side::Client, Dir::Bi, number.into());
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.service.on_queue_outcome(outcome, self.log.as_mut(), context);
            self.answer(id, context);
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
            stage: Http3Stage::Receiving,
            service: RequestService::default(),
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
        let head_only = stream.head.is_some_and(|head| head.head_only);
        let request = Request { head_only, persistence: Persistence::KeepAlive };
        let content = stream.app_request.take();
        stream.service = RequestService::new(request, now, content.as_deref(), context);
        let log = self.log.as_mut();
        match stream.service.begin(key, now, content.as_deref(), log, context) {
            Some(phase) => {
                stream.stage = Http3Stage::InService(phase);
                if let ServicePhase::Serving { finish, .. } = phase {
                    self.due.push(Reverse((finish, id)));
                }
            }
            None => self.answer(id, context),
        }
    }

    /// Begins the response.
    fn answer(&mut self, id: StreamId, context: &mut Context) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let answer = stream.service.answer;
        if answer.reset {
            context.tally.on_trouble(Trouble::Reset);
            return self.reset(id, Http3Code::INTERNAL_ERROR, context);
        }
        let response = stream.service.response(&context.responses);
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
        stream.stage = Http3Stage::Sending { head, sent: 0 };
        self.write(id, context);
    }

    /// Writes as much of a response as windows permit.
    fn write(&mut self, id: StreamId, context: &mut Context) {
        let Some(stream) = self.streams.get_mut(&id) else {
            return;
        };
        let Http3Stage::Sending { head, sent } = &mut stream.stage else {
            return;
        };
        let answer = stream.service.answer;
        let response = stream.service.response(&context.responses);
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
        if let Some(mut stream) = self.streams.remove(&id) {
            stream.service.log_written(context);
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
        if let Some(mut stream) = self.streams.remove(&id) {
            stream.service.log_lost(context);
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
                            let mut add = |_: &_, name: &[u8], value: &[u8]| {
                                app_request.add_header(name, value);
                            };
                            sections.read_into(payload, &mut add)?
                        }
                    };
                    self.head = section.request().filter(|_| section.has_authority());
                    let head = self.head.ok_or(Http3Violation::NoResponse)?;
                    wants_continue = head.expects_continue;
                }
            }
        }
        Ok(wants_continue)
    }
}
