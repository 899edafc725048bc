//! Whether this kernel stamps what it receives.

use crate::sys::socket::{Address, Listener, RawAddress, Socket};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::thread;
use std::time::Duration;

/// The kernel begins to stamp soon after the first socket asked for it, and not at once
/// (net_enable_timestamp in net/core/dev.c): that is tried so often …
const ATTEMPTS: u32 = 50;
/// … with so much time between.
const PAUSE: Duration = Duration::from_millis(1);

/// Receive timestamps are on for as long as this lives, so that the first bytes of a run have one.
#[derive(Debug)]
pub struct Timestamps {
    _kept: Option<(Socket, Socket)>,
}

impl Timestamps {
    /// Turns them on; `None` where this kernel has none for TCP (before Linux 4.13). A host without
    /// a loopback interface cannot tell, and its kernel is believed to have them.
    pub fn keep_on() -> Option<Timestamps> {
        let Ok((one, other)) = pair() else {
            return Some(Timestamps { _kept: None });
        };
        other.set_timestamps().ok()?;
        for _ in 0..ATTEMPTS {
            one.send(&[0]).ok()?;
            if arrives_stamped(&other) {
                return Some(Timestamps {
                    _kept: Some((one, other)),
                });
            }
            thread::sleep(PAUSE);
        }
        None
    }
}

fn arrives_stamped(socket: &Socket) -> bool {
    matches!(socket.receive(&mut [0; 8]), Ok((1.., Some(_))))
}

/// Two ends of a connection over the loopback, blocking.
fn pair() -> io::Result<(Socket, Socket)> {
    let any = Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let listener = Listener::bind(&RawAddress::new(&any)?, 1)?;
    let address = RawAddress::new(&listener.local_address()?)?;
    let one = Socket::blocking(&address)?;
    one.connect(&address)?;
    Ok((one, listener.accept()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::clock;

    #[test]
    fn bytes_come_with_the_time_at_which_they_came() {
        let kept = Timestamps::keep_on();
        assert!(kept.is_some(), "Linux has had them since 4.13");
        let (one, other) = pair().unwrap();
        other.set_timestamps().unwrap();
        let before = clock::realtime_ns();
        one.send(b"now").unwrap();
        let sent = clock::realtime_ns();
        thread::sleep(Duration::from_millis(20));
        let (count, stamp) = other.receive(&mut [0; 8]).unwrap();
        let stamp = stamp.unwrap();
        assert_eq!(count, 3);
        assert!(
            before <= stamp && stamp <= sent + 15_000_000,
            "{before} {stamp} {sent}"
        );
    }
}
