//! The binary under load, against `knee serve http` on the loopback. Nothing here depends on speed.

use crate::support::{
    Answer, Ended, KneeServer, Station, TempPath, figure, knee, run, signal, until_it_ends_with,
};
use serde_json::Value;
use std::net::TcpListener;
use std::sync::mpsc;
use std::time::Duration;

#[test]
fn a_run_reports_what_the_server_served() {
    let server = KneeServer::start(&[]);
    let ended = run(&["run", &server.url(), "-n", "500", "-c", "4", "--json", "-", "--seed", "5"]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["command"], "run");
    assert_eq!(report["seed"], 5);
    assert_eq!(report["interrupted"], false);
    let trial = &report["trials"][0];
    assert_eq!(trial["attempted"], 500);
    assert_eq!(trial["outcomes"]["ok"], 500);
    assert_eq!(report["spec"]["url"], server.url());
    assert_eq!(report["spec"]["vusers"], 4);
    assert_eq!(server.served()["requests"], 500);
}

#[test]
fn an_open_loop_offers_its_rate() {
    let server = KneeServer::with(&["--listen", "127.0.0.1:0"]);
    let url = server.url();
    let ended = run(&["run", &url, "--rate", "200", "-d", "1s", "--warmup", "0", "--json", "-"]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let trial = &ended.json()["trials"][0];
    assert_eq!(trial["attempted"], 200);
    assert_eq!(trial["offered"]["arrival"], "constant");
    let (rest, status) = server.terminate();
    assert_eq!(status, Some(0));
    assert!(rest.contains("200 requests"), "{rest}");
}

#[test]
fn a_single_operation_takes_its_time() {
    let server = KneeServer::start(&[]);
    for load in [["--rate", "0.5"], ["--vusers", "1"]] {
        let url = server.url();
        let ended = run(&["run", &url, load[0], load[1], "-n", "1", "--json", "-"]);
        let trial = &ended.json()["trials"][0];
        assert_eq!(trial["attempted"], 1);
        assert!(trial["duration_ns"].as_u64() > Some(0), "{load:?}");
        let times = &trial["response_time_ns"];
        assert!(figure(times, "min").is_some_and(|ns| ns > 0), "{load:?}: {times:#}");
        let busy = trial["generator"]["busiest_worker_percent"].as_f64().unwrap();
        assert!(busy < 150.0, "{load:?}: {busy} % of a core");
    }
}

#[test]
fn json_goes_to_a_file_beside_the_text() {
    let server = KneeServer::start(&[]);
    let stored = TempPath::new("run.json");
    let ended = run(&["run", &server.url(), "-n", "50", "--full", "--json", stored.str()]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert!(ended.stdout.contains("seed"), "{}", ended.stdout);
    assert_eq!(ended.stderr, "", "no progress without a terminal");
    let again = run(&["report", stored.str(), "--full"]);
    assert_eq!(again.stdout, ended.stdout);
}

#[test]
fn thresholds_decide_the_exit_code() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    for (threshold, statuses) in
        [("p99>0ns", [1, 3]), ("throughput<1", [0, 3]), ("errors>0.1%", [0, 3])]
    {
        let load = ["run", &url, "-n", "200", "-c", "2", "--quiet"];
        let ended = run(&[&load[..], &["--fail-if", threshold]].concat());
        let status = ended.status.unwrap_or(-1);
        assert!(statuses.contains(&status), "{threshold}: {ended:?}");
        let said = ended.stderr.contains("crosses p99>0ns");
        assert_eq!(said, status == 1, "{ended:?}");
    }
}

#[test]
fn a_dead_port_is_exit_4_in_one_line() {
    let port = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let url = format!("http://127.0.0.1:{port}/");
    let stored = TempPath::new("never.json");
    for command in ["run", "sweep"] {
        let ended = run(&[command, &url, "--json", stored.str()]);
        let report = std::fs::read_to_string(&stored.0).unwrap();
        let report: Value = serde_json::from_str(&report).unwrap();
        assert_eq!(report["findings"][0]["code"], "unreachable", "{report:#}");
        assert_eq!(report["trials"].as_array().map(Vec::len), Some(0));
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert_eq!(ended.stdout, "");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains(&port.to_string()), "{ended:?}");
    }
}

