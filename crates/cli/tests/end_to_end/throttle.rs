//! `knee throttle`: what each way of waiting is asked, and that each row tells of it. How well this
//! machine waits is not judged here.

use crate::support::{Ended, KneeServer, TempPath, as_of_a_file, knee, measured, run, signal};
use serde_json::Value;
use std::net::UdpSocket;
use std::time::Duration;

const WAYS: [&str; 10] = [
    "sleep",
    "sleep-min-slack",
    "sleep-absolute",
    "sleep-absolute-min-slack",
    "timerfd",
    "epoll",
    "io_uring",
    "hybrid",
    "spin",
    "yield",
];

fn rows<'a>(report: &'a Value, table: &str) -> &'a [Value] {
    report["conclusion"][table].as_array().unwrap()
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row:#}"))
}

#[test]
fn every_method_waits_for_every_delay() {
    let stored = TempPath::new("waits.json");
    let options = ["--delays", "200us,2ms", "-d", "20ms", "--json", stored.str()];
    let ended = run(&[&["throttle"], &options[..]].concat());
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.contains("rows of 20 ms: about 0."), "{ended:?}");
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&stored.0).unwrap()).unwrap();
    assert_eq!(report["command"], "throttle");
    assert_eq!(report["spec"]["methods"], "all");
    assert_eq!(report["spec"]["delays"], "200us,2ms");
    assert_eq!(report["trials"].as_array().unwrap().len(), 0);
    let table = rows(&report, "table");
    let is_permitted = |way: &&str| {
        let there = table.iter().any(|row| text(row, "method") == *way);
        assert!(there || *way == "io_uring", "{way} is missing");
        there
    };
    let ways: Vec<&str> = WAYS.into_iter().filter(is_permitted).collect();
    let expected: Vec<(u64, &str)> = [200_000, 2_000_000]
        .into_iter()
        .flat_map(|delay| ways.iter().map(move |way| (delay, *way)))
        .collect();
    let found: Vec<(u64, &str)> =
        table.iter().map(|row| (number(row, "delay_ns"), text(row, "method"))).collect();
    assert_eq!(found, expected);
    for row in table {
        assert!(number(row, "samples") >= 5, "{row:#}");
        let early = number(row, "early_samples");
        assert!(early > 0 || row["mean_ns"].as_u64() >= row["delay_ns"].as_u64(), "{row:#}");
        for key in ["error_ns", "std_dev_ns", "overshoot_p50_ns", "overshoot_p99_ns"] {
            number(row, key);
        }
        assert!(number(row, "overshoot_max_ns") >= number(row, "overshoot_p99_ns"));
        assert!(row["cpu_percent"].as_f64() >= Some(0.0), "{row:#}");
    }
    assert!(number(&report["conclusion"], "hybrid_margin_ns") > 0);
    let again = run(&["report", stored.str()]);
    assert_eq!(again.stdout, as_of_a_file(&ended.stdout));
}

#[test]
fn work_between_the_waits_has_rows_of_its_own() {
    for op in ["udp", "qotd"] {
        let load = ["throttle", "--methods", "sleep,hybrid", "--delays", "1ms"];
        let report = measured(&[&load[..], &["-d", "20ms", "--op", op]].concat());
        let found: Vec<(&str, &str)> = rows(&report, "table")
            .iter()
            .map(|row| (text(row, "method"), text(row, "op")))
            .collect();
        let expected = [("sleep", "none"), ("sleep", op), ("hybrid", "none"), ("hybrid", op)];
        assert_eq!(found, expected);
        assert!(number(&rows(&report, "table")[1], "op_mean_ns") > 0);
        assert_eq!(report["spec"]["op"], op);
        assert!(report["spec"].get("to").is_none());
    }
}

