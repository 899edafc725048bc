//! What is done at each moment that was waited for.

use super::hybrid::spin_until;
use crate::error::RunError;
use crate::error::reason;
use crate::names::lookup_text;
use crate::sys::clock::MonotonicClock;
use knee_core::experiment::throttle::wait::Chore;
use knee_core::time::{Clock, Nanos};
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

/// A datagram of [`Chore::Udp`].
const PAYLOAD: [u8; 64] = [b'k'; 64];

/// How long a quote is waited for.
const QUOTE_PATIENCE: Duration = Duration::from_millis(100);

/// So many quotes are asked for before a service counts as silent.
const PINGS: u32 = 3;

/// How long a first datagram is given to be refused.
const REFUSAL_PATIENCE: Duration = Duration::from_millis(20);

/// A chore that is ready to be done.
pub(super) enum Work {
    None,
    Busy(Nanos),
    Send(Peer),
    Ask(Asker),
}

/// A connected UDP socket.
pub(super) struct Peer {
    socket: UdpSocket,
    address: SocketAddr,
}

/// Asks a quote of the day service.
pub(super) struct Asker {
    peer: Peer,
    /// Answers that came too late may still arrive.
    is_owed: bool,
}

impl Work {
    /// Opens what the chore needs and tries it once.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: the name is not known, or nobody answers.
    pub(super) fn open(chore: &Chore) -> Result<Work, RunError> {
        match chore {
            Chore::None => Ok(Work::None),
            Chore::Busy(time) => Ok(Work::Busy(*time)),
            Chore::Udp(to) => first_of(to, reach_sink).map(Work::Send),
            Chore::Qotd(to) => first_of(to, reach_service).map(Work::Ask),
        }
    }

    /// Whether there is anything to do.
    pub(super) fn is_any(&self) -> bool {
        !matches!(self, Work::None)
    }

    /// Does it once.
    ///
    /// # Errors
    /// Whoever it was done with is gone. A quote that does not come in time is none: it took the
    /// time that was waited for it.
    #[inline]
    pub(super) fn perform(&mut self, clock: &MonotonicClock) -> Result<(), RunError> {
        match self {
            Work::None => Ok(()),
            Work::Busy(time) => {
                spin_until(clock, clock.now() + *time);
                Ok(())
            }
            Work::Send(peer) => peer.send().map_err(|e| peer.lost(&e)),
            Work::Ask(asker) => asker.ask().map(drop).map_err(|e| asker.peer.lost(&e)),
        }
    }
}

impl Peer {
    fn connect(address: SocketAddr) -> io::Result<Peer> {
        let any: SocketAddr = match address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket = UdpSocket::bind(any)?;
        socket.connect(address)?;
        Ok(Peer { socket, address })
    }

    fn send(&self) -> io::Result<()> {
        self.socket.send(&PAYLOAD).map(drop)
    }

    fn lost(&self, error: &io::Error) -> RunError {
        let (address, reason) = (self.address, reason(error));
        RunError::Unreachable(format!("{address} answered before, and now: {reason}"))
    }
}

impl Asker {
    /// Asks for a quote; whether one came in time.
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
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                self.is_owed = true;
                Ok(false)
            }
            Err(e) if e.kind() == ErrorKind::Interrupted => {
                self.is_owed = true;
                Ok(false)
            }
            Err(e) => Err(e),
        }
    }
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
    match tried.is_empty() {
        true => Err(RunError::Unreachable(format!("'{to}' has no address"))),
        false => Err(RunError::Unreachable(tried.join("; "))),
    }
}

/// A sink need not answer, so only a refusal tells that there is none.
fn reach_sink(address: SocketAddr) -> Result<Peer, String> {
    let refused = |e: io::Error| {
        let reason = reason(&e);
        format!("nobody receives UDP datagrams at {address}: {reason}")
    };
    let peer = Peer::connect(address).map_err(refused)?;
    peer.send().map_err(refused)?;
    peer.socket
        .set_read_timeout(Some(REFUSAL_PATIENCE))
        .map_err(refused)?;
    match peer.socket.recv(&mut [0; 64]) {
        Err(e) if e.kind() == ErrorKind::ConnectionRefused => Err(refused(e)),
        _ => Ok(peer),
    }
}

fn reach_service(address: SocketAddr) -> Result<Asker, String> {
    let refused = |e: io::Error| {
        let reason = reason(&e);
        format!("no quote of the day service at UDP {address}: {reason} (`knee serve qotd` is one)")
    };
    let peer = Peer::connect(address).map_err(refused)?;
    peer.socket
        .set_read_timeout(Some(QUOTE_PATIENCE))
        .map_err(refused)?;
    let mut asker = Asker {
        peer,
        is_owed: false,
    };
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
