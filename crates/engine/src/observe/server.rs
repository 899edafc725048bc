//! `knee observe`: watches a port of this host for whoever is allowed to ask.

use super::control::{
    ASK_MAX, Ask, BEGIN_WITHIN_NS, DURATION_MAX_NS, Hello, ObserverFacts, SERVICE, Say,
};
use super::follow::Following;
use super::watch::{Armed, Watch, source_here};
use crate::control::clients::Clients;
use crate::control::connection::Heard;
use crate::port;
use crate::sys::clock::monotonic_ns;
use crate::sys::eventfd::EventFd;
use crate::threads;
use knee_core::measure::SynSource;
use knee_core::time::Nanos;
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};

/// A client that asks for nothing for so long, and has nothing watched, is sent away.
const IDLE_NS: u64 = 600_000_000_000;

/// How often deadlines are looked at.
const TICK: Nanos = Nanos::from_millis(250);

/// When a client that does nothing gives its place to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Without a first request, so long after its hello.
    pub(super) first: Nanos,
    /// So long after its last request, or after the window that it watches has ended.
    pub(super) idle: Nanos,
}

const PLACE: Place = Place {
    first: Nanos::from_secs(5),
    idle: Nanos::from_secs(60),
};

/// What an observer has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObserveStats {
    /// Clients that were served, one after another.
    pub clients: u64,
    /// Windows that were watched to their end and told.
    pub windows: u64,
    /// Connections that were refused: busy, a wrong token, no request.
    pub refused: u64,
}

/// A running observer; it ends when it is stopped or dropped.
#[derive(Debug)]
pub struct ObserveServer {
    address: SocketAddr,
    source: SynSource,
    because: Option<String>,
    wake: Arc<EventFd>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<ObserveStats>>,
}

impl ObserveServer {
    /// Listens at `listen` and watches `port` of this host for one client at a time. What is said
    /// is not encrypted, the token neither.
    ///
    /// # Errors
    /// Beyond loopback without a token; the address is in use, not permitted or not this host's.
    pub fn start(
        listen: SocketAddr,
        port: u16,
        token: Option<String>,
    ) -> io::Result<ObserveServer> {
        ObserveServer::start_with(listen, port, token, PLACE)
    }

    pub(super) fn start_with(
        listen: SocketAddr,
        port: u16,
        token: Option<String>,
        place: Place,
    ) -> io::Result<ObserveServer> {
        let token = token.unwrap_or_default();
        port::check_token(listen, &token)
            .map_err(|e| io::Error::new(ErrorKind::InvalidInput, e))?;
        let listener = TcpListener::bind(listen)?;
        let address = listener.local_addr()?;
        let (source, because) = source_here(port);
        let (wake, stop) = (Arc::new(EventFd::new()?), Arc::<AtomicBool>::default());
        let room = Room {
            facts: ObserverFacts { port, source },
            token,
            place,
            clients: Clients::new(listener, wake.clone(), ASK_MAX)?,
            until_ns: 0,
            armed: None,
            watch: None,
            following: None,
            stats: ObserveStats::default(),
        };
        let stopped = stop.clone();
        let thread = thread::Builder::new()
            .name("observe".to_owned())
            .spawn(move || room.run(&stopped))
            .map_err(|e| threads::error(&e))?;
        Ok(ObserveServer {
            address,
            source,
            because,
            wake,
            stop,
            thread: Some(thread),
        })
    }

    /// Where it listens, with the port that was picked where 0 was asked for.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What counts the SYNs, and why it is nothing better.
    pub fn source(&self) -> (SynSource, Option<&str>) {
        (self.source, self.because.as_deref())
    }

    /// Stops it and returns what it did.
    pub fn stop(mut self) -> ObserveStats {
        match self.join() {
            Some(Ok(stats)) => stats,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => ObserveStats::default(),
        }
    }

