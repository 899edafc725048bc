//! Runs that end as they should.

use super::Data;
use crate::support::{Ended, KneeServer, TempPath};
use serde_json::Value;

#[test]
fn a_run_is_kept_and_shown_again_to_the_letter() {
    let (server, data) = (KneeServer::start(&[]), Data::new("kept"));
    assert_eq!(data.told(&["history"]), "no run is kept yet\n");
    assert!(!data.file().exists(), "looking makes no file");
    let ran = data.load(&server, &[]);
    assert_eq!(ran.stderr, "");
    assert_eq!(data.told(&["history", "show", "1"]), ran.stdout);
    assert_eq!(data.told(&["history", "show"]), ran.stdout);
    let json = data.load(&server, &["--json", "-"]);
    assert_eq!(data.told(&["history", "show", "2", "--json", "-"]), json.stdout);
    assert_eq!(data.told(&["history", "show", "last", "--json", "-"]), json.stdout);
    let page = TempPath::new("history.html");
    data.told(&["history", "show", "2", "--html", page.str()]);
    assert!(std::fs::read_to_string(&page.0).unwrap().contains("<!doctype html>"));

    let [second, first] = &data.list(&[])[..] else {
        panic!("two runs");
    };
    let report = json.json();
    assert_eq!((first["id"].as_i64(), second["id"].as_i64()), (Some(1), Some(2)));
    assert_eq!(second["command"], "run");
    assert_eq!(second["target"], server.url());
    assert_eq!(second["state"], "complete");
    for key in ["verdict", "result", "seed", "started_at", "knee_version", "interrupted"] {
        assert_eq!(second[key], report[key], "{key}");
    }
    assert!(second["answer"].as_str().unwrap().contains("/s, p50"), "{second}");
    assert!(second["duration_ns"].as_u64() > Some(0), "{second}");
    let listed = data.told(&["history"]);
    // Each with its answer below, as there is no room beside the rest.
    assert_eq!(listed.lines().count(), 5, "{listed}");
    let is_narrow = |line: &str| line.chars().count() <= 80;
    assert!(listed.lines().all(is_narrow), "{listed}");
    assert!(listed.contains("VALID") && !listed.contains("PASSED"), "nothing was asked: {listed}");
}

#[test]
fn what_was_not_to_be_kept_is_not() {
    let (server, data) = (KneeServer::start(&[]), Data::new("not-kept"));
    data.load(&server, &["--no-save"]);
    assert!(!data.file().exists());
    let stored = TempPath::new("history-stored.json");
    data.load(&server, &["--json", stored.str()]);
    data.told(&["report", stored.str()]);
    let table = "vusers,throughput_per_s\n1,10\n2,20\n4,21\n";
    let table = TempPath::with("history.csv", table);
    data.told(&["analyze", "sweep", table.str()]);
    assert_eq!(data.ids(&[]), [1], "what does not measure is no run");
    let refused = data.refused(&["run", "ftp://h/"]);
    assert!(refused.contains("ftp"), "{refused}");
    data.run(&["run", "http://127.0.0.1:1/", "-n", "1"]);
    assert_eq!(data.ids(&[]), [1], "where nobody listens there is no run");
}

#[test]
fn a_file_of_ones_own_takes_the_place_of_the_users() {
    let (server, data) = (KneeServer::start(&[]), Data::new("own-file"));
    let own = data.0.join("own.db");
    let mut command = data.knee(&["run", &server.url(), "-n", "5"]);
    let ran = Ended::of(command.env("KNEE_HISTORY", &own).spawn().unwrap());
    assert_eq!(ran.stderr, "");
    assert!(own.exists() && !data.file().exists());
    let mut command = data.knee(&["history", "show", "1"]);
    let shown = Ended::of(command.env("KNEE_HISTORY", &own).spawn().unwrap());
    assert_eq!(shown.stdout, ran.stdout);
}

#[test]
fn the_list_can_be_narrowed_and_old_runs_go() {
    let (server, data) = (KneeServer::start(&[]), Data::new("narrowed"));
    for _ in 0..3 {
        data.load(&server, &[]);
    }
    let row = ["throttle", "--delays", "1ms", "--methods", "spin", "-d", "20ms"];
    data.told(&[&row[..], &["--quiet"]].concat());
    assert_eq!(data.ids(&[]), [4, 3, 2, 1]);
    assert_eq!(data.ids(&["--command", "throttle"]), [4]);
    assert_eq!(data.ids(&["--target", "127.0.0.1"]), [3, 2, 1]);
    assert_eq!(data.ids(&["--limit", "2"]), [4, 3]);
    assert!(data.ids(&["--target", "example.org"]).is_empty());
    let listed = data.told(&["history", "--limit", "1"]);
    assert!(listed.ends_with("and 3 before; --limit 4 lists all\n"), "{listed}");

    data.told(&["history", "baseline", "main", "1"]);
    let refused = data.refused(&["history", "rm", "2", "77"]);
    assert!(refused.contains("77"), "{refused}");
    assert_eq!(data.ids(&[]), [4, 3, 2, 1], "all of them or none");
    data.told(&["history", "rm", "2"]);
    assert_eq!(data.ids(&[]), [4, 3, 1]);
    assert_eq!(data.told(&["history", "prune", "--keep", "1"]), "1 run removed\n");
    assert_eq!(data.ids(&[]), [4, 1], "a baseline stays");
    data.load(&server, &[]);
    assert_eq!(data.ids(&["--limit", "1"]), [5], "no id is given twice");
    data.told(&["history", "rm", "5"]);
    data.load(&server, &[]);
    assert_eq!(data.ids(&["--limit", "1"]), [6]);
}

