//! How many datagrams a receive buffer holds: measured, as the kernel's bookkeeping is its own.

use crate::sys::clock;
use crate::sys::datagrams::DatagramSocket;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};

/// A buffer that holds more than this is not filled: 4 MiB hold some 10,000 of the smallest.
const DATAGRAMS_MAX: u64 = 200_000;
/// Filling takes no longer than this.
const PATIENCE_NS: u64 = 300_000_000;

/// Fills a twin of the service's socket, which nobody reads, with datagrams of `size` bytes, and
/// returns how many it took. `None`: it took more than could be sent in the time given to this, or
/// the kernel does not permit it.
///
/// Each datagram that the kernel does not take it counts for the whole network namespace
/// (RcvbufErrors). So the first that would be dropped is not sent: whoever compares that counter
/// with the ledger finds them equal. Which that is goes by the kernel's rule, see
/// [`counts_the_next`]; should a kernel drop one earlier, that ends it too.
///
/// That is what it holds from empty. While it is never empty it takes up to a quarter less (see
/// [`super`]). The room that a datagram takes depends on how its memory was allocated. The sender
/// allocates it where both are on one machine, otherwise the network driver. So this holds for
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
    let counts_the_next = counts_the_next();
    let mut one = 0;
    let give_up = clock::monotonic_ns() + PATIENCE_NS;
    for sent in 1..=DATAGRAMS_MAX {
        while let Err(error) = sender.send(&payload) {
            if error.kind() != io::ErrorKind::WouldBlock || clock::monotonic_ns() > give_up {
                return Err(error);
            }
        }
        let memory = twin.memory()?;
        let drops = memory.drops.wrapping_sub(before.drops);
        if sent == 1 {
            one = memory.used;
        }
        let next = if counts_the_next { one } else { 0 };
        if drops > 0 || memory.used.saturating_add(next) > memory.limit {
            return Ok(Some(sent.saturating_sub(u64::from(drops))));
        }
        if clock::monotonic_ns() > give_up {
            break;
        }
    }
    Ok(None)
}

/// Whether a datagram has to fit with those before it, as from Linux 6.18 on. Before, it was taken
/// while those before it did not exceed the buffer (__udp_enqueue_schedule_skb in net/ipv4/udp.c).
fn counts_the_next() -> bool {
    is_from_6_18(&crate::kernel::host::host().kernel)
}

fn is_from_6_18(release: &str) -> bool {
    let mut numbers = release.split(['.', '-']).map(|n| n.parse::<u32>().unwrap_or(0));
    (numbers.next(), numbers.next()) >= (Some(6), Some(18))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_goes_by_the_kernels_version() {
        for (release, counts) in [
            ("6.18.44-fc", true),
            ("6.17.9", false),
            ("7.0-rc1", true),
            ("5.15.0-91-generic", false),
            ("", false),
        ] {
            assert_eq!(is_from_6_18(release), counts, "{release}");
        }
    }

    #[test]
    fn capacity_grows_with_the_buffer_and_falls_with_the_size() {
        let ip = "127.0.0.1".parse().unwrap();
        let small = capacity(ip, 8_192, 64).expect("it can be filled");
        let large = capacity(ip, 65_536, 64).expect("it can be filled");
        let long = capacity(ip, 65_536, 1_400).expect("it can be filled");
        assert!(0 < small && small < long && long < large, "{small} {long} {large}");
    }
}
