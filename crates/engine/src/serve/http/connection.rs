//! One connection: reads a request, has it served, writes the response, and so on.

use super::context::Context;
use super::log::{Line, Log};
use super::request::{HEAD_MAX, Refusal, Request, RequestReader, Step};
use super::response::{Answer, ResponseKind};
use super::stats::Trouble;
use crate::sys::epoll::{Epoll, flags};
use crate::sys::socket::Socket;
use knee_core::time::Nanos;
use std::io;

/// Bytes that are read at once. Requests that are split are put together in the same buffer, so it
/// must hold more than a whole head.
pub(super) const BUFFER_SIZE: usize = 64 * 1024;
const _: () = assert!(BUFFER_SIZE > 2 * HEAD_MAX);

/// A refused client may go on sending for so many bytes; closing earlier would reset the connection
/// and could destroy the refusal on its way (RFC 9112 9.6).
const DRAIN_MAX: usize = 1 << 20;

/// How often a trickling body gets its next bytes.
const TRICKLE_TICK: Nanos = Nanos::from_millis(4);

/// What a connection may use while it is driven.
pub(super) struct Tools<'a> {
    pub(super) context: &'a mut Context,
    pub(super) epoll: &'a Epoll,
    /// [`BUFFER_SIZE`] bytes that all connections read into.
    pub(super) buffer: &'a mut [u8],
}

/// What became of a connection that was driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// It waits for an event or its timer.
    Open,
    /// It is to be dropped; where a response ended it at once, with the ideal end of its service.
    Closed(Option<Nanos>),
}

/// One accepted connection.
///
/// It serves one request at a time: a pipelined one is taken up, and arrives at the station, when
/// the one before it has been answered.
#[derive(Debug)]
pub(super) struct Connection {
    socket: Socket,
    token: u64,
    reader: RequestReader,
    /// Bytes read and not yet consumed, from `consumed` on. Mostly empty.
    unread: Vec<u8>,
    consumed: usize,
    /// Whether `unread` may hold more than the begin of a head.
    pipelined: bool,
    /// A read may find something: an event said so and no read has come up short since.
    readable: bool,
    /// Something was ever read: it occupies a worker from then on.
    asked: bool,
    /// The peer has ended its direction: a short read does not mean that nothing follows.
    ended: bool,
    watched: bool,
    watches_write: bool,
    phase: Phase,
    /// The ideal moment since which it has been ready for the next request, as long as nothing has
    /// been waited for since.
    ready_since: Option<Nanos>,
    /// Its part in the log, where requests are logged.
    line: Option<Box<Line>>,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    /// For a request.
    Reading,
    /// For the station.
    Serving {
        answer: Answer,
        arrival: Nanos,
        finish: Nanos,
    },
    /// For room in the socket.
    Writing { answer: Answer, sent: usize },
    /// For time: a slow body.
    Trickling {
        answer: Answer,
        sent: usize,
        begun: Nanos,
    },
    /// For the end of what a refused client still sends.
    Draining { dropped: usize },
}

/// Why driving stops here.
enum Pause {
    /// Nothing can be done before the next event or timer.
    Wait,
    /// The connection is over.
    Close,
}

/// Driving goes on, or pauses.
type Progress = Result<(), Pause>;

impl Connection {
    /// A connection just accepted. `ready_since`: the ideal moment since which a worker was ready
    /// for it, where it had been waiting for one.
    pub(super) fn new(socket: Socket, token: u64, ready_since: Option<Nanos>) -> Connection {
        Connection {
            socket,
            token,
            reader: RequestReader::default(),
            unread: Vec::new(),
            consumed: 0,
            pipelined: false,
            readable: true,
            asked: false,
            ended: false,
            watched: false,
            watches_write: false,
            phase: Phase::Reading,
            ready_since,
            line: None,
        }
    }

    /// Whether it takes a worker up. A connection over which no byte of a request has come does
    /// not: it may never come. Where the accept queue was full when its handshake ended the kernel
    /// has dropped the request, and the client sends it again seconds later, if it is still there.
    pub(super) fn occupies_worker(&self) -> bool {
        self.asked
    }

