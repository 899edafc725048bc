//! The addresses of a server: found before a trial, looked up again in its course, and taken in
//! turn by the connections of workers.
//!
//! `race` tries all addresses before a load (RFC 8305). An `AddressBook` holds those in use for all
//! workers, and a thread looks names up again. Each worker's `AddressTurn` gives a connection its
//! address and its local address, so that the choice is made per connection.

mod race;

use crate::error::{RunError, reason};
use crate::sys::socket::{Address, RawAddress, Socket, SocketKind};
use crate::{confine, names};
use knee_load::measure::AddressUse;
use knee_load::spec::{Endpoint, Route, Target};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The name or address, and the port, that connections go to: of a server or its proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HostAndPort {
    host: String,
    port: u16,
    kind: SocketKind,
    route: Route,
    /// The proxy in words; empty for a server.
    proxy: String,
    /// The server behind it.
    behind: Option<(String, u16)>,
}

/// What was found of the addresses of a name.
#[derive(Debug, Default)]
pub(crate) struct FoundAddresses {
    /// Those that answered; without an answer from any, those that were silent.
    pub(crate) used: Vec<SocketAddr>,
    /// The others, and how the attempts to connect to them ended.
    pub(crate) left_out: Vec<(SocketAddr, String)>,
    /// The connection to the first of `used`; `None` if none has answered.
    pub(crate) first: Option<Socket>,
}

/// What was found of names earlier in this process, and when.
static KNOWN: Mutex<Vec<(HostAndPort, Instant, FoundAddresses)>> = Mutex::new(Vec::new());

impl HostAndPort {
    /// Where the connections to the first server of a target go; `None` if that is a Unix socket.
    pub(crate) fn of(target: &Target) -> Option<HostAndPort> {
        let Endpoint::Tcp { host, port } = target.hop().into_owned() else {
            return None;
        };
        let is_datagram = target.protocol.is_in_datagrams();
        let proxy = target.proxy.as_ref();
        Some(HostAndPort {
            host,
            port,
            kind: if is_datagram { SocketKind::Datagram } else { SocketKind::Stream },
            route: target.route.clone(),
            proxy: proxy.map_or(String::new(), |proxy| format!("the proxy {proxy:?}")),
            behind: match &target.endpoint {
                Endpoint::Tcp { host, port } if proxy.is_some() => Some((host.clone(), *port)),
                _ => None,
            },
        })
    }

    /// The addresses that connections may go to, in the order of attempts.
    ///
    /// # Errors
    /// The name has none, or this process may not load one of them; a local address that
    /// connections are to come from is not of this machine, or none is of the family of any.
    pub(crate) fn addresses(&self, patience: Duration) -> Result<Vec<SocketAddr>, RunError> {
        if let Some((host, port)) = self.behind.as_ref().filter(|_| confine::is_confined()) {
            names::lookup(host, *port, patience)?;
        }
        let given = self.route.given_for(&self.host, self.port);
        let all = match given.map(|given| &given.addresses) {
            Some(given) => {
                let given = given.iter().map(|ip| SocketAddr::new(*ip, self.port)).collect();
                confine::permitted(&self.host, given)?
            }
            None => self.named(names::lookup(&self.host, self.port, patience))?,
        };
        self.reached_from_sources(all)
    }

    /// An error that names the proxy, if it is of a proxy.
    fn named<T>(&self, result: Result<T, RunError>) -> Result<T, RunError> {
        result.map_err(|error| match error {
            RunError::Unreachable(line) if !self.proxy.is_empty() => {
                RunError::Unreachable(format!("{}: {line}", self.proxy))
            }
            error => error,
        })
    }

    /// The addresses of the families that connections may come from.
    fn reached_from_sources(&self, mut all: Vec<SocketAddr>) -> Result<Vec<SocketAddr>, RunError> {
        let sources = sources(&self.route)?;
        for (source, text) in sources.iter().zip(&self.route.sources) {
            let bound = Socket::new(source).and_then(|socket| socket.bind_address(source));
            bound.map_err(|error| wrong_source(text, &reason(&error)))?;
        }
        let Some(first) = self.route.sources.first().filter(|_| !all.is_empty()) else {
            return Ok(race::in_turn(all));
        };
        let has_family = |address: &SocketAddr| {
            let family = RawAddress::from(*address).family();
            sources.iter().any(|source| source.family() == family)
        };
        all.retain(has_family);
        if all.is_empty() {
            let why = "the target's address is of another kind (IPv4, IPv6)";
            return Err(wrong_source(first, why));
        }
        Ok(race::in_turn(all))
    }

