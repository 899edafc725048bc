//! What a session costs: templates, an extraction and several steps, beside plain requests of the
//! same sizes, and beside k6 with the same script.

use super::lab::{Lab, Measured};
use super::peer::Peer;
use super::round::{self, Contender};
use super::stats::{ratios, spread};
use super::table::{Table, command_lines};
use crate::shell::write;
use std::path::Path;

const TURN_S: f64 = 2.0;
const ROUNDS_FACTOR: usize = 2;
const USERS: usize = 32;

const PEERS: [Peer; 3] = [Peer::KneeEpoll, Peer::KneeSession, Peer::K6];

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
    let serve = ["serve", "http", "--app", "shop", "--listen", "127.0.0.1:0"];
    let server = lab.serve(&lab.knee, &serve.map(String::from))?;
    let port = server.port.to_string();
    let file = |name: &str, text: &str| {
        let path = lab.scratch(name);
        write(&path, text.replace("PORT", &port))?;
        Ok::<_, String>(path)
    };
    let files = [
        file("targets.txt", TARGETS)?,
        file("sessions.yaml", SCENARIO)?,
        file("sessions.js", SCRIPT)?,
    ];
    let seconds = lab.seconds(TURN_S).ceil();
    let lines: Vec<(Peer, String)> = PEERS
        .iter()
        .zip(&files)
        .map(|(peer, file)| (*peer, line(*peer, file, seconds)))
        .collect();
    let contenders = round::alternate(lab, ROUNDS_FACTOR, &lab.present(&PEERS), |peer| {
        let line = lines.iter().find(|(of, _)| *of == peer);
        let line = line.map_or("", |(_, line)| line);
        let words: Vec<String> = line.split(' ').map(String::from).collect();
        lab.measure_line(peer, &words, seconds)
    })?;
    server.stop()?;
    let missing = PEERS.iter().filter(|peer| lab.program(**peer).is_none());
    let missing = missing.map(|p| format!("Left out, as it is missing: {}.\n\n", p.name()));
    let shown = lines
        .iter()
        .map(|(peer, line)| format!("{} {line}", peer.program()));
    Ok(format!(
        "## Sessions: what templates and extractions cost\n\n\
         {USERS} users; `knee serve http --app shop` answers. A session asks for a page of items, \
         takes the first from its JSON, and looks at it three times, with a header that differs \
         each time. Goals: CPU per request at most 1.3 of plain requests, and at most 1/30 of \
         k6's.\n\n{}{}{}",
        table(&contenders),
        missing.collect::<String>(),
        command_lines(shown)
    ))
}

fn line(peer: Peer, file: &Path, seconds: f64) -> String {
    let file = file.display();
    let knee =
        format!("--vusers {USERS} -t 1 -d {seconds}s --warmup 0s --backend epoll --json - --quiet");
    match peer {
        Peer::K6 => format!("run --quiet --vus {USERS} --duration {seconds}s {file}"),
        Peer::KneeSession => format!("run {file} {knee}"),
        _ => format!("run --targets {file} {knee}"),
    }
}

fn table(contenders: &[Contender<Measured>]) -> String {
    let mut table = Table::new(&[
        "generator",
        "requests/s",
        "CPU s per million",
        "CPU against plain requests",
        "CPU against k6",
    ]);
    let rate = |m: &Measured| m.sample.requests / m.sample.seconds;
    for contender in contenders {
        let against = |other: Peer| {
            let theirs = contenders.iter().find(|c| c.peer == other);
            theirs.map_or("–".into(), |theirs| {
                let [mine, theirs] =
                    [contender, theirs].map(|c| c.each(Measured::cpu_s_per_million));
                spread(&ratios(&mine, &theirs), 3)
            })
        };
        table.row(&[
            contender.full_label(),
            spread(&contender.each(rate), 0),
            spread(&contender.each(Measured::cpu_s_per_million), 2),
            against(Peer::KneeEpoll),
            against(Peer::K6),
        ]);
    }
    table.finish()
}
