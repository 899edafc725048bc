//! The contenders: how each is told what to do and how its answer is read.

use serde_json::Value;

/// A generator of load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    /// knee over epoll.
    KneeEpoll,
    /// knee over io_uring.
    KneeUring,
    /// knee over epoll without the kernel's receive timestamps.
    KneeEpollUnstamped,
    /// knee over io_uring without them.
    KneeUringUnstamped,
    /// knee over epoll with a scenario.
    KneeSession,
    /// k6.
    K6,
    /// wrk.
    Wrk,
    /// wrk2, where its binary has that name.
    Wrk2,
    /// ApacheBench.
    Ab,
    /// h2load, speaking HTTP/1.1.
    H2load,
    /// h2load, speaking HTTP/2.
    H2loadStreams,
    /// oha.
    Oha,
    /// bombardier.
    Bombardier,
    /// `bench/closed_epoll.c`.
    BareEpoll,
    /// The same with the kernel's receive timestamps.
    BareEpollStamped,
    /// `bench/closed_uring.c`.
    BareUring,
    /// The same with multishot receives.
    BareMultishot,
    /// `bench/closed_h2.c`.
    BareStreams,
    /// `crates/engine/examples/closed_rustls.rs`.
    BareRustls,
    /// `bench/open_spin.c`.
    BareSpin,
    /// `bench/open_hybrid.c`.
    BareHybrid,
}

/// What a contender is to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// The server's port on 127.0.0.1.
    pub port: u16,
    /// Connections.
    pub connections: usize,
    /// Length.
    pub seconds: f64,
    /// Arrivals; closed loop without.
    pub rate: Option<Rate>,
}

/// An open loop's arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Evenly spaced, per second.
    Constant(f64),
    /// A Poisson process, per second.
    Poisson(f64),
}

/// What a contender says of its run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Responses.
    pub requests: f64,
    /// Length of the run.
    pub seconds: f64,
    /// Requests that failed.
    pub errors: f64,
    /// Its own verdict on the run, where it has one.
    pub valid: Option<bool>,
    /// Response times in microseconds, where it tells them.
    pub response: Option<Response>,
    /// Its peak memory, where it tells it.
    pub peak_rss_bytes: Option<f64>,
    /// TLS handshakes that resumed a session, where it tells them.
    pub resumed: Option<f64>,
}

/// Response times in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Response {
    /// Mean, where it is told.
    pub mean_us: Option<f64>,
    /// Median.
    pub p50_us: f64,
    /// 90th percentile.
    pub p90_us: f64,
    /// 99th percentile.
    pub p99_us: f64,
}

