//! Lines of curl behind `--`, and the options of curl that knee has.

use super::copied_lines::LINES;
use crate::command::raw::{RawArgs, RawCommand};
use crate::usage;
use knee_engine::exchange::http1::serialise;
use knee_load::spec::{Endpoint, Target};
use knee_scenario::import::curl_line_words;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

fn read(line: &[&str]) -> Result<RawCommand, String> {
    let argv = ["knee", "run"].iter().chain(line).map(OsString::from);
    let argv: Vec<OsString> = argv.collect();
    let command = RawArgs::command_of(argv.iter().cloned());
    let read = RawArgs::read(argv.iter().cloned());
    read.map(|raw| raw.command).map_err(|e| usage::one_line(&e, &command, &argv))
}

fn target(line: &[&str]) -> Result<Target, String> {
    match read(line)? {
        RawCommand::Run(raw) => raw.target.resolve().map_err(|e| e.line),
        other => panic!("{other:?}"),
    }
}

/// A line of the table, and the request or the refusal that it becomes.
struct Line<'a> {
    name: &'a str,
    line: String,
    expected: &'a str,
}

const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/command/tests/curl_files");

fn table() -> impl Iterator<Item = Line<'static>> {
    let table = include_str!("curl_lines.txt");
    table.split("\n=== ").skip(1).map(|row| {
        let (name, row) = row.split_once('\n').expect("a name");
        let (line, expected) = row.split_once("\n---\n").expect(name);
        Line { name, line: line.replace("FILES", FILES), expected: expected.trim_end() }
    })
}

/// The request of a line behind `--`, in bytes.
fn sent_by_knee(line: &str) -> Result<Vec<u8>, String> {
    let words = curl_line_words(line).map_err(|e| e.0)?;
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let target = target(&[&["-R", "5", "--"], &words[..]].concat())?;
    let request = target.requests.first().expect("a request");
    Ok(serialise(request, true))
}

/// A request as the table has it.
fn normal(request: &[u8]) -> String {
    let text = String::from_utf8_lossy(request).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").expect("a head");
    let boundary = head.split_once("boundary=").filter(|_| body.starts_with("--"));
    let boundary = boundary.map(|(_, rest)| rest.split("\r\n").next().unwrap_or(rest));
    let is_form = boundary.is_some_and(|boundary| body.contains(boundary) && boundary.len() > 15);
    let is_left_out = |line: &str| {
        let line = line.to_ascii_lowercase();
        let length = line.strip_prefix("content-length: ");
        line.starts_with("user-agent: curl/")
            || line.starts_with("user-agent: knee/")
            || line.starts_with("expect:")
            || length.is_some_and(|length| length == "0" || is_form)
    };
    let mut lines = head.split("\r\n").filter(|line| !is_left_out(line));
    // curl 7 writes the codes that it adds to a URL in lowercase.
    let mut pieces = lines.next().unwrap_or_default().split('%');
    let mut first = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let (code, rest) = piece.split_at_checked(2).unwrap_or((piece, ""));
        first.push_str(&format!("%{}{rest}", code.to_ascii_uppercase()));
    }
    let mut headers: Vec<String> = lines
        .map(|line| {
            let (name, value) = line.split_once(':').unwrap_or((line, ""));
            format!("{name}: {}", value.trim()).trim_end().to_owned()
        })
        .collect();
    headers.sort();
    let text = format!("{first}\n{}\n\n{}", headers.join("\n"), body.replace('\r', "⏎"));
    match boundary.filter(|_| is_form) {
        Some(boundary) => text.replace(boundary, "BOUNDARY"),
        None => text,
    }
}

