//! What the tools may not do.

use super::Session;
use crate::support::{Ended, KneeServer, knee};
use serde_json::json;
use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::thread;

#[test]
fn wrong_arguments_get_the_line_of_the_command() {
    let mut session = Session::start("wrong", &[]);
    for (arguments, expected) in [
        (json!({"url": "http://127.0.0.1:1/", "rate": -5}), "error: --rate: '-5'"),
        (json!({"url": "http://127.0.0.1:1/", "duration": "soon"}), "error: --duration: 'soon'"),
        (json!({"url": "http://127.0.0.1:1/"}), "error: cannot connect to 127.0.0.1:1:"),
        (json!({"url": "absent.yaml"}), "error: absent.yaml: cannot be read: No such file"),
        (json!({"url": "http://h/", "json": "x"}), "error: unknown argument 'json': expected url"),
        (json!({"url": "--json=x"}), "error: invalid url '--json=x': it may not begin with '-'"),
        (json!({}), "error: missing argument 'url'"),
    ] {
        let line = session.refused("run", arguments);
        assert!(line.starts_with(expected), "{line}");
        assert_eq!(line.lines().count(), 1, "{line}");
    }
    let unknown = session.refused("explain", json!({"code": "past_kneee"}));
    assert!(unknown.contains("expected past_knee"), "{unknown}");
}

#[test]
fn targets_beyond_loopback_need_permission() {
    let mut session = Session::start("targets", &["--allow-target", "192.0.2.0/24"]);
    let file = "POST http://198.51.100.9/\n";
    fs::write(session.folder.join("targets.txt"), file).unwrap();
    let scenario = "target: http://198.51.100.9/\nsessions: {s: {steps: [{get: /}]}}\n";
    fs::write(session.folder.join("scenario.yaml"), scenario).unwrap();
    let limit = "--allow-target 198.51.100.9";
    for (tool, arguments) in [
        ("run", json!({"url": "http://198.51.100.9/"})),
        ("run", json!({"url": "https://198.51.100.9/", "insecure": true})),
        ("run", json!({"url": "ws://198.51.100.9/"})),
        ("run", json!({"url": "dns://198.51.100.9/example.com"})),
        ("run", json!({"url": "http://[::ffff:198.51.100.9]/"})),
        ("run", json!({"url": "scenario.yaml"})),
        ("sweep", json!({"url": "http://198.51.100.9/"})),
        ("compare_targets", json!({"a": "http://127.0.0.1:1/", "b": "http://198.51.100.9/"})),
    ] {
        let line = session.refused(tool, arguments.clone());
        let is_first = tool == "compare_targets" && line.contains("127.0.0.1:1");
        assert!(line.contains(limit) || is_first, "{arguments}: {line}");
    }
    // A scenario without a URL of its own still goes through the same check.
    let line = session.refused("run", json!({"url": "http://192.0.2.1:1/", "timeout": "1s"}));
    assert!(!line.contains("--allow-target"), "{line}");
}

/// A server that leads to another one is not followed there, permitted or not.
#[test]
fn redirects_lead_to_no_other_server() {
    let (first, other) = (listener(), listener());
    let [url, elsewhere] = [&first, &other].map(|l| format!("http://{}/", l.local_addr().unwrap()));
    let response =
        format!("HTTP/1.1 302 Found\r\nlocation: {elsewhere}\r\ncontent-length: 0\r\n\r\n");
    thread::spawn(move || {
        for mut connection in first.incoming().map_while(Result::ok) {
            let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
            while lines.by_ref().map_while(Result::ok).any(|line| line.is_empty()) {
                let _ = connection.write_all(response.as_bytes());
            }
        }
    });
    let mut session = Session::start("redirects", &[]);
    let load = json!({"url": url, "location": true, "requests": 3, "vusers": 1});
    let (answer, _) = session.told("run", load);
    assert_eq!(answer["interrupted"], false, "{answer}");
    other.set_nonblocking(true).unwrap();
    assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
}

fn listener() -> TcpListener {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()
}

