//! What values of templates are at the server: a server of somebody else's takes each request
//! apart, and keeps what it found in each place.

use crate::support::http_servers::{HttpServer, launch};
use crate::support::{Certificates, Ended, TempPath, run};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicU32, Ordering};

/// Takes requests apart with the parsers of the language, and keeps a line of JSON for each.
const SERVER: &str = r#"
const fs = require('fs');
const serve = (request, response) => {
  const pieces = [];
  request.on('data', (piece) => pieces.push(piece));
  request.on('end', () => {
    const body = Buffer.concat(pieces).toString();
    const [path, query] = request.url.split('?');
    const type = request.headers['content-type'] || '';
    const text = (value) => value && Buffer.from(value, 'latin1').toString();
    fs.appendFileSync('SEEN', JSON.stringify({
      url: request.url,
      segments: path.split('/').map(decodeURIComponent),
      query: [...new URLSearchParams(query)],
      form: type.includes('form') ? [...new URLSearchParams(body)] : null,
      json: type.includes('json') ? JSON.parse(body) : null,
      text: text(request.headers['x-text']),
      evil: request.headers['x-evil'],
      cookie: request.headers.cookie,
    }) + '\n');
    const set = ['plain=1', 'safe=2; Secure; HttpOnly'];
    response.writeHead(200, {'Content-Type': 'application/json', 'Set-Cookie': set});
    response.end(JSON.stringify({
      here: 'SCHEME://127.0.0.1:PORT/items?page=2&q=a%20b#top',
      path: '/items?page=3',
      beside: '?page=4',
      elsewhere: 'http://other.test/items',
    }));
  });
};
MAKE.listen(PORT, '127.0.0.1');
"#;

/// How a server is made, its scheme, and the option for its version.
type Version = (&'static str, &'static str, &'static str);

const HTTP1: Version = ("require('http').createServer(serve)", "http", "--http1.1");
const HTTP2: Version = ("require('http2').createServer(serve)", "http", "--http2-prior-knowledge");

fn server((make, scheme, _): Version) -> Option<HttpServer> {
    launch("node", |site, port| {
        let text = SERVER
            .replace("MAKE", make)
            .replace("SCHEME", scheme)
            .replace("PORT", &port.to_string())
            .replace("SEEN", &site.write("seen", ""));
        vec![site.write("server.js", &text)]
    })
}

fn seen(server: &HttpServer) -> Vec<Value> {
    let lines = server.site.read("seen");
    let lines = lines.lines().map(serde_json::from_str);
    lines.collect::<Result<_, _>>().unwrap()
}

/// A name that no other test of this process has.
fn unique(name: &str) -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("{}-{name}", COUNT.fetch_add(1, Ordering::Relaxed))
}

/// A load of one user, who comes as often as `count` says.
fn load(url: &str, steps: &str, count: usize, options: &[&str]) -> Ended {
    let text = format!("target: {url}\n{steps}");
    let file = TempPath::with(&unique("values.yaml"), &text);
    let count = count.to_string();
    let one = ["--vusers", "1", "-n", &count, "-d", "60s", "--json", "-"];
    run(&[&["run", file.str()], &one[..], options].concat())
}

/// Records with these values, and what a scenario says of them.
fn records(values: &[&str]) -> (TempPath, String) {
    let lines = values.iter().map(|value| json!({"v": value}).to_string());
    let data = TempPath::with(&unique("values.jsonl"), &lines.collect::<Vec<_>>().join("\n"));
    let name = data.0.file_name().unwrap().to_str().unwrap();
    let said = format!("data: {{d: {{file: {name}}}}}\n");
    (data, said)
}

const VALUES: [&str; 16] = [
    "plain",
    "a&b=c",
    "plus+plus",
    "50%",
    "a/b?c#d",
    "../x",
    "..",
    ".",
    "",
    "\u{e4} \u{20ac}",
    "\"q\" \\ 'r'",
    "%2F%00",
    "a;b, c",
    "${v}",
    "http://h/x",
    "{\"a\": [1]}",
];

