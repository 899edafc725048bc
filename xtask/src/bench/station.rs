//! A station of one worker with exponential service: the response times are known.

use super::lab::{Lab, Measured};
use super::peer::{Load, Peer, Rate, Response, number};
use super::process::Server;
use super::round::{self, Contender};
use super::stats::{ratios, spread};
use super::table::Table;
use std::path::Path;

const RATE_PER_S: f64 = 5_000.0;
const SERVICE_S: f64 = 120e-6;
/// Loopback, wake-ups and the server's own work, beyond the station's ideal time.
const TRANSPORT_US: f64 = 60.0;
const CONNECTIONS: usize = 256;

/// Constant arrivals: a generator that bunches its requests makes the station queue, and then
/// reports its own doing as the server's.
///
/// # Errors
/// A contender or the server fails.
pub fn run_dm1(lab: &Lab) -> Result<String, String> {
    let peers = lab.present(&[
        Peer::BareSpin,
        Peer::BareHybrid,
        Peer::KneeEpoll,
        Peer::KneeUring,
        Peer::Wrk2,
        Peer::Oha,
    ]);
    let contenders = round::alternate(lab, 1, &peers, |peer| {
        let server = serve(lab, None)?;
        let measured = lab.measure(peer, &load(lab, server.port, Rate::Constant(RATE_PER_S)))?;
        server.stop()?;
        Ok(measured)
    })?;
    let ideal = [0.5, 0.9, 0.99].map(|q| dm1_quantile_us(RATE_PER_S, 1.0 / SERVICE_S, q));
    let mut table = Table::new(&[
        "generator",
        "p50 µs",
        "p90 µs",
        "p99 µs",
        "p99 against spin",
    ]);
    let cells = |plus: f64| ideal.map(|us| format!("{:.0}", us + plus));
    for (name, plus) in [
        ("theory", 0.0),
        ("theory and 60 µs of transport", TRANSPORT_US),
    ] {
        let [p50, p90, p99] = cells(plus);
        table.row(&[name.into(), p50, p90, p99, "–".into()]);
    }
    let p99_of = |c: &Contender<Measured>| c.each(|m| response(m).p99_us);
    let spin = contenders
        .iter()
        .find(|c| c.peer == Peer::BareSpin)
        .map(p99_of);
    for contender in &contenders {
        let against = spin.as_ref().map(|spin| ratios(&p99_of(contender), spin));
        table.row(&[
            contender.full_label(),
            spread(&contender.each(|m| response(m).p50_us), 0),
            spread(&contender.each(|m| response(m).p90_us), 0),
            spread(&p99_of(contender), 0),
            against.map_or("–".into(), |ratios| spread(&ratios, 2)),
        ]);
    }
    Ok(format!(
        "## D/M/1: constant arrivals at a station whose answer is known\n\n\
         Constant {RATE_PER_S}/s offered to `knee serve http --workers 1 --service 'exp(120us)'` \
         (utilisation 0.6); response times as each generator reports them.\n\n{}",
        table.finish()
    ))
}

