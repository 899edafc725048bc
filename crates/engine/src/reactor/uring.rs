//! The io_uring backend. One multishot receive per connection goes into buffers that all
//! connections of the worker share. Sends have no success reports. A pass makes one system call.

use super::{
    Backend, Buffers, Close, ConnectOptions, Event, POLL_BYTES_MAX, Payload, Piece, Sink,
    WireRequests, place,
};
use crate::sys::buffers::BufferRing;
use crate::sys::socket::{RawAddress, Socket, SocketKind, TcpState};
use crate::sys::timestamps;
use io_uring::types::{CancelBuilder, Fd, RecvMsgOut, SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, cqueue, opcode, squeue};
use knee_load::time::Nanos;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd};

/// Submissions before a system call must make room.
const SUBMISSIONS: u32 = 1_024;

/// Completions in the ring; the kernel keeps further ones (IORING_FEAT_NODROP).
const COMPLETIONS: u32 = 8_192;

/// Number and length of the shared receive buffers. A longer response comes as several events.
const BUFFERS: u16 = 256;
const BUFFER_BYTES: usize = 64 * 1024;

/// Longest request that fits the socket's buffer at once, so that its success need not be reported.
const UNREPORTED_BYTES_MAX: usize = 4 * 1024;

/// The kind of an operation, in the low byte of its user data. Above it are 24 bits of the
/// generation of its slot, then 32 of the slot.
const KIND_CONNECT: u64 = 0;
const KIND_RECEIVE: u64 = 1;
const KIND_SEND: u64 = 2;
const KIND_CLOSE: u64 = 3;
const KIND_WATCH: u64 = 4;

/// Carries traffic over io_uring(7); needs Linux 6.0 (multishot receive, shared buffer rings).
pub(crate) struct UringBackend {
    // Dropped first: after it the kernel holds no pointer into the fields below.
    ring: IoUring,
    connections: Vec<Connection>,
    requests: WireRequests,
    /// Buffers of closed connections that the kernel may still read from, each with the user data
    /// of its send.
    lent: Vec<(u64, Vec<u8>)>,
    spare: Buffers,
    buffers: BufferRing,
    /// Completions still to be handled.
    completions: VecDeque<cqueue::Entry>,
    /// Room for the control messages of a receive; `None` without timestamps. Boxed, as the kernel
    /// reads it when a receive is armed.
    template: Option<Box<libc::msghdr>>,
    /// Watched descriptors that are no connections, by number.
    watched: Vec<Option<OwnedFd>>,
}

#[derive(Default)]
struct Connection {
    socket: Option<Socket>,
    kind: SocketKind,
    generation: u32,
    /// Its address: the kernel reads it during the connect.
    address: Option<Box<RawAddress>>,
    /// Bytes of a long payload not known to be sent.
    unsent: usize,
    /// The payload under way, unless registered: the kernel reads it until it is sent.
    sending: Option<Vec<u8>>,
    /// Why sending ended early. Received bytes are still to be read.
    send_error: Option<i32>,
}

impl UringBackend {
    /// A backend for up to `capacity` connections, with receive timestamps if `timestamps`.
    ///
    /// # Errors
    /// The kernel or its policy (`kernel.io_uring_disabled`, seccomp in containers) does not permit
    /// io_uring, or it is older than Linux 6.0.
    pub(crate) fn new(
        capacity: usize,
        requests: WireRequests,
        timestamps: bool,
    ) -> io::Result<UringBackend> {
        let ring = IoUring::builder()
            .setup_cqsize(COMPLETIONS)
            .setup_single_issuer()
            .setup_defer_taskrun()
            .setup_taskrun_flag()
            .build(SUBMISSIONS)
            .or_else(|error| match error.raw_os_error() {
                // Linux 6.0 knows no deferred task work.
                Some(libc::EINVAL) => {
                    IoUring::builder().setup_cqsize(COMPLETIONS).build(SUBMISSIONS)
                }
                _ => Err(error),
            })?;
        let buffers = BufferRing::register(&ring.submitter(), BUFFERS, BUFFER_BYTES)?;
        let mut connections = Vec::new();
        connections.resize_with(capacity, Connection::default);
        Ok(UringBackend {
            ring,
            connections,
            requests,
            lent: Vec::new(),
            spare: Buffers::default(),
            buffers,
            completions: VecDeque::with_capacity(COMPLETIONS as usize),
            template: timestamps.then(template),
            watched: Vec::new(),
        })
    }

