//! Non-blocking sockets over IPv4, IPv6 and the Unix domain: streams, datagrams and listeners.

pub use super::stream::{TcpPhase, TcpState};
use super::{check_count, get_option, set_option, timestamps};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::addr::SocketAddrArg;
use rustix::net::{
    self, RecvFlags, SendFlags, SocketAddrAny, SocketAddrUnix, SocketFlags, SocketType, sockopt,
};
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

/// Where a stream socket listens or connects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// TCP.
    Tcp(SocketAddr),
    /// A socket in the file system; empty for the unnamed end of a connection.
    Unix(PathBuf),
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(address) => address.fmt(f),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// An address in the kernel's own form: encoded once, used for each connect.
#[derive(Clone)]
pub struct RawAddress(pub(super) SocketAddrAny);

impl RawAddress {
    /// Encodes an address.
    ///
    /// # Errors
    /// A Unix path longer than 107 bytes or with a zero byte in it.
    pub fn new(address: &Address) -> io::Result<RawAddress> {
        let path = match address {
            Address::Tcp(address) => return Ok((*address).into()),
            Address::Unix(path) => path,
        };
        // One byte is left for the zero that ends it.
        let is_fitting = (1..108).contains(&path.as_os_str().len());
        match SocketAddrUnix::new(path.as_path()) {
            Ok(unix) if is_fitting => Ok(RawAddress(unix.as_any())),
            _ => {
                let message = "a Unix socket's path has 1 to 107 bytes, none of them zero";
                Err(io::Error::new(io::ErrorKind::InvalidInput, message))
            }
        }
    }

    /// The address family, as socket(2) wants it.
    pub fn family(&self) -> libc::c_int {
        self.0.address_family().as_raw().into()
    }

    /// Pointer to the bytes; valid while `self` is not moved.
    pub fn as_ptr(&self) -> *const libc::sockaddr {
        self.0.as_ptr().cast()
    }

    /// Number of bytes.
    pub fn length(&self) -> libc::socklen_t {
        self.0.addr_len()
    }

    /// Decodes the address.
    ///
    /// # Errors
    /// An unsupported address family.
    pub fn decode(&self) -> io::Result<Address> {
        if let Ok(address) = SocketAddr::try_from(self.0.clone()) {
            return Ok(Address::Tcp(address));
        }
        let unix = SocketAddrUnix::try_from(self.0.clone())?;
        Ok(Address::Unix(OsStr::from_bytes(unix.path_bytes().unwrap_or_default()).into()))
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> RawAddress {
        RawAddress(address.into())
    }
}

/// What a socket carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SocketKind {
    /// A stream of bytes: TCP, or the Unix domain.
    #[default]
    Stream,
    /// Datagrams: UDP.
    Datagram,
    /// The same, of which one call may receive several that came together (UDP_GRO). They have one
    /// receive timestamp.
    CoalescedDatagrams,
}

impl SocketKind {
    /// Length of the prefix of each datagram in a payload: its length, big-endian.
    pub const BORDER_BYTES: usize = 2;

    /// The bytes of a non-empty payload that one call sends, and the length of the prefix before
    /// them. A stream has no prefixes and sends all at once.
    #[inline]
    pub fn first_of(self, payload: &[u8]) -> (usize, &[u8]) {
        match (self, payload) {
            (SocketKind::Datagram | SocketKind::CoalescedDatagrams, [high, low, rest @ ..]) => {
                let length = usize::from(u16::from_be_bytes([*high, *low]));
                (SocketKind::BORDER_BYTES, &rest[..length.min(rest.len())])
            }
            _ => (0, payload),
        }
    }
}

/// How a connect began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// The connection is established.
    Done,
    /// The socket becomes writable once the connect has ended; [`Socket::take_error`] has the
    /// result.
    InProgress,
}

/// A socket, non-blocking unless made otherwise, closed when dropped.
#[derive(Debug)]
pub struct Socket(pub(super) OwnedFd);

impl Socket {
    /// Creates an unconnected socket for the family of `address`.
    ///
    /// # Errors
    /// Out of descriptors or memory; no such family.
    pub fn new(address: &RawAddress) -> io::Result<Socket> {
        Socket::of_kind(address, SocketKind::Stream)
    }

    /// Creates an unconnected socket of this kind.
    ///
    /// # Errors
    /// Out of descriptors or memory; no such family.
    pub fn of_kind(address: &RawAddress, kind: SocketKind) -> io::Result<Socket> {
        let socket = Socket::with_flags(address, kind, SocketFlags::NONBLOCK)?;
        if kind == SocketKind::CoalescedDatagrams {
            // A kernel before Linux 5.0 delivers them one by one.
            let _ = set_option(&socket, libc::SOL_UDP, libc::UDP_GRO, &1_i32);
        }
        Ok(socket)
    }

