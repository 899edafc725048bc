//! `knee serve qotd`: a quote of the day (RFC 865).

use super::{Stats, StatsArgs};
use crate::failure::{Exit, Failure};
use clap::Args;
use knee_core::spec::ParseError;
use knee_engine::experiment::throttle::service::{
    QotdServer, QotdSpec, QotdStats, of_the_day, parse_quote,
};
use std::net::{IpAddr, SocketAddr};

/// Serve a quote of the day over UDP and TCP (RFC 865)
///
/// Prints one line, 'listening on ADDR:PORT', once it does, serves until SIGTERM, SIGHUP or Ctrl-C,
/// and then prints what it served. A datagram of any kind is answered with one that holds the
/// quote; a connection gets the quote and is closed. The service's own port, 17, needs rights that
/// a user seldom has; on a network it lends itself to amplifying attacks, so that over UDP it
/// answers none but clients on this host, by the loopback, unless told otherwise.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  \
        knee serve qotd --listen 127.0.0.1:1717",
    after_long_help = "Examples:\n  \
        knee serve qotd\n  \
        knee serve qotd --listen 127.0.0.1:0 --quote 'Never confuse motion with action.'\n  \
        knee serve qotd --listen 0.0.0.0:1717 --allow 192.0.2.7 --allow 192.0.2.8\n  \
        knee throttle --op qotd --to 127.0.0.1:1717 --delays 1ms\n\n\
        Exit codes: 0 served and stopped; 2 bad arguments, or it cannot listen there."
)]
pub struct RawServeQotd {
    /// Listening address, UDP and TCP; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:1717")]
    #[arg(value_parser = parse_listen)]
    listen: SocketAddr,

    /// What it says, at most 510 characters of ASCII on one line [default: another one each day]
    #[arg(long, value_name = "TEXT", value_parser = parse_quote)]
    quote: Option<String>,

    /// Also answer this address, repeatable [default: the loopback alone]
    #[arg(long, value_name = "IP", value_parser = parse_allowed)]
    allow: Vec<IpAddr>,

    #[command(flatten)]
    stats: StatsArgs,
}

/// A service that cannot be wrong, and where it tells what it did.
#[derive(Debug)]
pub struct QotdService {
    server: QotdSpec,
    stats: Stats,
}

impl RawServeQotd {
    /// What is to be served.
    pub fn resolve(self) -> Result<QotdService, Failure> {
        let server = QotdSpec {
            listen: self.listen,
            quote: self.quote.unwrap_or_else(of_the_day),
            allow: self.allow,
        };
        Ok(QotdService {
            server,
            stats: self.stats.resolve()?,
        })
    }
}

/// Serves until a signal ends it.
pub fn execute(service: QotdService) -> Result<Exit, Failure> {
    let listen = service.server.listen.to_string();
    let stop = super::until_signal()?;
    let server =
        QotdServer::start(service.server).map_err(|e| super::cannot_listen(&listen, &e))?;
    stop.wait(server.address())?;
    let stats = server.stop();
    service.stats.tell(&stats, &text(&stats))?;
    Ok(Exit::Fine)
}

fn text(stats: &QotdStats) -> String {
    format!(
        "datagrams    {}, answered {}, refused {}\nconnections  {}\n",
        stats.datagrams, stats.answered, stats.refused, stats.connections
    )
}

fn parse_listen(text: &str) -> Result<SocketAddr, ParseError> {
    text.parse().map_err(|_| {
        ParseError(format!(
            "'{text}' is no address to listen at: give ADDR:PORT such as 127.0.0.1:1717"
        ))
    })
}

fn parse_allowed(text: &str) -> Result<IpAddr, ParseError> {
    text.parse().map_err(|_| {
        ParseError(format!(
            "'{text}' is no address to allow: give one such as 192.0.2.7 or 2001:db8::7"
        ))
    })
}
