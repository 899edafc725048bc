//! How a connection with HTTP/1.1 sends its responses.

use super::super::batch::put_chunk;
use super::super::context::Context;
use super::super::drive::{DriveResult, DriveStop, TRICKLE_TICK, Tools};
use super::super::response::ResponseKind;
use super::super::stats::Trouble;
use super::{Http1ServerConnection, Phase};
use knee_load::time::Nanos;

impl Http1ServerConnection {
    /// Sends the messages that are due.
    pub(super) fn stream(&mut self, tools: &mut Tools<'_>) -> DriveResult {
        let Some(live) = &mut self.live else {
            return Err(DriveStop::Close);
        };
        if self.wire.ended {
            return Err(DriveStop::Close);
        }
        let context = &mut *tools.context;
        if !live.is_whole {
            let out = &mut self.stream_bytes;
            let next = live.take(context, |bytes| put_chunk(bytes, out));
            match next {
                Some(at) => context.set_timer(at, self.wire.token),
                None if live.is_whole && !self.service.answer.halved => {
                    out.extend_from_slice(b"0\r\n\r\n")
                }
                None => {}
            }
        }
        while self.streamed < self.stream_bytes.len() || self.wire.is_pending() {
            match self.wire.send(&self.stream_bytes[self.streamed..], &mut context.tally)? {
                Some(count) => self.streamed += count,
                None => return Err(self.wire.wait_for_room(tools.epoll)),
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
        self.end(context)
    }

    /// Writes the response from `sent` on.
    pub(super) fn write(&mut self, sent: usize, tools: &mut Tools<'_>) -> DriveResult {
        let answer = self.service.answer;
        if answer.reset {
            self.wire.reset();
            tools.context.tally.on_trouble(Trouble::Reset);
            return Err(DriveStop::Close);
        }
        let length = answer.length(self.service.response(&tools.context.responses));
        let sent = self.send(sent, length, tools.context)?;
        if sent == length && !self.wire.is_pending() {
            return self.end(tools.context);
        }
        self.phase = Phase::Writing { sent };
        Err(self.wire.wait_for_room(tools.epoll))
    }

    /// Sends the part of a slow body that is due: the head at once, then `slow` bytes a second.
    pub(super) fn trickle(
        &mut self,
        sent: usize,
        begun: Nanos,
        context: &mut Context,
    ) -> DriveResult {
        let response = self.service.response(&context.responses);
        let (length, head) = (self.service.answer.length(response), response.head_length);
        context.read_clock();
        let until = length.min(head.saturating_add(context.due(begun)));
        let sent = self.send(sent, until, context)?;
        if sent == length && !self.wire.is_pending() {
            return self.end(context);
        }
        self.phase = Phase::Trickling { sent, begun };
        let next = context.due_at(begun, (sent + 1).saturating_sub(head));
        let next = next.max(context.now() + TRICKLE_TICK);
        let last = context.due_at(begun, length - head.min(length)).max(context.now() + Nanos(1));
        context.set_timer(next.min(last), self.wire.token);
        Err(DriveStop::Wait)
    }

    /// Sends from `sent` to `until`, as far as it fits, and returns how far that was.
    fn send(
        &mut self,
        mut sent: usize,
        until: usize,
        context: &mut Context,
    ) -> Result<usize, DriveStop> {
        let bytes = &self.service.response(&context.responses).bytes;
        while sent < until || self.wire.is_pending() {
            match self.wire.send(&bytes[sent..until], &mut context.tally)? {
                Some(count) => sent += count,
                None => break,
            }
        }
        Ok(sent)
    }

    /// Ends a response that is sent.
    fn end(&mut self, context: &mut Context) -> DriveResult {
        self.service.log_written(context);
        let answer = self.service.answer;
        match answer.kind {
            ResponseKind::Ok(_) | ResponseKind::Own(_) | ResponseKind::Stream(_)
                if answer.halved =>
            {
                self.wire.cut();
                context.tally.on_trouble(Trouble::Truncate);
            }
            ResponseKind::Garbage => context.tally.on_trouble(Trouble::Garbage),
            ResponseKind::Continue => {}
            kind => context.tally.on_response(kind),
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

    pub(super) fn finish(&mut self, tools: &mut Tools<'_>) -> DriveResult {
        match self.wire.read(0, tools) {
            _ if !self.wire.in_handshake() => Err(DriveStop::Close),
            Ok(0) => Err(DriveStop::Close),
            Ok(_) => Ok(()),
            Err(pause) => Err(pause),
        }
    }
}
