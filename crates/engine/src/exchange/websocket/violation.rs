//! What the peer must not do, by the rule that it breaks.

use super::frame::close_code;
use std::fmt;

/// A rule of RFC 6455 that the peer broke, or a limit that it exceeded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebSocketViolation {
    /// A reserved bit, although no extension was agreed on.
    ReservedBits,
    /// An opcode that has no meaning.
    Opcode(u8),
    /// A control frame in fragments.
    ControlFragmented,
    /// A control frame of more than 125 bytes.
    ControlLong,
    /// A frame of the server with a mask.
    Masked,
    /// A frame of the client without a mask.
    Unmasked,
    /// A length in more bytes than it needs.
    LengthNotMinimal,
    /// A length of 2⁶³ or more.
    LengthTooLarge,
    /// A continuation of nothing.
    ContinuationAlone,
    /// A new message before the last fragment of the one before.
    Interleaved,
    /// A compressed message that is no DEFLATE.
    NotDeflate,
    /// A text that is not UTF-8.
    NotUtf8,
    /// A close frame of one byte.
    CloseCut,
    /// A close code that must not be sent.
    CloseCode(u16),
    /// A close reason that is not UTF-8.
    CloseReason,
    /// A frame after the close frame.
    AfterClose,
    /// A message over the limit of this side.
    MessageTooLong(usize),
    /// More messages than the operations can take that wait for them.
    MessageFlood(usize),
    /// An answer to the opening handshake that is no HTTP, or larger than its limit.
    HandshakeNotHttp,
    /// A status other than 101.
    HandshakeStatus(u16),
    /// No `Upgrade: websocket`.
    HandshakeUpgrade,
    /// No `Connection: Upgrade`.
    HandshakeConnection,
    /// A Sec-WebSocket-Accept that does not follow from the key, or none.
    HandshakeAccept,
    /// An extension that was not offered.
    HandshakeExtension,
    /// Parameters of permessage-deflate that are not permitted.
    HandshakeDeflate,
    /// A subprotocol that was not offered.
    HandshakeProtocol,
}

impl WebSocketViolation {
    /// The code to close the connection with (RFC 6455 §7.4.1).
    pub fn close_code(&self) -> u16 {
        match self {
            WebSocketViolation::NotUtf8
            | WebSocketViolation::NotDeflate
            | WebSocketViolation::CloseReason => close_code::NOT_UTF8,
            WebSocketViolation::MessageTooLong(_) => close_code::TOO_LONG,
            WebSocketViolation::MessageFlood(_) => close_code::POLICY,
            _ => close_code::PROTOCOL_ERROR,
        }
    }
}

impl fmt::Display for WebSocketViolation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self {
            WebSocketViolation::ReservedBits => "a reserved bit is set (RFC 6455 §5.2)",
            WebSocketViolation::Opcode(code) => {
                return write!(f, "the opcode {code:#x} is reserved (RFC 6455 §5.2)");
            }
            WebSocketViolation::ControlFragmented => {
                "a control frame is fragmented (RFC 6455 §5.5)"
            }
            WebSocketViolation::ControlLong => "a control frame has over 125 bytes (RFC 6455 §5.5)",
            WebSocketViolation::Masked => "a frame of the server is masked (RFC 6455 §5.1)",
            WebSocketViolation::Unmasked => "a frame of the client is not masked (RFC 6455 §5.1)",
            WebSocketViolation::LengthNotMinimal => {
                "a length is not in the fewest bytes possible (RFC 6455 §5.2)"
            }
            WebSocketViolation::LengthTooLarge => {
                "the highest bit of a length is set (RFC 6455 §5.2)"
            }
            WebSocketViolation::ContinuationAlone => {
                "a continuation frame continues nothing (RFC 6455 §5.4)"
            }
            WebSocketViolation::Interleaved => {
                "a message begins before the one before has ended (RFC 6455 §5.4)"
            }
            WebSocketViolation::NotDeflate => {
                "a compressed message is no DEFLATE (RFC 7692 §7.2.2)"
            }
            WebSocketViolation::NotUtf8 => "a text message is not UTF-8 (RFC 6455 §8.1)",
            WebSocketViolation::CloseCut => "a close frame has one byte (RFC 6455 §5.5.1)",
            WebSocketViolation::CloseCode(code) => {
                return write!(f, "the close code {code} must not be sent (RFC 6455 §7.4)");
            }
            WebSocketViolation::CloseReason => {
                "the reason of a close frame is not UTF-8 (RFC 6455 §5.5.1)"
            }
            WebSocketViolation::AfterClose => "a frame follows the close frame (RFC 6455 §5.5.1)",
            WebSocketViolation::MessageTooLong(limit) => {
                return write!(f, "a message has more than {limit} bytes (RFC 6455 §10.4)");
            }
            WebSocketViolation::MessageFlood(limit) => {
                return write!(
                    f,
                    "over {limit} messages wait for operations: give more --vusers (RFC 6455 §10.4)"
                );
            }
            WebSocketViolation::HandshakeNotHttp => {
                "the answer to the opening handshake is no HTTP/1.1 (RFC 6455 §4.1)"
            }
            WebSocketViolation::HandshakeStatus(status) => {
                return write!(f, "it does not upgrade: status {status}, not 101 (RFC 6455 §4.1)");
            }
            WebSocketViolation::HandshakeUpgrade => {
                "the opening handshake has no 'Upgrade: websocket' (RFC 6455 §4.1)"
            }
            WebSocketViolation::HandshakeConnection => {
                "the opening handshake has no 'Connection: Upgrade' (RFC 6455 §4.1)"
            }
            WebSocketViolation::HandshakeAccept => {
                "Sec-WebSocket-Accept does not match the key (RFC 6455 §4.1)"
            }
            WebSocketViolation::HandshakeExtension => {
                "the server chose an extension that was not offered (RFC 6455 §4.1)"
            }
            WebSocketViolation::HandshakeDeflate => {
                "the server chose permessage-deflate with parameters that were not offered \
                 (RFC 7692 §7.1)"
            }
            WebSocketViolation::HandshakeProtocol => {
                "the server chose a subprotocol that was not offered (RFC 6455 §4.1)"
            }
        };
        f.write_str(what)
    }
}