#[test]
fn baselines_are_named() {
    let (server, data) = (KneeServer::start(&[]), Data::new("baselines"));
    let first = data.load(&server, &[]);
    data.told(&["history", "baseline", "main", "last"]);
    assert_eq!(data.told(&["history", "show", "main"]), first.stdout);
    assert_eq!(data.told(&["history", "baseline"]), "main  1\n");
    assert_eq!(data.told(&["history", "baseline", "main"]), "1\n");
    assert_eq!(data.list(&[])[0]["baselines"], serde_json::json!(["main"]));
    let second = data.load(&server, &["--save-baseline", "feature/x"]);
    // A machine that is too busy for a valid run makes no baseline, and says so.
    if second.status == Some(0) {
        assert_eq!(second.stderr, "");
        assert_eq!(data.told(&["history", "baseline", "feature/x"]), "2\n");
        data.told(&["history", "baseline", "feature/x", "--remove"]);
    } else {
        assert!(second.stderr.contains("--save-baseline"), "{second:?}");
    }
    assert_eq!(data.told(&["history", "baseline"]), "main  1\n");
    assert!(data.refused(&["history", "show", "other"]).contains("other"));
    assert!(data.refused(&["history", "show", "3"]).contains("no run 3"));
    assert!(data.refused(&["history", "baseline", "last", "1"]).contains("last"));
    assert!(data.refused(&["history", "baseline", "a", "3"]).contains("no run 3"));
    let url = server.url();
    for wrong in [&["--save-baseline", "12"][..], &["--no-save", "--save-baseline", "a"]] {
        let refused = data.refused(&[&["run", &url], wrong].concat());
        assert!(refused.contains("--save-baseline"), "{refused}");
    }
}

#[test]
fn runs_at_the_same_time_do_not_disturb_each_other() {
    let (server, data) = (KneeServer::start(&[]), Data::new("at-once"));
    let url = server.url();
    // The first of all: each finds no file.
    let load = ["run", &url, "-n", "20", "--json", "-", "--interval", "10ms"];
    let begun: Vec<_> = (0..6).map(|_| data.knee(&load).spawn().unwrap()).collect();
    let mut ended: Vec<Ended> = begun.into_iter().map(Ended::of).collect();
    for run in &ended {
        assert!(matches!(run.status, Some(0 | 3)), "{run:?}");
        // Margins may not be known yet, and are kept by only one.
        assert!(!run.stderr.contains("history"), "{run:?}");
    }
    assert_eq!(data.ids(&[]), [6, 5, 4, 3, 2, 1]);
    let show = |id: i64| data.told(&["history", "show", &id.to_string(), "--json", "-"]);
    let mut kept: Vec<String> = (1..=6).map(show).collect();
    kept.sort();
    ended.sort_by(|a, b| a.stdout.cmp(&b.stdout));
    let printed: Vec<String> = ended.into_iter().map(|e| e.stdout).collect();
    assert_eq!(kept, printed);
}

/// The generator's processor time per operation shows how fast the host is, where it is busy.
#[test]
fn sweeps_of_one_target_state_the_speed_of_the_host() {
    let data = Data::new("speed");
    let server = KneeServer::start(&[]);
    let sweep = |more: &[&str]| {
        let levels = ["--vusers", "16,24,32", "-d", "600ms", "--warmup", "50ms", "-t", "1"];
        let json = ["--json", "-", "--quiet"];
        let ended = data.run(&[&["sweep", &server.url()][..], &levels, &json, more].concat());
        ended.json()
    };
    let is_busy = |report: &Value| {
        let trials = report["trials"].as_array().unwrap().iter();
        trials.map(|t| &t["generator"]).any(|g| {
            g["busiest_worker_percent"].as_f64() >= Some(50.0)
                && g["busiest_worker_spin_percent"].as_f64() <= Some(1.0)
        })
    };
    let earlier = |report: &Value| report["conclusion"]["earlier_host_speed"].clone();
    let first = sweep(&[]);
    assert!(earlier(&first).is_null(), "{first:#}");
    assert!(earlier(&sweep(&["--no-save"])).is_null());
    let second = sweep(&[]);
    if is_busy(&first) && is_busy(&second) {
        assert_eq!(earlier(&second)["runs"], 1, "{second:#}");
        let speed = earlier(&second)["speed"].as_f64().unwrap();
        assert!((0.05..20.0).contains(&speed), "{speed}");
    }
    assert!(earlier(&sweep(&["-H", "Other: load"])).is_null());
}