    fn join(&mut self) -> Option<thread::Result<ObserveStats>> {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.notify();
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for ObserveServer {
    fn drop(&mut self) {
        let _ = self.join();
    }
}

/// How long it is until a window has ended.
fn window_left_ns(at_ns: u64, duration_ns: u64) -> u64 {
    let begin_ns = at_ns.saturating_sub(monotonic_ns()).min(BEGIN_WITHIN_NS);
    begin_ns.saturating_add(duration_ns)
}

/// The clients, and what is watched for the one that has the observer.
struct Room {
    facts: ObserverFacts,
    token: String,
    place: Place,
    clients: Clients,
    /// From then on another client may have the place of the one that has it.
    until_ns: u64,
    armed: Option<Armed>,
    watch: Option<Watch>,
    following: Option<Following>,
    stats: ObserveStats,
}

impl Room {
    fn run(mut self, stop: &AtomicBool) -> ObserveStats {
        while !stop.load(Ordering::Relaxed) {
            self.clients.wait(TICK);
            let now_ns = monotonic_ns();
            // The client that leaves before the one that comes, so that it does not find us busy.
            self.listen_to_all(now_ns);
            self.stats.refused += self.clients.accept(0, now_ns);
            self.listen_to_all(now_ns);
            self.clients.flush(now_ns);
            self.bury(now_ns);
        }
        self.stats
    }

    fn listen_to_all(&mut self, now_ns: u64) {
        self.clients.read();
        self.bury(now_ns);
        while let Some((id, heard)) = self.clients.hear() {
            self.obey(id, heard, now_ns);
        }
    }

    /// Does away with connections that are over; with that of the holder goes what it watched.
    fn bury(&mut self, now_ns: u64) {
        let patience_ns = match self.watch {
            Some(_) => u64::MAX,
            None => IDLE_NS,
        };
        if self.clients.bury(now_ns, patience_ns) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        (self.armed, self.watch, self.following) = (None, None, None);
    }

    fn obey(&mut self, id: u64, heard: Heard<Ask>, now_ns: u64) {
        let holds = self.clients.holds(id);
        let answer = match heard {
            Heard::Ask(Ask::Hello(hello)) if !holds => return self.greet(id, &hello, now_ns),
            Heard::Ask(ask) if holds => self.answer(&ask),
            Heard::Ask(_) => Err("a client says hello first".to_owned()),
            Heard::Nonsense => Err(format!(
                "a request was expected: this is none, or a line of more than {ASK_MAX} bytes"
            )),
        };
        let Some(connection) = self.clients.get(id) else {
            return;
        };
        match answer {
            Ok(say) => {
                connection.touch(now_ns);
                connection.say(&say);
            }
            Err(why) => {
                connection.refuse(&why);
                self.stats.refused += 1;
                if holds {
                    self.forget();
                }
            }
        }
    }

    /// Lets a client in, in the place of one that does nothing, or sends it away.
    fn greet(&mut self, id: u64, said: &Hello, now_ns: u64) {
        let may_enter = said.check(SERVICE, &self.token).is_ok();
        if may_enter && now_ns >= self.until_ns && self.clients.unseat() {
            self.forget();
            self.stats.refused += 1;
        }
        let expected = (SERVICE, self.token.as_str());
        if self.clients.greet(id, said, expected, &self.facts) {
            self.until_ns = now_ns.saturating_add(self.place.first.0);
            self.stats.clients += 1;
        } else {
            self.stats.refused += 1;
        }
    }

    /// Does what the client that has the observer asks for.
    ///
    /// # Errors
    /// Why not, in one line.
    fn answer(&mut self, ask: &Ask) -> Result<Say, String> {
        let lasts_ns = match *ask {
            Ask::Begin {
                at_ns, duration_ns, ..
            } => window_left_ns(at_ns, duration_ns),
            _ => 0,
        };
        let until_ns = monotonic_ns().saturating_add(lasts_ns);
        self.until_ns = until_ns.saturating_add(self.place.idle.0);
        match *ask {
            Ask::Hello(_) => Err("hello was said already".to_owned()),
            Ask::Arm => {
                // The one before ends unseen, if it was not finished.
                self.watch = None;
                let port = self.facts.port;
                self.armed.get_or_insert_with(|| Armed::new(port));
                let clock_ns = monotonic_ns();
                Ok(Say::Armed { clock_ns })
            }
            Ask::Begin {
                at_ns,
                interval_ns,
                duration_ns,
            } => self.begin(at_ns, Nanos(interval_ns), Nanos(duration_ns)),
            Ask::Finish => {
                let watch = self.watch.take().ok_or("nothing was begun")?;
                self.stats.windows += 1;
                Ok(Say::Observed(Box::new(watch.finish())))
            }
            Ask::Follow { one_of } => {
                // Those before, if they were not asked about, are forgotten.
                self.following = Some(Following::begin(self.facts.port, one_of));
                Ok(Say::Following)
            }
            Ask::Seen => {
                let following = self.following.take().ok_or("nothing was followed")?;
                Ok(Say::Seen(Box::new(following.finish())))
            }
        }
    }

    fn begin(&mut self, at_ns: u64, interval: Nanos, duration: Nanos) -> Result<Say, String> {
        if duration.0 > DURATION_MAX_NS {
            return Err("a window lasts for at most 30 days".to_owned());
        }
        if at_ns.abs_diff(monotonic_ns()) > BEGIN_WITHIN_NS {
            return Err("a window begins within an hour".to_owned());
        }
        let armed = self.armed.take().ok_or("nothing was armed")?;
        self.watch = Some(armed.begin(at_ns, interval, duration));
        Ok(Say::Begun)
    }
}
