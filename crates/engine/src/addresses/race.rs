//! Attempts to connect to all addresses of a name, before any load (RFC 8305).

use crate::sys::epoll::{Epoll, EpollEvent, flags};
use crate::sys::socket::{Connect, RawAddress, Socket, SocketKind};
use knee_load::time::Nanos;
use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Time until the next attempt begins beside one that has not ended: the Connection Attempt Delay
/// (RFC 8305 §5).
const DELAY: Duration = Duration::from_millis(250);

/// An address, and how the attempt to connect to it ended.
pub(crate) type Ended = (SocketAddr, io::Result<Socket>);

/// One attempt.
struct Attempt {
    begun: Instant,
    /// `None` once it has ended.
    under_way: Option<Socket>,
    end: io::Result<Socket>,
}

impl Attempt {
    fn begin(
        address: SocketAddr,
        kind: SocketKind,
        sources: &[RawAddress],
        (epoll, token): (&Epoll, u64),
    ) -> Attempt {
        let to = RawAddress::from(address);
        let from = sources.iter().find(|source| source.family() == to.family());
        let mut attempt = Attempt {
            begun: Instant::now(),
            under_way: None,
            end: Err(io::Error::new(io::ErrorKind::TimedOut, "connection timed out")),
        };
        let begun = Socket::of_kind(&to, kind).and_then(|socket| {
            if let Some(from) = from {
                socket.bind_address(from)?;
            }
            let connect = socket.connect(&to)?;
            if connect == Connect::InProgress {
                epoll.add(&socket, token, flags::WRITE)?;
            }
            Ok((socket, connect))
        });
        match begun {
            Ok((socket, Connect::InProgress)) => attempt.under_way = Some(socket),
            Ok((socket, Connect::Done)) => attempt.end = Ok(socket),
            Err(error) => attempt.end = Err(error),
        }
        attempt
    }

    /// Ends it as its socket says.
    fn finish(&mut self) {
        if let Some(socket) = self.under_way.take() {
            self.end = match socket.take_error() {
                Ok(None) => Ok(socket),
                Ok(Some(error)) | Err(error) => Err(error),
            };
        }
    }
}

/// The addresses in the order of their attempts: those of both families in turn (RFC 8305 §4).
pub(crate) fn in_turn(addresses: Vec<SocketAddr>) -> Vec<SocketAddr> {
    let first_is_v6 = addresses.first().is_some_and(SocketAddr::is_ipv6);
    let (mut first, mut other): (Vec<_>, Vec<_>) =
        addresses.into_iter().partition(|address| address.is_ipv6() == first_is_v6);
    first.reverse();
    other.reverse();
    let mut all = Vec::new();
    while let Some(address) = first.pop().or_else(|| other.pop()) {
        all.push(address);
        all.extend(other.pop());
    }
    all
}

/// Connects to each address. An attempt begins once the one before it has ended, or takes longer
/// than 250 ms. As soon as one address has answered, each of the others has that time as well, or
/// twice as long as the fastest took. Until then each has `patience`.
///
/// # Errors
/// No descriptor left.
pub(crate) fn race(
    to: &[SocketAddr],
    kind: SocketKind,
    sources: &[RawAddress],
    patience: Duration,
) -> io::Result<Vec<Ended>> {
    let epoll = Epoll::new()?;
    let mut attempts: Vec<Attempt> = Vec::new();
    let mut fastest: Option<Duration> = None;
    let mut events = [EpollEvent::EMPTY; 16];
    loop {
        let now = Instant::now();
        let is_next = |last: &Attempt| last.under_way.is_none() || now >= last.begun + DELAY;
        if let Some(address) = to.get(attempts.len())
            && attempts.last().is_none_or(is_next)
        {
            let token = attempts.len() as u64;
            attempts.push(Attempt::begin(*address, kind, sources, (&epoll, token)));
            continue;
        }
        let answered = attempts.iter().filter(|attempt| attempt.end.is_ok());
        fastest = fastest.or(answered.map(|attempt| now - attempt.begun).min());
        let each = fastest.map_or(patience, |took| patience.min(DELAY.max(2 * took)));
        for attempt in &mut attempts {
            if now >= attempt.begun + each {
                attempt.under_way = None;
            }
        }
        let under_way = attempts.iter().filter(|attempt| attempt.under_way.is_some());
        let next = under_way.map(|attempt| attempt.begun + each).min();
        let Some(next) = next else {
            if attempts.len() < to.len() {
                continue;
            }
            let ends = attempts.into_iter().map(|attempt| attempt.end);
            return Ok(to.iter().copied().zip(ends).collect());
        };
        let more = attempts.last().filter(|_| attempts.len() < to.len());
        let next = more.map_or(next, |last| next.min(last.begun + DELAY));
        let wait = Nanos(u64::try_from((next - now).as_nanos()).unwrap_or(u64::MAX));
        for event in epoll.wait(&mut events, Some(wait))? {
            attempts[event.token() as usize].finish();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn families_take_turns() {
        let rows: &[(&[&str], &[&str])] = &[
            (&[], &[]),
            (&["[::1]:1"], &["[::1]:1"]),
            (&["1.1.1.1:1", "1.1.1.2:1"], &["1.1.1.1:1", "1.1.1.2:1"]),
            (&["[::1]:1", "[::2]:1", "1.1.1.1:1"], &["[::1]:1", "1.1.1.1:1", "[::2]:1"]),
            (&["1.1.1.1:1", "[::1]:1", "[::2]:1"], &["1.1.1.1:1", "[::1]:1", "[::2]:1"]),
            (
                &["[::1]:1", "[::2]:1", "1.1.1.1:1", "1.1.1.2:1", "1.1.1.3:1"],
                &["[::1]:1", "1.1.1.1:1", "[::2]:1", "1.1.1.2:1", "1.1.1.3:1"],
            ),
        ];
        for (given, expected) in rows {
            let parsed = |all: &[&str]| all.iter().map(|a| a.parse().unwrap()).collect();
            let expected: Vec<SocketAddr> = parsed(expected);
            assert_eq!(in_turn(parsed(given)), expected, "{given:?}");
        }
    }

    #[test]
    fn each_address_is_tried() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let all = [[127, 0, 0, 1], [127, 0, 0, 2]].map(|ip| SocketAddr::from((ip, port)));
        let patience = Duration::from_secs(60);
        let ends = race(&all, SocketKind::Stream, &[], patience).unwrap();
        let kinds = ends.iter().map(|(_, end)| end.as_ref().map_err(io::Error::kind).err());
        assert_eq!(Vec::from_iter(kinds), [None, Some(io::ErrorKind::ConnectionRefused)]);
        let source = RawAddress::from(SocketAddr::from(([127, 0, 0, 9], 0)));
        let ends = race(&all[..1], SocketKind::Stream, &[source], patience).unwrap();
        let local = ends[0].1.as_ref().unwrap().local_address().unwrap().to_string();
        assert!(local.starts_with("127.0.0.9:"), "{local}");
    }
}
