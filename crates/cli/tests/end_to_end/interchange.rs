//! What other programs read: HdrHistogram logs, comma-separated values, JUnit XML, completions and
//! manual pages.

use crate::support::{KneeServer, TempPath, knee, run};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// HdrHistogram's own log processor, by its authors, in Java.
const HDR_TOOLS: &str = "/usr/share/java/hdrhistogram.jar";

/// The number of values that the log processor finds in a log, by this tag or none; `None` where
/// it is not installed.
fn counted_by_hdr_tools(log: &TempPath, tag: Option<&str>) -> Option<u64> {
    if !Path::new(HDR_TOOLS).is_file() {
        eprintln!("skipped: no {HDR_TOOLS}: apt-get install libhdrhistogram-java");
        return None;
    }
    let mut java = Command::new("java");
    java.args(["-cp", HDR_TOOLS, "org.HdrHistogram.HistogramLogProcessor"]);
    java.args(["-i", log.str()]);
    if let Some(tag) = tag {
        java.args(["-tag", tag]);
    }
    let output = match java.output() {
        Ok(output) => output,
        Err(e) => {
            eprintln!("skipped: java: {e}");
            return None;
        }
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let said = || format!("{text}{}", String::from_utf8_lossy(&output.stderr));
    // "#[Max     =        1.234, Total count    =         1000]"
    let total = text
        .split("Total count")
        .nth(1)
        .unwrap_or_else(|| panic!("{}", said()));
    let digits: String = total.chars().filter(char::is_ascii_digit).collect();
    // What follows is "[Buckets = …": the count is what stands before the bracket.
    let count = total.split(']').next().unwrap().replace(['=', ' '], "");
    assert!(digits.starts_with(&count), "{}", said());
    Some(count.parse().unwrap())
}

#[test]
fn histograms_are_opened_by_the_tools_of_hdrhistogram() {
    let server = KneeServer::start(&[]);
    let log = TempPath::new("run.hlog");
    let load = [
        "-c",
        "2",
        "-d",
        "400ms",
        "--warmup",
        "0",
        "--interval",
        "100ms",
    ];
    let url = server.url();
    let ended = run(&[&["run", &url, "--hdr", log.str(), "--json", "-"][..], &load].concat());
    // Operations count where they end: those of the window's last moment end after it.
    let intervals = ended.json()["trials"][0]["intervals"].clone();
    let in_intervals: u64 = sum(&intervals, "completed") + sum(&intervals, "errors");
    let text = std::fs::read_to_string(&log.0).unwrap();
    assert!(
        text.starts_with("#[Histogram log format version 1.3]\n"),
        "{text}"
    );
    assert!(!text.contains("Tag="), "one trial needs none");
    if let Some(counted) = counted_by_hdr_tools(&log, None) {
        assert_eq!(counted, in_intervals);
    }

    let log = TempPath::new("sweep.hlog");
    let levels = ["--vusers", "1,2", "-d", "300ms", "--warmup", "0"];
    let sweep = ["sweep", &url, "--hdr", log.str(), "--json", "-"];
    let ended = run(&[&sweep[..], &levels].concat());
    let trials = ended.json()["trials"].clone();
    let of = |label: &str| -> u64 {
        let is_of = |t: &&Value| t["label"] == label;
        let of = trials.as_array().unwrap().iter().filter(is_of);
        of.map(|t| sum(&t["intervals"], "completed")).sum()
    };
    if let Some(counted) = counted_by_hdr_tools(&log, Some("vusers=2")) {
        assert_eq!(
            counted,
            of("vusers=2"),
            "each level is told apart by its tag"
        );
    }
}

fn sum(intervals: &Value, key: &str) -> u64 {
    let intervals = intervals.as_array().unwrap().iter();
    intervals.map(|i| i[key].as_u64().unwrap()).sum()
}

#[test]
fn intervals_are_lines_of_a_csv() {
    let server = KneeServer::start(&[]);
    let (csv, json) = (TempPath::new("run.csv"), TempPath::new("run-csv.json"));
    let url = server.url();
    let load = [
        "-R",
        "200",
        "-d",
        "500ms",
        "--warmup",
        "0",
        "--interval",
        "100ms",
    ];
    run(&[
        &["run", &url, "--csv", csv.str(), "--json", json.str()][..],
        &load,
    ]
    .concat());
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json.0).unwrap()).unwrap();
    let intervals = report["trials"][0]["intervals"].as_array().unwrap();
    let text = std::fs::read_to_string(&csv.0).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    let at = |name: &str| columns.iter().position(|c| *c == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    assert_eq!(rows.len(), intervals.len());
    for (row, interval) in rows.iter().zip(intervals) {
        assert_eq!(
            (row[at("trial")], row[at("rate_per_s")]),
            ("rate=200/s", "200.0")
        );
        for key in ["start_ns", "end_ns", "attempted", "completed", "p99_ns"] {
            assert_eq!(row[at(key)], interval[key].to_string(), "{key}");
        }
    }
    let again = run(&["report", json.str(), "--csv", "-"]);
    assert_eq!(again.stdout, text, "a stored report has the same");
}

