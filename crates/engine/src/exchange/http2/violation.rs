//! What the peer must not do, by the rule that it breaks, and why a stream or a connection ends
//! (RFC 9113 §7).

use super::call::CallViolation;
use super::hpack;
use std::fmt;

/// A rule of RFC 9113 that the peer broke, or a limit against floods that it exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A header block that cannot be read.
    Hpack(hpack::Error),
    /// The first frame is not SETTINGS.
    Preface,
    /// A payload over the limit.
    FrameTooLarge,
    /// A frame of fixed length has another one.
    FrameLength,
    /// A SETTINGS frame whose length is no multiple of 6.
    SettingsLength,
    /// An acknowledgement of SETTINGS with a payload.
    SettingsAckLength,
    /// A GOAWAY frame of fewer than 8 bytes.
    GoawayLength,
    /// A frame too short for the fields that its flags announce.
    FrameCut,
    /// A frame of the connection on a stream.
    NotOnStream,
    /// A frame of a stream on stream 0.
    OnStreamZero,
    /// Padding as long as the payload or longer.
    Padding,
    /// A header block interrupted by another frame.
    BlockInterrupted,
    /// CONTINUATION without a header block that it continues.
    ContinuationAlone,
    /// ENABLE_PUSH that is neither 0 nor 1.
    PushValue,
    /// A server that turns push on.
    PushByServer,
    /// INITIAL_WINDOW_SIZE beyond 2³¹ − 1.
    InitialWindow,
    /// MAX_FRAME_SIZE out of its range.
    MaxFrameSize,
    /// A window made larger than 2³¹ − 1 by SETTINGS.
    WindowBySettings,
    /// PUSH_PROMISE although push is off.
    PushPromise,
    /// A frame on a stream that the client never opened.
    IdleStream,
    /// A frame on a stream of the server's numbers.
    ServerStream,
    /// DATA or HEADERS on a stream that the peer has ended.
    ClosedStream,
    /// A GOAWAY that names a later stream than one before.
    GoawayRises,
    /// WINDOW_UPDATE of 0.
    IncrementZero,
    /// A window beyond 2³¹ − 1.
    WindowOverflow,
    /// More DATA than the window permits.
    WindowExceeded,
    /// DATA before the final header section.
    DataBeforeHead,
    /// A response without `:status`.
    NoStatus,
    /// More than one `:status`.
    StatusTwice,
    /// A `:status` that is no number of three digits from 100 on.
    Status,
    /// 101, which HTTP/2 does not have.
    Switching,
    /// An interim response that ends the stream.
    InterimEnds,
    /// A pseudo-header field that responses do not have.
    PseudoUnknown,
    /// A pseudo-header field after another field.
    PseudoLate,
    /// A pseudo-header field among trailers.
    PseudoInTrailers,
    /// A field name with a character that is not permitted.
    FieldName,
    /// A field name in upper case.
    FieldNameCase,
    /// A field value with a character that is not permitted.
    FieldValue,
    /// A field of the connection, such as `transfer-encoding`.
    ConnectionField,
    /// A content-length that is no number, or two that differ.
    ContentLength,
    /// Content of another length than announced.
    LengthDiffers,
    /// A response to a call of gRPC that breaks a rule of gRPC.
    Call(CallViolation),
    /// Content in a response that has none by its status or its request's method.
    ContentForbidden,
    /// A second header section that does not end the stream.
    TrailersOpen,
    /// A header block over the limit.
    BlockTooLarge,
    /// A header block in too many frames.
    ContinuationFlood,
    /// Too many frames that say nothing.
    EmptyFrames,
    /// Too many interim responses to one request.
    InterimFlood,
    /// Too many frames that want an answer while none can be sent.
    AnswerFlood,
}

impl Violation {
    /// The code that tells the peer.
    pub fn code(self) -> ErrorCode {
        match self {
            Violation::Hpack(hpack::Error::ListTooLarge)
            | Violation::BlockTooLarge
            | Violation::ContinuationFlood
            | Violation::EmptyFrames
            | Violation::InterimFlood
            | Violation::AnswerFlood => ErrorCode::ENHANCE_YOUR_CALM,
            Violation::Hpack(_) => ErrorCode::COMPRESSION_ERROR,
            Violation::FrameTooLarge
            | Violation::FrameLength
            | Violation::SettingsLength
            | Violation::SettingsAckLength
            | Violation::GoawayLength
            | Violation::FrameCut => ErrorCode::FRAME_SIZE_ERROR,
            Violation::InitialWindow
            | Violation::WindowBySettings
            | Violation::WindowOverflow
            | Violation::WindowExceeded => ErrorCode::FLOW_CONTROL_ERROR,
            Violation::ClosedStream => ErrorCode::STREAM_CLOSED,
            _ => ErrorCode::PROTOCOL_ERROR,
        }
    }
}

impl From<hpack::Error> for Violation {
    fn from(error: hpack::Error) -> Violation {
        Violation::Hpack(error)
    }
}

/// One line with the rule's section.
impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Violation::Hpack(error) => error.fmt(f),
            Violation::Call(violation) => violation.fmt(f),
            _ => {
                let (what, section) = self.rule();
                write!(f, "{what} (RFC 9113 §{section})")
            }
        }
    }
}

