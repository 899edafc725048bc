//! The reference HTTP server by itself: `serve_http ADDR:PORT [WORKERS SERVICE_US]`, until its
//! standard input ends; then it prints what it did.

use knee_core::law::Law;
use knee_core::time::Nanos;
use knee_engine::serve::http::{HttpServer, HttpServerSpec, parse_listen};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut spec = HttpServerSpec::default();
    if let Some(listen) = arguments.first() {
        spec.listen = parse_listen(listen)?;
    }
    if let [_, workers, service_us] = &arguments[..] {
        spec.workers = Some(workers.parse()?);
        spec.service = Law::Exp(Nanos::from_micros(service_us.parse()?));
    }
    let server = HttpServer::start(spec)?;
    println!("listening on {}", server.address());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    print!("{}", server.stop());
    Ok(())
}