#[test]
fn thresholds_are_tests_in_junit_xml() {
    let server = KneeServer::start(&[]);
    let xml = TempPath::new("junit.xml");
    let url = server.url();
    let load = ["-n", "20", "--fail-if", "p50>0ns", "--fail-if", "errors>1%"];
    let ended = run(&[&["run", &url, "--junit", xml.str()][..], &load].concat());
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    let text = std::fs::read_to_string(&xml.0).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let case = |name: &str| {
        let mut all = document
            .descendants()
            .filter(|n| n.has_tag_name("testcase"));
        all.find(|n| n.attribute("name") == Some(name)).unwrap()
    };
    let failed = |name: &str| case(name).descendants().any(|n| n.has_tag_name("failure"));
    assert!(failed("not p50>0ns"), "{text}");
    assert!(!failed("not errors>1%"), "{text}");
    let invalid = case("the measurement is valid");
    let is_error = invalid.descendants().any(|n| n.has_tag_name("error"));
    assert_eq!(is_error, ended.status == Some(3), "{text}");
}

#[test]
fn a_log_to_standard_output_has_it_alone() {
    let server = KneeServer::start(&[]);
    let load = ["-c", "1", "-d", "200ms", "--warmup", "0"];
    let ended = run(&[&["run", &server.url(), "--hdr", "-"][..], &load].concat());
    let lines: Vec<&str> = ended.stdout.lines().collect();
    assert_eq!(lines[0], "#[Histogram log format version 1.3]");
    let is_of_log = |l: &&str| l.starts_with(['#', '"']) || l.contains(",HIST");
    assert!(lines.iter().all(is_of_log), "{}", ended.stdout);
    let both = run(&["run", "http://127.0.0.1:1/", "--json", "-", "--hdr", "-"]);
    assert_eq!(both.status, Some(2), "{both:?}");
}

#[test]
fn what_a_log_held_stays_where_no_load_came() {
    let log = TempPath::with("kept.hlog", "before");
    let ended = run(&["run", "http://127.0.0.1:1/", "--hdr", log.str()]);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert_eq!(std::fs::read_to_string(&log.0).unwrap(), "before");
}

#[test]
fn two_forms_cannot_both_have_standard_output() {
    let ended = run(&["run", "http://127.0.0.1:1/", "--json", "-", "--junit", "-"]);
    let wrong = "error: --junit: standard output is taken by --json: name a file\n";
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(2), wrong));
}

#[test]
fn completions_are_scripts_and_manual_pages_are_roff() {
    let script = run(&["completions", "bash"]);
    assert_eq!(script.status, Some(0));
    let mut bash = Command::new("bash");
    bash.arg("-n").stdin(Stdio::piped());
    let mut bash = bash.spawn().unwrap();
    std::io::Write::write_all(bash.stdin.as_mut().unwrap(), script.stdout.as_bytes()).unwrap();
    assert!(bash.wait().unwrap().success());
    assert!(script.stdout.contains("--fail-if"));
    let page = run(&["man", "serve", "http"]);
    assert!(page.stdout.contains(".TH knee-serve-http 1"), "{page:?}");
    let dir = TempPath::new("man");
    let all = knee(&["man", "--dir", dir.str()]).status().unwrap();
    assert!(all.success());
    assert!(dir.0.join("knee.1").is_file() && dir.0.join("knee-sweep.1").is_file());
    std::fs::remove_dir_all(&dir.0).unwrap();
    let none = run(&["man", "nothing"]);
    assert_eq!(none.status, Some(2));
    assert!(
        none.stderr
            .starts_with("error: COMMAND: 'nothing' is none; there are run, ")
    );
}
