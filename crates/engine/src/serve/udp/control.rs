//! The control thread: connections, and the one client that has the service.

use super::data::{Command, Reply};
use crate::control::connection::{Connection, Heard, IDLE_NS, make_room};
use crate::control::{identity, is_equal};
use crate::sys::clock;
use crate::sys::epoll::{Epoll, Event, flags};
use crate::sys::eventfd::EventFd;
use crate::udp::wire::{Ask, Begin, LINE_MAX, Say, VERSION, Welcome};
use knee_core::measure::ServiceFacts;
use knee_core::time::Nanos;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// Connections that may be open at once; for one more the oldest that has not said hello goes.
const CONNECTIONS_MAX: usize = 32;

/// A running session's client is told so often that the service is there.
const ALIVE_NS: u64 = 1_000_000_000;

/// How often deadlines are looked at.
const TICK: Nanos = Nanos::from_millis(250);

const LISTENER: u64 = u64::MAX;
const WAKE: u64 = u64::MAX - 1;

/// Where the client that has the service stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// No session.
    Idle,
    /// Between begin and ready.
    Preparing,
    Ready,
    /// Between start and end.
    Running,
    /// Between end and record.
    Draining,
}

/// The thread's state.
pub(super) struct ControlThread {
    pub(super) listener: TcpListener,
    pub(super) token: String,
    /// As the service was started.
    pub(super) facts: ServiceFacts,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) replies: mpsc::Receiver<(u64, Reply)>,
    /// Wakes this thread.
    pub(super) wake: Arc<EventFd>,
    /// Wakes the thread of datagrams.
    pub(super) data: Arc<EventFd>,
    /// Makes that thread leave its work.
    pub(super) hurry: Arc<AtomicBool>,
    pub(super) stop: Arc<AtomicBool>,
}

impl ControlThread {
    /// Serves until it is told to stop.
    ///
    /// # Errors
    /// Out of descriptors or memory at the very start.
    pub(super) fn run(self) -> io::Result<()> {
        self.listener.set_nonblocking(true)?;
        let epoll = Epoll::new()?;
        epoll.add(&self.listener, LISTENER, flags::READ)?;
        epoll.add(&*self.wake, WAKE, flags::READ)?;
        let mut room = Room {
            thread: self,
            epoll,
            connections: Vec::new(),
            next_id: 0,
            holder: None,
            stage: Stage::Idle,
            serial: 0,
            alive_ns: 0,
        };
        let mut events = [Event::EMPTY; 64];
        while !room.thread.stop.load(Ordering::Relaxed) {
            // A failed wait would fail again at once: the tick keeps it from spinning.
            if room.epoll.wait(&mut events, Some(TICK)).is_err() {
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
            room.thread.wake.drain();
            room.pass();
        }
        Ok(())
    }

    fn tell(&self, command: Command) {
        // The thread of datagrams is gone only where the service ends.
        let _ = self.commands.send(command);
        self.data.notify();
    }
}

/// The connections.
struct Room {
    thread: ControlThread,
    epoll: Epoll,
    connections: Vec<Connection>,
    next_id: u64,
    /// The one client that has the service.
    holder: Option<u64>,
    stage: Stage,
    /// Of the session begun last.
    serial: u64,
    alive_ns: u64,
}

impl Room {
    fn pass(&mut self) {
        let now_ns = clock::monotonic_ns();
        // The client that leaves before the one that comes, so that it does not find us busy.
        self.listen_to_all(now_ns);
        self.answer();
        while self.accept(now_ns) {}
        self.listen_to_all(now_ns);
        if self.stage != Stage::Idle && now_ns.saturating_sub(self.alive_ns) > ALIVE_NS {
            self.alive_ns = now_ns;
            self.say_to_holder(&Say::Alive);
        }
        for connection in &mut self.connections {
            connection.flush(now_ns);
        }
        self.bury(now_ns);
    }

    fn accept(&mut self, now_ns: u64) -> bool {
        let Ok(accepted) = self.thread.listener.accept() else {
            return false;
        };
        make_room(&mut self.connections, CONNECTIONS_MAX, self.holder);
        let id = self.next_id;
        if let Ok(new) = Connection::watched(&self.epoll, id, accepted, LINE_MAX, now_ns) {
            self.connections.push(new);
            self.next_id += 1;
        }
        true
    }

