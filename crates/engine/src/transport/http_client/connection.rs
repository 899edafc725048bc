//! One kept connection.

use crate::transport::flight::Flight;
use crate::transport::http1::ResponseParser;

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
