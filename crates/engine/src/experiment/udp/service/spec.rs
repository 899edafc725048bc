//! What the datagram service is asked to be.

use knee_core::experiment::udp::spec::ServiceMode;
use knee_core::law::Law;
use knee_core::time::Nanos;
use std::net::{Ipv4Addr, SocketAddr};

/// What the datagram service is asked to be.
#[derive(Clone, Debug, PartialEq)]
pub struct UdpServerSpec {
    /// Where it takes datagrams (UDP) and its control connection (TCP); port 0 picks one that is
    /// free for both.
    pub listen: SocketAddr,
    /// What it does with a datagram.
    pub mode: ServiceMode,
    /// Work per datagram: the processor is kept busy for so long.
    pub work: Law,
    /// Receive buffer as given to setsockopt(2); `None`: net.core.rmem_default.
    pub rcvbuf: Option<u32>,
    /// The processor that its thread of datagrams is bound to; `None`: any.
    pub cpu: Option<u32>,
    /// What a client has to know; empty: nothing, which is permitted on a loopback address alone.
    pub token: String,
    /// Seeds the work's lengths.
    pub seed: u64,
    /// Length of the intervals of [`super::UdpServerStats`].
    pub interval: Nanos,
}

impl Default for UdpServerSpec {
    fn default() -> UdpServerSpec {
        UdpServerSpec {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 7007)),
            mode: ServiceMode::Sink,
            work: Law::ZERO,
            rcvbuf: None,
            cpu: None,
            token: String::new(),
            seed: 1,
            interval: Nanos::from_secs(10),
        }
    }
}
