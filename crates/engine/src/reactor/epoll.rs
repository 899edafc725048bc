//! The epoll backend: edge-triggered, one registration per connection for its whole life.

use super::{
    Backend, Buffers, Close, ConnectOptions, Event, POLL_BYTES_MAX, Payload, Piece, Sink,
    WireRequests, place,
};
use crate::sys::epoll::{self, Epoll, flags};
use crate::sys::socket::{RawAddress, Socket, SocketKind, TcpState};
use knee_load::time::Nanos;
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;

/// Most bytes of one read. All connections of the worker share the buffer.
const READ_BYTES: usize = 128 * 1024;

/// Most bytes read from a connection before others have their turn.
const TURN_BYTES_MAX: usize = 2 * READ_BYTES;

/// What a datagram counts for as bytes at least: a call each, however short it is.
const DATAGRAM_BYTES_MIN: usize = 1 << 10;

/// Pause until a Unix listener whose queue was full is tried again: no event says that it has room.
const FULL_PAUSE: Nanos = Nanos(500_000);

/// What a connection is watched for.
const WATCH: u32 = flags::READ | flags::WRITE | flags::READ_CLOSED | flags::EDGE;

/// First token of watched descriptors that are no connections.
const WATCHED: u64 = 1 << 63;

/// Most events fetched at once.
const EVENTS_MAX: usize = 256;

/// Carries traffic over epoll(7).
///
/// Edge-triggered, as level-triggered readiness costs a second look at every connection. A read
/// that did not fill the buffer has emptied the socket (epoll(7)), so no second read is needed. If
/// the peer has closed as well, those bytes were its last ones. A datagram socket is read until it
/// has no more.
///
/// A connection with more to read than one turn permits waits in a queue, as no further event
/// announces it. So no peer, however fast, keeps the worker from others or from its timers.
pub(crate) struct EpollBackend {
    epoll: Epoll,
    connections: Vec<Connection>,
    requests: WireRequests,
    spare: Buffers,
    events: Box<[epoll::EpollEvent]>,
    buffer: Box<[u8]>,
    timestamps: bool,
    /// Tokens of connections that wait for their turn to be read.
    turns: VecDeque<u64>,
    /// Tokens of connections to Unix listeners whose queues are full, with the addresses.
    unqueued: VecDeque<(u64, RawAddress)>,
    /// Bytes that this call of `poll` may still read.
    readable_bytes: usize,
    /// Watched descriptors that are no connections, by number.
    watched: Vec<Option<OwnedFd>>,
}

#[derive(Default)]
struct Connection {
    socket: Option<Socket>,
    kind: SocketKind,
    /// Counts the connections of the slot, to detect events of earlier ones.
    generation: u32,
    connected: bool,
    /// It waits for its turn to be read; with the known end of its stream.
    unread: Option<Ending>,
    /// A partly sent payload and the number of its sent bytes.
    unsent: Option<(Payload, usize)>,
    /// Why sending ended early. Received bytes are still to be read.
    send_error: Option<i32>,
}

/// The end of the peer's stream, as far as an event tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    No,
    /// An orderly close: the FIN and all bytes before it were received.
    Closed,
    /// The connection is gone; reading returns the error.
    Gone,
}

impl Ending {
    fn of(event: epoll::EpollEvent) -> Ending {
        if event.flags() & (flags::HANG_UP | flags::ERROR) != 0 {
            Ending::Gone
        } else if event.flags() & flags::READ_CLOSED != 0 {
            Ending::Closed
        } else {
            Ending::No
        }
    }
}

impl EpollBackend {
    /// A backend for up to `capacity` connections, with receive timestamps if `timestamps`.
    ///
    /// # Errors
    /// The kernel refuses an epoll instance.
    pub(crate) fn new(
        capacity: usize,
        requests: WireRequests,
        timestamps: bool,
    ) -> io::Result<EpollBackend> {
        let mut connections = Vec::new();
        connections.resize_with(capacity, Connection::default);
        Ok(EpollBackend {
            epoll: Epoll::new()?,
            connections,
            requests,
            spare: Buffers::default(),
            events: vec![epoll::EpollEvent::EMPTY; EVENTS_MAX].into_boxed_slice(),
            buffer: vec![0; READ_BYTES].into_boxed_slice(),
            timestamps,
            turns: VecDeque::new(),
            unqueued: VecDeque::new(),
            readable_bytes: 0,
            watched: Vec::new(),
        })
    }

