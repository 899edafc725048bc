//! What comes: frames, and what each of them means for its stream or for the connection.

use super::super::context::Context;
use super::super::response::ResponseKind;
use super::super::stats::Trouble;
use super::stream::{Stage, Stream};
use super::{Http2, Phase};
use crate::exchange::http2::frame::{
    self, FRAME_BYTES_DEFAULT, FrameHead, MAX_31, PREFACE, flag, kind,
};
use crate::exchange::http2::settings;
use crate::exchange::http2::{ErrorCode, Violation};

/// A header block may come in so many frames.
const BLOCK_FRAMES_MAX: u32 = 128;
/// And have so many bytes.
const BLOCK_BYTES_MAX: usize = 64 << 10;

/// A header block that goes on.
#[derive(Debug)]
pub(super) struct Block {
    stream: u32,
    ends_stream: bool,
    frames: u32,
    bytes: Vec<u8>,
}

impl Http2 {
    /// Takes all frames that are whole, and says how many bytes they had.
    ///
    /// # Errors
    /// What the client must not do: the connection cannot go on.
    pub(super) fn take_frames(
        &mut self,
        input: &[u8],
        context: &mut Context,
    ) -> Result<usize, Violation> {
        let mut rest = input;
        if !self.is_greeted {
            if !PREFACE.starts_with(&rest[..rest.len().min(PREFACE.len())]) {
                return Err(Violation::Preface);
            }
            let Some(after) = rest.strip_prefix(PREFACE) else {
                // It is cut: what another version has read of it is no longer apart.
                return Ok(0);
            };
            (self.is_greeted, rest) = (true, after);
        }
        while let Some((head, after)) = FrameHead::read(rest) {
            self.check(head)?;
            let Some((payload, next)) = after.split_at_checked(head.length as usize) else {
                break;
            };
            self.take(head, payload, context)?;
            rest = next;
            if self.phase != Phase::Open {
                return Ok(input.len());
            }
        }
        Ok(input.len() - rest.len())
    }

    /// What can be said of a frame by its head alone.
    fn check(&self, head: FrameHead) -> Result<(), Violation> {
        if !self.has_settings && (head.kind != kind::SETTINGS || head.has(flag::ACK)) {
            return Err(Violation::Preface);
        }
        if head.length > FRAME_BYTES_DEFAULT {
            return Err(Violation::FrameTooLarge);
        }
        let awaited = self.block.as_ref().map(|block| block.stream);
        match (awaited, head.kind == kind::CONTINUATION) {
            (Some(stream), true) if stream == head.stream => Ok(()),
            (Some(_), _) => Err(Violation::BlockInterrupted),
            (None, true) => Err(Violation::ContinuationAlone),
            (None, false) => Ok(()),
        }
    }

    fn take(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        match head.kind {
            kind::DATA => self.on_data(head, payload, context),
            kind::HEADERS => self.on_headers(head, payload, context),
            kind::CONTINUATION => self.on_continuation(head, payload, context),
            kind::PRIORITY => {
                self.check_stream(head, false)?;
                match payload.len() {
                    5 => Ok(()),
                    _ => Err(Violation::FrameLength),
                }
            }
            kind::RST_STREAM => {
                self.check_stream(head, true)?;
                if payload.len() != 4 {
                    return Err(Violation::FrameLength);
                }
                if self.streams.find(head.stream).is_some() {
                    context.tally.http2.reset_by_clients += 1;
                    self.forget(head.stream, context);
                }
                Ok(())
            }
            kind::SETTINGS => self.on_settings(head, payload),
            kind::PUSH_PROMISE => Err(Violation::PushPromise),
            kind::PING => self.on_ping(head, payload),
            kind::GOAWAY => match (head.stream, payload.len()) {
                (0, 8..) => Ok(()),
                (0, _) => Err(Violation::GoawayLength),
                _ => Err(Violation::NotOnStream),
            },
            kind::WINDOW_UPDATE => self.on_window_update(head, payload, context),
            // What is not known is passed over (RFC 9113 4.1).
            _ => Ok(()),
        }
    }

