//! The reference server in this process, for a sweep without a URL.

use crate::failure::Failure;
use knee_core::law::Law;
use knee_core::time::Nanos;
use knee_engine::serve::http::{HttpServer, HttpServerSpec};
use knee_engine::sys::socket::Address;
use std::net::{Ipv4Addr, SocketAddr};

/// Workers of the station.
const WORKERS: u32 = 4;
/// What each of them takes for a request.
const SERVICE: Nanos = Nanos::from_millis(1);

/// A running station of known behaviour; it ends when it is dropped.
#[derive(Debug)]
pub struct Demo {
    server: HttpServer,
}

impl Demo {
    /// Starts it on a free port of the loopback.
    pub fn start() -> Result<Demo, Failure> {
        let spec = HttpServerSpec {
            listen: Address::Tcp(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))),
            workers: Some(WORKERS),
            service: Law::Fixed(SERVICE),
            ..HttpServerSpec::default()
        };
        let server = HttpServer::start(spec).map_err(|e| {
            Failure::nothing_measured(format!("the reference server cannot start: {e}"))
        })?;
        Ok(Demo { server })
    }

    /// Where it answers.
    pub fn url(&self) -> String {
        format!("http://{}/", self.server.address())
    }

    /// What a newcomer should know about it.
    pub fn announcement(&self) -> String {
        let most = f64::from(WORKERS) / SERVICE.as_secs_f64();
        format!(
            "no URL given: sweeping a reference server of knee's own, {WORKERS} workers with \
             {SERVICE} of service each (at most {most}/s), on {}",
            self.server.address()
        )
    }
}
