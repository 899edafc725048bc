//! What a peer does wrong with records.

/// What a peer did wrong, or said to be wrong. The connection is of no use from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Violation {
    /// What came does not begin as a record does, or a message in it not as such a message does.
    Malformed(&'static str),
    /// A record or a message is longer than permitted.
    Oversized,
    /// A record is not what the peer sealed: its tag is wrong.
    Unauthentic,
    /// What came has no place there.
    Unexpected(&'static str),
    /// A field has a value that means nothing.
    Illegal(&'static str),
    /// The peer sent an alert, which this is the number of.
    Told(u8),
    /// What is needed for it cannot be had here.
    Internal(String),
}

/// The numbers of alerts (RFC 8446 §6).
pub(super) mod alert {
    pub(crate) const CLOSE_NOTIFY: u8 = 0;
    pub(crate) const UNEXPECTED_MESSAGE: u8 = 10;
    pub(crate) const BAD_RECORD_MAC: u8 = 20;
    pub(crate) const RECORD_OVERFLOW: u8 = 22;
    pub(crate) const ILLEGAL_PARAMETER: u8 = 47;
    pub(crate) const DECODE_ERROR: u8 = 50;
    pub(crate) const INTERNAL_ERROR: u8 = 80;
    pub(crate) const USER_CANCELED: u8 = 90;
    pub(crate) const NO_RENEGOTIATION: u8 = 100;
}

impl Violation {
    /// The alert that the peer is sent for it. `None`: it said itself what is wrong.
    pub(super) fn alert(&self) -> Option<u8> {
        match self {
            Violation::Malformed(_) => Some(alert::DECODE_ERROR),
            Violation::Oversized => Some(alert::RECORD_OVERFLOW),
            Violation::Unauthentic => Some(alert::BAD_RECORD_MAC),
            Violation::Unexpected(_) => Some(alert::UNEXPECTED_MESSAGE),
            Violation::Illegal(_) => Some(alert::ILLEGAL_PARAMETER),
            Violation::Internal(_) => Some(alert::INTERNAL_ERROR),
            Violation::Told(_) => None,
        }
    }
}
