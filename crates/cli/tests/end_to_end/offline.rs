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
    assert!(shown.stdout.contains("past_knee") || shown.stdout.contains("knee"), "{shown:?}");
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
    assert!(ended.stderr.starts_with("error: "), "{arguments:?}: {ended:?}");
    ended
}

#[test]
fn bad_arguments_are_one_line_and_exit_2() {
    for arguments in [
        &["juggle"][..],
        &["run"],
        &["run", "ftp://localhost/"],
        &["run", "http://127.0.0.1:99999/"],
        &["run", "http://127.0.0.1:8080/", "--rate", "0"],
        &["run", "http://127.0.0.1:8080/", "--rate", "-5"],
        &["run", "http://127.0.0.1:8080/", "--arrival", "weekly", "--rate", "5"],
        &["run", "http://127.0.0.1:8080/", "-b", "@/nonexistent"],
        &["run", "http://127.0.0.1:8080/", "--json", "/nonexistent/out.json"],
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
        assert!(ended.stdout.contains(expected), "{arguments:?}: {}", ended.stdout);
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

#[test]
fn help_is_a_command_too() {
    for arguments in [&["help"][..], &["help", "run"], &["help", "serve", "http"]] {
        let ended = run(arguments);
        assert_eq!(ended.status, Some(0), "{arguments:?}: {ended:?}");
        assert!(ended.stdout.contains("Usage: knee"), "{}", ended.stdout);
    }
    let as_option = run(&["run", "--help"]);
    assert_eq!(run(&["help", "run"]).stdout, as_option.stdout);
    refused(&["help", "juggle"]);
}

#[test]
fn names_of_other_programs_lead_to_those_that_mean_the_same() {
    let url = "http://127.0.0.1:8080/";
    for (arguments, suggested) in [
        (&["run", url, "--concurrency", "5"][..], "did you mean --connections?"),
        (&["run", url, "--qps", "5"], "did you mean --rate?"),
        (&["run", url, "--users=5"], "did you mean --vusers?"),
        (&["run", url, "--output", "x.json"], "did you mean --json?"),
        (&["run", url, "--duration-seconds", "5"], "did you mean --duration?"),
        (&["overload", url, "--users", "5"], "did you mean --simple?"),
        (&["attack", url], "did you mean run?"),
        // What is only spelt alike is suggested as before.
        (&["run", url, "--warmupp", "5"], "did you mean --warmup?"),
        (&["run", url, "--zyx"], "--help lists all"),
    ] {
        let ended = refused(arguments);
        assert!(ended.stderr.contains(suggested), "{arguments:?}: {ended:?}");
    }
}

/// Lines of a pipe are 80 columns wide, or as many as COLUMNS says.
#[test]
fn what_goes_to_a_pipe_fits_80_columns() {
    let table = TempPath::with("wide.csv", RISING);
    for (arguments, columns) in [
        (&["analyze", "sweep", table.str()][..], 80),
        (&["analyze", "sweep", table.str()], 66),
        (&["--help"], 80),
        (&["run", "--help"], 80),
        (&["sweep", "--help"], 80),
        (&["udp", "--help"], 80),
        (&["latency", "-h"], 80),
        (&["throttle", "--help"], 80),
        (&["overload", "--help"], 80),
        (&["serve", "http", "--help"], 80),
        (&["compare", "--help"], 80),
        (&["history", "--help"], 80),
    ] {
        let mut knee = knee(arguments);
        knee.env_remove("COLUMNS");
        if columns != 80 {
            knee.env("COLUMNS", columns.to_string());
        }
        let ended = Ended::of(knee.spawn().unwrap());
        assert_eq!(ended.status, Some(0), "{ended:?}");
        for line in ended.stdout.lines() {
            let width = line.chars().count();
            assert!(width <= columns, "{arguments:?}: {width}: {line}");
        }
    }
}
