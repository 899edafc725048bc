//! The services that `knee udp`, `knee latency` and `knee throttle` send to.

use super::{ServeSpec, StatsArgs};
use crate::args::{
    SeedArgs, TokenArgs, listen_address, one_of, parse_count, parse_positive, parse_whole,
};
use crate::command::latency::{PORT, parse_amount};
use crate::command::udp::{MODES, parse_buffer, parse_cpu};
use crate::failure::{Exit, Failure};
use clap::Args;
use knee_engine::experiment::latency::service::{
    FlowFault, FlowFaultKind, LatencyServer, LatencyServerSpec,
};
use knee_engine::experiment::throttle::service::{
    QotdServer, QotdSpec, QotdStats, of_the_day, parse_quote,
};
use knee_engine::experiment::udp::service::{UdpServer, UdpServerSpec};
use knee_load::experiment::udp::ServiceMode;
use knee_load::law::Law;
use knee_load::measure::Direction;
use knee_load::spec::{ParseError, parse_duration, parse_law};
use knee_load::time::Nanos;
use std::net::{IpAddr, SocketAddr};

/// Take datagrams, work on each, and account for all of them
///
/// Prints 'listening on ADDR:PORT' when ready, serves until SIGTERM, SIGHUP or Ctrl-C, then prints
/// its statistics. It serves one 'knee udp' at a time: datagrams over UDP, control over TCP on the
/// same port. It never sends to any other host. An address other than loopback requires a token.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  \
        knee serve udp --service 'fixed(200us)' --rcvbuf 4096",
    after_long_help = "Examples:\n  \
        knee serve udp\n  \
        knee serve udp --listen 127.0.0.1:0 --mode echo\n  \
        knee serve udp --service 'fixed(200us)' --rcvbuf 4096 --cpu 0\n  \
        knee serve udp --listen 192.0.2.7:7007 --token 'a secret'\n\n\
        Exit codes: 0 served and stopped; 2 bad arguments, or it cannot listen there."
)]
pub struct RawServeUdp {
    /// Listening address, UDP and TCP; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:7007")]
    #[arg(value_parser = |text: &str| listen_address(text, "127.0.0.1:7007"))]
    listen: SocketAddr,

    /// Mode: sink (count datagrams), echo (also send them back)
    #[arg(long, value_name = "MODE", default_value = "sink", value_parser = one_of(MODES))]
    #[arg(hide_possible_values = true)]
    mode: ServiceMode,

    /// Processor time per datagram: 200us, exp(100us), uniform(1ms,2ms), lognormal(1ms,0.5)
    /// [default: 0]
    #[arg(long, value_name = "LAW", value_parser = parse_law)]
    service: Option<Law>,

    /// Receive buffer as given to setsockopt(2), which the kernel doubles
    /// [default: the kernel's, net.core.rmem_default]
    #[arg(long, value_name = "BYTES", value_parser = parse_buffer)]
    rcvbuf: Option<u32>,

    /// Processor to which the service is bound, from 0 [default: any]
    #[arg(long, value_name = "N", value_parser = parse_cpu)]
    cpu: Option<u32>,

    #[command(flatten)]
    token: TokenArgs,

    /// Length of the intervals that --json lists
    #[arg(long, value_name = "T", default_value = "10s", value_parser = parse_positive)]
    interval: Nanos,

    #[command(flatten)]
    seed: SeedArgs,

    #[command(flatten)]
    stats: StatsArgs,
}

impl RawServeUdp {
    /// Settles the options.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        let token = self.token.resolve_for(self.listen, "knee udp")?;
        let server = UdpServerSpec {
            listen: self.listen,
            mode: self.mode,
            work: self.service.unwrap_or(Law::ZERO),
            rcvbuf: self.rcvbuf,
            cpu: self.cpu,
            token,
            seed: self.seed.seed(),
            interval: self.interval,
        };
        let stats = self.stats.resolve()?;
        Ok(ServeSpec::new(move || {
            let seed = server.seed;
            let stop = super::until_signal();
            let server = UdpServer::start(server)?;
            stop.wait(server.address())?;
            let served = server.stop();
            stats.write(&served, &format!("{served}seed     {seed}\n"))?;
            Ok(Exit::Fine)
        }))
    }
}

/// Take uploads, make downloads and answer pings
///
/// Prints 'listening on ADDR:PORT' when ready, serves until SIGTERM, SIGHUP or Ctrl-C, then prints
/// its statistics. It serves one 'knee latency' at a time; others get 'busy'. Control, pings and
/// flows use one TCP port, probes the same UDP port. An address other than loopback requires a
/// token.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  \
        knee serve latency --listen 192.0.2.7:7008 --token 'a secret'",
    after_long_help = "Examples:\n  \
        knee serve latency\n  \
        knee serve latency --listen 192.0.2.7:7008 --token 'a secret'\n  \
        knee serve latency --listen '[::]:7008' --token 'a secret' --max-time 1h \
        --max-bytes 100GB\n\n\
        Exit codes: 0 served and stopped; 2 bad arguments, or it cannot listen there."
)]
pub struct RawServeLatency {
    /// Listening address, TCP and UDP; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", value_parser = parse_listen)]
    #[arg(default_value_t = SocketAddr::from(([127, 0, 0, 1], PORT)))]
    listen: SocketAddr,

