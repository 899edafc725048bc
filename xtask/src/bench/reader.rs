//! What contenders print, as a [`ContenderReport`]. An error names the number that is missing.

use super::contender::{ContenderReport, ResponseTimes};
use serde_json::Value;

/// Output that is JSON.
pub fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|e| format!("no JSON: {e}"))
}

/// The number at a path such as `/trials/0/completed`.
pub fn number(value: &Value, path: &str) -> Result<f64, String> {
    value.pointer(path).and_then(Value::as_f64).ok_or(format!("no number at {path}"))
}

/// A report of `knee run`.
pub fn knee(out: &str) -> Result<ContenderReport, String> {
    let report = &json(out)?;
    let at = |path: &str| number(report, &format!("/trials/0/{path}"));
    let response = |q: &str| {
        let figure = format!("response_time_ns/{q}");
        // What was measured is the upper end, where the generator may have changed a figure.
        let ns = at(&figure).or_else(|_| at(&format!("response_time_ns/ranges/{q}/at_most")));
        // A short run on a busy host has too few responses for some figures.
        let is_undetermined = report.pointer(&format!("/trials/0/{figure}")) == Some(&Value::Null);
        let ns = if is_undetermined { ns.or(Ok(f64::NAN)) } else { ns };
        ns.map(|ns| ns / 1e3)
    };
    Ok(ContenderReport {
        requests: at("completed")?,
        seconds: at("duration_ns")? / 1e9,
        // What the end of the run cut off is no failure.
        errors: at("attempted")? - at("outcomes/ok")? - at("outcomes/in_flight").unwrap_or(0.0),
        valid: Some(report["verdict"] == "valid"),
        response: Some(ResponseTimes {
            mean_us: Some(response("mean")?),
            p50_us: response("p50")?,
            p90_us: response("p90")?,
            p99_us: response("p99")?,
        }),
        peak_rss_bytes: at("generator/peak_rss_bytes").ok(),
        resumed: at("protocol/tls/handshakes_resumed").ok(),
        ..ContenderReport::default()
    })
}

/// What the script of [`super::sessions`] prints.
pub fn k6(out: &str) -> Result<ContenderReport, String> {
    let summary = &json(out)?;
    let at = |name: &str| number(summary, &format!("/{name}"));
    Ok(ContenderReport::new(at("requests")?, at("seconds")?, at("errors")?))
}

/// A report of ghz, whose times are in nanoseconds.
pub fn ghz(out: &str) -> Result<ContenderReport, String> {
    let report = &json(out)?;
    let requests = number(report, "/count")?;
    let errors = requests - number(report, "/statusCodeDistribution/OK")?;
    Ok(ContenderReport::new(requests, number(report, "/total")? / 1e9, errors))
}

/// The line of a bare loop.
pub fn bare(out: &str) -> Result<ContenderReport, String> {
    let line = &json(out)?;
    let response = number(line, "/response_p50_us").ok().map(|p50_us| ResponseTimes {
        mean_us: None,
        p50_us,
        p90_us: number(line, "/response_p90_us").unwrap_or_default(),
        p99_us: number(line, "/response_p99_us").unwrap_or_default(),
    });
    let report = ContenderReport::new(number(line, "/requests")?, number(line, "/seconds")?, 0.0);
    Ok(ContenderReport { response, ..report })
}

/// `  N requests in 1.00s, …`, `  Socket errors: connect 0, read 0, …`, `  Non-2xx …: N` and, with
/// `--latency`, lines such as `     50%   81.81us`; wrk2 writes `50.000%`.
pub fn wrk(out: &str) -> Result<ContenderReport, String> {
    let words: Vec<&str> = line_with(out, " requests in ")?.split_whitespace().collect();
    let seconds = words.get(3).and_then(|w| micros(w.trim_end_matches(',')));
    let sum_of_numbers = |line: &str| -> f64 {
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse::<f64>().ok()).sum()
    };
    let socket = out.lines().find_map(|l| l.trim().strip_prefix("Socket errors:"));
    let status = out.lines().find_map(|l| l.trim().strip_prefix("Non-2xx or 3xx responses:"));
    let percentile = |names: [&str; 2]| {
        let mut lines = out.lines().map(|l| l.split_whitespace().collect::<Vec<_>>());
        lines.find_map(|l| (l.len() == 2 && names.contains(&l[0])).then(|| micros(l[1]))?)
    };
    let response = || {
        Some(ResponseTimes {
            mean_us: None,
            p50_us: percentile(["50%", "50.000%"])?,
            p90_us: percentile(["90%", "90.000%"])?,
            p99_us: percentile(["99%", "99.000%"])?,
        })
    };
    Ok(ContenderReport {
        requests: words.first().and_then(|w| w.parse().ok()).ok_or("no count of requests")?,
        seconds: seconds.ok_or("no length")? / 1e6,
        errors: socket.map_or(0.0, sum_of_numbers) + status.map_or(0.0, sum_of_numbers),
        response: response(),
        ..ContenderReport::default()
    })
}

/// `Complete requests:`, `Time taken for tests:` and `Failed requests:`.
pub fn ab(out: &str) -> Result<ContenderReport, String> {
    let [requests, seconds, errors] =
        ["Complete requests:", "Time taken for tests:", "Failed requests:"]
            .map(|label| number_after(out, label));
    Ok(ContenderReport::new(requests?, seconds?, errors?))
}

