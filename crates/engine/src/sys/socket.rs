//! Non-blocking stream sockets over IPv4, IPv6 and the Unix domain.

pub use super::listener::Listener;
pub use super::tcp_state::{TcpPhase, TcpState};
use super::{check, check_count, get_option, owned, set_option, stamp};
use std::fmt;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
#[derive(Clone, Copy)]
pub struct RawAddress {
    storage: libc::sockaddr_storage,
    length: libc::socklen_t,
}

impl RawAddress {
    /// Encodes an address.
    ///
    /// # Errors
    /// A Unix path longer than 107 bytes or with a zero byte in it.
    pub fn new(address: &Address) -> io::Result<RawAddress> {
        match address {
            Address::Tcp(SocketAddr::V4(v4)) => Ok(RawAddress::store(raw_v4(v4))),
            Address::Tcp(SocketAddr::V6(v6)) => Ok(RawAddress::store(raw_v6(v6))),
            Address::Unix(path) => raw_unix(path).map(RawAddress::store),
        }
    }

    /// The address family, as socket(2) wants it.
    pub fn family(&self) -> libc::c_int {
        libc::c_int::from(self.storage.ss_family)
    }

    /// The bytes, for calls that want them; valid for as long as `self` stays where it is.
    pub fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    /// How many of them.
    pub fn length(&self) -> libc::socklen_t {
        self.length
    }

    /// Copies one of the kernel's address structs. All fit into a sockaddr_storage.
    fn store<T: Copy>(address: T) -> RawAddress {
        const { assert!(size_of::<T>() <= size_of::<libc::sockaddr_storage>()) };
        let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        // SAFETY: the storage is large enough (checked above), aligned for every address struct
        // (its purpose), and valid for any bytes.
        let storage = unsafe {
            storage.as_mut_ptr().cast::<T>().write(address);
            storage.assume_init()
        };
        RawAddress { storage, length: size_of::<T>() as libc::socklen_t }
    }

    /// The address that the bytes stand for.
    ///
    /// # Errors
    /// Of a family that nobody connects to.
    pub fn decode(&self) -> io::Result<Address> {
        let from = &raw const self.storage;
        // SAFETY: the family says which struct the kernel wrote; the storage is large enough and
        // aligned for each, and all of its bytes are initialised.
        unsafe {
            match self.family() {
                libc::AF_INET => {
                    let v4 = from.cast::<libc::sockaddr_in>().read();
                    let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                    let port = u16::from_be(v4.sin_port);
                    Ok(Address::Tcp(SocketAddrV4::new(ip, port).into()))
                }
                libc::AF_INET6 => {
                    let v6 = from.cast::<libc::sockaddr_in6>().read();
                    let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                    let (port, flow) = (u16::from_be(v6.sin6_port), v6.sin6_flowinfo);
                    let v6 = SocketAddrV6::new(ip, port, flow, v6.sin6_scope_id);
                    Ok(Address::Tcp(v6.into()))
                }
                libc::AF_UNIX => {
                    let unix = from.cast::<libc::sockaddr_un>().read();
                    let bytes = unix.sun_path.map(|c| c as u8);
                    let end = bytes.iter().position(|&b| b == 0);
                    let path = std::ffi::OsStr::from_bytes(&bytes[..end.unwrap_or(bytes.len())]);
                    Ok(Address::Unix(path.into()))
                }
                _ => Err(io::ErrorKind::Unsupported.into()),
            }
        }
    }
}

fn raw_v4(v4: &SocketAddrV4) -> libc::sockaddr_in {
    libc::sockaddr_in {
        sin_family: libc::AF_INET as libc::sa_family_t,
        sin_port: v4.port().to_be(),
        sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
        sin_zero: [0; 8],
    }
}

fn raw_v6(v6: &SocketAddrV6) -> libc::sockaddr_in6 {
    libc::sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: v6.port().to_be(),
        sin6_flowinfo: v6.flowinfo(),
        sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
        sin6_scope_id: v6.scope_id(),
    }
}

fn raw_unix(path: &Path) -> io::Result<libc::sockaddr_un> {
    let bytes = path.as_os_str().as_bytes();
    let mut unix =
        libc::sockaddr_un { sun_family: libc::AF_UNIX as libc::sa_family_t, sun_path: [0; 108] };
    // One byte is left for the zero that ends it.
    if bytes.is_empty() || bytes.len() >= unix.sun_path.len() || bytes.contains(&0) {
        let message = "a Unix socket's path has 1 to 107 bytes, none of them zero";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    for (to, &from) in unix.sun_path.iter_mut().zip(bytes) {
        *to = from as libc::c_char;
    }
    Ok(unix)
}

/// How a connect began.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Connect {
    /// It is already there.
    Done,
    /// The socket becomes writable when it has ended; [`Socket::take_error`] says how.
    InProgress,
}

/// getsockname(2) or getpeername(2).
type AddressCall =
    unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

/// A stream socket, non-blocking unless made otherwise, closed when dropped.
#[derive(Debug)]
pub struct Socket(pub(super) OwnedFd);

