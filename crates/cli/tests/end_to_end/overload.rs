//! Connections beyond capacity: what is counted, and how it ends. Rates are not checked, except
//! that of a server with a fixed capacity.

use crate::observer::{observe, terminate};
use crate::support::{
    Ended, KneeServer, STATE, TempPath, as_of_a_file, knee, run, unless_disturbed,
};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Levels so short that a test has time for several.
const SHORT: [&str; 10] =
    ["-d", "600ms", "--warmup", "500ms", "--timeout", "3s", "--seed", "1", "--json", "-"];

fn overload(url: &str, options: &[&str]) -> Ended {
    run(&[&["overload", url][..], &SHORT, options].concat())
}

fn small_server() -> KneeServer {
    KneeServer::start(&["--capacity", "130", "--backlog", "16", "--accept", "per-worker"])
}

fn count(of: &Value, name: &str) -> u64 {
    of[name].as_u64().unwrap_or(0)
}

/// Every trial's attempts. Each has one outcome.
fn attempts(report: &Value) -> Vec<u64> {
    let trials = report["trials"].as_array().unwrap();
    let attempted = trials.iter().map(|trial| {
        let outcomes = trial["outcomes"].as_object().unwrap();
        let sum: u64 = outcomes.values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(trial["attempted"], sum, "{}: {outcomes:?}", trial["label"]);
        sum
    });
    attempted.collect()
}

#[test]
fn both_sweeps_account_for_every_attempt_and_conclude() {
    let attempt = || {
        let server = small_server();
        overload(&server.url(), &["--simple", "1,4", "--descriptors", "40,200"])
    };
    unless_disturbed(attempt, account_for_every_attempt_and_conclude);
}

fn account_for_every_attempt_and_conclude(report: &Value) {
    assert_eq!(report["command"], "overload");
    let attempted = attempts(report);
    assert_eq!(attempted.len(), 5, "four levels and the base load again");
    for trial in report["trials"].as_array().unwrap() {
        assert!(count(&trial["outcomes"], "served") > 0, "{trial:#}");
        // Nobody asked what would cost connects.
        assert_eq!(trial["observed"]["server_host"], Value::Null, "{trial:#}");
    }
    let conclusion = report["conclusion"].as_object().unwrap();
    for key in [
        "capacity_per_s",
        "simple",
        "sclients",
        "slope_per_descriptor",
        "r_squared",
        "syn_source",
        "max_syn_per_s",
    ] {
        assert!(conclusion.contains_key(key), "{key}: {conclusion:?}");
    }
    let simple = conclusion["simple"].as_array().unwrap();
    let sclients = conclusion["sclients"].as_array().unwrap();
    assert_eq!(simple.len(), 2);
    assert_eq!(sclients.len(), 2);
    for (row, clients) in simple.iter().zip([1, 4]) {
        assert_eq!(row["clients"], clients);
    }
    for (row, descriptors) in sclients.iter().zip([40, 200]) {
        assert_eq!(row["descriptors"], descriptors);
        assert!(row["outcomes"]["served"].as_u64() > Some(0), "{row:#}");
        for rate in ["syn_per_s", "first_syn_per_s", "served_per_s"] {
            assert!(row[rate].as_f64() > Some(0.0), "{rate}: {row:#}");
        }
    }
    assert_eq!(report["trials"][4]["label"], "base again, clients=1");
    let recovery = &conclusion["recovery"];
    assert!(count(&recovery["again"]["outcomes"], "served") > 0, "{recovery:#}");
    let spec = &report["spec"];
    assert_eq!(spec["simple"], "1,4");
    assert_eq!(spec["descriptors"], "40,200");
}

/// Attempts count where they were intended and SYNs where they arrived. At both ends of the window
/// as many may fall to the other side as were late.
#[test]
fn a_capture_counts_what_was_attempted() {
    let attempt = || {
        let server = small_server();
        overload(&server.url(), &["--descriptors", "100,400"])
    };
    unless_disturbed(attempt, capture_counts_what_was_attempted);
}

