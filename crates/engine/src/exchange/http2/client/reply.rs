//! Frames of the server, one function per type.

use super::super::fields::ResponseSection;
use super::super::frame::{self, FrameHead, flag, kind};
use super::super::{ErrorCode, Violation, connection};
use super::receive::Data;
use super::{Http2, Io};
use crate::exchange::{ConnectionState, INTERIMS_MAX, OpEvent, ResponseSink as _};
use knee_load::measure::{Outcome, Status};

/// The most empty DATA frames in a row.
const EMPTIES_MAX: u32 = 1000;

/// The most answers in the outbox at once.
const ANSWERS_MAX: u32 = 1000;

/// Bytes of GOAWAY's debug data that are read.
const DEBUG_MAX: usize = 200;

impl Http2 {
    /// A whole frame that is not DATA.
    #[inline]
    pub(super) fn take(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        io: &mut Io,
    ) -> Result<(), Violation> {
        match head.kind {
            kind::HEADERS => self.take_headers(head, payload, io),
            kind::CONTINUATION => self.take_continuation(head, payload, io),
            kind::WINDOW_UPDATE => self.take_window_update(head, payload, io),
            kind::SETTINGS => self.take_settings(head, payload, io),
            kind::PING => self.take_ping(head, payload, io),
            kind::RST_STREAM => self.take_reset(head.stream, payload, io),
            kind::GOAWAY => self.take_goaway(head, payload, io),
            kind::PRIORITY => self.take_priority(head.stream, payload, io),
            kind::PUSH_PROMISE => Err(Violation::PushPromise),
            // Unknown ones mean nothing (RFC 9113 §5.5).
            _ => Ok(()),
        }
    }

    #[inline]
    fn take_headers(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        io: &mut Io,
    ) -> Result<(), Violation> {
        self.check_stream(head.stream)?;
        let fragment = frame::content(head, payload)?;
        if head.has(flag::END_HEADERS) {
            let ends_stream = head.has(flag::END_STREAM);
            return self.take_block(head.stream, ends_stream, fragment, io);
        }
        self.core.begin_block(head, fragment);
        Ok(())
    }

    fn take_continuation(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        io: &mut Io,
    ) -> Result<(), Violation> {
        match self.core.continue_block(head, payload)? {
            Some(block) => self.take_block(block.stream, block.ends_stream, &block.bytes, io),
            None => Ok(()),
        }
    }

    /// A whole header block. It is read whatever its stream, as the table depends on it.
    #[inline]
    fn take_block(
        &mut self,
        id: u32,
        ends_stream: bool,
        block: &[u8],
        io: &mut Io,
    ) -> Result<(), Violation> {
        let Some(op) = self.streams.get(id).map(|stream| stream.op) else {
            self.sections.read(block)?;
            return self.check_forgiven(id);
        };
        let section = match io.events.sink(op) {
            None => {
                let section = self.sections.read(block)?;
                if let Some(coding) = section.opens_events() {
                    io.events.open_events(op, coding);
                }
                section
            }
            Some(mut sink) => {
                // An interim response says nothing of the final one, and trailers have no status.
                let mut tell = |section: &ResponseSection, name: &[u8], value: &[u8]| {
                    if section.status >= 200 && !name.starts_with(b":") {
                        sink.field(name, value);
                    }
                };
                self.sections.read_into(block, &mut tell)?
            }
        };
        match self.take_section(id, section, ends_stream) {
            Ok(()) if ends_stream => self.answer(id, io),
            Ok(()) => {}
            Err(violation) => self.refuse(id, violation, io),
        }
        Ok(())
    }

    /// A header section of a response: interim, final or trailers.
    #[inline]
    fn take_section(
        &mut self,
        id: u32,
        section: ResponseSection,
        ends: bool,
    ) -> Result<(), Violation> {
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if stream.status != 0 {
            stream.call.take_trailers(&section);
            return check_trailers(section, ends);
        }
        if let Some(fault) = section.fault {
            return Err(fault);
        }
        match section.status {
            0 => return Err(Violation::NoStatus),
            101 => return Err(Violation::Switching),
            100..200 if ends => return Err(Violation::InterimEnds),
            100..200 => {
                stream.interims += 1;
                let is_flood = stream.interims > INTERIMS_MAX;
                return if is_flood { Err(Violation::InterimFlood) } else { Ok(()) };
            }
            _ => {}
        }
        stream.status = section.status;
        stream.call.take_head(&section, ends);
        stream.is_bare = stream.is_head || matches!(section.status, 204 | 304);
        stream.left = if stream.is_bare { Some(0) } else { section.length };
        self.empties = 0;
        Ok(())
    }

