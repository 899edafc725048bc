//! `knee serve`: reference servers.

mod http;
mod latency;
mod qotd;
mod secure;
mod udp;

use crate::failure::{Exit, Failure};
use crate::stdout;
use crate::whole_file::OutputPlace;
use clap::{Args, Subcommand};
use knee_engine::interrupt;
use serde::Serialize;
use std::fmt;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Run a reference server, whose behaviour is known exactly
#[derive(Args, Clone, Debug)]
#[command(arg_required_else_help = true)]
pub struct RawServe {
    #[command(subcommand)]
    kind: RawServeKind,
}

#[derive(Clone, Debug, Subcommand)]
enum RawServeKind {
    Http(http::RawServeHttp),
    Qotd(qotd::RawServeQotd),
    Udp(udp::RawServeUdp),
    #[command(alias = "bulk")]
    Latency(latency::RawServeLatency),
}

/// A server that cannot be wrong, and where it tells what it did.
#[derive(Debug)]
pub enum ServeSpec {
    /// `knee serve http`.
    Http(http::HttpService),
    /// `knee serve qotd`.
    Qotd(qotd::QotdService),
    /// `knee serve udp`.
    Udp(udp::UdpService),
    /// `knee serve latency`.
    Latency(latency::LatencyService),
}

impl RawServe {
    /// What is to be served.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        match self.kind {
            RawServeKind::Http(raw) => raw.resolve().map(ServeSpec::Http),
            RawServeKind::Qotd(raw) => raw.resolve().map(ServeSpec::Qotd),
            RawServeKind::Udp(raw) => raw.resolve().map(ServeSpec::Udp),
            RawServeKind::Latency(raw) => raw.resolve().map(ServeSpec::Latency),
        }
    }
}

/// Serves until a signal ends it.
pub fn execute(spec: ServeSpec) -> Result<Exit, Failure> {
    match spec {
        ServeSpec::Http(service) => http::execute(service),
        ServeSpec::Qotd(service) => qotd::execute(service),
        ServeSpec::Udp(service) => udp::execute(service),
        ServeSpec::Latency(service) => latency::execute(service),
    }
}

/// What ends a server.
struct Signals(&'static AtomicBool);

/// From here on SIGTERM and Ctrl-C are waited for.
fn until_signal() -> Result<Signals, Failure> {
    let stop = interrupt::install()
        .map_err(|e| Failure::input(format!("SIGTERM cannot be handled: {e}")))?;
    Ok(Signals(stop))
}

impl Signals {
    /// Says where the server listens, and waits for a signal.
    fn wait(&self, address: impl fmt::Display) -> Result<(), Failure> {
        stdout::write(|out| writeln!(out, "listening on {address}"))?;
        while !self.0.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(20));
        }
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
    fn tell(self, stats: &impl Serialize, text: &str) -> Result<(), Failure> {
        let document = serde_json::to_string(stats).map(|json| json + "\n");
        let document = document.map_err(|e| Failure::argument("--json", e))?;
        let show = |text: &str| stdout::write(|out| out.write_all(text.as_bytes()));
        match self {
            Stats::Text => show(text),
            Stats::Json => show(&document),
            Stats::TextAndFile(place) => {
                let written = place.write(|out| out.write_all(document.as_bytes()));
                written.and(show(text))
            }
        }
    }
}
