//! What a session costs: templates, an extraction and several steps, beside plain requests of the
//! same sizes, and beside scripts: the same one by knee and by k6. What a message of a stream costs.

use super::contender::{Contender, ContenderReport, LineValues, bare, knee, knee_on_both, peer};
use super::lab::Lab;
use super::round::{Contest, column, cost, rate, ratio};
use super::{process, reader};
use crate::repo::write;

const TURN_S: f64 = 2.0;
const ROUNDS_FACTOR: usize = 2;
const USERS: usize = 32;

const PLAIN: Contender = knee(
    "knee (epoll)",
    "run --targets {targets} --vusers {users} -t 1 -d {whole}s --warmup 0s --backend epoll --json \
     - --quiet",
);
const SESSIONS: Contender = knee(
    "knee (epoll), sessions",
    "run {scenario} --vusers {users} -t 1 -d {whole}s --warmup 0s --backend epoll --json - --quiet",
);
const SCRIPTS: Contender = knee(
    "knee (epoll), script",
    "run {script} --vusers {users} -t 1 -d {whole}s --warmup 0s --backend epoll --json - --quiet",
);
const K6: Contender =
    peer("k6", "run --quiet --vus {users} --duration {whole}s {script}", reader::k6);

/// Each user asks for a page of items, takes the first from it, and looks at it three times.
const SCENARIO: &str = r#"target: http://127.0.0.1:PORT
sessions:
  user:
    steps:
      - get: /items?page=${random(1,50)}
        headers: {X-User: "${seq()}"}
        extract: {item: {json: /items/0/id}}
      - repeat: 3
        steps:
          - get: /items/${item}
            headers: {X-Item: "${item}"}
"#;

/// The requests of those sessions, as they are.
const TARGETS: &str = "http://127.0.0.1:PORT/items?page=7\nX-User: 1234\n\n\
http://127.0.0.1:PORT/items/i7\nX-Item: i7\n\n\
http://127.0.0.1:PORT/items/i8\nX-Item: i8\n\n\
http://127.0.0.1:PORT/items/i9\nX-Item: i9\n";

const SCRIPT: &str = r"import http from 'k6/http';
const url = 'http://127.0.0.1:PORT';
export default function () {
  const page = 1 + Math.floor(Math.random() * 50);
  const list = http.get(url + '/items?page=' + page, {headers: {'X-User': String(__ITER)}});
  const item = list.json('items.0.id');
  for (let n = 0; n < 3; n += 1) {
    http.get(url + '/items/' + item, {headers: {'X-Item': item}});
  }
}
export function handleSummary(data) {
  const of = data.metrics;
  const failed = of.http_req_failed.values;
  return {stdout: JSON.stringify({
    requests: of.http_reqs.values.count,
    seconds: of.http_reqs.values.count / of.http_reqs.values.rate,
    errors: failed.passes,
  })};
}
";

/// Sessions beside plain requests and k6.
///
/// # Errors
/// A contender or the server fails.
pub fn run(lab: &Lab) -> Result<String, String> {
    // Known beforehand, as the files have it.
    let port = process::free_port()?.to_string();
    let file = |name: &str, text: &str| {
        let path = lab.scratch(name);
        write(&path, text.replace("PORT", &port))?;
        Ok::<_, String>(path.display().to_string())
    };
    let contest = Contest {
        who: "generator",
        contenders: &[PLAIN, SESSIONS, SCRIPTS, K6],
        values: LineValues::of(lab.seconds(TURN_S))
            .with("users", USERS)
            .with("targets", file("targets.txt", TARGETS)?)
            .with("scenario", file("sessions.yaml", SCENARIO)?)
            .with("script", file("sessions.js", SCRIPT)?),
        factor: ROUNDS_FACTOR,
    };
    let columns = [
        column("requests/s", 0, rate),
        column("CPU s per million", 2, cost),
        ratio("CPU against plain requests", cost, PLAIN.name),
        ratio("CPU against sessions", cost, SESSIONS.name),
        ratio("CPU against k6", cost, K6.name),
    ];
    let line = format!("http --app shop --listen 127.0.0.1:{port}");
    Ok(format!(
        "## Sessions: what templates and extractions cost\n\n\
         {USERS} users; `knee serve http --app shop` answers. A session asks for a page of items, \
         takes the first from its JSON, and looks at it three times, with a header that differs \
         each time. Goals: CPU per request of a session at most 1.3 of plain requests and 1/30 of \
         k6's, of the script that k6 runs as well at most 1.6 of the session and 1/8 of k6's.\n\n{}",
        contest.run(lab, &|_| lab.serve_knee(&line), &columns)?
    ))
}

/// Length of a stream, in seconds.
const STREAM_S: f64 = 4.0;

const KNEE_STREAMS: [Contender; 2] = knee_on_both(
    "run http://127.0.0.1:{port}/ --vusers {streams} -n {streams} -t 1 --warmup 0s --timeout 60s \
     --backend {backend} --json - --quiet",
);
const CONTENDERS: [Contender; 3] = [
    bare("bare read loop", "read_streams", "{port} {streams} {messages}"),
    Contender { read: messages, ..KNEE_STREAMS[0] },
    Contender { read: messages, ..KNEE_STREAMS[1] },
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
pub fn run_streams(lab: &Lab) -> Result<String, String> {
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
    let line = format!("http --listen 127.0.0.1:0 --stream {law}");
    let contest = Contest {
        who: "reader",
        contenders: &CONTENDERS,
        values: LineValues::of(STREAM_S).with("streams", streams).with("messages", streams * each),
        factor: ROUNDS_FACTOR,
    };
    let columns = [
        column("messages/s", 0, rate),
        column("CPU µs per message", 2, cost),
        ratio("CPU against the bare loop", cost, CONTENDERS[0].name),
    ];
    let table = contest.run(lab, &|_| lab.serve_knee(&line), &columns)?;
    Ok(format!("### {streams} streams of {per_s} messages/s\n\n{table}"))
}
