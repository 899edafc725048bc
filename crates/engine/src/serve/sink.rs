//! A UDP socket that nobody reads: what datagrams are sent to where only the sending matters.

use std::io;
use std::net::{SocketAddr, UdpSocket};

/// A bound socket. What comes fills its buffer, beyond which the kernel drops it; without it each
/// datagram would come back as an error (ICMP port unreachable). It is closed when dropped.
#[derive(Debug)]
pub struct UdpSink {
    _socket: UdpSocket,
    address: SocketAddr,
}

impl UdpSink {
    /// Binds it; port 0 picks a free one.
    ///
    /// # Errors
    /// The address is in use, not permitted or not this machine's; out of descriptors.
    pub fn bind(address: SocketAddr) -> io::Result<UdpSink> {
        let socket = UdpSocket::bind(address)?;
        let address = socket.local_addr()?;
        Ok(UdpSink {
            _socket: socket,
            address,
        })
    }

    /// Where it is bound.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sent_there_is_never_refused() {
        let sink = UdpSink::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let sender = UdpSocket::bind(("127.0.0.1", 0)).unwrap();
        sender.connect(sink.address()).unwrap();
        // Far more than any buffer holds.
        for _ in 0..10_000 {
            assert_eq!(sender.send(&[0; 64]).unwrap(), 64);
        }
    }
}
