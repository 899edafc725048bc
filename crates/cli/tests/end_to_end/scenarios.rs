//! Scenario files from the command line. Users of the reference server's shop, and of an
//! application of another author behind nginx that checks all they send.

use crate::support::http_servers::{HttpServer, launch};
use crate::support::{KneeServer, TempPath, measured, program, run, unless_disturbed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The example that knee writes, against this server.
fn example(url: &str) -> TempPath {
    let written = run(&["scenario", "new"]);
    assert_eq!(written.status, Some(0), "{written:?}");
    let text = written.stdout.replace("http://127.0.0.1:8080", url.trim_end_matches('/'));
    assert!(text.contains(url.trim_end_matches('/')), "{text}");
    // No two servers have one port, and tests run side by side.
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
    let file = TempPath::new(&format!("shop-{port}.yaml"));
    std::fs::write(&file.0, text).unwrap();
    file
}

const LOAD: [&str; 6] = ["-n", "60", "--vusers", "8", "-d", "60s"];

fn check_example(report: &Value) {
    let trial = &report["trials"][0];
    let context = || format!("{trial:#}");
    let outcomes = trial["outcomes"].as_object().unwrap();
    assert_eq!(outcomes.keys().collect::<Vec<_>>(), ["ok"], "{}", context());
    let kinds = trial["sessions"]["kinds"].as_array().unwrap();
    let names: Vec<_> = kinds.iter().map(|kind| &kind["session"]).collect();
    assert_eq!(names, ["buyer", "visitor"]);
    let completed = |kind: usize| kinds[kind]["completed"].as_u64().unwrap();
    assert_eq!(completed(0) + completed(1), 60, "{}", context());
    let targets = trial["targets"].as_array().unwrap();
    let attempted: Vec<_> = targets
        .iter()
        .map(|t| (t["target"].as_str().unwrap(), t["attempted"].as_u64().unwrap()))
        .collect();
    let (buyers, visitors) = (completed(0), completed(1));
    assert_eq!(
        attempted,
        [
            ("buyer: login", buyers),
            ("buyer: list", buyers),
            ("buyer: item", 3 * buyers),
            ("buyer: cart", buyers),
            ("visitor: look", visitors),
            ("visitor: look further", visitors),
        ],
        "{}",
        context()
    );
}

#[test]
fn the_example_runs_over_every_version_of_http() {
    for version in [&["--http1.1"][..], &["--http2-prior-knowledge"]] {
        let server = KneeServer::start(&["--app", "shop"]);
        let file = example(&server.url());
        let report = measured(&[&["run", file.str()], &LOAD[..], version].concat());
        check_example(&report);
    }
    for version in ["--http1.1", "--http2"] {
        let server = KneeServer::start(&["--app", "shop", "--tls"]);
        let certificate = server.certificate.clone().unwrap();
        let file = example(&server.url());
        let trust = ["--cacert", &certificate, version];
        let report = measured(&[&["run", file.str()], &LOAD[..], &trust].concat());
        check_example(&report);
    }
}

#[test]
fn text_and_page_show_sessions_and_steps() {
    let server = KneeServer::start(&["--app", "shop"]);
    let file = example(&server.url());
    let (page, report) = (TempPath::new("sessions.html"), TempPath::new("sessions.json"));
    let ended = run(&[
        &[
            "run",
            file.str(),
            "--full",
            "--json",
            report.str(),
            "--html",
            page.str(),
            "--fail-if",
            "buyer: cart p99>10m",
        ],
        &LOAD[..],
    ]
    .concat());
    let page = std::fs::read_to_string(&page.0).unwrap();
    for text in ["sessions, ", "completion", "buyer: cart", "visitor: look further"] {
        assert!(ended.stdout.contains(text), "{text}: {}", ended.stdout);
        assert!(page.contains(text), "{text}");
    }
    assert!(page.contains("Mean response time of each step by stage"));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report.0).unwrap()).unwrap();
    let slowest = report["trials"][0]["slowest"].as_array().unwrap();
    assert!(!slowest.is_empty());
    for operation in slowest {
        let (step, status) = (operation["step"].as_str().unwrap(), &operation["status"]);
        let text = format!("{step}, status {status}");
        assert!(page.contains(&text), "{text}");
    }
    assert!(ended.stdout.contains("kept"), "{}", ended.stdout);
}

