//! What the operation sends to: somebody's service, or one of knee's own in this process.

use crate::failure::Failure;
use knee_core::experiment::throttle::wait::Chore;
use knee_core::spec::ParseError;
use knee_engine::experiment::throttle::service::{QotdServer, QotdSpec, UdpSink, of_the_day};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// The names of `--op`.
pub const NAMES: [&str; 2] = ["udp", "qotd"];

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A datagram is sent.
    Udp,
    /// A quote of the day is asked for and awaited.
    Qotd,
}

impl Sort {
    /// The one of this name, which is one of [`NAMES`].
    pub fn of(name: &str) -> Sort {
        if name == "qotd" {
            Sort::Qotd
        } else {
            Sort::Udp
        }
    }

    /// The operation, sent there.
    pub fn chore(self, to: SocketAddr) -> Chore {
        match self {
            Sort::Udp => Chore::Udp(to.to_string()),
            Sort::Qotd => Chore::Qotd(to.to_string()),
        }
    }
}

/// A service of knee's own on the loopback; it ends when it is dropped.
#[derive(Debug)]
pub enum Service {
    /// Takes datagrams and does nothing with them.
    Sink(UdpSink),
    /// Answers with a quote.
    Qotd(QotdServer),
}

impl Service {
    /// Starts one on a free port.
    pub fn start(sort: Sort) -> Result<Service, Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let started: io::Result<Service> = match sort {
            Sort::Udp => UdpSink::bind(address).map(Service::Sink),
            Sort::Qotd => {
                let spec = QotdSpec {
                    listen: address,
                    quote: of_the_day(),
                    allow: Vec::new(),
                };
                QotdServer::start(spec).map(Service::Qotd)
            }
        };
        started.map_err(|e| {
            let line = format!("the service for --op cannot start: {e}; name one with --to");
            Failure::nothing_measured(line)
        })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        match self {
            Service::Sink(sink) => sink.address(),
            Service::Qotd(server) => server.address(),
        }
    }

    /// What a newcomer should know about it.
    pub fn announcement(&self) -> String {
        let what = match self {
            Service::Sink(_) => "UDP socket that discards datagrams",
            Service::Qotd(_) => "quote-of-the-day service",
        };
        let address = self.address();
        format!("no --to given: sending to a built-in {what} on {address}")
    }
}

/// An address to send to.
pub fn parse_address(text: &str) -> Result<SocketAddr, ParseError> {
    let wrong = |what: &str| {
        ParseError(format!(
            "'{text}' {what}: give ADDR:PORT, such as 127.0.0.1:1717 or [::1]:17"
        ))
    };
    match text.trim().parse::<SocketAddr>() {
        Ok(address) if address.port() == 0 => Err(wrong("has the port 0")),
        Ok(address) => Ok(address),
        Err(_) => Err(wrong("is no address to send to")),
    }
}