    fn handle(&mut self, event: epoll::EpollEvent, buffer: &mut [u8], sink: &mut dyn Sink) {
        if event.token() & WATCHED != 0 {
            return self.report_readable(event.token() as u32, sink);
        }
        let slot = event.token() as u32;
        let generation = (event.token() >> 32) as u32;
        let connection = &self.connections[slot as usize];
        if connection.generation != generation {
            return;
        }
        if !connection.connected {
            let failed = event.flags() & (flags::ERROR | flags::HANG_UP) != 0;
            if !event.is_writable() || !self.finish_connect(slot, generation, failed, sink) {
                return;
            }
        }
        if event.is_readable() {
            let ending = Ending::of(event);
            match &mut self.connections[slot as usize].unread {
                None => self.receive(event.token(), ending, buffer, sink),
                Some(known) => *known = ending.max(*known),
            }
        }
        // Follows what has come. A server may answer and close before it has read the whole
        // request. Sending on then fails although its answer has arrived.
        let connection = &mut self.connections[slot as usize];
        if connection.generation == generation
            && event.is_writable()
            && let Some((payload, gone)) = connection.unsent.take()
        {
            match self.send_from(slot, payload, gone) {
                Ok(()) if self.is_sending(slot) => {}
                Ok(()) => sink.on_event(self, slot, Event::Written),
                Err(error) => sink.on_event(self, slot, Event::Failed(error)),
            }
        }
    }

    #[cold]
    fn report_readable(&mut self, source: u32, sink: &mut dyn Sink) {
        let is_watched = |fd: &Option<OwnedFd>| fd.is_some();
        if self.watched.get(source as usize).is_some_and(is_watched)
            && !sink.on_readable(self, source)
            && let Some(fd) = self.watched[source as usize].take()
        {
            // It may be open elsewhere, so that closing it is not enough.
            let _ = self.epoll.delete(&fd);
        }
    }

    /// Whether the connection is established. Asks for an error only if the event has one.
    fn finish_connect(
        &mut self,
        slot: u32,
        generation: u32,
        failed: bool,
        sink: &mut dyn Sink,
    ) -> bool {
        let connection = &mut self.connections[slot as usize];
        let Some(socket) = &connection.socket else {
            return false;
        };
        let error = if failed { socket.take_error() } else { Ok(None) };
        match error {
            Ok(None) => {
                connection.connected = true;
                sink.on_event(self, slot, Event::Connected);
            }
            Ok(Some(error)) | Err(error) => sink.on_event(self, slot, Event::Failed(error)),
        }
        let connection = &self.connections[slot as usize];
        connection.connected && connection.generation == generation
    }

