//! The client's side of a connection.

mod receive;
mod reply;
mod send;
#[cfg(test)]
mod tests;

use super::ErrorCode;
use super::Violation;
use super::fields::Sections;
use super::flow::{ReceiveWindow, SendWindow, WINDOW_DEFAULT};
use super::frame::{self, PREFACE};
use super::requests::{Blocks, Requests};
use super::settings::{self, Settings};
use super::streams::Streams;
use crate::exchange::{Asked, Exchange, FlightId, Outbox, Room, Standing, StreamEnd, Tell, Told};
use knee_core::measure::Outcome;
use knee_core::spec::{Http2Limits, HttpTarget};
use receive::Reader;
use std::collections::VecDeque;

/// The windows of the connection and of streams unless the user says otherwise: those of h2load, so
/// large that no server waits for an update.
const WINDOW_LARGE: u32 = (1 << 30) - 1;

/// What all HTTP/2 connections of a worker share.
#[derive(Debug)]
pub struct Http2Shared {
    requests: Requests,
    limits: Http2Limits,
    /// The most concurrent streams that the server permits, as a connection learnt last. It holds
    /// for a new connection until its own SETTINGS come (RFC 9113 §6.5.2 sets none until then).
    streams_expected: u32,
    /// A header block as it is put together.
    block: Vec<u8>,
}

impl Http2Shared {
    /// The requests of `target` as fields, and its limits.
    pub fn new(target: &HttpTarget) -> Http2Shared {
        Http2Shared {
            requests: Requests::new(target),
            limits: target.http2,
            streams_expected: Http2Limits::STREAMS_DEFAULT,
            block: Vec::new(),
        }
    }

    /// The window that streams are given.
    fn window(&self) -> u32 {
        self.limits.window_bytes.unwrap_or(WINDOW_LARGE)
    }
}

/// One HTTP/2 connection, from the client's side.
#[derive(Debug)]
pub struct Http2 {
    streams: Streams,
    standing: Standing,
    /// The most concurrent streams that were configured.
    streams_max: u32,
    /// What the server has set; the defaults until it has.
    peer: Settings,
    has_settings: bool,
    /// Streams before this one were opened before it had.
    first_informed: u32,
    reader: Reader,
    sections: Sections,
    blocks: Blocks,
    send_window: SendWindow,
    receive_window: ReceiveWindow,
    /// Streams that may send more of their body, in turn.
    senders: VecDeque<u32>,
    /// The bodies that were filled for their streams.
    bodies: Vec<(u32, Vec<u8>)>,
    /// Frames on streams up to this one that are no longer open may have been under way when they
    /// were given up.
    forgiven: u32,
    /// The last stream that the server's GOAWAY names.
    last_stream: u32,
    /// Answers put into the outbox since it was last empty.
    answers: u32,
    /// Empty DATA frames in a row.
    empties: u32,
    /// The stream that bytes came for which have not been told yet, and how many.
    received: (u32, u64),
}

/// What a call of the pool hands in.
struct Io<'a> {
    shared: &'a mut Http2Shared,
    out: &'a mut Vec<u8>,
    told: &'a mut Tell,
}

impl Exchange for Http2 {
    type Shared = Http2Shared;

    const MULTIPLEXED: bool = true;

    fn established(shared: &mut Http2Shared, out: &mut Outbox) -> Http2 {
        let out = out.bytes();
        out.extend_from_slice(PREFACE);
        settings::put(
            out,
            &[
                (settings::id::ENABLE_PUSH, 0),
                (settings::id::INITIAL_WINDOW_SIZE, shared.window()),
                (
                    settings::id::MAX_HEADER_LIST_SIZE,
                    super::fields::LIST_BYTES_MAX as u32,
                ),
            ],
        );
        frame::put_window_update(out, 0, WINDOW_LARGE - WINDOW_DEFAULT);
        Http2 {
            streams: Streams::new(),
            standing: Standing::Open,
            streams_max: shared.limits.streams().max(1),
            peer: Settings::default(),
            has_settings: false,
            first_informed: u32::MAX,
            reader: Reader::default(),
            sections: Sections::default(),
            blocks: Blocks::new(&shared.requests),
            send_window: SendWindow::new(WINDOW_DEFAULT),
            receive_window: ReceiveWindow::new(WINDOW_LARGE),
            senders: VecDeque::new(),
            bodies: Vec::new(),
            forgiven: 0,
            last_stream: frame::MAX_31,
            answers: 0,
            empties: 0,
            received: (0, 0),
        }
    }

    #[inline]
    fn room(&self, shared: &Http2Shared) -> Room {
        let targets = if self.has_settings {
            self.peer.streams_max.unwrap_or(u32::MAX)
        } else {
            shared.streams_expected
        };
        let limit = match self.standing() {
            Standing::Open => self.streams_max.min(targets),
            Standing::Closing | Standing::Broken => 0,
        };
        Room {
            operations: limit.saturating_sub(self.streams.count()),
            is_targets_limit: self.has_settings && targets < self.streams_max,
        }
    }