    /// A frame of a stream has to name one, of the client's numbers, and one that was opened where
    /// it has to be.
    fn check_stream(&self, head: FrameHead, has_begun: bool) -> Result<(), Violation> {
        match head.stream {
            0 => Err(Violation::OnStreamZero),
            stream if stream % 2 == 0 => Err(Violation::ServerStream),
            stream if has_begun && stream > self.last_stream => Err(Violation::IdleStream),
            _ => Ok(()),
        }
    }

    fn on_data(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        self.check_stream(head, true)?;
        if !self.receive_window.take(head.length) {
            return Err(Violation::WindowExceeded);
        }
        if let Some(increment) = self.receive_window.due() {
            frame::put_window_update(self.out.bytes(), 0, increment);
        }
        let content = unpadded(head, payload)?;
        let id = head.stream;
        let Some(stream) = self.streams.find(id) else {
            // It was reset; the client did not know yet.
            return Ok(());
        };
        if !matches!(stream.stage, Stage::Receiving) {
            context.tally.on_trouble(Trouble::Malformed);
            self.reset(id, ErrorCode::STREAM_CLOSED, context);
            return Ok(());
        }
        if !stream.receive_window.take(head.length) {
            context.tally.on_trouble(Trouble::Malformed);
            self.reset(id, ErrorCode::FLOW_CONTROL_ERROR, context);
            return Ok(());
        }
        stream.received += content.len() as u64;
        if let Some(asked) = &mut stream.asked {
            asked.add_body(content);
        }
        let ends = head.has(flag::END_STREAM);
        if let Some(increment) = stream.receive_window.due().filter(|_| !ends) {
            frame::put_window_update(self.out.bytes(), id, increment);
        }
        if ends {
            self.end_request(id, context);
        }
        Ok(())
    }