    /// Connects to Unix listeners whose queues were full, up to the first that still is. Its
    /// connection goes to the end of the line. Returns the number of connects that are over.
    #[cold]
    fn join_queues(&mut self, sink: &mut dyn Sink) -> usize {
        let before = self.unqueued.len();
        while let Some((token, address)) = self.unqueued.pop_front() {
            let slot = token as u32;
            let Some(socket) = &self.connections[slot as usize].socket else {
                continue;
            };
            let begun = socket.connect(&address);
            match begun.and_then(|_| self.epoll.add(socket, token, WATCH)) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.unqueued.push_back((token, address));
                    break;
                }
                Err(error) => sink.on_event(self, slot, Event::Failed(error)),
            }
        }
        before.saturating_sub(self.unqueued.len())
    }

    /// Reads connections whose turn has come. Returns their number.
    #[cold]
    fn take_turns(&mut self, buffer: &mut [u8], sink: &mut dyn Sink) -> usize {
        let waiting = self.turns.len();
        for taken in 0..waiting {
            if self.readable_bytes == 0 {
                return taken;
            }
            let Some(token) = self.turns.pop_front() else {
                return taken;
            };
            let connection = &mut self.connections[token as u32 as usize];
            if connection.generation == (token >> 32) as u32
                && let Some(ending) = connection.unread.take()
            {
                self.receive(token, ending, buffer, sink);
            }
        }
        waiting
    }

    /// Reads a connection to its end, at most for one turn.
    #[inline]
    fn receive(&mut self, token: u64, ending: Ending, buffer: &mut [u8], sink: &mut dyn Sink) {
        let (slot, generation) = (token as u32, (token >> 32) as u32);
        let mut turn_bytes = TURN_BYTES_MAX.min(self.readable_bytes);
        loop {
            let connection = &mut self.connections[slot as usize];
            let Some(socket) = &connection.socket else {
                return;
            };
            if connection.generation != generation {
                return;
            }
            if turn_bytes == 0 {
                connection.unread = Some(ending);
                return self.turns.push_back(token);
            }
            let is_stream = connection.kind == SocketKind::Stream;
            let mut datagram_bytes = usize::MAX;
            let received = if connection.kind == SocketKind::CoalescedDatagrams {
                socket.receive_datagrams(buffer).map(|(n, each, realtime_ns)| {
                    datagram_bytes = each.max(1);
                    (n, realtime_ns)
                })
            } else if self.timestamps {
                socket.receive(buffer)
            } else {
                socket.read(buffer).map(|n| (n, None))
            };
            let received =
                received.map(|(n, realtime_ns)| Piece { bytes: &buffer[..n], realtime_ns });
            let least = if is_stream { 0 } else { DATAGRAM_BYTES_MIN };
            let read = received.as_ref().map_or(0, |piece| piece.bytes.len().max(least));
            turn_bytes = turn_bytes.saturating_sub(read);
            self.readable_bytes = self.readable_bytes.saturating_sub(read);
            match received {
                Ok(Piece { bytes, realtime_ns }) if !is_stream => {
                    for bytes in bytes.chunks(datagram_bytes) {
                        if self.connections[slot as usize].generation != generation {
                            return;
                        }
                        sink.on_event(self, slot, Event::Received(Piece { bytes, realtime_ns }));
                    }
                }
                Ok(Piece { bytes: [], .. }) => {
                    let event = match self.connections[slot as usize].send_error.take() {
                        Some(error) => Event::Failed(io::Error::from_raw_os_error(error)),
                        None => Event::Ended,
                    };
                    return sink.on_event(self, slot, event);
                }
                Ok(piece) if piece.bytes.len() < buffer.len() && ending == Ending::Closed => {
                    return sink.on_event(self, slot, Event::ReceivedLast(piece));
                }
                Ok(piece) => {
                    sink.on_event(self, slot, Event::Received(piece));
                    if piece.bytes.len() < buffer.len() && ending == Ending::No {
                        return;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => return sink.on_event(self, slot, Event::Failed(error)),
            }
        }
    }

    /// Sends a payload from byte `gone` on. Keeps what the kernel does not take.
    #[inline]
    fn send_from(&mut self, slot: u32, payload: Payload, mut gone: usize) -> io::Result<()> {
        let connection = &mut self.connections[slot as usize];
        let Some(socket) = &connection.socket else {
            return Ok(());
        };
        loop {
            let piece = match &payload {
                Payload::Registered(request) => self.requests.piece(*request, gone),
                Payload::Owned(bytes) => &bytes[gone..],
            };
            if piece.is_empty() {
                break;
            }
            let (border, piece) = connection.kind.first_of(piece);
            match socket.send(piece) {
                Ok(n) => gone += border + n,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.unsent = Some((payload, gone));
                    return Ok(());
                }
                // A server may answer and close before it has read the whole request. Its answer
                // may be here: what is received tells.
                Err(error) if is_closed_by_peer(&error) => {
                    connection.unsent = Some((payload, gone));
                    connection.send_error = error.raw_os_error();
                    return Ok(());
                }
                Err(error) => return Err(error),
            }
        }
        if let Payload::Owned(buffer) = payload {
            self.spare.give_back(buffer);
        }
        Ok(())
    }
}

