//! Runs that are killed.

use super::Data;
use crate::support::{KneeServer, signal};
use serde_json::Value;
use std::process::Child;
use std::time::Duration;

/// Looks at what is kept of the run until it is `enough`, then kills it; what was last seen of it.
fn kill_when(data: &Data, mut child: Child, enough: impl Fn(&Value) -> bool) -> Value {
    let mut seen = Value::Null;
    for _ in 0..600 {
        std::thread::sleep(Duration::from_millis(50));
        let ended = child.try_wait().unwrap();
        assert_eq!(ended, None, "it ended before it was killed: {seen:#}");
        let shown = data.run(&["history", "show", "--json", "-"]);
        if shown.status == Some(0) {
            seen = shown.json();
            if enough(&seen) {
                signal(&child, libc::SIGKILL);
                child.wait().unwrap();
                return seen;
            }
        }
    }
    signal(&child, libc::SIGKILL);
    panic!("not enough was kept: {seen:#}");
}

fn intervals(trial: &Value) -> usize {
    trial["intervals"].as_array().map_or(0, Vec::len)
}

fn finding<'a>(report: &'a Value, code: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    let found = findings.iter().find(|f| f["code"] == code);
    found.unwrap_or_else(|| panic!("no {code} in {findings:#?}"))
}

#[test]
fn of_a_run_all_but_the_last_interval_is_there() {
    let (server, data) = (KneeServer::start(&[]), Data::new("killed"));
    let url = server.url();
    let load = ["run", &url, "-d", "60s", "--warmup", "0", "--interval", "50ms", "-c", "2"];
    let child = data.knee(&load).spawn().unwrap();
    let before = kill_when(&data, child, |report| intervals(&report["trials"][0]) >= 5);
    assert!(finding(&before, "cut_short")["text"].as_str().unwrap().contains("goes on"));

    let run = &data.list(&[])[0];
    assert_eq!((&run["state"], &run["verdict"]), (&"cut_short".into(), &Value::Null));
    let listed = data.told(&["history"]);
    assert!(listed.contains("cut short"), "{listed}");
    let report: Value =
        serde_json::from_str(&data.told(&["history", "show", "1", "--json", "-"])).unwrap();
    assert_eq!(report["schema"], "knee.report/2");
    assert_eq!((&report["verdict"], &report["interrupted"]), (&"invalid".into(), &true.into()));
    let trial = &report["trials"][0];
    let kept = trial["intervals"].as_array().unwrap();
    let seen = before["trials"][0]["intervals"].as_array().unwrap();
    assert_eq!(&kept[..seen.len()], &seen[..], "what was written stays");
    let completed: u64 = kept.iter().map(|i| i["completed"].as_u64().unwrap()).sum();
    assert_eq!(trial["completed"], completed);
    assert_eq!(trial["response_time_ns"]["count"], completed, "each response time is there");
    let text = data.told(&["history", "show", "1", "--full"]);
    assert!(text.contains("INTERRUPTED") && text.contains("cut_short"), "{text}");
    assert!(data.refused(&["history", "baseline", "main", "1"]).contains("no whole report"));
    data.load(&server, &[]);
    assert_eq!(data.ids(&[]), [2, 1], "the file takes further runs");
    data.told(&["history", "rm", "1"]);
}

#[test]
fn of_a_sweep_the_levels_that_had_ended_count() {
    let (server, data) = (KneeServer::start(&["--service", "fixed(1ms)"]), Data::new("swept"));
    let url = server.url();
    let time = ["-d", "2s", "--warmup", "0", "--interval", "50ms"];
    let load = [&["sweep", &url, "--vusers", "1,2,4,8,16,32"][..], &time].concat();
    let child = data.knee(&load).spawn().unwrap();
    // Two levels, and something of the third.
    kill_when(&data, child, |report| report["trials"].as_array().unwrap().len() >= 3);
    let shown = data.told(&["history", "show", "--json", "-"]);
    let report: Value = serde_json::from_str(&shown).unwrap();
    let ended = finding(&report, "cut_short")["evidence"]["trials_ended"].as_f64();
    let ended = ended.unwrap() as usize;
    assert!(ended >= 2, "{report:#}");
    let levels = report["conclusion"]["levels"].as_array().unwrap();
    // A level that was run again counts once.
    assert!((1..=ended).contains(&levels.len()), "{ended}: {levels:#?}");
    let trials = report["trials"].as_array().unwrap();
    let verdict = |trial: &Value| trial["invalid_because"].to_string();
    let is_cut = |trial: &&Value| verdict(trial).contains("cut short");
    let running: Vec<&Value> = trials.iter().filter(is_cut).collect();
    assert_eq!(trials.len(), levels.len() + running.len(), "{report:#}");
    let listed = data.told(&["history"]);
    assert!(listed.contains("(so far)"), "{listed}");
}

#[test]
fn of_a_table_the_rows_that_had_ended_are_there() {
    let data = Data::new("table");
    let table = ["throttle", "--delays", "1ms", "-d", "2s", "--methods", "spin,sleep,timerfd"];
    let child = data.knee(&table).spawn().unwrap();
    let before = kill_when(&data, child, |report| !report["conclusion"]["table"].is_null());
    let shown = data.told(&["history", "show", "--json", "-"]);
    let report: Value = serde_json::from_str(&shown).unwrap();
    let rows = |report: &Value| report["conclusion"]["table"].as_array().unwrap().clone();
    assert!(rows(&report).starts_with(&rows(&before)), "what was written stays");
    let ended = &finding(&report, "cut_short")["evidence"]["trials_ended"];
    assert_eq!(ended.as_f64(), Some(rows(&report).len() as f64));
}

#[test]
fn before_anything_was_measured_there_is_nothing_to_show() {
    let (server, data) = (KneeServer::start(&[]), Data::new("at-once-killed"));
    let load = ["run", &server.url(), "-d", "60s", "--warmup", "30s"];
    let mut child = data.knee(&load).spawn().unwrap();
    for _ in 0..600 {
        std::thread::sleep(Duration::from_millis(20));
        if !data.ids(&[]).is_empty() {
            break;
        }
    }
    assert!(data.refused(&["history", "show"]).contains("nothing is measured yet"));
    assert!(data.refused(&["history", "rm", "1"]).contains("still goes on"));
    assert_eq!(data.told(&["history", "prune", "--keep", "0"]), "0 runs removed\n");
    signal(&child, libc::SIGKILL);
    child.wait().unwrap();
    assert!(data.refused(&["history", "show"]).contains("before anything was measured"));
    assert_eq!(data.list(&[])[0]["state"], "cut_short");
    assert_eq!(data.told(&["history", "prune", "--keep", "0"]), "1 run removed\n");
}
