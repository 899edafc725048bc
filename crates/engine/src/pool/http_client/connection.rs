//! One kept connection.

use crate::exchange::{FlightId, Outbox};
use crate::pool::flights::NONE;
use knee_core::measure::Op;
use knee_core::time::Nanos;
use std::io;

pub(super) struct Connection<L, X> {
    pub(super) state: State,
    /// Once it is established.
    pub(super) link: Option<L>,
    /// Once it is secured, or earlier where it carries an operation before.
    pub(super) exchange: Option<X>,
    /// What is to be sent.
    pub(super) out: Outbox,
    /// A request that has been sealed up to this byte, and not whole.
    pub(super) sealing: Option<(usize, usize)>,
    /// Operations whose requests are in the outbox or on their way to the kernel, to their end.
    pub(super) leaving: Vec<(FlightId, Leaving)>,
    /// The first of the operations under way on it, or the one that waits for it.
    pub(super) first: FlightId,
    /// How many are under way on it.
    pub(super) carries: u32,
    /// Operations begun on it.
    pub(super) uses: u32,
    /// The lane that it is for.
    pub(super) lane: u32,
    /// The operation under way on it was begun before it was secured.
    pub(super) began_early: bool,
    /// It is to be flushed once all that is due has begun.
    pub(super) is_dirty: bool,
    /// Why it could not send. It is given up when it is flushed, and not before, so that whoever
    /// sends over it still finds it afterwards.
    pub(super) send_error: Option<io::Error>,
    pub(super) opened: Nanos,
    pub(super) connected: Nanos,
    pub(super) secured: Nanos,
}

// Ten thousand connections have one each, whether they are open or not.
const _: () =
    assert!(size_of::<Connection<crate::link::Clear, crate::exchange::http1::Http1>>() <= 256);

impl State {
    /// Whether operations are under way on such a connection, and not only waiting for it.
    pub(super) fn carries(self) -> bool {
        matches!(self, State::Open | State::Early)
    }

    /// Whether its handshake goes on.
    pub(super) fn is_securing(self) -> bool {
        matches!(self, State::Securing | State::Early)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum State {
    #[default]
    Free,
    Connecting,
    /// Established; its handshake goes on.
    Securing,
    /// Likewise, and an operation is under way on it: its request goes out with the handshake.
    Early,
    Open,
    /// Its last response is here; the server is to close it.
    Draining,
}

/// How far a request is on its way to the kernel, of which all has been put into the outbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaving {
    /// It is in the outbox from its begin.
    Whole,
    /// Its end is in the outbox, what was before it is not.
    End,
    /// None of it is in the outbox: the backend has it.
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
            began_early: false,
            is_dirty: false,
            send_error: None,
            opened: Nanos::ZERO,
            connected: Nanos::ZERO,
            secured: Nanos::ZERO,
        }
    }
}
