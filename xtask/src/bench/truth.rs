//! What knee reports against what the station logged of each request.

use super::lab::{Lab, Measured};
use super::peer::{Load, Peer, Rate, Response};
use super::round::{self, Contender};
use super::stats::spread;
use super::table::Table;
use std::fs;
use std::path::Path;

const SERVICE_S: f64 = 120e-6;
/// Enough that none waits for one. A handshake takes a thousand times as long as a connection in
/// clear: with few, what they delay at the begin is beyond neither percentile.
const CONNECTIONS: usize = 256;
const CONNECTIONS_TLS: usize = 32;
/// A report may be longer than the log by the way over the loopback.
const MAY_DIFFER_US: f64 = 15.0;
const MAY_DIFFER_SHARE: f64 = 0.02;

const UTILISATIONS: [f64; 3] = [0.3, 0.6, 0.85];
const SERVICES: [&str; 2] = ["exp(120us)", "fixed(120us)"];
const PEERS: [Peer; 3] = [Peer::KneeEpoll, Peer::KneeUring, Peer::KneeEpollUnstamped];

/// What is spoken, for the second table: its name, the server's options, the generator's.
const SPOKEN: [(&str, &str, &str); 4] = [
    ("HTTP/1.1", "", ""),
    ("HTTP/1.1 over TLS 1.3", "--tls", "--http1.1 --insecure"),
    ("HTTP/2", "", "--http2-prior-knowledge"),
    ("HTTP/2 over TLS 1.3", "--tls", "--http2 --insecure"),
];

/// What is offered to which station.
#[derive(Clone, Copy)]
struct Case {
    arrivals: &'static str,
    service: &'static str,
    utilisation: f64,
    spoken: (&'static str, &'static str, &'static str),
}

/// Percentiles of response times as the station logged them, in microseconds.
struct Logged {
    p50_us: f64,
    p90_us: f64,
}

/// Medians and 90th percentiles beside the station's own, over several utilisations, and over
/// several protocols.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let mut loads = Vec::new();
    let mut protocols = Vec::new();
    for arrivals in ["constant", "poisson"] {
        let case = |service, utilisation, spoken| Case {
            arrivals,
            service,
            utilisation,
            spoken,
        };
        for service in SERVICES {
            loads.extend(UTILISATIONS.map(|u| case(service, u, SPOKEN[0])));
        }
        protocols.extend(SPOKEN.map(|spoken| case(SERVICES[0], UTILISATIONS[1], spoken)));
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
        table(lab, &loads, &PEERS)?,
        SERVICES[0],
        UTILISATIONS[1],
        table(lab, &protocols, &PEERS[..2])?,
    ))
}

fn table(lab: &Lab, cases: &[Case], peers: &[Peer]) -> Result<String, String> {
    let mut table = Table::new(&[
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
        for contender in contenders(lab, *case, peers)? {
            let mut row: Vec<String> = vec![case.arrivals.into(), case.service.into()];
            row.extend([case.utilisation.to_string(), case.spoken.0.into()]);
            row.extend(cells(&contender));
            table.row(&row);
        }
    }
    Ok(table.finish())
}

fn contenders(
    lab: &Lab,
    case: Case,
    peers: &[Peer],
) -> Result<Vec<Contender<(Measured, Logged)>>, String> {
    let file = lab.scratch("truth.csv");
    let (_, served, asked) = case.spoken;
    let words = |of: &str| of.split_whitespace().map(String::from).collect::<Vec<_>>();
    let per_s = (case.utilisation / SERVICE_S).round();
    let rate = match case.arrivals {
        "constant" => Rate::Constant(per_s),
        _ => Rate::Poisson(per_s),
    };
    round::alternate(lab, 1, peers, |peer| {
        let service = case.service;
        let line =
            format!("serve http --listen 127.0.0.1:0 --workers 1 --service {service} {served}");
        let mut args = words(&line);
        args.extend(["--log".into(), file.display().to_string()]);
        let server = lab.serve(&lab.knee, &args)?;
        let load = Load {
            port: server.port,
            connections: match served {
                "--tls" => CONNECTIONS_TLS,
                _ => CONNECTIONS,
            },
            seconds: lab.seconds(3.0),
            rate: Some(rate),
        };
        let mut args = peer.arguments(&load).unwrap_or_default();
        if served == "--tls" {
            args = args
                .iter()
                .map(|a| a.replace("http://", "https://"))
                .collect();
        }
        args.extend(words(asked));
        let measured = lab.measure_line(peer, &args, load.seconds)?;
        server.stop()?;
        Ok((measured, Logged::read(&file)?))
    })
}

fn cells(c: &Contender<(Measured, Logged)>) -> Vec<String> {
    let response = |m: &Measured| m.sample.response.unwrap_or_default();
    let beyond = |of: fn(&Response) -> f64, log: fn(&Logged) -> f64| {
        spread(&c.each(|(m, l)| of(&response(m)) - log(l)), 1)
    };
    let permitted = c.each(|(_, log)| MAY_DIFFER_US + MAY_DIFFER_SHARE * log.p50_us);
    let permitted_p90 = c.each(|(_, log)| MAY_DIFFER_US + MAY_DIFFER_SHARE * log.p90_us);
    vec![
        c.label().to_owned(),
        spread(&c.each(|(_, log)| log.p50_us), 0),
        beyond(|r| r.p50_us, |l| l.p50_us),
        spread(&c.each(|(_, log)| log.p90_us), 0),
        beyond(|r| r.p90_us, |l| l.p90_us),
        format!("{}, {}", spread(&permitted, 0), spread(&permitted_p90, 0)),
    ]
}

impl Logged {
    /// Reads the log that `knee serve http --log` wrote.
    fn read(file: &Path) -> Result<Logged, String> {
        let text = fs::read_to_string(file).map_err(|e| format!("{}: {e}", file.display()))?;
        Logged::parse(&text).map_err(|e| format!("{}: {e}", file.display()))
    }

    fn parse(text: &str) -> Result<Logged, String> {
        let mut lines = text.lines().filter(|line| !line.starts_with('#'));
        let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
        let place = |name: &str| names.iter().position(|known| *known == name);
        let (Some(arrival), Some(end)) = (place("arrival_ns"), place("end_ns")) else {
            return Err(format!("no arrival_ns and end_ns in {names:?}"));
        };
        let mut times_us: Vec<f64> = lines
            .filter_map(|line| {
                let cells: Vec<&str> = line.split(',').collect();
                let at = |place: usize| cells.get(place)?.parse::<f64>().ok();
                Some((at(end)? - at(arrival)?) / 1e3)
            })
            .collect();
        times_us.sort_by(f64::total_cmp);
        let quantile = |q: f64| times_us.get((times_us.len() as f64 * q) as usize).copied();
        match (quantile(0.5), quantile(0.9)) {
            (Some(p50_us), Some(p90_us)) => Ok(Logged { p50_us, p90_us }),
            _ => Err("no request was logged".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_is_read_by_the_names_of_its_columns() {
        let rows: Vec<String> = (0..100)
            .map(|k| format!("x,{},{}", 1_000 * k, 1_000))
            .collect();
        let text = format!("c,end_ns,arrival_ns\n{}\n", rows.join("\n"));
        let log = Logged::parse(&text).unwrap();
        assert_eq!((log.p50_us, log.p90_us), (49.0, 89.0));
        assert!(Logged::parse("a,b\n1,2\n").is_err());
        assert!(Logged::parse("arrival_ns,end_ns\n").is_err());
    }
}
