//! `knee serve`: reference servers, and the options that several have.

#[cfg(feature = "grpc")]
mod grpc;
mod http;
mod protocols;
mod services;

use crate::args::parse_count;
use crate::failure::{Exit, Failure};
use crate::whole_file::OutputPlace;
use crate::{machine, stdio};
use clap::{Args, Subcommand};
use knee_load::law::Law;
use knee_load::spec::parse_law;
use serde::Serialize;
use std::sync::atomic::AtomicBool;
use std::{fmt, io};

/// Run a reference server, whose behaviour is known exactly
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true)]
pub struct RawServe {
    #[command(subcommand)]
    kind: RawServeKind,
}

#[derive(Clone, Debug, Subcommand)]
enum RawServeKind {
    Http(Box<http::RawServeHttp>),
    Ws(protocols::RawServeWs),
    #[cfg(feature = "grpc")]
    Grpc(grpc::RawServeGrpc),
    Dns(protocols::RawServeDns),
    Qotd(services::RawServeQotd),
    Udp(services::RawServeUdp),
    #[command(alias = "bulk")]
    Latency(services::RawServeLatency),
}

/// A server whose options are settled and whose files are open; the call serves until a signal.
pub struct ServeSpec(Box<dyn FnOnce() -> Result<Exit, Failure>>);

impl fmt::Debug for ServeSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeSpec").finish_non_exhaustive()
    }
}

impl ServeSpec {
    fn new(serve: impl FnOnce() -> Result<Exit, Failure> + 'static) -> ServeSpec {
        ServeSpec(Box::new(serve))
    }
}

impl RawServe {
    /// Settles the options; nothing listens yet.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        match self.kind {
            RawServeKind::Http(raw) => raw.resolve(),
            RawServeKind::Ws(raw) => raw.resolve(),
            #[cfg(feature = "grpc")]
            RawServeKind::Grpc(raw) => raw.resolve(),
            RawServeKind::Dns(raw) => raw.resolve(),
            RawServeKind::Qotd(raw) => raw.resolve(),
            RawServeKind::Udp(raw) => raw.resolve(),
            RawServeKind::Latency(raw) => raw.resolve(),
        }
    }
}

/// Serves until a signal ends it.
pub fn execute(spec: ServeSpec) -> Result<Exit, Failure> {
    (spec.0)()
}

/// The signals that end a server.
struct Signals(&'static AtomicBool);

/// From here on SIGTERM and Ctrl-C are waited for.
fn until_signal() -> Signals {
    Signals(knee_engine::interrupt::catch())
}

impl Signals {
    /// Says where the server listens, and waits for a signal.
    fn wait(&self, address: impl fmt::Display) -> Result<(), Failure> {
        stdio::write(|out| writeln!(out, "listening on {address}"))?;
        machine::wait_for_stop(self.0);
        Ok(())
    }
}

fn cannot_listen(address: &str, error: &io::Error) -> Failure {
    Failure::argument("--listen", format!("cannot listen on {address}: {error}"))
}

/// Option for what a service says at its end.
#[derive(Args, Clone, Debug)]
struct StatsArgs {
    /// JSON statistics, written at the end; '-' is standard output, after the line 'listening on'
    #[arg(long, value_name = "FILE")]
    json: Option<String>,
}

impl StatsArgs {
    /// Where the statistics go; a file is checked here.
    fn resolve(&self) -> Result<Stats, Failure> {
        Ok(match self.json.as_deref() {
            None => Stats::Text,
            Some("-") => Stats::Json,
            Some(path) => Stats::TextAndFile(OutputPlace::open("--json", path)?),
        })
    }
}

/// Where a service says at its end what it served.
#[derive(Debug)]
enum Stats {
    /// Standard output, as text.
    Text,
    /// Standard output, as JSON.
    Json,
    /// Standard output as text, and a file as JSON.
    TextAndFile(OutputPlace),
}

impl Stats {
    fn write(self, stats: &impl Serialize, text: &str) -> Result<(), Failure> {
        let document = serde_json::to_string(stats).map(|json| json + "\n");
        let document = document.map_err(|e| Failure::argument("--json", e))?;
        let show = |text: &str| stdio::write(|out| out.write_all(text.as_bytes()));
        match self {
            Stats::Text => show(text),
            Stats::Json => show(&document),
            Stats::TextAndFile(place) => {
                place.write(|out| out.write_all(document.as_bytes())).and(show(text))
            }
        }
    }
}

#[derive(Args, Clone, Copy, Debug)]
pub(super) struct StationArgs {
    /// Workers behind one queue, each serving one request at a time [default: no queue, every
    /// request is answered at once; 1 with --service]
    #[arg(long, value_name = "M", value_parser = parse_count)]
    workers: Option<u32>,

    /// Service time of a request: fixed(1ms), exp(100us), uniform(1ms,2ms), lognormal(1ms,0.5)
    /// [default: 0]
    #[arg(long, value_name = "S", value_parser = parse_law)]
    service: Option<Law>,
}

impl StationArgs {
    /// The workers; `None`: every request is answered at once.
    pub(super) fn workers(self) -> Option<u32> {
        self.workers.or(self.service.map(|_| 1))
    }
}