const PLACES: &str = r#"
sessions:
  one:
    data: d
    steps:
      - post: /seg/${d.v}/end?q=${d.v}&y=1&${d.v}=n
        headers: {X-Text: "<${d.v}>"}
        json: {text: "<${d.v}>", list: ["${d.v}", 1]}
      - put: /.${d.v}/x${d.v}y
        form: {a: "${d.v}", b c: "<${d.v}>", d: 1}
"#;

#[test]
fn values_arrive_as_they_are_in_every_place() {
    for version in [HTTP1, HTTP2] {
        let Some(server) = server(version) else {
            return;
        };
        let (_data, said) = records(&VALUES);
        let url = server.url("").trim_end_matches('/').to_owned();
        let steps = format!("{said}{PLACES}");
        let ended = load(&url, &steps, VALUES.len(), &[version.2]);
        let outcomes = &ended.json()["trials"][0]["outcomes"];
        assert_eq!(*outcomes, json!({"ok": 2 * VALUES.len()}), "{ended:?}");
        let seen = seen(&server);
        for (value, pair) in VALUES.iter().zip(seen.chunks(2)) {
            let (post, put) = (&pair[0], &pair[1]);
            let context = || format!("{value:?} over {}: {pair:#?}", version.2);
            assert_eq!(post["segments"], json!(["", "seg", value, "end"]), "{}", context());
            let query = json!([["q", value], ["y", "1"], [value, "n"]]);
            assert_eq!(post["query"], query, "{}", context());
            assert_eq!(post["text"], format!("<{value}>"), "{}", context());
            let body = json!({"text": format!("<{value}>"), "list": [value, 1]});
            assert_eq!(post["json"], body, "{}", context());
            let segments = json!(["", format!(".{value}"), format!("x{value}y")]);
            assert_eq!(put["segments"], segments, "{}", context());
            let form = json!([["a", value], ["b c", format!("<{value}>")], ["d", "1"]]);
            assert_eq!(put["form"], form, "{}", context());
            // No segment is one that leads elsewhere.
            let url = post["url"].as_str().unwrap();
            assert!(!url.contains("/../") && !url.contains("/./"), "{}", context());
        }
    }
}

#[test]
fn a_value_that_would_end_a_header_fails_its_step() {
    let steps = r#"
sessions:
  one:
    data: d
    steps:
      - {get: /, name: look, headers: {X-Text: "${d.v}"}}
      - {get: /further}
"#;
    for version in [HTTP1, HTTP2] {
        let Some(server) = server(version) else {
            return;
        };
        for value in ["a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rb", "a\u{0}b"] {
            let (_data, said) = records(&[value, "a b"]);
            let url = server.url("").trim_end_matches('/').to_owned();
            let ended = load(&url, &format!("{said}{steps}"), 2, &[version.2]);
            let report = ended.json();
            let trial = &report["trials"][0];
            let want = json!({"ok": 2, "unfit_value": 1});
            assert_eq!(trial["outcomes"], want, "{value:?}: {trial:#}");
            let findings = report["findings"].as_array().unwrap();
            let told = findings.iter().find(|f| f["code"] == "unfit_value");
            let told = told.unwrap()["text"].as_str().unwrap();
            let refused = value.as_bytes()[1].escape_ascii();
            let want =
                format!("the header X-Text of look cannot have a value with '{refused}' at byte 2");
            assert!(told.contains(&want), "{told}");
        }
        let seen = seen(&server);
        assert_eq!(seen.len(), 8, "of the second user alone");
        assert!(seen.iter().all(|request| request["evil"].is_null()));
        assert!(seen.iter().any(|request| request["text"] == "a b"));
    }
}

