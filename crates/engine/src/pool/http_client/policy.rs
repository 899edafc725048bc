//! What depends on whether connections are kept: when one is abandoned, who closes it, and what an
//! attempt ends as.

use crate::addresses::NextAddress;
use crate::exchange::ConnectionState;
use crate::pool::flight::outcome_of;
use crate::reactor::{Close, ConnectOptions};
use crate::sys::socket::{TcpPhase, TcpState};
use knee_load::measure::{Outcome, Status};
use knee_load::spec::CloseKind;
use std::io;

/// How a client deals with connections.
pub(crate) trait Policy: 'static {
    /// An operation without a connection waits for one, and its own time limit ends it whatever it
    /// waits for. Otherwise it ends for want of a descriptor, and only the connect timeout ends a
    /// connect.
    const WAITS: bool;

    /// How a connection is opened, for requests that leave at once or together.
    fn opening<'a>(&self, to: NextAddress<'a>, leave_at_once: bool) -> ConnectOptions<'a>;

    /// What an error of the operating system means.
    fn outcome_of(error: &io::Error) -> Outcome;

    /// A connection that `lane` opened is secured.
    #[inline]
    fn established(&mut self, _lane: u32) {}

    /// A lane that was told as established, and not taken yet.
    #[inline]
    fn take_established(&mut self) -> Option<u32> {
        None
    }

    /// A connect is not established in time: how it ends. `None`: that is still to be told.
    fn late_connect(state: impl FnOnce() -> Option<TcpState>) -> Option<Outcome>;

    /// A response is not here in time: how its operation ends.
    fn late_response(state: impl FnOnce() -> Option<TcpState>) -> Outcome;

    /// What a response of this status means.
    fn answered(status: Status) -> Outcome;

    /// What becomes of a connection that carries nothing, by what its exchange permits.
    fn idle(&self, state: ConnectionState, keep_alive: bool) -> ConnectionState;

    /// How a connection is closed from this side.
    fn close(&self) -> Close;
}

/// Operations share the connections there are.
#[derive(Clone, Default)]
pub(crate) struct Pooled {
    /// Closes a connection that is not kept at once, whatever the server does with it.
    pub(crate) closes_first: bool,
}

impl Policy for Pooled {
    const WAITS: bool = true;

    fn opening<'a>(&self, to: NextAddress<'a>, _: bool) -> ConnectOptions<'a> {
        ConnectOptions { from: to.from, ..ConnectOptions::to(to.to) }
    }

    fn outcome_of(error: &io::Error) -> Outcome {
        outcome_of(error)
    }

    fn late_connect(_: impl FnOnce() -> Option<TcpState>) -> Option<Outcome> {
        Some(Outcome::ConnectTimeout)
    }

    fn late_response(_: impl FnOnce() -> Option<TcpState>) -> Outcome {
        Outcome::Timeout
    }

    #[inline]
    fn answered(status: Status) -> Outcome {
        status.outcome()
    }

    #[inline]
    fn idle(&self, state: ConnectionState, keep_alive: bool) -> ConnectionState {
        match state {
            ConnectionState::Open | ConnectionState::Closing if self.closes_first => {
                ConnectionState::Broken
            }
            // The server was asked to close it.
            ConnectionState::Open if !keep_alive => ConnectionState::Closing,
            state => state,
        }
    }

    fn close(&self) -> Close {
        Close::Orderly
    }
}

/// Bytes of a request that fit into one segment of any path, so that nothing is held back without
/// TCP_NODELAY.
const SEGMENT_BYTES: usize = 500;

/// The policy of an overload. Each operation has a connection of its own, with T as the time limit
/// for establishing it, however many others are open.
///
/// What the kernel does at a full accept queue decides what the client sees. Linux does not answer
/// a SYN that finds it full: that connect times out. The queue may have room when the SYN comes and
/// be full when the handshake's last ACK does. The server's kernel then drops that ACK and every
/// segment after it, and keeps the connection half-open. It is established at the client and never
/// at the server, and nothing sent over it is acknowledged ([`Outcome::Ghost`]). Only the client's
/// retransmission or the server's repeated SYN-ACK may still find room in time. A connection in the
/// accept queue is a whole one. The kernel acknowledges its request though no server has seen it
/// ([`Outcome::ResponseTimeout`] if none does).
///
/// Datagrams have no handshake. There T limits the time until the first answer, which alone shows
/// that the target is there.
#[derive(Clone)]
pub(crate) struct OnePerOperation {
    close: CloseKind,
    /// Requests do not fit into a segment.
    is_long: bool,
    established: Vec<u32>,
}

impl OnePerOperation {
    /// Closed so once an operation has ended; for requests of up to
    /// `request_bytes_max`.
    pub(crate) fn new(close: CloseKind, request_bytes_max: usize) -> OnePerOperation {
        OnePerOperation {
            close,
            is_long: request_bytes_max > SEGMENT_BYTES,
            established: Vec::new(),
        }
    }
}

impl Policy for OnePerOperation {
    const WAITS: bool = false;

    fn opening<'a>(&self, to: NextAddress<'a>, leave_at_once: bool) -> ConnectOptions<'a> {
        let opening = ConnectOptions::to(to.to);
        let has_more_writes = self.is_long || !leave_at_once;
        ConnectOptions { from: to.from, nodelay: has_more_writes && opening.nodelay, ..opening }
    }

    fn outcome_of(error: &io::Error) -> Outcome {
        match error.raw_os_error() {
            Some(libc::EADDRNOTAVAIL) => Outcome::PortExhausted,
            Some(libc::EMFILE | libc::ENFILE) => Outcome::DescriptorExhausted,
            _ => outcome_of(error),
        }
    }

    #[inline]
    fn established(&mut self, lane: u32) {
        self.established.push(lane);
    }

    #[inline]
    fn take_established(&mut self) -> Option<u32> {
        self.established.pop()
    }

    fn late_connect(state: impl FnOnce() -> Option<TcpState>) -> Option<Outcome> {
        match state().map(|state| state.phase) {
            // Its answer may lie unread: then it was established, if only just.
            Some(TcpPhase::Established) => Some(Outcome::Late),
            // It has failed, and the event that tells how is under way.
            Some(TcpPhase::Closed) => None,
            Some(TcpPhase::Connecting) | None => Some(Outcome::ConnectTimeout),
        }
    }

    /// The server's host has the connection if it has acknowledged the request.
    fn late_response(state: impl FnOnce() -> Option<TcpState>) -> Outcome {
        match state() {
            Some(state) if !state.is_acknowledged => Outcome::Ghost,
            _ => Outcome::ResponseTimeout,
        }
    }

    /// A server that says no has not served, however quickly it does so.
    #[inline]
    fn answered(status: Status) -> Outcome {
        match status.outcome() {
            Outcome::Ok => Outcome::Served,
            refused => refused,
        }
    }

    /// In an orderly close whoever closes first keeps the port in TIME_WAIT for a minute. A server
    /// that announced that it will close is left to do so.
    fn idle(&self, state: ConnectionState, keep_alive: bool) -> ConnectionState {
        match state {
            ConnectionState::Open if keep_alive => ConnectionState::Open,
            ConnectionState::Closing if self.close == CloseKind::Fin => ConnectionState::Closing,
            _ => ConnectionState::Broken,
        }
    }

    fn close(&self) -> Close {
        match self.close {
            CloseKind::Fin => Close::Orderly,
            CloseKind::Rst => Close::Reset,
        }
    }
}
