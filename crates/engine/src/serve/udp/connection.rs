//! One control connection: lines in, lines out, nothing that blocks.

use crate::sys::{clock, socket};
use crate::udp::wire::{self, Ask, LINE_MAX, Lines, Say};
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// Who says nothing for so long outside a session is sent away, so that nobody holds the service
/// by doing nothing.
const IDLE_NS: u64 = 10_000_000_000;

/// Who takes nothing of what it is told for so long is gone.
const STUCK_NS: u64 = 15_000_000_000;

/// What came.
pub(super) enum Heard {
    Ask(Ask),
    /// A line that is none of knee's, or one without end.
    Nonsense,
}

/// A control connection.
pub(super) struct Connection {
    pub(super) id: u64,
    /// Where it comes from; IPv4 in IPv6 as plain IPv4.
    pub(super) peer: IpAddr,
    stream: TcpStream,
    lines: Lines,
    out: Vec<u8>,
    /// What of `out` was written.
    written: usize,
    heard_ns: u64,
    progress_ns: u64,
    /// Nothing more is read; once all is written, it is over.
    is_parting: bool,
    is_gone: bool,
}

impl Connection {
    pub(super) fn new(
        id: u64,
        stream: TcpStream,
        peer: SocketAddr,
        now_ns: u64,
    ) -> io::Result<Connection> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        socket::set_user_timeout(&stream, (STUCK_NS / 1_000_000) as u32)?;
        Ok(Connection {
            id,
            peer: peer.ip().to_canonical(),
            stream,
            lines: Lines::new(LINE_MAX),
            out: Vec::new(),
            written: 0,
            heard_ns: now_ns,
            progress_ns: now_ns,
            is_parting: false,
            is_gone: false,
        })
    }

    pub(super) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Reads what is there. Up to some lines' worth at a time is kept; a client that says more than
    /// that before it has an answer is none.
    pub(super) fn read(&mut self) {
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
    pub(super) fn hear(&mut self) -> Option<Heard> {
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
    pub(super) fn touch(&mut self, now_ns: u64) {
        self.heard_ns = now_ns;
    }

    pub(super) fn say(&mut self, say: &Say) {
        if self.out.is_empty() {
            self.progress_ns = clock::monotonic_ns();
        }
        self.out.extend(wire::line(say));
    }

    /// The last thing that is said.
    pub(super) fn part(&mut self, say: &Say) {
        self.say(say);
        self.is_parting = true;
    }

    pub(super) fn refuse(&mut self, reason: &str) {
        self.part(&Say::Refused {
            reason: reason.to_owned(),
        });
    }

    /// Writes as much as fits.
    pub(super) fn flush(&mut self, now_ns: u64) {
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

    /// Whether it is to be closed. `patient`: it has a session, and may be silent while that runs.
    pub(super) fn is_over(&self, now_ns: u64, patient: bool) -> bool {
        let idle = now_ns.saturating_sub(self.heard_ns) > IDLE_NS;
        let stuck = now_ns.saturating_sub(self.progress_ns) > STUCK_NS;
        self.is_gone || idle && !patient || stuck && !self.out.is_empty()
    }
}
