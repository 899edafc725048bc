//! One operation, before it starts.

use crate::time::Nanos;

/// An operation that is to be started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Op {
    /// When it should have started.
    pub intended: Nanos,
    /// The virtual user it belongs to (closed loop: it owns connection number `lane`), the
    /// ticket by which an overload knows it, or [`Op::ANY_LANE`] (any connection will do).
    pub lane: u32,
}

impl Op {
    /// The lane of an operation that any connection may carry.
    pub const ANY_LANE: u32 = u32::MAX;
}
