//! A station of one worker, whose response times are known by theory and by its own log.

use super::contender::{
    BARE_SPIN, Contender, KNEE_EPOLL, KNEE_EPOLL_UNSTAMPED, KNEE_URING, LineValues, OPEN_LOOPS,
    OfferedRate,
};
use super::lab::Lab;
use super::process;
use super::round::{Contest, MarkdownTable, Turn, column, ratio, spread};
use std::path::Path;

const RATE_PER_S: f64 = 5_000.0;
const SERVICE_S: f64 = 120e-6;
/// Loopback, wake-ups and the server's own work, beyond the station's ideal time.
const TRANSPORT_US: f64 = 60.0;
/// Enough that no request waits for one.
const CONNECTIONS: usize = 256;
/// A handshake takes a thousand times as long as a connection in clear: with few, what they delay at
/// the begin is beyond neither percentile.
const CONNECTIONS_TLS: usize = 32;

/// Constant arrivals: a generator that bunches its requests makes the station queue, and then
/// reports its own doing as the server's.
///
/// # Errors
/// A contender or the server fails.
pub fn run_dm1(lab: &Lab) -> Result<String, String> {
    let values = LineValues::of(lab.seconds(10.0)).with_rate(OfferedRate::Constant(RATE_PER_S));
    let contest = Contest {
        who: "generator",
        contenders: OPEN_LOOPS,
        values: values.with("connections", CONNECTIONS),
        factor: 1,
    };
    let station = "http --listen 127.0.0.1:0 --size 1294 --workers 1 --service exp(120us)";
    let rounds = contest.measure(lab, &|_| lab.serve_knee(station), || Ok(()))?;
    let p99 = |t: &Turn<()>| Some(t.response().p99_us);
    let columns = [
        column("p50 µs", 0, |t| Some(t.response().p50_us)),
        column("p90 µs", 0, |t| Some(t.response().p90_us)),
        column("p99 µs", 0, p99),
        ratio("p99 against spin", p99, BARE_SPIN.name),
    ];
    let ideal = [0.5, 0.9, 0.99].map(|q| dm1_quantile_us(RATE_PER_S, 1.0 / SERVICE_S, q));
    let theory = [("theory", 0.0), ("theory and 60 µs of transport", TRANSPORT_US)];
    let theory = theory.map(|(name, plus)| {
        let [p50, p90, p99] = ideal.map(|us| format!("{:.0}", us + plus));
        vec![name.into(), p50, p90, p99, "–".into()]
    });
    Ok(format!(
        "## D/M/1: constant arrivals at a station whose answer is known\n\n\
         Constant {RATE_PER_S}/s offered to `knee serve http --workers 1 --service 'exp(120us)'` \
         (utilisation 0.6); response times as each generator reports them.\n\n{}",
        contest.show(lab, &columns, &theory, &rounds)?
    ))
}

/// A report may be longer than the log by the way over the loopback.
const MAY_DIFFER_US: f64 = 15.0;
const MAY_DIFFER_SHARE: f64 = 0.02;

const UTILISATIONS: [f64; 3] = [0.3, 0.6, 0.85];
const SERVICES: [&str; 2] = ["exp(120us)", "fixed(120us)"];
const GENERATORS: [Contender; 3] = [KNEE_EPOLL, KNEE_URING, KNEE_EPOLL_UNSTAMPED];

/// What is spoken, for the second table.
#[derive(Clone, Copy)]
struct Protocol {
    name: &'static str,
    is_tls: bool,
    /// The generator's options.
    options: &'static str,
}

const fn protocol(name: &'static str, is_tls: bool, options: &'static str) -> Protocol {
    Protocol { name, is_tls, options }
}

const PROTOCOLS: [Protocol; 4] = [
    protocol("HTTP/1.1", false, ""),
    protocol("HTTP/1.1 over TLS 1.3", true, "--http1.1 --insecure"),
    protocol("HTTP/2", false, "--http2-prior-knowledge"),
    protocol("HTTP/2 over TLS 1.3", true, "--http2 --insecure"),
];

/// What is offered to which station.
#[derive(Clone, Copy)]
struct Case {
    arrivals: &'static str,
    service: &'static str,
    utilisation: f64,
    protocol: Protocol,
}

/// Percentiles of response times as the station logged them, in microseconds.
struct RequestLog {
    p50_us: f64,
    p90_us: f64,
}

/// Medians and 90th percentiles beside the station's own, over several utilisations, and over
/// several protocols.
///
/// # Errors
/// A contender or the server fails.
pub fn run_truth(lab: &Lab) -> Result<String, String> {
    let mut loads = Vec::new();
    let mut protocols = Vec::new();
    for arrivals in ["constant", "poisson"] {
        let case =
            |service, utilisation, protocol| Case { arrivals, service, utilisation, protocol };
        for service in SERVICES {
            loads.extend(UTILISATIONS.map(|u| case(service, u, PROTOCOLS[0])));
        }
        protocols.extend(PROTOCOLS.map(|p| case(SERVICES[0], UTILISATIONS[1], p)));
    }
    Ok(format!(
        "## Truth: what knee reports against the station's log of each request\n\n\
         `knee serve http --workers 1 --service S --log FILE`: from the kernel's receive timestamp \
         of a request to the end of its service. Beyond it knee's report has the way over the \
         loopback, once; without timestamps also the time until the generator woke. Permitted: \
         {MAY_DIFFER_US} µs and {MAY_DIFFER_SHARE} of the log's figure, for p50 and p90.\n\n\
         {}\nThe same with what else is spoken: D/M/1 and M/M/1 (`S` is `{}`, utilisation {}). \
         Records and frames are taken apart before the service begins, and made after it has \
         ended: both are in the report only.\n\n{}",
        truth_table(lab, &loads, &GENERATORS)?,
        SERVICES[0],
        UTILISATIONS[1],
        truth_table(lab, &protocols, &GENERATORS[..2])?,
    ))
}

