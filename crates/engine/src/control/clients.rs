//! All control connections of a service that one client has at a time.

use super::connection::{Connection, Heard, IDLE_NS};
use super::greeting::Unfit;
use super::{Greeting, Hello, Welcome};
use crate::sys::epoll::{Epoll, Event, flags};
use crate::sys::eventfd::EventFd;
use knee_core::time::Nanos;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::io;
use std::net::{IpAddr, TcpListener};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// Connections that may be open at once beside those that are expected; for one more the oldest of
/// the address that has the most goes, but for the one that has the service.
const CONNECTIONS_MAX: usize = 32;

/// Who gives a wrong token waits at least so long for the answer.
const WRONG_TOKEN_NS: u64 = 200_000_000;

const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;
const OTHER: u64 = u64::MAX - 2;

/// Who connected, and which of them has the service.
pub(crate) struct Clients {
    listener: TcpListener,
    wake: Arc<EventFd>,
    epoll: Epoll,
    all: Vec<Connection>,
    next_id: u64,
    line_max: usize,
    holder: Option<u64>,
}

impl Clients {
    /// None yet; `wake` ends [`Clients::wait`], and lines have at most `line_max` bytes.
    ///
    /// # Errors
    /// Out of descriptors or memory.
    pub(crate) fn new(
        listener: TcpListener,
        wake: Arc<EventFd>,
        line_max: usize,
    ) -> io::Result<Clients> {
        listener.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(&listener, LISTENER, flags::READ)?;
        epoll.add(&*wake, WAKE, flags::READ)?;
        Ok(Clients {
            listener,
            wake,
            epoll,
            all: Vec::new(),
            next_id: 0,
            line_max,
            holder: None,
        })
    }

    /// [`Clients::wait`] ends when something can be read from this, too.
    ///
    /// # Errors
    /// Out of memory.
    pub(crate) fn wait_for(&self, other: &impl AsFd) -> io::Result<()> {
        self.epoll.add(other, OTHER, flags::READ)
    }

    /// Until something can be done, or for so long.
    pub(crate) fn wait(&self, patience: Nanos) {
        let mut events = [Event::EMPTY; 64];
        // A failed wait would fail again at once: this keeps it from spinning.
        if self.epoll.wait(&mut events, Some(patience)).is_err() {
            std::thread::sleep(Duration::from_millis(50));
        }
        self.wake.drain();
    }

    /// Takes in all that have come, where so many are `expected` besides; how many had to go for
    /// them.
    pub(crate) fn accept(&mut self, expected: usize, now_ns: u64) -> u64 {
        let mut dismissed = 0;
        while let Ok(accepted) = self.listener.accept() {
            if self.all.len() >= CONNECTIONS_MAX + expected {
                let others = self.all.iter().enumerate();
                let others = others.filter(|(_, c)| Some(c.id) != self.holder);
                let goes = to_dismiss(others.map(|(index, c)| (index, c.peer)));
                dismissed += u64::from(goes.map(|index| self.all.remove(index)).is_some());
            }
            let (id, line_max) = (self.next_id, self.line_max);
            if let Ok(new) = Connection::watched(&self.epoll, id, accepted, line_max, now_ns) {
                self.all.push(new);
                self.next_id += 1;
            }
        }
        dismissed
    }

    /// Reads what has come: the newest first, so that who has said hello by then finds all gone
    /// that went before.
    pub(crate) fn read(&mut self) {
        for connection in self.all.iter_mut().rev() {
            connection.read();
        }
    }

    /// The next thing that was said, and by whom.
    pub(crate) fn hear<A: DeserializeOwned>(&mut self) -> Option<(u64, Heard<A>)> {
        let mut all = self.all.iter_mut();
        all.find_map(|c| c.hear().map(|heard| (c.id, heard)))
    }

    /// Writes as much as fits.
    pub(crate) fn flush(&mut self, now_ns: u64) {
        for connection in &mut self.all {
            connection.flush(now_ns);
        }
    }

    /// Does away with connections that are over; whether that of the holder was among them, who may
    /// say nothing for so long.
    pub(crate) fn bury(&mut self, now_ns: u64, holders_patience_ns: u64) -> bool {
        let holder = self.holder;
        self.all.retain(|connection| {
            let holds = Some(connection.id) == holder;
            let patience_ns = if holds { holders_patience_ns } else { IDLE_NS };
            !connection.is_over(now_ns, patience_ns)
        });
        let is_gone = holder.is_some() && self.holder().is_none();
        if is_gone {
            self.holder = None;
        }
        is_gone
    }

    /// The connection with this id, while it is there.
    pub(crate) fn get(&mut self, id: u64) -> Option<&mut Connection> {
        self.all.iter_mut().find(|c| c.id == id)
    }

    /// That of the one client that has the service.
    pub(crate) fn holder(&mut self) -> Option<&mut Connection> {
        self.holder.and_then(|id| self.get(id))
    }

    /// Whether this is the one.
    pub(crate) fn holds(&self, id: u64) -> bool {
        self.holder == Some(id)
    }

    /// Takes the service from the client that has it and sends it away; whether there was one.
    pub(crate) fn unseat(&mut self) -> bool {
        let holder = self.holder.take();
        self.all.retain(|c| Some(c.id) != holder);
        holder.is_some()
    }

    /// Answers a client that says hello: it has the service now, or is told why not and sent away.
    /// Whether it has it.
    pub(crate) fn greet<F: Serialize>(
        &mut self,
        id: u64,
        said: &Hello,
        (service, token): (&'static str, &str),
        facts: &F,
    ) -> bool {
        let is_held = self.holder.is_some();
        let Some(connection) = self.get(id) else {
            return false;
        };
        match said.check(service, token) {
            Err(unfit) => {
                connection.refuse(&unfit.to_string());
                if unfit == Unfit::Token {
                    // Whoever guesses gets few guesses.
                    connection.hold_back(WRONG_TOKEN_NS);
                }
            }
            Ok(()) if is_held => connection.part(&Greeting::<F>::Busy),
            Ok(()) => {
                connection.say(&Greeting::Welcome(Welcome::from_here(facts)));
                self.holder = Some(id);
            }
        }
        self.holds(id)
    }

    /// Lets a connection go that is to be something else.
    pub(crate) fn release(&mut self, id: u64) -> Option<Connection> {
        let index = self.all.iter().position(|c| c.id == id)?;
        let connection = self.all.remove(index);
        let _ = self.epoll.delete(connection.stream());
        Some(connection)
    }
}

/// Which of these connections, the oldest first, makes room for another: the oldest of the address
/// that has the most of them. So one host that opens connections without end dismisses its own, and
/// not that of a client elsewhere.
pub(crate) fn to_dismiss<C>(waiting: impl Iterator<Item = (C, IpAddr)>) -> Option<C> {
    let mut by_peer: Vec<(IpAddr, usize, C)> = Vec::new();
    for (connection, peer) in waiting {
        match by_peer.iter_mut().find(|(known, ..)| *known == peer) {
            Some((_, count, _)) => *count += 1,
            None => by_peer.push((peer, 1, connection)),
        }
    }
    // Of several the first, which came first.
    let most = by_peer
        .into_iter()
        .reduce(|a, b| if b.1 > a.1 { b } else { a });
    most.map(|(.., oldest)| oldest)
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
            assert_eq!(to_dismiss(waiting), expected, "{peers:?}");
        }
    }
}
