//! `knee observe` beside a server, and the `knee run` that asks it.

use crate::support::{
    Ended, KneeServer, TempPath, backends, knee, run, run_load, signal, unless_disturbed,
};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::process::Child;

/// A running observer of a server's port: its address, and what it says of what counts.
pub fn observe(server: &KneeServer, options: &[&str]) -> (Child, String, String) {
    let (_, port) = server.address.rsplit_once(':').unwrap();
    let always = ["observe", "--port", port, "--listen", "127.0.0.1:0"];
    let mut child = knee(&[&always, options].concat()).spawn().unwrap();
    let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
    let mut lines = [String::new(), String::new()];
    for line in &mut lines {
        stdout.read_line(line).unwrap();
    }
    let [first, second] = lines;
    let address = first.trim().strip_prefix("listening on ").unwrap();
    (child, address.to_owned(), second)
}

pub fn terminate(child: Child) -> Ended {
    signal(&child, libc::SIGTERM);
    Ended::of(child)
}

/// 50 operations, each over a connection of its own.
const LOAD: [&str; 8] = ["-n", "50", "-c", "2", "--warmup", "0", "--no-keepalive", "--json"];

#[test]
fn a_run_reports_what_the_observer_saw() {
    let server = KneeServer::start(&[]);
    let (child, at, counted) = observe(&server, &["--token", "secret"]);
    let options = ["--observe", &at, "--observe-token", "secret"];
    let ended = run(&[&["run", &server.url()][..], &LOAD, &["-"], &options].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["spec"]["observe"], at);
    assert!(!ended.stdout.contains("secret"), "the token stays secret");
    let observed = &report["trials"][0]["observed"];
    let opened = report["trials"][0]["connections_opened"].as_u64().unwrap();
    assert!(opened >= 50, "{opened}");
    let first = observed["first_syns"].as_u64().unwrap();
    match observed["source"].as_str().unwrap() {
        "capture" => {
            assert!(counted.contains("a packet capture"), "{counted}");
            assert_eq!(first, opened, "{observed}");
        }
        "counters" => {
            assert!(counted.contains("counters, as"), "{counted}");
            // They are read up to a millisecond off the window's edges.
            assert!(first > 0 && observed["because"].is_string(), "{observed}");
        }
        other => panic!("{other}"),
    }
    let stopped = terminate(child);
    assert_eq!(stopped.status, Some(0));
    assert_eq!(stopped.stdout, "clients 1, windows 1, refused 0\n");
}

/// What a run was told of both ends, with what says that no connection went unseen; `None` where
/// this host permits no capture.
fn told(url: &str, options: &[&str]) -> Option<Value> {
    let check = |report: &Value| {
        let observed = &report["trials"][0]["observed"];
        let times = &observed["server_host"];
        if observed["source"] != "capture" {
            assert!(times["because"].is_string(), "{observed}");
            return;
        }
        let missed = (&times["unseen"], &times["incomplete"]);
        assert_eq!(missed, (&0.into(), &0.into()), "{options:?}");
        assert!(times["operations"].as_u64().unwrap() > 10, "{times}");
        // No response leaves before its service has ended, whatever the host does.
        let p50 = times["host_ns"]["p50"].as_u64().unwrap_or(u64::MAX);
        assert!(p50 >= 1_500_000, "{options:?}: {times}");
        assert!(times["host_percent"].as_f64().unwrap() > 0.0, "{times}");
    };
    let report = unless_disturbed(|| run_load(url, options), check);
    let trial = &report["trials"][0];
    (trial["observed"]["source"] == "capture").then(|| trial.clone())
}

/// A constant load of a server that takes 2 ms for each.
const FIXED: [&str; 6] = ["-R", "100", "-d", "500ms", "--warmup", "100ms"];

#[test]
fn observer_reports_the_time_inside_the_servers_host() {
    let server = KneeServer::start(&["--workers", "1", "--service", "fixed(2ms)"]);
    let (child, at, _) = observe(&server, &[]);
    let url = server.url();
    // However many connections are permitted, few are opened, and these are followed.
    let permitted: [&[&str]; 2] = [&["-c", "4"], &[]];
    for backend in backends(&url) {
        for (place, permitted) in ["here", &at].into_iter().zip(permitted) {
            let options = ["--observe", place, "--backend", backend];
            let Some(trial) = told(&url, &[&FIXED, permitted, &options].concat()) else {
                continue;
            };
            let all = &trial["anatomy"][0];
            let owners = all["owner_percent"].as_object().unwrap();
            let times = &trial["observed"]["server_host"];
            if times["operations"].as_u64().unwrap() >= 25 {
                assert!(owners["server_host"].as_f64().unwrap() > 0.0, "{all}");
            }
            let sum: f64 = owners.values().filter_map(Value::as_f64).sum();
            assert!((sum - 100.0).abs() < 0.01, "{all}");
        }
    }
    assert_eq!(terminate(child).status, Some(0));
}

#[test]
fn so_is_one_whose_operations_share_a_connection() {
    let backends = backends(&KneeServer::start(&[]).url());
    for (serve, with) in [
        (&[][..], "--http2-prior-knowledge"),
        (&["--tls"][..], "--http2"),
        (&["--tls"][..], "--http1.1"),
    ] {
        let server = KneeServer::start(&[&["--service", "fixed(2ms)"], serve].concat());
        let url = server.url();
        for &backend in &backends {
            let here = ["--observe", "here", "--backend", backend, with, "-k"];
            told(&url, &[&FIXED[..], &["-c", "1"], &here].concat());
            // Closed loop: several at once, whatever the host does.
            let closed = ["--vusers", "6", "-c", "1", "-d", "300ms", "--warmup", "50ms"];
            if with != "--http1.1" {
                told(&url, &[&closed[..], &here].concat());
            }
        }
    }
}

#[test]
fn so_are_the_steps_of_sessions() {
    let server = KneeServer::start(&["--service", "fixed(2ms)"]);
    let steps = "sessions:\n  visitor:\n    steps:\n      - get: /\n      - get: /again\n";
    let scenario = format!("target: {}\n{steps}", server.url());
    let file = TempPath::with("followed.yaml", &scenario);
    for with in ["--http1.1", "--http2-prior-knowledge"] {
        let here = ["--observe", "here", with];
        told(file.str(), &[&FIXED[..], &here].concat());
    }
}

#[test]
fn a_sweep_asks_at_each_level_and_here_needs_nobody() {
    let server = KneeServer::start(&[]);
    let levels = ["--vusers", "1,2", "-d", "200ms", "--warmup", "50ms"];
    let options = ["--observe", "here", "--json", "-"];
    let ended = run(&[&["sweep", &server.url()][..], &levels, &options].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let report = ended.json();
    for trial in report["trials"].as_array().unwrap() {
        assert_ne!(trial["observed"]["source"], "attempts", "{trial}");
        assert_eq!(trial["observed"]["elapsed_ns"], trial["duration_ns"]);
    }
    let ended = run(&["run", &server.url(), "-n", "5", "--observe", "here", "--full"]);
    assert!(ended.stdout.contains("At the server"), "{}", ended.stdout);
}

#[test]
fn absent_observer_is_refused_before_any_load() {
    let server = KneeServer::start(&[]);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let ended = run(&["run", &server.url(), "-n", "5", "--observe", &at]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(ended.stderr.contains(&at), "{}", ended.stderr);
    let (child, at, _) = observe(&server, &["--token", "secret"]);
    let ended = run(&["run", &server.url(), "-n", "5", "--observe", &at]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("wrong token"), "{}", ended.stderr);
    terminate(child);
    assert_eq!(server.served()["requests"], 0);
}
