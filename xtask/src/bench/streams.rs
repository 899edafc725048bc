//! What a message of a stream costs.

use super::contender::{Contender, ContenderReport, LineValues, bare, knee};
use super::lab::{Lab, Measured};
use super::table::{column, command_lines, contender_table, ratio};
use super::{reader, round};

const ROUNDS_FACTOR: usize = 2;

/// Length of a stream, in seconds.
const STREAM_S: f64 = 4.0;

const fn over(name: &'static str, line: &'static str) -> Contender {
    Contender { read: messages, ..knee(name, line) }
}

const CONTENDERS: [Contender; 3] = [
    bare("bare read loop", "read_streams", "{port} {streams} {messages}"),
    over(
        "knee (epoll)",
        "run http://127.0.0.1:{port}/ --vusers {streams} -n {streams} -t 1 --warmup 0s --timeout \
         60s --backend epoll --json - --quiet",
    ),
    over(
        "knee (io_uring)",
        "run http://127.0.0.1:{port}/ --vusers {streams} -n {streams} -t 1 --warmup 0s --timeout \
         60s --backend io_uring --json - --quiet",
    ),
];

/// Messages in the place of requests.
fn messages(out: &str) -> Result<ContenderReport, String> {
    let report = reader::json(out)?;
    let requests = reader::number(&report, "/trials/0/messages/count")?;
    Ok(ContenderReport { requests, ..reader::knee(out)? })
}

/// Concurrent streams of server-sent events, each message by itself.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    let mut text = String::from(
        "## Streams: what a message costs\n\n\
         `knee serve http --stream` sends server-sent events of about 90 bytes, each in a segment \
         of its own; every stream is a connection. The bare loop counts empty lines and does \
         nothing else. Both wake up for a few messages at a time, which is most of what a message \
         costs. Goal: at most 1.5 of the bare loop.\n\n",
    );
    for (streams, per_s) in [(100, 20), (1_000, 50), (9_000, 10)] {
        text += &at(lab, streams, per_s)?;
    }
    Ok(text)
}

/// `streams` at once, of `per_s` messages per second each.
fn at(lab: &Lab, streams: usize, per_s: usize) -> Result<String, String> {
    let each = ((lab.seconds(STREAM_S) * per_s as f64) as usize).max(2);
    let gap_us = 1_000_000 / per_s;
    let law = format!("messages={each},first=fixed(500ms),gap=fixed({gap_us}us)");
    let server = lab.serve_knee(&format!("http --listen 127.0.0.1:0 --stream {law}"))?;
    let values = LineValues::of(STREAM_S)
        .with("port", server.port)
        .with("streams", streams)
        .with("messages", streams * each);
    let present = lab.present(&CONTENDERS);
    let rounds = round::alternate(lab, ROUNDS_FACTOR, &present, |c| lab.measure(c, &values))?;
    server.stop()?;
    let cost = |m: &Measured| Some(m.cpu_s_per_million());
    let columns = [
        column("messages/s", 0, |m: &Measured| Some(m.per_s())),
        column("CPU µs per message", 2, cost),
        ratio("CPU against the bare loop", cost, CONTENDERS[0].name),
    ];
    Ok(format!(
        "### {streams} streams of {per_s} messages/s\n\n{}{}{}",
        contender_table("reader", &columns, &[], &rounds),
        lab.left_out(&CONTENDERS),
        command_lines(CONTENDERS.iter().map(|c| c.shown(&values)))
    ))
}
