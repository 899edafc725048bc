//! The reactor: one per worker thread, waits for completions and deadlines together.
//!
//! A [`Backend`] carries bytes for numbered connections and tells what happened to them through a
//! [`Sink`]. Its interface is that of completions, which io_uring gives and epoll imitates by
//! reading at once whatever is ready into one buffer that all connections of the worker share: so
//! neither needs a buffer per connection, and the exchange above cannot tell them apart.

mod epoll;
mod receive_clock;
mod requests;
mod uring;
mod wait;

pub(crate) use epoll::EpollBackend;
pub(crate) use receive_clock::{EventTime, ReceiveClock};
pub(crate) use requests::{Requests, Wire};
pub(crate) use uring::UringBackend;
pub(crate) use wait::{COVERED, Waiter, margin_within_bounds};

use crate::sys::socket::{RawAddress, Socket, TcpState};
use knee_core::time::Nanos;
use std::io;
use std::os::fd::OwnedFd;

/// Bytes that one call of [`Backend::poll`] reads and hands over, at most, but for the last piece:
/// what takes well under a millisecond to read and parse. What has come beyond is handed over by
/// the next call, so that no peer keeps a worker from its timers.
const POLL_BYTES_MAX: usize = 1 << 20;

/// What is sent in one go.
#[derive(Debug)]
pub(crate) enum Payload {
    /// This request, as it was registered before the run.
    Registered(usize),
    /// These bytes, never none, from [`Backend::buffer`].
    Owned(Vec<u8>),
}

/// Buffers that have been sent, to be filled again.
#[derive(Debug, Default)]
struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// So many are kept.
    const KEPT_MAX: usize = 64;

    /// None is kept that has grown beyond this.
    const KEPT_BYTES_MAX: usize = 256 << 10;

    #[inline]
    fn take(&mut self) -> Vec<u8> {
        self.0.pop().unwrap_or_default()
    }

    #[inline]
    fn give_back(&mut self, mut buffer: Vec<u8>) {
        if self.0.len() < Buffers::KEPT_MAX && buffer.capacity() <= Buffers::KEPT_BYTES_MAX {
            buffer.clear();
            self.0.push(buffer);
        }
    }
}

/// What happened on a connection.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// It is established.
    Connected,
    /// These bytes came; never empty.
    Received(Piece<'a>),
    /// These bytes came, never none, and the peer will send no more: as [`Event::Received`] and
    /// then [`Event::Ended`], where both are known at once.
    ReceivedLast(Piece<'a>),
    /// The last payload is whole with the kernel now, and was not, or was not known to be, when
    /// [`Backend::send`] returned.
    Written,
    /// The peer will send no more. May come again until the connection is closed.
    Ended,
    /// It failed: connecting, sending or receiving.
    Failed(io::Error),
}

/// Bytes that came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// They themselves.
    pub bytes: &'a [u8],
    /// When the kernel received the last of them, in nanoseconds of CLOCK_REALTIME; `None` where it
    /// does not tell.
    pub realtime_ns: Option<u64>,
}

impl<'a> Piece<'a> {
    /// Bytes of which only their reader knows when they came.
    pub(crate) fn of(bytes: &'a [u8]) -> Piece<'a> {
        Piece {
            bytes,
            realtime_ns: None,
        }
    }
}

/// Keeps what is watched by its number.
fn place(watched: &mut Vec<Option<OwnedFd>>, source: u32, fd: OwnedFd) {
    let at = source as usize;
    if watched.len() <= at {
        watched.resize_with(at + 1, || None);
    }
    watched[at] = Some(fd);
}

/// Takes the events of a [`Backend`], and may act on it at once.
pub(crate) trait Sink<B> {
    /// Something happened on connection `slot`.
    fn on_event(&mut self, backend: &mut B, slot: u32, event: Event<'_>);

    /// There is something to read from what is watched by this number, or its end. Whether it is to
    /// be watched on.
    fn on_readable(&mut self, _backend: &mut B, _source: u32) -> bool {
        false
    }
}

/// How a connection is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// With a FIN.
    Orderly,
    /// With a RST, so that no TIME_WAIT keeps its port.
    Reset,
}

/// Where a connection goes, and how.
#[derive(Clone, Copy)]
pub(crate) struct Opening<'a> {
    /// Where to.
    pub to: &'a RawAddress,
    /// The local address that it comes from; `None`: the kernel's choice.
    pub from: Option<&'a RawAddress>,
    /// Sends small writes at once (TCP_NODELAY): not needed where all that is ever sent is one
    /// write that fits into a segment.
    pub nodelay: bool,
}

