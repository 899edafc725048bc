//! What the operation sends to: a named service, or a built-in one in this process.

use crate::args::{Choices, word_of};
use crate::failure::Failure;
use crate::resolved_options::Typed;
use knee_engine::experiment::throttle::service::{QotdServer, QotdSpec, UdpSink, of_the_day};
use knee_load::experiment::throttle::Chore;
use knee_load::spec::ParseError;
use serde_json::Value;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};

/// The kinds of `--op`.
pub const KINDS: Choices<OperationKind> =
    &[("udp", OperationKind::Udp), ("qotd", OperationKind::Qotd)];

/// An operation that sends something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationKind {
    /// A datagram is sent.
    Udp,
    /// A quote of the day is asked for and awaited.
    Qotd,
}

impl Typed for OperationKind {
    fn typed(&self) -> Value {
        word_of(KINDS, *self).into()
    }
}

impl OperationKind {
    /// The operation, sent there.
    pub fn chore(self, to: SocketAddr) -> Chore {
        match self {
            OperationKind::Udp => Chore::Udp(to.to_string()),
            OperationKind::Qotd => Chore::Qotd(to.to_string()),
        }
    }
}

/// A built-in service on the loopback; it ends when it is dropped.
#[derive(Debug)]
pub enum OperationService {
    /// Takes datagrams and does nothing with them.
    Sink(UdpSink),
    /// Answers with a quote.
    Qotd(QotdServer),
}

impl OperationService {
    /// Starts one on a free port.
    pub fn start(kind: OperationKind) -> Result<OperationService, Failure> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let started: io::Result<OperationService> = match kind {
            OperationKind::Udp => UdpSink::bind(address).map(OperationService::Sink),
            OperationKind::Qotd => {
                let spec = QotdSpec { listen: address, quote: of_the_day(), allow: Vec::new() };
                QotdServer::start(spec).map(OperationService::Qotd)
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
            OperationService::Sink(sink) => sink.address(),
            OperationService::Qotd(server) => server.address(),
        }
    }

    /// What a newcomer should know about it.
    pub fn announcement(&self) -> String {
        let what = match self {
            OperationService::Sink(_) => "UDP socket that discards datagrams",
            OperationService::Qotd(_) => "quote-of-the-day service",
        };
        let address = self.address();
        format!("no --to given: sending to a built-in {what} on {address}")
    }
}

/// An address to send to.
pub fn parse_address(text: &str) -> Result<SocketAddr, ParseError> {
    let wrong = |what: &str| {
        ParseError(format!("'{text}' {what}: give ADDR:PORT, such as 127.0.0.1:1717 or [::1]:17"))
    };
    match text.trim().parse::<SocketAddr>() {
        Ok(address) if address.port() == 0 => Err(wrong("has the port 0")),
        Ok(address) => Ok(address),
        Err(_) => Err(wrong("is no address to send to")),
    }
}
