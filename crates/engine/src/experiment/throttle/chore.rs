//! The operation after each wait: nothing, busy work, a datagram, or a question.

use super::wait::spin_until;
use crate::error::{RunError, reason};
use crate::names::lookup_text;
use crate::sys::clock::MonotonicClock;
use crate::sys::udp;
use knee_load::experiment::throttle::Chore;
use knee_load::time::{Clock, Nanos};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, UdpSocket};
use std::time::Duration;

/// A datagram of [`Chore::Udp`].
const PAYLOAD: [u8; 64] = [b'k'; 64];

/// Time limit of a quote.
const QUOTE_PATIENCE: Duration = Duration::from_millis(100);

/// Attempts before a service counts as silent.
const PINGS: u32 = 3;

/// Time in which the first datagram may be refused.
const REFUSAL_PATIENCE: Duration = Duration::from_millis(20);

/// A chore with what it needs.
pub(super) enum OpenChore {
    None,
    Busy(Nanos),
    Send(ConnectedPeer),
    Ask(QuoteClient),
}

/// A connected UDP socket.
pub(super) struct ConnectedPeer {
    socket: UdpSocket,
    address: SocketAddr,
}

/// Client of a quote of the day service.
pub(super) struct QuoteClient {
    peer: ConnectedPeer,
    /// Whether a late answer may still arrive.
    is_owed: bool,
}

impl OpenChore {
    /// Opens what the chore needs and tries the chore once.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the name is unknown, or nothing answers.
    pub(super) fn open(chore: &Chore) -> Result<OpenChore, RunError> {
        match chore {
            Chore::None => Ok(OpenChore::None),
            Chore::Busy(time) => Ok(OpenChore::Busy(*time)),
            Chore::Udp(to) => first_of(to, reach_sink).map(OpenChore::Send),
            Chore::Qotd(to) => first_of(to, reach_service).map(OpenChore::Ask),
        }
    }

    /// Whether the chore does anything.
    pub(super) fn is_any(&self) -> bool {
        !matches!(self, OpenChore::None)
    }

    /// Does the chore once.
    ///
    /// # Errors
    /// The peer is gone. A quote that does not come in time is no error: it took the time that was
    /// waited.
    #[inline]
    pub(super) fn perform(&mut self, clock: &MonotonicClock) -> Result<(), RunError> {
        match self {
            OpenChore::None => Ok(()),
            OpenChore::Busy(time) => {
                spin_until(clock, clock.now() + *time);
                Ok(())
            }
            OpenChore::Send(peer) => peer.send().map_err(|e| peer.lost(&e)),
            OpenChore::Ask(asker) => asker.ask().map(drop).map_err(|e| asker.peer.lost(&e)),
        }
    }
}

impl ConnectedPeer {
    fn connect(address: SocketAddr) -> io::Result<ConnectedPeer> {
        let socket = udp::connected(address)?;
        Ok(ConnectedPeer { socket, address })
    }

    fn send(&self) -> io::Result<()> {
        self.socket.send(&PAYLOAD).map(drop)
    }

    fn lost(&self, error: &io::Error) -> RunError {
        let (address, reason) = (self.address, reason(error));
        RunError::Unreachable(format!("{address} answered before, and now: {reason}"))
    }
}

impl QuoteClient {
    /// Asks for a quote. Returns whether one came in time.
    fn ask(&mut self) -> io::Result<bool> {
        let socket = &self.peer.socket;
        let mut quote = [0; 1024];
        if self.is_owed {
            socket.set_nonblocking(true)?;
            while socket.recv(&mut quote).is_ok() {}
            socket.set_nonblocking(false)?;
            self.is_owed = false;
        }
        self.peer.send()?;
        match socket.recv(&mut quote) {
            Ok(_) => Ok(true),
            Err(e) if is_no_answer(&e) => {
                self.is_owed = true;
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
}

fn is_no_answer(error: &io::Error) -> bool {
    use ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), WouldBlock | TimedOut | Interrupted)
}

/// The first of the addresses that `reach` succeeds with.
fn first_of<T>(to: &str, reach: impl Fn(SocketAddr) -> Result<T, String>) -> Result<T, RunError> {
    let addresses = lookup_text(to).map_err(|unknown| {
        let reason = unknown.reason();
        RunError::Unreachable(format!(
            "cannot resolve '{to}': {reason}; give HOST:PORT such as 127.0.0.1:17"
        ))
    })?;
    let mut tried = Vec::new();
    for address in addresses {
        match reach(address) {
            Ok(reached) => return Ok(reached),
            Err(line) => tried.push(line),
        }
    }
    if tried.is_empty() {
        tried.push(format!("'{to}' has no address"));
    }
    Err(RunError::Unreachable(tried.join("; ")))
}

/// A sink need not answer: only a refusal shows that there is none.
fn reach_sink(address: SocketAddr) -> Result<ConnectedPeer, String> {
    let refused = |e: io::Error| {
        let reason = reason(&e);
        format!("nobody receives UDP datagrams at {address}: {reason}")
    };
    let peer = ConnectedPeer::connect(address).map_err(refused)?;
    peer.send().map_err(refused)?;
    peer.socket.set_read_timeout(Some(REFUSAL_PATIENCE)).map_err(refused)?;
    match peer.socket.recv(&mut [0; 64]) {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => Err(refused(e)),
        _ => Ok(peer),
    }
}

fn reach_service(address: SocketAddr) -> Result<QuoteClient, String> {
    let refused = |e: io::Error| {
        let reason = reason(&e);
        format!("no quote of the day service at UDP {address}: {reason} (`knee serve qotd` is one)")
    };
    let peer = ConnectedPeer::connect(address).map_err(refused)?;
    peer.socket.set_read_timeout(Some(QUOTE_PATIENCE)).map_err(refused)?;
    let mut asker = QuoteClient { peer, is_owed: false };
    for _ in 0..PINGS {
        if asker.ask().map_err(refused)? {
            return Ok(asker);
        }
    }
    Err(format!(
        "UDP {address} sent no quote of the day in {PINGS} times {} ms",
        QUOTE_PATIENCE.as_millis()
    ))
}
