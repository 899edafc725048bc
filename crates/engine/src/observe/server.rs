//! `knee observe`: watches a port of this host for whoever is allowed to ask.

use super::control::{
    BEGIN_WITHIN_NS, Came, LineReader, REQUEST_MAX, Reply, Request, SERVICE, line, parse_request,
};
use super::follow::Following;
use super::watch::{Armed, Watch, source_here};
use crate::control::Unfit;
use crate::control::clients::to_dismiss;
use crate::sys::clock::monotonic_ns;
use crate::sys::epoll::{Epoll, Event, flags};
use crate::sys::eventfd::EventFd;
use crate::sys::keepalive::keep_alive;
use knee_core::measure::SynSource;
use knee_core::time::Nanos;
use std::io::{self, ErrorKind, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// A client has so long to say who it is.
const HELLO_PATIENCE: Duration = Duration::from_secs(5);

/// A client that asks for nothing for so long, and has nothing watched, is sent away.
const IDLE_PATIENCE: Duration = Duration::from_secs(600);

/// When a client that does nothing gives its place to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Without a first request, so long after its hello.
    pub(super) first: Duration,
    /// So long after its last request, or after the window that it watches has ended.
    pub(super) idle: Duration,
}

const PLACE: Place = Place {
    first: Duration::from_secs(5),
    idle: Duration::from_secs(60),
};

/// How often a connection's thread looks whether it is to stop.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Connections at once that are not served. For one more the oldest of the address that has the
/// most is closed, so that idle ones keep nobody out.
const WAITING_MAX: usize = 16;

/// Threads at once: those of closed connections end within a moment.
const THREADS_MAX: usize = 64;

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
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// What all threads of an observer share.
#[derive(Debug)]
struct Shared {
    port: u16,
    token: Option<String>,
    source: SynSource,
    wake: EventFd,
    stop: AtomicBool,
    place: Place,
    holder: Mutex<Option<Holder>>,
    /// Connections that are not served, or not yet; the oldest first.
    waiting: Mutex<Vec<Waiting>>,
    threads: AtomicUsize,
    clients: AtomicU64,
    windows: AtomicU64,
    refused: AtomicU64,
}

/// A connection that has not said hello, or is being told why it is refused.
#[derive(Debug)]
struct Waiting {
    id: u64,
    peer: IpAddr,
    stream: TcpStream,
}

/// The client that is served.
#[derive(Debug)]
struct Holder {
    id: u64,
    stream: TcpStream,
    /// From then on another may have its place.
    until: Instant,
}

