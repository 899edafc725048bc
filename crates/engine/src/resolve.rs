//! From an endpoint to an address that answers.

use crate::confine;
use crate::error::{RunError, reason};
use crate::kernel::host::is_own;
use crate::link::{CallResponse, Greeting, call, greet, tls_target};
use crate::names;
use crate::sys::socket::{Address, RawAddress, Socket};
use crate::sys::udp;
use knee_load::spec::{Endpoint, HttpVersion, Target};
use knee_load::time::Nanos;
use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Where the operations on a target go: the first address that accepts a connection, or that a
/// datagram may be sent to.
///
/// # Errors
/// [`RunError::Unreachable`]: what was tried and what came of it.
pub(crate) fn reach_target(target: &Target, patience: Duration) -> Result<RawAddress, RunError> {
    match &target.endpoint {
        Endpoint::Tcp { host, port } if target.protocol.is_in_datagrams() => {
            Ok(lookup_one(host, *port, patience)?.into())
        }
        endpoint => reach(endpoint, patience),
    }
}

/// The first address of a host that a datagram may be sent to. Whether it answers only a query
/// tells.
fn lookup_one(host: &str, port: u16, patience: Duration) -> Result<SocketAddr, RunError> {
    first_of(host, port, patience, udp::connected).map(|(_, address)| address)
}

/// The first address of the endpoint that accepts a connection, tried in the order in which the
/// resolver gives them (RFC 6724). The lookup of its name has `patience`, and so has each address.
///
/// # Errors
/// [`RunError::Unreachable`]: what was tried and what came of it.
fn reach(endpoint: &Endpoint, patience: Duration) -> Result<RawAddress, RunError> {
    match endpoint {
        Endpoint::Unix { path } => reach_unix(path, patience),
        Endpoint::Tcp { host, port } => Ok(connect(host, *port, patience)?.1.into()),
    }
}

/// Resolves the servers of the target and connects to each once, before any load, with the
/// handshake of TLS or HTTP/2. One that is spoken with in datagrams has none, and is not asked.
/// Each address has `connect_timeout` to answer. Returns the address of the first server, as text,
/// and what was agreed on with it. Its version of HTTP is one that all servers speak.
///
/// # Errors
/// [`RunError::Unreachable`] with the reason.
pub fn preflight(target: &Target, connect_timeout: Nanos) -> Result<(String, Greeting), RunError> {
    let mut servers = target.each_server();
    let first = servers.next().unwrap_or(Cow::Borrowed(target));
    let (address, mut greeting) = meet(&first, connect_timeout)?;
    for server in servers {
        let version = meet(&server, connect_timeout)?.1.version;
        if version != greeting.version {
            greeting.version = HttpVersion::Http11;
        }
    }
    Ok((address, greeting))
}

/// Whether a server of the target is on this host. One whose name has no address is not.
pub fn is_on_this_host(target: &Target) -> bool {
    target.each_server().any(|server| match &server.endpoint {
        Endpoint::Unix { .. } => true,
        Endpoint::Tcp { host, port } => names::lookup(host, *port, names::PATIENCE)
            .is_ok_and(|addresses| addresses.iter().any(|address| is_own(address.ip()))),
    })
}

/// Does [`preflight`] with a target of one server.
fn meet(target: &Target, connect_timeout: Nanos) -> Result<(String, Greeting), RunError> {
    let patience = Duration::from_nanos(connect_timeout.0);
    if let (Endpoint::Tcp { host, port }, true) =
        (&target.endpoint, target.protocol.is_in_datagrams())
    {
        let address = lookup_one(host, *port, patience)?;
        let greeting = Greeting { version: target.version(), agreed: None };
        return Ok((address.to_string(), greeting));
    }
    // A faulty file is an error whether or not the target answers.
    let tls = tls_target(target)?;
    let (mut stream, address) = first_connection(target, patience)?;
    Ok((address, greet(&mut *stream, target, tls, patience)?))
}

/// Makes the first request of a target of gRPC over a connection of its own, within `patience`.
///
/// # Errors
/// [`RunError::Unreachable`] with the reason.
pub fn call_once(target: &Target, patience: Duration) -> Result<CallResponse, RunError> {
    let tls = tls_target(target)?;
    let (mut stream, _) = first_connection(target, patience)?;
    let wrong = |why| RunError::Unreachable(format!("{}: {why}", target.endpoint));
    call(&mut *stream, target, tls, patience).map_err(wrong)
}

/// A connected stream, blocking with a time limit.
trait FirstStream: io::Read + io::Write {}

impl<S: io::Read + io::Write> FirstStream for S {}

/// Connects to a target. Returns the stream, and the address as text.
fn first_connection(
    target: &Target,
    patience: Duration,
) -> Result<(Box<dyn FirstStream>, String), RunError> {
    let unreachable = |error: io::Error| RunError::Unreachable(reason(&error));
    match &target.endpoint {
        Endpoint::Unix { path } => {
            reach_unix(path, patience)?;
            let stream = UnixStream::connect(path).map_err(unreachable)?;
            stream.set_read_timeout(Some(patience)).map_err(unreachable)?;
            stream.set_write_timeout(Some(patience)).map_err(unreachable)?;
            Ok((Box::new(stream), Address::Unix(path.into()).to_string()))
        }
        Endpoint::Tcp { host, port } => {
            let (stream, address) = connect(host, *port, patience)?;
            stream.set_read_timeout(Some(patience)).map_err(unreachable)?;
            stream.set_write_timeout(Some(patience)).map_err(unreachable)?;
            Ok((Box::new(stream), address.to_string()))
        }
    }
}

/// How long to wait before a Unix socket whose queue is full is tried again.
const RETRY_UNIX: Duration = Duration::from_millis(10);