impl Peer {
    /// The name in tables.
    pub fn name(self) -> &'static str {
        match self {
            Peer::KneeEpoll => "knee (epoll)",
            Peer::KneeUring => "knee (io_uring)",
            Peer::KneeEpollUnstamped => "knee (epoll, no timestamps)",
            Peer::KneeUringUnstamped => "knee (io_uring, no timestamps)",
            Peer::KneeSession => "knee (epoll), sessions",
            Peer::K6 => "k6",
            Peer::Wrk => "wrk",
            Peer::Wrk2 => "wrk2",
            Peer::Ab => "ab -k",
            Peer::H2load => "h2load --h1",
            Peer::H2loadStreams => "h2load",
            Peer::Oha => "oha",
            Peer::Bombardier => "bombardier",
            Peer::BareEpoll => "bare epoll loop",
            Peer::BareEpollStamped => "bare epoll loop, timestamps",
            Peer::BareStreams => "bare HTTP/2 loop",
            Peer::BareRustls => "bare rustls loop",
            Peer::BareUring => "bare io_uring loop",
            Peer::BareMultishot => "bare io_uring loop, multishot",
            Peer::BareSpin => "bare spin loop",
            Peer::BareHybrid => "bare hybrid loop",
        }
    }

    /// The binary's name.
    pub fn program(self) -> &'static str {
        match self {
            Peer::K6 => "k6",
            Peer::Wrk => "wrk",
            Peer::Wrk2 => "wrk2",
            Peer::Ab => "ab",
            Peer::H2load | Peer::H2loadStreams => "h2load",
            Peer::Oha => "oha",
            Peer::Bombardier => "bombardier",
            Peer::BareEpoll | Peer::BareEpollStamped => "closed_epoll",
            Peer::BareStreams => "closed_h2",
            Peer::BareRustls => "closed_rustls",
            Peer::BareUring | Peer::BareMultishot => "closed_uring",
            Peer::BareSpin => "open_spin",
            Peer::BareHybrid => "open_hybrid",
            _ => "knee",
        }
    }

    /// Whether it is knee.
    pub fn is_knee(self) -> bool {
        use Peer::{KneeEpoll, KneeEpollUnstamped, KneeSession, KneeUring, KneeUringUnstamped};
        matches!(
            self,
            KneeEpoll | KneeUring | KneeEpollUnstamped | KneeUringUnstamped | KneeSession
        )
    }

    /// Whether it is one of the loops that make only the calls.
    pub fn is_bare(self) -> bool {
        self.name().starts_with("bare ")
    }

    /// Whether it has measured when it ends so. knee's 3 says that it calls its run invalid.
    pub fn accepts(self, exit_code: Option<i32>) -> bool {
        exit_code == Some(0) || (self.is_knee() && exit_code == Some(3))
    }

    /// The command line for a load; none where it cannot make it.
    pub fn arguments(self, load: &Load) -> Option<Vec<String>> {
        let Load {
            port,
            connections,
            seconds,
            rate,
        } = *load;
        let url = format!("http://127.0.0.1:{port}/");
        // The peers that take whole seconds only.
        let whole = seconds.round().max(1.0);
        let ms = (seconds * 1e3).round();
        let line = match (self, rate) {
            (knee, _) if knee.is_knee() => {
                let backend = match knee {
                    Peer::KneeEpoll => "epoll",
                    Peer::KneeEpollUnstamped => "epoll --timestamps off",
                    Peer::KneeUringUnstamped => "io_uring --timestamps off",
                    _ => "io_uring",
                };
                let arrivals = match rate {
                    None => String::new(),
                    Some(Rate::Constant(r)) => format!(" --rate {r} --arrival constant"),
                    Some(Rate::Poisson(r)) => format!(" --rate {r} --arrival poisson"),
                };
                format!(
                    "run {url} -c {connections} -t 1 -d {ms}ms --warmup 0s --backend {backend}\
                     {arrivals} --json - --quiet"
                )
            }
            (Peer::Wrk, None) => format!("-t1 -c{connections} -d{whole}s --latency {url}"),
            (Peer::Wrk2, Some(Rate::Constant(r))) => {
                format!("-t1 -c{connections} -d{whole}s -R{r} --latency {url}")
            }
            (Peer::Ab, None) => format!("-k -q -c {connections} -t {whole} -n 100000000 {url}"),
            (Peer::H2load, None) => format!("--h1 -t1 -c{connections} -D{whole} {url}"),
            (Peer::Oha, None) => {
                format!("--no-tui --output-format json -z {ms}ms -c {connections} {url}")
            }
            (Peer::Oha, Some(Rate::Constant(r))) => {
                format!("--no-tui --output-format json -z {ms}ms -c {connections} -q {r} {url}")
            }
            (Peer::BareEpoll | Peer::BareUring, None) => format!("{port} {connections} {seconds}"),
            (Peer::BareEpollStamped, None) => format!("{port} {connections} {seconds} stamped"),
            (Peer::BareMultishot, None) => format!("{port} {connections} {seconds} multishot"),
            (Peer::BareSpin | Peer::BareHybrid, Some(Rate::Constant(r))) => {
                format!("{port} {connections} {r} {seconds}")
            }
            (Peer::BareSpin | Peer::BareHybrid, Some(Rate::Poisson(r))) => {
                format!("{port} {connections} {r} {seconds} poisson")
            }
            _ => return None,
        };
        Some(line.split(' ').map(String::from).collect())
    }

    /// Reads what it printed.
    ///
    /// # Errors
    /// The number that is not there.
    pub fn parse(self, out: &str) -> Result<Sample, String> {
        match self {
            knee if knee.is_knee() => parse_knee(&json(out)?),
            Peer::Wrk | Peer::Wrk2 => parse_wrk(out),
            Peer::Ab => parse_ab(out),
            Peer::K6 => parse_k6(&json(out)?),
            Peer::H2load | Peer::H2loadStreams => parse_h2load(out),
            Peer::Oha => parse_oha(&json(out)?),
            Peer::Bombardier => parse_bombardier(&json(out)?),
            _ => parse_bare(&json(out)?),
        }
    }
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))
}