fn capture_counts_what_was_attempted(report: &Value) {
    if report["conclusion"]["syn_source"] != "capture" {
        println!("skipped: no capture here: {}", report["conclusion"]["syn_source"]);
        return;
    }
    for trial in report["trials"].as_array().unwrap() {
        let attempted = count(trial, "attempted") as f64;
        let seen = count(&trial["observed"], "first_syns") as f64;
        let late_s = count(&trial["offered"]["pacing_error_ns"], "max") as f64 / 1e9;
        let rate = trial["offered"]["achieved_per_s"].as_f64().unwrap();
        let permitted = 0.001 * attempted + 2.0 + 2.0 * rate * late_s;
        assert!(
            (attempted - seen).abs() <= permitted,
            "{attempted} attempted, {seen} seen, {permitted} permitted"
        );
        // One SYN for each, and of those that timed out nothing else.
        let outcomes = &trial["outcomes"];
        assert_eq!(trial["observed"]["repeated_syns"], 0, "{trial:#}");
        assert!(count(outcomes, "connect_timeout") > 50, "{outcomes}");
        let ends = count(&trial["observed"], "client_ends");
        let ended = count(outcomes, "served") + count(outcomes, "late");
        assert!(ends <= ended + 20, "{ends} ends, {outcomes}");
    }
}

#[test]
fn counters_replace_a_capture_that_is_not_permitted() {
    const CAP_NET_RAW: libc::c_ulong = 13;
    let server = small_server();
    let url = server.url();
    let mut command = knee(&[&["overload", &url, "--descriptors", "40"][..], &SHORT].concat());
    // SAFETY: prctl(2) is async-signal-safe, and this one changes nothing but the process's rights.
    unsafe {
        command.pre_exec(|| {
            // Where it is not permitted there is no right to give up.
            libc::prctl(libc::PR_CAPBSET_DROP, CAP_NET_RAW, 0, 0, 0);
            Ok(())
        });
    }
    let ended = Ended::of(command.spawn().unwrap());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["conclusion"]["syn_source"], "counters");
    let because = report["trials"][0]["observed"]["because"].as_str().unwrap();
    assert!(because.contains("CAP_NET_RAW"), "{because}");
}

#[test]
fn a_listener_that_never_accepts_lets_connects_time_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    // SAFETY: the descriptor is a listening socket's, whose queue this makes shorter.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 4) }, 0);
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let ended = overload(&url, &["--descriptors", "100", "--connect-timeout", "200ms"]);
    assert_failed(&ended);
    let report = ended.json();
    assert!(attempts(&report)[0] >= 250, "{report:#}");
    let outcomes = &report["trials"][0]["outcomes"];
    assert!(count(outcomes, "connect_timeout") > 0, "{outcomes}");
    assert_eq!(count(outcomes, "served"), 0, "{outcomes}");
    assert!(ended.stderr.contains("operations succeeded"), "{}", ended.stderr);
    let codes = codes(&report);
    assert!(codes.contains(&"never_accepts"), "{codes:?}");
    assert!(codes.contains(&"accept_queue_full"), "{codes:?}");
    assert!(answer(&report).starts_with("None of "), "{report:#}");
}

/// What was measured, and nothing served: a failed result, not one that is missing.
/// Nothing was served, which a busy host may make INVALID besides.
fn assert_failed(ended: &Ended) {
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    assert_eq!(ended.json()["result"], "failed");
}

fn codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().filter_map(|f| f["code"].as_str()).collect()
}

fn answer(report: &Value) -> &str {
    report["conclusion"]["answer"].as_str().unwrap()
}

#[test]
fn a_server_that_accepts_and_closes_is_named_so() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let ended = overload(&url, &["--descriptors", "8"]);
    assert_failed(&ended);
    let report = ended.json();
    let outcomes = &report["trials"][0]["outcomes"];
    let ends = count(outcomes, "closed") + count(outcomes, "reset");
    assert!(ends > 0 && count(outcomes, "served") == 0, "{outcomes}");
    let codes = codes(&report);
    let is_named = |code: &&str| ["accepted_and_closed", "resets"].contains(code);
    assert!(codes.iter().any(is_named), "{codes:?}");
}

