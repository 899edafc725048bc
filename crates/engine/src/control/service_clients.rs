//! Control connections of all clients of one service.

use super::control_connection::{ControlConnection, IDLE_NS};
use super::greeting::{Hello, HelloRefusal, HelloReply, Welcome};
use crate::sys::epoll::{Epoll, EpollEvent, EventFd, flags};
use crate::sys::socket::pause_if_exhausted;
use knee_load::time::Nanos;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Connections open at once beside those that are expected. For one more, the oldest of the address
/// with the most connections is closed; never that of the holder.
const CONNECTIONS_MAX: usize = 32;

/// Delay of the answer to a wrong token: bounds guesses per second.
const WRONG_TOKEN_NS: u64 = 200_000_000;

const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
const OTHER: u64 = u64::MAX - 2;

/// The clients of a service, and which of them holds it.
pub(crate) struct ServiceClients<F> {
    /// The command that starts the service: `serve udp`.
    service: &'static str,
    /// The secret that clients have to know; empty: none.
    token: String,
    facts: F,
    listener: TcpListener,
    wake: Arc<EventFd>,
    epoll: Epoll,
    /// The oldest first.
    all: Vec<ControlConnection>,
    next_id: u64,
    line_max: usize,
    holder: Option<u64>,
}

impl<F: Serialize> ServiceClients<F> {
    /// No clients yet. `wake` ends [`ServiceClients::wait`]; lines have up to `line_max` bytes.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub(crate) fn new(
        (service, token, facts): (&'static str, String, F),
        (listener, wake): (TcpListener, Arc<EventFd>),
        line_max: usize,
    ) -> io::Result<ServiceClients<F>> {
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(&listener, LISTENER, flags::READ)?;
        epoll.add(&*wake, WAKE, flags::READ)?;
        Ok(ServiceClients {
            service,
            token,
            facts,
            listener,
            wake,
            epoll,
            all: Vec::new(),
            next_id: 0,
            line_max,
            holder: None,
        })
    }

