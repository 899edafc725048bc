//! Closed loops: what a request costs the generator, and what a connection. New connections: how
//! many one core makes, answered or not.

use super::contender::{
    BenchProgram, Contender, KNEE_EPOLL, KNEE_EPOLL_UNSTAMPED, KNEE_URING, LineValues, bare, knee,
    peer,
};
use super::lab::Lab;
use super::reader;
use super::round::{Contest, MarkdownTable, column, cost, rate, ratio, spread};

const CONNECTIONS: usize = 64;
/// The host may change its speed from second to second: short turns, and three times the rounds,
/// so that most ratios compare like with like.
const TURN_S: f64 = 1.0;
const ROUNDS_FACTOR: usize = 3;

pub const BARE_EPOLL: Contender =
    bare("bare epoll loop", "closed_epoll", "{port} {connections} {seconds}");
pub const BARE_EPOLL_STAMPED: Contender =
    bare("bare epoll loop, timestamps", "closed_epoll", "{port} {connections} {seconds} stamped");
pub const WRK: Contender =
    peer("wrk", "-t1 -c{connections} -d{whole}s --latency {url}", reader::wrk);

/// Those that are compared most closely stand next to each other.
const CONTENDERS: &[Contender] = &[
    bare("bare io_uring loop", "closed_uring", "{port} {connections} {seconds}"),
    bare(
        "bare io_uring loop, multishot",
        "closed_uring",
        "{port} {connections} {seconds} multishot",
    ),
    BARE_EPOLL,
    BARE_EPOLL_STAMPED,
    KNEE_EPOLL_UNSTAMPED,
    KNEE_EPOLL,
    WRK,
    KNEE_URING,
    knee(
        "knee (io_uring, no timestamps)",
        "run {url} -c {connections} -t 1 -d {ms}ms --warmup 0s --backend io_uring --timestamps off \
         --json - --quiet",
    ),
    Contender {
        name: "ab -k",
        ..peer("ab", "-k -q -c {connections} -t {whole} -n 100000000 {url}", reader::ab)
    },
    Contender {
        name: "h2load --h1",
        ..peer("h2load", "--h1 -t1 -c{connections} -D{whole} {url}", reader::h2load)
    },
    peer("oha", "--no-tui --output-format json -z {ms}ms -c {connections} {url}", reader::oha),
];

/// Requests per second and processor time per request.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let contest = Contest {
        who: "generator",
        contenders: CONTENDERS,
        values: LineValues::of(lab.seconds(TURN_S)).with("connections", CONNECTIONS),
        factor: ROUNDS_FACTOR,
    };
    let columns = [
        column("requests/s", 0, rate),
        column("CPU s per million", 2, cost),
        column("of it user", 2, |t| Some(t.cpu_user_s / t.sample.requests * 1e6)),
        ratio("CPU against wrk", cost, WRK.name),
        ratio("CPU against bare epoll", cost, BARE_EPOLL.name),
    ];
    Ok(format!(
        "## Closed loop: what a request costs\n\n\
         {CONNECTIONS} keep-alive connections; `bench/server_epoll.c` answers with 1,294 bytes. \
         Every generator's core is full here, so that what it costs is what it reaches; knee says \
         so of itself, and calls such a run INVALID as a measurement of the server.\n\n{}",
        contest.run(lab, &|_| lab.serve_lean(), &columns)?
    ))
}

/// Few connections, to know what the process needs without them.
const FEW: usize = 10;

/// Memory per connection and errors.
///
/// # Errors
/// A contender or the server fails.
pub fn run_connections(lab: &Lab) -> Result<String, String> {
    let connections = if lab.small { 200 } else { 10_000 };
    let values = |connections| LineValues::of(lab.seconds(5.0)).with("connections", connections);
    let mut table = MarkdownTable::new(&["generator", "requests/s", "RSS bytes per connection"]);
    for contender in [KNEE_EPOLL, KNEE_URING] {
        let (mut rates, mut bytes) = (Vec::new(), Vec::new());
        for _ in 0..lab.rounds {
            let few = lab.measure_at(lab.serve_lean()?, &contender, &values(FEW))?;
            let many = lab.measure_at(lab.serve_lean()?, &contender, &values(connections))?;
            let [few_bytes, many_bytes] =
                [&few, &many].map(|m| m.sample.peak_rss_bytes.unwrap_or_default());
            rates.push(many.per_s());
            bytes.push((many_bytes - few_bytes) / (connections - FEW) as f64);
        }
        table.row(&[contender.name.to_owned(), spread(&rates, 0), spread(&bytes, 0)]);
    }
    Ok(format!(
        "## {connections} connections\n\n\
         Closed loop. Memory is peak RSS beyond that of a run with {FEW} connections, over the \
         connections more; what the kernel keeps per socket is not in it.\n\n{}",
        table.finish()
    ))
}

/// Time after which an unanswered connect is abandoned.
const PATIENCE_MS: u64 = 500;
/// Connects kept at once: more than a core can start in that time, so that it is what limits.
const DESCRIPTORS: usize = 19_000;
/// A flood is steady only once the first connects are abandoned.
const FLOOD_S: f64 = 3.0;

const BARE_LOOP: &str = "bare loop";

/// Against a server that never answers a SYN.
const FLOODING: &[Contender] = &[
    bare(BARE_LOOP, "connect_flood", "{port} {seconds} {patience} {descriptors}"),
    Contender {
        program: BenchProgram::KneeUnserved,
        read: reader::knee_started,
        ..knee(
            "knee",
            "overload {url} --sclients 1 --descriptors {descriptors} --connect-timeout \
             {patience}ms -d {seconds}s --warmup 0s --observe none --json -",
        )
    },
];

/// Against a server that answers and closes as `{close}` says; the peers know one way to close.
const SERVED: &[Contender] = &[
    bare(BARE_LOOP, "connect_served", "{port} {connections} {seconds} {close}"),
    Contender {
        read: reader::knee_served,
        ..knee(
            "knee",
            "overload {url} --simple {connections} -d {seconds}s --close {close} --warmup 0s \
             --observe none --json -",
        )
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
pub fn run_overload(lab: &Lab) -> Result<String, String> {
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
        table(lab, "silent", "never answered", FLOODING, flood)?,
        table(lab, "serve", "served, rst", SERVED, served("rst"))?,
        table(lab, "serve", "served, fin", SERVED, served("fin"))?,
    ))
}

/// Lets them take turns against `connect_server` in this mode.
fn table(
    lab: &Lab,
    mode: &str,
    title: &str,
    contenders: &[Contender],
    values: LineValues,
) -> Result<String, String> {
    let serve =
        |_: &Contender| lab.serve(BenchProgram::Bare("connect_server"), &format!("0 {mode}"));
    let columns = [
        column("connections/s", 0, rate),
        ratio("against the bare loop", rate, BARE_LOOP),
        column("CPU s per million", 2, cost),
    ];
    Contest { who: title, contenders, values, factor: 1 }.run(lab, &serve, &columns)
}