    /// Connects to each of these addresses.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: none of them answers, or there is none.
    fn attempt(
        &self,
        addresses: &[SocketAddr],
        patience: Duration,
        may_be_silent: bool,
    ) -> Result<FoundAddresses, RunError> {
        let sources = sources(&self.route)?;
        let ends = race::race(addresses, self.kind, &sources, patience);
        let ends = ends.map_err(|error| RunError::NotPermitted(reason(&error)))?;
        let (mut found, mut silent) = (FoundAddresses::default(), Vec::new());
        for (address, end) in ends {
            match end {
                Ok(socket) => {
                    found.used.push(address);
                    found.first.get_or_insert(socket);
                }
                Err(error) => {
                    if error.kind() == io::ErrorKind::TimedOut {
                        silent.push(address);
                    }
                    found.left_out.push((address, reason(&error)));
                }
            }
        }
        if found.used.is_empty() && may_be_silent {
            found.left_out.retain(|(address, _)| !silent.contains(address));
            found.used = silent;
        }
        if !found.used.is_empty() {
            return Ok(found);
        }
        let tried = found.left_out.iter().map(|(address, why)| format!("{address}: {why}"));
        let tried = tried.collect::<Vec<_>>().join("; ");
        self.named(Err(RunError::Unreachable(match tried.as_str() {
            "" => format!("'{}' has no address", self.host),
            tried => format!("cannot connect to {tried}"),
        })))
    }

    /// Finds the addresses that answer. What was found in this process is tried alone until it has
    /// its age. `may_be_silent`: if none answers, those that do not refuse count.
    ///
    /// # Errors
    /// [`RunError::Unreachable`]: what was tried and what came of it; see
    /// [`HostAndPort::addresses`].
    pub(crate) fn find(
        &self,
        patience: Duration,
        may_be_silent: bool,
    ) -> Result<FoundAddresses, RunError> {
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        let refresh = Duration::from_nanos(self.route.refresh.0);
        let earlier = known()
            .iter()
            .find(|(of, at, _)| of == self && at.elapsed() < refresh)
            .map(|(_, at, found)| (*at, found.used.clone(), found.left_out.clone()));
        if let Some((at, used, left_out)) = earlier
            && let Ok(mut found) = self.attempt(&used, patience, may_be_silent)
        {
            found.left_out.extend(left_out);
            self.remember(at, &found);
            return Ok(found);
        }
        let addresses = self.addresses(patience)?;
        let found = self.attempt(&addresses, patience, may_be_silent)?;
        if self.is_looked_up() {
            self.remember(Instant::now(), &found);
        }
        Ok(found)
    }

    fn remember(&self, at: Instant, found: &FoundAddresses) {
        let (used, left_out) = (found.used.clone(), found.left_out.clone());
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(of, ..)| of != self);
        known.push((self.clone(), at, FoundAddresses { used, left_out, first: None }));
    }

    /// Whether another lookup may give other addresses.
    fn is_looked_up(&self) -> bool {
        let is_literal = self.host.parse::<IpAddr>().is_ok() || self.host.contains('%');
        let given = self.route.given_for(&self.host, self.port);
        !is_literal && given.is_none_or(|given| given.expires)
    }

    /// Looks the name up again. Returns its addresses that answer, unless the name still has these.
    fn look_again(
        &self,
        had: &mut Vec<SocketAddr>,
        patience: Duration,
    ) -> Result<Option<Vec<SocketAddr>>, RunError> {
        let mut all = self.reached_from_sources(names::lookup(&self.host, self.port, patience)?)?;
        let in_turn = all.clone();
        all.sort_unstable();
        if all == *had {
            return Ok(None);
        }
        let found = self.attempt(&in_turn, patience, false)?;
        *had = all;
        Ok(Some(found.used))
    }
}

