//! A connection with HTTP/1.1: reads a request, has it served, writes the response, and so on.

use super::batch::put_chunk;
use super::connection::{DriveResult, DriveStop, Fate, TRICKLE_TICK, Tools};
use super::context::Context;
use super::live_stream::LiveStream;
use super::log::Log;
use super::request::{Refusal, Request, RequestRead, RequestReader};
use super::response::{Response, ResponseKind, ServerResponse};
use super::stats::Trouble;
use super::wire::{HttpGuess, Wire};
use knee_load::time::Nanos;
use std::io;

/// A connection with HTTP/1.1, or one that has said nothing yet.
///
/// It serves one request at a time. A pipelined one is read, and arrives at the station, when the
/// one before it has been answered.
#[derive(Debug)]
pub(super) struct Http1ServerConnection {
    wire: Wire,
    reader: RequestReader,
    /// Bytes read; those from `consumed` on are not yet consumed. Mostly empty.
    unread: Vec<u8>,
    consumed: usize,
    /// Whether `unread` may hold more than the begin of a head.
    pipelined: bool,
    /// Whether no request has come: the client may still speak HTTP/2.
    is_new: bool,
    phase: Phase,
    /// The application's response to the request that is served.
    own: Option<Box<Response>>,
    /// The stream of messages that is the response.
    live: Option<Box<LiveStream>>,
    /// Bytes of it that are put out; the first `streamed` are sent.
    stream_bytes: Vec<u8>,
    streamed: usize,
    /// Ideal time since which it has been ready for the next request; `None` once it has waited for
    /// anything.
    ready_since: Option<Nanos>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// For a request.
    Reading,
    /// For the station.
    Serving { answer: ServerResponse, arrival: Nanos, finish: Nanos },
    /// For room in the socket.
    Writing { answer: ServerResponse, sent: usize },
    /// For time: a slow body.
    Trickling { answer: ServerResponse, sent: usize, begun: Nanos },
    /// For the next message of a stream, or for room in the socket.
    Streaming { answer: ServerResponse },
    /// For the end of the input of a refused client.
    Draining { dropped: usize },
    /// For the end of a handshake that the last request came with: before that, no ticket for the
    /// client's next connection can be sent.
    Finishing,
}

impl Http1ServerConnection {
    /// A connection just accepted. `ready_since`: ideal time since which a worker was ready for it,
    /// if it had to wait for one.
    pub(super) fn new(
        wire: Wire,
        ready_since: Option<Nanos>,
        reader: RequestReader,
    ) -> Http1ServerConnection {
        Http1ServerConnection {
            wire,
            reader,
            unread: Vec::new(),
            consumed: 0,
            pipelined: false,
            is_new: true,
            phase: Phase::Reading,
            own: None,
            live: None,
            stream_bytes: Vec::new(),
            streamed: 0,
            ready_since,
        }
    }

    /// Parts for HTTP/2: the wire, the bytes that came, and the time since which it has been ready.
    pub(super) fn into_parts(self) -> (Wire, Vec<u8>, Option<Nanos>) {
        (self.wire, self.unread, self.ready_since)
    }

    /// Whether any byte of a request has come.
    pub(super) fn has_asked(&self) -> bool {
        self.wire.has_asked()
    }

    /// Token of its timers and events.
    pub(super) fn token(&self) -> u64 {
        self.wire.token()
    }

    /// Handles an event of the socket.
    pub(super) fn on_event(&mut self, event_flags: u32, tools: &mut Tools<'_>) -> Fate {
        self.wire.on_event(event_flags);
        match self.phase {
            Phase::Serving { .. } | Phase::Trickling { .. } => Fate::Open,
            Phase::Reading
            | Phase::Writing { .. }
            | Phase::Streaming { .. }
            | Phase::Draining { .. }
            | Phase::Finishing => self.drive(tools),
        }
    }

    /// Handles the timer that it had set.
    pub(super) fn on_timer(&mut self, tools: &mut Tools<'_>) -> Fate {
        if let Phase::Serving { answer, arrival, finish } = self.phase {
            let tally = &mut tools.context.tally;
            tally.sojourn.record(finish - arrival);
            let late = tools.context.read_clock() - finish;
            tools.context.tally.write_lateness.record(late);
            self.ready_since = Some(finish);
            self.phase = self.begin(answer, tools.context);
        }
        self.drive(tools)
    }