/// `  Queries completed:    N (100.00%)`, `  Queries lost:`, `  Response codes:       NOERROR N (…`
/// and `  Run time (s):         1.003495`.
pub fn dnsperf(out: &str) -> Result<ContenderReport, String> {
    let after = |label: &str| number_after(out, label);
    let requests = after("Queries completed:")?;
    // Without any success the code is not listed.
    let ok = after("NOERROR").unwrap_or(0.0);
    let errors = after("Queries lost:")? + requests - ok;
    Ok(ContenderReport::new(requests, after("Run time (s):")?, errors))
}

/// `finished in 1.00s, …` and `requests: N total, N started, N done, N succeeded, N failed, …`.
pub fn h2load(out: &str) -> Result<ContenderReport, String> {
    let finished = line_with(out, "finished in ")?.trim_start_matches("finished in ");
    let seconds = micros(finished.split(',').next().unwrap_or_default()).ok_or("no length")? / 1e6;
    let requests = line_with(out, "requests: ")?.trim_start_matches("requests: ");
    let count = |what: &str| {
        let part = requests.split(", ").find_map(|part| part.strip_suffix(what));
        part.and_then(|n| n.trim().parse::<f64>().ok()).ok_or(format!("no number {what}"))
    };
    Ok(ContenderReport::new(count("succeeded")?, seconds, count("failed")?))
}

/// `--output-format json`.
pub fn oha(out: &str) -> Result<ContenderReport, String> {
    let report = &json(out)?;
    let us = |q: &str| number(report, &format!("/latencyPercentiles/{q}")).map(|s| s * 1e6);
    let seconds = number(report, "/summary/total")?;
    let counts = |group: &str| -> f64 {
        let map = report[group].as_object();
        map.map_or(0.0, |map| map.values().filter_map(Value::as_f64).sum())
    };
    Ok(ContenderReport {
        requests: counts("statusCodeDistribution"),
        seconds,
        // Requests cut off by the end of the run are no failures.
        errors: counts("errorDistribution")
            - number(report, "/errorDistribution/aborted due to deadline").unwrap_or(0.0),
        response: Some(ResponseTimes {
            mean_us: number(report, "/summary/average").ok().map(|s| s * 1e6),
            p50_us: us("p50")?,
            p90_us: us("p90")?,
            p99_us: us("p99")?,
        }),
        ..ContenderReport::default()
    })
}

/// `-o json`.
pub fn bombardier(out: &str) -> Result<ContenderReport, String> {
    let report = &json(out)?;
    let at = |name: &str| number(report, &format!("/result/{name}"));
    let errors = at("req4xx")? + at("req5xx")? + at("others")?;
    Ok(ContenderReport::new(at("req2xx")?, at("timeTakenSeconds")?, errors))
}

/// The datagrams of a report of `knee udp`.
pub fn knee_udp(out: &str) -> Result<ContenderReport, String> {
    let report = json(out)?;
    let trial = |path: &str| number(&report, &format!("/trials/0/{path}"));
    let sent =
        trial("ledger/intended")? - trial("ledger/not_attempted")? - trial("ledger/send_errors")?;
    let pacing = |q: &str| trial(&format!("offered/pacing_error_ns/{q}")).map(|ns| ns / 1e3);
    let pacing_us = pacing("p50").and_then(|p50| Ok([p50, pacing("p99")?])).ok();
    let report = ContenderReport::new(sent, trial("duration_ns")? / 1e9, 0.0);
    Ok(ContenderReport { pacing_us, ..report })
}

/// The datagrams of `iperf3 -u -J`.
pub fn iperf3_udp(out: &str) -> Result<ContenderReport, String> {
    let report = json(out)?;
    let stream = |name: &str| number(&report, &format!("/end/streams/0/udp/{name}"));
    Ok(ContenderReport::new(stream("packets")?, stream("seconds")?, 0.0))
}

/// The connections that `knee overload` started.
pub fn knee_started(out: &str) -> Result<ContenderReport, String> {
    per_second(out, "/trials/0/offered/achieved_per_s")
}

/// The connections of `knee overload` that were served.
pub fn knee_served(out: &str) -> Result<ContenderReport, String> {
    per_second(out, "/trials/0/throughput_per_s")
}

fn per_second(out: &str, path: &str) -> Result<ContenderReport, String> {
    let report = json(out)?;
    let seconds = number(&report, "/trials/0/duration_ns")? / 1e9;
    Ok(ContenderReport::new(number(&report, path)? * seconds, seconds, 0.0))
}

fn line_with<'a>(out: &'a str, part: &str) -> Result<&'a str, String> {
    out.lines().find(|line| line.contains(part)).ok_or(format!("no line with {part:?}"))
}

fn number_after(out: &str, label: &str) -> Result<f64, String> {
    let (_, rest) = line_with(out, label)?.split_once(label).unwrap_or_default();
    let word = rest.split_whitespace().next().unwrap_or_default();
    word.parse().map_err(|_| format!("no number after {label}"))
}

/// Microseconds of `81.81us`, `1.96ms`, `1.00s`, `2.00m`.
fn micros(text: &str) -> Option<f64> {
    let text = text.trim();
    let units = [("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 6e7), ("h", 3.6e9)];
    units.iter().find_map(|(unit, us)| Some(text.strip_suffix(unit)?.parse::<f64>().ok()? * us))
}

#[cfg(test)]
mod tests;
