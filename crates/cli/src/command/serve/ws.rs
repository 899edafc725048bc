//! `knee serve ws`: the reference server of `run ws://`.

use super::station::StationArgs;
use super::{ServeSpec, StatsArgs};
use crate::args::SeedArgs;
use crate::failure::{Exit, Failure};
use clap::Args;
use knee_engine::serve::http::parse_listen;
use knee_engine::serve::ws::{WsServer, WsServerSpec};
use knee_engine::sys::socket::Address;
use knee_load::law::Law;
use knee_load::spec::{Rate, parse_rate};

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
            service: self.station.service().unwrap_or(Law::ZERO),
            fans_out: self.fan_out,
            publish: self.publish,
            seed: self.seed.seed(),
        };
        let stats = self.stats.resolve()?;
        Ok(ServeSpec::new(move || {
            let (listen, seed) = (server.listen.to_string(), server.seed);
            let stop = super::until_signal()?;
            let server = WsServer::start(server).map_err(|e| super::cannot_listen(&listen, &e))?;
            stop.wait(server.address())?;
            let counts = server.stop();
            stats.tell(&counts, &format!("{counts}seed        {seed}\n"))?;
            Ok(Exit::Fine)
        }))
    }
}
