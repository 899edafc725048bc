//! A stalled server is measured as its users feel it; a stalled knee says so.

use crate::support::{Ended, KneeServer, figure, knee, run, signal, until_valid};
use serde_json::Value;
use std::time::Duration;

const MS: u64 = 1_000_000;

/// Long enough after its start for knee to have begun, early enough for it not to have ended.
const STALL: [&str; 2] = ["--fault", "stall(1500ms,500ms)"];

/// 200/s for 3 s, in which the server stalls for 500 ms. A hundred operations are delayed, the
/// first by 500 ms, the last by nothing.
fn under_constant_load(options: &[&str]) -> Value {
    let (report, served) = until_valid(|| {
        let server = KneeServer::start(&STALL);
        let url = server.url();
        let always = ["run", &url, "--rate", "200", "-d", "3s", "--warmup", "0"];
        let mut ended = run(&[&always, options, &["--json", "-"]].concat());
        let says = |code: &str| ended.stdout.contains(&format!("\"{code}\""));
        // Where the generator was late itself, it says that and may say nothing of the server.
        if says("figures_undetermined") && !says("pauses") {
            ended.status = Some(3);
        }
        (ended, server.served())
    });
    let trial = report["trials"][0].clone();
    assert_eq!(trial["attempted"], 600);
    assert_eq!(trial["outcomes"]["ok"], 600, "{:#}", trial["outcomes"]);
    assert_eq!(served["requests"], 600);
    let times = &trial["response_time_ns"];
    let response = |name: &str| figure(times, name).unwrap();
    assert!(response("max") >= 450 * MS, "{times:#}");
    // Six of 600 are above p99, 60 above p90, 150 above p75. A hundred delays fall evenly from 500
    // ms to nothing, so these are 470 ms, 200 ms and none.
    assert!((400 * MS..600 * MS).contains(&response("p99")), "{times:#}");
    assert!((120 * MS..300 * MS).contains(&response("p90")), "{times:#}");
    assert!(response("p75") < 100 * MS, "{times:#}");
    let findings = report["findings"].as_array().unwrap();
    let said = findings.iter().any(|f| f["code"] == "pauses");
    assert!(said, "{findings:#?}");
    trial
}

/// The share of an owner in the slowest 1 %, in percent.
fn share_of(owner: &str, trial: &Value) -> f64 {
    let anatomy = trial["anatomy"].as_array().unwrap();
    let slowest = anatomy.iter().find(|a| a["of"] == "slowest_1").unwrap();
    slowest["owner_percent"][owner].as_f64().unwrap_or(0.0)
}

#[test]
fn a_stall_delays_all_who_come_meanwhile() {
    let trial = under_constant_load(&[]);
    assert!(share_of("target", &trial) > 70.0, "{:#}", trial["anatomy"]);
}

/// With a single connection one request is in the server and all others wait for it. Their waits
/// are in the response times, although the server never saw these requests wait.
#[test]
fn a_stall_delays_those_who_wait_for_a_connection() {
    let trial = under_constant_load(&["-c", "1"]);
    assert_eq!(trial["connections_max"], 1);
    let waits = &trial["offered"]["connection_wait_ns"];
    assert!(waits["max"].as_u64().unwrap() >= 400 * MS, "{waits:#}");
    let service = &trial["service_time_ns"];
    // Where the generator was late itself, it is not known.
    assert!(service["p90"].as_u64().is_none_or(|p90| p90 < 100 * MS), "{service:#}");
    assert!(share_of("limit", &trial) > 50.0, "{:#}", trial["anatomy"]);
}

/// Each response takes 20 ms, in which knee waits: as it is stopped, requests are in the server.
fn stopped_for_half_a_second(load: &[&str]) -> Value {
    let server = KneeServer::start(&["--workers", "64", "--service", "fixed(20ms)"]);
    let url = server.url();
    let always = ["run", &url, "-d", "3s", "--warmup", "0", "--json", "-"];
    let child = knee(&[&always, load].concat()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    signal(&child, libc::SIGSTOP);
    std::thread::sleep(Duration::from_millis(500));
    signal(&child, libc::SIGCONT);
    let ended = Ended::of(child);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["verdict"], "invalid");
    let clauses = report["trials"][0]["invalid_because"].to_string();
    assert!(clauses.contains("stalled for"), "{clauses}");
    report["trials"][0].clone()
}

#[test]
fn a_stopped_open_loop_is_invalid_and_says_why() {
    let trial = stopped_for_half_a_second(&["--rate", "200"]);
    // What was under way as it stopped arrived, and only its reading was late.
    let share = share_of("generator", &trial);
    assert!(share > 70.0, "{:#}", trial["anatomy"]);
}

/// Where knee is stopped between the begin of a request and its sending, the request takes as long.
/// So this is about a time at which it was not.
#[test]
fn a_stopped_closed_loop_is_invalid_and_says_why() {
    // Where other delays of knee leave only a range of it, it is no such time either.
    let is_in_time = |trial: &Value| {
        figure(&trial["response_time_ns"], "max").is_some_and(|slowest| slowest < 400 * MS)
    };
    let stopped = || stopped_for_half_a_second(&["--vusers", "2"]);
    let trials = std::iter::repeat_with(stopped).take(5);
    let answered_in_time = trials.into_iter().find(is_in_time);
    let trial = answered_in_time.expect("the target answers in time");
    let read_late = trial["pick_up_ns"]["max"].as_u64().unwrap();
    assert!(read_late > 400 * MS, "{:#}", trial["pick_up_ns"]);
}

/// Each response comes within 20 ms, and the time limit is 300 ms. What came while knee was stopped
/// came in time, however late it was read.
#[test]
fn what_was_answered_while_knee_was_stopped_has_not_timed_out() {
    let server = KneeServer::start(&["--workers", "64", "--service", "fixed(20ms)"]);
    for load in [["--vusers", "2"], ["--rate", "100"]] {
        let url = server.url();
        let always = ["run", &url, "-d", "3s", "--warmup", "0", "--json", "-"];
        let options = ["--timeout", "300ms"];
        let child = knee(&[&always[..], &load, &options].concat()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1_500));
        signal(&child, libc::SIGSTOP);
        std::thread::sleep(Duration::from_millis(700));
        signal(&child, libc::SIGCONT);
        let report = Ended::of(child).json();
        let trial = &report["trials"][0];
        let clauses = trial["invalid_because"].to_string();
        assert!(clauses.contains("stalled for"), "{clauses}");
        // Those that were due meanwhile begin past their own timeout in an open loop.
        let [ok, all] =
            [&trial["outcomes"]["ok"], &trial["attempted"]].map(|n| n.as_u64().unwrap());
        // Of the two users one may have been stopped as its request was about to leave.
        assert!(load[0] == "--rate" || all - ok <= 1, "{:#}", trial["outcomes"]);
        let read_late = trial["pick_up_ns"]["max"].as_u64().unwrap();
        assert!(read_late > 500 * MS, "{:#}", trial["pick_up_ns"]);
    }
}