    /// Goes as far as it can without waiting.
    pub(super) fn drive(&mut self, tools: &mut Tools<'_>) -> Fate {
        loop {
            let progress = match self.phase {
                Phase::Reading => self.read_request(tools),
                Phase::Serving { .. } => Err(DriveStop::Wait),
                Phase::Writing { answer, sent } => self.write(answer, sent, tools),
                Phase::Trickling { answer, sent, begun } => {
                    self.trickle(answer, sent, begun, tools.context)
                }
                Phase::Streaming { answer } => self.stream(answer, tools),
                Phase::Draining { dropped } => {
                    let drained = self.wire.drain(dropped, tools.buffer);
                    drained.map(|dropped| self.phase = Phase::Draining { dropped })
                }
                Phase::Finishing => self.finish(tools),
            };
            match progress {
                Ok(()) => {}
                Err(DriveStop::Close) => {
                    if self.live.take().is_some() {
                        tools.context.leave((self.wire.token(), 0));
                    }
                    if let Some(log) = &mut tools.context.log {
                        self.abandon(log);
                    }
                    self.wire.end(&mut tools.context.tally);
                    return Fate::Closed(self.ready_since);
                }
                Err(DriveStop::Wait) => {
                    self.ready_since = None;
                    return self.watch(tools);
                }
                Err(DriveStop::Switch) => return Fate::Switched,
            }
        }
    }

    /// Sends what is still held back and waits for what comes.
    fn watch(&mut self, tools: &mut Tools<'_>) -> Fate {
        if self.wire.flush(&mut tools.context.tally).is_err() {
            tools.context.tally.on_trouble(Trouble::Write);
            return Fate::Closed(None);
        }
        let reads = !matches!(
            self.phase,
            Phase::Serving { .. } | Phase::Writing { .. } | Phase::Trickling { .. }
        );
        if !self.wire.watch(reads, tools.epoll) {
            tools.context.tally.on_trouble(Trouble::Accept);
            return Fate::Closed(None);
        }
        Fate::Open
    }

    fn read_request(&mut self, tools: &mut Tools<'_>) -> DriveResult {
        let step = if self.pipelined {
            let (reader, rest) = (&mut self.reader, &self.unread[self.consumed..]);
            let fed = reader.feed(rest, &mut tools.context.last_head);
            fed.map(|(used, step)| {
                self.consumed += used;
                self.pipelined = step != RequestRead::NeedMore && self.consumed < self.unread.len();
                step
            })
        } else if self.wire.is_readable() {
            let length = self.read(tools)?;
            let context = &mut *tools.context;
            // Every request that these bytes complete has arrived now.
            context.read_clock();
            let input = &tools.buffer[..length];
            if self.is_new {
                let opening = self.wire.opening(input);
                if opening != HttpGuess::Http1 {
                    self.unread.clear();
                    self.unread.extend_from_slice(input);
                    self.consumed = 0;
                    return match opening {
                        HttpGuess::Http2 => Err(DriveStop::Switch),
                        HttpGuess::Unclear | HttpGuess::Http1 => Ok(()),
                    };
                }
                self.is_new = false;
            }
            let fed = self.reader.feed(input, &mut context.last_head);
            fed.map(|(used, step)| {
                self.unread.clear();
                self.consumed = 0;
                self.unread.extend_from_slice(&input[used..]);
                self.pipelined = step != RequestRead::NeedMore && used < length;
                step
            })
        } else {
            return Err(DriveStop::Wait);
        };
        let context = &mut *tools.context;
        match step {
            Ok(RequestRead::NeedMore) => {}
            Ok(RequestRead::Continue) => {
                self.phase = writing(ServerResponse::whole(ResponseKind::Continue))
            }
            Ok(RequestRead::Request(request)) => self.phase = self.serve(request, context),
            Err(refusal) => self.phase = refuse(refusal, context),
        }
        Ok(())
    }

    /// Reads once, behind what is left from before, and returns the number of bytes in all.
    fn read(&mut self, tools: &mut Tools<'_>) -> Result<usize, DriveStop> {
        let carry = self.unread.len() - self.consumed;
        tools.buffer[..carry].copy_from_slice(&self.unread[self.consumed..]);
        let read = self.wire.read(carry, tools)?;
        if read == 0 {
            if carry > 0 || self.reader.in_body() {
                tools.context.tally.on_trouble(Trouble::Incomplete);
            }
            return Err(DriveStop::Close);
        }
        Ok(carry + read)
    }

    /// Logs the request, if any, that will have no response.
    pub(super) fn abandon(&mut self, log: &mut Log) {
        if let Some(line) = &mut self.wire.line {
            line.end(log, None);
        }
    }