    #[inline]
    fn begin(
        &mut self,
        op: FlightId,
        asked: Asked<'_>,
        shared: &mut Http2Shared,
        out: &mut Outbox,
        told: &mut Tell,
    ) {
        let out = out.bytes();
        self.start(op, asked, &mut Io { shared, out, told });
    }

    fn feed(&mut self, bytes: &[u8], shared: &mut Http2Shared, out: &mut Outbox, told: &mut Tell) {
        if self.standing == Standing::Broken {
            return;
        }
        let out = out.bytes();
        let mut io = Io { shared, out, told };
        if let Err(violation) = self.read(bytes, &mut io) {
            self.break_off(violation, &mut io);
        }
        self.tell_received(io.told);
        if self.standing != Standing::Broken {
            if let Some(increment) = self.receive_window.due() {
                frame::put_window_update(io.out, 0, increment);
            }
            self.send_bodies(&mut io);
        }
    }

    fn sent(&mut self, shared: &mut Http2Shared, out: &mut Outbox, told: &mut Tell) {
        self.answers = 0;
        let out = out.bytes();
        self.send_bodies(&mut Io { shared, out, told });
    }

    fn ended(&mut self, end: StreamEnd, told: &mut Tell) {
        for id in self.streams.ids() {
            if let Some(stream) = self.streams.close(id) {
                let outcome = match stream.has_begun {
                    true => Outcome::Truncated,
                    false => Outcome::Closed,
                };
                let op = stream.op;
                told.push(Told::Failed { op, outcome });
            }
        }
        self.senders.clear();
        self.bodies.clear();
        self.standing = end.standing_after(self.standing);
    }

    fn cancel(&mut self, op: FlightId, out: &mut Outbox) -> bool {
        let found = self.streams.iter().find(|stream| stream.op == op);
        if let Some(id) = found.map(|stream| stream.id) {
            self.give_up(id, ErrorCode::CANCEL, out.bytes());
        }
        self.standing != Standing::Broken
    }

    #[inline]
    fn standing(&self) -> Standing {
        match self.standing {
            Standing::Open if self.streams.is_exhausted() => Standing::Closing,
            standing => standing,
        }
    }
}

impl Http2 {
    /// Closes a stream with RST_STREAM. What the server has sent on it by then is passed over.
    fn give_up(&mut self, id: u32, code: ErrorCode, out: &mut Vec<u8>) {
        frame::put_reset(out, id, code);
        self.forgiven = self.forgiven.max(id);
        self.forget(id);
    }

    /// Takes a stream out of everything; its operation.
    fn forget(&mut self, id: u32) -> Option<FlightId> {
        let stream = self.streams.close(id)?;
        self.drop_body(id);
        if stream.is_queued {
            self.senders.retain(|other| *other != id);
        }
        Some(stream.op)
    }

    /// The stream's operation fails as its response breaks a rule; the others go on.
    #[cold]
    fn refuse(&mut self, id: u32, violation: Violation, io: &mut Io) {
        let Some(op) = self.streams.get(id).map(|stream| stream.op) else {
            return;
        };
        self.tell_received(io.told);
        let outcome = Outcome::Malformed;
        io.told.push(Told::Failed { op, outcome });
        io.told.push(Told::Violated(violation.to_string()));
        self.give_up(id, violation.code(), io.out);
    }

    /// The connection cannot go on, and no operation over it.
    #[cold]
    fn break_off(&mut self, violation: Violation, io: &mut Io) {
        self.tell_received(io.told);
        let reason = violation.to_string();
        frame::put_goaway(io.out, 0, violation.code(), &reason);
        self.fail_all(Outcome::Malformed, io.told);
        io.told.push(Told::Violated(reason));
        self.standing = Standing::Broken;
    }

    /// Every operation under way fails.
    fn fail_all(&mut self, outcome: Outcome, told: &mut Tell) {
        for id in self.streams.ids() {
            if let Some(op) = self.forget(id) {
                told.push(Told::Failed { op, outcome });
            }
        }
    }

    /// Tells the bytes that came for a stream and have not been told.
    #[inline]
    fn tell_received(&mut self, told: &mut Tell) {
        let (id, bytes) = std::mem::take(&mut self.received);
        if bytes > 0
            && let Some(stream) = self.streams.get(id)
        {
            let op = stream.op;
            told.push(Told::Received { op, bytes });
        }
    }

    /// So many bytes came for a stream.
    #[inline]
    fn credit(&mut self, id: u32, bytes: usize, told: &mut Tell) {
        if bytes == 0 {
            return;
        }
        if self.received.0 != id {
            let Some(stream) = self.streams.get(id) else {
                return;
            };
            stream.has_begun = true;
            self.tell_received(told);
            self.received.0 = id;
        }
        self.received.1 += bytes as u64;
    }
}
