//! Steps around other steps, and what is done before and after the load, at a server of somebody
//! else's that keeps what it was asked.

use crate::support::http_servers::{HttpServer, launch};
use crate::support::{TempPath, measured, run};
use serde_json::{Value, json};
use std::fs;

const SERVER: &str = r#"
const fs = require('fs');
let polls = 0, together = [];
const pages = {
  '/login': () => ['application/json', '{"token": "t-1"}'],
  '/form': () => ['text/html',
    '<form><p>Order <b>17</b><input name=csrf value="a&amp;&quot;b"></form>'],
  '/ids': () => ['application/json', '{"ids": [1, "two/2"], "n": 5}'],
  '/job': () => ['application/json', `{"state": "${++polls % 3 ? 'busy' : 'ready'}"}`],
};
require('http').createServer((request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const body = Buffer.concat(pieces).toString('latin1');
    const seen = [request.method, request.url, request.headers['authorization'] || '', body];
    fs.appendFileSync('SEEN', JSON.stringify(seen) + '\n');
    const [type, text] = (pages[request.url] || (() => ['text/plain', 'ok']))();
    const answer = () => {
      response.writeHead(request.url === '/missing' ? 404 : 200, {'Content-Type': type});
      response.end(text);
    };
    if (!request.url.startsWith('/of-3/')) return answer();
    // Three of them have to be there before one is answered.
    together.push(answer);
    if (together.length === 3) together.splice(0).forEach((answer) => answer());
  });
}).listen(PORT, '127.0.0.1');
"#;

fn server() -> Option<HttpServer> {
    launch("node", |site, port| {
        let text = SERVER.replace("PORT", &port.to_string());
        let text = text.replace("SEEN", &site.write("seen", ""));
        vec![site.write("server.js", &text)]
    })
}

/// What the server was asked for since the last call: method, URL, authorisation and body.
fn asked(server: &HttpServer) -> Vec<[String; 4]> {
    let lines = server.site.read("seen");
    server.site.write("seen", "");
    let lines = lines.lines().map(|line| serde_json::from_str(line).unwrap());
    // What waits for the server to listen asks it as well.
    lines.filter(|[_, url, ..]: &[String; 4]| url != "/").collect()
}

fn scenario(server: &HttpServer, name: &str, rest: &str) -> String {
    server.site.write(name, &format!("target: {}\n{rest}", server.url("").trim_end_matches('/')))
}

const STEPS: &str = r#"
setup:
  - {post: /login, body: "", extract: {token: {json: /token}}}
teardown:
  - {post: /logout, body: "${setup.token}"}
sessions:
  buyer:
    steps:
      - group: look
        steps:
          - get: /ids
            extract: {ids: {json: /ids}}
            expect: {body: {json: /n, above: 4, at_most: 5}}
          - {repeat: {over: "${ids}", as: id}, steps: [{get: "/item/${id}", name: item}]}
      - get: /form
        expect: {body: {matches: "Order <b>\\d+"}, header: {X-None: {exists: false}}}
        extract: {csrf: {css: "input[name=csrf]", attribute: value}, order: {regex: "<b>(\\d+)"}}
      - set: {order: "n${order}"}
      - repeat: {until: "${state} == ready", as: poll}
        steps: [{get: /job, extract: {state: {json: /state}}}]
      - when: "${order} == n17 and not ${csrf} contains amp"
        steps:
          - post: /pay
            headers: {Authorization: "Bearer ${setup.token}"}
            multipart: {csrf: "${csrf}", file: {file: part.bin, type: a/b}}
        else: [{get: /wrong}]
      - choose: [{weight: 2, steps: [{get: "/polls/${poll}"}]}]
"#;

#[test]
fn a_user_does_what_the_file_says() {
    let Some(server) = server() else { return };
    fs::write(format!("{}/part.bin", server.site.directory()), b"\x00\xffdata").unwrap();
    let file = scenario(&server, "flow.yaml", STEPS);
    asked(&server);
    let report = measured(&["run", &file, "--vusers", "1", "-n", "2"]);
    let part = "----knee0000000000000000";
    let pay = format!(
        "--{part}\r\nContent-Disposition: form-data; name=\"csrf\"\r\n\r\na&\"b\r\n--{part}\r\n\
         Content-Disposition: form-data; name=\"file\"; filename=\"part.bin\"\r\n\
         Content-Type: a/b\r\n\r\n\u{0}\u{ff}data\r\n--{part}--\r\n"
    );
    let get = |url: &str| ["GET", url, "", ""].map(str::to_owned);
    let user = [
        get("/ids"),
        get("/item/1"),
        get("/item/two%2F2"),
        get("/form"),
        get("/job"),
        get("/job"),
        get("/job"),
        ["POST", "/pay", "Bearer t-1", &pay].map(str::to_owned),
        get("/polls/2"),
    ];
    let once = |url: &str, body: &str| ["POST", url, "", body].map(str::to_owned);
    let want = [&[once("/login", "")][..], &user, &user, &[once("/logout", "t-1")]].concat();
    assert_eq!(asked(&server), want);
    let sessions = &report["trials"][0]["sessions"];
    assert_eq!(sessions["kinds"].as_array().unwrap().len(), 1, "{sessions:#}");
    assert_eq!(sessions["kinds"][0]["completed"], 2);
    assert_eq!(sessions["groups"][0]["group"], "look");
    assert_eq!(sessions["groups"][0]["completed"], 2);
    let targets = report["trials"][0]["targets"].as_array().unwrap();
    let names: Vec<&Value> = targets.iter().map(|target| &target["target"]).collect();
    assert_eq!(names[..2], [&json!("GET /ids"), &json!("item")], "the setup is in no figure");
}