fn truth_table(lab: &Lab, cases: &[Case], generators: &[Contender]) -> Result<String, String> {
    let mut table = MarkdownTable::new(&[
        "arrivals",
        "service",
        "utilisation",
        "protocol",
        "generator",
        "p50 µs of the log",
        "p50 beyond it",
        "p90 µs of the log",
        "p90 beyond it",
        "permitted",
    ]);
    for case in cases {
        let file = lab.scratch("truth.csv");
        let Protocol { is_tls, options, .. } = case.protocol;
        let line = format!(
            "http --listen 127.0.0.1:0 --workers 1 --service {} {} --log {}",
            case.service,
            if is_tls { "--tls" } else { "" },
            file.display()
        );
        let per_s = (case.utilisation / SERVICE_S).round();
        let rate = match case.arrivals {
            "constant" => OfferedRate::Constant(per_s),
            _ => OfferedRate::Poisson(per_s),
        };
        let (scheme, connections) =
            if is_tls { ("https", CONNECTIONS_TLS) } else { ("http", CONNECTIONS) };
        let values = LineValues::of(lab.seconds(3.0))
            .with_rate(rate)
            .with("connections", connections)
            .with("url", format!("{scheme}://127.0.0.1:{{port}} {options}"));
        let contest = Contest { who: "generator", contenders: generators, values, factor: 1 };
        let read = || RequestLog::read(&file);
        for one in contest.measure(lab, &|_| lab.serve_knee(&line), read)? {
            let cell =
                |figure: fn(&Turn<RequestLog>) -> f64, digits| spread(&one.each(figure), digits);
            let permitted = |us: f64| MAY_DIFFER_US + MAY_DIFFER_SHARE * us;
            let permitted_p50 = one.each(|t| permitted(t.at_server.p50_us));
            let permitted_p90 = one.each(|t| permitted(t.at_server.p90_us));
            table.row(&[
                case.arrivals.into(),
                case.service.into(),
                case.utilisation.to_string(),
                case.protocol.name.into(),
                one.contender.name.into(),
                cell(|t| t.at_server.p50_us, 0),
                cell(|t| t.response().p50_us - t.at_server.p50_us, 1),
                cell(|t| t.at_server.p90_us, 0),
                cell(|t| t.response().p90_us - t.at_server.p90_us, 1),
                format!("{}, {}", spread(&permitted_p50, 0), spread(&permitted_p90, 0)),
            ]);
        }
    }
    Ok(table.finish())
}

/// Quantile of the response time in D/M/1, in microseconds. It is exponential with rate μ(1 − σ),
/// where σ is the root below 1 of σ = exp(−(1 − σ)μ/λ) (Kleinrock, Queueing Systems I, 6.4).
fn dm1_quantile_us(lambda: f64, mu: f64, q: f64) -> f64 {
    let next = |sigma: f64| (-(1.0 - sigma) * mu / lambda).exp();
    let sigma = (0..1_000).fold(0.0, |sigma, _| next(sigma));
    -(1.0 - q).ln() / (mu * (1.0 - sigma)) * 1e6
}

impl RequestLog {
    /// Reads the log that `knee serve http --log` wrote.
    fn read(file: &Path) -> Result<RequestLog, String> {
        RequestLog::parse(&process::read(file)?).map_err(|e| format!("{}: {e}", file.display()))
    }

    fn parse(text: &str) -> Result<RequestLog, String> {
        let rows = process::log_columns(text, ["arrival_ns", "end_ns"])?;
        let mut times_us: Vec<f64> =
            rows.iter().map(|[arrival, end]| (end - arrival) as f64 / 1e3).collect();
        times_us.sort_by(f64::total_cmp);
        let quantile = |q: f64| times_us.get((times_us.len() as f64 * q) as usize).copied();
        match (quantile(0.5), quantile(0.9)) {
            (Some(p50_us), Some(p90_us)) => Ok(RequestLog { p50_us, p90_us }),
            _ => Err("no request was logged".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_theory_of_dm1() {
        let ideal = [0.5, 0.9, 0.99].map(|q| dm1_quantile_us(5_000.0, 1.0 / 120e-6, q).round());
        assert_eq!(ideal, [123.0, 409.0, 818.0]);
    }

    #[test]
    fn a_log_is_read_by_the_names_of_its_columns() {
        let rows: Vec<String> = (0..100).map(|k| format!("x,{},{}", 1_000 * k, 1_000)).collect();
        let text = format!("c,end_ns,arrival_ns\n{}\n", rows.join("\n"));
        let log = RequestLog::parse(&text).unwrap();
        assert_eq!((log.p50_us, log.p90_us), (49.0, 89.0));
        assert!(RequestLog::parse("a,b\n1,2\n").is_err());
        assert!(RequestLog::parse("arrival_ns,end_ns\n").is_err());
    }
}
