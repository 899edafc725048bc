//! What a query of DNS costs, and whether each leaves when it should.

use super::contender::{Contender, LineValues, OfferedRate, knee, peer};
use super::lab::{Lab, Measured};
use super::open::{columns, compare};
use super::process;
use super::reader;
use super::round::{self, ServedTurn};
use super::table::{column, command_lines, contender_table, ratio};
use crate::shell::write;
use std::path::Path;

const TURN_S: f64 = 2.0;
const ROUNDS_FACTOR: usize = 2;
const QUERIES: usize = 100;

const OPEN_TURN_S: f64 = 3.0;
const RATE_PER_S: f64 = 1_000.0;

const DNSPERF: Contender = peer(
    "dnsperf",
    "-s 127.0.0.1 -p {port} -d {names} -c 1 -T 1 -q {queries} -l {whole}",
    reader::dnsperf,
);

const CLOSED: [Contender; 3] = [
    knee(
        "knee (epoll)",
        "run dns://127.0.0.1:{port} --targets {names} --vusers {queries} -c 1 -t 1 -d {ms}ms \
         --warmup 0s --backend epoll --json - --quiet",
    ),
    knee(
        "knee (io_uring)",
        "run dns://127.0.0.1:{port} --targets {names} --vusers {queries} -c 1 -t 1 -d {ms}ms \
         --warmup 0s --backend io_uring --json - --quiet",
    ),
    DNSPERF,
];

const OPEN: [Contender; 3] = [
    knee(
        "knee (epoll)",
        "run dns://127.0.0.1:{port} --targets {names}{arrivals} -c 1 -t 1 -d {ms}ms --warmup 0s \
         --backend epoll --json - --quiet",
    ),
    knee(
        "knee (io_uring)",
        "run dns://127.0.0.1:{port} --targets {names}{arrivals} -c 1 -t 1 -d {ms}ms --warmup 0s \
         --backend io_uring --json - --quiet",
    ),
    Contender {
        line: "-s 127.0.0.1 -p {port} -d {names} -c 1 -T 1 -Q {rate} -l {whole}",
        ..DNSPERF
    },
];

/// Queries over UDP from one source port, in a closed loop and at a constant rate.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let names = lab.scratch("names");
    write(&names, "www.example.com A\nexample.com SOA\n")?;
    Ok(closed(lab, &names)? + &open(lab, &names)?)
}

fn closed(lab: &Lab, names: &Path) -> Result<String, String> {
    let server = lab.serve_knee("dns --listen 127.0.0.1:0")?;
    let values = LineValues::of(lab.seconds(TURN_S))
        .with("port", server.port)
        .with("names", names.display())
        .with("queries", QUERIES);
    let present = lab.present(&CLOSED);
    let rounds = round::alternate(lab, ROUNDS_FACTOR, &present, |c| lab.measure(c, &values))?;
    server.stop()?;
    let rate = |m: &Measured| Some(m.per_s());
    let cost = |m: &Measured| Some(m.cpu_s_per_million());
    let per_core = |m: &Measured| Some(1e6 / m.cpu_s_per_million());
    let columns = [
        column("queries/s", 0, rate),
        column("CPU s per million", 2, cost),
        column("queries per s of a core", 0, per_core),
        ratio("against dnsperf", per_core, DNSPERF.name),
    ];
    Ok(format!(
        "## DNS: what a query costs\n\n\
         `knee serve dns` answers over UDP; {QUERIES} queries at once from one source port. Goal: \
         at least dnsperf's rate per core.\n\n{}{}{}",
        contender_table("generator", &columns, &[], &rounds),
        lab.left_out(&CLOSED),
        command_lines(CLOSED.iter().map(|c| c.shown(&values)))
    ))
}

fn open(lab: &Lab, names: &Path) -> Result<String, String> {
    let file = lab.scratch("arrivals");
    let values = |port| {
        let values = LineValues::of(lab.seconds(OPEN_TURN_S));
        let values = values.with_rate(OfferedRate::Constant(RATE_PER_S));
        values.with("port", port).with("names", names.display())
    };
    let present = lab.present(&OPEN);
    let rounds = round::alternate(lab, 1, &present, |contender| {
        let line = format!("dns --listen 127.0.0.1:0 --arrivals {}", file.display());
        let server = lab.serve_knee(&line)?;
        let measured = lab.measure(contender, &values(server.port))?;
        server.stop()?;
        let times: Result<Vec<i64>, _> = process::read(&file)?.lines().map(str::parse).collect();
        let times = times.map_err(|e| format!("{}: {e}", file.display()))?;
        Ok(ServedTurn { measured, seen: compare(&times, RATE_PER_S)? })
    })?;
    Ok(format!(
        "### {RATE_PER_S}/s\n\n\
         A constant rate from one source port. The kernel stamps each query at the server. Goal: \
         a coefficient of variation of the gaps under 0.1.\n\n{}{}",
        contender_table("generator", &columns(), &[], &rounds),
        command_lines(OPEN.iter().map(|c| c.shown(&values(5300))))
    ))
}
