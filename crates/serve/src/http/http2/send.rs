//! Frames to the client: control frames and heads at once, bodies in turn, one frame of each. The
//! client's windows, its socket and the speed of slow bodies limit them.

use super::super::context::Context;
use super::super::drive::{DriveStop, TRICKLE_TICK, Tools};
use super::super::log::{LogEntry, SentMessage};
use super::super::response::ResponseKind;
use super::super::stats::Trouble;
use super::Http2ServerConnection;
use super::stream::StreamPhase;
use knee_engine::exchange::http2::frame::{self, flag, kind};
use knee_engine::exchange::http2::{ErrorCode, hpack};
use knee_load::time::Nanos;
use std::collections::VecDeque;

/// Unsent bytes beyond which no body frame is put out.
const OUT_TARGET: usize = 64 * 1024;

/// Largest frame of a body, so that others have their turn.
const DATA_MAX: usize = 16 * 1024;

/// Bytes to send, in order.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) bytes: Vec<u8>,
    /// Sent bytes of them.
    sent: usize,
    /// Bytes sent before these.
    sent_before: u64,
    /// Responses that are put out whole, with their ends, counted from the connection's first byte.
    complete: VecDeque<Complete>,
    /// Messages of streams that are put out and not logged.
    messages: Vec<SentMessage>,
    /// A header block was put out.
    has_block: bool,
}

#[derive(Debug)]
struct Complete {
    end: u64,
    kind: ResponseKind,
    entry: Option<LogEntry>,
}

impl Outgoing {
    /// Bytes that wait to be sent.
    pub(super) fn held_back(&self) -> usize {
        self.bytes.len() - self.sent
    }

    /// Appends the head of a response.
    pub(super) fn put_head(&mut self, id: u32, ends: bool, block: &[u8], frame_max: u32) {
        if self.has_block {
            return frame::put_headers(&mut self.bytes, id, ends, block, frame_max);
        }
        // No dynamic table is used: it is set to 0 before the client can limit it (RFC 7541 4.2).
        self.has_block = true;
        let mut first = Vec::with_capacity(block.len() + 1);
        hpack::put_table_size(&mut first, 0);
        first.extend_from_slice(block);
        frame::put_headers(&mut self.bytes, id, ends, &first, frame_max);
    }

    /// Notes that the last bytes end a response.
    pub(super) fn complete(&mut self, kind: ResponseKind, entry: Option<LogEntry>) {
        let end = self.sent_before + self.bytes.len() as u64;
        self.complete.push_back(Complete { end, kind, entry });
    }

    /// Counts bytes that the kernel has taken.
    fn on_sent(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.sent_before += self.sent as u64;
            self.sent = 0;
            self.bytes.clear();
        } else if self.sent >= OUT_TARGET {
            // To a client that never catches up.
            self.sent_before += self.sent as u64;
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
    }

    /// Counts and logs responses that the kernel has taken whole.
    fn note_sent_responses(&mut self, context: &mut Context) {
        context.log_messages(&mut self.messages);
        let sent = self.sent_before + self.sent as u64;
        let is_over = |first: Option<&Complete>| first.is_some_and(|c| c.end <= sent);
        if !is_over(self.complete.front()) {
            return;
        }
        let written = context.log.is_some().then(|| context.read_clock());
        while is_over(self.complete.front())
            && let Some(complete) = self.complete.pop_front()
        {
            context.tally.on_response(complete.kind);
            context.log_request(complete.entry.map(|entry| LogEntry { written, ..entry }));
        }
    }

    /// Logs responses that will not be sent.
    pub(super) fn abandon(&mut self, context: &mut Context) {
        self.complete.drain(..).for_each(|complete| context.log_request(complete.entry));
    }
}

