//! What the peer must not do, by the rule that it breaks, and why a stream or a connection ends
//! (RFC 9114 §8, RFC 9204 §6).

use super::qpack::QpackError;
use crate::exchange::http2::Violation;
use std::fmt::{self, Display as _};

/// A rule of RFC 9114 or RFC 9204 that the peer broke, or a limit against floods that it exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http3Violation {
    /// A field section that cannot be read.
    Qpack(QpackError),
    /// An instruction of the peer's encoder that a table of capacity 0 does not take.
    Encoder,
    /// An instruction of the peer's decoder about what was never inserted.
    Decoder,
    /// A frame of a message on the control stream.
    MessageOnControl,
    /// A frame of the control stream on a request stream.
    ControlOnRequest,
    /// PUSH_PROMISE although no push was permitted.
    PushPromise,
    /// PUSH_PROMISE from a client.
    PromiseByClient,
    /// A frame type that HTTP/2 has and HTTP/3 has not.
    FrameOfHttp2,
    /// A field section over the limit.
    SectionTooLarge,
    /// A frame of the control stream over the limit.
    FrameTooLarge,
    /// A payload that is longer or shorter than its content.
    FrameLength,
    /// A stream that ends within a frame.
    FrameCut,
    /// Too many frames that say nothing.
    IdleFrames,
    /// A setting that HTTP/2 has and HTTP/3 has not.
    SettingOfHttp2,
    /// A setting that comes twice in a frame.
    SettingTwice,
    /// The first frame of the control stream is not SETTINGS.
    NoSettings,
    /// A second SETTINGS frame.
    SettingsAgain,
    /// A second control stream.
    ControlTwice,
    /// A second stream of an encoder or a decoder.
    QpackTwice,
    /// A push stream although no push was permitted.
    PushStream,
    /// A push stream from a client.
    PushByClient,
    /// A stream that lasts as long as the connection has ended.
    CriticalClosed,
    /// GOAWAY with a later stream than the GOAWAY before.
    GoawayRises,
    /// GOAWAY that names no stream of a request.
    GoawayId,
    /// MAX_PUSH_ID from a server.
    MaxPushByServer,
    /// MAX_PUSH_ID below that of the frame before.
    MaxPushFalls,
    /// CANCEL_PUSH of a push that was never promised.
    CancelPush,
    /// DATA before the final header section.
    DataBeforeHead,
    /// A frame of the message behind its trailers.
    AfterTrailers,
    /// A stream that ends before a final header section.
    NoResponse,
    /// A rule of fields and messages, which HTTP/2 has too.
    Message(Violation),
}

impl From<QpackError> for Http3Violation {
    fn from(error: QpackError) -> Http3Violation {
        Http3Violation::Qpack(error)
    }
}

impl Http3Violation {
    /// Whether it ends its stream alone: a malformed message (RFC 9114 §4.1.2).
    pub fn is_of_stream(self) -> bool {
        matches!(
            self,
            Http3Violation::Message(_)
                | Http3Violation::NoResponse
                | Http3Violation::SectionTooLarge
                | Http3Violation::Qpack(QpackError::ListTooLarge)
        )
    }

    /// The code that tells the peer.
    pub fn code(self) -> Http3Code {
        match self {
            Http3Violation::Qpack(QpackError::ListTooLarge)
            | Http3Violation::SectionTooLarge
            | Http3Violation::FrameTooLarge
            | Http3Violation::IdleFrames => Http3Code::EXCESSIVE_LOAD,
            Http3Violation::Qpack(_) => Http3Code::QPACK_DECOMPRESSION_FAILED,
            Http3Violation::Encoder => Http3Code::QPACK_ENCODER_STREAM_ERROR,
            Http3Violation::Decoder => Http3Code::QPACK_DECODER_STREAM_ERROR,
            Http3Violation::MessageOnControl
            | Http3Violation::ControlOnRequest
            | Http3Violation::PromiseByClient
            | Http3Violation::FrameOfHttp2
            | Http3Violation::SettingsAgain
            | Http3Violation::MaxPushByServer
            | Http3Violation::DataBeforeHead
            | Http3Violation::AfterTrailers => Http3Code::FRAME_UNEXPECTED,
            Http3Violation::FrameLength | Http3Violation::FrameCut => Http3Code::FRAME_ERROR,
            Http3Violation::SettingOfHttp2 | Http3Violation::SettingTwice => {
                Http3Code::SETTINGS_ERROR
            }
            Http3Violation::NoSettings => Http3Code::MISSING_SETTINGS,
            Http3Violation::ControlTwice
            | Http3Violation::QpackTwice
            | Http3Violation::PushByClient => Http3Code::STREAM_CREATION_ERROR,
            Http3Violation::PushStream
            | Http3Violation::PushPromise
            | Http3Violation::GoawayRises
            | Http3Violation::GoawayId
            | Http3Violation::MaxPushFalls
            | Http3Violation::CancelPush => Http3Code::ID_ERROR,
            Http3Violation::CriticalClosed => Http3Code::CLOSED_CRITICAL_STREAM,
            Http3Violation::NoResponse | Http3Violation::Message(_) => Http3Code::MESSAGE_ERROR,
        }
    }
}

