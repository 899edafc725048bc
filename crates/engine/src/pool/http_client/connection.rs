//! One kept connection.

use crate::exchange::http1::ResponseParser;
use crate::pool::flight::Flight;
use crate::pool::requests::RequestSet;
use knee_core::time::Nanos;

#[derive(Default)]
pub(super) struct Connection {
    pub(super) state: State,
    pub(super) parser: ResponseParser,
    pub(super) flight: Flight,
    /// Requests sent over it.
    pub(super) uses: u32,
    /// Where it stands among the idle ones.
    pub(super) idle_at: u32,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Free,
    Connecting,
    Idle,
    Busy,
    /// Its last response is here; the server is to close it.
    Draining,
}

impl Connection {
    /// Whether an operation whose connection ended without a byte of a response may go again: a
    /// server may close an idle connection in the very moment in which a request is on its way
    /// (RFC 9112 §9.3.1). Only an idempotent request, on a connection used before, and once.
    pub(super) fn may_repeat(&self, requests: &RequestSet) -> bool {
        self.uses > 1 && !self.flight.repeated && requests.is_idempotent(self.flight.request)
    }
}

pub(super) fn earliest(a: Option<Nanos>, b: Option<Nanos>) -> Option<Nanos> {
    a.into_iter().chain(b).min()
}

pub(super) fn only_empty_lines(bytes: &[u8]) -> bool {
    bytes.iter().all(|b| matches!(b, b'\r' | b'\n'))
}
