//! Scenarios that are imported run, and lines of curl run as they are.

use crate::support::{KneeServer, TempPath, run};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

#[test]
fn a_line_of_curl_is_a_scenario_that_runs() {
    let server = KneeServer::start(&["--app", "shop"]);
    let url = format!("{}login", server.url());
    let scenario = TempPath::new("imported.yaml");
    let json = r#"{"name":"ann","password":"p"}"#;
    let import = ["import", "curl", "-o", scenario.str(), "--", "curl"];
    let imported = run(&[&import[..], &[&url, "--json", json, "-L"]].concat());
    assert_eq!(imported.status, Some(0), "{}", imported.stderr);
    assert_eq!(imported.stderr, "");
    let checked = run(&["scenario", "check", scenario.str()]);
    assert_eq!(checked.status, Some(0), "{}", checked.stderr);
    let options = ["-n", "10", "--no-save", "--json", "-"];
    let report = run(&[&["run", scenario.str()], &options[..]].concat()).json();
    let outcomes = &report["trials"][0]["outcomes"];
    assert_eq!(outcomes["ok"], 10, "{outcomes}");
    assert_eq!(server.served()["responses"], 10);
}

#[test]
fn a_line_of_curl_runs_as_it_is() {
    let server = KneeServer::start(&["--app", "shop"]);
    let url = format!("{}login", server.url());
    let line = ["run", &url, "-H", "Content-Type: application/json", "--data-raw"];
    let body = r#"{"name":"ann","password":"p"}"#;
    let copied = [body, "--compressed", "--insecure"];
    let options = ["-n", "10", "--no-save", "--json", "-"];
    let report = run(&[&line[..], &copied, &options].concat()).json();
    let outcomes = &report["trials"][0]["outcomes"];
    assert_eq!(outcomes["ok"], 10, "{outcomes}");
}

#[test]
fn a_line_of_curl_runs_behind_two_dashes() {
    let server = KneeServer::start(&["--app", "shop"]);
    let url = format!("{}login", server.url());
    let options = ["run", "-n", "10", "--no-save", "--json", "-", "--"];
    let json = r#"{"name":"ann","password":"p"}"#;
    let line = ["curl", "-sS", "--json", json, "-m", "5", &url];
    let report = run(&[&options[..], &line].concat()).json();
    let outcomes = &report["trials"][0]["outcomes"];
    assert_eq!(outcomes["ok"], 10, "{outcomes}");
}

#[test]
fn a_script_of_k6_runs_with_what_lies_beside_it() {
    let server = KneeServer::start(&["--app", "shop"]);
    let lib = TempPath::with("lib.js", "export const user = { name: 'ann', password: 'p' };");
    let (url, lib_name) = (server.url(), lib.str().rsplit('/').next().unwrap());
    let script = format!(
        "import http from 'k6/http'; import {{ user }} from './{lib_name}';
        const json = {{ headers: {{ 'Content-Type': 'application/json' }} }};
        export default function () {{
          const r = http.post('{url}login', JSON.stringify(user), json);
          const headers = {{ Authorization: `Bearer ${{r.json('token')}}` }};
          if (r.status === 200 && r.json('token')) {{ http.get('{url}items', {{ headers }}); }}
        }}"
    );
    let script = TempPath::with("script.js", &script);
    let line = run(&["import", "k6", script.str()]);
    assert_eq!(line.stdout, format!("knee run {}\n", script.str()));
    let options = ["-n", "10", "--no-save", "--json", "-"];
    let report = run(&[&["run", script.str()], &options[..]].concat()).json();
    let outcomes = &report["trials"][0]["outcomes"];
    assert_eq!(outcomes["ok"], 20, "{outcomes}");
}

#[test]
fn scripts_that_are_nested_deeply_are_refused() {
    for (begin, count) in [("!", 39_000), ("(a=", 12_000), ("`${", 12_000), ("x=", 38_000)] {
        let script = TempPath::with("deep.js", &begin.repeat(count));
        let refused = run(&["run", script.str()]);
        assert_eq!(refused.status, Some(2), "{begin}: {}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{begin}: {}", refused.stderr);
    }
}

#[test]
fn a_proxy_gets_the_whole_url() {
    let proxy = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = proxy.local_addr().unwrap().to_string();
    let asked = std::thread::spawn(move || {
        // Whether it can be reached at all is tried before.
        loop {
            let (mut stream, _) = proxy.accept().unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head = lines.by_ref().map_while(Result::ok);
            let head: Vec<String> = head.take_while(|line| !line.is_empty()).collect();
            if head.is_empty() {
                continue;
            }
            let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(response).unwrap();
            // It stays open until the client ends it.
            lines.map_while(Result::ok).for_each(drop);
            return head;
        }
    });
    let proxy = format!("http://{address}");
    let url = "http://shop.test:81/a?b=1";
    let ended = run(&["run", url, "-x", &proxy, "-n", "1", "--vusers", "1", "--no-save"]);
    assert!(ended.status.is_some(), "{}", ended.stderr);
    let head = asked.join().unwrap();
    assert_eq!(head[0], "GET http://shop.test:81/a?b=1 HTTP/1.1");
    assert!(head.contains(&"Host: shop.test:81".to_owned()), "{head:?}");
}
