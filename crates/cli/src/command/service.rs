//! Where a load goes: a service that was named, or a built-in one in this process.

use crate::failure::Failure;
use knee_engine::experiment::latency::service::{LatencyServer, LatencyServerSpec};
use knee_engine::experiment::udp::service::{UdpServer, UdpServerSpec};
use std::net::{Ipv4Addr, SocketAddr};

/// A built-in service; it serves as long as it lives.
pub trait BuiltInService {
    /// What a newcomer should know where none was named, up to where it is.
    const ANNOUNCED: &'static str;

    /// Where it listens.
    fn listens_on(&self) -> SocketAddr;
}

/// The service; a built-in one serves as long as this lives.
#[derive(Debug)]
pub enum ServiceTarget<S> {
    /// Somebody's.
    Named(String),
    /// A built-in one, on the loopback.
    BuiltIn(S),
}

impl<S: BuiltInService> ServiceTarget<S> {
    /// The one that was named, or else a built-in one that `start` starts at this address: a
    /// free port of the loopback.
    fn named_or(
        named: Option<String>,
        start: impl FnOnce(SocketAddr) -> Result<S, Failure>,
    ) -> Result<ServiceTarget<S>, Failure> {
        match named {
            Some(address) => Ok(ServiceTarget::Named(address)),
            None => start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map(ServiceTarget::BuiltIn),
        }
    }

    /// Where it is.
    pub fn address(&self) -> String {
        match self {
            ServiceTarget::Named(address) => address.clone(),
            ServiceTarget::BuiltIn(server) => server.listens_on().to_string(),
        }
    }

    /// What a newcomer should know about it; `None` where they named it.
    pub fn announcement(&self) -> Option<String> {
        match self {
            ServiceTarget::Named(_) => None,
            ServiceTarget::BuiltIn(server) => {
                Some(format!("{} a built-in service on {}", S::ANNOUNCED, server.listens_on()))
            }
        }
    }
}

impl BuiltInService for UdpServer {
    const ANNOUNCED: &'static str = "no HOST given: sending to";

    fn listens_on(&self) -> SocketAddr {
        self.address()
    }
}

/// The service for datagrams. Each trial sets what it does.
pub fn datagrams(named: Option<String>, seed: u64) -> Result<ServiceTarget<UdpServer>, Failure> {
    ServiceTarget::named_or(named, |listen| {
        let spec = UdpServerSpec { listen, seed, ..UdpServerSpec::default() };
        Ok(UdpServer::start(spec)?)
    })
}

impl BuiltInService for LatencyServer {
    const ANNOUNCED: &'static str = "no HOST given: measuring the loopback, against";

    fn listens_on(&self) -> SocketAddr {
        self.address()
    }
}

/// Takes and sends flows.
pub fn flows(named: Option<String>) -> Result<ServiceTarget<LatencyServer>, Failure> {
    ServiceTarget::named_or(named, |listen| {
        let spec = LatencyServerSpec { listen, ..LatencyServerSpec::default() };
        Ok(LatencyServer::start(spec)?)
    })
}
