//! Bytes of the connection to frames, wherever they are cut.

use super::super::Violation;
use super::super::frame::{FrameHead, HEAD_BYTES, flag, kind};
use super::{Http2, Io};
use crate::exchange::{ConnectionState, ResponseSink as _};

/// The room for a frame that arrives in pieces which a connection keeps; more is given back.
const PENDING_KEPT_BYTES: usize = 1024;

/// Position of a connection in the stream of frames.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// The beginning of a frame that has not come whole. Never one of DATA, beyond its head.
    pending: Vec<u8>,
    /// Bytes of it that were counted as received by its stream.
    credited: usize,
    /// The DATA frame that is coming.
    pub(super) data: Data,
}

/// A DATA frame.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Data {
    /// How many bytes of it are still to come.
    left: u32,
    /// Its stream; 0 where it is passed over.
    pub(super) stream: u32,
    /// The first byte of the payload is to come and says how much of it is padding.
    is_padded: bool,
    /// It has padding.
    has_padding: bool,
    /// How many bytes of the payload are content.
    pub(super) content: u32,
    /// How many bytes the payload has.
    pub(super) length: u32,
    pub(super) ends_stream: bool,
}

impl Http2 {
    /// Reads all of `bytes`, unless the connection ends in them.
    pub(super) fn read(&mut self, bytes: &[u8], io: &mut Io) -> Result<(), Violation> {
        let mut rest = bytes;
        while !rest.is_empty() && self.state != ConnectionState::Broken {
            if self.reader.data.left > 0 {
                rest = self.read_data(rest, io)?;
                continue;
            }
            if !self.reader.pending.is_empty() {
                rest = self.read_pending(rest, io)?;
                continue;
            }
            let Some((head, after)) = FrameHead::read(rest) else {
                self.reader.pending.extend_from_slice(rest);
                return Ok(());
            };
            self.core.check(head)?;
            if head.kind == kind::DATA {
                self.begin_data(head, io)?;
                rest = after;
                continue;
            }
            let Some((payload, next)) = after.split_at_checked(head.length as usize) else {
                self.reader.pending.extend_from_slice(rest);
                self.credit_part(head, rest.len(), io);
                return Ok(());
            };
            self.credit_part(head, HEAD_BYTES + payload.len(), io);
            self.reader.credited = 0;
            self.take(head, payload, io)?;
            rest = next;
        }
        Ok(())
    }

    /// Adds to a frame that is cut; what is not of it.
    fn read_pending<'b>(&mut self, bytes: &'b [u8], io: &mut Io) -> Result<&'b [u8], Violation> {
        let held = self.reader.pending.len();
        let Some((head, _)) = FrameHead::read(&self.reader.pending) else {
            let (here, rest) = bytes.split_at(bytes.len().min(HEAD_BYTES - held));
            self.reader.pending.extend_from_slice(here);
            if let Some((head, _)) = FrameHead::read(&self.reader.pending) {
                self.core.check(head)?;
                if head.kind == kind::DATA {
                    self.reader.pending.clear();
                    self.begin_data(head, io)?;
                } else if head.length == 0 {
                    self.take_pending(head, io)?;
                } else {
                    self.credit_part(head, HEAD_BYTES, io);
                }
            }
            return Ok(rest);
        };
        let whole = HEAD_BYTES + head.length as usize;
        let (here, rest) = bytes.split_at(bytes.len().min(whole - held));
        self.reader.pending.extend_from_slice(here);
        if held + here.len() == whole {
            self.take_pending(head, io)?;
        } else {
            self.credit_part(head, held + here.len(), io);
        }
        Ok(rest)
    }

    /// A frame that came in pieces is whole.
    fn take_pending(&mut self, head: FrameHead, io: &mut Io) -> Result<(), Violation> {
        let mut pending = std::mem::take(&mut self.reader.pending);
        self.credit_part(head, pending.len(), io);
        self.reader.credited = 0;
        let taken = self.take(head, &pending[HEAD_BYTES..], io);
        pending.clear();
        pending.shrink_to(PENDING_KEPT_BYTES);
        self.reader.pending = pending;
        taken
    }

    /// Counts the first `bytes` of a header frame as received by its stream.
    #[inline]
    fn credit_part(&mut self, head: FrameHead, bytes: usize, io: &mut Io) {
        if matches!(head.kind, kind::HEADERS | kind::CONTINUATION) {
            let more = bytes - self.reader.credited;
            self.reader.credited = bytes;
            self.credit(head.stream, more, io.events);
        }
    }

    #[inline]
    fn begin_data(&mut self, head: FrameHead, io: &mut Io) -> Result<(), Violation> {
        let stream = self.data_stream(head, io)?;
        self.reader.data = Data {
            left: head.length,
            stream,
            is_padded: head.has(flag::PADDED),
            has_padding: head.has(flag::PADDED),
            content: head.length,
            length: head.length,
            ends_stream: head.has(flag::END_STREAM),
        };
        self.credit(stream, HEAD_BYTES, io.events);
        match head.length {
            0 if head.has(flag::PADDED) => Err(Violation::FrameCut),
            0 => self.end_data(io),
            _ => Ok(()),
        }
    }

    /// Reads content of a DATA frame, or hands it on to where it is read: `bytes` are those of its
    /// payload that came last.
    #[inline(never)]
    fn take_content(&mut self, bytes: &[u8], io: &mut Io) {
        let data = self.reader.data;
        let Some(stream) = self.streams.get(data.stream) else {
            return;
        };
        // The payload: the length of the padding where there is one, the content, the padding.
        let before = u32::from(data.has_padding);
        let come = data.length - data.left;
        let from = (come - bytes.len() as u32).saturating_sub(before);
        let to = come.saturating_sub(before).min(data.content);
        if from < to {
            let skipped = (from + before + bytes.len() as u32 - come) as usize;
            let content = &bytes[skipped..skipped + (to - from) as usize];
            if io.shared.is_grpc {
                stream.call.take_body(content);
            }
            if let Some(mut sink) = io.events.sink(stream.op) {
                sink.body(content);
            }
        }
    }

    /// Counts through a DATA frame; what comes after it.
    #[inline]
    fn read_data<'b>(&mut self, bytes: &'b [u8], io: &mut Io) -> Result<&'b [u8], Violation> {
        let data = &mut self.reader.data;
        if data.is_padded {
            let overhead = 1 + u32::from(bytes[0]);
            data.is_padded = false;
            data.content = data.length.checked_sub(overhead).ok_or(Violation::Padding)?;
        }
        let here = bytes.len().min(data.left as usize);
        data.left -= here as u32;
        let (stream, is_whole) = (data.stream, data.left == 0);
        if io.shared.is_grpc || io.events.has_sinks() {
            self.take_content(&bytes[..here], io);
        }
        self.credit(stream, here, io.events);
        if is_whole {
            self.end_data(io)?;
        }
        Ok(&bytes[here..])
    }
}