#[test]
fn a_comparison_has_each_step_and_each_kind_of_session() {
    let server = KneeServer::start(&["--app", "shop"]);
    let file = example(&server.url());
    let report = TempPath::new("report.json");
    // On a busy host it may be INVALID, which changes the text and not what is compared.
    let load = ["-n", "200", "--vusers", "8", "-d", "60s"];
    run(&[&["run", file.str(), "--json", report.str()], &load[..]].concat());
    let compared = run(&["compare", report.str(), report.str(), "--json", "-"]);
    let rows = compared.json()["rows"].clone();
    let named = |key: &str| -> BTreeSet<String> {
        let names = rows.as_array().unwrap().iter();
        let names = names.filter_map(|row| row[key].as_str());
        names.map(str::to_owned).collect()
    };
    let steps = named("step");
    assert!(steps.contains("buyer: cart") && steps.len() == 6, "{rows:#}");
    let kinds = Vec::from_iter(named("session"));
    assert_eq!(kinds, ["buyer", "visitor"], "{rows:#}");
}

#[test]
fn what_was_not_expected_is_told_with_its_step() {
    let server = KneeServer::start(&["--app", "shop"]);
    let file = TempPath::with(
        "wrong.yaml",
        &format!(
            "target: {}\nsessions:\n  one:\n    steps:\n      - get: /items/i1\n        \
             name: look\n        expect: {{body: {{json: /name, equals: gold}}}}\n",
            server.url()
        ),
    );
    let ended = run(&["run", file.str(), "-n", "5", "--vusers", "1", "--full"]);
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    for text in [
        "unexpected_responses",
        "look was to give /name in the JSON of the body to be 'gold'",
        "5 at look",
    ] {
        let flat = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(flat.contains(text), "{text}: {}", ended.stdout);
    }
}

#[test]
fn data_that_runs_out_ends_the_load_and_is_told() {
    let server = KneeServer::start(&["--app", "shop"]);
    let data = TempPath::with("names.csv", "name\nada\nbob\neve\n");
    let name = data.0.file_name().unwrap().to_str().unwrap();
    let file = TempPath::with(
        "unique.yaml",
        &format!(
            "target: {}\ndata:\n  names: {{file: {name}, order: unique}}\nsessions:\n  one:\n    \
             data: names\n    steps:\n      - post: /login\n        \
             json: {{name: \"${{names.name}}\", password: x}}\n        \
             expect: {{body: {{json: /user, equals: \"${{names.name}}\"}}}}\n",
            server.url()
        ),
    );
    // In the warm-up there would be none left within a few milliseconds.
    for warmup in ["0s", "500ms"] {
        let load = ["--vusers", "2", "-d", "30s", "--warmup", warmup];
        let report = measured(&[&["run", file.str()], &load[..]].concat());
        let trial = &report["trials"][0];
        assert_eq!(trial["outcomes"], json!({"ok": 3}), "{trial:#}");
        assert_eq!(trial["sessions"]["ran_out"], "names");
        assert_eq!(trial["sessions"]["ran_out_records"], 3);
        let findings = report["findings"].as_array().unwrap();
        let told = findings.iter().find(|f| f["code"] == "data_exhausted");
        let told = told.unwrap()["text"].as_str().unwrap();
        for part in [
            "the load ended ",
            " after the measured time began: the data set 'names' had no record left",
            "'order: unique' deals each of its 3 once",
        ] {
            assert!(told.contains(part), "{told}");
        }
        assert!(trial["duration_ns"].as_u64().unwrap() < 20_000_000_000);
    }
}