#[test]
fn a_server_that_only_resets_is_exit_1() {
    let server = KneeServer::start(&["--fault", "reset(1)"]);
    let url = server.url();
    let (ended, ()) = until_it_ends_with(1, || (run(&["run", &url, "-n", "20", "-c", "2"]), ()));
    let none = "failed: none of 20 operations succeeded: 20 reset";
    assert!(ended.stderr.contains(none), "{ended:?}");
    assert!(ended.stdout.contains("\nVALID, FAILED  "), "{ended:?}");
    assert!(ended.stdout.contains("reset"), "what went wrong is reported: {ended:?}");
}

#[test]
fn ctrl_c_ends_a_run_early_with_a_report() {
    let (asked, requests) = mpsc::channel();
    let url = Station::start(2, move |_| {
        // Nobody counts them after the first.
        let _ = asked.send(());
        Answer::After(Duration::from_millis(1))
    });
    let arguments = ["run", &url, "-d", "60s", "--warmup", "0", "-c", "2", "--json", "-"];
    let child = knee(&arguments).spawn().unwrap();
    // With two at a time, some of ten have their response.
    for _ in 0..10 {
        requests.recv_timeout(Duration::from_secs(60)).expect("a request");
    }
    signal(&child, libc::SIGINT);
    let ended = Ended::of(child);
    assert!(matches!(ended.status, Some(130 | 3)), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["interrupted"], true);
    assert!(report["trials"][0]["completed"].as_u64().unwrap() > 0);
}

#[test]
fn a_quick_sweep_of_levels() {
    let server = KneeServer::start(&["--workers", "2", "--service", "fixed(2ms)"]);
    let ended = run(&[
        "sweep",
        &server.url(),
        "--vusers",
        "1,2,4",
        "-d",
        "300ms",
        "--warmup",
        "50ms",
        "--json",
        "-",
    ]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let report = ended.json();
    let trials = report["trials"].as_array().unwrap();
    let mut levels: Vec<u64> =
        trials.iter().map(|t| t["level"]["vusers"].as_u64().unwrap()).collect();
    // On a busy machine a level may be measured again.
    levels.sort_unstable();
    levels.dedup();
    assert_eq!(levels, [1, 2, 4]);
    assert_eq!(report["spec"]["vusers"], "1,2,4");
    let slices = report["conclusion"]["slices"].as_array().unwrap();
    let lines = ended.stderr.lines().count();
    assert_eq!(lines, slices.len(), "a line per slice: {}", ended.stderr);
}

#[test]
fn a_sweep_without_a_url_brings_its_own_server() {
    let ended = run(&["sweep", "--vusers", "1", "-d", "200ms", "--warmup", "0"]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert!(ended.stderr.contains("no URL given"), "{ended:?}");
    let quiet = run(&["sweep", "--vusers", "1", "-d", "200ms", "--warmup", "0", "--quiet"]);
    assert_eq!(quiet.stderr, "");
}

#[test]
fn several_targets_are_taken_in_order() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let targets = TempPath::with("targets.txt", &format!("GET {url}a\n\nHEAD {url}b\n"));
    let ended = run(&["run", "--targets", targets.str(), "-n", "10", "-c", "1", "--json", "-"]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert_eq!(ended.json()["trials"][0]["outcomes"]["ok"], 10);
    let weighted = TempPath::with("weighted.txt", &format!("{url}a weight=9\n{url}b\n"));
    let ended = run(&["run", "--targets", weighted.str(), "-n", "10"]);
    assert_eq!(ended.status, Some(2));
    assert!(ended.stderr.contains("give --pick random"), "{ended:?}");
    let ended = run(&["run", "--targets", weighted.str(), "--pick", "random", "-n", "10"]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
}

#[test]
fn a_unix_socket_is_a_target() {
    let socket = TempPath::new("socket");
    let server = KneeServer::with(&["--listen", &format!("unix:{}", socket.str())]);
    let arguments =
        ["run", "http://app/", "--unix-socket", socket.str(), "-n", "20", "--json", "-"];
    let ended = run(&arguments);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert_eq!(ended.json()["trials"][0]["outcomes"]["ok"], 20);
    assert_eq!(server.terminate().1, Some(0));
}
