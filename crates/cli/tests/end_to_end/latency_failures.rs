//! Flows that are killed, services that die, fall silent or are busy: clear outcomes, no hang, and
//! what was measured is kept.

use crate::support::{
    Ended, KneeServer, TempPath, connections, knee, run, signal, unless_disturbed,
};
use serde_json::Value;
use std::io::Read;
use std::net::TcpListener;
use std::process::Child;
use std::time::{Duration, Instant};

fn service(options: &[&str]) -> KneeServer {
    let always: &[&str] = &["latency", "--listen", "127.0.0.1:0", "--json", "-"];
    KneeServer::of(&[always, options].concat())
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|f| f["code"].as_str().unwrap()).collect()
}

/// Its direction and the smoothness are zero, the other scenarios are run, and it is named.
#[test]
fn a_killed_flow_is_zero_and_named() {
    let attempt = || {
        let service = service(&["--fault", "reset(up,1,300ms)"]);
        let options = ["--scenarios", "2/1,0/1", "-d", "600ms", "--idle", "100ms", "--json", "-"];
        run(&[&["latency", &service.address, "--quiet"], &options[..]].concat())
    };
    let report = unless_disturbed(attempt, |report| {
        let conclusion = &report["conclusion"];
        assert_eq!(conclusion["upload_capacity_kib_per_s"], 0, "{conclusion:#}");
        assert_eq!(conclusion["smoothness_hz"], 0, "{conclusion:#}");
        assert!(conclusion["download_capacity_kib_per_s"].as_u64() > Some(0));
        let scenarios = conclusion["scenarios"].as_array().unwrap();
        assert_eq!(scenarios.len(), 2);
        assert!(scenarios[1]["smoothness_hz"].as_f64() > Some(0.0));
        let flows = scenarios[0]["flows"].as_array().unwrap().iter();
        let lost: Vec<bool> = flows.map(|flow| flow["lost"] != "").collect();
        assert_eq!(lost, [false, true, false]);
        assert!(codes(report).contains(&"flow_killed"), "{report:#}");
    });
    let stored = TempPath::with("killed-flow.json", &report.to_string());
    let text = run(&["report", stored.str(), "--full"]).stdout;
    assert!(text.contains("\n    Upload Capacity: 0 KiB/s\n"), "{text}");
    assert!(text.contains("\n    Flow Smoothness: 0 Hz\n"), "{text}");
    assert!(text.contains("2/1 upload 1 was lost after "), "{text}");
}

/// A gap of 334 ms is 2 Hz, not 3. The service is the receiver that is stalled: what a sender has
/// in its buffers goes on for a while.
#[test]
fn a_flow_that_stands_still_is_not_smooth() {
    let service = service(&["--fault", "stall(up,0,300ms,334ms)"]);
    let options = ["--scenarios", "2/0", "-d", "1s", "--idle", "0", "--json", "-"];
    let ended = run(&[&["latency", &service.address], &options[..]].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let conclusion = &ended.json()["conclusion"];
    let hz = conclusion["smoothness_hz"].as_u64().unwrap();
    assert!(hz <= 2, "{conclusion:#}");
    let capacity = conclusion["upload_capacity_kib_per_s"].as_u64();
    assert!(capacity > Some(0), "{conclusion:#}");
}

fn start(service: &str, options: &[&str]) -> Child {
    let always = ["latency", service, "--json", "-"];
    knee(&[&always, options].concat()).spawn().unwrap()
}

/// Waits until this number of connections to the service is established, as it carries flows.
fn wait_until_carrying(service: &str, flows: usize) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while connections(service) <= flows {
        assert!(Instant::now() < deadline, "nobody uses {service}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// What was measured until then is reported, and the last line says what happened.
#[test]
fn a_service_that_dies_leaves_what_was_measured() {
    let service = service(&[]);
    let options = ["--scenarios", "0/1,1/1", "-d", "20s", "--idle", "200ms"];
    let client = start(&service.address, &options);
    wait_until_carrying(&service.address, 1);
    std::thread::sleep(Duration::from_millis(300));
    drop(service);
    let begun = Instant::now();
    let ended = Ended::of(client);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
    assert_eq!(ended.status, Some(4), "{ended:?}");
    let report = ended.json();
    let trials = report["trials"].as_array().unwrap();
    assert_eq!(trials[0]["label"], "idle");
    assert!(!report["conclusion"]["min_rtt_ns"].is_null(), "{report:#}");
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("service") || last.contains(&service_name(&ended)), "{ended:?}");
}

fn service_name(ended: &Ended) -> String {
    let target = &ended.json()["spec"]["target"];
    target.as_str().unwrap().to_owned()
}

/// It accepts, and reads or does not, but never answers.
#[test]
fn a_silent_service_is_given_up() {
    for reads in [true, false] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            for stream in listener.incoming().take(64).flatten() {
                if reads {
                    let mut stream = stream.try_clone().unwrap();
                    std::thread::spawn(move || stream.read_to_end(&mut Vec::new()));
                }
                kept.push(stream);
            }
        });
        let begun = Instant::now();
        let ended = run(&["latency", &address, "-d", "200ms"]);
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        let last = ended.stderr.lines().last().unwrap();
        assert!(last.contains(&address), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
    }
}

#[test]
fn whoever_cannot_be_reached_is_told_before_any_load() {
    let http = KneeServer::start(&[]);
    let of_token = service(&["--token", "right"]);
    let (http, token) = (http.address.clone(), of_token.address.clone());
    for (arguments, expected) in [
        (vec!["127.0.0.1:1"], "connection refused"),
        (vec!["no-such-host.invalid"], "cannot resolve"),
        (vec![http.as_str()], "knee serve latency"),
        (vec![token.as_str()], "--token"),
        (vec![token.as_str(), "--token", "wrong"], "--token"),
    ] {
        let ended = run(&[&["latency", "--quiet", "-d", "200ms"], &arguments[..]].concat());
        assert_eq!(ended.status, Some(4), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
    }
}

#[test]
fn a_client_of_another_experiment_is_told_what_the_service_is() {
    let service = service(&[]);
    let ended = run(&["udp", &service.address, "--quiet", "-d", "200ms"]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let expected = "this is `knee serve latency`";
    assert!(ended.stderr.contains(expected), "{ended:?}");
}

#[test]
fn a_second_client_is_told_that_the_service_is_busy() {
    let service = service(&[]);
    let options = ["--scenarios", "1/0", "-d", "20s", "--idle", "0"];
    let first = start(&service.address, &options);
    wait_until_carrying(&service.address, 1);
    let second = run(&["latency", &service.address, "--quiet", "-d", "200ms"]);
    assert_eq!(second.status, Some(4), "{second:?}");
    assert!(second.stderr.contains("busy"), "{second:?}");
    assert_eq!(second.stderr.lines().count(), 1, "{second:?}");
    signal(&first, libc::SIGINT);
    let first = Ended::of(first);
    assert!(matches!(first.status, Some(130 | 3)), "{first:?}");
    let report = first.json();
    assert_eq!(report["interrupted"], true);
    let capacity = report["conclusion"]["upload_capacity_kib_per_s"].as_u64();
    assert!(capacity > Some(0), "{report:#}");
}