fn reach_unix(path: &str, patience: Duration) -> Result<RawAddress, RunError> {
    confine::permit_unix_socket(path)?;
    let refused = |error: io::Error| {
        RunError::Unreachable(format!(
            "cannot connect to the Unix socket {path}: {}",
            reason(&error)
        ))
    };
    let raw = RawAddress::new(&Address::Unix(path.into())).map_err(refused)?;
    let mut waited = Duration::ZERO;
    loop {
        match Socket::new(&raw).and_then(|socket| socket.connect(&raw)) {
            Ok(_) => return Ok(raw),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && waited < patience => {
                std::thread::sleep(RETRY_UNIX);
                waited += RETRY_UNIX;
            }
            Err(error) => return Err(refused(error)),
        }
    }
}

fn connect(host: &str, port: u16, patience: Duration) -> Result<(TcpStream, SocketAddr), RunError> {
    first_of(host, port, patience, |address| TcpStream::connect_timeout(&address, patience))
}

/// The first address of a host that `attempt` succeeds with, and what it made. The lookup has
/// `patience`.
fn first_of<T>(
    host: &str,
    port: u16,
    patience: Duration,
    mut attempt: impl FnMut(SocketAddr) -> io::Result<T>,
) -> Result<(T, SocketAddr), RunError> {
    let mut tried = Vec::new();
    for address in names::lookup(host, port, patience)? {
        match attempt(address) {
            Ok(made) => return Ok((made, address)),
            Err(error) => tried.push(format!("{address}: {}", reason(&error))),
        }
    }
    Err(unreachable(host, &tried))
}

/// That none of a host's addresses answered, as tried, or that it has none.
fn unreachable(host: &str, tried: &[String]) -> RunError {
    RunError::Unreachable(match tried {
        [] => format!("'{host}' has no address"),
        tried => format!("cannot connect to {}", tried.join("; ")),
    })
}

/// Time that [`preflight_overload`] waits for an answer.
const PREFLIGHT_PATIENCE: Duration = Duration::from_secs(5);

/// Resolves the target of an overload, connects to it once, and makes sure that connections can
/// come from `sources`, before any load is sent. The address, and whether it answered: silence is
/// no error, as a server may be overloaded already. Over datagrams nothing is asked, and nothing is
/// silent.
///
/// # Errors
/// [`RunError::Unreachable`]: it refuses, or there is no such host; [`RunError::NotPermitted`]: a
/// source is no address of this host.
pub fn preflight_overload(
    target: &Target,
    sources: &[String],
) -> Result<(SocketAddr, bool), RunError> {
    let Endpoint::Tcp { host, port } = &target.endpoint else {
        let line = "a Unix socket has no connection attempts that time out";
        return Err(RunError::NotPermitted(line.to_owned()));
    };
    let (address, answers) = if target.protocol.is_in_datagrams() {
        (lookup_one(host, *port, PREFLIGHT_PATIENCE)?, true)
    } else {
        probe(host, *port, PREFLIGHT_PATIENCE)?
    };
    self::sources(sources, &address.into())?;
    Ok((address, answers))
}

/// Connects to the addresses of a host in turn. The first that answers; else the first that is
/// silent, with `false`.
///
/// # Errors
/// [`RunError::Unreachable`]: the name has no address, or every address refuses.
fn probe(host: &str, port: u16, patience: Duration) -> Result<(SocketAddr, bool), RunError> {
    let mut silent = None;
    let answered = first_of(host, port, patience, |address| {
        TcpStream::connect_timeout(&address, patience).inspect_err(|error| {
            if error.kind() == io::ErrorKind::TimedOut {
                silent.get_or_insert(address);
            }
        })
    });
    match (answered, silent) {
        (Ok((_, address)), _) => Ok((address, true)),
        (Err(_), Some(address)) => Ok((address, false)),
        (Err(error), None) => Err(error),
    }
}

/// The address that an overload is aimed at. A target that does not answer is no reason not to
/// begin, as the load is to show that. Of several addresses it is the first that answers, or else
/// the first of all.
///
/// # Errors
/// [`RunError::Unreachable`]: the name means nothing.
pub(crate) fn overload_address(
    target: &Target,
    patience: Duration,
) -> Result<RawAddress, RunError> {
    let endpoint = &target.endpoint;
    let (Endpoint::Tcp { host, port }, false) = (endpoint, target.protocol.is_in_datagrams())
    else {
        return reach_target(target, patience);
    };
    let addresses = names::lookup(host, *port, names::PATIENCE)?;
    if addresses.len() > 1
        && let Ok(address) = reach(endpoint, patience)
    {
        return Ok(address);
    }
    match addresses.first() {
        Some(&first) => Ok(first.into()),
        None => Err(unreachable(host, &[])),
    }
}

/// The local addresses that connections to `target` are to come from.
///
/// # Errors
/// [`RunError::NotPermitted`]: not an address, of another family, or none of this machine's.
pub(crate) fn sources(texts: &[String], target: &RawAddress) -> Result<Vec<RawAddress>, RunError> {
    let source = |text: &String| {
        let wrong = |why: &str| {
            RunError::NotPermitted(format!(
                "cannot send from {text}: {why}; addresses of this machine are listed by `ip addr`"
            ))
        };
        let ip: IpAddr = text.parse().map_err(|_| wrong("it is no IP address"))?;
        let raw = RawAddress::from(SocketAddr::new(ip, 0));
        if raw.family() != target.family() {
            return Err(wrong("the target's address is of another kind (IPv4, IPv6)"));
        }
        let bound = Socket::new(&raw).and_then(|socket| socket.bind_address(&raw));
        bound.map_err(|e| wrong(&reason(&e)))?;
        Ok(raw)
    };
    texts.iter().map(source).collect()
}