    /// Something has happened to the socket.
    pub(super) fn on_event(&mut self, event_flags: u32, tools: &mut Tools<'_>) -> Fate {
        use flags::{ERROR, HANG_UP, READ, READ_CLOSED};
        self.readable |= event_flags & (READ | READ_CLOSED | ERROR | HANG_UP) != 0;
        self.ended |= event_flags & (READ_CLOSED | ERROR | HANG_UP) != 0;
        match self.phase {
            Phase::Serving { .. } | Phase::Trickling { .. } => Fate::Open,
            Phase::Reading | Phase::Writing { .. } | Phase::Draining { .. } => self.drive(tools),
        }
    }

    /// The timer that it had set is due.
    pub(super) fn on_timer(&mut self, tools: &mut Tools<'_>) -> Fate {
        if let Phase::Serving {
            answer,
            arrival,
            finish,
        } = self.phase
        {
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
                Phase::Serving { .. } => Err(Pause::Wait),
                Phase::Writing { answer, sent } => self.write(answer, sent, tools),
                Phase::Trickling {
                    answer,
                    sent,
                    begun,
                } => self.trickle(answer, sent, begun, tools.context),
                Phase::Draining { dropped } => self.drain(dropped, tools),
            };
            match progress {
                Ok(()) => {}
                Err(Pause::Close) => {
                    if let Some(log) = &mut tools.context.log {
                        self.abandon(log);
                    }
                    return Fate::Closed(self.ready_since);
                }
                Err(Pause::Wait) => {
                    self.ready_since = None;
                    return self.watch(tools);
                }
            }
        }
    }

    /// Asks epoll for events once there is one to wait for: a connection whose request came with it
    /// and that is closed after its response never needs any.
    fn watch(&mut self, tools: &mut Tools<'_>) -> Fate {
        let reads = matches!(self.phase, Phase::Reading | Phase::Draining { .. });
        if reads && !self.watched {
            self.watched = true;
            let what = flags::READ | flags::READ_CLOSED | flags::EDGE;
            if tools.epoll.add(&self.socket, self.token, what).is_err() {
                tools.context.tally.on_trouble(Trouble::Accept);
                return Fate::Closed(None);
            }
        }
        Fate::Open
    }

    fn read_request(&mut self, tools: &mut Tools<'_>) -> Progress {
        let context = &mut *tools.context;
        let step = if self.pipelined {
            let (reader, rest) = (&mut self.reader, &self.unread[self.consumed..]);
            let fed = reader.feed(rest, &mut context.last_head);
            fed.map(|(used, step)| {
                self.consumed += used;
                self.pipelined = step != Step::NeedMore && self.consumed < self.unread.len();
                step
            })
        } else if self.readable {
            let length = self.read(context, tools.buffer)?;
            // Every request that these bytes complete has arrived now.
            context.read_clock();
            let input = &tools.buffer[..length];
            let fed = self.reader.feed(input, &mut context.last_head);
            fed.map(|(used, step)| {
                self.unread.clear();
                self.consumed = 0;
                self.unread.extend_from_slice(&input[used..]);
                self.pipelined = step != Step::NeedMore && used < length;
                step
            })
        } else {
            return Err(Pause::Wait);
        };
        match step {
            Ok(Step::NeedMore) => {}
            Ok(Step::Continue) => self.phase = writing(Answer::whole(ResponseKind::Continue)),
            Ok(Step::Request(request)) => self.phase = self.serve(request, context),
            Err(refusal) => self.phase = refuse(refusal, context),
        }
        Ok(())
    }

    /// Reads once, behind what is left from before, and says how many bytes that makes.
    fn read(&mut self, context: &mut Context, buffer: &mut [u8]) -> Result<usize, Pause> {
        let carry = self.unread.len() - self.consumed;
        buffer[..carry].copy_from_slice(&self.unread[self.consumed..]);
        let room = buffer.len() - carry;
        match self.receive(context, &mut buffer[carry..]) {
            Ok(0) => {
                if carry > 0 || self.reader.in_body() {
                    context.tally.on_trouble(Trouble::Incomplete);
                }
                Err(Pause::Close)
            }
            Ok(read) => {
                // epoll(7): after a short read the next event tells of whatever comes next.
                self.readable = read == room || self.ended;
                self.asked = true;
                context.tally.bytes_received += read as u64;
                Ok(carry + read)
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Err(Pause::Wait)
            }
            Err(_) => {
                context.tally.on_trouble(Trouble::ClientReset);
                Err(Pause::Close)
            }
        }
    }

    fn receive(&mut self, context: &mut Context, into: &mut [u8]) -> io::Result<usize> {
        if context.log.is_none() {
            return self.socket.read(into);
        }
        let (read, came_ns) = self.socket.receive(into)?;
        let now = context.read_clock();
        if let Some(log) = &mut context.log {
            let new = || Box::new(Line::of(&self.socket, log));
            self.line.get_or_insert_with(new).on_read(now, came_ns);
        }
        Ok(read)
    }

    /// The request that it serves, if any, will have no response.
    pub(super) fn abandon(&mut self, log: &mut Log) {
        if let Some(line) = &mut self.line {
            line.end(log, None);
        }
    }

    /// Logs a request that is served from `start` to `end`.
    fn log(&mut self, start: Nanos, end: Nanos, context: &mut Context) {
        if let (Some(log), Some(line)) = (&mut context.log, &mut self.line) {
            line.begin(log, start, end);
        }
    }

    /// A whole request is there: what happens to it.
    fn serve(&mut self, request: Request, context: &mut Context) -> Phase {
        let now = context.now();
        let arrival = self.ready_since.unwrap_or(now);
        context.tally.on_request(arrival);
        let answer = Answer {
            head_only: request.head_only,
            ..Answer::with(context.mishaps.draw(), request.persistence)
        };
        let Some(station) = &mut context.station else {
            self.ready_since = None;
            self.log(now, now, context);
            return self.begin(answer, context);
        };
        let visit = station.arrive(context.stalls.worked(arrival));
        let finish = context.stalls.moment(visit.finish);
        self.log(context.stalls.moment(visit.start), finish, context);
        context.set_timer(finish, self.token);
        Phase::Serving {
            answer,
            arrival,
            finish,
        }
    }

    /// Begins to answer.
    fn begin(&self, answer: Answer, context: &mut Context) -> Phase {
        let has_body = !answer.head_only && !matches!(answer.kind, ResponseKind::Garbage);
        if context.slow.is_some() && has_body && !answer.reset {
            let begun = context.read_clock();
            return Phase::Trickling {
                answer,
                sent: 0,
                begun,
            };
        }
        writing(answer)
    }

    fn write(&mut self, answer: Answer, sent: usize, tools: &mut Tools<'_>) -> Progress {
        if answer.reset {
            // Where that fails the connection is closed in order, and the peer sees no response.
            let _ = self.socket.set_reset_on_close();
            tools.context.tally.on_trouble(Trouble::Reset);
            return Err(Pause::Close);
        }
        let length = answer.length(tools.context.responses.of(answer.kind));
        let sent = self.send(answer, sent, length, tools.context)?;
        if sent == length {
            return self.end(answer, tools.context);
        }
        self.phase = Phase::Writing { answer, sent };
        if !self.watches_write {
            self.watches_write = true;
            let what = flags::READ | flags::READ_CLOSED | flags::WRITE | flags::EDGE;
            let watched = match self.watched {
                true => tools.epoll.modify(&self.socket, self.token, what),
                false => tools.epoll.add(&self.socket, self.token, what),
            };
            self.watched = true;
            watched.map_err(|_| Pause::Close)?;
        }
        Err(Pause::Wait)
    }

    /// Sends what time permits of a slow body: all of the head at once, then `slow` bytes a second.
    fn trickle(
        &mut self,
        answer: Answer,
        sent: usize,
        begun: Nanos,
        context: &mut Context,
    ) -> Progress {
        let response = context.responses.of(answer.kind);
        let (length, head) = (answer.length(response), response.head_length());
        let bytes_per_s = u128::from(context.slow.unwrap_or(u64::MAX));
        let elapsed = context.read_clock() - begun;
        let due = u128::from(elapsed.0) * bytes_per_s / 1_000_000_000;
        let until = length.min(head.saturating_add(usize::try_from(due).unwrap_or(usize::MAX)));
        let sent = self.send(answer, sent, until, context)?;
        if sent == length {
            return self.end(answer, context);
        }
        self.phase = Phase::Trickling {
            answer,
            sent,
            begun,
        };
        // When so many bytes of the body are due: rounded up, so that they are.
        let moment = |bytes: usize| {
            let ns = (bytes as u128 * 1_000_000_000).div_ceil(bytes_per_s);
            begun + Nanos(u64::try_from(ns).unwrap_or(u64::MAX))
        };
        let next = moment((sent + 1).saturating_sub(head)).max(context.now() + TRICKLE_TICK);
        let last = moment(length - head.min(length)).max(context.now() + Nanos(1));
        context.set_timer(next.min(last), self.token);
        Err(Pause::Wait)
    }

    /// Sends from `sent` to `until`, as far as it fits, and says how far that was.
    fn send(
        &self,
        answer: Answer,
        mut sent: usize,
        until: usize,
        context: &mut Context,
    ) -> Result<usize, Pause> {
        while sent < until {
            let bytes = &context.responses.of(answer.kind).bytes()[sent..until];
            match self.socket.send(bytes) {
                Ok(count) => {
                    sent += count;
                    context.tally.bytes_sent += count as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => {
                    context.tally.on_trouble(Trouble::Write);
                    return Err(Pause::Close);
                }
            }
        }
        Ok(sent)
    }

    /// All that was to be sent is sent.
    fn end(&mut self, answer: Answer, context: &mut Context) -> Progress {
        if let Some(line) = &mut self.line {
            let written = context.read_clock();
            context
                .log
                .iter_mut()
                .for_each(|log| line.end(log, Some(written)));
        }
        match answer.kind {
            ResponseKind::Ok(_) if answer.halved => context.tally.on_trouble(Trouble::Truncate),
            ResponseKind::Garbage => context.tally.on_trouble(Trouble::Garbage),
            ResponseKind::Continue => {}
            ResponseKind::Error(..) => {
                context.tally.responses += 1;
                context.tally.on_trouble(Trouble::Error);
            }
            ResponseKind::Ok(_) | ResponseKind::Refused(_) => context.tally.responses += 1,
        }
        if let ResponseKind::Refused(_) = answer.kind {
            let _ = self.socket.shutdown_write();
            self.phase = Phase::Draining { dropped: 0 };
            return Ok(());
        }
        if answer.closes() {
            return Err(Pause::Close);
        }
        self.phase = Phase::Reading;
        Ok(())
    }

    fn drain(&mut self, dropped: usize, tools: &mut Tools<'_>) -> Progress {
        if !self.readable {
            return Err(Pause::Wait);
        }
        match self.socket.read(tools.buffer) {
            Ok(read) if read > 0 && dropped + read < DRAIN_MAX => {
                let dropped = dropped + read;
                self.phase = Phase::Draining { dropped };
                Ok(())
            }
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                self.readable = false;
                Err(Pause::Wait)
            }
            Ok(_) | Err(_) => Err(Pause::Close),
        }
    }
}

fn writing(answer: Answer) -> Phase {
    Phase::Writing { answer, sent: 0 }
}

fn refuse(refusal: Refusal, context: &mut Context) -> Phase {
    context.tally.on_trouble(match refusal {
        Refusal::Malformed => Trouble::Malformed,
        Refusal::HeadTooLarge => Trouble::HeadTooLarge,
        Refusal::UnknownCoding => Trouble::UnknownCoding,
        Refusal::Version => Trouble::Version,
    });
    writing(Answer::whole(ResponseKind::Refused(refusal)))
}
