//! Datagrams: what is counted, whatever the machine is busy with.

use crate::support::{Ended, FAR, KneeServer, Link, TempPath, as_of_a_file, knee, run, signal};
use serde_json::Value;
use std::process::Child;
use std::time::{Duration, Instant};

/// Runs it to its end; a busy machine may make it invalid, but what it counts stands.
fn counted(options: &[&str]) -> Value {
    let ended = run(&[&["udp", "--json", "-", "--quiet"], options].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{options:?}: {ended:?}");
    let report = ended.json();
    for trial in report["trials"].as_array().unwrap() {
        let sum = parts(&trial["ledger"]);
        assert_eq!(sum, count(&trial["ledger"]["intended"]), "{options:?}: {trial:#}");
    }
    report
}

fn count(value: &Value) -> i64 {
    value.as_i64().unwrap_or_else(|| panic!("{value} is no count"))
}

/// What a ledger's lines sum to.
fn parts(ledger: &Value) -> i64 {
    let lost = ledger["lost"].as_object().unwrap().values().map(count);
    let keys = ["not_attempted", "send_errors", "received", "discarded", "unexplained"];
    keys.map(|key| count(&ledger[key])).iter().sum::<i64>() + lost.sum::<i64>()
}

fn server(options: &[&str]) -> KneeServer {
    let always: &[&str] = &["udp", "--listen", "127.0.0.1:0", "--seed", "1", "--json", "-"];
    KneeServer::of(&[always, options].concat())
}

/// Drops of the socket on this port, as the kernel lists them.
fn drops_of(port: &str) -> i64 {
    let port: u16 = port.parse().unwrap();
    let table = std::fs::read_to_string("/proc/net/udp").unwrap();
    let ours = format!("0100007F:{port:04X}");
    let mut rows = table.lines().map(|row| row.split_whitespace().collect::<Vec<_>>());
    let row = rows.find(|row| row.get(1) == Some(&ours.as_str()));
    row.unwrap().last().unwrap().parse().unwrap()
}

/// 6,000/s are more than a service of 200 µs takes, however fast the machine is.
#[test]
fn drops_of_a_full_buffer_are_those_of_the_kernel() {
    let service = server(&[]);
    let (_, port) = service.address.rsplit_once(':').unwrap();
    let load = ["--wait", "poisson", "-R", "6000", "--service", "200us", "--rcvbuf", "4096"];
    let report = counted(&[&[service.address.as_str(), "-d", "1s"], &load[..]].concat());
    let ledger = &report["trials"][0]["ledger"];
    let lost = count(&ledger["lost"]["receive_buffer"]);
    assert!(lost > 0, "{ledger:#}");
    assert_eq!(count(&ledger["unexplained"]), 0, "{ledger:#}");
    assert_eq!(count(&ledger["evidence"][0]["counted"]), lost);
    assert_eq!(drops_of(port), lost);
    let served = service.served();
    assert_eq!(count(&served["drops"]), lost);
    assert_eq!(served["received"], ledger["received"]);
    let datagrams = &report["trials"][0]["datagrams"];
    assert_eq!(datagrams["service_work_ns"], 200_000);
    assert!(datagrams["theory_loss_percent"].as_f64().unwrap() > 0.0);
    // What each interval sent is received or dropped.
    let intervals = report["trials"][0]["intervals"].as_array().unwrap();
    for key in ["sent", "received", "dropped"] {
        let sum: i64 = intervals.iter().map(|i| count(&i[key])).sum();
        let expected = match key {
            "sent" => count(&ledger["received"]) + lost,
            "received" => count(&ledger["received"]),
            _ => lost,
        };
        assert_eq!(sum, expected, "{key}");
    }
}

/// Clients that wake together come in lumps, random ones do not, a metronome is even.
#[test]
fn arrivals_differ_in_their_dispersion() {
    // A host that is stalled for longer than a tick makes lumps of everything: not each time.
    let mut seen = Vec::new();
    for _ in 0..5 {
        let laws = three_laws();
        let index = |law: usize| laws[law]["dispersion"].as_f64().unwrap();
        if index(0) < index(2) && index(1) < index(2) {
            return;
        }
        seen.push([0, 1, 2].map(index));
    }
    panic!("{seen:?}");
}

/// What is concluded of an even, a random and a lumpy law.
fn three_laws() -> Vec<Value> {
    let report = counted(&[
        "--compare",
        "constant@2000*4",
        "poisson@2000*4",
        "tick(10ms)*200",
        "-d",
        "1s",
        "--repeats",
        "2",
    ]);
    let laws = report["conclusion"]["laws"].as_array().unwrap();
    assert_eq!(report["trials"].as_array().unwrap().len(), 6);
    let labels: Vec<&str> = laws.iter().map(|law| law["label"].as_str().unwrap()).collect();
    assert_eq!(labels, ["constant@2000/s*4", "poisson@2000/s*4", "tick(10ms)*200"]);
    for law in laws {
        assert_eq!(law["trials"], 2);
        assert_eq!(parts(&law["ledger"]), count(&law["ledger"]["intended"]));
    }
    laws.clone()
}

#[test]
fn clients_of_all_kinds_are_counted() {
    for carried_as in ["multiplexed", "threads", "processes"] {
        for wait in ["none", "yield", "sleep(0)", "sleep(1ms)", "exp(1ms)", "tick(5ms)"] {
            let load = ["--clients", "3", "--wait", wait, "--clients-as", carried_as];
            let report = counted(&[&load[..], &["-n", "300", "--rcvbuf", "4000000"]].concat());
            let ledger = &report["trials"][0]["ledger"];
            assert_eq!(count(&ledger["intended"]), 300, "{carried_as} {wait}");
            assert_eq!(count(&ledger["received"]), 300, "{carried_as} {wait}");
            let [least, most] =
                [0, 1].map(|i| count(&report["trials"][0]["datagrams"]["by_client"][i]));
            assert!(least <= 100 && most >= 100, "{carried_as} {wait}: {least} to {most}");
        }
    }
}

#[test]
fn an_echo_has_round_trips() {
    let report = counted(&["--mode", "echo", "-R", "1000", "-n", "200", "--size", "40"]);
    let trial = &report["trials"][0];
    assert_eq!(count(&trial["response_time_ns"]["count"]), 200, "{trial:#}");
    assert!(count(&trial["response_time_ns"]["min"]) > 0);
}

/// Tiny cells: the design is whole and each explanation ends somewhere.
#[test]
fn an_explanation_concludes() {
    let report =
        counted(&["--explain", "yield*2", "exp(1ms)*4", "-d", "100ms", "--clients-as", "threads"]);
    let conclusion = &report["conclusion"];
    let laws = conclusion["laws"].as_array().unwrap();
    let keys = [
        "wait",
        "clients",
        "sent_per_s",
        "received_per_s",
        "dropped_per_s",
        "dispersion",
        "burst_max",
    ];
    assert_eq!(laws.len(), 2);
    for law in laws {
        for key in keys {
            assert!(law.get(key).is_some(), "{key}: {law:#}");
        }
    }
    let list = |key: &str| conclusion[key].as_array().unwrap().len();
    assert_eq!(list("supported") + list("ruled_out") + list("undecided"), 9);
    assert!(!conclusion["answer"].as_str().unwrap().is_empty());
    assert!(list("effects") > 5);
    assert!(report["trials"].as_array().unwrap().len() > 20);
}

#[test]
fn whoever_cannot_be_reached_is_told_before_any_load() {
    let free = KneeServer::start(&[]);
    let http = free.address.clone();
    let of_token = server(&["--token", "right"]);
    let token = of_token.address.clone();
    for (arguments, expected) in [
        (vec!["127.0.0.1:1"], "connection refused"),
        (vec!["no-such-host.invalid:9"], "cannot resolve"),
        (vec![http.as_str()], ""),
        (vec![token.as_str()], "--token"),
        (vec![token.as_str(), "--token", "wrong"], "--token"),
    ] {
        let ended = run(&[&["udp", "-d", "200ms"], &arguments[..]].concat());
        assert_eq!(ended.status, Some(4), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.contains(expected), "{ended:?}");
        assert!(ended.stdout.is_empty(), "{ended:?}");
    }
    counted(&[&token, "--token", "right", "-n", "10"]);
}

#[test]
fn a_service_serves_one_client_after_another() {
    let service = server(&[]);
    let first = start(&[&service.address, "-d", "20s", "-R", "100"]);
    wait_until_busy(&service.address);
    let second = run(&["udp", &service.address, "-d", "200ms"]);
    assert_eq!(second.status, Some(4), "{second:?}");
    assert!(second.stderr.contains("is busy with another client"), "{second:?}");
    signal(&first, libc::SIGINT);
    let first = Ended::of(first);
    assert!(matches!(first.status, Some(130 | 3)), "{first:?}");
    assert_eq!(first.json()["interrupted"], true);
    counted(&[&service.address, "-n", "10"]);
}

/// What was sent until then is reported, and the exit code says that nobody knows what came of it.
#[test]
fn a_service_that_dies_leaves_a_ledger() {
    let service = server(&[]);
    let client = start(&[&service.address, "-d", "20s", "-R", "1000"]);
    wait_until_busy(&service.address);
    drop(service);
    let ended = Ended::of(client);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("what was received is not known"), "{ended:?}");
    let report = ended.json();
    let trial = &report["trials"][0];
    assert_eq!(parts(&trial["ledger"]), count(&trial["ledger"]["intended"]));
    assert_eq!(count(&trial["ledger"]["unexplained"]), 0);
    assert!(trial["datagrams"]["service_lost"].is_string(), "{trial:#}");
    let codes = report["findings"].as_array().unwrap().iter().map(|f| &f["code"]);
    assert!(codes.into_iter().any(|code| code == "service_vanished"), "{report:#}");
    assert!(count(&trial["duration_ns"]) < 20_000_000_000);
}

