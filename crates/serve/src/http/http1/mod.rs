//! A connection with HTTP/1.1: reads a request, has it served, writes the response, and so on.

mod send;

use super::batch::StreamKey;
use super::connection::{DriveResult, DriveStop, Fate, Tools};
use super::context::{Context, QueueEntry};
use super::log::{Log, LogEntry};
use super::queue::QueueOutcome;
use super::request::{Refusal, Request, RequestRead, RequestReader};
use super::response::{LiveStream, Response, ResponseKind, ServerResponse};
use super::station::Visit;
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
    /// The log's entry of the request that is served.
    entry: Option<LogEntry>,
    /// The application's response to the request that is served.
    app_response: Option<Box<Response>>,
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
    /// For its turn and the end of its service, in a managed queue.
    Queued { answer: ServerResponse },
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
            entry: None,
            app_response: None,
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
            Phase::Serving { .. } | Phase::Trickling { .. } => Fate::Open,
            Phase::Queued { .. } => {
                // A request that leaves the queue gets no response; others are served in vain.
                if self.wire.ended && tools.context.leave(self.key()) {
                    return self.close(tools);
                }
                Fate::Open
            }
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
            self.phase = self.served(answer, arrival, finish, tools.context);
        }
        self.drive(tools)
    }

    /// Handles the end of its time in the queue.
    pub(super) fn on_queue_outcome(
        &mut self,
        outcome: QueueOutcome,
        tools: &mut Tools<'_>,
    ) -> Fate {
        let Phase::Queued { answer } = self.phase else {
            return Fate::Open;
        };
        let context = &mut *tools.context;
        self.phase = match outcome {
            QueueOutcome::Served(Visit { arrival, start, finish }) => {
                self.log(start, finish, context);
                self.served(answer, arrival, finish, context)
            }
            QueueOutcome::Dropped => {
                let now = context.now();
                self.log(now, now, context);
                self.begin(answer.rejected(), context)
            }
        };
        self.drive(tools)
    }

    /// Begins to answer a request that was served.
    fn served(
        &mut self,
        answer: ServerResponse,
        arrival: Nanos,
        finish: Nanos,
        context: &mut Context,
    ) -> Phase {
        context.tally.sojourn.record(finish - arrival);
        let late = context.read_clock() - finish;
        context.tally.write_lateness.record(late);
        self.ready_since = Some(finish);
        self.begin(answer, context)
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
                Phase::Serving { .. } | Phase::Queued { .. } => Err(DriveStop::Wait),
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
        if let Some(log) = &mut tools.context.log {
            self.abandon(log);
        }
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
        self.entry.take().into_iter().for_each(|entry| log.push(entry));
    }

    /// Logs a request that is served from `start` to `end`.
    fn log(&mut self, start: Nanos, end: Nanos, context: &mut Context) {
        self.entry = self.wire.log_entry(start, end, context);
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
        self.app_response = context.reply(self.reader.app_request(), &mut answer);
        if let Some(phase) = self.serve_stream(&mut answer, arrival, context) {
            self.log(now, now, context);
            return phase;
        }
        let queued = context.enter_queue(self.key(), arrival, self.reader.app_request());
        if queued == Some(QueueEntry::Waits) {
            return Phase::Queued { answer };
        }
        let Some(station) = &mut context.station else {
            self.ready_since = None;
            self.log(now, now, context);
            let is_rejected = queued == Some(QueueEntry::Rejected);
            let answer = if is_rejected { answer.rejected() } else { answer };
            return self.begin(answer, context);
        };
        let visit = station.arrive(context.stalls.worked(arrival));
        let finish = context.stalls.moment(visit.finish);
        self.log(context.stalls.moment(visit.start), finish, context);
        context.set_timer(finish, self.wire.token);
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
        let key = (self.wire.token, 0);
        let (live, next) = LiveStream::begin(key, arrival, answer.halved, context)?;
        self.live = Some(Box::new(live));
        let head = &context.responses.of(answer.kind).bytes;
        (self.stream_bytes, self.streamed) = (head.to_vec(), 0);
        if let Some(at) = next {
            context.set_timer(at, key.0);
        }
        Some(Phase::Streaming { answer: *answer })
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
