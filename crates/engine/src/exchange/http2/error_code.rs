//! Why a stream or a connection ends (RFC 9113 §7).

/// The number in RST_STREAM and GOAWAY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorCode(pub(crate) u32);

impl ErrorCode {
    pub(crate) const NO_ERROR: ErrorCode = ErrorCode(0);
    pub(crate) const PROTOCOL_ERROR: ErrorCode = ErrorCode(1);
    pub(crate) const FLOW_CONTROL_ERROR: ErrorCode = ErrorCode(3);
    pub(crate) const STREAM_CLOSED: ErrorCode = ErrorCode(5);
    pub(crate) const FRAME_SIZE_ERROR: ErrorCode = ErrorCode(6);
    pub(crate) const REFUSED_STREAM: ErrorCode = ErrorCode(7);
    pub(crate) const CANCEL: ErrorCode = ErrorCode(8);
    pub(crate) const COMPRESSION_ERROR: ErrorCode = ErrorCode(9);
    pub(crate) const ENHANCE_YOUR_CALM: ErrorCode = ErrorCode(11);
}