    /// Lets [`ServiceClients::wait`] end when `other` is readable, too.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn wait_for(&self, other: &impl AsFd) -> io::Result<()> {
        self.epoll.add(other, OTHER, flags::READ)
    }

    /// Waits for an event, up to `patience`.
    pub(crate) fn wait(&self, patience: Nanos) {
        let mut events = [EpollEvent::EMPTY; 64];
        // A failed wait would fail again at once: the sleep keeps it from spinning.
        if self.epoll.wait(&mut events, Some(patience)).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.wake.drain();
    }

    /// Accepts all connections that have come. Returns how many others were closed for them.
    pub(crate) fn accept(&mut self, expected: usize, now_ns: u64) -> u64 {
        let mut dismissed = 0;
        loop {
            let accepted = match self.listener.accept() {
                Ok(accepted) => accepted,
                Err(error) => {
                    pause_if_exhausted(&error);
                    return dismissed;
                }
            };
            if self.all.len() >= CONNECTIONS_MAX + expected {
                let others = self.all.iter().enumerate().filter(|(_, c)| Some(c.id) != self.holder);
                let closed = oldest_of_busiest(others.map(|(index, c)| (index, c.peer)));
                dismissed += u64::from(closed.map(|index| self.all.remove(index)).is_some());
            }
            let (id, line_max) = (self.next_id, self.line_max);
            if let Ok(new) = ControlConnection::new(&self.epoll, id, accepted, line_max, now_ns) {
                self.all.push(new);
                self.next_id += 1;
            }
        }
    }

    /// Reads what has come, the newest connection first: by the time its hello is read, all that
    /// closed before it are known to be gone.
    pub(crate) fn read(&mut self) {
        for connection in self.all.iter_mut().rev() {
            connection.read();
        }
    }

    /// The next request and its connection; `None` inside: the line was no request.
    pub(crate) fn next_request<R: DeserializeOwned>(&mut self) -> Option<(u64, Option<R>)> {
        let mut all = self.all.iter_mut();
        all.find_map(|c| c.next_request().map(|request| (c.id, request)))
    }

    /// Writes what fits.
    pub(crate) fn flush(&mut self, now_ns: u64) {
        for connection in &mut self.all {
            connection.flush(now_ns);
        }
    }

    /// Closes connections that are over. Returns whether that of the holder was among them, which
    /// may be silent for `holder_patience_ns`.
    pub(crate) fn close_ended(&mut self, now_ns: u64, holder_patience_ns: u64) -> bool {
        let holder = self.holder;
        self.all.retain(|connection| {
            let holds = Some(connection.id) == holder;
            let patience_ns = if holds { holder_patience_ns } else { IDLE_NS };
            !connection.is_over(now_ns, patience_ns)
        });
        let is_gone = holder.is_some() && self.holder().is_none();
        if is_gone {
            self.holder = None;
        }
        is_gone
    }

    /// The connection with this id, while it is open.
    pub(crate) fn get(&mut self, id: u64) -> Option<&mut ControlConnection> {
        self.all.iter_mut().find(|c| c.id == id)
    }

    /// Connection of the client that holds the service.
    pub(crate) fn holder(&mut self) -> Option<&mut ControlConnection> {
        self.holder.and_then(|id| self.get(id))
    }

    pub(crate) fn holds(&self, id: u64) -> bool {
        self.holder == Some(id)
    }

    /// Sends a message to the holder, if any.
    pub(crate) fn send_to_holder(&mut self, message: &impl Serialize) {
        if let Some(connection) = self.holder() {
            connection.send(message);
        }
    }

    /// Closes the connection of the holder. Returns whether there was one.
    pub(crate) fn dismiss_holder(&mut self) -> bool {
        let holder = self.holder.take();
        self.all.retain(|c| Some(c.id) != holder);
        holder.is_some()
    }

    /// Whether a client that says this may have the service.
    pub(crate) fn admits(&self, hello: &Hello) -> bool {
        hello.check(self.service, &self.token).is_ok()
    }

    /// Answers hello: the client holds the service, or gets the reason why not and is sent away.
    /// Returns whether it holds it.
    pub(crate) fn greet(&mut self, id: u64, hello: &Hello) -> bool {
        let checked = hello.check(self.service, &self.token);
        let is_held = self.holder.is_some();
        // Not by `get`: the facts are borrowed meanwhile.
        let Some(connection) = self.all.iter_mut().find(|c| c.id == id) else {
            return false;
        };
        match checked {
            Err(refusal) => {
                connection.refuse(&refusal.to_string());
                if refusal == HelloRefusal::Token {
                    connection.delay(WRONG_TOKEN_NS);
                }
            }
            Ok(()) if is_held => connection.send_last(&HelloReply::<F>::Busy),
            Ok(()) => {
                connection.send(&HelloReply::Welcome(Welcome::with_facts(&self.facts)));
                self.holder = Some(id);
            }
        }
        self.holds(id)
    }

    /// Takes a connection out, for another use.
    pub(crate) fn release(&mut self, id: u64) -> Option<ControlConnection> {
        let index = self.all.iter().position(|c| c.id == id)?;
        let connection = self.all.remove(index);
        let _ = self.epoll.delete(&connection.stream);
        Some(connection)
    }
}

/// Of these connections, the oldest first, the oldest of the address that has the most. So a host
/// that opens connections without end closes its own, and not those of others.
fn oldest_of_busiest<C>(connections: impl Iterator<Item = (C, IpAddr)>) -> Option<C> {
    let mut by_peer: Vec<(IpAddr, usize, C)> = Vec::new();
    for (connection, peer) in connections {
        match by_peer.iter_mut().find(|(known, ..)| *known == peer) {
            Some((_, count, _)) => *count += 1,
            None => by_peer.push((peer, 1, connection)),
        }
    }
    // Of several with as many, the first.
    by_peer.into_iter().reduce(|a, b| if b.1 > a.1 { b } else { a }).map(|(.., oldest)| oldest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_the_busiest_address_makes_room() {
        let ip = |n: u8| IpAddr::from([10, 0, 0, n]);
        for (peers, expected) in [
            (&[][..], None),
            (&[1], Some(0)),
            (&[1, 2, 3], Some(0)),
            (&[1, 2, 2], Some(1)),
            (&[2, 1, 2, 1, 1], Some(1)),
        ] {
            let waiting = peers.iter().map(|n| ip(*n)).enumerate();
            assert_eq!(oldest_of_busiest(waiting), expected, "{peers:?}");
        }
    }
}
