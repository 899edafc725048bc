//! From a target to addresses that answer, and to the first connection.

use crate::addresses::{AddressBook, FoundAddresses, HostAndPort};
use crate::confine;
use crate::error::{RunError, reason};
use crate::kernel::host::is_own;
use crate::link::{
    CallResponse, Greeting, Http3Offer, Tunnel, ask_for_http3, call, greet, greet_in_datagrams,
    tls_target,
};
use crate::names;
use crate::sys::socket::{Address, RawAddress, Socket};
use knee_load::spec::{Endpoint, HttpVersion, Target};
use knee_load::time::Nanos;
use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// The addresses that operations on the first server of a target go to: all that accept a
/// connection, or that a datagram may be sent to. A lookup has `patience`, and so has each address.
///
/// # Errors
/// [`RunError::Unreachable`]: what was tried and what came of it.
pub(crate) fn reach_target(target: &Target, patience: Duration) -> Result<AddressBook, RunError> {
    match HostAndPort::of(target) {
        None => reach_unix(target, patience).map(AddressBook::of),
        Some(place) => {
            let found = place.find(patience, false)?;
            AddressBook::of_found(place, found)
        }
    }
}

/// The addresses of a target that need not answer: that of an overload, or one that answered
/// before. The load is to show whether it answers. Of several addresses those are used that answer,
/// or else those that do not refuse.
///
/// # Errors
/// [`RunError::Unreachable`]: the name cannot be resolved, or all its addresses refuse.
pub(crate) fn addresses_of(target: &Target, patience: Duration) -> Result<AddressBook, RunError> {
    let Some(place) = HostAndPort::of(target) else {
        return reach_target(target, patience);
    };
    let found = match place.addresses(names::PATIENCE)? {
        only if only.len() == 1 => FoundAddresses { used: only, ..FoundAddresses::default() },
        _ => place.find(patience, true)?,
    };
    AddressBook::of_found(place, found)
}

/// Resolves the servers of the target and connects to each once, before any load, with the
/// handshake of TLS, HTTP/2 or HTTP/3. DNS in datagrams has none, and is not asked.
/// Each address has `connect_timeout` to answer. Of the servers of a script one has to answer, and
/// those that are only named in its text are not connected to. Returns the first address of the first server, as
/// text, and what was agreed on with it. Its version of HTTP is one that all servers speak.
///
/// # Errors
/// [`RunError::Unreachable`] with the reason.
pub fn preflight(target: &Target, connect_timeout: Nanos) -> Result<(String, Greeting), RunError> {
    let (is_script, asked) = asked_of_script(target);
    let (mut met, mut missing) = (None::<(String, Greeting)>, None);
    for server in target.each_server().take(asked) {
        match meet(&server, connect_timeout) {
            Ok(found) => match &mut met {
                None => met = Some(found),
                Some((_, first)) if first.version != found.1.version => {
                    first.version = HttpVersion::Http11;
                }
                Some(_) => {}
            },
            // A script may try what happens where a server is not there.
            Err(e @ RunError::Unreachable(_)) if is_script => {
                missing.get_or_insert(e);
            }
            Err(e) => return Err(e),
        }
    }
    let none = || RunError::Unreachable("the target has no server".to_owned());
    met.ok_or_else(|| missing.unwrap_or_else(none))
}

/// Whether a script makes the requests, and how many of the servers are asked for a connection
/// before the load: the first ones.
fn asked_of_script(target: &Target) -> (bool, usize) {
    let script = target.script();
    let asked = script.map(|script| usize::from(script.servers_asked)).filter(|asked| *asked > 0);
    (script.is_some(), asked.unwrap_or(usize::MAX))
}

/// The addresses of each server of a target, before its load; see [`reach_target`] and
/// [`addresses_of`], which is for those that need not answer. A script may try what happens where a
/// server is not there.
pub(crate) fn reach_servers(
    target: &Target,
    patience: Duration,
    must_answer: bool,
) -> Result<Vec<AddressBook>, RunError> {
    let (is_script, asked) = asked_of_script(target);
    let reach = |(number, server): (usize, Cow<'_, Target>)| {
        if number >= asked {
            return addresses_if_any(&server);
        }
        let book = if must_answer && !is_script {
            reach_target(&server, patience)
        } else {
            addresses_of(&server, patience)
        };
        match book {
            Err(RunError::Unreachable(_)) if is_script => addresses_if_any(&server),
            other => other,
        }
    };
    target.each_server().enumerate().map(reach).collect()
}

/// The addresses of a server that nobody connects to before the load. One whose name means nothing
/// has an address to which no connection can be made.
fn addresses_if_any(target: &Target) -> Result<AddressBook, RunError> {
    const NOWHERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::BROADCAST), 9);
    let Some(place) = HostAndPort::of(target) else {
        return reach_target(target, names::PATIENCE);
    };
    let used = match place.addresses(names::PATIENCE) {
        // Which of several can be reached is not known.
        Ok(all) if all.iter().any(SocketAddr::is_ipv4) => {
            all.into_iter().filter(SocketAddr::is_ipv4).collect()
        }
        Ok(all) => all,
        Err(RunError::Unreachable(_)) => vec![NOWHERE],
        Err(e) => return Err(e),
    };
    AddressBook::of_found(place, FoundAddresses { used, ..FoundAddresses::default() })
}