#[test]
fn a_link_is_followed_where_it_is_written_raw() {
    for version in [HTTP1, HTTP2] {
        let Some(server) = server(version) else {
            return;
        };
        let url = server.url("").trim_end_matches('/').to_owned();
        let steps = r#"
sessions:
  one:
    steps:
      - get: /shop/list?a=b
        extract:
          here: {json: /here}
          path: {json: /path}
          beside: {json: /beside}
          elsewhere: {json: /elsewhere}
      - get: ${raw(here)}
      - get: ${raw(path)}&q=${here}
      - get: /shop${raw(beside)}
      - get: ${raw(beside)}
      - get: ${raw(elsewhere)}
"#;
        let ended = load(&url, steps, 1, &[version.2]);
        let report = ended.json();
        let outcomes = &report["trials"][0]["outcomes"];
        assert_eq!(*outcomes, json!({"ok": 5, "unfit_value": 1}), "{ended:?}");
        let unfit = &report["trials"][0]["sessions"]["unfit_value"];
        assert_eq!(unfit["place"], "the URL");
        assert_eq!(unfit["misfit"], "a URL of 'http://other.test'");
        let seen = seen(&server);
        let urls: Vec<_> = seen.iter().map(|r| r["url"].as_str().unwrap()).collect();
        assert_eq!(urls[1], "/items?page=2&q=a%20b");
        assert!(urls[2].starts_with("/items?page=3&q=http%3A%2F%2F"), "{urls:?}");
        assert_eq!(urls[3..], ["/shop?page=4", "/shop?page=4"]);
    }
}

#[test]
fn secure_cookies_are_sent_over_https_alone() {
    let steps = "sessions: {one: {steps: [{get: /login}, {get: /cart}]}}\n";
    for version in [HTTP1, HTTP2] {
        let Some(server) = server(version) else {
            return;
        };
        let url = server.url("").trim_end_matches('/').to_owned();
        load(&url, steps, 1, &[version.2]);
        assert_eq!(seen(&server)[1]["cookie"], "plain=1", "{}", version.2);
    }
    let certificates = Certificates::new();
    let files = [certificates.server.str(), certificates.server_key.str()];
    let [certificate, key] = files.map(|file| format!("require('fs').readFileSync('{file}')"));
    let make = format!("require('https').createServer({{cert: {certificate}, key: {key}}}, serve)");
    let Some(server) = server((&make.leak()[..], "https", "")) else {
        return;
    };
    let url = server.secure_url("").trim_end_matches('/').to_owned();
    let ended = load(&url, steps, 1, &["--cacert", certificates.authority.str()]);
    let seen = seen(&server);
    assert_eq!(seen.len(), 2, "{ended:?}");
    assert_eq!(seen[1]["cookie"], "plain=1; safe=2");
}

/// A program whose values never fit, with a pause before its step and without.
#[test]
fn a_value_of_a_program_that_does_not_fit_fails_its_step() {
    let Some(server) = server(HTTP1) else { return };
    let folder = std::env::temp_dir().join(unique(&format!("knee-{}", std::process::id())));
    fs::create_dir_all(&folder).unwrap();
    let answer = r#"{"set": {"x": "a\\r\\nX-Evil: 1"}}"#;
    let program = format!("#!/bin/sh\nwhile read -r line; do printf '%b\\n' '{answer}'; done\n");
    let file = folder.join("program.sh");
    fs::write(&file, program).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let url = server.url("").trim_end_matches('/').to_owned();
    let text = format!(
        r#"
target: {url}
sessions:
  one:
    steps:
      - &ask {{get: /, exec: ./program.sh, gives: x, headers: {{X: "${{x}}"}},
              on_failure: continue}}
      - think: 5ms
      - *ask
      - get: /after
"#
    );
    let scenario = folder.join("scenario.yaml");
    fs::write(&scenario, text).unwrap();
    let scenario = scenario.to_str().unwrap();
    let one = ["--vusers", "1", "-n", "3", "-d", "60s", "--json", "-"];
    let ended = run(&[&["run", scenario, "--allow-exec"], &one[..]].concat());
    fs::remove_dir_all(&folder).unwrap();
    let outcomes = &ended.json()["trials"][0]["outcomes"];
    assert_eq!(*outcomes, json!({"ok": 3, "unfit_value": 6}), "{ended:?}");
    assert_eq!(ended.status, Some(3), "the target met less than was asked for");
    assert!(seen(&server).iter().all(|request| request["url"] == "/after"));
}