impl Http2ServerConnection {
    /// Sends as much as possible. Returns whether nothing is held back.
    pub(super) fn write(&mut self, tools: &mut Tools<'_>) -> Result<bool, DriveStop> {
        loop {
            self.put_bodies(tools.context);
            let context = &mut *tools.context;
            if self.out.held_back() == 0 && !self.wire.is_pending() {
                self.out.note_sent_responses(context);
                return Ok(true);
            }
            let bytes = &self.out.bytes[self.out.sent..];
            match self.wire.send(bytes, &mut context.tally)? {
                Some(count) => self.out.on_sent(count),
                None => {
                    return match self.wire.wait_for_room(tools.epoll) {
                        DriveStop::Wait => Ok(false),
                        stop => Err(stop),
                    };
                }
            }
            if !self.wire.is_pending() {
                self.out.note_sent_responses(context);
            }
        }
    }

    /// Puts out frames of bodies, one of each stream in turn.
    fn put_bodies(&mut self, context: &mut Context) {
        while self.out.held_back() < OUT_TARGET
            && let Some((id, stream)) = self.streams.next()
        {
            let StreamPhase::Sending { sent, begun } = stream.stage else {
                continue;
            };
            let answer = stream.service.answer;
            let (body, is_open) = match &stream.live {
                Some(live) => (live.bytes.as_slice(), live.is_open()),
                None => (stream.service.response(&context.responses).body(), false),
            };
            let is_halved = answer.halved && stream.live.is_none();
            let until = if is_halved { body.len() / 2 } else { body.len() };
            if is_open && until == sent {
                continue;
            }
            if until > sent && self.core.send_window.left() == 0 {
                self.streams.put_back(id);
                return;
            }
            let windows = self.core.send_window.left().min(stream.send_window.left());
            let permitted = windows.min(DATA_MAX).min(self.core.peer.frame_bytes as usize);
            let due = begun.map_or(usize::MAX, |begun| context.due(begun).saturating_sub(sent));
            let length = (until - sent).min(permitted).min(due);
            let after = sent + length;
            if length == 0 && until > sent {
                // The client makes room, or time passes.
                if let (0, Some(begun)) = (due, begun) {
                    self.wait_for_time(begun, sent, until, context);
                }
                continue;
            }
            let has_trailers =
                after == until && stream.live.as_ref().is_some_and(|live| live.trailers.is_some());
            let ends = after == until && !answer.halved && !is_open && !has_trailers;
            let flags = if ends { flag::END_STREAM } else { 0 };
            if length > 0 || !has_trailers {
                frame::put(&mut self.out.bytes, kind::DATA, flags, id, &body[sent..after]);
            }
            stream.send_window.take(length);
            self.core.send_window.take(length);
            stream.stage = StreamPhase::Sending { sent: after, begun };
            if after == until
                && let Some(live) = &mut stream.live
            {
                if let Some(stream) = &mut live.stream {
                    stream.put_out(&mut self.out.messages);
                }
                if is_open {
                    live.bytes.clear();
                    stream.stage = StreamPhase::Sending { sent: 0, begun };
                    continue;
                }
            }
            match (after == until, answer.halved) {
                (true, true) => {
                    context.tally.on_trouble(Trouble::Truncate);
                    self.reset(id, ErrorCode::INTERNAL_ERROR, context);
                }
                (true, false) => self.end_body(id),
                (false, _) => self.streams.resume(id),
            }
        }
    }

    /// All of a body is put out: the trailers follow, if any.
    fn end_body(&mut self, id: u32) {
        let live = self.streams.find(id).and_then(|stream| stream.live.as_mut());
        if let Some(block) = live.and_then(|live| live.trailers.take()) {
            self.out.put_head(id, true, &block, self.core.peer.frame_bytes);
        }
        self.complete(id);
    }

    /// Sets the timer for the next bytes of a slow body.
    fn wait_for_time(&mut self, begun: Nanos, sent: usize, until: usize, context: &mut Context) {
        let next = context.due_at(begun, sent + 1).max(context.now() + TRICKLE_TICK);
        let at = next.min(context.due_at(begun, until).max(context.now() + Nanos(1)));
        if self.tick.is_none_or(|tick| at < tick) {
            self.tick = Some(at);
            context.set_timer(at, self.wire.token);
        }
    }
}