/// The local addresses that connections are to come from.
///
/// # Errors
/// [`RunError::NotPermitted`]: not an address.
fn sources(route: &Route) -> Result<Vec<RawAddress>, RunError> {
    let source = |text: &String| match text.parse::<IpAddr>() {
        Ok(ip) => Ok(RawAddress::from(SocketAddr::new(ip, 0))),
        Err(_) => Err(wrong_source(text, "it is no IP address")),
    };
    route.sources.iter().map(source).collect()
}

fn wrong_source(text: &str, why: &str) -> RunError {
    RunError::NotPermitted(format!(
        "cannot send from {text}: {why}; addresses of this machine are listed by `ip addr`"
    ))
}

/// The addresses of one server, which all workers of a run share.
pub(crate) struct AddressBook {
    used: Mutex<Vec<RawAddress>>,
    /// Changes of `used`.
    changes: AtomicU64,
    lookups: AtomicU64,
    /// Local addresses that connections come from.
    sources: Vec<RawAddress>,
    /// Addresses without connections, with the reason.
    left_out: Vec<(SocketAddr, String)>,
    /// `None` for a Unix socket.
    place: Option<HostAndPort>,
}

impl AddressBook {
    /// A book of one address that needs no lookup.
    pub(crate) fn of(address: RawAddress) -> AddressBook {
        AddressBook {
            used: Mutex::new(vec![address]),
            changes: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
            sources: Vec::new(),
            left_out: Vec::new(),
            place: None,
        }
    }

    /// The addresses that were found of a name.
    ///
    /// # Errors
    /// [`RunError::NotPermitted`]: what connections are to come from is no address.
    pub(crate) fn of_found(
        place: HostAndPort,
        found: FoundAddresses,
    ) -> Result<AddressBook, RunError> {
        Ok(AddressBook {
            used: Mutex::new(found.used.into_iter().map(RawAddress::from).collect()),
            changes: AtomicU64::new(0),
            lookups: AtomicU64::new(0),
            sources: sources(&place.route)?,
            left_out: found.left_out,
            place: Some(place),
        })
    }

    /// Whether one of the addresses in use is such.
    pub(crate) fn any(&self, is: impl Fn(&Address) -> bool) -> bool {
        let used = self.used.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().filter_map(|raw| raw.decode().ok()).any(|address| is(&address))
    }

    /// Lookups since it was made.
    pub(crate) fn lookups(&self) -> u64 {
        self.lookups.load(Ordering::Relaxed)
    }

    /// The addresses without connections.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = AddressUse> {
        self.left_out.iter().map(|(address, why)| AddressUse {
            address: address.to_string(),
            left_out_because: Some(why.clone()),
            ..AddressUse::default()
        })
    }

    fn change(&self, used: Vec<SocketAddr>) {
        let used = used.into_iter().map(RawAddress::from).collect();
        *self.used.lock().unwrap_or_else(PoisonError::into_inner) = used;
        self.changes.fetch_add(1, Ordering::Release);
    }
}

/// Looks the names of address books up again, each time their addresses have their age, on a thread
/// that ends once this is dropped. A lookup that fails changes nothing.
pub(crate) struct NameRefresher {
    _end: Sender<()>,
}

impl NameRefresher {
    /// Begins; `None` if no lookup can change anything. Each lookup and attempt has `patience`.
    ///
    /// # Errors
    /// No further thread.
    pub(crate) fn start(
        books: impl Iterator<Item = Arc<AddressBook>>,
        patience: Duration,
    ) -> io::Result<Option<NameRefresher>> {
        let of = |book: Arc<AddressBook>| {
            let place = book.place.clone().filter(HostAndPort::is_looked_up)?;
            let used = book.used.lock().unwrap_or_else(PoisonError::into_inner);
            let used = used.iter().filter_map(|raw| match raw.decode() {
                Ok(Address::Tcp(address)) => Some(address),
                _ => None,
            });
            let mut had: Vec<_> = used.chain(book.left_out.iter().map(|(a, _)| *a)).collect();
            had.sort_unstable();
            Some((Arc::clone(&book), place, had))
        };
        let mut books: Vec<_> = books.filter_map(of).collect();
        let Some((_, place, _)) = books.first() else {
            return Ok(None);
        };
        let refresh = Duration::from_nanos(place.route.refresh.0);
        let (end, ended) = mpsc::channel();
        thread::Builder::new().name("names".to_owned()).spawn(move || {
            while ended.recv_timeout(refresh) == Err(RecvTimeoutError::Timeout) {
                for (book, place, had) in &mut books {
                    let found = place.look_again(had, patience);
                    book.lookups.fetch_add(1, Ordering::Relaxed);
                    if let Ok(Some(used)) = found {
                        book.change(used);
                    }
                }
            }
        })?;
        Ok(Some(NameRefresher { _end: end }))
    }
}

