//! Listening stream sockets.

use super::socket::{Address, RawAddress, Socket};
use rustix::io::retry_on_intr;
use rustix::net::{self, SocketFlags, sockopt};
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
        sockopt::set_socket_reuseaddr(&socket, true)?;
        socket.bind(address)?;
        net::listen(&socket, backlog.min(i32::MAX as u32) as i32)?;
        Ok(Listener(socket))
    }

    /// The next completed connection, non-blocking.
    ///
    /// # Errors
    /// `WouldBlock` where there is none; `ConnectionAborted` where it is gone already; out of
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
