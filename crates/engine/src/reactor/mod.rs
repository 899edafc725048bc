//! The reactor of one worker thread: waits for completions and deadlines together.
//!
//! A [`Backend`] carries bytes for numbered connections and reports events to a [`Sink`]. Its
//! interface is that of completions. io_uring has it; epoll imitates it by reading whatever is
//! ready into one buffer that all connections of the worker share. So neither needs a buffer per
//! connection, and the exchange cannot tell them apart.
//!
//! # Backends
//!
//! epoll is the default, as it is permitted everywhere. Measured with bare loops in C on loopback
//! (64 connections, 1,294 bytes, client and server on a core each), epoll with one read and one
//! write per request costs within 2 % of io_uring with multishot receives. Both are about 97 % TCP
//! in the kernel. So what matters is to make no needless system call, and to keep the part in user
//! mode small. `bench/RESULTS.md` has current figures.
//!
//! # Bounded reading
//!
//! One call of [`Backend::poll`] passes on about 1 MiB. Over epoll a connection may have 256 KiB of
//! that. With more to read it waits in a queue for the next call, as no further event reports it.
//! So a server that sends faster than knee parses keeps no worker from its timers, its deadline or
//! a signal.
//!
//! # Times
//!
//! The time of received bytes is the kernel's receive timestamp (SO_TIMESTAMPNS), read by recvmsg
//! over epoll and by multishot recvmsg over io_uring. A request counts as written at the time
//! before the call that hands it over: what the kernel does in that call is part of the path.

mod epoll;
mod receive_clock;
#[cfg(test)]
mod tests;
mod uring;
mod wait;

pub(crate) use crate::sys::socket::SocketKind;
use crate::sys::socket::{RawAddress, Socket, TcpState};
pub(crate) use epoll::EpollBackend;
use knee_load::spec::Body;
use knee_load::time::Nanos;
pub(crate) use receive_clock::{EventTime, ReceiveClock};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
pub(crate) use uring::UringBackend;
pub use wait::Waiter;
pub(crate) use wait::{COVERED, margin_within_bounds};

/// Most bytes that one call of [`Backend::poll`] reads, except for the last piece: well under a
/// millisecond to read and parse. The next call reads on, so that no peer keeps a worker from its
/// timers.
const POLL_BYTES_MAX: usize = 1 << 20;

/// Bytes sent in one go. Over a datagram socket each datagram stands behind its length
/// ([`SocketKind::first_of`]).
#[derive(Debug)]
pub(crate) enum Payload {
    /// A request registered before the run, by number.
    Registered(usize),
    /// Bytes, never none, in a buffer from [`Backend::buffer`].
    Owned(Vec<u8>),
}

/// Buffers of sent payloads, for reuse.
#[derive(Debug, Default)]
struct Buffers(Vec<Vec<u8>>);

impl Buffers {
    /// Most buffers kept.
    const KEPT_MAX: usize = 64;