/// One line with the rule's section.
impl fmt::Display for Http3Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (what, section) = match self {
            Http3Violation::Qpack(error) => return fmt_qpack(*error, f),
            Http3Violation::Encoder => {
                let what = "the encoder stream fills a dynamic table whose capacity is 0";
                return write!(f, "{what} (RFC 9204 §3.2.3)");
            }
            Http3Violation::Decoder => {
                let what = "the decoder stream acknowledges entries that were never inserted";
                return write!(f, "{what} (RFC 9204 §4.4)");
            }
            Http3Violation::QpackTwice => {
                return write!(f, "a second QPACK stream of one type (RFC 9204 §4.2)");
            }
            Http3Violation::MessageOnControl => {
                ("a frame of a message comes on the control stream", "7.2.1")
            }
            Http3Violation::ControlOnRequest => {
                ("a frame of the control stream comes on a request stream", "7.2.4")
            }
            Http3Violation::PushPromise => ("PUSH_PROMISE although push is off", "7.2.5"),
            Http3Violation::PromiseByClient => ("the client sends PUSH_PROMISE", "7.2.5"),
            Http3Violation::FrameOfHttp2 => ("a frame has a type of HTTP/2", "7.2.8"),
            Http3Violation::SectionTooLarge => ("a field section exceeds 64 KiB", "4.2.2"),
            Http3Violation::FrameTooLarge => ("a control frame exceeds 64 KiB", "10.5"),
            Http3Violation::FrameLength => {
                ("the length of a frame is not that of its content", "7.1")
            }
            Http3Violation::FrameCut => ("a stream ends within a frame", "7.1"),
            Http3Violation::IdleFrames => ("over 1,000 frames in a row without content", "10.5"),
            Http3Violation::SettingOfHttp2 => ("a setting is one of HTTP/2", "7.2.4.1"),
            Http3Violation::SettingTwice => ("a setting comes twice", "7.2.4"),
            Http3Violation::NoSettings => {
                ("the control stream does not begin with SETTINGS", "6.2.1")
            }
            Http3Violation::SettingsAgain => ("a second SETTINGS frame", "7.2.4"),
            Http3Violation::ControlTwice => ("a second control stream", "6.2.1"),
            Http3Violation::PushStream => ("a push stream although push is off", "6.2.2"),
            Http3Violation::PushByClient => ("the client opens a push stream", "6.2.2"),
            Http3Violation::CriticalClosed => {
                ("the control stream or a QPACK stream was closed", "6.2.1")
            }
            Http3Violation::GoawayRises => {
                ("GOAWAY names a later stream than the GOAWAY before", "5.2")
            }
            Http3Violation::GoawayId => ("GOAWAY names no request stream", "7.2.6"),
            Http3Violation::MaxPushByServer => ("the server sends MAX_PUSH_ID", "7.2.7"),
            Http3Violation::MaxPushFalls => ("MAX_PUSH_ID is less than before", "7.2.7"),
            Http3Violation::CancelPush => {
                ("CANCEL_PUSH names a push that was not promised", "7.2.3")
            }
            Http3Violation::DataBeforeHead => ("DATA precedes the header section", "4.1"),
            Http3Violation::AfterTrailers => ("a frame follows the trailers", "4.1"),
            Http3Violation::NoResponse => ("a stream ends without a response", "4.1"),
            Http3Violation::Message(Violation::Switching) => {
                ("status 101 does not exist in HTTP/3", "4.5")
            }
            Http3Violation::Message(violation) => (violation.rule().0, section_of(*violation)),
        };
        write!(f, "{what} (RFC 9114 §{section})")
    }
}