/// Whether a Unix listener's queue is full (connect(2)), which is no refusal.
fn is_queue_full(error: &io::Error, address: &RawAddress) -> bool {
    error.kind() == io::ErrorKind::WouldBlock && address.family() == libc::AF_UNIX
}

fn is_closed_by_peer(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EPIPE | libc::ECONNRESET))
}

impl Backend for EpollBackend {
    fn name(&self) -> &'static str {
        "epoll"
    }

    fn open(&mut self, slot: u32, opening: ConnectOptions<'_>) -> io::Result<()> {
        let socket = opening.socket(Socket::of_kind, self.timestamps)?;
        let connection = &mut self.connections[slot as usize];
        let token = u64::from(connection.generation) << 32 | u64::from(slot);
        match socket.connect(opening.to) {
            Err(error) if is_queue_full(&error, opening.to) => {
                self.unqueued.push_back((token, opening.to.clone()));
            }
            begun => {
                begun?;
                self.epoll.add(&socket, token, WATCH)?;
            }
        }
        (connection.socket, connection.kind) = (Some(socket), opening.kind);
        connection.connected = false;
        (connection.unsent, connection.send_error) = (None, None);
        Ok(())
    }

    fn tcp_state(&self, slot: u32) -> Option<TcpState> {
        self.connections[slot as usize].socket.as_ref()?.tcp_state()
    }

    fn local_port(&self, slot: u32) -> Option<u16> {
        self.connections[slot as usize].socket.as_ref()?.local_port()
    }

    #[inline]
    fn send(&mut self, slot: u32, payload: Payload) -> io::Result<()> {
        self.send_from(slot, payload, 0)
    }

    #[inline]
    fn is_sending(&self, slot: u32) -> bool {
        self.connections[slot as usize].unsent.is_some()
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.take()
    }

    fn watch(&mut self, source: u32, fd: OwnedFd) -> io::Result<()> {
        // Level-triggered: nobody has to read all of it at once.
        let token = WATCHED | u64::from(source);
        self.epoll.add(&fd, token, flags::READ)?;
        place(&mut self.watched, source, fd);
        Ok(())
    }

    fn close(&mut self, slot: u32, how: Close) {
        let connection = &mut self.connections[slot as usize];
        connection.generation = connection.generation.wrapping_add(1);
        (connection.connected, connection.unread) = (false, None);
        (connection.unsent, connection.send_error) = (None, None);
        // Closing the descriptor takes it out of the epoll set, as nothing else refers to it.
        let Some(socket) = connection.socket.take() else {
            return;
        };
        if !self.unqueued.is_empty() {
            self.unqueued.retain(|(token, _)| *token as u32 != slot);
        }
        if how == Close::Reset {
            // Where it fails the connection is closed all the same, with a FIN.
            let _ = socket.set_reset_on_close();
        }
        socket.close();
    }

    fn poll(&mut self, timeout: Nanos, sink: &mut dyn Sink) -> io::Result<usize> {
        let mut events = std::mem::take(&mut self.events);
        let timeout = if self.turns.is_empty() { timeout } else { Nanos::ZERO };
        let is_full = !self.unqueued.is_empty();
        let timeout = if is_full { timeout.min(FULL_PAUSE) } else { timeout };
        let waited = self.epoll.wait(&mut events, Some(timeout)).map(<[epoll::EpollEvent]>::len);
        let mut buffer = std::mem::take(&mut self.buffer);
        self.readable_bytes = POLL_BYTES_MAX;
        let turns = if self.turns.is_empty() { 0 } else { self.take_turns(&mut buffer, sink) };
        let joined = if is_full { self.join_queues(sink) } else { 0 };
        for &event in &events[..*waited.as_ref().unwrap_or(&0)] {
            self.handle(event, &mut buffer, sink);
        }
        self.buffer = buffer;
        self.events = events;
        waited.map(|count| count + turns + joined)
    }
}