/// An application that keeps what each user was told, and finds whether it is what the user says
/// later. `/audit` tells what it counted.
const APPLICATION: &str = r#"
const http = require('http');
const crypto = require('crypto');
const users = new Map();
const seen = {logins: 0, items: 0, carts: 0, wrong: [], users: 0};
const fail = (why) => { if (seen.wrong.length < 5) seen.wrong.push(why); };
const server = http.createServer((request, response) => {
  let body = '';
  request.on('data', (piece) => body += piece);
  request.on('end', () => {
    const url = new URL(request.url, 'http://h');
    const reply = (status, value, headers) => {
      response.writeHead(status, {'Content-Type': 'application/json', ...headers});
      response.end(JSON.stringify(value));
    };
    const token = (request.headers.authorization || '').replace('Bearer ', '');
    const user = users.get(token);
    const cookie = request.headers.cookie || '';
    if (url.pathname === '/audit') return reply(200, {...seen, users: users.size});
    if (url.pathname === '/login') {
      const {name, password} = JSON.parse(body);
      if (password !== 'pass ' + name) fail('password of ' + name + ': ' + password);
      const token = crypto.randomUUID();
      const session = crypto.randomUUID();
      const csrf = 'c"' + crypto.randomBytes(8).toString('hex') + '\u00e4';
      users.set(token, {name, session, csrf});
      seen.logins += 1;
      return reply(200, {deep: [{other: 1}, {token, csrf}]}, {'Set-Cookie': 'sid=' + session});
    }
    if (!user) fail('unknown token ' + token);
    else if (cookie !== 'sid=' + user.session) fail('cookie ' + cookie);
    if (url.pathname === '/items') {
      seen.items += 1;
      if (user && url.searchParams.get('for') !== user.name) fail('for ' + url.search);
      if (user) user.item = 'i ' + crypto.randomInt(1e9) + '/' + user.name;
      return reply(200, {items: [{id: user && user.item}]});
    }
    if (url.pathname === '/cart') {
      seen.carts += 1;
      const form = new URLSearchParams(body);
      if (user && form.get('id') !== user.item) fail('item ' + form.get('id'));
      if (user && form.get('csrf') !== user.csrf) fail('csrf ' + form.get('csrf'));
      return reply(201, {ok: true});
    }
    fail('path ' + request.url);
    reply(404, {});
  });
});
server.listen(PORT, '127.0.0.1');
"#;

fn application() -> Option<HttpServer> {
    launch("node", |site, port| {
        let text = APPLICATION.replace("PORT", &port.to_string());
        vec![site.write("application.js", &text)]
    })
}

/// nginx before it.
fn nginx(behind: u16) -> Option<HttpServer> {
    launch("nginx", |site, port| {
        let directory = site.directory();
        let temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {directory}/{name};"))
            .join("\n");
        let text = format!(
            "daemon off; master_process off; pid {directory}/pid;\n\
             events {{ worker_connections 512; }}\n\
             http {{ access_log off; keepalive_requests 100000;\n{temporary}\n\
             upstream app {{ server 127.0.0.1:{behind}; keepalive 64; }}\n\
             server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://app;\n\
             proxy_http_version 1.1; proxy_set_header Connection ''; }} }} }}\n"
        );
        let file = site.write("nginx.conf", &text);
        ["-p", directory, "-e", "error.log", "-c", &file].map(String::from).to_vec()
    })
}

const SESSIONS: u64 = 640;

#[test]
fn sixty_four_users_send_what_they_were_told_through_nginx() {
    if program("curl").is_none() {
        return;
    }
    let Some(application) = application() else {
        return;
    };
    let Some(nginx) = nginx(application.port) else {
        return;
    };
    let names: String = (0..100).map(|n| format!("user {n} \u{e4}\n")).collect();
    let data = TempPath::with("users.csv", &format!("name\n{names}"));
    let name = data.0.file_name().unwrap().to_str().unwrap();
    let text = format!(
        r#"
target: {}
data:
  users: {{file: {name}, order: in-order}}
sessions:
  buyer:
    data: users
    steps:
      - post: /login
        name: login
        json: {{name: "${{users.name}}", password: "pass ${{users.name}}"}}
        expect: {{status: 200}}
        extract: {{token: {{json: /deep/1/token}}, csrf: {{json: /deep/1/csrf}}}}
      - get: /items?for=${{urlencode(users.name)}}
        name: items
        headers: {{Authorization: "Bearer ${{token}}"}}
        extract: {{item: {{json: /items/0/id}}}}
      - post: /cart
        name: cart
        headers: {{Authorization: "Bearer ${{token}}"}}
        form: {{id: "${{item}}", csrf: "${{csrf}}"}}
        expect: {{status: 201, body: {{json: /ok, equals: true}}}}
"#,
        nginx.url("").trim_end_matches('/')
    );
    let file = TempPath::with("buyers.yaml", &text);
    let count = SESSIONS.to_string();
    let report = measured(&["run", file.str(), "-n", &count, "--vusers", "64", "-d", "60s"]);
    let trial = &report["trials"][0];
    assert_eq!(trial["outcomes"], json!({"ok": 3 * SESSIONS}), "{trial:#}");
    assert_eq!(trial["sessions"]["kinds"][0]["completed"], SESSIONS, "{trial:#}");
    let audit =
        std::process::Command::new("curl").args(["-s", &nginx.url("audit")]).output().unwrap();
    let audit: Value = serde_json::from_slice(&audit.stdout).unwrap();
    assert_eq!(
        audit,
        json!({"logins": SESSIONS, "items": SESSIONS, "carts": SESSIONS, "wrong": [],
               "users": SESSIONS})
    );
}

