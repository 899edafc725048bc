//! One control connection at a service, and the lines that its bytes are cut into. Nothing blocks.

use super::greeting::HelloReply;
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
    pub(crate) stream: TcpStream,
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
}

/// A message as a line of JSON with its end.
///
/// # Panics
/// Never: every field can be written as JSON.
pub fn line(message: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(message).expect("plain data serialise");
    line.push(b'\n');
    line
}

/// Error: a line is longer than permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong;

/// Bytes that came, and the lines in them.
#[derive(Debug)]
pub struct Lines {
    bytes: Vec<u8>,
    /// No line ends before this place in `bytes`.
    searched: usize,
    max: usize,
}

impl Lines {
    /// Reader of lines of up to `max` bytes.
    pub fn new(max: usize) -> Lines {
        Lines { bytes: Vec::new(), searched: 0, max }
    }

    /// Adds bytes that came.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Bytes that no line has been made of.
    pub fn held(&self) -> usize {
        self.bytes.len()
    }

    /// Changes the longest line, in bytes.
    pub fn set_max(&mut self, max: usize) {
        self.max = max;
    }

    /// The next whole line, without its end; `None`: more bytes are needed.
    ///
    /// # Errors
    /// The line is too long, whether it has ended or not.
    pub fn take(&mut self) -> Result<Option<Vec<u8>>, TooLong> {
        let found = self.bytes[self.searched..].iter().position(|&b| b == b'\n');
        let Some(end) = found.map(|at| at + self.searched) else {
            self.searched = self.bytes.len();
            return if self.bytes.len() > self.max { Err(TooLong) } else { Ok(None) };
        };
        if end > self.max {
            return Err(TooLong);
        }
        let mut line: Vec<u8> = self.bytes.drain(..=end).collect();
        line.pop();
        self.searched = 0;
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_a_limit() {
        let mut lines = Lines::new(4);
        lines.push(b"1234\n\n12");
        assert_eq!(lines.take(), Ok(Some(b"1234".to_vec())));
        assert_eq!(lines.take(), Ok(Some(Vec::new())));
        assert_eq!(lines.take(), Ok(None));
        lines.push(b"345");
        assert_eq!(lines.take(), Err(TooLong));
        lines.set_max(5);
        lines.push(b"\n");
        assert_eq!(lines.take(), Ok(Some(b"12345".to_vec())));
    }
}
