//! New connections: how many one core makes, answered or not.

use super::contender::{BenchProgram, Contender, LineValues, bare, peer};
use super::lab::{Lab, Measured};
use super::table::{column, command_lines, contender_table, ratio};
use super::{reader, round};

/// Connections at once of those who wait for the answer.
const CONNECTIONS: usize = 64;
/// Time after which an unanswered connect is abandoned.
const PATIENCE_MS: u64 = 500;
/// Connects kept at once: more than a core can start in that time, so that it is what limits.
const DESCRIPTORS: usize = 19_000;
/// Short turns, as the host may change its speed from second to second.
const TURN_S: f64 = 1.0;
/// A flood is steady only once the first connects are abandoned.
const FLOOD_S: f64 = 3.0;

const BARE_LOOP: &str = "bare loop";

/// Against a server that never answers a SYN.
const FLOODING: &[Contender] = &[
    bare(BARE_LOOP, "connect_flood", "{port} {seconds} {patience} {descriptors}"),
    Contender {
        name: "knee",
        program: BenchProgram::KneeUnserved,
        line: "overload {url} --sclients 1 --descriptors {descriptors} --connect-timeout \
               {patience}ms -d {seconds}s --warmup 0s --observe none --json -",
        read: reader::knee_started,
    },
];

/// Against a server that answers and closes as `{close}` says; the peers know one way to close.
const SERVED: &[Contender] = &[
    bare(BARE_LOOP, "connect_served", "{port} {connections} {seconds} {close}"),
    Contender {
        name: "knee",
        program: BenchProgram::Knee,
        line: "overload {url} --simple {connections} -d {seconds}s --close {close} --warmup 0s \
               --observe none --json -",
        read: reader::knee_served,
    },
    peer("ab", "-q -c {connections} -t {whole} -n 100000000 {url}", reader::ab),
    peer("wrk", "-t1 -c{connections} -d{whole}s --latency -H Connection:close {url}", reader::wrk),
    peer(
        "oha",
        "--no-tui --output-format json -z {whole}s -c {connections} --disable-keepalive {url}",
        reader::oha,
    ),
];

/// Connections per second of knee, the bare loops and its peers.
///
/// # Errors
/// A contender or a server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let descriptors = if lab.small { 100 } else { DESCRIPTORS };
    let flood = LineValues::of(lab.seconds(FLOOD_S))
        .with("patience", PATIENCE_MS)
        .with("descriptors", descriptors);
    let served = |close: &str| {
        let values = LineValues::of(lab.seconds(TURN_S)).with("connections", CONNECTIONS);
        values.with("close", close)
    };
    Ok(format!(
        "## New connections: how many a core makes\n\n\
         The first table: nobody answers a SYN (`bench/connect_server.c` with a full accept \
         queue), each connect is given up after {PATIENCE_MS} ms. The others: {CONNECTIONS} at \
         once, each connects, asks, reads 1,294 bytes and closes. Ratios are to the bare loop of \
         the same round.\n\n{}{}{}",
        table(lab, "silent", "never answered", FLOODING, &flood)?,
        table(lab, "serve", "served, rst", SERVED, &served("rst"))?,
        table(lab, "serve", "served, fin", SERVED, &served("fin"))?,
    ))
}

/// Lets them take turns against one server.
fn table(
    lab: &Lab,
    mode: &str,
    title: &str,
    contenders: &[Contender],
    values: &LineValues,
) -> Result<String, String> {
    let arguments = ["0".to_string(), mode.to_string()];
    let server = lab.serve(&lab.bare.join("connect_server"), &arguments)?;
    let contenders = lab.present(contenders);
    let at_port = values.clone().with("port", server.port);
    let rounds = round::alternate(lab, 1, &contenders, |c| lab.measure(c, &at_port))?;
    server.stop()?;
    let rate = |m: &Measured| Some(m.per_s());
    let columns = [
        column("connections/s", 0, rate as fn(&Measured) -> Option<f64>),
        ratio("against the bare loop", rate, BARE_LOOP),
        column("CPU s per million", 2, |m| Some(m.cpu_s_per_million())),
    ];
    let shown = values.clone().with("port", "PORT");
    Ok(contender_table(title, &columns, &[], &rounds)
        + &command_lines(contenders.iter().map(|c| c.shown(&shown))))
}
