//! How early a sleep has to end on this machine: measured once and kept, and never worth a run.

use crate::support::{Ended, KneeServer, TempPath, knee, run, signal};
use serde_json::Value;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A directory for what outlives a run, gone when dropped.
struct State(PathBuf);

impl State {
    fn new(name: &str) -> State {
        let TempPath(path) = &TempPath::new(name);
        fs::create_dir_all(path).unwrap();
        State(path.clone())
    }

    fn file(&self) -> PathBuf {
        self.0.join("knee/margins.json")
    }

    fn text(&self) -> String {
        fs::read_to_string(self.file()).unwrap()
    }

    fn kept(&self) -> Value {
        serde_json::from_str(&self.text()).unwrap()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run_in(state: &Path, arguments: &[&str]) -> Ended {
    let mut command = knee(arguments);
    Ended::of(command.env("XDG_STATE_HOME", state).spawn().unwrap())
}

/// A short run; only how it ends matters.
fn load(server: &KneeServer, state: &Path, options: &[&str]) -> Ended {
    let url = server.url();
    let ended = run_in(state, &[&["run", &url, "-n", "20"], options].concat());
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    ended
}

#[test]
fn a_run_measures_them_once_and_keeps_them() {
    let (server, state) = (KneeServer::start(&[]), State::new("measured"));
    assert_eq!(load(&server, &state.0, &[]).stderr, "");
    let kept = state.kept();
    assert_eq!(kept["schema"], "knee.margins/1");
    let machine = &kept["machines"][0];
    assert!(machine["machine"]["cpus"].as_u64() >= Some(1), "{kept:#}");
    assert!(machine["measured_at"].as_str().unwrap().ends_with('Z'));
    let margins = machine["margins_ns"].as_array().unwrap();
    assert!(margins.iter().all(|m| m.as_u64() > Some(0)), "{kept:#}");
    let before = state.text();
    assert_eq!(load(&server, &state.0, &[]).stderr, "");
    assert_eq!(state.text(), before, "what is known is not measured again");
}

#[test]
fn what_is_broken_is_replaced_and_told_of_once() {
    let (server, state) = (KneeServer::start(&[]), State::new("broken"));
    load(&server, &state.0, &[]);
    fs::write(state.file(), &state.text()[..100]).unwrap();
    let ended = load(&server, &state.0, &[]);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("margins.json is broken"), "{ended:?}");
    assert_eq!(state.kept()["schema"], "knee.margins/1");
    assert_eq!(load(&server, &state.0, &[]).stderr, "");
}

#[test]
fn where_they_cannot_be_kept_the_run_goes_on() {
    let server = KneeServer::start(&[]);
    // A file is no directory, not even for root.
    let file = TempPath::with("no-directory", "");
    let ended = load(&server, &file.0, &[]);
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    assert!(ended.stderr.contains("cannot be kept"), "{ended:?}");
    assert_eq!(load(&server, &file.0, &["--quiet"]).stderr, "");
}

#[test]
fn the_instrument_keeps_what_it_measures() {
    let state = State::new("instrument");
    let row = ["throttle", "--delays", "1ms", "-d", "20ms", "--quiet"];
    let spin = run_in(&state.0, &[&row[..], &["--methods", "spin"]].concat());
    assert_eq!(spin.status, Some(0), "{spin:?}");
    let measured_at = state.kept()["machines"][0]["measured_at"].clone();
    let text = state.text();
    let long_ago = text.replace(measured_at.as_str().unwrap(), "1999-12-31T23:59:59Z");
    fs::write(state.file(), &long_ago).unwrap();
    let again = run_in(&state.0, &[&row[..], &["--methods", "spin"]].concat());
    assert_eq!(again.status, Some(0), "{again:?}");
    assert_eq!(state.text(), long_ago, "spinning tells nothing of sleeps");
    let hybrid = run_in(&state.0, &[&row[..], &["--methods", "hybrid"]].concat());
    assert_eq!(hybrid.status, Some(0), "{hybrid:?}");
    assert_ne!(state.text(), long_ago);
    assert_eq!(state.kept()["machines"].as_array().unwrap().len(), 1);
}

/// The first runs of all, at once: each measures, each replaces the file, none sees half of one.
#[test]
fn several_at_once_leave_one_whole_file() {
    let (server, state) = (KneeServer::start(&[]), State::new("at-once"));
    let url = server.url();
    let start = |_| {
        let mut command = knee(&["run", &url, "-n", "5"]);
        command.env("XDG_STATE_HOME", &state.0).spawn().unwrap()
    };
    let children: Vec<_> = (0..4).map(start).collect();
    for child in children {
        let ended = Ended::of(child);
        assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
        assert_eq!(ended.stderr, "");
    }
    assert_eq!(state.kept()["machines"].as_array().unwrap().len(), 1);
    let files = fs::read_dir(state.0.join("knee")).unwrap();
    assert_eq!(files.count(), 1, "nothing half written is left behind");
}

#[test]
fn a_service_measures_nothing() {
    let state = State::new("served");
    for kind in ["http", "qotd"] {
        let mut command = knee(&["serve", kind, "--listen", "127.0.0.1:0"]);
        let mut child = command.env("XDG_STATE_HOME", &state.0).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.as_mut().unwrap());
        stdout.read_line(&mut line).unwrap();
        signal(&child, libc::SIGTERM);
        assert_eq!(Ended::of(child).status, Some(0), "{line}");
    }
    assert!(!state.0.join("knee").exists());
}

#[test]
fn commands_that_offer_no_load_measure_nothing() {
    let state = State::new("untouched");
    let stored = TempPath::new("untouched.json");
    let table = TempPath::with("untouched.csv", "vusers,throughput_per_s\n1,10\n2,20\n4,21\n");
    let analyzed = run_in(&state.0, &["analyze", "sweep", table.str(), "--json", stored.str()]);
    assert_eq!(analyzed.status, Some(0), "{analyzed:?}");
    assert_eq!(run_in(&state.0, &["report", stored.str()]).status, Some(0));
    assert_eq!(run_in(&state.0, &["run", "ftp://h/"]).status, Some(2));
    assert!(!state.file().exists());
}

#[test]
fn a_report_says_how_it_waited() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let load = ["-R", "200", "-d", "500ms", "--warmup", "0", "--json", "-"];
    let wait_of = |options: &[&str]| -> Value {
        let ended = run(&[&["run", &url][..], &load, options].concat());
        ended.json()["trials"][0]["generator"]["wait"].clone()
    };
    let wait = wait_of(&[]);
    assert_eq!(wait["policy"], "auto");
    assert!(wait["lateness_ns"]["max"].is_u64(), "it slept: {wait}");
    let shares = ["polling_percent", "spun_percent"].map(|key| wait[key].as_f64());
    let is_share = |share: Option<f64>| share.is_some_and(|s| (0.0..=100.0).contains(&s));
    assert!(shares.into_iter().all(is_share), "{wait}");
    for change in wait["changes"].as_array().unwrap() {
        assert!(change["at_ns"].is_i64() && change["worker"].is_u64());
    }
    for policy in ["hybrid", "sleep", "spin"] {
        let wait = wait_of(&["--wait", policy]);
        assert_eq!(wait["policy"], policy);
        assert_eq!(wait["changes"].as_array().map(Vec::len), Some(0));
        assert_eq!(wait["polling_percent"], 0.0);
    }
}
