//! The binary without any load: tables, stored reports, bad input, help.

use crate::support::{Ended, TempPath, knee, run, run_with_input};

const RISING: &str = "vusers,throughput_per_s\n1,1833\n10,18226\n50,74684\n100,86069\n200,88455\n\
                      300,88375\n";

#[test]
fn a_table_is_concluded_from_and_its_report_renders_again() {
    let table = TempPath::with("rising.csv", RISING);
    let stored = TempPath::new("rising.json");
    let shown = run(&["analyze", "sweep", table.str(), "--json", stored.str()]);
    assert_eq!(shown.status, Some(0), "{shown:?}");
    assert!(
        shown.stdout.contains("past_knee") || shown.stdout.contains("knee"),
        "{shown:?}"
    );
    assert_eq!(shown.stderr, "");
    let again = run(&["report", stored.str()]);
    assert_eq!(again.status, Some(0));
    assert_eq!(again.stdout, shown.stdout);
    let json = run(&["report", stored.str(), "--json", "-"]);
    assert_eq!(json.stdout, std::fs::read_to_string(&stored.0).unwrap());
    assert_eq!(json.json()["command"], "analyze sweep");
}

#[test]
fn a_table_may_come_from_standard_input() {
    let ended = run_with_input(&["analyze", "sweep", "-", "--json", "-"], RISING);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    let knee = ended.json()["conclusion"]["knee_vusers"].as_f64().unwrap();
    assert!((45.0..=51.0).contains(&knee), "{knee}");
}

#[test]
fn what_cannot_be_read_is_one_line_and_exit_2() {
    let table = TempPath::with("bad.csv", "vusers,throughput_per_s\n1,x\n");
    let report = TempPath::with("bad.json", "{}");
    let dir = std::env::temp_dir();
    for arguments in [
        &["analyze", "sweep", table.str()][..],
        &["analyze", "sweep", "/nonexistent/table.csv"],
        &["analyze", "sweep", dir.to_str().unwrap()],
        &["report", report.str()],
        &["report", "/nonexistent/report.json"],
        &["report", report.str(), "--json", "/nonexistent/out.json"],
    ] {
        let ended = refused(arguments);
        let named = arguments.iter().any(|a| ended.stderr.contains(a));
        assert!(named, "{arguments:?}: {ended:?}");
    }
}

/// Runs it; it must end with 2 and one line on standard error.
#[track_caller]
fn refused(arguments: &[&str]) -> Ended {
    let ended = run(arguments);
    assert_eq!(ended.status, Some(2), "{arguments:?}: {ended:?}");
    assert_eq!(ended.stdout, "", "{arguments:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {ended:?}");
    assert!(
        ended.stderr.starts_with("error: "),
        "{arguments:?}: {ended:?}"
    );
    ended
}

#[test]
fn bad_arguments_are_one_line_and_exit_2() {
    for arguments in [
        &["juggle"][..],
        &["run"],
        &["run", "https://localhost/"],
        &["run", "http://127.0.0.1:99999/"],
        &["run", "http://127.0.0.1:8080/", "--rate", "0"],
        &["run", "http://127.0.0.1:8080/", "--rate", "-5"],
        &[
            "run",
            "http://127.0.0.1:8080/",
            "--arrival",
            "weekly",
            "--rate",
            "5",
        ],
        &["run", "http://127.0.0.1:8080/", "-b", "@/nonexistent"],
        &[
            "run",
            "http://127.0.0.1:8080/",
            "--json",
            "/nonexistent/out.json",
        ],
        &["run", "--targets", "/nonexistent"],
        &["sweep", "http://127.0.0.1:8080/", "--vusers", "1,zero"],
        &["sweep", "http://127.0.0.1:8080/", "--rates", "5"],
        &["serve", "http", "--listen", "localhost"],
        &["serve", "http", "--fault", "explode(1)"],
    ] {
        refused(arguments);
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    for (arguments, expected) in [
        (&["--version"][..], "knee "),
        (&["-h"], "Examples:"),
        (&["--help"], "Exit codes:"),
        (&["run", "-h"], "Example:"),
        (&["run", "--help"], "Exit codes:"),
        (&["sweep", "--help"], "--bound"),
        (&["analyze", "sweep", "--help"], "throughput_per_s"),
        (&["serve", "http", "--help"], "--fault"),
    ] {
        let ended = run(arguments);
        assert_eq!(ended.status, Some(0), "{arguments:?}");
        assert_eq!(ended.stderr, "", "{arguments:?}");
        assert!(
            ended.stdout.contains(expected),
            "{arguments:?}: {}",
            ended.stdout
        );
    }
    let bare = run(&[]);
    assert_eq!((bare.status, bare.stdout.as_str()), (Some(2), ""));
    assert!(bare.stderr.contains("Usage:"), "{bare:?}");
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let table = TempPath::with("piped.csv", RISING);
    for arguments in [
        &["analyze", "sweep", table.str()][..],
        &["analyze", "sweep", table.str(), "--json", "-"],
        &["--help"],
    ] {
        let mut child = knee(arguments).spawn().unwrap();
        drop(child.stdout.take());
        let ended = Ended::of(child);
        assert_eq!(ended.status, Some(0), "{arguments:?}: {ended:?}");
        assert_eq!(ended.stderr, "", "{arguments:?}");
    }
}