    fn listen_to_all(&mut self, now_ns: u64) {
        // The newest first: who has said hello by then finds all gone that went before.
        for connection in self.connections.iter_mut().rev() {
            connection.read();
        }
        self.bury(now_ns);
        for index in 0..self.connections.len() {
            while let Some(heard) = self.connections[index].hear() {
                match heard {
                    Heard::Ask(ask) => self.obey(index, ask, now_ns),
                    Heard::Nonsense => {
                        let reason = "this is no line of a knee client".to_owned();
                        self.connections[index].part(&Say::Refused { reason });
                    }
                }
            }
        }
        self.bury(now_ns);
    }

    /// Does away with connections that are over; with that of the holder goes its session.
    fn bury(&mut self, now_ns: u64) {
        let holder = self.holder;
        let mut held = false;
        self.connections.retain(|connection| {
            let holds = Some(connection.id) == holder;
            let patient = holds && self.stage != Stage::Idle;
            let patience_ns = if patient { u64::MAX } else { IDLE_NS };
            let stays = !connection.is_over(now_ns, patience_ns);
            held |= stays && holds;
            stays
        });
        if holder.is_some() && !held {
            self.holder = None;
            if self.stage != Stage::Idle {
                self.stage = Stage::Idle;
                self.thread.hurry.store(true, Ordering::Relaxed);
                self.thread.tell(Command::Abandon);
            }
        }
    }

    fn obey(&mut self, index: usize, ask: Ask, now_ns: u64) {
        let connection = &mut self.connections[index];
        connection.touch(now_ns);
        let holds = self.holder == Some(connection.id);
        match (ask, self.stage) {
            (Ask::Hello { version, token }, _) if !holds => self.greet(index, version, &token),
            (Ask::Ping { n }, _) if holds => {
                let at_ns = clock::monotonic_ns();
                connection.say(&Say::Pong { n, at_ns });
            }
            (Ask::Begin(begin), Stage::Idle) if holds => self.begin(index, begin),
            (Ask::Start { origin_ns }, Stage::Ready) if holds => {
                self.stage = Stage::Running;
                self.thread.tell(Command::Start(origin_ns));
            }
            (Ask::End { sent }, Stage::Running) if holds => {
                self.stage = Stage::Draining;
                self.thread.tell(Command::End(sent));
            }
            (Ask::Hello { .. }, _) => refuse(connection, "hello was said already"),
            _ if !holds => refuse(connection, "hello has to come first"),
            _ => refuse(connection, "this is not the time for that"),
        }
    }

    fn greet(&mut self, index: usize, version: u32, token: &str) {
        let connection = &mut self.connections[index];
        if version != VERSION {
            refuse(
                connection,
                &format!(
                    "the service speaks version {VERSION} of the control language and the client \
                 version {version}: both have to be of one release of knee"
                ),
            );
        } else if !is_equal(token, &self.thread.token) {
            refuse(
                connection,
                "the token is not the service's: give both the same with --token",
            );
        } else if self.holder.is_some() {
            connection.part(&Say::Busy);
        } else {
            self.holder = Some(connection.id);
            connection.say(&Say::Welcome(Welcome {
                boot: identity::boot(),
                namespace: identity::network_namespace(),
                facts: self.thread.facts.clone(),
            }));
        }
    }

    fn begin(&mut self, index: usize, begin: Begin) {
        let connection = &mut self.connections[index];
        match begin.check() {
            Ok(()) => {
                self.stage = Stage::Preparing;
                self.serial += 1;
                let (serial, peer) = (self.serial, connection.peer);
                self.thread.tell(Command::Begin(serial, begin.into(), peer));
            }
            Err(reason) => refuse(connection, &reason),
        }
    }

    /// Passes on what the thread of datagrams said; what was for a client that is gone is dropped.
    fn answer(&mut self) {
        while let Ok((serial, reply)) = self.thread.replies.try_recv() {
            if serial != self.serial {
                continue;
            }
            let (stage, say) = match (reply, self.stage) {
                (Reply::Ready(facts), Stage::Preparing) => (Stage::Ready, Say::Ready { facts }),
                (Reply::Refused(reason), Stage::Preparing) => {
                    (Stage::Idle, Say::Refused { reason })
                }
                (Reply::Started, Stage::Running) => (Stage::Running, Say::Started),
                (Reply::Record(record), Stage::Draining) => (Stage::Idle, Say::Record(record)),
                _ => continue,
            };
            self.stage = stage;
            self.say_to_holder(&say);
        }
    }

    fn say_to_holder(&mut self, say: &Say) {
        let holder = self.holder;
        let mut all = self.connections.iter_mut();
        if let Some(connection) = all.find(|c| Some(c.id) == holder) {
            connection.say(say);
        }
    }
}

fn refuse(connection: &mut Connection, reason: &str) {
    connection.part(&Say::Refused {
        reason: reason.to_owned(),
    });
}
