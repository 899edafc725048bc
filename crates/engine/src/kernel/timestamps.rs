//! The kernel's receive timestamps, for a whole run.

use crate::sys::timestamps;
use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::thread;
use std::time::Duration;

/// Most checks whether the kernel stamps.
const TRIES: u32 = 100;
/// Time between two checks.
const PAUSE: Duration = Duration::from_millis(1);

/// Keeps the kernel's receive timestamps on. It stamps while any socket wants it, and starts a
/// little after the first one does (net_enable_timestamp in net/core/dev.c). So the first bytes of
/// a run have a timestamp already. A kernel without timestamps delivers bytes without.
#[derive(Debug)]
pub(crate) struct Timestamps {
    _kept: Option<UdpSocket>,
}

impl Timestamps {
    /// Turns them on.
    pub(crate) fn keep_on() -> Timestamps {
        let wanting = || {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
            timestamps::set_timestamps(&socket).ok()?;
            Some(socket)
        };
        Timestamps { _kept: wanting() }
    }

    /// Turns them on and waits until the kernel stamps, at most 100 ms.
    pub(crate) fn keep_on_and_wait() -> Timestamps {
        let kept = Timestamps::keep_on();
        let is_on = || -> io::Result<bool> {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(socket.local_addr()?)?;
            socket.set_read_timeout(Some(PAUSE))?;
            timestamps::set_only_if_stamped(&socket)?;
            socket.send(&[0])?;
            timestamps::comes_stamped(&socket)
        };
        for _ in 0..TRIES {
            if is_on().unwrap_or(false) {
                break;
            }
            thread::sleep(PAUSE);
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock;
    use crate::sys::socket::{Address, Listener, RawAddress, Socket, SocketKind};
    use std::net::SocketAddr;

    /// Two ends of a connection over the loopback, blocking.
    fn pair() -> (Socket, Socket) {
        let any = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = Listener::bind(&RawAddress::new(&any).unwrap(), 1).unwrap();
        let address = RawAddress::new(&listener.local_address().unwrap()).unwrap();
        let one = Socket::blocking(&address, SocketKind::Stream).unwrap();
        one.connect(&address).unwrap();
        (one, listener.accept().unwrap())
    }

    #[test]
    fn bytes_come_with_the_time_at_which_they_came() {
        let _kept = Timestamps::keep_on_and_wait();
        let (one, other) = pair();
        other.set_timestamps().unwrap();
        let before = clock::realtime_ns();
        one.send(b"now").unwrap();
        let sent = clock::realtime_ns();
        thread::sleep(Duration::from_millis(50));
        let (count, stamp) = loop {
            match other.receive(&mut [0; 8]) {
                Ok(received) => break received,
                Err(_) => thread::sleep(Duration::from_millis(1)),
            }
        };
        let read = clock::realtime_ns();
        let stamp = stamp.expect("Linux has them for TCP since 4.13");
        assert_eq!(count, 3);
        assert!(before <= stamp, "{stamp} is before {before}");
        let (after_arrival, after_sending) = (read - stamp, read - sent);
        assert!(2 * after_arrival > after_sending, "{after_arrival} of {after_sending}");
    }
}