/// The addresses of a server as one worker takes them, in turn.
#[derive(Clone)]
pub(crate) struct AddressTurn {
    book: Arc<AddressBook>,
    /// The changes of the book that are known here.
    changes: u64,
    /// All addresses so far, by their numbers.
    known: Vec<KnownAddress>,
    /// Numbers of those in use.
    used: Vec<u16>,
    next: usize,
    next_source: usize,
}

#[derive(Clone)]
struct KnownAddress {
    raw: RawAddress,
    opened: u64,
    answered: u64,
}

/// Where a connection goes and where it comes from.
pub(crate) struct NextAddress<'a> {
    /// The number of the address.
    pub(crate) number: u16,
    /// The address.
    pub(crate) to: &'a RawAddress,
    /// The local address; `None` for the kernel's choice.
    pub(crate) from: Option<&'a RawAddress>,
}

impl AddressTurn {
    /// Takes the addresses of a book from this place on, so that workers begin at different ones.
    pub(crate) fn new(book: &Arc<AddressBook>, place: u32) -> AddressTurn {
        let book = Arc::clone(book);
        let mut turn = AddressTurn {
            changes: book.changes.load(Ordering::Acquire),
            known: Vec::new(),
            used: Vec::new(),
            next: 0,
            next_source: place as usize,
            book,
        };
        let book = Arc::clone(&turn.book);
        let used = book.used.lock().unwrap_or_else(PoisonError::into_inner);
        turn.learn(&used);
        turn.next = place as usize % turn.used.len().max(1);
        turn
    }

    /// Reads the addresses in use, unless they are being changed.
    fn read(&mut self) {
        let book = Arc::clone(&self.book);
        let changes = book.changes.load(Ordering::Acquire);
        if let Ok(used) = book.used.try_lock() {
            self.learn(&used);
            self.changes = changes;
        }
    }

    fn learn(&mut self, used: &[RawAddress]) {
        let known = &mut self.known;
        let number = |raw: &RawAddress| {
            let is_it = |known: &KnownAddress| known.raw.decode().ok() == raw.decode().ok();
            let place = known.iter().position(is_it).unwrap_or_else(|| {
                known.push(KnownAddress { raw: raw.clone(), opened: 0, answered: 0 });
                known.len() - 1
            });
            u16::try_from(place).ok()
        };
        let numbers: Vec<u16> = used.iter().filter_map(number).collect();
        if !numbers.is_empty() {
            (self.used, self.next) = (numbers, 0);
        }
    }

    /// The next one.
    pub(crate) fn take(&mut self) -> NextAddress<'_> {
        if self.book.changes.load(Ordering::Relaxed) != self.changes {
            self.read();
        }
        let number = self.used[self.next];
        self.next = if self.next + 1 == self.used.len() { 0 } else { self.next + 1 };
        let known = &mut self.known[usize::from(number)];
        known.opened += 1;
        let sources = &self.book.sources;
        let fits = |from: &&RawAddress| from.family() == known.raw.family();
        let mut from = None;
        for _ in 0..sources.len() {
            let source = sources.get(self.next_source % sources.len());
            self.next_source += 1;
            from = source.filter(fits);
            if from.is_some() {
                break;
            }
        }
        NextAddress { number, to: &known.raw, from }
    }

    /// Counts a connection to this address as established.
    pub(crate) fn answered(&mut self, number: u16) {
        self.known[usize::from(number)].answered += 1;
    }

    /// The connections so far.
    pub(crate) fn uses(&self) -> Vec<AddressUse> {
        let of = |known: &KnownAddress| AddressUse {
            address: known.raw.decode().map_or(String::new(), |address| address.to_string()),
            opened: known.opened,
            answered: known.answered,
            left_out_because: None,
        };
        self.known.iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests;
