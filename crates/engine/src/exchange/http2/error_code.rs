//! Why a stream or a connection ends (RFC 9113 §7).

use std::fmt;

/// The number in RST_STREAM and GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorCode(pub(crate) u32);

impl ErrorCode {
    pub(crate) const NO_ERROR: ErrorCode = ErrorCode(0);
    pub(crate) const PROTOCOL_ERROR: ErrorCode = ErrorCode(1);
    pub(crate) const INTERNAL_ERROR: ErrorCode = ErrorCode(2);
    pub(crate) const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(3);
    pub(crate) const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    pub(crate) const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(6);
    pub(crate) const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    pub(crate) const CANCEL: ErrorCode = ErrorCode(8);
    pub(crate) const COMPRESSION_ERROR: ErrorCode = ErrorCode(9);
    pub(crate) const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);
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