    /// The stream that a DATA frame is for; 0 where it is to be passed over.
    #[inline]
    pub(super) fn data_stream(&mut self, head: FrameHead, io: &mut Io) -> Result<u32, Violation> {
        self.check_stream(head.stream)?;
        if !self.core.receive_window.take(head.length) {
            return Err(Violation::WindowExceeded);
        }
        let Some(stream) = self.streams.get(head.stream) else {
            return self.check_forgiven(head.stream).map(|()| 0);
        };
        let violation = if !stream.receive_window.take(head.length) {
            Violation::WindowExceeded
        } else if stream.status == 0 {
            Violation::DataBeforeHead
        } else {
            return Ok(head.stream);
        };
        self.refuse(head.stream, violation, io);
        Ok(0)
    }

    /// A DATA frame is whole.
    #[inline]
    pub(super) fn end_data(&mut self, io: &mut Io) -> Result<(), Violation> {
        let Data { stream: id, content, ends_stream, .. } = self.reader.data;
        if content > 0 {
            self.empties = 0;
            if io.events.has_sinks() {
                self.end_frame(id, io);
            }
        } else if !ends_stream {
            self.empties += 1;
            if self.empties > EMPTIES_MAX {
                return Err(Violation::EmptyFrames);
            }
        }
        let Some(stream) = self.streams.get(id) else {
            return Ok(());
        };
        if let Some(left) = stream.left {
            match left.checked_sub(u64::from(content)) {
                Some(left) => stream.left = Some(left),
                None => {
                    let violation = if stream.is_bare {
                        Violation::ContentForbidden
                    } else {
                        Violation::LengthDiffers
                    };
                    self.refuse(id, violation, io);
                    return Ok(());
                }
            }
        }
        if ends_stream {
            self.answer(id, io);
        } else if let Some(increment) = stream.receive_window.due() {
            frame::put_window_update(io.out, id, increment);
        }
        Ok(())
    }

    /// Tells who reads the content of a stream that a frame of it has ended.
    #[cold]
    fn end_frame(&mut self, id: u32, io: &mut Io) {
        if let Some(stream) = self.streams.get(id)
            && let Some(mut sink) = io.events.sink(stream.op)
        {
            sink.border();
        }
    }

    /// The server has ended a stream after a final header section.
    #[inline]
    fn answer(&mut self, id: u32, io: &mut Io) {
        let Some(stream) = self.streams.get(id) else {
            return;
        };
        let (op, is_sending) = (stream.op, stream.is_sending);
        if stream.left.is_some_and(|left| left > 0) {
            return self.refuse(id, Violation::LengthDiffers, io);
        }
        let status = match io.shared.requests.call(stream.request as usize) {
            None => Ok(Status::Http(stream.status)),
            Some(answer) => stream.call.status(stream.status, answer),
        };
        let status = match status {
            Ok(status) => status,
            Err(violation) => return self.refuse(id, Violation::Call(violation), io),
        };
        self.push_received(io.events);
        if let Some(mut sink) = io.events.sink(op) {
            sink.end();
        }
        io.events.push(OpEvent::Answered { op, status });
        if is_sending {
            // Answered before all of the request was sent: the rest is of no use (§8.1).
            return self.give_up(id, ErrorCode::CANCEL, io.out);
        }
        self.streams.close(id);
    }

    fn take_settings(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        io: &mut Io,
    ) -> Result<(), Violation> {
        let had_settings = self.core.has_settings;
        let Some(window_change) = self.core.apply_settings(head, payload)? else {
            return Ok(());
        };
        let peer = self.core.peer;
        io.shared.streams_expected = peer.streams_max.unwrap_or(u32::MAX);
        if !had_settings {
            self.first_informed = self.streams.next();
        }
        for bytes in [peer.table_bytes_least, peer.table_bytes] {
            self.blocks.set_limit(bytes, &io.shared.requests);
        }
        if window_change != 0 {
            for stream in self.streams.iter_mut() {
                if !stream.send_window.grow(window_change) {
                    return Err(Violation::WindowBySettings);
                }
            }
            for id in self.streams.ids() {
                self.queue(id);
            }
        }
        self.count_answer()?;
        connection::put_settings_ack(io.out);
        Ok(())
    }

    fn take_ping(&mut self, head: FrameHead, payload: &[u8], io: &mut Io) -> Result<(), Violation> {
        if frame::wants_pong(head, payload)? {
            self.count_answer()?;
            frame::put(io.out, kind::PING, flag::ACK, 0, payload);
        }
        Ok(())
    }

