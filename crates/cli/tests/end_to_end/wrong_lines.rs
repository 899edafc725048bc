//! Command lines as users of other programs type them: each is refused at once, before any load, in
//! one line that says what would be right.

use crate::support::{KneeServer, TempPath, run, until_it_ends_with};

/// Words of the command line, and words of the answer. FILE stands for an existing file.
const LINES: &[(&str, &str)] = &[
    // Without a command, or with that of another program.
    ("http://127.0.0.1:1/", "did you mean knee run http://127.0.0.1:1/?"),
    ("127.0.0.1:1", "did you mean knee run 127.0.0.1:1?"),
    ("-c 10 -d 5s http://127.0.0.1:1/", "knee run -c …"),
    ("-n 100 http://127.0.0.1:1/", "knee run -n …"),
    ("--rate=50 http://127.0.0.1:1/", "knee run --rate=50 …"),
    ("wrk -t2 -c64 http://127.0.0.1:1/", "did you mean run?"),
    ("attack -rate=50 -duration=5s", "did you mean run?"),
    ("bench http://127.0.0.1:1/", "did you mean run?"),
    ("stress http://127.0.0.1:1/", "did you mean overload?"),
    ("run curl http://127.0.0.1:1/", "knee run -- curl …"),
    ("run curl -X POST -d a=b http://127.0.0.1:1/", "knee run -- curl …"),
    ("sweep curl http://127.0.0.1:1/", "knee sweep -- curl …"),
    // wrk and wrk2.
    ("run http://127.0.0.1:1/ -s post.lua", "knee scenario new"),
    ("run http://127.0.0.1:1/ --script post.lua", "knee scenario new"),
    ("run http://127.0.0.1:1/ --latency", "percentiles are always shown"),
    ("run http://127.0.0.1:1/ -t 30s", "for the duration give -d"),
    // hey and oha.
    ("run http://127.0.0.1:1/ -z 10s", "did you mean --duration?"),
    ("run http://127.0.0.1:1/ -q 50", "did you mean --rate?"),
    ("run http://127.0.0.1:1/ -d {\"a\":1}", "for a body give -b or --data"),
    ("run http://127.0.0.1:1/ -d a=1", "for a body give -b or --data"),
    ("run http://127.0.0.1:1/ -d @body.json", "for a body give -b or --data"),
    ("run http://127.0.0.1:1/ -o json", "did you mean --json?"),
    ("run http://127.0.0.1:1/ --no-tui --burst-delay 2s", "--burst-delay: unknown"),
    // ab and siege.
    ("run http://127.0.0.1:1/ -v 4", "curl -i"),
    ("run http://127.0.0.1:1/ --concurrent 5", "did you mean --connections?"),
    ("run 100 http://127.0.0.1:1/", "'100' is in the place of the URL"),
    // vegeta and other programs in Go.
    ("run http://127.0.0.1:1/ -rate=50/1s", "two dashes: --rate"),
    ("run http://127.0.0.1:1/ -duration=5s", "two dashes: --duration"),
    ("run http://127.0.0.1:1/ -connections 5", "two dashes: --connections"),
    ("run http://127.0.0.1:1/ -output out.json", "two dashes: --json"),
    // k6 and locust.
    ("run http://127.0.0.1:1/ --vus 10", "did you mean --vusers?"),
    ("run http://127.0.0.1:1/ --users 10", "did you mean --vusers?"),
    ("run http://127.0.0.1:1/ --spawn-rate 5", "--arrival 'ramp(10,1000)'"),
    ("run http://127.0.0.1:1/ --host http://127.0.0.1:1/", "the URL needs no option"),
    ("run http://127.0.0.1:1/ --fail-if p(95)<500", "did you mean p95?"),
    ("run http://127.0.0.1:1/ --fail-if http_req_failed>1%", "did you mean errors?"),
    ("run http://127.0.0.1:1/ --fail-if latency>1s", "did you mean p99?"),
    ("run http://127.0.0.1:1/ --fail-if happy>1", "such as errors, p99 or throughput"),
    ("run http://127.0.0.1:1/ --fail-if p99>200", "has no unit"),
    // h2load and curl.
    ("run http://127.0.0.1:1/ --max-concurrent-streams 5", "--max-concurrent-streams: unknown"),
    ("run http://127.0.0.1:1/ --connect-to a:80:b:80", "give the address in the URL"),
    ("run http://127.0.0.1:1/ --max-redirs 5", "did you mean --location?"),
    ("run http://127.0.0.1:1/ --json-body @/nonexistent", "--json-body: /nonexistent"),
    ("run http://127.0.0.1:1/ --data-binary @/nonexistent", "--data-binary: /nonexistent"),
    // Values.
    ("run http://127.0.0.1:1/ -R 1000000000", "more than this machine can start"),
    ("run http://127.0.0.1:1/ -R 100rps", "is not a rate"),
    ("run http://127.0.0.1:1/ -R 10/day", "is not a rate"),
    ("run http://127.0.0.1:1/ --http3", "HTTP/3 is always secured: write https://"),
    ("run grpc://127.0.0.1:1/a.B/C -H x-bin:?", "'x-bin' ends in -bin, so that its value"),
    ("run ws://127.0.0.1:1/ --expect-status 101", "a message of WebSocket has no status"),
    ("run ws://127.0.0.1:1/ -b @/bin/sh", "--body: is not UTF-8"),
    ("run https://127.0.0.1:1/ --quic", "did you mean --http3?"),
    ("run http://127.0.0.1:1/ --disable-redirects", "only with --location"),
    ("run -u http://127.0.0.1:1/", "expected USER:PASSWORD, not a URL"),
    ("sweep http://127.0.0.1:1/ -R 100", "did you mean --rates?"),
    ("sweep http://127.0.0.1:1/ -c 1,2,4", "levels are given by --vusers"),
    ("overload http://127.0.0.1:1/ -c 1000", "did you mean --simple?"),
    ("sweep 1,2,4 http://127.0.0.1:1/", "'1,2,4' is in the place of the URL"),
    ("history 5", "did you mean show 5?"),
    ("scenario shop.yaml", "did you mean check shop.yaml?"),
    ("import shop.har", "did you mean har shop.har?"),
    ("serve 8080", "did you mean http --listen 127.0.0.1:8080?"),
    ("serve http --port 8080", "did you mean --listen?"),
    ("demo http://127.0.0.1:1/", "one argument too many"),
    ("run http://127.0.0.1:1/ -d 10seconds", "is not a duration"),
    ("run http://127.0.0.1:1/ -c 1e3", "is not a whole number"),
    ("run http://127.0.0.1:1/ -n 99999999999999999999", "is too large"),
    ("run http://127.0.0.1:1/ -c 4000000000", "too many: at most 1000000"),
    ("run http://127.0.0.1:1/ --vusers 4000000000", "too many: at most 1000000"),
    ("run http://127.0.0.1:1/ --arrival poison -R 5", "is no arrival process"),
    ("run http://127.0.0.1:1/ http://127.0.0.1:2/", "--targets FILE reads several"),
    ("run http://127.0.0.1:1/ -H Accept", "is no header"),
    ("run http://127.0.0.1:1/ --timeout 5 --timeout 6", "given more than once"),
    ("run -c 10 -d 5s", "URL: is missing"),
    ("run http//127.0.0.1:1/", "http//127.0.0.1:1/"),
    ("run htp://127.0.0.1:1/", "has the scheme 'htp'"),
    ("run http://127.0.0.1:port/", "a port is 1 to 65535"),
    // Files in the place of a URL.
    ("run script.js", "no such file"),
    ("run urls.txt", "'knee run --targets FILE'"),
    ("run targets.csv", "'knee run --targets FILE'"),
    ("run x.har", "'knee import har'"),
    ("run x.jmx", "'knee import jmeter'"),
    ("run post.lua", "'knee scenario new'"),
    ("run access.log", "'knee import log'"),
    ("run OPENAPI", "'knee import openapi'"),
    ("run REPORT", "'knee report' shows it"),
    // Commands on what others wrote.
    ("compare http://127.0.0.1:1/ http://127.0.0.1:2/", "--live"),
    ("compare http://127.0.0.1:1/ http://127.0.0.1:2/ -c 5", "--live"),
    ("compare a.json", "B is missing"),
    ("explain p98", "p98"),
    ("report", "FILE.json: is missing"),
    ("import har", "FILE: is missing"),
    ("analyze sweep", "FILE: is missing"),
    ("serve", "http"),
];

