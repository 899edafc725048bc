//! `knee observe`: what a trial looks like at the server, for a `knee` on another host.

use crate::args::{TokenArgs, within};
use crate::failure::{Exit, Failure};
use crate::{machine, stdio};
use clap::Args;
use knee_engine::interrupt;
use knee_engine::observe::ObserveServer;
use knee_load::measure::SynSource;
use std::net::SocketAddr;

/// Observe a server's port on its host, for a knee that loads it from another host
///
/// Counts connection attempts (SYNs) to the port, first and repeated ones apart, with a
/// kernel-filtered packet capture (CAP_NET_RAW) or with the kernel's counters. Also samples the
/// accept queue and reads counters and processor time. It serves one client at a time (--observe
/// HOST:PORT). Prints 'listening on ADDR:PORT' and the source of SYN counts when ready; runs until
/// SIGTERM, SIGHUP or Ctrl-C.
#[derive(Args, Clone, Debug)]
#[command(
    arg_required_else_help = true,
    after_help = "Example, on the server's host:\n  \
        knee observe --port 8080",
    after_long_help = "Examples:\n  \
        knee observe --port 8080\n  \
        knee observe --port 8080 --listen 0.0.0.0:9300 --token 'long and random'\n  \
        knee run http://server:8080/ --observe server:9300 --observe-token 'long and random'\n\n\
        The connection is not encrypted. Exit codes: 0 ran and was stopped; 2 bad arguments, or it \
        cannot listen there."
)]
pub struct RawObserve {
    /// The server's TCP port on this host
    #[arg(long, value_name = "P", value_parser = within::<u16>(1, 65_535))]
    port: u16,

    /// Listening address for its client; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9300")]
    #[arg(value_parser = parse_listen)]
    listen: SocketAddr,

    #[command(flatten)]
    token: TokenArgs,
}

/// An observer that cannot be wrong.
#[derive(Debug)]
pub struct ObserveSpec {
    port: u16,
    listen: SocketAddr,
    token: Option<String>,
}

impl RawObserve {
    /// What is to be watched for whom.
    pub fn resolve(self) -> Result<ObserveSpec, Failure> {
        let token = self.token.resolve_for(self.listen, "knee run, sweep or overload")?;
        Ok(ObserveSpec {
            port: self.port,
            listen: self.listen,
            token: (!token.is_empty()).then_some(token),
        })
    }
}

/// Observes until a signal ends it.
pub fn execute(spec: ObserveSpec) -> Result<Exit, Failure> {
    let stop = interrupt::catch();
    let (listen, port) = (spec.listen, spec.port);
    let observer = ObserveServer::start(listen, port, spec.token)
        .map_err(|e| Failure::argument("--listen", format!("cannot listen on {listen}: {e}")))?;
    let counted = match observer.source() {
        (SynSource::Capture, _) => "a packet capture".to_owned(),
        (_, because) => format!("the kernel's counters, as {}", because.unwrap_or("it is so")),
    };
    stdio::write(|out| {
        writeln!(out, "listening on {}", observer.address())?;
        writeln!(out, "SYNs to port {port} are counted by {counted}")
    })?;
    machine::wait_for_stop(stop);
    let stats = observer.stop();
    stdio::write(|out| {
        let (clients, windows) = (stats.clients, stats.windows);
        writeln!(out, "clients {clients}, windows {windows}, refused {}", stats.refused)
    })?;
    Ok(Exit::Fine)
}

fn parse_listen(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("'{text}' is no ADDR:PORT, such as 127.0.0.1:9300 or [::1]:0"))
}