    /// Logs a request that is served from `start` to `end`.
    fn log(&mut self, start: Nanos, end: Nanos, context: &mut Context) {
        if let (Some(log), Some(line)) = (&mut context.log, &mut self.wire.line) {
            line.begin(log, start, end);
        }
    }

    /// Serves a whole request.
    fn serve(&mut self, request: Request, context: &mut Context) -> Phase {
        let now = context.now();
        let arrival = self.ready_since.unwrap_or(now);
        context.tally.on_request(arrival);
        let mut answer = ServerResponse {
            head_only: request.head_only,
            ..ServerResponse::with(context.mishaps.draw(), request.persistence)
        };
        self.own = context.reply(self.reader.asked(), &mut answer);
        if let Some(phase) = self.serve_stream(&mut answer, arrival, context) {
            self.log(now, now, context);
            return phase;
        }
        let Some(station) = &mut context.station else {
            self.ready_since = None;
            self.log(now, now, context);
            return self.begin(answer, context);
        };
        let Some(visit) = station.admit(context.stalls.worked(arrival)) else {
            self.ready_since = None;
            self.log(now, now, context);
            return self.begin(answer.rejected(), context);
        };
        let finish = context.stalls.moment(visit.finish);
        self.log(context.stalls.moment(visit.start), finish, context);
        context.set_timer(finish, self.wire.token());
        Phase::Serving { answer, arrival, finish }
    }

    /// Begins a stream of messages, if responses are such.
    fn serve_stream(
        &mut self,
        answer: &mut ServerResponse,
        arrival: Nanos,
        context: &mut Context,
    ) -> Option<Phase> {
        let ResponseKind::Ok(persistence) = answer.kind else {
            return None;
        };
        if answer.reset || answer.head_only || context.batch.is_none() {
            return None;
        }
        answer.kind = ResponseKind::Stream(persistence);
        let key = (self.wire.token(), 0);
        let (live, next) = LiveStream::begin(key, arrival, answer.halved, context)?;
        self.live = Some(Box::new(live));
        let head = context.responses.of(answer.kind).bytes();
        (self.stream_bytes, self.streamed) = (head.to_vec(), 0);
        if let Some(at) = next {
            context.set_timer(at, key.0);
        }
        Some(Phase::Streaming { answer: *answer })
    }