#[test]
fn lines_of_curl_become_the_requests_of_the_table() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for row in table() {
        let became = match sent_by_knee(&row.line) {
            Ok(request) => normal(&request),
            Err(refusal) => format!("! {}", refusal.replace(FILES, "FILES")),
        };
        count += 1;
        assert!(!became.starts_with('!') || !became.contains('\n'), "{became}");
        if became.trim_end() != row.expected {
            wrong.push(format!("=== {}\n{became}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(count >= 140, "{count}");
}

/// One request of a program, received whole.
fn receive(listener: &TcpListener, program: &mut Child) -> Vec<u8> {
    listener.set_nonblocking(true).unwrap();
    let mut stream = loop {
        match listener.accept() {
            Ok((stream, _)) => break stream,
            Err(_) => assert!(program.try_wait().unwrap().is_none(), "it ended without a request"),
        }
        std::thread::sleep(Duration::from_millis(1));
    };
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let mut received = Vec::new();
    let mut buffer = [0; 65_536];
    loop {
        let text = String::from_utf8_lossy(&received).to_ascii_lowercase();
        if let Some((head, _)) = text.split_once("\r\n\r\n") {
            let length = head.split("content-length: ").nth(1).unwrap_or("0");
            let length: usize = length.lines().next().unwrap_or("0").parse().unwrap();
            let head = received.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
            if received.len() >= head + 4 + length {
                let response = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(response).unwrap();
                return received;
            }
            if head + 4 == received.len() && text.contains("expect: 100") {
                stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").unwrap();
            }
        }
        match stream.read(&mut buffer).unwrap() {
            0 => return received,
            count => received.extend_from_slice(&buffer[..count]),
        }
    }
}

/// The table is what the curl of this machine sends, where there is one.
#[test]
fn curl_sends_the_requests_of_the_table() {
    let version = Command::new("curl").arg("--version").output();
    let version = version.map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    if !version.is_ok_and(|version| version.starts_with("curl 7.8")) {
        eprintln!("skipped: curl_sends_the_requests_of_the_table needs curl 7.80 to 7.89");
        return;
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("::{}", listener.local_addr().unwrap());
    // That curl has no HTTP/3.
    let is_sent = |row: &Line<'_>| !row.expected.starts_with('!') && !row.line.contains("--http3");
    let rows = table().filter(is_sent);
    for row in rows {
        // The scheme is http, as nothing at the other end speaks TLS.
        let line = row.line.replace("https://", "http://");
        let words = curl_line_words(&line).unwrap();
        let curl = Command::new("curl")
            .args(["-q", "-sS", "--noproxy", "*", "--connect-to", &server])
            .args(&words[1..])
            .stdout(Stdio::null())
            .spawn();
        let mut curl = curl.unwrap();
        let sent = receive(&listener, &mut curl);
        curl.wait().unwrap();
        assert_eq!(normal(&sent).trim_end(), row.expected, "{}", row.name);
    }
}

#[test]
fn a_line_goes_to_the_server_that_it_names() {
    let of = |line: &[&str]| target(&[&["--", "curl"], line].concat()).unwrap();
    let server = |host: &str, port| Endpoint::Tcp { host: host.to_owned(), port };
    for (option, value, endpoint) in [
        ("--connect-to", "h:443:g:8443", server("g", 8443)),
        ("--connect-to", "::g:", server("g", 443)),
        ("--connect-to", "other::g:1", server("h", 443)),
    ] {
        let target = of(&[option, value, "https://h/x"]);
        assert_eq!(target.endpoint, endpoint, "{option} {value}");
        let [request] = &target.requests[..] else {
            panic!("one request");
        };
        let host = request.headers.iter().find(|h| h.0 == "Host");
        assert_eq!(host.map_or(request.host.as_str(), |h| &h.1), "h");
        let tls = target.tls.unwrap();
        let is_other = endpoint != server("h", 443);
        assert_eq!(tls.server_name.as_deref(), is_other.then_some("h"));
    }
    let options = ["-k", "--http2", "--tlsv1.3", "-L", "https://h/x"];
    let target = of(&options);
    assert!(target.tls.unwrap().is_insecure && target.sessions.is_some());
    let proxied = of(&["-x", "p:3128", "-k", "--cacert", "f", "http://h/x"]);
    assert_eq!(proxied.hop().to_string(), "p:3128");
    for (rule, given) in [
        ("h:443:127.0.0.1", Some(&["127.0.0.1"][..])),
        ("+*:443:[::1],127.0.0.1", Some(&["::1", "127.0.0.1"])),
        ("other:443:127.0.0.1", None),
        ("h:80:127.0.0.1", None),
    ] {
        let route = of(&["--resolve", rule, "--interface", "127.0.0.9", "https://h/x"]).route;
        let found = route.given_for("h", 443).map(|given| &given.addresses);
        let found = found.map(|all| Vec::from_iter(all.iter().map(ToString::to_string)));
        let given = given.map(|all: &[&str]| Vec::from_iter(all.iter().map(ToString::to_string)));
        assert_eq!(found, given, "{rule}");
        assert_eq!(route.sources, ["127.0.0.9"]);
    }
}

#[test]
fn a_range_is_a_header() {
    for line in [&["-r", "0-99", "http://h/"][..], &["--", "curl", "-r", "0-99", "http://h/"]] {
        let target = target(line).unwrap();
        let header = ("Range".to_owned(), "bytes=0-99".to_owned());
        assert!(target.requests[0].headers.contains(&header), "{line:?}");
    }
}

#[test]
fn options_before_the_line_are_of_knee() {
    let line = ["-d", "3s", "-b", "x", "--", "curl", "-d", "a=1", "http://h/"];
    let wrong = "--body and --data exclude each other: leave one out";
    assert_eq!(target(&line).unwrap_err(), wrong);
    let trial = |line: &[&str]| match read(line).unwrap() {
        RawCommand::Run(raw) => raw.resolve(&super::MACHINE).unwrap().trial,
        other => panic!("{other:?}"),
    };
    let both = trial(&["-d", "3s", "--", "curl", "-d", "a=1", "http://h/"]);
    assert_eq!(both.duration.as_secs_f64(), 3.0);
    assert_eq!(&*both.target.requests[0].body, b"a=1");
    let url = target(&["--", "http://h/"]).unwrap();
    assert_eq!(url.requests[0].host, "h");
}

#[test]
fn copied_lines_run_behind_two_dashes() {
    for copied in LINES {
        let line = copied.line;
        let target =
            target(&[&["--", "curl"], line].concat()).unwrap_or_else(|e| panic!("{line:?}: {e}"));
        let [request] = &target.requests[..] else {
            panic!("{line:?}: one request");
        };
        let (method, host, path) = copied.request;
        assert_eq!(
            (request.method.as_str(), request.host.as_str(), request.path.as_str()),
            (method, host, path),
            "{line:?}"
        );
        for (name, value) in copied.headers {
            let header = (name.to_string(), value.to_string());
            assert!(request.headers.contains(&header), "{line:?}: {name}");
        }
        let mut names: Vec<String> = request.headers.iter().map(|h| h.0.to_lowercase()).collect();
        let headers = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), headers, "{line:?}: no header twice");
        assert_eq!(String::from_utf8_lossy(&request.body), copied.body, "{line:?}");
    }
}

#[test]
fn options_of_curl_that_make_no_request_are_refused() {
    let url = "http://h/";
    for (line, wrong) in [
        (
            &["--cookie", "jar.txt"][..],
            "--cookie: invalid cookie: expected NAME=VALUE; files of cookies are not read",
        ),
        (
            &["-x", "socks5://u:pw@h:1"],
            "--proxy: 'socks5://***@h:1' is a proxy of the scheme 'socks5', which is not \
             supported: expected http://HOST:PORT",
        ),
        (
            &["-x", "p:3128", "--unix-socket", "/s"],
            "--proxy: a Unix socket is reached without one: leave one out",
        ),
        (&["-x", "http://"], "--proxy: 'http://' has no host: write http://HOST:PORT/PATH"),
        (
            &["--resolve", "h:80"],
            "--resolve: 'h:80' is no rule for a name: expected HOST:PORT:ADDRESS[,ADDRESS]",
        ),
        (&["--form", "a"], "--form: 'a' is no part of a form: write NAME=VALUE"),
        (&["-F", "a=1", "--data", "b"], "--form and --data exclude each other: leave one out"),
    ] {
        let line = [&[url], line].concat();
        assert_eq!(target(&line).unwrap_err(), wrong, "{line:?}");
    }
    let query = target(&["dns://h/a", "-x", "p:3128"]).unwrap_err();
    assert_eq!(query, "--proxy: it carries no queries of DNS: leave it out");
}

#[test]
fn what_is_expected_makes_a_session_of_one_step() {
    let of = |line: &[&str]| target(&[&["http://h/a"], line].concat()).unwrap();
    assert!(of(&[]).sessions.is_none());
    let followed = of(&["-L", "--expect-status", "2xx", "--expect-body", "ok"]);
    let plan = followed.sessions.unwrap();
    assert_eq!((followed.requests.len(), plan.requests.len()), (2, 2));
    assert_eq!(plan.requests[0].expect.len(), 2);
    assert_eq!(plan.requests[0].redirects, 50);
    let wrong = target(&["http://h/", "--expect-status", "20"]).unwrap_err();
    assert!(wrong.contains("is no status"), "{wrong}");
}

#[test]
fn options_of_knee_mean_one_thing() {
    let trial = |line: &[&str]| match read(line).unwrap() {
        RawCommand::Run(raw) => {
            let spec = raw.resolve(&super::MACHINE).unwrap();
            spec.trial
        }
        other => panic!("{other:?}"),
    };
    let url = "http://127.0.0.1:8080/";
    for line in [&[url, "-d", "30s"][..], &[url, "-d30s"], &["-d=30s", url]] {
        let trial = trial(line);
        assert_eq!(trial.duration.as_secs_f64(), 30.0, "{line:?}");
        assert_eq!(trial.target.requests[0].method, "GET");
    }
    for body in ["text", "a=1&b=2", r#"{"a":1}"#, "<a b=\"1\"/>"] {
        let trial = trial(&[url, "-b", body]);
        let request = &trial.target.requests[0];
        assert_eq!((request.method.as_str(), &*request.body), ("POST", body.as_bytes()));
    }
}

#[test]
fn a_proxy_forwards_http_and_makes_tunnels_for_all_else() {
    for (line, is_tunnelled) in [
        (&["http://shop.test/a?b=1"][..], false),
        (&["http://shop.test/", "--http1.1"], false),
        (&["http://shop.test/", "--http2-prior-knowledge"], true),
        (&["https://shop.test/"], true),
        (&["https://shop.test/", "--http2"], true),
        (&["ws://shop.test/"], true),
        (&["wss://shop.test/"], true),
        (&["http://shop.test/", "-X", "POST", "--data", "a"], false),
    ] {
        let target = target(&[line, &["-x", "http://u:pw@127.0.0.1:3128/"]].concat()).unwrap();
        assert_eq!(target.is_tunnelled(), is_tunnelled, "{line:?}");
        assert_eq!(target.forwarder_of(0).is_some(), !is_tunnelled, "{line:?}");
        assert_eq!(target.hop().to_string(), "127.0.0.1:3128");
        assert!(target.endpoint.to_string().starts_with("shop.test:"), "{line:?}");
        assert_eq!(target.requests[0].host, "shop.test", "{line:?}");
    }
    let none = target(&["http://shop.test/", "-x", "p:3128", "--noproxy", ".test"]).unwrap();
    assert_eq!((none.proxies().len(), none.hop().to_string()), (0, "shop.test:80".to_owned()));
}
