//! One control connection at a service: lines in, lines out, nothing that blocks.

use super::greeting::Greeting;
use super::lines::{Lines, line};
use crate::sys::epoll::{Epoll, flags};
use crate::sys::stream::keep_alive;
use crate::sys::{clock, socket};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// Who says nothing for so long outside a session is sent away, so that nobody holds the service
/// by doing nothing.
pub(crate) const IDLE_NS: u64 = 10_000_000_000;

/// Who takes nothing of what it is told for so long is gone.
const STUCK_NS: u64 = 15_000_000_000;

/// What came.
pub(crate) enum Heard<A> {
    Ask(A),
    /// A line that is none of knee's, or one without end.
    Nonsense,
}

/// A control connection.
pub(crate) struct Connection {
    pub(crate) id: u64,
    /// Where it comes from; IPv4 in IPv6 as plain IPv4.
    pub(crate) peer: IpAddr,
    stream: TcpStream,
    lines: Lines,
    out: Vec<u8>,
    /// What of `out` was written.
    written: usize,
    heard_ns: u64,
    progress_ns: u64,
    /// Nothing is written before.
    held_until_ns: u64,
    /// Nothing more is read; once all is written, it is over.
    is_parting: bool,
    is_gone: bool,
}

impl Connection {
    /// A new one, which `epoll` tells of under its id.
    ///
    /// # Errors
    /// Where it has gone meanwhile, or the kernel has no room for it.
    pub(crate) fn watched(
        epoll: &Epoll,
        id: u64,
        (stream, peer): (TcpStream, SocketAddr),
        line_max: usize,
        now_ns: u64,
    ) -> io::Result<Connection> {
        let connection = Connection::new(id, stream, peer, line_max, now_ns)?;
        let events = flags::READ | flags::WRITE | flags::EDGE;
        epoll.add(connection.stream(), id, events)?;
        Ok(connection)
    }

    fn new(
        id: u64,
        stream: TcpStream,
        peer: SocketAddr,
        line_max: usize,
        now_ns: u64,
    ) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        socket::set_user_timeout(&stream, (STUCK_NS / 1_000_000) as u32)?;
        keep_alive(&stream)?;
        Ok(Connection {
            id,
            peer: peer.ip().to_canonical(),
            stream,
            lines: Lines::new(line_max),
            out: Vec::new(),
            written: 0,
            heard_ns: now_ns,
            progress_ns: now_ns,
            held_until_ns: 0,
            is_parting: false,
            is_gone: false,
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads what is there. Up to some lines' worth at a time is kept; a client that says more than
    /// that before it has an answer is none.
    pub(crate) fn read(&mut self) {
        let mut buffer = [0; 4_096];
        for _ in 0..16 {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.is_gone = true,
                // What comes after the parting is read, so that closing is no reset, which could
                // overtake what was said last; and thrown away.
                Ok(_) if self.is_parting => continue,
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

    /// The next thing that was said.
    pub(crate) fn hear<A: DeserializeOwned>(&mut self) -> Option<Heard<A>> {
        if self.is_parting {
            return None;
        }
        match self.lines.take() {
            Ok(None) => None,
            Ok(Some(line)) => match serde_json::from_slice(&line) {
                Ok(ask) => Some(Heard::Ask(ask)),
                Err(_) => Some(Heard::Nonsense),
            },
            Err(_) => Some(Heard::Nonsense),
        }
    }

    /// The client said something sensible.
    pub(crate) fn touch(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    pub(crate) fn say(&mut self, say: &impl Serialize) {
        if self.out.is_empty() {
            self.progress_ns = clock::monotonic_ns();
        }
        self.out.extend(line(say));
    }

    /// The last thing that is said.
    pub(crate) fn part(&mut self, say: &impl Serialize) {
        self.say(say);
        self.is_parting = true;
    }

    /// Tells the client why it is sent away.
    pub(crate) fn refuse(&mut self, reason: &str) {
        self.part(&Greeting::<()>::Refused {
            reason: reason.to_owned(),
        });
    }

    /// Says nothing more for so long.
    pub(crate) fn hold_back(&mut self, for_ns: u64) {
        self.held_until_ns = clock::monotonic_ns() + for_ns;
    }

    /// Writes as much as fits.
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
        if self.is_parting {
            let _ = self.stream.shutdown(std::net::Shutdown::Write);
        }
    }

    /// Whether it is to be closed, where the client may say nothing for `patience_ns`.
    pub(crate) fn is_over(&self, now_ns: u64, patience_ns: u64) -> bool {
        let idle = now_ns.saturating_sub(self.heard_ns) > patience_ns;
        let stuck = now_ns.saturating_sub(self.progress_ns) > STUCK_NS;
        self.is_gone || idle || stuck && !self.out.is_empty()
    }

    /// The stream alone, for other use: what came and was not heard yet is forgotten.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }
}
