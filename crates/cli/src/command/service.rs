//! Where a load goes: a service that was named, or one of knee's own in this process.

use crate::failure::Failure;
use knee_engine::experiment::latency::service::{LatencyServer, LatencyServerSpec};
use knee_engine::experiment::udp::service::{UdpServer, UdpServerSpec};
use std::net::{Ipv4Addr, SocketAddr};

/// A service of knee's own; it serves as long as it lives.
pub trait Own {
    /// What a newcomer should know where none was named, up to where it is.
    const ANNOUNCED: &'static str;

    /// Where it listens.
    fn listens_on(&self) -> SocketAddr;
}

/// The service; one of knee's own serves as long as this lives.
#[derive(Debug)]
pub enum Service<S> {
    /// Somebody's.
    Named(String),
    /// One of knee's own, on the loopback.
    Own(S),
}

impl<S: Own> Service<S> {
    /// The one that was named, or else one of knee's own that `start` starts at this address: a
    /// free port of the loopback.
    fn named_or(
        named: Option<String>,
        start: impl FnOnce(SocketAddr) -> Result<S, Failure>,
    ) -> Result<Service<S>, Failure> {
        match named {
            Some(address) => Ok(Service::Named(address)),
            None => start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map(Service::Own),
        }
    }

    /// Where it is.
    pub fn address(&self) -> String {
        match self {
            Service::Named(address) => address.clone(),
            Service::Own(server) => server.listens_on().to_string(),
        }
    }

    /// What a newcomer should know about it; `None` where they named it.
    pub fn announcement(&self) -> Option<String> {
        match self {
            Service::Named(_) => None,
            Service::Own(server) => Some(format!(
                "{} a built-in service on {}",
                S::ANNOUNCED,
                server.listens_on()
            )),
        }
    }
}

impl Own for UdpServer {
    const ANNOUNCED: &'static str = "no HOST given: sending to";

    fn listens_on(&self) -> SocketAddr {
        self.address()
    }
}

/// Takes datagrams. What it does is told to it with each trial.
pub fn datagrams(named: Option<String>, seed: u64) -> Result<Service<UdpServer>, Failure> {
    Service::named_or(named, |listen| {
        let spec = UdpServerSpec {
            listen,
            seed,
            ..UdpServerSpec::default()
        };
        Ok(UdpServer::start(spec)?)
    })
}

impl Own for LatencyServer {
    const ANNOUNCED: &'static str = "no HOST given: measuring the loopback, against";

    fn listens_on(&self) -> SocketAddr {
        self.address()
    }
}

/// Takes and sends flows.
pub fn flows(named: Option<String>) -> Result<Service<LatencyServer>, Failure> {
    Service::named_or(named, |listen| {
        let spec = LatencyServerSpec {
            listen,
            ..LatencyServerSpec::default()
        };
        Ok(LatencyServer::start(spec)?)
    })
}
