//! Calls of gRPC: what their responses have to be, beside responses of HTTP/2.

use super::fields::{CallStatus, ResponseSection};
use knee_load::measure::Status;
use knee_load::messages::{GrpcFraming, MessagePiece};
use std::fmt;

/// What the answer to a call may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallAnswer {
    /// It has any number of messages, and not exactly one.
    pub(super) is_stream: bool,
    /// The call says which compressions it accepts.
    pub(super) accepts_compression: bool,
}

/// What the response to a call has said so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CallResponseState {
    framing: GrpcFraming,
    /// Whole messages, up to 2.
    messages: u8,
    status: CallStatus,
    /// Its content type is that of gRPC.
    is_call: bool,
    /// Its head names a compression.
    has_encoding: bool,
}

impl CallResponseState {
    /// The head of the response, which may be all of it (Trailers-Only).
    #[inline]
    pub(super) fn take_head(&mut self, section: &ResponseSection, is_all: bool) {
        self.is_call = section.is_call;
        self.has_encoding = section.has_grpc_encoding;
        if is_all {
            self.status = section.grpc_status;
        }
    }

    /// The trailers of the response.
    #[inline]
    pub(super) fn take_trailers(&mut self, section: &ResponseSection) {
        self.status = section.grpc_status;
    }

    /// The next bytes of the body.
    #[inline]
    pub(super) fn take_body(&mut self, bytes: &[u8]) {
        let messages = &mut self.messages;
        self.framing.feed(bytes, |piece| {
            if piece == MessagePiece::End {
                *messages = (*messages + 1).min(2);
            }
        });
    }

    /// The status of a call whose response has ended; `http`: that of HTTP.
    ///
    /// # Errors
    /// The rule that the response breaks.
    #[inline]
    pub(super) fn status(&self, http: u16, answer: CallAnswer) -> Result<Status, CallViolation> {
        match (http, self.status) {
            (400.., _) => Ok(Status::Http(http)),
            (200, CallStatus::Code(0)) => self.check(answer).map(|()| Status::Grpc(0)),
            (200, CallStatus::Code(code)) => Ok(Status::Grpc(code)),
            (200, CallStatus::Invalid) => Err(CallViolation::StatusInvalid),
            (200, CallStatus::Missing) if self.is_call => Err(CallViolation::NoStatus),
            (200, CallStatus::Missing) => Err(CallViolation::ContentType),
            _ => Err(CallViolation::HttpStatus),
        }
    }

    /// Checks what a call that is said to be ok has received.
    #[inline]
    fn check(&self, answer: CallAnswer) -> Result<(), CallViolation> {
        let accepts = answer.accepts_compression && self.has_encoding;
        match self.framing.flags() {
            _ if !self.is_call => Err(CallViolation::ContentType),
            2.. => Err(CallViolation::Flag),
            1 if !accepts => Err(CallViolation::Compressed),
            _ if self.framing.is_within() => Err(CallViolation::Cut),
            _ if answer.is_stream || self.messages == 1 => Ok(()),
            _ => Err(CallViolation::NotOneMessage),
        }
    }
}

/// A rule of gRPC that the response to a call breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallViolation {
    /// A status of HTTP below 400 that is not 200.
    HttpStatus,
    /// A content type that is not `application/grpc`, or none.
    ContentType,
    /// No status in the trailers.
    NoStatus,
    /// A status that is no number, or two that differ.
    StatusInvalid,
    /// A flag of a message that is neither 0 nor 1.
    Flag,
    /// A compressed message although no compression was agreed on.
    Compressed,
    /// A body that ends within a message.
    Cut,
    /// No message or several where the method returns one.
    NotOneMessage,
}

/// With the part of the specification that has the rule.
impl fmt::Display for CallViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, section) = match self {
            CallViolation::HttpStatus => ("a status of HTTP is not 200", "Responses"),
            CallViolation::ContentType => ("a content-type is not application/grpc", "Responses"),
            CallViolation::NoStatus => ("a response has no grpc-status at its end", "Responses"),
            CallViolation::StatusInvalid => {
                ("a grpc-status is no number, or two differ", "Responses")
            }
            CallViolation::Flag => {
                ("the flag of a message is neither 0 nor 1", "Length-Prefixed-Message")
            }
            CallViolation::Compressed => (
                "a message is compressed, and no compression was agreed on",
                "Length-Prefixed-Message",
            ),
            CallViolation::Cut => ("a response ends within a message", "Length-Prefixed-Message"),
            CallViolation::NotOneMessage => {
                ("a response has no message or several, not one", "Responses")
            }
        };
        write!(f, "{what} (gRPC over HTTP2, {section})")
    }
}
