//! knee-serve: the servers that tests, demos and calibration run against, and what monitoring asks.
//!
//! # Parts
//!
//! - `http`: the reference HTTP server. A connection's bytes pass its `wire`, in clear or through
//!   `secure` (TLS). `http1` and `http2` make requests of them, for the same station, faults and
//!   log. `grpc` answers calls over its HTTP/2.
//! - `ws`: the reference WebSocket server, over the frames of the engine's `exchange::websocket`.
//! - `dns`: the reference DNS server.
//! - `exposition`: the page of metrics.
//!
//! Sockets, epoll, clocks and threads are those of the engine, and the codecs of its exchanges.

#![forbid(unsafe_code)]
#![warn(unreachable_pub)]

pub mod dns;
pub mod exposition;
pub mod http;
mod listen;
#[cfg(test)]
#[path = "../../engine/src/scratch_for_tests.rs"]
mod scratch_for_tests;
pub mod ws;

use knee_engine::sys::epoll::{Epoll, flags};
use std::io;
use std::os::fd::AsFd;

/// Connections by token: a place in the low half, a generation in the high half. So a late event or
/// timer of a closed connection never meets its successor.
struct ConnectionSlab<T> {
    places: Vec<(u32, Option<T>)>,
    free: Vec<u32>,
}

impl<T> Default for ConnectionSlab<T> {
    fn default() -> ConnectionSlab<T> {
        ConnectionSlab { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> ConnectionSlab<T> {
    /// Number of open connections.
    fn len(&self) -> usize {
        self.places.len() - self.free.len()
    }

    /// Number of places, free ones included.
    fn places(&self) -> usize {
        self.places.len()
    }

    /// Token of the connection at a place, open or not.
    fn token_at(&self, place: usize) -> u64 {
        u64::from(self.places[place].0) << 32 | place as u64
    }

    /// Token of the connection that is added next.
    fn next_token(&self) -> u64 {
        self.free.last().map_or(self.places.len() as u64, |place| self.token_at(*place as usize))
    }

    /// Adds the connection that has the next token.
    fn insert(&mut self, connection: T) {
        match self.free.pop() {
            Some(place) => self.places[place as usize].1 = Some(connection),
            None => self.places.push((0, Some(connection))),
        }
    }

    /// The connection's place, unless it is gone.
    fn find(&mut self, token: u64) -> Option<&mut Option<T>> {
        let (generation, content) = self.places.get_mut(token as u32 as usize)?;
        (u64::from(*generation) == token >> 32).then_some(content)
    }

    /// The connection, unless it is gone.
    fn get(&mut self, token: u64) -> Option<&mut T> {
        self.find(token)?.as_mut()
    }

    /// Calls `act` with each open connection.
    fn each(&mut self, act: impl FnMut(&mut T)) {
        self.places.iter_mut().filter_map(|(_, c)| c.as_mut()).for_each(act);
    }

    /// Removes the connection with this token, unless it is gone.
    fn remove(&mut self, token: u64) {
        if self.get(token).is_none() {
            return;
        }
        let (generation, content) = &mut self.places[token as u32 as usize];
        *content = None;
        // The highest generation is left to the tokens that are no connection's.
        *generation = (*generation + 1) % u32::MAX;
        self.free.push(token as u32);
    }
}

/// Bytes kept of the memory for what is to be sent.
const OUT_BYTES_KEPT: usize = 64 << 10;

/// The socket of a connection, and what is to be sent over it.
struct QueuedSocket<S> {
    socket: S,
    /// What is to be sent, and how much of it is.
    out: Vec<u8>,
    sent: usize,
    /// Whether room to write is waited for.
    is_blocked: bool,
}

/// Result of [`QueuedSocket::flush`].
enum Flushed {
    /// The kernel has all of them, or epoll tells of room for the rest.
    Fine,
    /// More of them wait for the client than may.
    Unread,
    /// The connection is gone.
    Gone,
}

impl<S: AsFd> QueuedSocket<S> {
    fn new(socket: S) -> QueuedSocket<S> {
        QueuedSocket { socket, out: Vec::new(), sent: 0, is_blocked: false }
    }

    /// Lets epoll report events under this token. Returns `false` if it cannot.
    fn watch(&self, epoll: &Epoll, token: u64) -> bool {
        epoll.add(&self.socket, token, flags::READ | flags::READ_CLOSED).is_ok()
    }

    /// Passes to the kernel what is to be sent, by `send`. At most `unread_max` bytes may wait.
    fn flush(
        &mut self,
        (epoll, token): (&Epoll, u64),
        unread_max: usize,
        send: impl Fn(&S, &[u8]) -> io::Result<usize>,
    ) -> Flushed {
        let mut is_blocked = false;
        while self.sent < self.out.len() && !is_blocked {
            match send(&self.socket, &self.out[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => is_blocked = true,
                Err(_) => return Flushed::Gone,
            }
        }
        if !is_blocked {
            self.out.clear();
            self.out.shrink_to(OUT_BYTES_KEPT);
            self.sent = 0;
        } else if self.out.len() - self.sent > unread_max {
            return Flushed::Unread;
        }
        if std::mem::replace(&mut self.is_blocked, is_blocked) != is_blocked {
            let room = if is_blocked { flags::WRITE } else { 0 };
            let wanted = flags::READ | flags::READ_CLOSED | room;
            if epoll.modify(&self.socket, token, wanted).is_err() {
                return Flushed::Gone;
            }
        }
        Flushed::Fine
    }
}