/// Whether a server of the target, or its proxy, is on this host. One whose name has no address is
/// not.
pub fn is_on_this_host(target: &Target) -> bool {
    target.each_server().any(|server| match HostAndPort::of(&server) {
        None => true,
        Some(place) => place
            .addresses(names::PATIENCE)
            .is_ok_and(|addresses| addresses.iter().any(|address| is_own(address.ip()))),
    })
}

/// Does [`preflight`] with a target of one server.
fn meet(target: &Target, connect_timeout: Nanos) -> Result<(String, Greeting), RunError> {
    let patience = Duration::from_nanos(connect_timeout.0);
    if let (Some(place), true) = (HostAndPort::of(target), target.protocol.is_in_datagrams()) {
        let FoundAddresses { used, first, .. } = place.find(patience, false)?;
        let address = used[0].to_string();
        if target.version() != HttpVersion::Http3 {
            return Ok((address, Greeting { version: target.version(), agreed: None }));
        }
        let tls = tls_target(target)?;
        let no_socket = || RunError::Unreachable(format!("cannot send to {address}"));
        let socket = UdpSocket::from(OwnedFd::from(first.ok_or_else(no_socket)?));
        socket.set_nonblocking(false).map_err(|e| RunError::Unreachable(reason(&e)))?;
        let greeting = greet_in_datagrams(&socket, target, tls.as_ref(), patience)?;
        return Ok((address, greeting));
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

/// Asks the first server of a target whether it offers HTTP/3, over a connection of its own by TLS,
/// within `patience`. `None`: it does not.
///
/// # Errors
/// [`RunError::Unreachable`] with the reason.
pub fn http3_offer(target: &Target, patience: Nanos) -> Result<Option<Http3Offer>, RunError> {
    let target = target.clone().with_version(HttpVersion::Http11);
    let wrong = |why| RunError::Unreachable(format!("{}: {why}", target.endpoint));
    let tls = tls_target(&target)?.ok_or_else(|| wrong("HTTP/3 needs TLS".to_owned()))?;
    let patience = Duration::from_nanos(patience.0);
    let (mut stream, _) = first_connection(&target, patience)?;
    ask_for_http3(&mut *stream, &target, tls, patience).map_err(wrong)
}

/// A connected stream, blocking with a time limit.
trait FirstStream: io::Read + io::Write {}

impl<S: io::Read + io::Write> FirstStream for S {}

/// Connects to a target, through the tunnel of its proxy if it has one. Returns the stream, and the
/// address as text.
fn first_connection(
    target: &Target,
    patience: Duration,
) -> Result<(Box<dyn FirstStream>, String), RunError> {
    let unreachable = |error: io::Error| RunError::Unreachable(reason(&error));
    let Some(place) = HostAndPort::of(target) else {
        let address = reach_unix(target, patience)?.decode().map_err(unreachable)?;
        let stream = match &address {
            Address::Unix(path) => UnixStream::connect(path).map_err(unreachable)?,
            Address::Tcp(_) => return Err(unreachable(io::ErrorKind::InvalidInput.into())),
        };
        stream.set_read_timeout(Some(patience)).map_err(unreachable)?;
        stream.set_write_timeout(Some(patience)).map_err(unreachable)?;
        return Ok((Box::new(stream), address.to_string()));
    };
    let FoundAddresses { used, first, .. } = place.find(patience, false)?;
    let no_connection = || RunError::Unreachable(format!("cannot connect to {}", used[0]));
    let mut stream = TcpStream::from(OwnedFd::from(first.ok_or_else(no_connection)?));
    stream.set_nonblocking(false).map_err(unreachable)?;
    stream.set_read_timeout(Some(patience)).map_err(unreachable)?;
    stream.set_write_timeout(Some(patience)).map_err(unreachable)?;
    if let Some(tunnel) = Tunnel::of(target) {
        tunnel.open(&mut stream).map_err(RunError::Unreachable)?;
    }
    Ok((Box::new(stream), used[0].to_string()))
}

/// How long to wait before a Unix socket whose queue is full is tried again.
const RETRY_UNIX: Duration = Duration::from_millis(10);

fn reach_unix(target: &Target, patience: Duration) -> Result<RawAddress, RunError> {
    let Endpoint::Unix { path } = &target.endpoint else {
        return Err(RunError::Unreachable(format!("{} is no Unix socket", target.endpoint)));
    };
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

/// Time that [`preflight_overload`] waits for an answer.
const PREFLIGHT_PATIENCE: Duration = Duration::from_secs(5);

/// Resolves the target of an overload, connects to it once, and makes sure that connections can
/// come from where they are to come from, before any load is sent. The first address, and whether
/// it answered: silence is no error, as a server may be overloaded already. Over datagrams nothing
/// is asked, and nothing is silent.
///
/// # Errors
/// [`RunError::Unreachable`]: it refuses, or there is no such host; [`RunError::NotPermitted`]: a
/// source is no address of this host.
pub fn preflight_overload(target: &Target) -> Result<(SocketAddr, bool), RunError> {
    let Some(place) = HostAndPort::of(target) else {
        let line = "a Unix socket has no connection attempts that time out";
        return Err(RunError::NotPermitted(line.to_owned()));
    };
    let found = place.find(PREFLIGHT_PATIENCE, true)?;
    Ok((found.used[0], found.first.is_some()))
}
