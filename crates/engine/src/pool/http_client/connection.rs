//! One connection of the pool.

use crate::exchange::{FlightId, Outbox};
use crate::pool::flights::NONE;
use knee_load::measure::Op;
use knee_load::time::Nanos;
use std::io;

pub(super) struct Connection<L, X> {
    pub(super) state: State,
    /// `None` until the connection is established, and in cleartext.
    pub(super) link: Option<L>,
    /// `None` until the connection is secured, or carries early data.
    pub(super) exchange: Option<X>,
    /// Bytes to send.
    pub(super) out: Outbox,
    /// A partly sealed request: its number and the sealed bytes.
    pub(super) sealing: Option<(usize, usize)>,
    /// Operations whose whole request is in the outbox or with the backend.
    pub(super) leaving: Vec<(FlightId, SendProgress)>,
    /// First of the operations under way, or the one that waits for the connection.
    pub(super) first: FlightId,
    /// Operations under way.
    pub(super) carries: u32,
    /// Operations begun so far.
    pub(super) uses: u32,
    /// Its lane.
    pub(super) lane: u32,
    /// The number of the address that it goes to.
    pub(super) address: u16,
    /// Whether the operation under way was begun before the handshake was over.
    pub(super) began_early: bool,
    /// Whether it is to be flushed once all due operations have begun.
    pub(super) is_dirty: bool,
    /// Whether it waits for the next pass to send more.
    pub(super) goes_on: bool,
    /// Why it could not send. The next flush closes it, and nothing earlier, so that the sender
    /// still finds it.
    pub(super) send_error: Option<io::Error>,
    pub(super) opened: Nanos,
    pub(super) connected: Nanos,
    pub(super) secured: Nanos,
}

// Ten thousand connections have one each, whether they are open or not.
const _: () =
    assert!(size_of::<Connection<crate::link::Tls, crate::exchange::http1::Http1>>() <= 256);

impl State {
    /// Whether operations are under way, and not only waiting for the connection.
    pub(super) fn carries(self) -> bool {
        matches!(self, State::Open | State::Early)
    }

    /// Whether the handshake goes on.
    pub(super) fn is_securing(self) -> bool {
        matches!(self, State::Securing | State::Early)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Free,
    Connecting,
    /// Established to a proxy, which is to make a tunnel.
    Tunnelling,
    /// Established; the handshake goes on.
    Securing,
    /// Established with early data: an operation is under way during the handshake.
    Early,
    Open,
    /// The last response is complete; the server is to close the connection.
    Draining,
}

/// Progress of a request to the kernel, once all of it has been put into the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SendProgress {
    /// The outbox has all of it.
    Whole,
    /// The outbox has its end only.
    End,
    /// The backend has all of it.
    Handed,
}

impl<L, X> Default for Connection<L, X> {
    fn default() -> Connection<L, X> {
        Connection {
            state: State::Free,
            link: None,
            exchange: None,
            out: Outbox::default(),
            sealing: None,
            leaving: Vec::new(),
            first: NONE,
            carries: 0,
            uses: 0,
            lane: Op::ANY_LANE,
            address: 0,
            began_early: false,
            is_dirty: false,
            goes_on: false,
            send_error: None,
            opened: Nanos::ZERO,
            connected: Nanos::ZERO,
            secured: Nanos::ZERO,
        }
    }
}