    fn user_data(&self, slot: u32, kind: u64) -> u64 {
        let generation = u64::from(self.connections[slot as usize].generation & 0xFF_FFFF);
        u64::from(slot) << 32 | generation << 8 | kind
    }

    fn fd(&self, slot: u32) -> Fd {
        let socket = self.connections[slot as usize].socket.as_ref();
        Fd(socket.map_or(-1, |s| s.as_fd().as_raw_fd()))
    }

    /// Queues a submission.
    fn push(&mut self, entry: squeue::Entry) -> io::Result<()> {
        // SAFETY: every pointer in an entry is to a request, an address or a shared buffer. This
        // backend owns them all and keeps them in place until the ring is gone.
        while unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.ring.submit()?;
        }
        Ok(())
    }

    /// Makes room for entries that must be submitted together.
    fn make_room(&mut self, entries: usize) -> io::Result<()> {
        let submissions = self.ring.submission();
        let room = submissions.capacity() - submissions.len();
        drop(submissions);
        if room < entries {
            self.ring.submit()?;
        }
        Ok(())
    }

    fn arm_receive(&mut self, slot: u32) -> io::Result<()> {
        let data = self.user_data(slot, KIND_RECEIVE);
        let (fd, group) = (self.fd(slot), self.buffers.group());
        let entry = match &self.template {
            Some(template) => opcode::RecvMsgMulti::new(fd, &raw const **template, group).build(),
            None => opcode::RecvMulti::new(fd, group).build(),
        };
        self.push(entry.user_data(data))
    }

    /// Sends datagrams, each with a call of its own, which waits while the send buffer is full.
    fn send_datagrams(&mut self, slot: u32, bytes: Vec<u8>) -> io::Result<()> {
        let Connection { socket: Some(socket), kind, .. } = &self.connections[slot as usize] else {
            return Ok(());
        };
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let (border, piece) = kind.first_of(rest);
            socket.send(piece)?;
            rest = &rest[border + piece.len()..];
        }
        self.spare.give_back(bytes);
        Ok(())
    }

    /// A submission that sends bytes, which have to stay until the kernel has taken them.
    fn send_entry(&self, slot: u32, bytes: &[u8]) -> squeue::Entry {
        opcode::Send::new(self.fd(slot), bytes.as_ptr(), bytes.len() as u32)
            .flags(libc::MSG_NOSIGNAL | libc::MSG_WAITALL)
            .build()
            .user_data(self.user_data(slot, KIND_SEND))
    }

    /// Sends bytes that are not registered, and keeps them until the kernel has taken them.
    fn send_owned(&mut self, slot: u32, bytes: Vec<u8>) -> io::Result<()> {
        if self.connections[slot as usize].kind != SocketKind::Stream {
            return self.send_datagrams(slot, bytes);
        }
        let entry = self.send_entry(slot, &bytes);
        let connection = &mut self.connections[slot as usize];
        if bytes.len() > UNREPORTED_BYTES_MAX {
            connection.unsent = bytes.len();
        }
        connection.sending = Some(bytes);
        self.push(entry)
    }

    /// Submits queued entries and waits up to `timeout` for a completion.
    fn enter(&mut self, timeout: Nanos) -> io::Result<()> {
        let queued = self.ring.submission().len();
        if timeout > Nanos::ZERO {
            let timeout = Timespec::new()
                .sec(timeout.0 / 1_000_000_000)
                .nsec((timeout.0 % 1_000_000_000) as u32);
            let args = SubmitArgs::new().timespec(&timeout);
            return allow_timeout(self.ring.submitter().submit_with_args(1, &args).map(drop));
        }
        if queued == 0 && !self.ring.submission().taskrun() {
            return Ok(());
        }
        // SAFETY: no argument is passed. With deferred task work the flag is what makes the kernel
        // look for completions at all.
        let entered = unsafe {
            let flags = EnterFlags::GETEVENTS.bits();
            self.ring.submitter().enter::<libc::sigset_t>(queued as u32, 0, flags, None)
        };
        allow_timeout(entered.map(drop))
    }

    fn handle(&mut self, completed: &cqueue::Entry, sink: &mut dyn Sink) {
        let (user_data, result, flags) =
            (completed.user_data(), completed.result(), completed.flags());
        let slot = (user_data >> 32) as u32;
        if user_data & 0xFF == KIND_WATCH {
            return self.report_readable(slot, sink);
        }
        let buffer = cqueue::buffer_select(flags);
        let generation = (user_data >> 8 & 0xFF_FFFF) as u32;
        let live = self
            .connections
            .get(slot as usize)
            .is_some_and(|c| c.generation & 0xFF_FFFF == generation && c.socket.is_some());
        if live {
            match user_data & 0xFF {
                KIND_CONNECT => self.on_connect(slot, result, sink),
                KIND_RECEIVE => self.on_receive(slot, result, buffer, cqueue::more(flags), sink),
                KIND_SEND => self.on_sent(slot, result, sink),
                _ => {}
            }
        } else if user_data & 0xFF == KIND_SEND {
            self.lent.retain(|(of, _)| *of != user_data);
        }
        if let Some(id) = buffer {
            self.buffers.give_back(id);
        }
    }

    /// Asks for one event of readability, which may come at once.
    fn arm_watch(&mut self, source: u32) -> io::Result<()> {
        let Some(Some(fd)) = self.watched.get(source as usize) else {
            return Ok(());
        };
        let entry = opcode::PollAdd::new(Fd(fd.as_raw_fd()), libc::POLLIN as u32).build();
        self.push(entry.user_data(u64::from(source) << 32 | KIND_WATCH))
    }

    #[cold]
    fn report_readable(&mut self, source: u32, sink: &mut dyn Sink) {
        if !sink.on_readable(self, source) || self.arm_watch(source).is_err() {
            self.watched[source as usize] = None;
        }
    }

    /// Connects a connection to its address, if it has one.
    fn connect(&mut self, slot: u32) -> io::Result<()> {
        let address = self.connections[slot as usize].address.as_ref();
        let Some((to, length)) = address.map(|a| (a.as_ptr(), a.length())) else { return Ok(()) };
        let entry = opcode::Connect::new(self.fd(slot), to, length).build();
        self.push(entry.user_data(self.user_data(slot, KIND_CONNECT)))
    }

    fn on_connect(&mut self, slot: u32, result: i32, sink: &mut dyn Sink) {
        // A process that is stopped while the kernel waits for room in a Unix listener's queue.
        if result == -libc::EINTR && self.connect(slot).is_ok() {
            return;
        }
        let outcome = match result {
            0.. => self.arm_receive(slot),
            _ => Err(io::Error::from_raw_os_error(-result)),
        };
        sink.on_event(self, slot, outcome.map_or_else(Event::Failed, |()| Event::Connected));
    }

    /// Handles the report of a send: it has failed, or a long request has gone.
    fn on_sent(&mut self, slot: u32, result: i32, sink: &mut dyn Sink) {
        let connection = &mut self.connections[slot as usize];
        if let Some(buffer) = connection.sending.take() {
            connection.unsent = buffer.len();
            self.spare.give_back(buffer);
        }
        match -result {
            // A send that was cut short leaves the rest unsent for ever: see `is_sending`.
            ..=0 => {
                connection.unsent -= (result as usize).min(connection.unsent);
                if connection.unsent == 0 {
                    sink.on_event(self, slot, Event::Written);
                }
            }
            // The head before it failed.
            libc::ECANCELED => {}
            // A server may answer and close before it has read the whole request. Its answer may be
            // here: what is received tells.
            error @ (libc::EPIPE | libc::ECONNRESET) => connection.send_error = Some(error),
            error => {
                let error = io::Error::from_raw_os_error(error);
                sink.on_event(self, slot, Event::Failed(error));
            }
        }
    }

    /// Content of a filled buffer: bytes of the connection, with timestamps behind a header and
    /// control messages (io_uring_prep_recvmsg_multishot(3)).
    fn piece<'a>(&self, filled: &'a [u8]) -> Piece<'a> {
        let Some(template) = &self.template else {
            return Piece::of(filled);
        };
        match RecvMsgOut::parse(filled, template) {
            Ok(message) => Piece {
                // The payload is what the buffer ends in.
                bytes: &filled[filled.len() - message.payload_data().len()..],
                realtime_ns: timestamps::realtime_ns(message.control_data()),
            },
            Err(()) => Piece::of(&[]),
        }
    }

    fn on_receive(
        &mut self,
        slot: u32,
        result: i32,
        buffer: Option<u16>,
        more: bool,
        sink: &mut dyn Sink,
    ) {
        let generation = self.connections[slot as usize].generation;
        match result {
            0.. => {
                let bytes = match buffer {
                    // SAFETY: the kernel has just told this buffer's number; `handle` gives it
                    // back, after this call.
                    Some(id) => unsafe { self.buffers.detached(id, result as usize) },
                    None => &[],
                };
                let piece = self.piece(bytes);
                let connection = &mut self.connections[slot as usize];
                if !piece.bytes.is_empty() {
                    sink.on_event(self, slot, Event::Received(piece));
                } else if connection.kind == SocketKind::Stream {
                    let event = match connection.send_error.take() {
                        Some(error) => Event::Failed(io::Error::from_raw_os_error(error)),
                        None => Event::Ended,
                    };
                    return sink.on_event(self, slot, event);
                }
            }
            _ if -result == libc::ENOBUFS => {}
            _ => {
                let error = io::Error::from_raw_os_error(-result);
                return sink.on_event(self, slot, Event::Failed(error));
            }
        }
        let connection = &self.connections[slot as usize];
        if !more
            && connection.generation == generation
            && connection.socket.is_some()
            && let Err(error) = self.arm_receive(slot)
        {
            sink.on_event(self, slot, Event::Failed(error));
        }
    }
}