#[test]
fn files_are_read_below_the_working_folder_only() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("files", &[]);
    symlink("/etc/hostname", session.folder.join("link")).unwrap();
    fs::write(session.folder.join("body"), "12345").unwrap();
    let url = server.url();
    // A file that has no name any more cannot be looked up by its path.
    let gone = session.folder.join("gone");
    fs::write(&gone, "of another").unwrap();
    let open = fs::File::open(&gone).unwrap();
    fs::remove_file(&gone).unwrap();
    let gone = format!("/proc/{}/fd/{}", std::process::id(), open.as_raw_fd());
    symlink(&gone, session.folder.join("magic")).unwrap();
    let names = ["/etc/hostname", "../../../../../etc/hostname", "link", "magic", &gone];
    for name in names {
        let line = session.refused("run", json!({"url": url, "body": format!("@{name}")}));
        assert!(line.contains("may not be read: expected a file below"), "{line}");
        let line = session.refused("run", json!({"url": url, "arrival": format!("trace({name})")}));
        assert!(line.contains("may not be read: expected a file below"), "{line}");
    }
    for (tool, arguments) in [
        ("scenario_check", json!({"file": "/etc/passwd"})),
        ("compare", json!({"a": ["/etc/passwd"], "b": ["/etc/passwd"]})),
        ("run", json!({"url": "/etc/passwd.yaml/../passwd.jsonl"})),
    ] {
        let line = session.refused(tool, arguments);
        assert!(line.contains("may not be read") || line.contains("No such file"), "{line}");
    }
    session.told("run", json!({"url": url, "body": "@body", "requests": 1}));
}

#[test]
fn programs_are_started_only_where_that_is_permitted() {
    let server = KneeServer::start(&[]);
    for (options, is_permitted) in [(&[][..], false), (&["--allow-exec"], true)] {
        let mut session = Session::start("exec", options);
        let program = session.folder.join("program.sh");
        let text = "#!/bin/sh\nwhile read -r line; do echo '{\"set\": {\"x\": \"1\"}}'; done\n";
        fs::write(&program, text).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let scenario = format!(
            "target: {}\nsessions: {{s: {{steps: [{{get: /, exec: ./program.sh, gives: x, \
             headers: {{X: '${{x}}'}}}}]}}}}\n",
            server.url()
        );
        fs::write(session.folder.join("scenario.yaml"), scenario).unwrap();
        let load = json!({"url": "scenario.yaml", "requests": 2});
        if is_permitted {
            session.told("run", load);
        } else {
            let line = session.refused("run", load);
            assert!(line.contains("--allow-exec"), "{line}");
        }
    }
}

/// A schedule beyond the limit is refused. Users are held back, and the result is not the server's.
#[test]
fn rate_is_limited() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("rate", &["--rate-max", "50"]);
    let url = server.url();
    let line = session.refused("run", json!({"url": url, "rate": 51}));
    assert_eq!(line, "error: --rate: 51/s is more than the --rate-max of this server, 50/s");
    let load = json!({"url": url, "vusers": 8, "duration": "1s", "warmup": "0s"});
    let (answer, text) = session.told("run", load);
    assert_eq!(answer["verdict"], "invalid");
    let because = answer["invalid_because"].to_string();
    assert!(because.contains("--rate-max, 50/s in all, held back"), "{because}");
    assert!(text.starts_with("INVALID"), "{text}");
    let other = KneeServer::start(&[]);
    let load = json!({"url": other.url(), "vusers": "1,2", "duration": "1s"});
    let (answer, _) = session.told("sweep", load);
    let because = answer["invalid_because"].to_string();
    assert!(because.contains("--rate-max, 50/s in all, held back"), "{because}");
    // 50 in a second, and the burst that each of the workers may have earned.
    let served = server.served()["responses"].as_u64().unwrap();
    assert!((1..=80).contains(&served), "{served}");
}

#[test]
fn measurement_beyond_the_longest_time_is_refused_or_ended() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("duration", &["--duration-max", "2s"]);
    let line = session.refused("run", json!({"url": server.url(), "duration": "3s"}));
    let expected = "error: --duration: 4 s with the warm-up is more than this server's";
    assert!(line.starts_with(expected), "{line}");
    let load = json!({"url": server.url(), "requests": 100_000_000, "vusers": 1});
    let (answer, text) = session.told("run", load);
    assert_eq!(answer["interrupted"], true);
    assert!(text.contains("Ended early, by the --duration-max of this server."), "{text}");
}

#[test]
fn limits_that_cannot_be_read_let_nothing_run() {
    let mut command = knee(&["explain"]);
    let ended = Ended::of(command.env("KNEE_CONFINED", "{}").spawn().unwrap());
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.starts_with("error: KNEE_CONFINED: missing field"), "{}", ended.stderr);
}

/// Each call that waits for its turn costs memory.
#[test]
fn calls_beyond_the_most_are_refused_at_once() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("calls", &[]);
    let arguments = json!({"url": server.url(), "duration": "60s", "connections": 1});
    let call = json!({"name": "run", "arguments": arguments});
    let ids: Vec<u64> = (0..40).map(|_| session.send("tools/call", call.clone())).collect();
    for id in &ids[32..] {
        let answer = session.answer(*id);
        let line = answer["result"]["content"][0]["text"].as_str().unwrap();
        assert_eq!(line, "error: 32 calls are under way: call again once one ends");
    }
}
