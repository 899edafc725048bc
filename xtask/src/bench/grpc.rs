//! What a call of gRPC costs.

use super::contender::{Contender, LineValues, knee, peer};
use super::lab::{Lab, Measured};
use super::table::{column, command_lines, contender_table, ratio};
use super::{reader, round};

const TURN_S: f64 = 2.0;
const ROUNDS_FACTOR: usize = 2;
const CALLS: usize = 32;

const GHZ: Contender = peer(
    "ghz",
    "--insecure --call knee.Echo.Say -d '{message}' -c {calls} --connections 1 --cpus 1 -z {ms}ms \
     --duration-stop wait -O json 127.0.0.1:{port}",
    reader::ghz,
);

const CONTENDERS: [Contender; 3] = [
    knee(
        "knee (epoll)",
        "run grpc://127.0.0.1:{port}/knee.Echo/Say -b '{message}' --vusers {calls} -c 1 -t 1 -d \
         {ms}ms --warmup 0s --backend epoll --json - --quiet",
    ),
    knee(
        "knee (io_uring)",
        "run grpc://127.0.0.1:{port}/knee.Echo/Say -b '{message}' --vusers {calls} -c 1 -t 1 -d \
         {ms}ms --warmup 0s --backend io_uring --json - --quiet",
    ),
    GHZ,
];

/// Unary calls over one connection.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let server = lab.serve_knee("grpc --listen 127.0.0.1:0")?;
    let values = LineValues::of(lab.seconds(TURN_S))
        .with("port", server.port)
        .with("message", r#"{"text":"hello"}"#)
        .with("calls", CALLS);
    let present = lab.present(&CONTENDERS);
    let rounds = round::alternate(lab, ROUNDS_FACTOR, &present, |c| lab.measure(c, &values))?;
    server.stop()?;
    let cost = |m: &Measured| Some(m.cpu_s_per_million());
    let columns = [
        column("calls/s", 0, |m: &Measured| Some(m.per_s())),
        column("CPU s per million", 2, cost),
        ratio("CPU against ghz", cost, GHZ.name),
    ];
    Ok(format!(
        "## gRPC: what a call costs\n\n\
         `knee serve grpc` echoes a message of 7 bytes; {CALLS} calls at once over one connection. \
         Goal: CPU per call at most 0.25 of ghz's.\n\n{}{}{}",
        contender_table("generator", &columns, &[], &rounds),
        lab.left_out(&CONTENDERS),
        command_lines(CONTENDERS.iter().map(|c| c.shown(&values)))
    ))
}
