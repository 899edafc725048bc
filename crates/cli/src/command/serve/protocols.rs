//! The reference servers of `run ws://` and `run dns://`.

use super::{ServeSpec, StationArgs, StatsArgs};
use crate::args::{SeedArgs, listen_address, within};
use crate::failure::{Exit, Failure};
use crate::whole_file::OutputPlace;
use clap::Args;
use knee_engine::sys::socket::Address;
use knee_load::law::Law;
use knee_load::spec::{Rate, parse_rate};
use knee_serve::dns::{DNS_ARRIVALS_MAX, DnsServerSpec};
use knee_serve::http::parse_listen;
use knee_serve::ws::WsServerSpec;
use std::net::SocketAddr;

/// Serve WebSocket: echo with a known service time, fan-out, or messages at a rate
///
/// Prints 'listening on ADDR:PORT' when ready, serves until SIGTERM, SIGHUP or Ctrl-C, then prints
/// its statistics. With --workers it is a queueing station, as knee serve http is.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  \
        knee serve ws --workers 4 --service 'exp(1ms)'",
    after_long_help = "Examples:\n  \
        knee serve ws --listen 127.0.0.1:0\n  \
        knee serve ws --workers 4 --service 'exp(1ms)'\n  \
        knee serve ws --fan-out\n  \
        knee serve ws --publish 100\n\n\
        Exit codes: 0 served and stopped; 2 bad arguments, or it cannot listen there."
)]
pub struct RawServeWs {
    /// Listening address; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8090")]
    #[arg(value_parser = parse_listen)]
    listen: Address,

    #[command(flatten)]
    station: StationArgs,

    /// Send each message to all clients, and not only to the one that sent it
    #[arg(long)]
    fan_out: bool,

    /// Messages per second to all clients, each with the time at which it left
    #[arg(long, value_name = "N", value_parser = parse_rate)]
    publish: Option<Rate>,

    #[command(flatten)]
    seed: SeedArgs,

    #[command(flatten)]
    stats: StatsArgs,
}

impl RawServeWs {
    /// Settles the options.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        let server = WsServerSpec {
            listen: self.listen,
            workers: self.station.workers(),
            service: self.station.service.unwrap_or(Law::ZERO),
            fans_out: self.fan_out,
            publish: self.publish,
            seed: self.seed.seed(),
        };
        let stats = self.stats.resolve()?;
        Ok(ServeSpec::new(move || {
            let (listen, seed) = (server.listen.to_string(), server.seed);
            let stop = super::until_signal();
            let server =
                knee_serve::ws::start(server).map_err(|e| super::cannot_listen(&listen, &e))?;
            stop.wait(server.address())?;
            let counts = server.stop();
            stats.write(&counts, &format!("{counts}seed        {seed}\n"))?;
            Ok(Exit::Fine)
        }))
    }
}

/// Serve DNS: a fixed zone with a known service time, over UDP and TCP
///
/// Prints 'listening on ADDR:PORT' when ready, serves until SIGTERM, SIGHUP or Ctrl-C, then prints
/// its statistics. The zone is example.com: each name in it has A and AAAA records, and example.com
/// has SOA and NS. Other types have no records, and other names do not exist (NXDOMAIN). An answer
/// over UDP has at most 512 bytes, or as many as the query permits (EDNS), up to 1,232. One that
/// does not fit is truncated: it has no records, and the same query over TCP has them all. Anyone
/// who reaches the server is answered.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  \
        knee serve dns --workers 4 --service 'exp(1ms)'",
    after_long_help = "Examples:\n  \
        knee serve dns --listen 127.0.0.1:0\n  \
        knee serve dns --workers 4 --service 'exp(1ms)'\n  \
        knee serve dns --records 40\n\n\
        Exit codes: 0 served and stopped; 2 bad arguments, or it cannot listen there."
)]
pub struct RawServeDns {
    /// Listening address, UDP and TCP; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:5300")]
    #[arg(value_parser = |text: &str| listen_address(text, "127.0.0.1:5300"))]
    listen: SocketAddr,

    /// A records of each name, and as many AAAA records, 1 to 250; 40 do not fit into 512 bytes
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = within::<u8>(1, 250))]
    records: u8,

    #[command(flatten)]
    station: StationArgs,

    #[command(flatten)]
    seed: SeedArgs,

    /// File for arrival times of queries, in nanoseconds since the start, one per line
    #[arg(long, value_name = "FILE")]
    arrivals: Option<String>,

    #[command(flatten)]
    stats: StatsArgs,
}

impl RawServeDns {
    /// Settles the options and opens the files.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        let arrivals = self.arrivals.map(|path| OutputPlace::open("--arrivals", &path));
        let arrivals = arrivals.transpose()?;
        let server = DnsServerSpec {
            listen: self.listen,
            records: self.records,
            workers: self.station.workers(),
            service: self.station.service.unwrap_or(Law::ZERO),
            seed: self.seed.seed(),
            arrivals_max: arrivals.as_ref().map_or(0, |_| DNS_ARRIVALS_MAX),
        };
        let stats = self.stats.resolve()?;
        Ok(ServeSpec::new(move || {
            let seed = server.seed;
            let stop = super::until_signal();
            let server = knee_serve::dns::start(server)?;
            stop.wait(server.address())?;
            let served = server.stop();
            arrivals.map_or(Ok(()), |place| place.write(|out| served.write_arrivals(out)))?;
            stats.write(&served, &format!("{served}seed        {seed}\n"))?;
            Ok(Exit::Fine)
        }))
    }
}
