//! `knee serve udp`: the service that `knee udp` sends to.

use super::{ServeSpec, StatsArgs};
use crate::args::{SeedArgs, TokenArgs, listen_address, one_of, parse_positive};
use crate::command::udp::{MODES, parse_buffer, parse_cpu};
use crate::failure::{Exit, Failure};
use clap::Args;
use knee_engine::experiment::udp::service::{UdpServer, UdpServerSpec};
use knee_load::experiment::udp::ServiceMode;
use knee_load::law::Law;
use knee_load::spec::parse_law;
use knee_load::time::Nanos;
use std::net::SocketAddr;

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
            let stop = super::until_signal()?;
            let server = UdpServer::start(server)?;
            stop.wait(server.address())?;
            let served = server.stop();
            stats.tell(&served, &format!("{served}seed     {seed}\n"))?;
            Ok(Exit::Fine)
        }))
    }
}
