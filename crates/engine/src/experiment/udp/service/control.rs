//! The control thread: connections, and the one client that has the service.

use super::data::{Command, Reply};
use crate::control::clients::Clients;
use crate::control::connection::{Heard, IDLE_NS};
use crate::experiment::udp::wire::{Ask, Begin, Hello, SERVICE, Say};
use crate::sys::clock;
use crate::sys::eventfd::EventFd;
use knee_core::experiment::udp::measure::ServiceFacts;
use knee_core::time::Nanos;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

/// A running session's client is told so often that the service is there.
const ALIVE_NS: u64 = 1_000_000_000;

/// How often deadlines are looked at.
const TICK: Nanos = Nanos::from_millis(250);

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

/// What the thread was started with.
pub(super) struct ControlThread {
    pub(super) token: String,
    /// As the service was started.
    pub(super) facts: ServiceFacts,
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) replies: mpsc::Receiver<(u64, Reply)>,
    /// Wakes the thread of datagrams.
    pub(super) data: Arc<EventFd>,
    /// Makes that thread leave its work.
    pub(super) hurry: Arc<AtomicBool>,
    pub(super) stop: Arc<AtomicBool>,
}

impl ControlThread {
    /// Serves until it is told to stop.
    pub(super) fn run(self, clients: Clients) {
        let mut room = Room {
            thread: self,
            clients,
            stage: Stage::Idle,
            serial: 0,
            alive_ns: 0,
        };
        while !room.thread.stop.load(Ordering::Relaxed) {
            room.clients.wait(TICK);
            room.pass();
        }
    }

    fn tell(&self, command: Command) {
        // The thread of datagrams is gone only where the service ends.
        let _ = self.commands.send(command);
        self.data.notify();
    }
}

/// The clients and the session.
struct Room {
    thread: ControlThread,
    clients: Clients,
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
        self.clients.accept(0, now_ns);
        self.listen_to_all(now_ns);
        if self.stage != Stage::Idle && now_ns.saturating_sub(self.alive_ns) > ALIVE_NS {
            self.alive_ns = now_ns;
            self.say_to_holder(&Say::Alive);
        }
        self.clients.flush(now_ns);
        self.bury(now_ns);
    }

    fn listen_to_all(&mut self, now_ns: u64) {
        self.clients.read();
        self.bury(now_ns);
        while let Some((id, heard)) = self.clients.hear() {
            self.obey(id, heard, now_ns);
        }
        self.bury(now_ns);
    }

    /// Does away with connections that are over; with that of the holder goes its session.
    fn bury(&mut self, now_ns: u64) {
        let patience_ns = match self.stage {
            Stage::Idle => IDLE_NS,
            _ => u64::MAX,
        };
        if self.clients.bury(now_ns, patience_ns) && self.stage != Stage::Idle {
            self.stage = Stage::Idle;
            self.thread.hurry.store(true, Ordering::Relaxed);
            self.thread.tell(Command::Abandon);
        }
    }

    fn obey(&mut self, id: u64, heard: Heard<Ask>, now_ns: u64) {
        let holds = self.clients.holds(id);
        let Some(connection) = self.clients.get(id) else {
            return;
        };
        let Heard::Ask(ask) = heard else {
            return connection.refuse("this is no line of a knee client");
        };
        connection.touch(now_ns);
        match (ask, self.stage) {
            (Ask::Hello(hello), _) if !holds => self.greet(id, &hello),
            (Ask::Ping { n }, _) if holds => {
                let at_ns = clock::monotonic_ns();
                connection.say(&Say::Pong { n, at_ns });
            }
            (Ask::Begin(begin), Stage::Idle) if holds => self.begin(id, begin),
            (Ask::Start { origin_ns }, Stage::Ready) if holds => {
                self.stage = Stage::Running;
                self.thread.tell(Command::Start(origin_ns));
            }
            (Ask::End { sent }, Stage::Running) if holds => {
                self.stage = Stage::Draining;
                self.thread.tell(Command::End(sent));
            }
            (Ask::Hello(_), _) => connection.refuse("hello was said already"),
            _ if !holds => connection.refuse("hello has to come first"),
            _ => connection.refuse("this is not the time for that"),
        }
    }

    fn greet(&mut self, id: u64, said: &Hello) {
        let expected = (SERVICE, self.thread.token.as_str());
        self.clients.greet(id, said, expected, &self.thread.facts);
    }

    fn begin(&mut self, id: u64, begin: Begin) {
        let Some(connection) = self.clients.get(id) else {
            return;
        };
        match begin.check() {
            Ok(()) => {
                self.stage = Stage::Preparing;
                self.serial += 1;
                let (serial, peer) = (self.serial, connection.peer);
                self.thread.tell(Command::Begin(serial, begin.into(), peer));
            }
            Err(reason) => connection.refuse(&reason),
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
        if let Some(connection) = self.clients.holder() {
            connection.say(say);
        }
    }
}
