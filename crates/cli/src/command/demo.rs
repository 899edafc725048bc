//! The reference server in this process, for a command without a URL.

use crate::args::TargetArgs;
use crate::failure::Failure;
use crate::machine::Machine;
use knee_engine::OpenFiles;
use knee_engine::sys::socket::Address;
use knee_load::law::Law;
use knee_load::time::Nanos;
use knee_serve::http::{AcceptPolicy, HttpServer, HttpServerSpec};
use std::net::{Ipv4Addr, SocketAddr};

/// Workers of the station that a sweep loads.
const WORKERS: u32 = 4;
/// What each of them takes for a request.
const SERVICE: Nanos = Nanos::from_millis(1);

/// What the server that an overload is offered serves per second, as the one in the paper did
/// (Banga and Druschel, USITS 1997).
const CAPACITY: u64 = 130;
/// What it keeps until it is accepted.
const BACKLOG: u32 = 128;

/// What the worker takes for a request whose queue has no limit.
const QUEUED_SERVICE: Nanos = Nanos::from_millis(4);

/// A running server of known behaviour; it ends when it is dropped.
#[derive(Debug)]
pub struct DemoServer {
    server: HttpServer,
    known_as: String,
}

impl DemoServer {
    /// Starts a station for a sweep on a free port of the loopback.
    pub fn station() -> Result<DemoServer, Failure> {
        let most = f64::from(WORKERS) / SERVICE.as_secs_f64();
        let known_as = format!(
            "sweeping a built-in reference server, {WORKERS} workers with {SERVICE} of \
             service each (at most {most}/s)"
        );
        DemoServer::start(
            HttpServerSpec {
                workers: Some(WORKERS),
                service: Law::Fixed(SERVICE),
                ..HttpServerSpec::default()
            },
            known_as,
        )
    }

    /// Starts a server that a small load is too much for, on a free port of the loopback.
    pub fn small() -> Result<DemoServer, Failure> {
        let known_as = format!(
            "overloading a built-in reference server with a capacity of {CAPACITY}/s and a \
             backlog of {BACKLOG}"
        );
        let second = 1_000_000_000;
        DemoServer::start(
            HttpServerSpec {
                workers: Some(1),
                service: Law::Fixed(Nanos((second + CAPACITY / 2) / CAPACITY)),
                accept: AcceptPolicy::PerWorker,
                backlog: BACKLOG,
                ..HttpServerSpec::default()
            },
            known_as,
        )
    }

    /// Starts a worker that serves whatever waits, on a free port of the loopback: retries keep it
    /// overloaded.
    pub fn queue() -> Result<DemoServer, Failure> {
        let most = 1.0 / QUEUED_SERVICE.as_secs_f64();
        let known_as = format!(
            "the trigger hits a built-in reference server, one worker with {QUEUED_SERVICE} of \
             service (at most {most}/s) and a queue without a limit"
        );
        DemoServer::start(
            HttpServerSpec {
                workers: Some(1),
                service: Law::Fixed(QUEUED_SERVICE),
                ..HttpServerSpec::default()
            },
            known_as,
        )
    }

    fn start(spec: HttpServerSpec, known_as: String) -> Result<DemoServer, Failure> {
        let spec = HttpServerSpec {
            listen: Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            ..spec
        };
        let server = knee_serve::http::start(spec).map_err(|e| {
            Failure::nothing_measured(format!("the reference server cannot start: {e}"))
        })?;
        Ok(DemoServer { server, known_as })
    }

    /// What [`DemoServer::small`] serves per second, and keeps until it is accepted.
    pub const SMALL: (f64, u32) = (CAPACITY as f64, BACKLOG);

    /// The server that `start` starts, in the place of the URL that was not given, and what is left
    /// of this machine for the load. A connection to a server in this process takes two of its
    /// descriptors. Where a URL was given, no server and all of the machine.
    pub fn stand_in(
        target: &mut TargetArgs,
        machine: &Machine,
        start: fn() -> Result<DemoServer, Failure>,
    ) -> Result<(Option<DemoServer>, Machine), Failure> {
        if target.is_given() {
            return Ok((None, *machine));
        }
        let demo = start()?;
        target.url = Some(demo.url());
        target.route.goes_straight = true;
        let left = Machine {
            open_files: OpenFiles { per_connection: 2, ..machine.open_files },
            ..*machine
        };
        Ok((Some(demo), left))
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        format!("http://{}/", self.server.address())
    }

    /// What a newcomer should know about it.
    pub fn announcement(&self) -> String {
        let (known_as, address) = (&self.known_as, self.server.address());
        format!("no URL given: {known_as}, on {address}")
    }
}