/// The example whose users do not pause, so that sessions are over before their level is.
fn hurried(url: &str) -> TempPath {
    let file = example(url);
    let text = std::fs::read_to_string(&file.0).unwrap();
    let paused = |line: &&str| !line.trim_start().starts_with("- think:");
    let text: Vec<&str> = text.lines().filter(paused).collect();
    std::fs::write(&file.0, text.join("\n")).unwrap();
    file
}

#[test]
fn an_overload_offers_sessions_and_counts_those_that_are_served() {
    let page = TempPath::new("overload.html");
    for (tls, close, length) in
        [(false, "fin", "600ms"), (false, "rst", "600ms"), (true, "fin", "2s")]
    {
        let options: &[&str] = if tls { &["--tls"] } else { &[] };
        let attempt = || {
            let server = KneeServer::start(&[&["--app", "shop"], options].concat());
            let file = hurried(&server.url());
            let trust = server.certificate.as_deref().map(|file| ["--cacert", file]);
            let levels = ["--simple", "2", "--descriptors", "4"];
            let times = ["-d", length, "--warmup", "200ms", "--seed", "1"];
            run(&[
                &["overload", file.str(), "--close", close][..],
                &levels,
                &times,
                trust.as_ref().map_or(&[][..], |trust| trust),
                &["--html", page.str(), "--json", "-"],
            ]
            .concat())
        };
        unless_disturbed(attempt, |report| {
            let trials = report["trials"].as_array().unwrap();
            assert_eq!(trials.len(), 3, "two levels, and the first again");
            for trial in trials {
                let attempts = trial["sessions"]["attempts"]["outcomes"].as_object();
                assert!(!attempts.unwrap().is_empty(), "{close}: {trial:#}");
                let kinds = trial["sessions"]["kinds"].as_array().unwrap();
                assert_eq!(kinds.len(), 2);
                assert_eq!(trial["targets"].as_array().unwrap().len(), 6);
            }
            // S-Clients may press so much that no session is over before its level is.
            let (simple, attempts) = (&trials[0], &trials[0]["sessions"]["attempts"]);
            let served = attempts["outcomes"]["served"].as_u64();
            assert!(served.unwrap_or(0) > 0, "{close}: {simple:#}");
            // Each session has one connection, however many steps it takes.
            let steps = simple["outcomes"]["ok"].as_u64().unwrap();
            let opened = attempts["connections"].as_u64().unwrap();
            assert!(opened < steps, "{opened} connections for {steps} steps");
            let handshakes = &simple["protocol"]["tls"]["handshakes_full"];
            assert_eq!(handshakes.as_u64().is_some_and(|n| n > 0), tls, "{simple:#}");
            let row = &report["conclusion"]["sclients"][0]["outcomes"];
            let attempts = &trials[1]["sessions"]["attempts"]["outcomes"];
            assert_eq!(row, attempts, "what is reported is of sessions");
            assert!(report["conclusion"]["capacity_per_s"].as_f64().unwrap() > 0.0);
        });
    }
    let page = std::fs::read_to_string(&page.0).unwrap();
    for text in ["buyer: cart", "clients=2", "descriptors=4", "completion"] {
        assert!(page.contains(text), "{text}");
    }
}

#[test]
fn a_session_that_is_not_accepted_ends_as_its_first_step_does() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let text = format!(
        "target: http://{}\nsessions: {{one: {{steps: [{{get: /a}}, {{get: /b}}]}}}}\n",
        listener.local_addr().unwrap()
    );
    let file = TempPath::with("unanswered.yaml", &text);
    // Connections are established, and nobody ever answers.
    let ended = run(&[
        "overload",
        file.str(),
        "--descriptors",
        "4",
        "--connect-timeout",
        "100ms",
        "--timeout",
        "300ms",
        "--warmup",
        "0s",
        "-d",
        "600ms",
        "--json",
        "-",
    ]);
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    let trial = &ended.json()["trials"][0];
    let attempts = trial["sessions"]["attempts"]["outcomes"].as_object().unwrap();
    assert!(!attempts.contains_key("served"), "{attempts:?}");
    let unanswered = attempts["response_timeout"].as_u64().unwrap();
    assert!(unanswered > 0, "{attempts:?}");
    assert_eq!(trial["targets"][1]["attempted"], 0, "no second step");
}
