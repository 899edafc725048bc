//! The reference HTTP server by itself, until its standard input ends; then it prints what it did.
//! `serve_http ADDR:PORT [WORKERS LAW [per-worker]]`, such as `serve_http 127.0.0.1:0 2 exp(1ms)`.

use knee_core::spec::parse_law;
use knee_engine::serve::http::{AcceptPolicy, HttpServer, HttpServerSpec, parse_listen};
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let mut spec = HttpServerSpec::default();
    if let Some(listen) = arguments.next() {
        spec.listen = parse_listen(&listen)?;
    }
    if let Some(workers) = arguments.next() {
        spec.workers = Some(workers.parse()?);
    }
    if let Some(law) = arguments.next() {
        spec.service = parse_law(&law)?;
    }
    if arguments.next().as_deref() == Some("per-worker") {
        spec.accept = AcceptPolicy::PerWorker;
    }
    let server = HttpServer::start(spec)?;
    println!("listening on {}", server.address());
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    print!("{}", server.stop());
    Ok(())
}
