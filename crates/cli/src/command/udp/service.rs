//! Where the datagrams go: a service that was named, or one of knee's own in this process.

use crate::failure::Failure;
use knee_engine::serve::udp::{UdpServer, UdpServerSpec};
use std::net::{Ipv4Addr, SocketAddr};

/// The service; one of knee's own serves as long as this lives.
#[derive(Debug)]
pub enum Service {
    /// Somebody's.
    Named(String),
    /// One of knee's own, on the loopback.
    Own(UdpServer),
}

impl Service {
    /// Starts one of knee's own on a free port. What it does is told to it with each trial.
    pub fn start(seed: u64) -> Result<Service, Failure> {
        let spec = UdpServerSpec {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            seed,
            ..UdpServerSpec::default()
        };
        Ok(Service::Own(UdpServer::start(spec)?))
    }

    /// Where it is.
    pub fn address(&self) -> String {
        match self {
            Service::Named(address) => address.clone(),
            Service::Own(server) => server.address().to_string(),
        }
    }

    /// What a newcomer should know about it; `None` where they named it.
    pub fn announcement(&self) -> Option<String> {
        match self {
            Service::Named(_) => None,
            Service::Own(server) => Some(format!(
                "no ADDR:PORT given: sending to a service of knee's own in this process, on {}",
                server.address()
            )),
        }
    }
}