    /// So that the outbox stays bounded where the server asks on and does not read.
    fn count_answer(&mut self) -> Result<(), Violation> {
        self.answers += 1;
        if self.answers > ANSWERS_MAX { Err(Violation::AnswerFlood) } else { Ok(()) }
    }

    fn take_window_update(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        io: &mut Io,
    ) -> Result<(), Violation> {
        let Some(increment) = self.core.window_update(head, payload)? else {
            return Ok(());
        };
        let id = head.stream;
        self.check_stream(id)?;
        let Some(stream) = self.streams.get(id) else {
            // It may have been under way when the stream ended (§5.1).
            return Ok(());
        };
        match stream.send_window.update(increment) {
            Ok(()) => self.queue(id),
            Err(violation) => self.refuse(id, violation, io),
        }
        Ok(())
    }

    fn take_reset(&mut self, id: u32, payload: &[u8], io: &mut Io) -> Result<(), Violation> {
        self.check_stream(id)?;
        let code = ErrorCode(frame::read_number(payload)?);
        self.push_received(io.events);
        let Some(op) = self.forget(id) else {
            return Ok(());
        };
        io.events.push(match code {
            // It could not be known how many streams are permitted.
            ErrorCode::REFUSED_STREAM if id < self.first_informed => OpEvent::Unprocessed(op),
            ErrorCode::REFUSED_STREAM => OpEvent::Failed { op, outcome: Outcome::RefusedStream },
            _ => OpEvent::Failed { op, outcome: Outcome::StreamReset },
        });
        if code != ErrorCode::REFUSED_STREAM {
            io.events.push(OpEvent::Reset(format!("RST_STREAM with {code}")));
        }
        Ok(())
    }

    fn take_goaway(
        &mut self,
        head: FrameHead,
        payload: &[u8],
        io: &mut Io,
    ) -> Result<(), Violation> {
        let (last, code) = frame::read_goaway(head, payload)?;
        if last > self.last_stream {
            return Err(Violation::GoawayRises);
        }
        self.last_stream = last;
        self.state = ConnectionState::Closing;
        self.push_received(io.events);
        for id in self.streams.ids().into_iter().filter(|id| *id > last) {
            self.forgiven = self.forgiven.max(id);
            if let Some(op) = self.forget(id) {
                io.events.push(OpEvent::Unprocessed(op));
            }
        }
        if code != ErrorCode::NO_ERROR {
            // The server closes the connection now (§5.4.1): nothing more will come.
            if !self.streams.ids().is_empty() {
                self.fail_all(Outcome::StreamReset, io.events);
                io.events.push(OpEvent::Reset(goaway_words(code, &payload[8..])));
            }
            self.state = ConnectionState::Broken;
        }
        Ok(())
    }

    fn take_priority(&mut self, id: u32, payload: &[u8], io: &mut Io) -> Result<(), Violation> {
        if id == 0 {
            return Err(Violation::OnStreamZero);
        }
        if payload.len() != 5 {
            self.refuse(id, Violation::FrameLength, io);
        }
        Ok(())
    }

    /// Whether a frame may name this stream: one that the client opened at some time.
    #[inline]
    fn check_stream(&self, id: u32) -> Result<(), Violation> {
        match id {
            0 => Err(Violation::OnStreamZero),
            _ if id.is_multiple_of(2) => Err(Violation::ServerStream),
            _ if self.streams.is_idle(id) => Err(Violation::IdleStream),
            _ => Ok(()),
        }
    }

    /// Whether HEADERS and DATA on a stream that is no longer open are ignored: they may have been
    /// sent before the server knew (§5.4.2).
    fn check_forgiven(&self, id: u32) -> Result<(), Violation> {
        if id <= self.forgiven { Ok(()) } else { Err(Violation::ClosedStream) }
    }
}

/// What a server says as it ends a connection; what it adds for people is not to be trusted (§6.8).
#[cold]
fn goaway_words(code: ErrorCode, debug: &[u8]) -> String {
    let debug = &debug[..debug.len().min(DEBUG_MAX)];
    let text = String::from_utf8_lossy(debug);
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    match text.trim() {
        "" => format!("GOAWAY with {code}"),
        text => format!("GOAWAY with {code}: {text}"),
    }
}

/// What comes after the final header section (§8.1).
fn check_trailers(section: ResponseSection, ends: bool) -> Result<(), Violation> {
    match section.fault {
        _ if !ends => Err(Violation::TrailersOpen),
        _ if section.has_pseudo => Err(Violation::PseudoInTrailers),
        Some(fault) => Err(fault),
        None => Ok(()),
    }
}