#[test]
fn who_is_not_on_loopback_needs_a_token() {
    let ended = run(&["serve", "udp", "--listen", "0.0.0.0:0"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("--token"), "{ended:?}");
}

#[test]
fn a_report_of_datagrams_is_rendered_again() {
    let file = TempPath::new("udp.json");
    let ended = run(&["udp", "-n", "100", "-R", "1000", "--json", file.str()]);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    let again = run(&["report", file.str()]);
    assert_eq!(again.stdout, as_of_a_file(&ended.stdout));
    assert!(again.stdout.contains("unexplained"), "{again:?}");
}

#[test]
fn thresholds_are_of_loss() {
    let lossy = ["udp", "-R", "6000", "--service", "1ms", "--rcvbuf", "4096", "-d", "300ms"];
    let ended = run(&[&lossy[..], &["--fail-if", "errors>1%"]].concat());
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    assert!(ended.stderr.contains("crosses errors>1%"), "{ended:?}");
    // Of several kinds of clients one is enough.
    let two = ["udp", "--compare", "constant@10", "none", "-d", "200ms", "--repeats", "1"];
    let slow = ["--service", "1ms", "--rcvbuf", "4096", "--fail-if", "errors>1%"];
    let ended = run(&[&two[..], &slow[..]].concat());
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    assert!(ended.stderr.contains("failed: none:"), "{ended:?}");
}

/// A queue of the sending host that takes 1 Mbit/s of 16: the sender is told of all that it drops.
#[test]
fn datagrams_that_the_kernel_refuses_are_lost() {
    let Some(link) = Link::through("tbf rate 1mbit burst 3000 limit 6000") else {
        return;
    };
    let listen = format!("{FAR}:0");
    let service = KneeServer::placed(&["udp", "--listen", &listen, "--token", "t"], |command| {
        link.there(command);
    });
    let load = ["-R", "2000", "--size", "1000", "-d", "500ms", "--token", "t", "--quiet"];
    for more in [&["--mode", "echo", "--threads", "2"][..], &["--json", "-"]] {
        let mut client = knee(&[&["udp", &service.address], &load[..], more].concat());
        client.args(["--fail-if", "errors>40%"]);
        link.here(&mut client);
        let ended = Ended::of(client.spawn().unwrap());
        assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
        assert!(ended.stderr.contains("crosses errors>40%"), "{ended:?}");
        let words = "refused by the sender's kernel (ENOBUFS: this host's queues are full)";
        if more[0] != "--json" {
            let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains(words) && text.contains("tried to send"), "{text}");
            continue;
        }
        let report = ended.json();
        assert!(report["conclusion"]["answer"].as_str().unwrap().contains(words), "{report:#}");
        let ledger = &report["trials"][0]["ledger"];
        let attempted = count(&ledger["intended"]) - count(&ledger["not_attempted"]);
        let missing = attempted - count(&ledger["received"]);
        assert!(2 * count(&ledger["send_errors"]) > attempted, "{ledger:#}");
        let percent = report["conclusion"]["laws"][0]["loss_percent"].as_f64().unwrap();
        assert!((percent - 100.0 * missing as f64 / attempted as f64).abs() < 1e-6, "{percent}");
        let intervals = report["trials"][0]["intervals"].as_array().unwrap();
        let dropped: i64 = intervals.iter().map(|i| count(&i["dropped"])).sum();
        assert_eq!(dropped, missing, "{intervals:#?}");
    }
}

fn start(options: &[&str]) -> Child {
    let arguments = [&["udp", "--json", "-", "--quiet"], options].concat();
    knee(&arguments).spawn().unwrap()
}

/// Until a client has a socket that is connected to this service: it then has its session.
fn wait_until_busy(service: &str) {
    let (_, port) = service.rsplit_once(':').unwrap();
    let theirs = format!("0100007F:{:04X}", port.parse::<u16>().unwrap());
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let table = std::fs::read_to_string("/proc/net/udp").unwrap();
        if table.lines().any(|row| row.split_whitespace().nth(2) == Some(&theirs)) {
            return;
        }
        assert!(Instant::now() < deadline, "nobody sends to {service}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
