//! How many datagrams a receive buffer holds: measured, as the kernel's bookkeeping is its own.

use crate::sys::clock;
use crate::sys::datagrams::DatagramSocket;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// A buffer that holds more than this is not filled: 4 MiB hold some 10,000 of the smallest.
const DATAGRAMS_MAX: u64 = 200_000;
/// Filling takes no longer than this.
const PATIENCE_NS: u64 = 300_000_000;

/// Fills a twin of the service's socket, which nobody reads, with datagrams of `size` bytes until
/// the first is dropped, and returns how many it took. `None`: it took more than could be sent in
/// the time given to this, or the kernel does not let us.
///
/// That is what it holds from empty; while it is never empty it takes up to a quarter less (see
/// [`super`]). What a datagram takes of a buffer depends on how its memory was allocated: by the
/// sender, where both are on one machine, and otherwise by the network driver. So this holds for
/// senders on this machine alone.
pub(super) fn capacity(ip: IpAddr, limit_bytes: u32, size: u32) -> Option<u64> {
    fill(ip, limit_bytes, size).ok().flatten()
}

fn fill(ip: IpAddr, limit_bytes: u32, size: u32) -> io::Result<Option<u64>> {
    let twin = DatagramSocket::bind(SocketAddr::new(ip, 0))?;
    twin.set_receive_buffer(limit_bytes / 2)?;
    let before = twin.memory()?;
    if before.limit.abs_diff(limit_bytes) > 1 {
        return Ok(None);
    }
    let sender = UdpSocket::bind(SocketAddr::new(ip, 0))?;
    sender.connect(twin.local_address()?)?;
    sender.set_nonblocking(true)?;
    let payload = vec![0; size as usize];
    let give_up = clock::monotonic_ns() + PATIENCE_NS;
    for sent in 1..=DATAGRAMS_MAX {
        while let Err(error) = sender.send(&payload) {
            if error.kind() != io::ErrorKind::WouldBlock || clock::monotonic_ns() > give_up {
                return Err(error);
            }
        }
        let drops = twin.memory()?.drops.wrapping_sub(before.drops);
        if drops > 0 {
            return Ok(Some(sent.saturating_sub(u64::from(drops))));
        }
        if clock::monotonic_ns() > give_up {
            break;
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_larger_buffer_holds_more_and_larger_datagrams_fill_it_sooner() {
        let ip = "127.0.0.1".parse().unwrap();
        let small = capacity(ip, 8_192, 64).expect("it can be filled");
        let large = capacity(ip, 65_536, 64).expect("it can be filled");
        let long = capacity(ip, 65_536, 1_400).expect("it can be filled");
        assert!(
            0 < small && small < long && long < large,
            "{small} {long} {large}"
        );
    }
}