#[test]
fn work_is_sent_where_it_is_to_go() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let to = socket.local_addr().unwrap().to_string();
    let load = ["throttle", "--methods", "spin", "--delays", "1ms", "-d", "5ms"];
    let report = measured(&[&load[..], &["--op", "udp", "--to", &to]].concat());
    assert_eq!(report["spec"]["to"], to);
    assert_eq!(socket.recv(&mut [0; 100]).unwrap(), 64);

    let server = KneeServer::of(&["qotd", "--listen", "127.0.0.1:0", "--json", "-"]);
    let to = ["--op", "qotd", "--to", &server.address];
    let report = measured(&[&load[..], &to].concat());
    let samples = number(&rows(&report, "table")[1], "samples");
    let served = server.served();
    assert!(number(&served, "answered") >= samples, "{served}");
}

#[test]
fn a_rate_is_held_by_each_method() {
    let load = ["throttle", "--rate", "200", "-d", "100ms", "--op-time", "100us"];
    let report = measured(&[&load[..], &["--seed", "3"]].concat());
    assert_eq!(report["seed"], 3);
    assert_eq!(report["spec"]["rate"], "200/s");
    assert_eq!(report["spec"]["op-time"], "100us");
    let rates = rows(&report, "rates");
    let methods: Vec<&str> = rates.iter().map(|row| text(row, "method")).collect();
    let expected = [
        "naive-sleep",
        "relative-sleep",
        "tick",
        "token-bucket",
        "interval-timer",
        "spin",
        "throttle",
    ];
    assert_eq!(methods, expected);
    for row in rates {
        assert_eq!(row["asked_per_s"], 200.0);
        for key in ["achieved_per_s", "drift_ppm", "gap_cv", "cpu_percent"] {
            assert!(row[key].is_number(), "{key}: {row:#}");
        }
        for key in ["error_p50_ns", "error_p99_ns", "operations", "skipped"] {
            number(row, key);
        }
    }
    // Nothing begins after the end, which a busy machine may reach too late for the last of them.
    let throttle = &rates[6];
    let operations = number(throttle, "operations");
    assert!((1..=20).contains(&operations), "{throttle:#}");
}

/// The first operation comes at its intended time, the rest of its group before theirs.
#[test]
fn a_minimal_wait_groups_operations() {
    let load = ["throttle", "--rate", "1000", "--methods", "throttle"];
    let report = measured(&[&load[..], &["-d", "200ms", "--min-wait", "20ms"]].concat());
    assert_eq!(report["spec"]["min-wait"], "20ms");
    let row = &rows(&report, "rates")[0];
    assert!(number(row, "early") > 0, "{row:#}");
}

#[test]
fn ctrl_c_ends_it_early_with_what_was_measured() {
    for mode in [&["--delays", "10ms"][..], &["--rate", "100"]] {
        let arguments = [&["throttle", "-d", "60s", "--json", "-"], mode].concat();
        let child = knee(&arguments).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(1_200));
        signal(&child, libc::SIGINT);
        let ended = Ended::of(child);
        assert!(matches!(ended.status, Some(130 | 3)), "{mode:?}: {ended:?}");
        let report = ended.json();
        assert_eq!(report["interrupted"], true);
        let key = if mode[0] == "--rate" { "rates" } else { "table" };
        assert_eq!(rows(&report, key).len(), 1, "{mode:?}: {ended:?}");
    }
}

#[test]
fn absent_service_is_reported_before_any_measurement() {
    let port = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let to = port.to_string();
    for mode in [&["--delays", "1ms"][..], &["--rate", "100"]] {
        for op in ["udp", "qotd"] {
            let load = ["throttle", "-d", "20ms", "--op", op, "--to", &to, "--quiet"];
            let ended = run(&[&load[..], mode].concat());
            assert_eq!(ended.status, Some(4), "{ended:?}");
            assert_eq!(ended.stdout, "");
            assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
            assert!(ended.stderr.contains(&to), "{ended:?}");
        }
    }
}

#[test]
fn quiet_is_quiet() {
    let ended = run(&[
        "throttle",
        "--methods",
        "spin",
        "--delays",
        "1ms",
        "-d",
        "5ms",
        "--op",
        "udp",
        "--quiet",
    ]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stderr, "");
}