    #[command(flatten)]
    token: TokenArgs,

    /// Maximum time of a client's scenario
    #[arg(long, value_name = "T", default_value = "1h", value_parser = parse_positive)]
    max_time: Nanos,

    /// Maximum bytes of a scenario's flows: 500M, 10GB, 4GiB [default: no limit]
    #[arg(long, value_name = "BYTES", value_parser = parse_amount)]
    max_bytes: Option<u64>,

    /// Threads that carry flows [default: one per available core]
    #[arg(short, long, value_name = "N", value_parser = parse_count, hide_short_help = true)]
    threads: Option<u32>,

    /// Injected fault in every scenario, repeatable: reset(up,0,2s) resets the first upload after 2
    /// s, stall(down,2,2s,334ms) stalls the third download
    #[arg(long, value_name = "F", value_parser = parse_fault, hide_short_help = true)]
    fault: Vec<FlowFault>,

    #[command(flatten)]
    stats: StatsArgs,
}

impl RawServeLatency {
    /// Settles the options.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        let token = self.token.resolve_for(self.listen, "knee latency")?;
        let defaults = LatencyServerSpec::default();
        let server = LatencyServerSpec {
            listen: self.listen,
            token,
            session_max: self.max_time,
            bytes_max: self.max_bytes,
            workers: self.threads.unwrap_or(defaults.workers),
            faults: self.fault,
        };
        let stats = self.stats.resolve()?;
        Ok(ServeSpec::new(move || {
            let stop = super::until_signal();
            let server = LatencyServer::start(server)?;
            stop.wait(server.address())?;
            let served = server.stop();
            stats.write(&served, &served.to_string())?;
            Ok(Exit::Fine)
        }))
    }
}

fn parse_listen(text: &str) -> Result<SocketAddr, ParseError> {
    listen_address(text, &format!("127.0.0.1:{PORT}"))
}

/// `reset(up,0,2s)`, `stall(down,2,2s,334ms)`: which way, which flow from 0, when, for how long.
fn parse_fault(text: &str) -> Result<FlowFault, ParseError> {
    let wrong = || {
        ParseError(format!("'{text}' is no fault: give reset(up,0,2s) or stall(down,2,2s,334ms)"))
    };
    let inner = |name: &str| text.trim().strip_prefix(name)?.strip_suffix(')');
    let (inner, is_stall) = match (inner("reset("), inner("stall(")) {
        (Some(inner), _) => (inner, false),
        (None, Some(inner)) => (inner, true),
        (None, None) => return Err(wrong()),
    };
    let parts: Vec<&str> = inner.split(',').map(str::trim).collect();
    let (direction, number, at, length) = match parts.as_slice() {
        [direction, number, at] if !is_stall => (direction, number, at, None),
        [direction, number, at, length] if is_stall => (direction, number, at, Some(length)),
        _ => return Err(wrong()),
    };
    let direction = match *direction {
        "up" => Direction::Up,
        "down" => Direction::Down,
        _ => return Err(wrong()),
    };
    let length = length.map(|t| parse_positive(t)).transpose()?;
    Ok(FlowFault {
        direction,
        number: u32::try_from(parse_whole(number)?).map_err(|_| wrong())?,
        at: parse_duration(at)?,
        kind: length.map_or(FlowFaultKind::Reset, FlowFaultKind::Stall),
    })
}

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
            let stop = super::until_signal();
            let server =
                QotdServer::start(server).map_err(|e| super::cannot_listen(&listen, &e))?;
            stop.wait(server.address())?;
            let served = server.stop();
            stats.write(&served, &text(&served))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_say_what_becomes_of_which_flow() {
        let fault = |direction, number, at_ms, kind| FlowFault {
            direction,
            number,
            at: Nanos::from_millis(at_ms),
            kind,
        };
        let stall = FlowFaultKind::Stall(Nanos::from_millis(334));
        for (text, expected) in [
            ("reset(up,0,2s)", fault(Direction::Up, 0, 2_000, FlowFaultKind::Reset)),
            ("stall(down, 2, 500ms, 334ms)", fault(Direction::Down, 2, 500, stall)),
        ] {
            assert_eq!(parse_fault(text), Ok(expected));
        }
        for text in [
            "",
            "reset",
            "reset(up,1)",
            "reset(up,-1,1s)",
            "reset(left,1,1s)",
            "reset(up,1,1s,2s)",
            "stall(up,1,1s)",
            "stall(up,1,1s,0)",
            "kill(up,1,1s)",
        ] {
            assert!(parse_fault(text).is_err(), "{text}");
        }
    }
}
