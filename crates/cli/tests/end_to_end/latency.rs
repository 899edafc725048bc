//! Flows over loopback: what is reported, and that it is the same in every form.

use crate::support::{Ended, KneeServer, TempPath, run, run_with_input, unless_disturbed};
use serde_json::Value;

/// Runs it to its end; a busy machine may make it invalid, but its figures stand.
fn measured(options: &[&str]) -> Ended {
    let ended = run(&[&["latency"], options].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{options:?}: {ended:?}");
    ended
}

fn report(options: &[&str]) -> Value {
    measured(&[&["--json", "-", "--quiet"], options].concat()).json()
}

fn of_codes(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|f| f["code"].as_str().unwrap()).collect()
}

fn service(options: &[&str]) -> KneeServer {
    let always: &[&str] = &["latency", "--listen", "127.0.0.1:0", "--json", "-"];
    KneeServer::of(&[always, options].concat())
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// The five scenarios, after a look at the idle path.
#[test]
fn a_quick_run_tells_capacity_responsiveness_and_smoothness() {
    let attempt = || measured(&["--quick", "-d", "400ms", "--idle", "200ms", "--json", "-"]);
    unless_disturbed(attempt, |report| {
        let trials = report["trials"].as_array().unwrap();
        let labels = trials.iter().map(|t| t["label"].as_str().unwrap());
        let mut labels: Vec<&str> = labels.collect();
        // What a busy host distorted was run again.
        labels.dedup();
        let expected = [
            "idle",
            "0 up, 1 down",
            "1 up, 0 down",
            "1 up, 1 down",
            "1 up, 31 down",
            "16 up, 16 down",
        ];
        assert_eq!(labels, expected);
        let conclusion = &report["conclusion"];
        assert!(number(&conclusion["min_rtt_ns"]) > 0.0, "{conclusion:#}");
        // Among 32 flows of a slow machine one may have got nothing in so short a time: a zero.
        for key in ["upload_capacity_kib_per_s", "download_capacity_kib_per_s"] {
            assert!(conclusion[key].is_u64(), "{key}: {conclusion:#}");
        }
        for key in ["responsiveness_hz", "smoothness_hz", "grade", "idle_ns", "answer"] {
            assert!(!conclusion[key].is_null(), "{key}: {conclusion:#}");
        }
        let scenarios = conclusion["scenarios"].as_array().unwrap();
        assert_eq!(scenarios.len(), 5);
        for scenario in scenarios {
            let trial = &trials[scenario["trial"].as_u64().unwrap() as usize];
            let [up, down] = ["up", "down"].map(|way| number(&scenario[way]) as usize);
            // A fixed time ends a scenario whether or not it has settled by then.
            match scenario["state"].as_str().unwrap() {
                "settled" => assert_eq!(scenario["reason"], ""),
                state => {
                    assert_eq!(state, "forced");
                    let reason = scenario["reason"].as_str().unwrap();
                    assert!(reason.starts_with("not settled within"), "{reason}");
                }
            }
            assert_eq!(scenario["up_kib_per_s"].is_null(), up == 0);
            assert_eq!(scenario["down_kib_per_s"].is_null(), down == 0);
            assert_eq!(scenario["flows"].as_array().unwrap().len(), up + down);
            assert!(number(&scenario["responsiveness_hz"]) > 0.0);
            let flows = &trial["flows"];
            assert_eq!(flows["up"].is_null(), up == 0);
            assert!(number(&flows["tcp"]["sent"]) > 0.0);
            assert!(number(&flows["udp"]["sent"]) > 0.0);
            let intervals = trial["intervals"].as_array().unwrap();
            let carried: f64 = intervals.iter().map(|i| number(&i["down_bytes"])).sum();
            assert_eq!(carried > 0.0, down > 0, "{trial:#}");
        }
    });
}

/// The text holds the classic lines, and reads back to what the JSON tells.
#[test]
fn the_text_reads_back() {
    let (json, text) = (TempPath::new("latency.json"), TempPath::new("latency.txt"));
    let short = ["-d", "300ms", "--idle", "200ms", "--no-udp"];
    let options = ["--scenarios", "1/1,0/2", "--full", "--json", json.str()];
    let ended = measured(&[&short[..], &options].concat());
    for beginning in [
        "MinRTT: 0.",
        "Scenario 1: 1 uploads, 1 downloads... ",
        "Scenario 2: 0 uploads, 2 downloads... ",
        "OVERALL:",
        "    Upload Capacity: ",
        "  Download Capacity: ",
        "Link Responsiveness: ",
        "    Flow Smoothness: ",
    ] {
        let is_there = ended.stdout.lines().any(|line| line.starts_with(beginning));
        assert!(is_there, "{beginning}: {}", ended.stdout);
    }
    std::fs::write(&text.0, &ended.stdout).unwrap();
    let again = run(&["analyze", "latency", text.str(), "--json", "-"]);
    assert_eq!(again.status, Some(0), "{again:?}");
    let (again, first) = (again.json(), std::fs::read_to_string(&json.0).unwrap());
    let first: Value = serde_json::from_str(&first).unwrap();
    for key in ["responsiveness_hz", "smoothness_hz"] {
        assert_eq!(again["conclusion"][key], first["conclusion"][key], "{key}");
    }
    for key in ["upload_capacity_kib_per_s", "download_capacity_kib_per_s"] {
        // Made of rounded figures.
        let [again, first] = [&again, &first].map(|r| number(&r["conclusion"][key]));
        assert!((again - first).abs() <= 1.0, "{key}: {again} for {first}");
    }
    // Which it says.
    let differs = |code: &&str| *code == "recomputed_differs";
    assert!(of_codes(&again).iter().all(differs), "{again:#}");
    let stored = run(&["report", json.str(), "--full"]);
    assert_eq!(stored.stdout, ended.stdout);
}

/// The run that was published: 50450 KiB/s from unrounded figures, zeros elsewhere.
#[test]
fn a_published_text_is_read() {
    let up = [
        105_388, 50_998, 108_230, 33_296, 69_995, 102_502, 21_816, 52_828, 82_564, 110_715, 14_712,
        76_252, 113_567, 107_671,
    ];
    let mut text = String::new();
    for (i, kib_per_s) in up.iter().enumerate() {
        let number = i + 1;
        text += &format!("Scenario {number}: 1 uploads, 0 downloads... {kib_per_s} KiB/s up\n");
    }
    text += "Scenario 15: 0 uploads, 1 downloads... 0 KiB/s down, 0.00 Hz smoothness\n";
    let ended = run_with_input(&["analyze", "latency", "-", "--json", "-"], &text);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let conclusion = &ended.json()["conclusion"];
    assert_eq!(conclusion["upload_capacity_kib_per_s"], 50_449);
    assert_eq!(conclusion["download_capacity_kib_per_s"], 0);
    assert_eq!(conclusion["smoothness_hz"], 0);
    let nothing = run_with_input(&["analyze", "latency", "-"], "Scenic, but no scenario\n");
    assert_eq!(nothing.status, Some(2), "{nothing:?}");
    assert!(nothing.stderr.contains("-: no scenario found"), "{nothing:?}");
    assert_eq!(nothing.stderr.lines().count(), 1, "{nothing:?}");
}

#[test]
fn a_service_of_its_own_process_counts_what_it_carried() {
    let service = service(&["--token", "t"]);
    let report = report(&[
        &service.address,
        "--token",
        "t",
        "--scenarios",
        "2/1",
        "-d",
        "300ms",
        "--idle",
        "0",
        "--bytes-max",
        "1TB",
        "--dscp",
        "CS1",
    ]);
    assert!(report["conclusion"]["min_rtt_ns"].is_null(), "{report:#}");
    assert!(!report.to_string().contains("\"token\""));
    let served = service.served();
    // A session for each time that it was measured.
    let flows = 3.0 * number(&served["sessions"]);
    assert!(flows > 0.0 && number(&served["flows"]) == flows, "{served:#}");
    let received = number(&served["received_bytes"]);
    let intervals = report["trials"][0]["intervals"].as_array().unwrap();
    let up: f64 = intervals.iter().map(|i| number(&i["up_bytes"])).sum();
    assert!(0.0 < up && up <= received, "{up} of {received}");
}

/// What the kernel knows can be asked for; what it does not is refused before any load.
#[test]
fn congestion_controls_are_compared() {
    let short = ["--scenarios", "1/0", "-d", "300ms", "--idle", "100ms"];
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    if known.unwrap().contains("cubic") {
        let both = report(&[&short[..], &["--cc", "reno,cubic"]].concat());
        let rows = both["conclusion"]["by_congestion_control"].as_array().unwrap();
        let names: Vec<&Value> = rows.iter().map(|r| &r["congestion_control"]).collect();
        assert_eq!(names, ["reno", "cubic"]);
        let scenarios = both["conclusion"]["scenarios"].as_array().unwrap();
        for (scenario, name) in scenarios.iter().zip(names) {
            let trial = &both["trials"][scenario["trial"].as_u64().unwrap() as usize];
            assert_eq!(&trial["flows"]["flows"][0]["congestion_control"], name);
        }
    }
    let ended = run(&[&["latency"], &short[..], &["--cc", "cubik"]].concat());
    assert_eq!(ended.status, Some(2), "{ended:?}");
    let last = ended.stderr.lines().last().unwrap();
    assert!(last.contains("cubik"), "{ended:?}");
    assert!(ended.stdout.is_empty(), "{ended:?}");
}

#[test]
fn thresholds_are_of_pings() {
    let short = ["--scenarios", "1/1", "-d", "300ms", "--idle", "100ms"];
    let ended = run(&[&["latency"], &short[..], &["--fail-if", "max>1ns"]].concat());
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    assert!(ended.stderr.contains("failed: 1 up, 1 down: max "), "{ended:?}");
}
