//! What other programs read: HdrHistogram logs, comma-separated values, JUnit XML, completions and
//! manual pages.

use crate::support::{Ended, KneeServer, TempPath, knee, run};
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
    let total = text.split("Total count").nth(1).unwrap_or_else(|| panic!("{}", said()));
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
    let load = ["-c", "2", "-d", "400ms", "--warmup", "0", "--interval", "100ms"];
    let url = server.url();
    let ended = run(&[&["run", &url, "--hdr", log.str(), "--json", "-"][..], &load].concat());
    // Operations count where they end: those of the window's very end do so after it.
    let intervals = ended.json()["trials"][0]["intervals"].clone();
    let in_intervals: u64 = sum(&intervals, "completed") + sum(&intervals, "errors");
    let text = std::fs::read_to_string(&log.0).unwrap();
    assert!(text.starts_with("#[Histogram log format version 1.3]\n"), "{text}");
    assert!(!text.contains("Tag="), "one trial needs none");
    if let Some(counted) = counted_by_hdr_tools(&log, None) {
        assert_eq!(counted, in_intervals);
    }

    let log = TempPath::new("sweep.hlog");
    let levels = ["--vusers", "1,2", "-d", "300ms", "--warmup", "0"];
    let sweep = ["sweep", &url, "--hdr", log.str(), "--json", "-"];
    let ended = run(&[&sweep[..], &levels].concat());
    let report = ended.json();
    // A row leaves out slices in which the generator or its host was disturbed, and those before or
    // after a lasting change.
    let slices = report["conclusion"]["slices"].as_array().unwrap();
    let is_left_out = |slice: &Value| {
        let marks = slice["marks"].as_array().unwrap();
        let is_of_level = slice["level"]["vusers"] == 2;
        is_of_level && (slice["weight"] == 0.0 || marks.iter().any(|mark| mark == "other_regime"))
    };
    let leaves_out = slices.iter().any(is_left_out);
    let text = std::fs::read_to_string(&log.0).unwrap();
    for vusers in [1, 2] {
        let of_level = slices.iter().filter(|slice| slice["level"]["vusers"] == vusers);
        let tag = format!("Tag=vusers={vusers},");
        let tagged = text.lines().filter(|line| line.starts_with(&tag));
        assert_eq!(tagged.count(), of_level.count(), "a line for each slice: {text}");
    }
    let trials = report["trials"].clone();
    let of = |label: &str| -> u64 {
        let is_of = |t: &&Value| t["label"] == label;
        let of = trials.as_array().unwrap().iter().filter(is_of);
        of.map(|t| sum(&t["intervals"], "completed")).sum()
    };
    if let Some(counted) = counted_by_hdr_tools(&log, Some("vusers=2")) {
        let expected = of("vusers=2");
        let is_counted = counted == expected || (leaves_out && counted > expected);
        assert!(is_counted, "{counted} in the log, {expected} in the report");
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
    let load = ["-R", "200", "-d", "500ms", "--warmup", "0", "--interval", "100ms"];
    run(&[&["run", &url, "--csv", csv.str(), "--json", json.str()][..], &load].concat());
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&json.0).unwrap()).unwrap();
    let intervals = report["trials"][0]["intervals"].as_array().unwrap();
    let text = std::fs::read_to_string(&csv.0).unwrap();
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let columns = lines.next().unwrap();
    let at = |name: &str| columns.iter().position(|c| *c == name).unwrap();
    let rows: Vec<Vec<&str>> = lines.collect();
    assert_eq!(rows.len(), intervals.len());
    for (row, interval) in rows.iter().zip(intervals) {
        assert_eq!((row[at("trial")], row[at("rate_per_s")]), ("rate=200/s", "200.0"));
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
    // Counts are decided on any host.
    let load = ["-n", "20", "--fail-if", "errors<50%", "--fail-if", "errors>1%"];
    let ended = run(&[&["run", &url, "--junit", xml.str()][..], &load].concat());
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    let text = std::fs::read_to_string(&xml.0).unwrap();
    let document = roxmltree::Document::parse(&text).unwrap();
    let case = |name: &str| {
        let mut all = document.descendants().filter(|n| n.has_tag_name("testcase"));
        all.find(|n| n.attribute("name") == Some(name)).unwrap()
    };
    let failed = |name: &str| case(name).descendants().any(|n| n.has_tag_name("failure"));
    assert!(failed("not errors<50%"), "{text}");
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
fn every_file_is_written_where_no_target_answers() {
    let names = ["json", "html", "csv", "junit", "hdr"];
    let stored = names.map(|name| TempPath::with(&format!("nobody.{name}"), "before"));
    for command in ["run", "sweep", "overload", "udp", "latency"] {
        let target = match command {
            "udp" | "latency" => "127.0.0.1:1",
            _ => "http://127.0.0.1:1/",
        };
        let mut arguments = vec![command.to_string(), target.to_string()];
        for (name, file) in names.iter().zip(&stored) {
            std::fs::write(&file.0, "before").unwrap();
            arguments.extend([format!("--{name}"), file.str().to_string()]);
        }
        arguments.extend(["--fail-if".to_string(), "invalid".to_string()]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let ended = run(&arguments);
        assert_eq!(ended.status, Some(4), "{ended:?}");
        assert_eq!(ended.stdout, "", "{command}");
        let [json, html, csv, junit, hdr] =
            [0, 1, 2, 3, 4].map(|i| std::fs::read_to_string(&stored[i].0).unwrap());
        let report: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(report["command"], command);
        assert_eq!(report["result"], "failed");
        assert_eq!(report["findings"][0]["code"], "unreachable", "{report:#}");
        assert!(report["host"]["cpus"].as_u64() > Some(0));
        assert!(report["spec"].as_object().is_some_and(|spec| !spec.is_empty()));
        assert!(html.contains("FAILED") && !html.contains("VALID"), "{command}");
        assert!(!csv.contains("before"), "{csv}");
        assert!(junit.contains("errors=\"1\""), "{junit}");
        assert!(hdr.starts_with("#[Histogram log format version 1.3]\n"), "{hdr}");
        let again = run(&["report", stored[0].str()]);
        assert_eq!(again.status, Some(0), "{again:?}");
        assert!(again.stdout.contains("FAILED  The target could not"), "{}", again.stdout);
    }
}

/// A device that takes nothing: for each kind of output, and for standard output.
#[test]
fn an_output_that_cannot_be_written_whole_is_exit_2_and_named() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let load = ["run", &url, "-d", "300ms", "--warmup", "0", "-c", "1", "--quiet"];
    let other = TempPath::new("beside-full.json");
    for option in ["--json", "--html", "--md", "--csv", "--junit", "--hdr"] {
        let beside = if option == "--json" { "--csv" } else { "--json" };
        let _ = std::fs::remove_file(&other.0);
        let full = [option, "/dev/full", beside, other.str()];
        let ended = run(&[&load[..], &full].concat());
        assert_eq!(ended.status, Some(2), "{option}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{option}: {ended:?}");
        let named = format!("error: {option}: '/dev/full' could not be written");
        assert!(ended.stderr.starts_with(&named), "{ended:?}");
        assert!(ended.stderr.contains("No space left"), "{ended:?}");
        assert!(ended.stdout.contains("VALID"), "the text is shown: {ended:?}");
        let beside = std::fs::read_to_string(&other.0).unwrap();
        assert!(beside.len() > 100, "{option}: the other file is whole");
    }
    for form in [&[][..], &["--json", "-"], &["--html", "-"], &["--hdr", "-"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let mut knee = knee(&[&load[..], form].concat());
        let ended = Ended::of(knee.stdout(full).spawn().unwrap());
        assert_eq!(ended.status, Some(2), "{form:?}: {ended:?}");
        let line = "error: standard output could not be written: No space left on device";
        assert!(ended.stderr.starts_with(line), "{form:?}: {ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{form:?}: {ended:?}");
    }
    for arguments in [&["--help"][..], &["run", "-h"], &["--version"], &["man"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let ended = Ended::of(knee(arguments).stdout(full).spawn().unwrap());
        assert_eq!(ended.status, Some(2), "{arguments:?}: {ended:?}");
    }
}

/// Who reads the log may stop reading.
#[test]
fn a_reader_of_a_log_that_goes_away_is_no_error() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let load = ["run", &url, "-d", "300ms", "--warmup", "0", "-c", "1", "--hdr", "-"];
    let mut child = knee(&load).spawn().unwrap();
    drop(child.stdout.take());
    let ended = Ended::of(child);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
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
    assert!(none.stderr.starts_with("error: COMMAND: 'nothing' is none; there are run, "));
}
