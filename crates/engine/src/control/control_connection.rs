//! One control connection at a service. Nothing blocks.

use super::greeting::HelloReply;
use super::lines::{Lines, line};
use crate::sys::epoll::{Epoll, flags};
use crate::sys::stream::keep_alive;
use crate::sys::{clock, socket};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// Longest silence outside a session. Keeps a client from holding the service by doing nothing.
pub(crate) const IDLE_NS: u64 = 10_000_000_000;

/// Longest time in which a client reads nothing of what is sent to it.
const STUCK_NS: u64 = 15_000_000_000;

/// A control connection at a service.
pub(crate) struct ControlConnection {
    pub(crate) id: u64,
    /// Address of the client; IPv4 in IPv6 as plain IPv4.
    pub(crate) peer: IpAddr,
    stream: TcpStream,
    lines: Lines,
    out: Vec<u8>,
    /// Bytes of `out` that were written.
    written: usize,
    heard_ns: u64,
    progress_ns: u64,
    /// Nothing is written before this time.
    held_until_ns: u64,
    /// No more requests are read; the connection ends once all is written.
    is_ending: bool,
    is_gone: bool,
}

impl ControlConnection {
    /// An accepted connection, whose events `epoll` reports under its id.
    ///
    /// # Errors
    /// The connection is gone, or the kernel has no room for it.
    pub(crate) fn new(
        epoll: &Epoll,
        id: u64,
        (stream, peer): (TcpStream, SocketAddr),
        line_max: usize,
        now_ns: u64,
    ) -> io::Result<ControlConnection> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        socket::set_user_timeout(&stream, (STUCK_NS / 1_000_000) as u32)?;
        keep_alive(&stream)?;
        epoll.add(&stream, id, flags::READ | flags::WRITE | flags::EDGE)?;
        Ok(ControlConnection {
            id,
            peer: peer.ip().to_canonical(),
            stream,
            lines: Lines::new(line_max),
            out: Vec::new(),
            written: 0,
            heard_ns: now_ns,
            progress_ns: now_ns,
            held_until_ns: 0,
            is_ending: false,
            is_gone: false,
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads what has come, up to 64 KiB. A client that sends more before it has an answer is none.
    pub(crate) fn read(&mut self) {
        let mut buffer = [0; 4_096];
        for _ in 0..16 {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_gone = true,
                // Read and dropped: with bytes unread, closing would be a reset, which could
                // overtake the last message.
                Ok(_) if self.is_ending => continue,
                Ok(count) => {
                    self.lines.push(&buffer[..count]);
                    continue;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {}
                Err(_) => self.is_gone = true,
            }
            return;
        }
        self.is_gone = true;
    }

    /// The next request; `None` inside: the line is no request, or too long.
    pub(crate) fn next_request<R: DeserializeOwned>(&mut self) -> Option<Option<R>> {
        if self.is_ending {
            return None;
        }
        match self.lines.take() {
            Ok(None) => None,
            Ok(Some(line)) => Some(serde_json::from_slice(&line).ok()),
            Err(_) => Some(None),
        }
    }

    /// Notes that the client has sent a request.
    pub(crate) fn touch(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    pub(crate) fn send(&mut self, message: &impl Serialize) {
        if self.out.is_empty() {
            self.progress_ns = clock::monotonic_ns();
        }
        self.out.extend(line(message));
    }

    /// Sends the last message.
    pub(crate) fn send_last(&mut self, message: &impl Serialize) {
        self.send(message);
        self.is_ending = true;
    }

    /// Sends the reason why the client is sent away.
    pub(crate) fn refuse(&mut self, reason: &str) {
        self.send_last(&HelloReply::<()>::Refused { reason: reason.to_owned() });
    }

    /// Delays all that is sent.
    pub(crate) fn delay(&mut self, for_ns: u64) {
        self.held_until_ns = clock::monotonic_ns() + for_ns;
    }

    /// Writes what fits.
    pub(crate) fn flush(&mut self, now_ns: u64) {
        if now_ns < self.held_until_ns {
            return;
        }
        while self.written < self.out.len() {
            match self.stream.write(&self.out[self.written..]) {
                Ok(count) => {
                    self.written += count;
                    self.progress_ns = now_ns;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_gone = true;
                    return;
                }
            }
        }
        self.out.clear();
        self.written = 0;
        if self.is_ending {
            let _ = self.stream.shutdown(std::net::Shutdown::Write);
        }
    }

    /// Whether it is to be closed, where the client may be silent for `patience_ns`.
    pub(crate) fn is_over(&self, now_ns: u64, patience_ns: u64) -> bool {
        let idle = now_ns.saturating_sub(self.heard_ns) > patience_ns;
        let stuck = now_ns.saturating_sub(self.progress_ns) > STUCK_NS;
        self.is_gone || idle || stuck && !self.out.is_empty()
    }

    /// The stream alone, for another use. Bytes that were read and not handled are dropped.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }
}
