//! `knee serve qotd`: a quote of the day (RFC 865).

use super::{ServeSpec, StatsArgs};
use crate::args::listen_address;
use crate::failure::{Exit, Failure};
use clap::Args;
use knee_engine::experiment::throttle::service::{
    QotdServer, QotdSpec, QotdStats, of_the_day, parse_quote,
};
use knee_load::spec::ParseError;
use std::net::{IpAddr, SocketAddr};

/// Serve a quote of the day over UDP and TCP (RFC 865)
///
/// Prints one line, 'listening on ADDR:PORT', once it does, serves until SIGTERM, SIGHUP or Ctrl-C,
/// and then prints what it served. A datagram of any kind is answered with one that holds the
/// quote; a connection gets the quote and is closed. The service's own port, 17, needs rights that
/// a user seldom has. On a network it lends itself to amplifying attacks. So over UDP it answers
/// only clients on this host, by the loopback, unless --allow names others.
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
    #[arg(value_parser = |text: &str| listen_address(text, "127.0.0.1:1717"))]
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

impl RawServeQotd {
    /// Settles the options.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        let server = QotdSpec {
            listen: self.listen,
            quote: self.quote.unwrap_or_else(of_the_day),
            allow: self.allow,
        };
        let stats = self.stats.resolve()?;
        Ok(ServeSpec::new(move || {
            let listen = server.listen.to_string();
            let stop = super::until_signal()?;
            let server =
                QotdServer::start(server).map_err(|e| super::cannot_listen(&listen, &e))?;
            stop.wait(server.address())?;
            let served = server.stop();
            stats.tell(&served, &text(&served))?;
            Ok(Exit::Fine)
        }))
    }
}

fn text(stats: &QotdStats) -> String {
    format!(
        "datagrams    {}, answered {}, refused {}\nconnections  {}\n",
        stats.datagrams, stats.answered, stats.refused, stats.connections
    )
}

fn parse_allowed(text: &str) -> Result<IpAddr, ParseError> {
    text.parse().map_err(|_| {
        ParseError(format!(
            "'{text}' is no address to allow: give one such as 192.0.2.7 or 2001:db8::7"
        ))
    })
}