    /// Creates an unconnected socket that blocks: for io_uring, which waits itself and returns
    /// `EAGAIN` on non-blocking sockets. Its datagrams are received one by one.
    ///
    /// # Errors
    /// Out of descriptors or memory; no such family.
    pub fn blocking(address: &RawAddress, kind: SocketKind) -> io::Result<Socket> {
        Socket::with_flags(address, kind, SocketFlags::empty())
    }

    fn with_flags(
        address: &RawAddress,
        kind: SocketKind,
        flags: SocketFlags,
    ) -> io::Result<Socket> {
        let (family, flags) = (address.0.address_family(), flags | SocketFlags::CLOEXEC);
        let socket_type = match kind {
            SocketKind::Stream => SocketType::STREAM,
            SocketKind::Datagram | SocketKind::CoalescedDatagrams => SocketType::DGRAM,
        };
        Ok(Socket(net::socket_with(family, socket_type, flags, None)?))
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// Refused, unreachable, out of ports; `WouldBlock` if a Unix listener's queue is full,
    /// which then has to be tried again later.
    pub fn connect(&self, to: &RawAddress) -> io::Result<Connect> {
        match net::connect(self, &to.0) {
            Ok(()) => Ok(Connect::Done),
            // An interrupted connect goes on by itself, as one in progress does (connect(2)).
            Err(Errno::INPROGRESS | Errno::INTR) => Ok(Connect::InProgress),
            Err(e) => Err(e.into()),
        }
    }

    /// Takes the pending error; `None` after a successful connect.
    ///
    /// # Errors
    /// None in correct use.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        Ok(sockopt::socket_error(self)?.err().map(io::Error::from))
    }

    /// Sends small writes at once (TCP_NODELAY). Only for TCP.
    ///
    /// # Errors
    /// Not TCP, or already reset.
    pub fn set_nodelay(&self) -> io::Result<()> {
        Ok(sockopt::set_tcp_nodelay(self, true)?)
    }

    /// Fixes the local address that a connect comes from, but not its port. The port is chosen when
    /// it connects, so that a port in use towards one peer is free towards another
    /// (IP_BIND_ADDRESS_NO_PORT, ip(7)).
    ///
    /// # Errors
    /// Not an address of this machine.
    pub fn bind_address(&self, from: &RawAddress) -> io::Result<()> {
        set_option(self, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1_i32)?;
        self.bind(from)
    }

    pub(super) fn bind(&self, address: &RawAddress) -> io::Result<()> {
        Ok(net::bind(self, &address.0)?)
    }

    /// State of the connection (TCP_INFO), if the kernel reports it.
    pub fn tcp_state(&self) -> Option<TcpState> {
        let mut info = [0_u8; TcpState::BYTES];
        let length = get_option(self, libc::IPPROTO_TCP, libc::TCP_INFO, &mut info).ok()?;
        TcpState::read(&info[..length])
    }

    /// Makes close(2) reset the connection instead of ending it in order: SO_LINGER of 0 s.
    ///
    /// # Errors
    /// None in correct use.
    pub fn set_reset_on_close(&self) -> io::Result<()> {
        super::stream::set_reset_on_close(self)
    }