/// Poisson arrivals: what knee reports against what the station itself logged.
///
/// # Errors
/// A contender or the server fails.
pub fn run_mm1(lab: &Lab) -> Result<String, String> {
    let file = lab.scratch("station.json");
    let peers = [Peer::KneeEpoll, Peer::KneeUring];
    let contenders = round::alternate(lab, 1, &peers, |peer| {
        let server = serve(lab, Some(&file))?;
        let measured = lab.measure(peer, &load(lab, server.port, Rate::Poisson(RATE_PER_S)))?;
        server.stop()?;
        Ok((measured, Log::read(&file)?))
    })?;
    let mut table = Table::new(&[
        "",
        "mean µs",
        "p50 µs",
        "p90 µs",
        "p99 µs",
        "CV of gaps at the station",
    ]);
    let mu_less_lambda = 1.0 / SERVICE_S - RATE_PER_S;
    let ideal = |q: f64| format!("{:.0}", -(1.0 - q).ln() / mu_less_lambda * 1e6);
    let mean = format!("{:.0}", 1e6 / mu_less_lambda);
    table.row(&[
        "theory".into(),
        mean,
        ideal(0.5),
        ideal(0.9),
        ideal(0.99),
        "1".into(),
    ]);
    for c in &contenders {
        table.row(&[
            format!("{} reports", c.label()),
            spread(&c.each(|(m, _)| response(m).mean_us.unwrap_or_default()), 0),
            spread(&c.each(|(m, _)| response(m).p50_us), 0),
            spread(&c.each(|(m, _)| response(m).p90_us), 0),
            spread(&c.each(|(m, _)| response(m).p99_us), 0),
            "–".into(),
        ]);
        table.row(&[
            "its station logged".into(),
            spread(
                &c.each(|(_, log)| log.sojourn.mean_us.unwrap_or_default()),
                0,
            ),
            spread(&c.each(|(_, log)| log.sojourn.p50_us), 0),
            spread(&c.each(|(_, log)| log.sojourn.p90_us), 0),
            spread(&c.each(|(_, log)| log.sojourn.p99_us), 0),
            spread(&c.each(|(_, log)| log.gap_cv), 3),
        ]);
    }
    Ok(format!(
        "## M/M/1: knee's report against the station's own log\n\n\
         Poisson {RATE_PER_S}/s offered to `knee serve http --workers 1 --service 'exp(120us)'`; \
         the report contains up to {TRANSPORT_US} µs of transport that the log does not.\n\n{}",
        table.finish()
    ))
}

fn load(lab: &Lab, port: u16, rate: Rate) -> Load {
    Load {
        port,
        connections: CONNECTIONS,
        seconds: lab.seconds(10.0),
        rate: Some(rate),
    }
}

fn serve(lab: &Lab, json: Option<&Path>) -> Result<Server, String> {
    let line = "serve http --listen 127.0.0.1:0 --size 1294 --workers 1 --service exp(120us)";
    let mut args: Vec<String> = line.split(' ').map(String::from).collect();
    if let Some(file) = json {
        args.extend(["--json".into(), file.display().to_string()]);
    }
    lab.serve(&lab.knee, &args)
}

fn response(measured: &Measured) -> Response {
    measured.sample.response.unwrap_or_default()
}

/// What the station logged.
struct Log {
    sojourn: Response,
    gap_cv: f64,
}

impl Log {
    fn read(file: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        let log = serde_json::from_str(&text).map_err(|e| format!("{}: {e}", file.display()))?;
        let us = |name: &str| number(&log, &format!("/station/sojourn/{name}")).map(|ns| ns / 1e3);
        let sojourn = Response {
            mean_us: Some(us("mean_ns")?),
            p50_us: us("p50_ns")?,
            p90_us: us("p90_ns")?,
            p99_us: us("p99_ns")?,
        };
        Ok(Log {
            sojourn,
            gap_cv: number(&log, "/gap_cv")?,
        })
    }
}

/// Quantile of the response time in D/M/1, in microseconds. It is exponential with rate μ(1 − σ),
/// where σ is the root below 1 of σ = exp(−(1 − σ)μ/λ) (Kleinrock, Queueing Systems I, 6.4).
fn dm1_quantile_us(lambda: f64, mu: f64, q: f64) -> f64 {
    let next = |sigma: f64| (-(1.0 - sigma) * mu / lambda).exp();
    let sigma = (0..1_000).fold(0.0, |sigma, _| next(sigma));
    -(1.0 - q).ln() / (mu * (1.0 - sigma)) * 1e6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theory_of_dm1() {
        let ideal = [0.5, 0.9, 0.99].map(|q| dm1_quantile_us(5_000.0, 1.0 / 120e-6, q).round());
        assert_eq!(ideal, [123.0, 409.0, 818.0]);
    }
}
