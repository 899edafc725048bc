//! The response on one stream: frames to fields, content and the end.

use super::RequestStream;
use crate::exchange::http2::Violation;
use crate::exchange::http2::fields::ResponseSection;
use crate::exchange::http3::Http3Violation;
use crate::exchange::http3::frame::FramePiece;
use crate::exchange::http3::qpack::SectionDecoder;
use crate::exchange::{EventQueue, FlightId, INTERIMS_MAX, OpEvent, ResponseSink as _};
use knee_load::measure::Status;

/// What has come of a response.
#[derive(Debug)]
pub(super) struct ResponseProgress {
    /// The status; 0 before the final header section.
    status: u16,
    /// Interim responses so far.
    interims: u8,
    /// The request is HEAD.
    is_head: bool,
    /// It has no content, by its status or the request's method.
    is_bare: bool,
    /// Its trailers have come.
    has_trailers: bool,
    /// A part of it was received.
    has_begun: bool,
    /// Bytes of content still to come, if announced.
    left: Option<u64>,
}

impl ResponseProgress {
    /// None of it has come.
    pub(super) fn new(is_head: bool) -> ResponseProgress {
        ResponseProgress {
            status: 0,
            interims: 0,
            is_head,
            is_bare: false,
            has_trailers: false,
            has_begun: false,
            left: None,
        }
    }

    /// Whether a part of it was received.
    pub(super) fn has_begun(&self) -> bool {
        self.has_begun
    }
}

impl RequestStream {
    /// Takes bytes of the stream.
    ///
    /// # Errors
    /// The rule that they break.
    pub(super) fn take(
        &mut self,
        bytes: &[u8],
        sections: &mut SectionDecoder<ResponseSection>,
        events: &mut EventQueue,
    ) -> Result<(), Http3Violation> {
        self.response.has_begun = true;
        let op = self.op;
        events.push(OpEvent::Received { op, bytes: bytes.len() as u64 });
        let mut rest = bytes;
        while let Some(piece) = self.reader.next(&mut rest)? {
            match piece {
                FramePiece::Data { bytes, is_end } => {
                    self.response.take_content(bytes.len())?;
                    if events.has_sinks()
                        && let Some(mut sink) = events.sink(op)
                    {
                        if !bytes.is_empty() {
                            sink.body(bytes);
                        }
                        if is_end {
                            sink.border();
                        }
                    }
                }
                // On a stream of a request only field sections are kept whole.
                FramePiece::Whole { payload, .. } => {
                    self.response.take_fields(op, payload, sections, events)?;
                }
            }
        }
        Ok(())
    }

    /// The server has ended the stream. Returns the status of the response.
    ///
    /// # Errors
    /// It is not whole.
    pub(super) fn end(&self) -> Result<Status, Http3Violation> {
        let ResponseProgress { status, left, .. } = self.response;
        if !self.reader.is_between() {
            return Err(Http3Violation::FrameCut);
        }
        if status == 0 {
            return Err(Http3Violation::NoResponse);
        }
        if left.is_some_and(|left| left > 0) {
            return Err(Http3Violation::Message(Violation::LengthDiffers));
        }
        Ok(Status::Http(status))
    }
}

impl ResponseProgress {
    fn take_content(&mut self, length: usize) -> Result<(), Http3Violation> {
        if self.status == 0 {
            return Err(Http3Violation::DataBeforeHead);
        }
        if self.has_trailers {
            return Err(Http3Violation::AfterTrailers);
        }
        if let Some(left) = self.left {
            let violation =
                if self.is_bare { Violation::ContentForbidden } else { Violation::LengthDiffers };
            let left = left.checked_sub(length as u64);
            self.left = Some(left.ok_or(Http3Violation::Message(violation))?);
        }
        Ok(())
    }

    fn take_fields(
        &mut self,
        op: FlightId,
        block: &[u8],
        sections: &mut SectionDecoder<ResponseSection>,
        events: &mut EventQueue,
    ) -> Result<(), Http3Violation> {
        if self.has_trailers {
            return Err(Http3Violation::AfterTrailers);
        }
        let section = match events.sink(op) {
            None => {
                let section = sections.read(block)?;
                if let Some(coding) = section.opens_events() {
                    events.open_events(op, coding);
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
                sections.read_into(block, &mut tell)?
            }
        };
        self.take_section(section).map_err(Http3Violation::Message)
    }

    /// A header section: interim, final or trailers.
    fn take_section(&mut self, section: ResponseSection) -> Result<(), Violation> {
        if self.status != 0 {
            self.has_trailers = true;
            if section.has_pseudo {
                return Err(Violation::PseudoInTrailers);
            }
            return section.fault.map_or(Ok(()), Err);
        }
        if let Some(fault) = section.fault {
            return Err(fault);
        }
        match section.status {
            0 => return Err(Violation::NoStatus),
            101 => return Err(Violation::Switching),
            100..200 => {
                self.interims += 1;
                let is_flood = self.interims > INTERIMS_MAX;
                return if is_flood { Err(Violation::InterimFlood) } else { Ok(()) };
            }
            status => self.status = status,
        }
        self.is_bare = self.is_head || matches!(section.status, 204 | 304);
        self.left = if self.is_bare { Some(0) } else { section.length };
        Ok(())
    }
}