impl Socket {
    /// An unconnected one for the family of `address`.
    ///
    /// # Errors
    /// Out of descriptors or memory; no such family.
    pub fn new(address: &RawAddress) -> io::Result<Socket> {
        Socket::with_flags(address, libc::SOCK_NONBLOCK)
    }

    /// An unconnected one that blocks: for io_uring, which waits itself, and on a non-blocking
    /// socket gives `EAGAIN` back instead.
    ///
    /// # Errors
    /// Out of descriptors or memory; no such family.
    pub fn blocking(address: &RawAddress) -> io::Result<Socket> {
        Socket::with_flags(address, 0)
    }

    fn with_flags(address: &RawAddress, flags: libc::c_int) -> io::Result<Socket> {
        let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | flags;
        // SAFETY: no pointers.
        owned(unsafe { libc::socket(address.family(), kind, 0) }).map(Socket)
    }

    /// Begins to connect.
    ///
    /// # Errors
    /// Refused, unreachable, out of ports; `WouldBlock` where a Unix listener's queue is full,
    /// which then has to be tried again later.
    pub fn connect(&self, to: &RawAddress) -> io::Result<Connect> {
        let (fd, length) = (libc::c_long::from(self.raw()), to.length() as libc::c_long);
        // SAFETY: the address is whole and outlives the call.
        let result = unsafe { libc::syscall(libc::SYS_connect, fd, to.as_ptr(), length) };
        match check(result as libc::c_int) {
            Ok(_) => Ok(Connect::Done),
            // An interrupted connect goes on by itself, as one in progress does (connect(2)).
            Err(e) if matches!(e.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR)) => {
                Ok(Connect::InProgress)
            }
            Err(e) => Err(e),
        }
    }

    /// The pending error, which is cleared: `None` after a connect that succeeded.
    ///
    /// # Errors
    /// None in correct use.
    pub fn take_error(&self) -> io::Result<Option<io::Error>> {
        let mut error = [0];
        get_option(self, libc::SOL_SOCKET, libc::SO_ERROR, &mut error)?;
        let [error] = error;
        Ok((error != 0).then(|| io::Error::from_raw_os_error(error)))
    }

    /// Sends small writes at once (TCP_NODELAY). Only for TCP.
    ///
    /// # Errors
    /// Not TCP, or already reset.
    pub fn set_nodelay(&self) -> io::Result<()> {
        set_option(self, libc::IPPROTO_TCP, libc::TCP_NODELAY, &1_i32)
    }

    /// Fixes the local address that a connect comes from, but not its port. The port is chosen when
    /// it connects, so that a port in use towards one peer is free towards another
    /// (IP_BIND_ADDRESS_NO_PORT, ip(7)).
    ///
    /// # Errors
    /// Not an address of this machine.
    pub fn bind_address(&self, from: &RawAddress) -> io::Result<()> {
        set_option(self, libc::IPPROTO_IP, libc::IP_BIND_ADDRESS_NO_PORT, &1_i32)?;
        // SAFETY: the address is whole and outlives the call.
        check(unsafe { libc::bind(self.raw(), from.as_ptr(), from.length()) }).map(drop)
    }

    /// What the kernel says of the connection (TCP_INFO); `None` where it says nothing.
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
        let linger = libc::linger { l_onoff: 1, l_linger: 0 };
        set_option(self, libc::SOL_SOCKET, libc::SO_LINGER, &linger)
    }

    /// Reads what is there; 0 at the end.
    ///
    /// # Errors
    /// `WouldBlock` where nothing is there; reset.
    #[inline]
    pub fn read(&self, into: &mut [u8]) -> io::Result<usize> {
        // SAFETY: the buffer is ours and has the length that we say.
        check_count(|| unsafe {
            let (fd, to) = (libc::c_long::from(self.raw()), into.as_mut_ptr());
            uncancelled(libc::SYS_recvfrom, fd, to, into.len(), 0)
        })
    }

    /// From now on [`Socket::receive`] also tells when bytes came: SO_TIMESTAMPNS.
    ///
    /// # Errors
    /// A kernel without timestamps.
    pub fn set_timestamps(&self) -> io::Result<()> {
        let on: libc::c_int = 1;
        set_option(self, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &on)
    }

    /// As [`Socket::read`], and when the kernel received the last of these bytes, in nanoseconds of
    /// CLOCK_REALTIME, where it tells: recvmsg(2).
    ///
    /// # Errors
    /// As [`Socket::read`].
    #[inline]
    pub fn receive(&self, into: &mut [u8]) -> io::Result<(usize, Option<u64>)> {
        let mut control = [0_usize; stamp::CONTROL_WORDS];
        let mut piece = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        // SAFETY: all zeroes are a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_iov = &raw mut piece;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        let count = check_count(|| {
            header.msg_controllen = size_of_val(&control) as _;
            // SAFETY: the header, and all that it points to, is ours and has the lengths that it
            // says. Past the C library, as in `uncancelled`.
            unsafe { libc::syscall(libc::SYS_recvmsg, self.raw(), &raw mut header, 0) as isize }
        })?;
        // SAFETY: the control buffer lives here and was initialised above.
        Ok((count, stamp::realtime_ns(unsafe { stamp::control_of(&header) })))
    }

    /// Writes as much as fits. A closed peer is an error, never a signal (MSG_NOSIGNAL).
    ///
    /// # Errors
    /// `WouldBlock` where nothing fits; reset, broken pipe.
    #[inline]
    pub fn send(&self, from: &[u8]) -> io::Result<usize> {
        let flags = libc::MSG_NOSIGNAL;
        // SAFETY: the buffer is borrowed and has the length that we say.
        check_count(|| unsafe {
            let (fd, from_bytes) = (libc::c_long::from(self.raw()), from.as_ptr().cast_mut());
            uncancelled(libc::SYS_sendto, fd, from_bytes, from.len(), flags)
        })
    }

    /// As [`Socket::send`], of several pieces in one call: sendmsg(2).
    ///
    /// # Errors
    /// As [`Socket::send`].
    pub fn send_pieces(&self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        // SAFETY: all zeroes are a valid msghdr.
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        // An IoSlice is an iovec by its documentation; the kernel does not write to it.
        header.msg_iov = pieces.as_ptr().cast_mut().cast();
        header.msg_iovlen = pieces.len() as _;
        let flags = libc::MSG_NOSIGNAL;
        check_count(|| {
            // SAFETY: the pieces are borrowed and have the lengths that they say. Past the C
            // library, as in `uncancelled`.
            unsafe {
                libc::syscall(libc::SYS_sendmsg, self.raw(), &raw const header, flags) as isize
            }
        })
    }

    /// Closes it, as dropping does, but without the C library's bookkeeping.
    pub fn close(self) {
        let fd = libc::c_long::from(self.0.into_raw_fd());
        // SAFETY: the descriptor is ours, and nobody has it after this. An error says nothing that
        // could be acted on, and on Linux the descriptor is gone all the same (close(2)).
        unsafe { libc::syscall(libc::SYS_close, fd) };
    }

    /// Ends our direction: the peer reads the end once it has read what was sent.
    ///
    /// # Errors
    /// Not connected any more.
    pub fn shutdown_write(&self) -> io::Result<()> {
        // SAFETY: no pointers.
        check(unsafe { libc::shutdown(self.raw(), libc::SHUT_WR) }).map(drop)
    }

    /// The port of our end; `None` where it has none.
    pub fn local_port(&self) -> Option<u16> {
        match self.local_address() {
            Ok(Address::Tcp(address)) => Some(address.port()),
            Ok(Address::Unix(_)) | Err(_) => None,
        }
    }

    /// The address of our end.
    ///
    /// # Errors
    /// None in correct use.
    pub fn local_address(&self) -> io::Result<Address> {
        self.address(libc::getsockname)
    }

    /// The address of the other end.
    ///
    /// # Errors
    /// Not connected any more.
    pub fn peer_address(&self) -> io::Result<Address> {
        self.address(libc::getpeername)
    }

    fn address(&self, of: AddressCall) -> io::Result<Address> {
        let mut storage = MaybeUninit::<libc::sockaddr_storage>::zeroed();
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: the storage is ours and has the length that we say.
        check(unsafe { of(self.raw(), storage.as_mut_ptr().cast(), &raw mut length) })?;
        // SAFETY: all zeroes are valid, and so is what the kernel wrote over them.
        let storage = unsafe { storage.assume_init() };
        RawAddress { storage, length }.decode()
    }

    pub(super) fn raw(&self) -> libc::c_int {
        self.0.as_raw_fd()
    }
}