    /// Reads available bytes; 0 at the end.
    ///
    /// # Errors
    /// `WouldBlock` if nothing is there; reset.
    #[inline]
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| net::recv(self, &mut *into, RecvFlags::empty()))?.0)
    }

    /// Turns on receive timestamps of [`Socket::receive`]: SO_TIMESTAMPNS.
    ///
    /// # Errors
    /// A kernel without timestamps.
    pub fn set_timestamps(&self) -> io::Result<()> {
        timestamps::set_timestamps(self)
    }

    /// As [`Socket::read`], with the kernel's receive time of the last of these bytes, if known, in
    /// nanoseconds of CLOCK_REALTIME: recvmsg(2).
    ///
    /// # Errors
    /// As [`Socket::read`].
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        let mut control = [0_usize; timestamps::CONTROL_WORDS];
        self.receive_with(into, &mut control, timestamps::realtime_ns)
    }

    /// As [`Socket::receive`], of datagrams that came together: also the length of each, of which
    /// the last may be shorter.
    ///
    /// # Errors
    /// As [`Socket::read`].
    #[inline]
    pub fn receive_datagrams(&self, into: &mut [u8]) -> io::Result<(usize, usize, Option<u64>)> {
        let mut control = [0_usize; timestamps::COALESCED_WORDS];
        let (count, (each, realtime_ns)) = self.receive_with(into, &mut control, |control| {
            (timestamps::coalesced_bytes(control), timestamps::realtime_ns(control))
        })?;
        Ok((count, each.unwrap_or(count), realtime_ns))
    }

    /// Reads available bytes, and what their control messages say.
    #[inline]
    fn receive_with<T>(
        &self,
        into: &mut [u8],
        control: &mut [usize],
        read: impl FnOnce(&[u8]) -> T,
    ) -> io::Result<(usize, T)> {
        let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        // SAFETY: all zeroes are a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        let fd = self.0.as_raw_fd();
        let count = check_count(|| {
            header.msg_controllen = size_of_val(control) as _;
            // SAFETY: the header, and all that it points to, is ours and has the lengths that it
            // says. Past the C library, which makes it a point of cancellation: two atomic
            // operations a call.
            unsafe { libc::syscall(libc::SYS_recvmsg, fd, &raw mut header, 0) as isize }
        })?;
        // SAFETY: the control buffer lives as long as this call and was initialised by the caller.
        Ok((count, read(unsafe { timestamps::control_of(&header) })))
    }

    /// Writes as much as fits. A closed peer is an error, never a signal (MSG_NOSIGNAL).
    ///
    /// # Errors
    /// `WouldBlock` if nothing fits; reset, broken pipe.
    #[inline]
    pub fn send(&self, from: &[u8]) -> io::Result<usize> {
        Ok(retry_on_intr(|| net::send(self, from, SendFlags::NOSIGNAL))?)
    }

    /// As [`Socket::send`], of several pieces in one call: sendmsg(2).
    ///
    /// # Errors
    /// As [`Socket::send`].
    pub fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        super::stream::send_pieces(self, pieces, SendFlags::NOSIGNAL)
    }

    /// Closes the socket without the C library's bookkeeping.
    pub fn close(self) {
        // SAFETY: the descriptor is ours and not used after this.
        unsafe { rustix::io::close(self.0.into_raw_fd()) };
    }

    /// Ends the sending direction: the peer reads the end after the sent bytes.
    ///
    /// # Errors
    /// Not connected any more.
    pub fn shutdown_write(&self) -> io::Result<()> {
        Ok(net::shutdown(self, net::Shutdown::Write)?)
    }

    /// The local port, if any.
    pub fn local_port(&self) -> Option<u16> {
        match self.local_address() {
            Ok(Address::Tcp(address)) => Some(address.port()),
            Ok(Address::Unix(_)) | Err(_) => None,
        }
    }

    /// The local address.
    ///
    /// # Errors
    /// None in correct use.
    pub fn local_address(&self) -> io::Result<Address> {
        RawAddress(net::getsockname(self)?).decode()
    }

    /// The address of the peer.
    ///
    /// # Errors
    /// Not connected any more.
    pub fn peer_address(&self) -> io::Result<Address> {
        let peer = net::getpeername(self)?.ok_or(io::ErrorKind::NotConnected)?;
        RawAddress(peer).decode()
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<Socket> for OwnedFd {
    fn from(socket: Socket) -> OwnedFd {
        socket.0
    }
}

/// Whether this process or host has run out of descriptors or memory.
pub fn is_exhaustion(error: &io::Error) -> bool {
    use libc::{EMFILE, ENFILE, ENOBUFS, ENOMEM};
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS | ENOMEM))
}

/// Waits a little after an accept that failed because descriptors or memory have run out. The
/// connection stays in the queue, and a wait for events would end at once because of it.
pub fn pause_if_exhausted(error: &io::Error) {
    if is_exhaustion(error) {
        thread::sleep(Duration::from_millis(1));
    }
}

/// Ends a TCP connection whose peer has not acknowledged data for `timeout_ms` milliseconds
/// (TCP_USER_TIMEOUT).
///
/// # Errors
/// Not TCP.
pub fn set_user_timeout(socket: &impl AsFd, timeout_ms: u32) -> io::Result<()> {
    Ok(sockopt::set_tcp_user_timeout(socket, timeout_ms)?)
}

/// A non-blocking listening socket, closed when dropped (a Unix path stays in the file system).
#[derive(Debug)]
pub struct Listener(Socket);

impl Listener {
    /// Listens at `address` with SO_REUSEADDR. The kernel completes up to `backlog` + 1 connections
    /// that were not accepted yet, at most net.core.somaxconn + 1.
    ///
    /// # Errors
    /// In use, not permitted, not an address of this machine.
    pub fn bind(address: &RawAddress, backlog: u32) -> io::Result<Listener> {
        let socket = Socket::new(address)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        socket.bind(address)?;
        net::listen(&socket, backlog.min(i32::MAX as u32) as i32)?;
        Ok(Listener(socket))
    }

