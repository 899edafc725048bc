//! The reference server of `run grpc://`.

use super::http::{ServerFiles, ServerTlsArgs, serve};
use super::{ServeSpec, StationArgs, StatsArgs};
use crate::args::{SeedArgs, parse_count};
use crate::failure::Failure;
use clap::Args;
use knee_engine::sys::socket::Address;
use knee_load::law::Law;
use knee_scenario::grpc::{GrpcTypes, reflection};
use knee_serve::http::{ECHO_PROTO, HttpServerSpec, STREAMS_MAX, parse_listen};
use std::sync::LazyLock;

/// Serve gRPC: an echo of all four kinds of calls, with reflection
///
/// Prints 'listening on ADDR:PORT' when ready, serves until SIGTERM, SIGHUP or Ctrl-C, then prints
/// its statistics. The service is knee.Echo; its messages have a text, a count and a status. Say
/// returns its message, and Tell returns it count times. Gather returns the last of several, and
/// Talk returns each at once. A call ends with the status that its message asks for.
#[derive(Args, Clone, Debug)]
#[command(
    after_help = "Example:\n  \
        knee serve grpc --workers 4 --service 'exp(1ms)'",
    after_long_help = "Examples:\n  \
        knee serve grpc --listen 127.0.0.1:0\n  \
        knee serve grpc --workers 4 --service 'exp(1ms)'\n  \
        knee serve grpc --tls\n\n\
        Exit codes: 0 served and stopped; 2 bad arguments, or it cannot listen there."
)]
pub struct RawServeGrpc {
    /// Listening address; port 0 picks a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:50051")]
    #[arg(value_parser = parse_listen)]
    listen: Address,

    #[command(flatten)]
    secure: ServerTlsArgs,

    /// Maximum concurrent streams of a connection
    #[arg(long, value_name = "N", value_parser = parse_count, default_value_t = STREAMS_MAX)]
    streams: u32,

    #[command(flatten)]
    station: StationArgs,

    #[command(flatten)]
    seed: SeedArgs,

    #[command(flatten)]
    stats: StatsArgs,
}

impl RawServeGrpc {
    /// Settles the options.
    pub fn resolve(self) -> Result<ServeSpec, Failure> {
        let (tls, authority) = self.secure.resolve(&self.listen)?.unzip();
        let server = HttpServerSpec {
            listen: self.listen,
            tls,
            streams_max: self.streams,
            reflect: Some(reflect),
            workers: self.station.workers(),
            service: self.station.service.unwrap_or(Law::ZERO),
            seed: self.seed.seed(),
            ..HttpServerSpec::default()
        };
        let stats = self.stats.resolve()?;
        let files = ServerFiles::default();
        Ok(ServeSpec::new(move || serve(server, authority.flatten(), files, stats)))
    }
}

/// Answers a question to reflection.
fn reflect(question: &[u8]) -> Option<Vec<u8>> {
    static SET: LazyLock<Option<Vec<u8>>> = LazyLock::new(|| {
        let read = |path: &str| match path {
            "./echo.proto" => Ok(ECHO_PROTO.to_owned()),
            _ => Err(format!("no file {path}")),
        };
        let types = GrpcTypes::from_protos(&["echo.proto".to_owned()], &[], read).ok()?;
        Some(types.to_set())
    });
    reflection::answer(SET.as_ref()?, question).ok()
}
