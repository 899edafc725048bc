//! A connection with HTTP/1.1: reads a request, has it served, writes the response, and so on.

mod send;

use super::batch::StreamKey;
use super::context::Context;
use super::drive::{DriveResult, DriveStop, Fate, Tools};
use super::live_stream::LiveStream;
use super::queue::QueueOutcome;
use super::request::{Refusal, Request, RequestRead, RequestReader};
use super::response::ResponseKind;
use super::service::{RequestService, ServicePhase, record_service};
use super::stats::Trouble;
use super::wire::{HttpGuess, Wire};
use knee_load::time::Nanos;

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
    /// The service of the latest request.
    pub(super) service: RequestService,
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
    /// For the end of a service.
    InService(ServicePhase),
    /// For room in the socket.
    Writing { sent: usize },
    /// For time: a slow body.
    Trickling { sent: usize, begun: Nanos },
    /// For the next message of a stream, or for room in the socket.
    Streaming,
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
            service: RequestService::default(),
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
    pub(super) fn has_request_bytes(&self) -> bool {
        self.wire.has_request_bytes
    }

    /// Token of its timers and events.
    pub(super) fn token(&self) -> u64 {
        self.wire.token
    }

    /// Handles an event of the socket.
    pub(super) fn on_event(&mut self, event_flags: u32, tools: &mut Tools<'_>) -> Fate {
        self.wire.on_event(event_flags);
        match self.phase {
            Phase::InService(ServicePhase::Serving { .. }) | Phase::Trickling { .. } => Fate::Open,
            Phase::InService(ServicePhase::Queued) => {
                // A request that leaves the queue gets no response; others are served in vain.
                if self.wire.ended && tools.context.leave(self.key()) {
                    return self.close(tools);
                }
                Fate::Open
            }
            Phase::Reading
            | Phase::Writing { .. }
            | Phase::Streaming
            | Phase::Draining { .. }
            | Phase::Finishing => self.drive(tools),
        }
    }

    /// Handles the timer that it had set.
    pub(super) fn on_timer(&mut self, tools: &mut Tools<'_>) -> Fate {
        if let Phase::InService(ServicePhase::Serving { arrival, finish }) = self.phase {
            record_service(arrival, finish, tools.context);
            self.ready_since = Some(finish);
            self.phase = self.begin(tools.context);
        }
        self.drive(tools)
    }

    /// Handles the end of its time in the queue.
    pub(super) fn on_queue_outcome(
        &mut self,
        outcome: QueueOutcome,
        tools: &mut Tools<'_>,
    ) -> Fate {
        let Phase::InService(ServicePhase::Queued) = self.phase else {
            return Fate::Open;
        };
        let finish = self.service.on_queue_outcome(outcome, self.wire.log(), tools.context);
        self.ready_since = finish.or(self.ready_since);
        self.phase = self.begin(tools.context);
        self.drive(tools)
    }

    /// Key of the request in shared state.
    fn key(&self) -> StreamKey {
        (self.wire.token, 0)
    }

    /// Reads and writes as far as possible without waiting.
    pub(super) fn drive(&mut self, tools: &mut Tools<'_>) -> Fate {
        loop {
            let progress = match self.phase {
                Phase::Reading => self.read_request(tools),
                Phase::InService(_) => Err(DriveStop::Wait),
                Phase::Writing { sent } => self.write(sent, tools),
                Phase::Trickling { sent, begun } => self.trickle(sent, begun, tools.context),
                Phase::Streaming => self.stream(tools),
                Phase::Draining { dropped } => {
                    let drained = self.wire.drain(dropped, tools.buffer);
                    drained.map(|dropped| self.phase = Phase::Draining { dropped })
                }
                Phase::Finishing => self.finish(tools),
            };
            match progress {
                Ok(()) => {}
                Err(DriveStop::Close) => return self.close(tools),
                Err(DriveStop::Wait) => {
                    self.ready_since = None;
                    return self.watch(tools);
                }
                Err(DriveStop::Switch) => return Fate::Switched,
            }
        }
    }

    /// Ends the connection.
    fn close(&mut self, tools: &mut Tools<'_>) -> Fate {
        if self.live.take().is_some() {
            tools.context.leave(self.key());
        }
        self.service.log_lost(tools.context);
        self.wire.end(&mut tools.context.tally);
        Fate::Closed(self.ready_since)
    }

    /// Flushes pending bytes and waits for events.
    fn watch(&mut self, tools: &mut Tools<'_>) -> Fate {
        if self.wire.flush(&mut tools.context.tally).is_err() {
            tools.context.tally.on_trouble(Trouble::Write);
            return Fate::Closed(None);
        }
        let reads = !matches!(
            self.phase,
            Phase::InService(ServicePhase::Serving { .. })
                | Phase::Writing { .. }
                | Phase::Trickling { .. }
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
        } else if self.wire.readable {
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
            Ok(RequestRead::Continue) => self.write_only(ResponseKind::Continue),
            Ok(RequestRead::Request(request)) => self.phase = self.serve(request, context),
            Err(refusal) => {
                context.tally.on_trouble(match refusal {
                    Refusal::Malformed => Trouble::Malformed,
                    Refusal::HeadTooLarge => Trouble::HeadTooLarge,
                    Refusal::UnknownCoding => Trouble::UnknownCoding,
                    Refusal::Version => Trouble::Version,
                });
                self.write_only(ResponseKind::Refused(refusal));
            }
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

    /// Writes a response that no service precedes.
    fn write_only(&mut self, kind: ResponseKind) {
        self.service = RequestService::of(kind);
        self.phase = Phase::Writing { sent: 0 };
    }

    /// Serves a whole request.
    fn serve(&mut self, request: Request, context: &mut Context) -> Phase {
        let arrival = self.ready_since.unwrap_or(context.now());
        let (key, content) = (self.key(), self.reader.app_request());
        self.service = RequestService::new(request, arrival, content, context);
        let log = self.wire.log();
        if let Some((live, next)) = self.service.begin_stream(key, arrival, log, context) {
            self.live = Some(Box::new(live));
            let head = &context.responses.of(self.service.answer.kind).bytes;
            (self.stream_bytes, self.streamed) = (head.to_vec(), 0);
            if let Some(at) = next {
                context.set_timer(at, self.wire.token);
            }
            return Phase::Streaming;
        }
        let log = self.wire.log();
        match self.service.begin(key, arrival, content, log, context) {
            Some(phase) => Phase::InService(phase),
            None => {
                self.ready_since = None;
                self.begin(context)
            }
        }
    }

    /// Begins to answer.
    fn begin(&self, context: &mut Context) -> Phase {
        let answer = self.service.answer;
        let has_body = !answer.head_only && !matches!(answer.kind, ResponseKind::Garbage);
        if context.slow.is_some() && has_body && !answer.reset {
            let begun = context.read_clock();
            return Phase::Trickling { sent: 0, begun };
        }
        Phase::Writing { sent: 0 }
    }
}