/// The number at a path such as `/trials/0/completed`.
pub fn number(value: &Value, path: &str) -> Result<f64, String> {
    value
        .pointer(path)
        .and_then(Value::as_f64)
        .ok_or(format!("no number at {path}"))
}

fn parse_knee(report: &Value) -> Result<Sample, String> {
    let at = |path: &str| number(report, &format!("/trials/0/{path}"));
    // What was measured is the upper end, where the generator may have changed a figure.
    let response = |q: &str| {
        at(&format!("response_time_ns/{q}"))
            .or_else(|_| at(&format!("response_time_ns/ranges/{q}/at_most")))
            .map(|ns| ns / 1e3)
    };
    Ok(Sample {
        requests: at("completed")?,
        seconds: at("duration_ns")? / 1e9,
        // What the end of the run cut off is no failure.
        errors: at("attempted")? - at("outcomes/ok")? - at("outcomes/in_flight").unwrap_or(0.0),
        valid: Some(report["verdict"] == "valid"),
        response: Some(Response {
            mean_us: Some(response("mean")?),
            p50_us: response("p50")?,
            p90_us: response("p90")?,
            p99_us: response("p99")?,
        }),
        peak_rss_bytes: at("generator/peak_rss_bytes").ok(),
        resumed: at("protocol/tls/handshakes_resumed").ok(),
    })
}

/// What the script of [`super::sessions`] prints.
fn parse_k6(summary: &Value) -> Result<Sample, String> {
    let at = |name: &str| number(summary, &format!("/{name}"));
    Ok(Sample {
        requests: at("requests")?,
        seconds: at("seconds")?,
        errors: at("errors")?,
        ..Sample::default()
    })
}

fn parse_bare(line: &Value) -> Result<Sample, String> {
    let response = number(line, "/response_p50_us")
        .ok()
        .map(|p50_us| Response {
            mean_us: None,
            p50_us,
            p90_us: number(line, "/response_p90_us").unwrap_or_default(),
            p99_us: number(line, "/response_p99_us").unwrap_or_default(),
        });
    Ok(Sample {
        requests: number(line, "/requests")?,
        seconds: number(line, "/seconds")?,
        response,
        ..Sample::default()
    })
}

/// `  N requests in 1.00s, …`, `  Socket errors: connect 0, read 0, …`, `  Non-2xx …: N` and, with
/// `--latency`, lines such as `     50%   81.81us`; wrk2 writes `50.000%`.
fn parse_wrk(out: &str) -> Result<Sample, String> {
    let total = line_with(out, " requests in ")?;
    let words: Vec<&str> = total.split_whitespace().collect();
    let seconds = words.get(3).and_then(|w| micros(w.trim_end_matches(',')));
    let sum_of_numbers = |line: &str| -> f64 {
        line.split(|c: char| !c.is_ascii_digit())
            .filter_map(|n| n.parse::<f64>().ok())
            .sum()
    };
    let socket = out
        .lines()
        .find_map(|l| l.trim().strip_prefix("Socket errors:"));
    let status = out
        .lines()
        .find_map(|l| l.trim().strip_prefix("Non-2xx or 3xx responses:"));
    let percentile = |names: [&str; 2]| {
        let mut lines = out
            .lines()
            .map(|l| l.split_whitespace().collect::<Vec<_>>());
        lines.find_map(|l| (l.len() == 2 && names.contains(&l[0])).then(|| micros(l[1]))?)
    };
    let response = || {
        Some(Response {
            mean_us: None,
            p50_us: percentile(["50%", "50.000%"])?,
            p90_us: percentile(["90%", "90.000%"])?,
            p99_us: percentile(["99%", "99.000%"])?,
        })
    };
    Ok(Sample {
        requests: words
            .first()
            .and_then(|w| w.parse().ok())
            .ok_or("no count of requests")?,
        seconds: seconds.ok_or("no length")? / 1e6,
        errors: socket.map_or(0.0, sum_of_numbers) + status.map_or(0.0, sum_of_numbers),
        response: response(),
        ..Sample::default()
    })
}

