//! What driving a connection takes, and what comes of it.

use super::context::Context;
use super::request::HEAD_MAX;
use knee_engine::sys::epoll::Epoll;
use knee_load::time::Nanos;

/// Bytes that are read at once. Requests that are split are put together in the same buffer, so it
/// must hold more than a whole head, and than a whole frame.
pub(super) const BUFFER_SIZE: usize = 64 * 1024;
const _: () = assert!(BUFFER_SIZE > 2 * HEAD_MAX);

/// Bytes that a refused client may still send. Closing earlier would reset the connection and could
/// destroy the refusal on its way (RFC 9112 9.6).
pub(super) const DRAIN_MAX: usize = 1 << 20;

/// Interval of sending bytes of a slow body.
pub(super) const TRICKLE_TICK: Nanos = Nanos::from_millis(4);

/// Shared resources for driving a connection.
pub(super) struct Tools<'a> {
    pub(super) context: &'a mut Context,
    pub(super) epoll: &'a Epoll,
    /// [`BUFFER_SIZE`] bytes that all connections read into.
    pub(super) buffer: &'a mut [u8],
    /// Buffer for encrypted input; empty without TLS.
    pub(super) sealed: &'a mut [u8],
}

/// State of a connection after it was driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    /// The connection waits for an event or its timer.
    Open,
    /// The connection speaks HTTP/2 and is to be driven as such.
    Switched,
    /// The connection is to be dropped. With the ideal end of its service, if a response ended it
    /// at once.
    Closed(Option<Nanos>),
}

/// Why driving stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DriveStop {
    /// Wait for the next event or timer.
    Wait,
    /// It speaks HTTP/2.
    Switch,
    /// The connection is over.
    Close,
}

/// Driving goes on, or pauses.
pub(super) type DriveResult = Result<(), DriveStop>;
