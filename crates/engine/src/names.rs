//! Lookup of host names, within a time limit.

use crate::confine;
use crate::error::{RunError, reason};
use crate::threads;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Time limit of a lookup unless an option sets another.
pub(crate) const PATIENCE: Duration = Duration::from_secs(5);

/// Why a name has no address.
#[derive(Debug)]
pub(crate) enum LookupError {
    /// An error of the resolver.
    Error(io::Error),
    /// No answer within this limit.
    Silent(Duration),
}

impl LookupError {
    /// In words that follow "cannot resolve 'NAME'".
    pub(crate) fn reason(&self) -> String {
        match self {
            LookupError::Error(error) => reason(error),
            LookupError::Silent(limit) => format!("no answer within {limit:?}"),
        }
    }
}

/// All addresses of a host, in the resolver's order.
///
/// # Errors
/// [`RunError::Unreachable`] with the host, and the limit if that was the reason.
/// [`RunError::NotPermitted`] if this process may not load one of them.
pub(crate) fn lookup(host: &str, port: u16, limit: Duration) -> Result<Vec<SocketAddr>, RunError> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return confine::permitted(host, vec![SocketAddr::new(ip, port)]);
    }
    let name = (host.to_owned(), port);
    let addresses = within(limit, move || resolve(name)).map_err(|unknown| {
        RunError::Unreachable(format!("cannot resolve '{host}': {}", unknown.reason()))
    })?;
    confine::permitted(host, addresses)
}

/// All addresses of a `HOST:PORT`.
///
/// # Errors
/// See [`LookupError`].
pub(crate) fn lookup_text(to: &str) -> Result<Vec<SocketAddr>, LookupError> {
    let addresses = match to.parse() {
        Ok(address) => vec![address],
        Err(_) => {
            let name = to.to_owned();
            within(PATIENCE, move || resolve(name))?
        }
    };
    let refused = |error: RunError| LookupError::Error(io::Error::other(error.to_string()));
    confine::permitted(to, addresses).map_err(refused)
}

fn resolve(name: impl ToSocketAddrs) -> io::Result<Vec<SocketAddr>> {
    name.to_socket_addrs().map(Iterator::collect)
}

/// Result of `find`, unless it takes longer than `limit`. getaddrinfo(3) has no limit and cannot be
/// cancelled, so it runs on a thread that is left behind if it does not end.
fn within<T: Send + 'static>(
    limit: Duration,
    find: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, LookupError> {
    let (tell, told) = mpsc::sync_channel(1);
    let thread = thread::Builder::new().name("resolve".to_owned());
    let spawned = thread.spawn(move || {
        // Nobody may listen any more.
        let _ = tell.send(find());
    });
    spawned.map_err(|e| LookupError::Error(threads::error(&e)))?;
    match told.recv_timeout(limit) {
        Ok(found) => found.map_err(LookupError::Error),
        Err(_) => Err(LookupError::Silent(limit)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lookup_ends_at_its_limit() {
        let (end, ended) = mpsc::channel::<()>();
        let limit = Duration::from_millis(20);
        let silent = within(limit, move || {
            let _ = ended.recv();
            Ok(())
        });
        assert_eq!(silent.unwrap_err().reason(), "no answer within 20ms");
        drop(end);
    }

    #[test]
    fn what_is_found_in_time_is_told() {
        assert_eq!(within(Duration::from_secs(60), || Ok(7)).unwrap(), 7);
        let none = || Err::<(), _>(io::Error::other("no such name"));
        let unknown = within(Duration::from_secs(60), none).unwrap_err();
        assert_eq!(unknown.reason(), "no such name");
    }

    /// However short the limit: nobody is asked for it.
    #[test]
    fn an_address_needs_no_lookup() {
        let found = lookup("127.0.0.1", 80, Duration::ZERO).unwrap();
        assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], 80))]);
        let found = lookup_text("[::1]:81").unwrap();
        assert_eq!(found, ["[::1]:81".parse().unwrap()]);
        let refused = lookup_text("no-port").unwrap_err().reason();
        assert!(refused.contains("invalid socket address"), "{refused}");
    }
}