#[test]
fn a_server_that_vanishes_leaves_outcomes_and_no_hang() {
    let server = small_server();
    let url = server.url();
    let options = ["--descriptors", "50,51", "-t", "1"];
    let child = knee(&[&["overload", &url][..], &options, &SHORT].concat()).spawn();
    // In the middle of the first level, or at its beginning on a slow machine.
    std::thread::sleep(std::time::Duration::from_millis(900));
    drop(server);
    let ended = Ended::of(child.unwrap());
    assert!(matches!(ended.status, Some(0 | 1 | 3)), "{ended:?}");
    let report = ended.json();
    attempts(&report);
    let last = report["trials"].as_array().unwrap().last().unwrap();
    assert!(count(&last["outcomes"], "refused") > 0, "{last:#}");
    // Where nothing was served in the window it is not known that it ever served.
    let trials = report["trials"].as_array().unwrap();
    let served: u64 = trials.iter().map(|t| count(&t["outcomes"], "served")).sum();
    let codes = codes(&report);
    let wanted = match served {
        0 => "refuses_connections",
        _ => "server_crashed",
    };
    let is_named = codes.contains(&wanted) || codes.contains(&"refuses_connections");
    assert_ne!(report["conclusion"]["recovery"]["came_back"], "yes", "{report:#}");
    assert!(is_named, "{served} served: {codes:?}");
    assert!(!answer(&report).contains("whatever is offered"), "{report:#}");
}

/// Serves each connection at once, until this many wait for it at a time: from then on it holds
/// every connection open and answers nothing.
fn fragile_server(waiting_max: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let mut held = Vec::new();
        let mut is_broken = false;
        for mut stream in listener.incoming().flatten() {
            is_broken |= waiting(&listener) > waiting_max;
            if is_broken {
                held.push(stream);
                continue;
            }
            std::thread::sleep(std::time::Duration::from_millis(3));
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok");
        }
    });
    url
}

/// Connections in the accept queue.
fn waiting(listener: &TcpListener) -> usize {
    // SAFETY: all zeros is a value of this struct of integers.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    let (fd, to) = (listener.as_raw_fd(), (&raw mut info).cast());
    // SAFETY: the kernel writes at most as many bytes as the struct has.
    let is = unsafe { libc::getsockopt(fd, libc::IPPROTO_TCP, libc::TCP_INFO, to, &mut length) };
    assert_eq!(is, 0);
    info.tcpi_unacked as usize
}

#[test]
fn a_server_that_overload_breaks_is_said_not_to_come_back() {
    let options = ["--simple", "1", "--descriptors", "200"];
    let attempt = || overload(&fragile_server(40), &options);
    let report = unless_disturbed(attempt, |report| {
        let recovery = &report["conclusion"]["recovery"];
        assert!(count(&recovery["before"]["outcomes"], "served") > 0, "{recovery:#}");
        assert_eq!(count(&recovery["again"]["outcomes"], "served"), 0, "{recovery:#}");
        assert_eq!(recovery["came_back"], "no", "{recovery:#}");
    });
    let findings = report["findings"].as_array().unwrap();
    let not_back = findings.iter().find(|f| f["code"] == "service_not_back");
    let next_step = not_back.unwrap()["next_step"].as_str().unwrap();
    let command = "--simple 1 --descriptors 200 --warmup 10s";
    assert!(next_step.contains(command), "{next_step}");
    let said = answer(&report).contains("Service did not come back: with 1 client again 0/s");
    assert!(said, "{}", answer(&report));
}