fn parse_ab(out: &str) -> Result<Sample, String> {
    let after = |label: &str| {
        let rest = line_with(out, label)?.trim().trim_start_matches(label);
        let word = rest.split_whitespace().next().unwrap_or_default();
        word.parse::<f64>()
            .map_err(|_| format!("no number after {label}"))
    };
    Ok(Sample {
        requests: after("Complete requests:")?,
        seconds: after("Time taken for tests:")?,
        errors: after("Failed requests:")?,
        ..Sample::default()
    })
}

/// `finished in 1.00s, …` and `requests: N total, N started, N done, N succeeded, N failed, …`.
fn parse_h2load(out: &str) -> Result<Sample, String> {
    let finished = line_with(out, "finished in ")?.trim_start_matches("finished in ");
    let seconds = micros(finished.split(',').next().unwrap_or_default()).ok_or("no length")? / 1e6;
    let requests = line_with(out, "requests: ")?.trim_start_matches("requests: ");
    let count = |what: &str| {
        let part = requests
            .split(", ")
            .find_map(|part| part.strip_suffix(what));
        part.and_then(|n| n.trim().parse::<f64>().ok())
            .ok_or(format!("no number {what}"))
    };
    let errors = count("failed")?;
    Ok(Sample {
        requests: count("succeeded")?,
        seconds,
        errors,
        ..Sample::default()
    })
}

fn parse_oha(report: &Value) -> Result<Sample, String> {
    let us = |q: &str| number(report, &format!("/latencyPercentiles/{q}")).map(|s| s * 1e6);
    let seconds = number(report, "/summary/total")?;
    let counts = |group: &str| -> f64 {
        let map = report[group].as_object();
        map.map_or(0.0, |map| map.values().filter_map(Value::as_f64).sum())
    };
    Ok(Sample {
        requests: counts("statusCodeDistribution"),
        seconds,
        // Requests cut off by the end of the run are no failures.
        errors: counts("errorDistribution")
            - number(report, "/errorDistribution/aborted due to deadline").unwrap_or(0.0),
        response: Some(Response {
            mean_us: number(report, "/summary/average").ok().map(|s| s * 1e6),
            p50_us: us("p50")?,
            p90_us: us("p90")?,
            p99_us: us("p99")?,
        }),
        ..Sample::default()
    })
}

fn parse_bombardier(report: &Value) -> Result<Sample, String> {
    let at = |name: &str| number(report, &format!("/result/{name}"));
    Ok(Sample {
        requests: at("req2xx")?,
        seconds: at("timeTakenSeconds")?,
        errors: at("req4xx")? + at("req5xx")? + at("others")?,
        ..Sample::default()
    })
}

fn line_with<'a>(out: &'a str, part: &str) -> Result<&'a str, String> {
    out.lines()
        .find(|line| line.contains(part))
        .ok_or(format!("no line with {part:?}"))
}

/// Microseconds of `81.81us`, `1.96ms`, `1.00s`, `2.00m`.
fn micros(text: &str) -> Option<f64> {
    let text = text.trim();
    let units = [
        ("us", 1.0),
        ("ms", 1e3),
        ("s", 1e6),
        ("m", 6e7),
        ("h", 3.6e9),
    ];
    units
        .iter()
        .find_map(|(unit, us)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * us))
}

#[cfg(test)]
mod tests;