    /// Largest buffer kept, in bytes.
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

/// Event of a connection.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// It is established.
    Connected,
    /// Bytes were received.
    Received(Piece<'a>),
    /// Bytes were received and the peer will send no more: [`Event::Received`] and
    /// [`Event::Ended`] at once.
    ReceivedLast(Piece<'a>),
    /// The kernel has taken the rest of the last payload, after [`Backend::send`] had returned.
    Written,
    /// The peer will send no more. May come again until the connection is closed.
    Ended,
    /// It failed: connecting, sending or receiving.
    Failed(io::Error),
}

/// Received bytes: a piece of a stream, or one datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece<'a> {
    /// The bytes, never none.
    pub bytes: &'a [u8],
    /// Time at which the kernel received the last of them, in nanoseconds of CLOCK_REALTIME; `None`
    /// if it does not tell.
    pub realtime_ns: Option<u64>,
}

impl<'a> Piece<'a> {
    /// Bytes without a time from the kernel.
    pub(crate) fn of(bytes: &'a [u8]) -> Piece<'a> {
        Piece { bytes, realtime_ns: None }
    }
}

/// Keeps a watched descriptor by its number.
fn place(watched: &mut Vec<Option<OwnedFd>>, source: u32, fd: OwnedFd) {
    let at = source as usize;
    if watched.len() <= at {
        watched.resize_with(at + 1, || None);
    }
    watched[at] = Some(fd);
}

/// Receives the events of a [`Backend`], and may act on it at once.
pub(crate) trait Sink {
    /// Handles an event of connection `slot`.
    fn on_event(&mut self, backend: &mut dyn Backend, slot: u32, event: Event<'_>);

    /// A watched descriptor has data or its end. Returns whether to go on watching it.
    fn on_readable(&mut self, _backend: &mut dyn Backend, _source: u32) -> bool {
        false
    }
}

/// How a connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Close {
    /// With a FIN.
    Orderly,
    /// With a RST, so that no TIME_WAIT keeps its port.
    Reset,
}

/// Addresses and options of a new connection.
#[derive(Clone, Copy)]
pub(crate) struct ConnectOptions<'a> {
    /// The remote address.
    pub to: &'a RawAddress,
    /// The local address; `None` for the kernel's choice.
    pub from: Option<&'a RawAddress>,
    /// Whether small writes are sent at once (TCP_NODELAY). Not needed for a single write that fits
    /// into a segment.
    pub nodelay: bool,
    /// What the socket carries.
    pub kind: SocketKind,
}

impl ConnectOptions<'_> {
    /// Options of most connections: any local address, every write sent at once.
    pub(crate) fn to(address: &RawAddress) -> ConnectOptions<'_> {
        let nodelay = address.family() != libc::AF_UNIX;
        ConnectOptions { to: address, from: None, nodelay, kind: SocketKind::Stream }
    }

    /// The same for a socket of this kind.
    pub(crate) fn of_kind(self, kind: SocketKind) -> Self {
        ConnectOptions { nodelay: self.nodelay && kind == SocketKind::Stream, kind, ..self }
    }

    /// Opens a socket by `new`, with receive timestamps if `timestamps`.
    ///
    /// # Errors
    /// Out of descriptors; the local address is not of this machine.
    fn socket(
        &self,
        new: fn(&RawAddress, SocketKind) -> io::Result<Socket>,
        timestamps: bool,
    ) -> io::Result<Socket> {
        let socket = new(self.to, self.kind)?;
        if timestamps {
            // A kernel without timestamps delivers the bytes without.
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

/// Carries bytes for the connections of one worker, numbered by `slot` from 0. A slot may be opened
/// again once it is closed. A closed connection has no further events.
pub(crate) trait Backend {
    /// `epoll` or `io_uring`.
    fn name(&self) -> &'static str;

    /// Whether payloads leave at once. Otherwise they leave at the next [`Backend::poll`], and
    /// those of several events are better sent together.
    fn sends_at_once(&self) -> bool {
        true
    }

    /// Begins to connect. [`Event::Connected`] or [`Event::Failed`] follows.
    ///
    /// # Errors
    /// Known at once: no descriptors, no ports, unreachable.
    fn open(&mut self, slot: u32, opening: ConnectOptions<'_>) -> io::Result<()>;

    /// The kernel's state of a connection; `None` if it has none (not TCP, or closed).
    fn tcp_state(&self, slot: u32) -> Option<TcpState>;

    /// The local port of a connection, if any.
    fn local_port(&self, _slot: u32) -> Option<u16> {
        None
    }

    /// Sends `payload` whole, over a connection that is not busy.
    ///
    /// # Errors
    /// Failures known at once. Later ones come as [`Event::Failed`].
    fn send(&mut self, slot: u32, payload: Payload) -> io::Result<()>;

    /// Whether the kernel has not taken all of the last payload, or never will.
    fn is_sending(&self, slot: u32) -> bool;

    /// Whether another payload has to wait for [`Event::Written`].
    fn is_busy(&self, slot: u32) -> bool {
        self.is_sending(slot)
    }

    /// An empty buffer for a payload, reused if possible.
    fn buffer(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Watches a descriptor that is no connection, for [`Sink::on_readable`]. `source` numbers such
    /// descriptors from 0.
    ///
    /// # Errors
    /// Out of memory; not with this backend.
    fn watch(&mut self, _source: u32, _fd: OwnedFd) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Closes a connection.
    fn close(&mut self, slot: u32, how: Close);

    /// Waits up to `timeout` (zero: not at all) for the first events and passes them to `sink`.
    /// Returns their number. Connections have their turns: one with more bytes than a call may read
    /// leaves the rest to the next call.
    ///
    /// # Errors
    /// Failure of the wait itself. A signal is no error.
    fn poll(&mut self, timeout: Nanos, sink: &mut dyn Sink) -> io::Result<usize>;
}

/// Longest body kept behind its head, so that both are sent in one call. Longer bodies are not
/// copied.
const JOINED_BYTES_MAX: usize = 16 << 10;

/// The requests of a run, serialised once before it. A backend keeps them alive, as the kernel may
/// read from them until a send has completed.
#[derive(Clone, Debug)]
pub(crate) struct WireRequests(Arc<[WireRequest]>);

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct WireRequest {
    /// The head, with a short body behind it.
    head: Box<[u8]>,
    /// A long body, shared with all else that holds it.
    body: Body,
}

impl WireRequest {
    /// A head and the body that follows it.
    pub(crate) fn new(mut head: Vec<u8>, body: &Body) -> WireRequest {
        let mut body = body.clone();
        if body.len() <= JOINED_BYTES_MAX {
            head.extend_from_slice(&body);
            body = Body::default();
        }
        WireRequest { head: head.into_boxed_slice(), body }
    }

    /// Its length on the wire.
    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.body.len()
    }
}

impl WireRequests {
    /// Requests in this order.
    pub(crate) fn new(requests: impl IntoIterator<Item = WireRequest>) -> WireRequests {
        WireRequests(requests.into_iter().collect())
    }

    /// Number of requests.
    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// The length of a request.
    #[inline]
    pub(crate) fn length(&self, request: usize) -> usize {
        self.0[request].len()
    }

    /// The length of the longest.
    pub(crate) fn length_max(&self) -> usize {
        self.0.iter().map(WireRequest::len).max().unwrap_or(0)
    }

    /// A contiguous piece of a request from byte `from` on; empty at its end.
    #[inline]
    pub(crate) fn piece(&self, request: usize, from: usize) -> &[u8] {
        let WireRequest { head, body } = &self.0[request];
        match head.get(from..) {
            Some(rest) if !rest.is_empty() => rest,
            _ => body.get(from - head.len()..).unwrap_or_default(),
        }
    }

    /// The one or two pieces of a request; the second may be empty.
    #[inline]
    pub(crate) fn pieces(&self, request: usize) -> (&[u8], &[u8]) {
        let WireRequest { head, body } = &self.0[request];
        (head, body)
    }
}

#[cfg(test)]
mod requests_tests {
    use super::*;

    #[test]
    fn a_long_body_is_not_copied() {
        let long = Body::from(vec![b'x'; JOINED_BYTES_MAX + 1]);
        let short = Body::from(vec![b'y'; 3]);
        let wires = [&long, &short].map(|body| WireRequest::new(b"head".to_vec(), body));
        let requests = WireRequests::new(wires);
        assert!(std::ptr::eq(requests.pieces(0).1.as_ptr(), long.as_ptr()));
        assert_eq!(requests.pieces(1), (&b"headyyy"[..], &b""[..]));
        for request in 0..requests.count() {
            let mut all = Vec::new();
            while let piece @ [_, ..] = requests.piece(request, all.len()) {
                // Cut short, as a send may be.
                all.extend_from_slice(&piece[..piece.len().div_ceil(2)]);
            }
            assert_eq!(all.len(), requests.length(request));
            assert!(all.starts_with(b"head"));
        }
        assert_eq!(requests.length_max(), long.len() + 4);
    }
}