    /// The next completed connection, non-blocking.
    ///
    /// # Errors
    /// `WouldBlock` if there is none; `ConnectionAborted` if it is gone already; out of
    /// descriptors.
    pub fn accept(&self) -> io::Result<Socket> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        Ok(Socket(retry_on_intr(|| net::accept_with(&self.0, flags))?))
    }

    /// Sends small writes at once (TCP_NODELAY) on every connection accepted from now on: they
    /// inherit it. Only for TCP.
    ///
    /// # Errors
    /// Not TCP.
    pub fn set_nodelay(&self) -> io::Result<()> {
        self.0.set_nodelay()
    }

    /// Turns on receive timestamps of accepted sockets, which inherit the option.
    ///
    /// # Errors
    /// A kernel without timestamps.
    pub fn set_timestamps(&self) -> io::Result<()> {
        self.0.set_timestamps()
    }

    /// Listening address, with the port that the kernel chose for 0.
    ///
    /// # Errors
    /// None in correct use.
    pub fn local_address(&self) -> io::Result<Address> {
        self.0.local_address()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::epoll::{Epoll, EpollEvent, flags};

    fn wait_for(socket: &impl AsFd, what: u32) {
        let epoll = Epoll::new().unwrap();
        epoll.add(socket, 0, what).unwrap();
        epoll.wait(&mut [EpollEvent::EMPTY], None).unwrap();
    }

    fn exchange(listen: &Address) {
        let listener = Listener::bind(&RawAddress::new(listen).unwrap(), 8).unwrap();
        let address = listener.local_address().unwrap();
        let raw = RawAddress::new(&address).unwrap();
        assert_eq!(raw.decode().unwrap(), address);
        let client = Socket::new(&raw).unwrap();
        if client.connect(&raw).unwrap() == Connect::InProgress {
            wait_for(&client, flags::WRITE);
        }
        assert!(client.take_error().unwrap().is_none());
        wait_for(&listener, flags::READ);
        let server = listener.accept().unwrap();
        let none = listener.accept().unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        let mut buffer = [0; 16];
        let none = server.read(&mut buffer).unwrap_err();
        assert_eq!(none.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(client.send(b"hello").unwrap(), 5);
        wait_for(&server, flags::READ);
        assert_eq!(server.read(&mut buffer).unwrap(), 5);
        assert_eq!(&buffer[..5], b"hello");
        client.shutdown_write().unwrap();
        wait_for(&server, flags::READ);
        assert_eq!(server.read(&mut buffer).unwrap(), 0);
    }

    #[test]
    fn a_unix_socket_has_no_timestamps_and_an_end_is_an_end() {
        let (mut client, server) = std::os::unix::net::UnixStream::pair().unwrap();
        let server = Socket(OwnedFd::from(server));
        server.set_timestamps().unwrap();
        std::io::Write::write_all(&mut client, b"one").unwrap();
        let mut into = [0; 8];
        assert_eq!(server.receive(&mut into).unwrap(), (3, None));
        drop(client);
        assert_eq!(server.receive(&mut into).unwrap(), (0, None));
    }

    #[test]
    fn streams_over_every_family() {
        exchange(&Address::Tcp("127.0.0.1:0".parse().unwrap()));
        exchange(&Address::Tcp("[::1]:0".parse().unwrap()));
        let path = std::env::temp_dir().join(format!("knee-socket-{}", std::process::id()));
        exchange(&Address::Unix(path.clone()));
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn a_reset_reaches_the_peer_and_a_refusal_the_caller() {
        let any = RawAddress::new(&Address::Tcp("127.0.0.1:0".parse().unwrap())).unwrap();
        let listener = Listener::bind(&any, 8).unwrap();
        let raw = RawAddress::new(&listener.local_address().unwrap()).unwrap();
        let client = Socket::new(&raw).unwrap();
        client.connect(&raw).unwrap();
        wait_for(&listener, flags::READ);
        let server = listener.accept().unwrap();
        server.set_nodelay().unwrap();
        server.set_reset_on_close().unwrap();
        drop(server);
        wait_for(&client, flags::READ);
        let reset = client.read(&mut [0; 4]).unwrap_err();
        assert_eq!(reset.kind(), io::ErrorKind::ConnectionReset);

        drop(listener);
        let late = Socket::new(&raw).unwrap();
        let refused = match late.connect(&raw) {
            Err(e) => e,
            Ok(_) => {
                wait_for(&late, flags::WRITE);
                late.take_error().unwrap().expect("nobody listens there")
            }
        };
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_path_that_does_not_fit_is_refused() {
        for (length, fits) in [(0, false), (107, true), (108, false)] {
            let address = Address::Unix("x".repeat(length).into());
            assert_eq!(RawAddress::new(&address).is_ok(), fits, "{length} bytes");
        }
    }
}