const PARALLEL: &str = r#"
sessions:
  page:
    steps:
      - {post: /login, body: "", extract: {token: {json: /token}}}
      - parallel:
          - {get: "/of-3/${token}"}
          - {get: /of-3/b}
          - {group: data, steps: [{get: /ids, extract: {n: {json: /n}}}, {get: "/of-3/${n}"}]}
      - {get: "/end/${n}"}
"#;

#[test]
fn steps_in_parallel_are_under_way_at_the_same_time() {
    let Some(server) = server() else { return };
    let file = scenario(&server, "parallel.yaml", PARALLEL);
    asked(&server);
    let report = measured(&["run", &file, "--vusers", "1", "-n", "2", "--timeout", "20s"]);
    let asked: Vec<String> = asked(&server).into_iter().map(|[_, url, ..]| url).collect();
    assert_eq!(asked.len(), 12, "{asked:?}");
    for one in asked.chunks(6) {
        assert_eq!((&*one[0], &*one[5]), ("/login", "/end/5"));
        let mut parts = one[1..5].to_vec();
        parts.sort();
        assert_eq!(parts, ["/ids", "/of-3/5", "/of-3/b", "/of-3/t-1"]);
    }
    let sessions = &report["trials"][0]["sessions"];
    assert_eq!(sessions["kinds"][0]["completed"], 2, "{sessions:#}");
    assert_eq!(sessions["groups"][0]["completed"], 2);
    assert_eq!(report["trials"][0]["connections_max"], 3);
    let failed = run(&["overload", &file, "--simple", "1"]);
    assert_eq!(failed.status, Some(2));
    assert!(failed.stderr.contains("parallel: in an overload each session has one connection"));
}

#[test]
fn steps_before_and_after_the_load_are_done_once_in_a_command() {
    let Some(server) = server() else { return };
    let rest = "setup: [{post: /login, body: a}]\nteardown: [{post: /logout, body: b}]\nsessions: \
                {s: {steps: [{get: /a}]}}\n";
    let file = scenario(&server, "once.yaml", rest);
    asked(&server);
    measured(&["sweep", &file, "--vusers", "1,2", "-d", "200ms", "--warmup", "0s"]);
    let urls: Vec<String> = asked(&server).into_iter().map(|[_, url, ..]| url).collect();
    assert_eq!(urls.iter().filter(|url| *url == "/login").count(), 1);
    assert_eq!(urls.iter().filter(|url| *url == "/logout").count(), 1);
    assert_eq!((urls.first(), urls.last()), (Some(&"/login".into()), Some(&"/logout".into())));
}

/// It draws its values once for all sessions.
#[test]
fn a_setup_may_send_nothing() {
    let Some(server) = server() else { return };
    let rest = "setup: [{set: {id: '${uuid()}'}}]\nsessions: {s: {steps: [{get: \
                '/a?${setup.id}'}]}}\n";
    let file = scenario(&server, "drawn.yaml", rest);
    asked(&server);
    measured(&["run", &file, "-n", "3", "--vusers", "1"]);
    let urls: Vec<String> = asked(&server).into_iter().map(|[_, url, ..]| url).collect();
    assert!(urls.len() == 3 && urls[0].len() == "/a?".len() + 36, "{urls:?}");
    assert!(urls.iter().all(|url| *url == urls[0]), "{urls:?}");
}

#[test]
fn a_setup_that_fails_ends_the_command_and_a_teardown_is_a_note() {
    let Some(server) = server() else { return };
    let rest = "sessions: {s: {steps: [{get: /a}]}}\n";
    let file = scenario(&server, "setup.yaml", &format!("setup: [{{get: /missing}}]\n{rest}"));
    asked(&server);
    let ended = run(&["run", &file, "-n", "5", "--vusers", "1"]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("error: setup: GET /missing failed: http_4xx"), "{ended:?}");
    assert_eq!(asked(&server).len(), 1, "no load");

    let expects =
        format!("setup: [{{get: /ids, expect: {{body: {{json: /n, below: 5}}}}}}]\n{rest}");
    let file = scenario(&server, "expects.yaml", &expects);
    let ended = run(&["run", &file, "-n", "5", "--vusers", "1"]);
    let want = "setup: GET /ids: expected /n in the JSON of the body to be below '5', got '5'";
    assert!(ended.stderr.contains(want), "{ended:?}");

    let file =
        scenario(&server, "teardown.yaml", &format!("teardown: [{{get: /missing}}]\n{rest}"));
    let json = TempPath::new("teardown.json");
    let ended = run(&["run", &file, "-n", "5", "--vusers", "1", "--json", json.str()]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert!(ended.stderr.contains("teardown: GET /missing failed: http_4xx"), "{ended:?}");
}

#[test]
fn users_come_and_go_by_the_stages() {
    let Some(server) = server() else { return };
    let rest = "sessions: {s: {steps: [{get: /a}, {think: 20ms}]}}\nload:\n  warmup: 0s\n  stages: \
                [{ramp: 0 -> 4 users, for: 400ms}, {hold: 300ms}, \
                {ramp: 4 -> 0 users, for: 400ms}]\n";
    let file = scenario(&server, "stages.yaml", rest);
    let report = measured(&["run", &file]);
    let trial = &report["trials"][0];
    assert_eq!(trial["level"]["vusers"], 4, "{trial:#}");
    let completed = trial["sessions"]["kinds"][0]["completed"].as_u64().unwrap();
    // Between two and three users on average, each with a session in a little over 20 ms: one who
    // goes stays until there is a whole user less.
    assert!((4..=145).contains(&completed), "{completed}");
    let repeat = serde_json::to_string(&report["options"]).unwrap();
    assert!(!repeat.contains("vusers") && !repeat.contains("duration"), "{repeat}");
}
