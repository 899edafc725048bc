//! Where a load goes: a service that was named, or a built-in one in this process.

use crate::failure::Failure;
use knee_engine::experiment::latency::service::{LatencyServer, LatencyServerSpec};
use knee_engine::experiment::udp::service::{UdpServer, UdpServerSpec};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// A service that was named, or a built-in one on the loopback, which serves as long as this lives.
#[derive(Debug)]
pub struct ServiceTarget<S> {
    /// Where it is.
    pub address: String,
    /// What a newcomer should know about it; `None` where they named it.
    pub announcement: Option<String>,
    _server: Option<S>,
}

impl<S> ServiceTarget<S> {
    fn named(address: String) -> ServiceTarget<S> {
        ServiceTarget { address, announcement: None, _server: None }
    }

    fn built_in(server: S, address: SocketAddr, does: &str) -> ServiceTarget<S> {
        let announcement = format!("no HOST given: {does} a built-in service on {address}");
        ServiceTarget {
            address: address.to_string(),
            announcement: Some(announcement),
            _server: Some(server),
        }
    }
}

/// A free port of the loopback.
const FREE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The service for datagrams. Each trial sets what it does.
pub fn datagrams(named: Option<String>, seed: u64) -> Result<ServiceTarget<UdpServer>, Failure> {
    if let Some(address) = named {
        return Ok(ServiceTarget::named(address));
    }
    let spec = UdpServerSpec { listen: FREE, seed, ..UdpServerSpec::default() };
    let server = UdpServer::start(spec)?;
    let address = server.address();
    Ok(ServiceTarget::built_in(server, address, "sending to"))
}

/// Takes and sends flows.
pub fn flows(named: Option<String>) -> Result<ServiceTarget<LatencyServer>, Failure> {
    if let Some(address) = named {
        return Ok(ServiceTarget::named(address));
    }
    let spec = LatencyServerSpec { listen: FREE, ..LatencyServerSpec::default() };
    let server = LatencyServer::start(spec)?;
    let address = server.address();
    Ok(ServiceTarget::built_in(server, address, "measuring the loopback, against"))
}