/// `sendto` and `recvfrom` without an address, past the C library. That makes them points at which
/// a thread may be cancelled in a program with threads, at two atomic operations a call.
///
/// # Safety
/// The pointer is valid for `length` bytes, and for writing where the call writes.
#[inline]
unsafe fn uncancelled(
    call: libc::c_long,
    fd: libc::c_long,
    bytes: *mut u8,
    length: usize,
    flags: libc::c_int,
) -> libc::ssize_t {
    let (flags, null, zero) = (libc::c_long::from(flags), 0_usize, 0_usize);
    // SAFETY: promised by the caller; a null address is none.
    unsafe { libc::syscall(call, fd, bytes, length, flags, null, zero) as libc::ssize_t }
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

/// Whether `error` says that this process or host has run out of descriptors or memory, which only
/// the end of something else can cure.
pub fn is_exhaustion(error: &io::Error) -> bool {
    use libc::{EMFILE, ENFILE, ENOBUFS, ENOMEM};
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS | ENOMEM))
}

/// Ends a TCP connection whose peer has not acknowledged data for `timeout_ms` milliseconds
/// (TCP_USER_TIMEOUT).
///
/// # Errors
/// Not TCP.
pub fn set_user_timeout(socket: &impl AsFd, timeout_ms: u32) -> io::Result<()> {
    set_option(socket, libc::IPPROTO_TCP, libc::TCP_USER_TIMEOUT, &timeout_ms)
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