    /// Sends the messages that are due.
    fn stream(&mut self, answer: ServerResponse, tools: &mut Tools<'_>) -> DriveResult {
        let Some(live) = &mut self.live else {
            return Err(DriveStop::Close);
        };
        if self.wire.is_ended() {
            return Err(DriveStop::Close);
        }
        let context = &mut *tools.context;
        if !live.is_whole {
            let out = &mut self.stream_bytes;
            let next = live.take(context, |bytes| put_chunk(bytes, out));
            match next {
                Some(at) => context.set_timer(at, self.wire.token()),
                None if live.is_whole && !answer.halved => out.extend_from_slice(b"0\r\n\r\n"),
                None => {}
            }
        }
        while self.streamed < self.stream_bytes.len() || self.wire.is_pending() {
            match self.wire.send(&self.stream_bytes[self.streamed..], &mut context.tally) {
                Ok(count) => self.streamed += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    let watched = self.wire.watch_write(tools.epoll);
                    watched.map_err(|_| DriveStop::Close)?;
                    return Err(DriveStop::Wait);
                }
                Err(_) => {
                    context.tally.on_trouble(Trouble::Write);
                    return Err(DriveStop::Close);
                }
            }
        }
        self.stream_bytes.clear();
        self.streamed = 0;
        let mut messages = Vec::new();
        live.put_out(&mut messages);
        context.log_messages(&mut messages);
        if !live.is_whole {
            return Err(DriveStop::Wait);
        }
        self.live = None;
        self.end(answer, context)
    }

    /// Begins to answer.
    fn begin(&self, answer: ServerResponse, context: &mut Context) -> Phase {
        let has_body = !answer.head_only && !matches!(answer.kind, ResponseKind::Garbage);
        if context.slow.is_some() && has_body && !answer.reset {
            let begun = context.read_clock();
            return Phase::Trickling { answer, sent: 0, begun };
        }
        writing(answer)
    }

    fn write(&mut self, answer: ServerResponse, sent: usize, tools: &mut Tools<'_>) -> DriveResult {
        if answer.reset {
            self.wire.reset();
            tools.context.tally.on_trouble(Trouble::Reset);
            return Err(DriveStop::Close);
        }
        let responses = &tools.context.responses;
        let length = answer.length(responses.pick(answer.kind, self.own.as_deref()));
        let sent = self.send(answer, sent, length, tools.context)?;
        if sent == length && !self.wire.is_pending() {
            return self.end(answer, tools.context);
        }
        self.phase = Phase::Writing { answer, sent };
        let watched = self.wire.watch_write(tools.epoll);
        watched.map_err(|_| DriveStop::Close)?;
        Err(DriveStop::Wait)
    }

    /// Sends the part of a slow body that is due: the head at once, then `slow` bytes a second.
    fn trickle(
        &mut self,
        answer: ServerResponse,
        sent: usize,
        begun: Nanos,
        context: &mut Context,
    ) -> DriveResult {
        let response = context.responses.pick(answer.kind, self.own.as_deref());
        let (length, head) = (answer.length(response), response.head_length());
        context.read_clock();
        let until = length.min(head.saturating_add(context.due(begun)));
        let sent = self.send(answer, sent, until, context)?;
        if sent == length && !self.wire.is_pending() {
            return self.end(answer, context);
        }
        self.phase = Phase::Trickling { answer, sent, begun };
        let next = context.due_at(begun, (sent + 1).saturating_sub(head));
        let next = next.max(context.now() + TRICKLE_TICK);
        let last = context.due_at(begun, length - head.min(length)).max(context.now() + Nanos(1));
        context.set_timer(next.min(last), self.wire.token());
        Err(DriveStop::Wait)
    }

    /// Sends from `sent` to `until`, as far as it fits, and returns how far that was.
    fn send(
        &mut self,
        answer: ServerResponse,
        mut sent: usize,
        until: usize,
        context: &mut Context,
    ) -> Result<usize, DriveStop> {
        let own = self.own.as_deref();
        let bytes = context.responses.pick(answer.kind, own).bytes();
        while sent < until || self.wire.is_pending() {
            match self.wire.send(&bytes[sent..until], &mut context.tally) {
                Ok(count) => sent += count,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    context.tally.on_trouble(Trouble::Write);
                    return Err(DriveStop::Close);
                }
            }
        }
        Ok(sent)
    }

    /// Ends a response that is sent.
    fn end(&mut self, answer: ServerResponse, context: &mut Context) -> DriveResult {
        if let Some(line) = &mut self.wire.line {
            let written = context.read_clock();
            context.log.iter_mut().for_each(|log| line.end(log, Some(written)));
        }
        match answer.kind {
            ResponseKind::Ok(_) | ResponseKind::Own(_) | ResponseKind::Stream(_)
                if answer.halved =>
            {
                self.wire.cut();
                context.tally.on_trouble(Trouble::Truncate);
            }
            ResponseKind::Garbage => context.tally.on_trouble(Trouble::Garbage),
            ResponseKind::Continue => {}
            ResponseKind::Error(..) => {
                context.tally.responses += 1;
                context.tally.on_trouble(Trouble::Error);
            }
            ResponseKind::Ok(_)
            | ResponseKind::Own(_)
            | ResponseKind::Stream(_)
            | ResponseKind::QueueFull(_)
            | ResponseKind::Refused(_) => {
                context.tally.responses += 1;
            }
        }
        if let ResponseKind::Refused(_) = answer.kind {
            self.wire.end_write(&mut context.tally);
            self.phase = Phase::Draining { dropped: 0 };
            return Ok(());
        }
        if answer.closes() && !self.wire.in_handshake() {
            return Err(DriveStop::Close);
        }
        self.phase = if answer.closes() { Phase::Finishing } else { Phase::Reading };
        Ok(())
    }

    fn finish(&mut self, tools: &mut Tools<'_>) -> DriveResult {
        match self.wire.read(0, tools) {
            _ if !self.wire.in_handshake() => Err(DriveStop::Close),
            Ok(0) => Err(DriveStop::Close),
            Ok(_) => Ok(()),
            Err(pause) => Err(pause),
        }
    }
}

fn writing(answer: ServerResponse) -> Phase {
    Phase::Writing { answer, sent: 0 }
}

fn refuse(refusal: Refusal, context: &mut Context) -> Phase {
    context.tally.on_trouble(match refusal {
        Refusal::Malformed => Trouble::Malformed,
        Refusal::HeadTooLarge => Trouble::HeadTooLarge,
        Refusal::UnknownCoding => Trouble::UnknownCoding,
        Refusal::Version => Trouble::Version,
    });
    writing(ServerResponse::whole(ResponseKind::Refused(refusal)))
}
