//! What a session costs: templates, an extraction and several steps, beside plain requests of the
//! same sizes, and beside k6 with the same script.

use super::contender::{Contender, LineValues, knee, peer};
use super::lab::{Lab, Measured};
use super::table::{column, command_lines, contender_table, ratio};
use super::{reader, round};
use crate::shell::write;

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
    let server = lab.serve_knee("http --app shop --listen 127.0.0.1:0")?;
    let port = server.port.to_string();
    let file = |name: &str, text: &str| {
        let path = lab.scratch(name);
        write(&path, text.replace("PORT", &port))?;
        Ok::<_, String>(path.display().to_string())
    };
    let values = LineValues::of(lab.seconds(TURN_S))
        .with("users", USERS)
        .with("targets", file("targets.txt", TARGETS)?)
        .with("scenario", file("sessions.yaml", SCENARIO)?)
        .with("script", file("sessions.js", SCRIPT)?);
    let contenders = [PLAIN, SESSIONS, K6];
    let present = lab.present(&contenders);
    let rounds = round::alternate(lab, ROUNDS_FACTOR, &present, |c| lab.measure(c, &values))?;
    server.stop()?;
    let cost = |m: &Measured| Some(m.cpu_s_per_million());
    let mut columns = vec![
        column("requests/s", 0, |m: &Measured| Some(m.per_s())),
        column("CPU s per million", 2, cost),
    ];
    for (title, other) in [("CPU against plain requests", PLAIN), ("CPU against k6", K6)] {
        let mut against = ratio(title, cost, other.name);
        against.digits = 3;
        columns.push(against);
    }
    Ok(format!(
        "## Sessions: what templates and extractions cost\n\n\
         {USERS} users; `knee serve http --app shop` answers. A session asks for a page of items, \
         takes the first from its JSON, and looks at it three times, with a header that differs \
         each time. Goals: CPU per request at most 1.3 of plain requests, and at most 1/30 of \
         k6's.\n\n{}{}{}",
        contender_table("generator", &columns, &[], &rounds),
        lab.left_out(&contenders),
        command_lines(contenders.iter().map(|c| c.shown(&values)))
    ))
}
