//! Listening stream sockets.

use super::socket::{Address, RawAddress, Socket};
use super::{check, owned, set_option};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

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
        set_option(&socket, libc::SOL_SOCKET, libc::SO_REUSEADDR, &1_i32)?;
        // SAFETY: the address is whole and outlives the call.
        check(unsafe { libc::bind(socket.raw(), address.as_ptr(), address.length()) })?;
        let backlog = backlog.min(i32::MAX as u32) as libc::c_int;
        // SAFETY: no pointers.
        check(unsafe { libc::listen(socket.raw(), backlog) })?;
        Ok(Listener(socket))
    }

    /// The next completed connection, non-blocking.
    ///
    /// # Errors
    /// `WouldBlock` where there is none; `ConnectionAborted` where it is gone already; out of
    /// descriptors.
    pub fn accept(&self) -> io::Result<Socket> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        let (address, length) = (std::ptr::null_mut(), std::ptr::null_mut());
        loop {
            // SAFETY: null pointers ask for no address.
            match owned(unsafe { libc::accept4(self.0.raw(), address, length, flags) }) {
                Ok(fd) => return Ok(Socket(fd)),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Sends small writes at once (TCP_NODELAY) on every connection accepted from now on: they
    /// inherit it. Only for TCP.
    ///
    /// # Errors
    /// Not TCP.
    pub fn set_nodelay(&self) -> io::Result<()> {
        self.0.set_nodelay()
    }

    /// From now on [`Socket::receive`] of what is accepted tells when bytes came: accepted sockets
    /// inherit it.
    ///
    /// # Errors
    /// A kernel without timestamps.
    pub fn set_timestamps(&self) -> io::Result<()> {
        self.0.set_timestamps()
    }

    /// Where it listens; the port that the kernel picked where 0 was asked for.
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