impl Backend for UringBackend {
    fn name(&self) -> &'static str {
        "io_uring"
    }

    fn sends_at_once(&self) -> bool {
        false
    }

    fn open(&mut self, slot: u32, opening: ConnectOptions<'_>) -> io::Result<()> {
        // Blocking: on a non-blocking socket io_uring gives EAGAIN back instead of waiting itself.
        let socket = opening.socket(Socket::blocking, self.template.is_some())?;
        let connection = &mut self.connections[slot as usize];
        (connection.socket, connection.kind) = (Some(socket), opening.kind);
        (connection.unsent, connection.send_error) = (0, None);
        let kept = connection.address.get_or_insert_with(|| Box::new(opening.to.clone()));
        (**kept).clone_from(opening.to);
        self.connect(slot)
    }

    fn tcp_state(&self, slot: u32) -> Option<TcpState> {
        self.connections[slot as usize].socket.as_ref()?.tcp_state()
    }

    fn local_port(&self, slot: u32) -> Option<u16> {
        self.connections[slot as usize].socket.as_ref()?.local_port()
    }

    #[inline]
    fn send(&mut self, slot: u32, payload: Payload) -> io::Result<()> {
        let request = match payload {
            Payload::Registered(request) => request,
            Payload::Owned(bytes) => return self.send_owned(slot, bytes),
        };
        let (head, body) = self.requests.pieces(request);
        let whole = head.len() + body.len();
        let entry = self.send_entry(slot, head);
        if whole <= UNREPORTED_BYTES_MAX {
            return self.push(entry.flags(squeue::Flags::SKIP_SUCCESS));
        }
        let (head, body) = (entry, (!body.is_empty()).then(|| self.send_entry(slot, body)));
        self.connections[slot as usize].unsent = whole;
        let Some(body) = body else {
            return self.push(head);
        };
        self.make_room(2)?;
        self.push(head.flags(squeue::Flags::IO_LINK))?;
        self.push(body)
    }

    #[inline]
    fn is_sending(&self, slot: u32) -> bool {
        self.connections[slot as usize].unsent > 0
    }

    #[inline]
    fn is_busy(&self, slot: u32) -> bool {
        let connection = &self.connections[slot as usize];
        connection.unsent > 0 || connection.sending.is_some()
    }

    fn buffer(&mut self) -> Vec<u8> {
        self.spare.take()
    }

    fn watch(&mut self, source: u32, fd: OwnedFd) -> io::Result<()> {
        place(&mut self.watched, source, fd);
        self.arm_watch(source)
    }

    fn close(&mut self, slot: u32, how: Close) {
        let send_data = self.user_data(slot, KIND_SEND);
        let close_data = self.user_data(slot, KIND_CLOSE);
        let connection = &mut self.connections[slot as usize];
        connection.generation = connection.generation.wrapping_add(1);
        let Some(socket) = connection.socket.take() else {
            return;
        };
        if how == Close::Reset {
            // Where it fails the connection is closed all the same, with a FIN.
            let _ = socket.set_reset_on_close();
        }
        (connection.unsent, connection.send_error) = (0, None);
        if let Some(buffer) = connection.sending.take() {
            self.lent.push((send_data, buffer));
        }
        // An operation under way keeps the socket alive, so it is cancelled before the close.
        let fd = Fd(OwnedFd::from(socket).into_raw_fd());
        let cancel = opcode::AsyncCancel2::new(CancelBuilder::fd(fd).all()).build();
        let cancel = cancel.flags(squeue::Flags::IO_HARDLINK | squeue::Flags::SKIP_SUCCESS);
        let close = opcode::Close::new(fd).build().flags(squeue::Flags::SKIP_SUCCESS);
        let queued = self
            .make_room(2)
            .and_then(|()| self.push(cancel.user_data(close_data)))
            .and_then(|()| self.push(close.user_data(close_data)));
        debug_assert!(queued.is_ok(), "the ring takes submissions");
    }

    fn poll(&mut self, timeout: Nanos, sink: &mut dyn Sink) -> io::Result<usize> {
        let idle = self.completions.is_empty() && self.ring.completion().is_empty();
        self.enter(if idle { timeout } else { Nanos::ZERO })?;
        self.completions.extend(self.ring.completion());
        let (mut handled, mut bytes) = (0, 0);
        while bytes < POLL_BYTES_MAX
            && let Some(completed) = self.completions.pop_front()
        {
            if completed.user_data() & 0xFF == KIND_RECEIVE {
                bytes += usize::try_from(completed.result()).unwrap_or(0);
            }
            handled += 1;
            self.handle(&completed, sink);
        }
        self.buffers.publish();
        Ok(handled)
    }
}

/// A receive without an address, with room for one timestamp.
fn template() -> Box<libc::msghdr> {
    // SAFETY: all zeroes are a valid msghdr: no address, no buffers, no control.
    let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
    header.msg_controllen = (timestamps::CONTROL_WORDS * size_of::<usize>()) as _;
    Box::new(header)
}

/// A timeout, a signal and a full completion queue are not errors of waiting.
fn allow_timeout(entered: io::Result<()>) -> io::Result<()> {
    match entered {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {
            Ok(())
        }
        other => other,
    }
}