impl Violation {
    /// What the peer did, and the section of RFC 9113 that forbids it.
    pub(crate) fn rule(&self) -> (&'static str, &'static str) {
        match self {
            Violation::Hpack(_) => ("a header block cannot be read", "4.3"),
            Violation::Call(_) => ("a response breaks a rule of gRPC", "8.1"),
            Violation::Preface => ("the first frame is not SETTINGS", "3.4"),
            Violation::FrameTooLarge => ("a frame exceeds 16,384 bytes", "4.2"),
            Violation::FrameLength => ("a frame of fixed length has another length", "4.2"),
            Violation::SettingsLength => ("the length of SETTINGS is no multiple of 6", "6.5"),
            Violation::SettingsAckLength => ("a SETTINGS acknowledgement has a payload", "6.5"),
            Violation::GoawayLength => ("GOAWAY has fewer than 8 bytes", "6.8"),
            Violation::FrameCut => ("a frame is shorter than its flags announce", "4.2"),
            Violation::NotOnStream => ("a frame of the connection names a stream", "5.1.1"),
            Violation::OnStreamZero => ("a frame of a stream names stream 0", "5.1.1"),
            Violation::Padding => ("padding is as long as the payload", "6.1"),
            Violation::BlockInterrupted => ("another frame interrupts a header block", "4.3"),
            Violation::ContinuationAlone => ("CONTINUATION continues no header block", "6.10"),
            Violation::PushValue => ("SETTINGS_ENABLE_PUSH is neither 0 nor 1", "6.5.2"),
            Violation::PushByServer => ("the server sets SETTINGS_ENABLE_PUSH to 1", "6.5.2"),
            Violation::InitialWindow => ("SETTINGS_INITIAL_WINDOW_SIZE exceeds 2^31-1", "6.5.2"),
            Violation::MaxFrameSize => ("SETTINGS_MAX_FRAME_SIZE is out of range", "6.5.2"),
            Violation::WindowBySettings => ("SETTINGS raise a window above 2^31-1", "6.9.2"),
            Violation::PushPromise => ("PUSH_PROMISE although push is off", "6.6"),
            Violation::IdleStream => ("a frame names a stream that was never opened", "5.1"),
            Violation::ServerStream => ("a frame names a stream with an even number", "5.1.1"),
            Violation::ClosedStream => ("a frame follows the end of its stream", "5.1"),
            Violation::GoawayRises => ("GOAWAY names a later stream than the GOAWAY before", "6.8"),
            Violation::IncrementZero => ("WINDOW_UPDATE has an increment of 0", "6.9"),
            Violation::WindowOverflow => ("WINDOW_UPDATE raises a window above 2^31-1", "6.9.1"),
            Violation::WindowExceeded => ("DATA exceeds the flow-control window", "6.9.1"),
            Violation::DataBeforeHead => ("DATA precedes the response's header section", "8.1"),
            Violation::NoStatus => ("a response has no :status", "8.3.2"),
            Violation::StatusTwice => ("a response has more than one :status", "8.3"),
            Violation::Status => (":status is not a number from 100 to 999", "8.3.2"),
            Violation::Switching => ("status 101 does not exist in HTTP/2", "8.6"),
            Violation::InterimEnds => ("an interim response ends the stream", "8.1"),
            Violation::PseudoUnknown => ("a response has an undefined pseudo-header field", "8.3"),
            Violation::PseudoLate => ("a pseudo-header field follows a regular field", "8.3"),
            Violation::PseudoInTrailers => ("trailers contain a pseudo-header field", "8.1"),
            Violation::FieldName => ("a field name contains an invalid character", "8.2.1"),
            Violation::FieldNameCase => ("a field name contains an upper-case letter", "8.2.1"),
            Violation::FieldValue => ("a field value contains an invalid character", "8.2.1"),
            Violation::ConnectionField => ("a response has a connection-specific field", "8.2.2"),
            Violation::ContentLength => ("content-length is no number, or two differ", "8.1.1"),
            Violation::LengthDiffers => ("content-length differs from the DATA received", "8.1.1"),
            Violation::ContentForbidden => ("a response without content has DATA", "8.1.1"),
            Violation::TrailersOpen => ("a second header section does not end the stream", "8.1"),
            Violation::BlockTooLarge => ("a header block exceeds 64 KiB", "10.5.1"),
            Violation::ContinuationFlood => ("a header block has over 128 frames", "10.5"),
            Violation::EmptyFrames => ("over 1,000 empty DATA frames in a row", "10.5"),
            Violation::InterimFlood => ("a request has over 100 interim responses", "10.5"),
            Violation::AnswerFlood => {
                ("over 1,000 PING or SETTINGS frames before one answer is sent", "10.5")
            }
        }
    }
}

/// The number in RST_STREAM and GOAWAY (RFC 9113 §7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    /// A graceful end.
    pub const NO_ERROR: ErrorCode = ErrorCode(0);
    /// The peer broke a rule that has no code of its own.
    pub const PROTOCOL_ERROR: ErrorCode = ErrorCode(1);
    /// A fault of the sender.
    pub const INTERNAL_ERROR: ErrorCode = ErrorCode(2);
    /// More was sent than the window permits.
    pub const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(3);
    /// A frame for a stream that has ended.
    pub const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    /// A frame of a wrong length.
    pub const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(6);
    /// Nothing of the request was done: it may be sent again.
    pub const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    /// The stream is no longer needed.
    pub const CANCEL: ErrorCode = ErrorCode(8);
    /// The header block cannot be decoded.
    pub const COMPRESSION_ERROR: ErrorCode = ErrorCode(9);
    /// The peer asks for too much.
    pub const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);
}

/// By number.
const NAMES: &[&str] = &[
    "NO_ERROR",
    "PROTOCOL_ERROR",
    "INTERNAL_ERROR",
    "FLOW_CONTROL_ERROR",
    "SETTINGS_TIMEOUT",
    "STREAM_CLOSED",
    "FRAME_SIZE_ERROR",
    "REFUSED_STREAM",
    "CANCEL",
    "COMPRESSION_ERROR",
    "CONNECT_ERROR",
    "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY",
    "HTTP_1_1_REQUIRED",
];

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.get(self.0 as usize) {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {}", self.0),
        }
    }
}
