//! sock_diag(7): the kernel tells of its sockets, over netlink(7).

use super::{check, check_count};
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// A socket to the kernel's socket diagnostics (sock_diag(7)); closed when dropped.
#[derive(Debug)]
pub struct SocketDiagnostics(OwnedFd);

impl SocketDiagnostics {
    /// One that waits for an answer for at most a second.
    ///
    /// # Errors
    /// A kernel without it; out of descriptors.
    pub fn open() -> io::Result<SocketDiagnostics> {
        let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers.
        let fd = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_INET_DIAG) })?;
        // SAFETY: the kernel has just given us this descriptor; nobody else has it.
        let socket = SocketDiagnostics(unsafe { OwnedFd::from_raw_fd(fd) });
        let patience = libc::timeval {
            tv_sec: 1,
            tv_usec: 0,
        };
        let length = size_of_val(&patience) as libc::socklen_t;
        let (fd, value) = (socket.0.as_raw_fd(), (&raw const patience).cast());
        let (level, name) = (libc::SOL_SOCKET, libc::SO_RCVTIMEO);
        // SAFETY: the value is ours and has the length that we say.
        check(unsafe { libc::setsockopt(fd, level, name, value, length) })?;
        Ok(socket)
    }

    /// Sends a message to the kernel.
    ///
    /// # Errors
    /// Out of memory.
    pub fn send(&self, message: &[u8]) -> io::Result<()> {
        // SAFETY: a struct of integers, for which all zeroes are valid; port 0 is the kernel.
        let mut kernel: libc::sockaddr_nl = unsafe { MaybeUninit::zeroed().assume_init() };
        kernel.nl_family = libc::AF_NETLINK as libc::sa_family_t;
        let length = size_of_val(&kernel) as libc::socklen_t;
        let (fd, from, to) = (
            self.0.as_raw_fd(),
            message.as_ptr().cast(),
            &raw const kernel,
        );
        // SAFETY: message and address are borrowed and have the lengths that we say.
        check_count(|| unsafe { libc::sendto(fd, from, message.len(), 0, to.cast(), length) })
            .map(drop)
    }

    /// Receives one datagram of messages.
    ///
    /// # Errors
    /// `WouldBlock` where none came within a second.
    pub fn receive<'a>(&self, into: &'a mut [u8]) -> io::Result<&'a [u8]> {
        let fd = self.0.as_raw_fd();
        // SAFETY: the buffer is ours and has the length that we say.
        let count =
            check_count(|| unsafe { libc::recv(fd, into.as_mut_ptr().cast(), into.len(), 0) })?;
        Ok(&into[..count])
    }
}