impl Shared {
    fn holder(&self) -> MutexGuard<'_, Option<Holder>> {
        self.holder.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves this client from now on, unless another one uses the observer: one that does nothing
    /// is sent away. Whether it is served.
    fn give_to(&self, id: u64, stream: TcpStream) -> bool {
        let now = Instant::now();
        let mut holder = self.holder();
        match &*holder {
            Some(other) if now < other.until => return false,
            Some(other) => {
                let _ = other.stream.shutdown(Shutdown::Both);
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
            None => {}
        }
        let until = now + self.place.first;
        *holder = Some(Holder { id, stream, until });
        true
    }

    /// The client asked for something that lasts for so long.
    fn keep(&self, id: u64, lasts: Duration) {
        if let Some(holder) = self.holder().as_mut().filter(|holder| holder.id == id) {
            holder.until = Instant::now() + lasts + self.place.idle;
        }
    }

    fn leave(&self, id: u64) {
        self.holder().take_if(|holder| holder.id == id);
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets one more wait, where need be in the place of another, whose thread then ends.
    fn admit(&self, new: Waiting) {
        let mut waiting = self.waiting();
        if waiting.len() >= WAITING_MAX {
            let peers = waiting.iter().enumerate().map(|(n, w)| (n, w.peer));
            if let Some(goes) = to_dismiss(peers) {
                let _ = waiting.remove(goes).stream.shutdown(Shutdown::Both);
                self.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
        waiting.push(new);
    }

    fn forget(&self, id: u64) {
        self.waiting().retain(|w| w.id != id);
    }
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
        if token.as_ref().is_none_or(String::is_empty) && !listen.ip().to_canonical().is_loopback()
        {
            let message = "beyond loopback a token is needed, so that not everybody may ask";
            return Err(io::Error::new(ErrorKind::InvalidInput, message));
        }
        let listener = TcpListener::bind(listen)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (source, because) = source_here(port);
        let shared = Arc::new(Shared {
            port,
            token,
            source,
            wake: EventFd::new()?,
            stop: AtomicBool::new(false),
            place,
            holder: Mutex::default(),
            waiting: Mutex::default(),
            threads: AtomicUsize::new(0),
            clients: AtomicU64::new(0),
            windows: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        });
        let epoll = Epoll::new()?;
        epoll.add(&listener, LISTENER, flags::READ)?;
        epoll.add(&shared.wake, WAKE, flags::READ)?;
        let for_thread = Arc::clone(&shared);
        let thread = thread::Builder::new()
            .name("observe-accept".to_owned())
            .spawn(move || accept_until_woken(&listener, &epoll, &for_thread))?;
        Ok(ObserveServer {
            address,
            source,
            because,
            shared,
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
        self.join();
        let read = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ObserveStats {
            clients: read(&self.shared.clients),
            windows: read(&self.shared.windows),
            refused: read(&self.shared.refused),
        }
    }

    fn join(&mut self) {
        let Some(thread) = self.thread.take() else {
            return;
        };
        self.shared.stop.store(true, Ordering::Relaxed);
        self.shared.wake.notify();
        if let Err(panic) = thread.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

impl Drop for ObserveServer {
    fn drop(&mut self) {
        self.join();
    }
}

/// Tokens of epoll.
const LISTENER: u64 = 0;
const WAKE: u64 = 1;

fn accept_until_woken(listener: &TcpListener, epoll: &Epoll, shared: &Shared) {
    thread::scope(|scope| {
        let mut events = [Event::EMPTY; 2];
        let mut id = 0;
        while !shared.stop.load(Ordering::Relaxed) {
            let ready = epoll.wait(&mut events, None);
            ready.expect("epoll_wait fails for wrong arguments alone");
            if shared.threads.load(Ordering::Relaxed) >= THREADS_MAX {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
            let Ok((stream, peer)) = listener.accept() else {
                // Out of descriptors: not at once again.
                thread::sleep(Duration::from_millis(10));
                continue;
            };
            id += 1;
            let Ok(own) = stream.try_clone() else {
                continue;
            };
            let peer = peer.ip().to_canonical();
            shared.admit(Waiting {
                id,
                peer,
                stream: own,
            });
            shared.threads.fetch_add(1, Ordering::Relaxed);
            let thread = thread::Builder::new().name("observe-client".to_owned());
            let spawned = thread.spawn_scoped(scope, move || {
                Client::new(id, stream, shared).serve();
                shared.threads.fetch_sub(1, Ordering::Relaxed);
            });
            if spawned.is_err() {
                shared.forget(id);
                shared.threads.fetch_sub(1, Ordering::Relaxed);
                shared.refused.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
}

/// How long it is until a window has ended.
fn window_left(at_ns: u64, duration_ns: u64) -> Duration {
    let begin_ns = at_ns.saturating_sub(monotonic_ns()).min(BEGIN_WITHIN_NS);
    Duration::from_nanos(begin_ns.saturating_add(duration_ns))
}

/// One connection.
struct Client<'a> {
    id: u64,
    shared: &'a Shared,
    stream: TcpStream,
    lines: LineReader,
    armed: Option<Armed>,
    watch: Option<Watch>,
    following: Option<Following>,
}

/// What ends a connection.
enum End {
    /// It went away, or the observer stops.
    Gone,
    /// It is told why it is refused.
    Refused(String),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> End {
        match error.kind() {
            ErrorKind::InvalidData => End::Refused(error.to_string()),
            _ => End::Gone,
        }
    }
}

impl<'a> Client<'a> {
    fn new(id: u64, stream: TcpStream, shared: &'a Shared) -> Client<'a> {
        Client {
            id,
            shared,
            stream,
            lines: LineReader::default(),
            armed: None,
            watch: None,
            following: None,
        }
    }

    fn serve(mut self) {
        if let Err(End::Refused(why)) = self.greet().and_then(|()| self.answer_requests()) {
            self.shared.refused.fetch_add(1, Ordering::Relaxed);
            // It may have gone meanwhile.
            let _ = self.reply(&Reply::Refused(why));
        }
        self.shared.forget(self.id);
        self.shared.leave(self.id);
    }

    fn greet(&mut self) -> Result<(), End> {
        self.stream.set_nonblocking(false)?;
        self.stream.set_nodelay(true)?;
        self.stream.set_read_timeout(Some(LOOK_EVERY))?;
        self.stream.set_write_timeout(Some(HELLO_PATIENCE))?;
        keep_alive(&self.stream)?;
        let Request::Hello(hello) = self.request(HELLO_PATIENCE)? else {
            return Err(End::Refused("a client says hello first".to_owned()));
        };
        let secret = self.shared.token.as_deref().unwrap_or_default();
        match hello.check(SERVICE, secret) {
            Ok(()) => {}
            Err(Unfit::Token) => {
                // Whoever guesses gets few guesses.
                thread::sleep(Duration::from_millis(200));
                return Err(End::Refused("wrong token".to_owned()));
            }
            Err(unfit) => return Err(End::Refused(unfit.to_string())),
        }
        if !self.shared.give_to(self.id, self.stream.try_clone()?) {
            return Err(End::Refused(
                "busy: it watches for another client".to_owned(),
            ));
        }
        self.shared.forget(self.id);
        self.shared.clients.fetch_add(1, Ordering::Relaxed);
        let (port, source) = (self.shared.port, self.shared.source);
        self.reply(&Reply::Ready { port, source })
    }

    fn answer_requests(&mut self) -> Result<(), End> {
        loop {
            let request = self.request(IDLE_PATIENCE)?;
            let window = match request {
                Request::Begin {
                    at_ns, duration_ns, ..
                } => window_left(at_ns, duration_ns),
                _ => Duration::ZERO,
            };
            self.shared.keep(self.id, window);
            match request {
                Request::Hello(_) => {
                    return Err(End::Refused("hello was said already".to_owned()));
                }
                Request::Arm => {
                    // The one before ends unseen, if it was not finished.
                    self.watch = None;
                    let port = self.shared.port;
                    self.armed.get_or_insert_with(|| Armed::new(port));
                    let clock_ns = monotonic_ns();
                    self.reply(&Reply::Armed { clock_ns })?;
                }
                Request::Begin {
                    at_ns,
                    interval_ns,
                    duration_ns,
                } => {
                    if at_ns.abs_diff(monotonic_ns()) > BEGIN_WITHIN_NS {
                        return Err(End::Refused("a window begins within an hour".to_owned()));
                    }
                    let Some(armed) = self.armed.take() else {
                        return Err(End::Refused("nothing was armed".to_owned()));
                    };
                    let (interval, duration) = (Nanos(interval_ns), Nanos(duration_ns));
                    self.watch = Some(armed.begin(at_ns, interval, duration));
                    self.reply(&Reply::Begun)?;
                }
                Request::Finish => {
                    let Some(watch) = self.watch.take() else {
                        return Err(End::Refused("nothing was begun".to_owned()));
                    };
                    self.reply(&Reply::Observed(Box::new(watch.finish())))?;
                    self.shared.windows.fetch_add(1, Ordering::Relaxed);
                }
                Request::Follow { one_of } => {
                    // Those before, if they were not asked about, are forgotten.
                    self.following = Some(Following::begin(self.shared.port, one_of));
                    self.reply(&Reply::Following)?;
                }
                Request::Seen => {
                    let Some(following) = self.following.take() else {
                        return Err(End::Refused("nothing was followed".to_owned()));
                    };
                    self.reply(&Reply::Seen(Box::new(following.finish())))?;
                }
            }
        }
    }

    /// Waits for a request; the patience is for a client that has nothing watched.
    fn request(&mut self, patience: Duration) -> Result<Request, End> {
        let begun = Instant::now();
        loop {
            match self.lines.next(&mut self.stream, REQUEST_MAX) {
                Ok(Came::Line(line)) => return parse_request(&line).map_err(End::Refused),
                Ok(Came::End) => return Err(End::Gone),
                Ok(Came::Part) => {}
                Err(e) => match e.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {}
                    _ => return Err(e.into()),
                },
            }
            if self.shared.stop.load(Ordering::Relaxed) {
                return Err(End::Gone);
            }
            if self.watch.is_none() && begun.elapsed() > patience {
                return Err(End::Refused("nothing was asked for too long".to_owned()));
            }
        }
    }

    fn reply(&mut self, reply: &Reply) -> Result<(), End> {
        Ok(self.stream.write_all(&line(reply))?)
    }
}