/// The section of RFC 9114 that has a rule of messages.
fn section_of(violation: Violation) -> &'static str {
    match violation {
        Violation::NoStatus | Violation::Status => "4.3.2",
        Violation::StatusTwice
        | Violation::PseudoUnknown
        | Violation::PseudoLate
        | Violation::PseudoInTrailers => "4.3",
        Violation::FieldName
        | Violation::FieldNameCase
        | Violation::FieldValue
        | Violation::ConnectionField => "4.2",
        Violation::ContentLength | Violation::LengthDiffers | Violation::ContentForbidden => {
            "4.1.2"
        }
        Violation::InterimFlood => "10.5",
        _ => "4.1",
    }
}

fn fmt_qpack(error: QpackError, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(match error {
        QpackError::Text(error) => return error.fmt(f),
        QpackError::Dynamic => {
            "a field section needs a dynamic table whose capacity is 0 (RFC 9204 §2.2.3)"
        }
        QpackError::Base => "the base of a field section is below 0 (RFC 9204 §4.5.1.2)",
        QpackError::Index => "a field section has an index without an entry (RFC 9204 §3.1)",
        QpackError::ListTooLarge => "the header fields exceed 64 KiB (RFC 9114 §4.2.2)",
    })
}

/// An error code of streams and connections (RFC 9114 §8.1, RFC 9204 §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http3Code(pub u64);

/// Declares the codes with their names.
macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident $value:literal $text:literal;)*) => {
        impl Http3Code {
            $($(#[$doc])* pub const $name: Http3Code = Http3Code($value);)*

            fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($value => Some($text),)*
                    _ => None,
                }
            }
        }
    };
}

codes! {
    /// A graceful end.
    NO_ERROR 0x100 "H3_NO_ERROR";
    /// The peer broke a rule that has no code of its own.
    GENERAL_PROTOCOL_ERROR 0x101 "H3_GENERAL_PROTOCOL_ERROR";
    /// A fault of the sender.
    INTERNAL_ERROR 0x102 "H3_INTERNAL_ERROR";
    /// A stream that the peer may not open.
    STREAM_CREATION_ERROR 0x103 "H3_STREAM_CREATION_ERROR";
    /// A stream that lasts as long as the connection was closed.
    CLOSED_CRITICAL_STREAM 0x104 "H3_CLOSED_CRITICAL_STREAM";
    /// A frame that may not come at this time or on this stream.
    FRAME_UNEXPECTED 0x105 "H3_FRAME_UNEXPECTED";
    /// A frame of a wrong length.
    FRAME_ERROR 0x106 "H3_FRAME_ERROR";
    /// The peer asks for too much.
    EXCESSIVE_LOAD 0x107 "H3_EXCESSIVE_LOAD";
    /// A stream or push identifier that may not be used.
    ID_ERROR 0x108 "H3_ID_ERROR";
    /// A SETTINGS frame that may not be.
    SETTINGS_ERROR 0x109 "H3_SETTINGS_ERROR";
    /// A control stream that begins with another frame.
    MISSING_SETTINGS 0x10a "H3_MISSING_SETTINGS";
    /// Nothing of the request was done: it may be sent again.
    REQUEST_REJECTED 0x10b "H3_REQUEST_REJECTED";
    /// The stream is no longer needed.
    REQUEST_CANCELLED 0x10c "H3_REQUEST_CANCELLED";
    /// A request that is not whole.
    REQUEST_INCOMPLETE 0x10d "H3_REQUEST_INCOMPLETE";
    /// A malformed message.
    MESSAGE_ERROR 0x10e "H3_MESSAGE_ERROR";
    /// A CONNECT request whose connection failed.
    CONNECT_ERROR 0x10f "H3_CONNECT_ERROR";
    /// The request needs HTTP/1.1.
    VERSION_FALLBACK 0x110 "H3_VERSION_FALLBACK";
    /// A field section that cannot be decoded.
    QPACK_DECOMPRESSION_FAILED 0x200 "QPACK_DECOMPRESSION_FAILED";
    /// An instruction of the encoder that cannot be.
    QPACK_ENCODER_STREAM_ERROR 0x201 "QPACK_ENCODER_STREAM_ERROR";
    /// An instruction of the decoder that cannot be.
    QPACK_DECODER_STREAM_ERROR 0x202 "QPACK_DECODER_STREAM_ERROR";
}

impl fmt::Display for Http3Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "error code {:#x}", self.0),
        }
    }
}