#[test]
fn an_observer_beside_the_server_counts_for_it() {
    let server = small_server();
    let (child, at, _) = observe(&server, &[]);
    let stored = TempPath::new("overload-observed.json");
    let options = ["--observe", &at, "--descriptors", "40", "--json", stored.str()];
    let short = &SHORT[..SHORT.len() - 2];
    let ended = run(&[&["overload", &server.url()][..], short, &options].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    terminate(child);
    let again = run(&["report", stored.str()]);
    assert_eq!(again.stdout, as_of_a_file(&ended.stdout));
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&stored.0).unwrap()).unwrap();
    assert_ne!(report["conclusion"]["syn_source"], "attempts");
    let observed = &report["trials"][0]["observed"];
    assert_eq!(observed["elapsed_ns"], 600_000_000);
    let host = &observed["server_host"];
    if observed["source"] == "capture" {
        // Some of the connections, whatever becomes of the others: many are never established.
        assert!(count(host, "operations") > 0, "{observed}");
        assert_eq!(count(host, "unseen"), 0, "{observed}");
    } else {
        assert!(host["because"].is_string(), "{observed}");
    }
}

#[test]
fn a_port_that_refuses_is_told_before_any_load() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = nobody.local_addr().unwrap().to_string();
    drop(nobody);
    let ended = overload(&format!("http://{address}/"), &[]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(ended.stderr.contains(&address), "{}", ended.stderr);
    assert!(ended.stderr.contains("refused"), "{}", ended.stderr);
}

#[test]
fn resets_are_an_outcome_of_their_own() {
    let server = KneeServer::start(&["--fault", "reset(1)"]);
    let options = ["--simple", "2", "--descriptors", "20", "--close", "rst"];
    let ended = overload(&server.url(), &options);
    assert_failed(&ended);
    let report = ended.json();
    attempts(&report);
    assert!(codes(&report).contains(&"resets"), "{report:#}");
    for trial in report["trials"].as_array().unwrap() {
        assert!(count(&trial["outcomes"], "reset") > 0, "{trial:#}");
    }
}

#[test]
fn connections_come_from_the_addresses_named_and_from_no_others() {
    let server = small_server();
    let url = server.url();
    let options = ["--rate", "200", "--arrival", "poisson"];
    let ended = overload(&url, &[&options[..], &["--source", "127.0.0.2-127.0.0.5"]].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let report = ended.json();
    assert!(attempts(&report)[0] > 0);
    assert_eq!(report["spec"]["source"], "127.0.0.2-127.0.0.5");
    let ended = overload(&url, &["--source", "192.0.2.77"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    let line = ended.stderr.lines().last().unwrap();
    assert!(line.contains("192.0.2.77"), "{line}");
}

/// In a network namespace of its own with 1,000 ports, where 3,000 connects are to be in flight.
#[test]
fn ports_that_will_not_do_are_told_before_they_fail() {
    let inside = format!(
        "ip link set lo up && echo '40000 40999' >/proc/sys/net/ipv4/ip_local_port_range || exit 77
         exec \"{}\" overload --descriptors 3000 {}",
        env!("CARGO_BIN_EXE_knee"),
        SHORT.join(" ")
    );
    let mut command = Command::new("unshare");
    command
        .args(["-rn", "sh", "-c", &inside])
        .env("XDG_STATE_HOME", STATE)
        .env("XDG_DATA_HOME", STATE);
    let output = match command.output() {
        Ok(output) if output.stdout.is_empty() => {
            println!("skipped: {}", String::from_utf8_lossy(&output.stderr));
            return;
        }
        Ok(output) => output,
        Err(e) => {
            println!("skipped: no unshare here: {e}");
            return;
        }
    };
    let ended = Ended::from(output);
    let told = ended.stderr.find("ports").expect("a prediction");
    let level = ended.stderr.find("descriptors  ").expect("a level");
    assert!(told < level, "{}", ended.stderr);
    let report = ended.json();
    attempts(&report);
    let outcomes = &report["trials"][0]["outcomes"];
    assert!(count(outcomes, "port_exhausted") > 0, "{outcomes}");
    let findings = report["findings"].as_array().unwrap();
    let texts = findings.iter().filter_map(|f| f["text"].as_str());
    assert!(texts.filter(|t| t.contains("ports")).count() > 0, "{findings:#?}");
}
