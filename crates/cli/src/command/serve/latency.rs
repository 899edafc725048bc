//! `knee serve latency`: the service that `knee latency` exchanges flows with.

use super::{ServeSpec, StatsArgs};
use crate::args::{TokenArgs, listen_address, parse_count, parse_positive, parse_whole};
use crate::command::latency::{PORT, parse_amount};
use crate::failure::{Exit, Failure};
use clap::Args;
use knee_engine::experiment::latency::service::{
    FlowFault, FlowFaultKind, LatencyServer, LatencyServerSpec,
};
use knee_load::measure::Direction;
use knee_load::spec::{ParseError, parse_duration};
use knee_load::time::Nanos;
use std::net::SocketAddr;

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
            let stop = super::until_signal()?;
            let server = LatencyServer::start(server)?;
            stop.wait(server.address())?;
            let served = server.stop();
            stats.tell(&served, &served.to_string())?;
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