    fn on_headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        self.check_stream(head, false)?;
        let mut fragment = unpadded(head, payload)?;
        if head.has(flag::PRIORITY) {
            fragment = fragment.get(5..).ok_or(Violation::FrameCut)?;
        }
        let (stream, ends_stream) = (head.stream, head.has(flag::END_STREAM));
        if head.has(flag::END_HEADERS) {
            return self.on_section(stream, ends_stream, fragment, context);
        }
        self.block = Some(Block {
            stream,
            ends_stream,
            frames: 1,
            bytes: fragment.to_vec(),
        });
        Ok(())
    }

    fn on_continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        let Some(block) = &mut self.block else {
            return Err(Violation::ContinuationAlone);
        };
        block.frames += 1;
        block.bytes.extend_from_slice(payload);
        if block.frames > BLOCK_FRAMES_MAX {
            return Err(Violation::ContinuationFlood);
        }
        if block.bytes.len() > BLOCK_BYTES_MAX {
            return Err(Violation::BlockTooLarge);
        }
        if head.has(flag::END_HEADERS)
            && let Some(block) = self.block.take()
        {
            return self.on_section(block.stream, block.ends_stream, &block.bytes, context);
        }
        Ok(())
    }

    /// A whole header section: a request, or its trailers.
    fn on_section(
        &mut self,
        id: u32,
        ends: bool,
        block: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        // Whatever becomes of it, the tables of both sides stay the same.
        let section = self.sections.read(block)?;
        if id <= self.last_stream {
            return self.on_trailers(id, ends, section.is_trailers, context);
        }
        self.last_stream = id;
        context.tally.http2.streams += 1;
        if self.streams.len() >= context.streams_max as usize {
            context.tally.http2.refused += 1;
            frame::put_reset(self.out.bytes(), id, ErrorCode::REFUSED_STREAM);
            return Ok(());
        }
        let Some(request) = section.request else {
            context.tally.on_trouble(Trouble::Malformed);
            frame::put_reset(self.out.bytes(), id, ErrorCode::PROTOCOL_ERROR);
            return Ok(());
        };
        let mut stream = Stream::new(request.head_only, request.length, self.peer.window);
        stream.asked = self.sections.take_asked();
        self.streams.insert(id, stream);
        let most = &mut context.tally.http2.streams_max;
        *most = (*most).max(self.streams.len() as u64);
        if ends {
            self.end_request(id, context);
        } else if request.expects_continue {
            let block = context.responses.of(ResponseKind::Continue).block();
            self.out.put_head(id, false, block, self.peer.frame_bytes);
        }
        Ok(())
    }

    fn on_trailers(
        &mut self,
        id: u32,
        ends: bool,
        is_trailers: bool,
        context: &mut Context,
    ) -> Result<(), Violation> {
        let Some(stream) = self.streams.find(id) else {
            // It was reset, or answered: the client did not know yet, or breaks the order.
            return Ok(());
        };
        if !matches!(stream.stage, Stage::Receiving) {
            return Err(Violation::ClosedStream);
        }
        if !ends || !is_trailers {
            context.tally.on_trouble(Trouble::Malformed);
            self.reset(id, ErrorCode::PROTOCOL_ERROR, context);
        } else {
            self.end_request(id, context);
        }
        Ok(())
    }

    /// The client has sent all of a request.
    fn end_request(&mut self, id: u32, context: &mut Context) {
        let Some(stream) = self.streams.find(id) else {
            return;
        };
        if stream
            .length
            .is_some_and(|length| length != stream.received)
        {
            context.tally.on_trouble(Trouble::Malformed);
            return self.reset(id, ErrorCode::PROTOCOL_ERROR, context);
        }
        self.serve(id, context);
    }

    fn on_settings(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::NotOnStream);
        }
        if head.has(flag::ACK) {
            return match payload.is_empty() {
                true => Ok(()),
                false => Err(Violation::SettingsAckLength),
            };
        }
        let before = self.peer.window;
        self.peer.apply(payload, false)?;
        self.has_settings = true;
        let by = i64::from(self.peer.window) - i64::from(before);
        if by != 0 && !self.streams.grow_windows(by) {
            return Err(Violation::WindowBySettings);
        }
        settings::put_ack(self.out.bytes());
        Ok(())
    }

    fn on_ping(&mut self, head: FrameHead, payload: &[u8]) -> Result<(), Violation> {
        if head.stream != 0 {
            return Err(Violation::NotOnStream);
        }
        if payload.len() != 8 {
            return Err(Violation::FrameLength);
        }
        if !head.has(flag::ACK) {
            frame::put(self.out.bytes(), kind::PING, flag::ACK, 0, payload);
        }
        Ok(())
    }

    fn on_window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        context: &mut Context,
    ) -> Result<(), Violation> {
        let payload = payload.try_into().map_err(|_| Violation::FrameLength)?;
        let increment = frame::number(payload) & MAX_31;
        if head.stream == 0 {
            return match (increment, self.send_window.grow(i64::from(increment))) {
                (0, _) => Err(Violation::IncrementZero),
                (_, true) => Ok(()),
                (_, false) => Err(Violation::WindowOverflow),
            };
        }
        self.check_stream(head, true)?;
        let Some(stream) = self.streams.find(head.stream) else {
            return Ok(());
        };
        let code = match (increment, stream.send_window.grow(i64::from(increment))) {
            (0, _) => ErrorCode::PROTOCOL_ERROR,
            (_, true) => {
                self.streams.resume(head.stream);
                return Ok(());
            }
            (_, false) => ErrorCode::FLOW_CONTROL_ERROR,
        };
        context.tally.on_trouble(Trouble::Malformed);
        self.reset(head.stream, code, context);
        Ok(())
    }
}

/// What a payload holds without its padding (RFC 9113 6.1).
fn unpadded(head: FrameHead, payload: &[u8]) -> Result<&[u8], Violation> {
    if !head.has(flag::PADDED) {
        return Ok(payload);
    }
    let (&padding, rest) = payload.split_first().ok_or(Violation::FrameCut)?;
    let length = rest.len().checked_sub(usize::from(padding));
    length
        .map(|length| &rest[..length])
        .ok_or(Violation::Padding)
}