#[test]
fn wrong_lines_say_what_would_be_right() {
    let openapi = TempPath::with("wrong-lines-openapi.yaml", "openapi: 3.0.0\npaths: {}\n");
    let report = TempPath::with("wrong-lines.json", "{\"schema\": \"knee.report/2\"}");
    let mut wrong = Vec::new();
    for (line, expected) in LINES {
        let words = line.split(' ').map(|word| match word {
            "OPENAPI" => openapi.str(),
            "REPORT" => report.str(),
            word => word,
        });
        let words: Vec<&str> = words.collect();
        let ended = run(&words);
        let has_one_line = ended.stderr.lines().count() == 1 || line.split(' ').count() == 1;
        let is_right = ended.stderr.contains(expected) && has_one_line;
        if ended.status != Some(2) || !is_right {
            wrong.push(format!("{line}: {:?} {}", ended.status, ended.stderr));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn two_forms_in_one_file_are_refused() {
    let file = TempPath::new("two-forms");
    let path = file.str();
    for other in ["--html", "--md", "--csv", "--junit", "--hdr"] {
        let ended = run(&["run", "http://127.0.0.1:1/", "--json", path, other, path]);
        assert_eq!(ended.status, Some(2), "{other}: {ended:?}");
        assert!(ended.stderr.contains("name another"), "{other}: {ended:?}");
    }
}

#[test]
fn port_of_the_other_kind_is_named() {
    let plain = KneeServer::start(&[]);
    let secured = KneeServer::start(&["--tls"]);
    let https = plain.url().replace("http://", "https://");
    let ended = run(&["run", &https, "-n", "1", "-k"]);
    assert!(ended.stderr.contains("http://"), "{ended:?}");
    let http = secured.url().replace("https://", "http://");
    let ended = run(&["run", &http, "-n", "1"]);
    let said = format!("{}{}", ended.stdout, ended.stderr);
    assert!(said.contains("https://"), "{said}");
}

#[test]
fn reversed_threshold_gets_a_remark() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let line = ["run", &url, "-n", "50", "--fail-if", "p50<50s"];
    let (ended, ()) = until_it_ends_with(1, || (run(&line), ()));
    assert!(ended.stderr.contains("to require p50<50s, give 'p50>=50s'"), "{ended:?}");
}

#[test]
fn what_is_meant_otherwise_gets_a_note() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let note = |options: &[&str]| {
        let ended = run(&[&["run", &url, "-n", "5", "--no-save"], options].concat());
        // A busy machine makes it invalid.
        assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
        ended.stderr
    };
    assert!(note(&["-b", "sid=abc"]).contains("for a cookie give --cookie"));
    assert!(!note(&["-b", "{\"a\":\"b=c\"}"]).contains("cookie"));
    assert!(!note(&["--data", "sid=abc"]).contains("cookie"));
    assert!(note(&["-c", "40", "-R", "100"]).contains("opened as they are needed"));
    assert!(!note(&["-c", "40"]).contains("opened as they are needed"));
}