impl Opening<'_> {
    /// From wherever the kernel likes, every write sent at once.
    pub(crate) fn to(address: &RawAddress) -> Opening<'_> {
        Opening {
            to: address,
            from: None,
            nodelay: address.family() != libc::AF_UNIX,
        }
    }

    /// A socket of this kind, made ready by `new`, which tells when bytes came if `timestamps`.
    ///
    /// # Errors
    /// Out of descriptors; the local address is not of this machine.
    fn socket(
        &self,
        new: fn(&RawAddress) -> io::Result<Socket>,
        timestamps: bool,
    ) -> io::Result<Socket> {
        let socket = new(self.to)?;
        if timestamps {
            // A kernel that has none hands the bytes over without.
            let _ = socket.set_timestamps();
        }
        if self.nodelay {
            socket.set_nodelay()?;
        }
        if let Some(from) = self.from {
            socket.bind_address(from)?;
        }
        Ok(socket)
    }
}

/// Carries bytes for the connections of one worker. `slot` numbers them from 0 below the capacity
/// it was made with; a slot may be opened again once it is closed, and no event of a connection
/// comes after it was closed.
pub(crate) trait Backend: Sized {
    /// `epoll` or `io_uring`.
    const NAME: &'static str;

    /// What is sent leaves at once. Otherwise it leaves when [`Backend::poll`] is called next, and
    /// what several events bring about is better sent together.
    const SENDS_AT_ONCE: bool = true;

    /// Begins to connect; [`Event::Connected`] or [`Event::Failed`] follows.
    ///
    /// # Errors
    /// What can be told at once: no descriptors, no ports, unreachable.
    fn open(&mut self, slot: u32, opening: Opening<'_>) -> io::Result<()>;

    /// What the kernel knows of a connection that is or was being opened; `None` where it says
    /// nothing (not TCP, or closed).
    fn tcp_state(&self, slot: u32) -> Option<TcpState>;

    /// The local port of a connection; `None` where there is none or it has none.
    fn local_port(&self, _slot: u32) -> Option<u16> {
        None
    }

    /// Sends `payload` whole, over a connection that is not busy.
    ///
    /// # Errors
    /// What can be told at once; later failures come as [`Event::Failed`].
    fn send(&mut self, slot: u32, payload: Payload) -> io::Result<()>;

    /// Whether a part of the last payload is still to be handed to the kernel, or will never be.
    fn is_sending(&self, slot: u32) -> bool;

    /// Whether another payload has to wait for [`Event::Written`].
    fn is_busy(&self, slot: u32) -> bool {
        self.is_sending(slot)
    }

    /// An empty buffer for a payload: one that was sent before, where there is one.
    fn buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Watches a descriptor that is no connection: [`Sink::on_readable`] tells of it. `source`
    /// numbers them from 0.
    ///
    /// # Errors
    /// Out of memory; not with this backend.
    fn watch(&mut self, _source: u32, _fd: OwnedFd) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Gives a connection up.
    fn close(&mut self, slot: u32, how: Close);

    /// Waits up to `timeout` (zero: not at all) for events and hands them to `sink`; returns early
    /// as soon as there is one. Returns how many there were. Connections have their turns: one with
    /// more bytes than a call may read leaves the rest to the next call.
    ///
    /// # Errors
    /// Of the waiting itself; a signal is not one.
    fn poll<S: Sink<Self>>(&mut self, timeout: Nanos, sink: &mut S) -> io::Result<usize>;
}

#[cfg(test)]
mod tests;
