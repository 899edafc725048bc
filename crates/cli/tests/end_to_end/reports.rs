//! A stored report shows again what the experiment showed, to the letter.

use crate::support::{Ended, KneeServer, TempPath, as_of_a_file, knee, run, signal};
use std::time::Duration;

fn shows_again(shown: &Ended, stored: &TempPath, statuses: &[i32]) {
    assert!(shown.status.is_some_and(|s| statuses.contains(&s)), "{shown:?}");
    assert!(!shown.stdout.is_empty());
    let again = run(&["report", stored.str()]);
    assert_eq!(again.status, Some(0), "{again:?}");
    assert_eq!(again.stdout, as_of_a_file(&shown.stdout));
    let json = run(&["report", stored.str(), "--json", "-"]);
    assert_eq!(json.stdout, std::fs::read_to_string(&stored.0).unwrap());
}

#[test]
fn of_a_run_open_or_closed_with_errors_or_without() {
    let server = KneeServer::start(&["--fault", "error(0.2,503)", "--fault", "reset(0.1)"]);
    for (name, load) in [
        ("closed", &["-c", "3", "-n", "100"][..]),
        ("open", &["--rate", "300", "--arrival", "poisson", "-d", "500ms", "--warmup", "0"]),
        ("crossed", &["-n", "50", "--fail-if", "errors<50%", "--fail-if", "errors>0%"]),
    ] {
        let stored = TempPath::new(&format!("report-{name}.json"));
        let url = server.url();
        let shown = run(&[&["run", &url, "--json", stored.str()][..], load].concat());
        shows_again(&shown, &stored, &[0, 1, 3]);
    }
}

#[test]
fn of_a_run_without_any_response() {
    let server = KneeServer::start(&["--fault", "garbage(1)"]);
    let stored = TempPath::new("report-garbage.json");
    let shown = run(&["run", &server.url(), "-n", "20", "--json", stored.str()]);
    shows_again(&shown, &stored, &[1, 3]);
}

#[test]
fn of_a_sweep_of_users_or_rates() {
    let server = KneeServer::start(&["--workers", "2", "--service", "fixed(2ms)"]);
    for (name, levels) in [
        ("users", &["--vusers", "1,2,4,8", "--bound", "p90=5ms"][..]),
        ("rates", &["--axis", "rate", "--rates", "100,300"]),
    ] {
        let stored = TempPath::new(&format!("report-{name}.json"));
        let url = server.url();
        let time = ["-d", "300ms", "--warmup", "50ms", "--json", stored.str()];
        let shown = run(&[&["sweep", &url][..], &time, levels].concat());
        shows_again(&shown, &stored, &[0, 3]);
    }
}

#[test]
fn of_a_sweep_that_was_interrupted() {
    let server = KneeServer::start(&[]);
    let stored = TempPath::new("report-interrupted.json");
    let child = knee(&["sweep", &server.url(), "--json", stored.str()]).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    signal(&child, libc::SIGINT);
    let shown = Ended::of(child);
    shows_again(&shown, &stored, &[130, 3]);
    let report = run(&["report", stored.str(), "--json", "-"]).json();
    assert_eq!(report["interrupted"], true);
}

#[test]
fn a_stored_report_is_held_against_other_thresholds() {
    let server = KneeServer::start(&[]);
    let stored = TempPath::new("report-thresholds.json");
    let url = server.url();
    let load = ["-n", "50", "--fail-if", "p95>1h", "--full", "--json", stored.str()];
    let shown = run(&[&["run", &url][..], &load].concat());
    assert!(shown.stdout.contains("Thresholds\n  p95>1h  kept"), "{}", shown.stdout);
    let fine = [0, shown.status.unwrap()];
    let kept = ["--fail-if", "p50>1h", "--fail-if", "errors>0.1%"];
    let again = run(&[&["report", stored.str()][..], &kept].concat());
    assert!(again.status.is_some_and(|s| fine.contains(&s)), "{again:?}");
    let crossed =
        run(&[&["report", stored.str(), "--full"][..], &kept, &["--fail-if", "errors<50%"]]
            .concat());
    assert!(matches!(crossed.status, Some(1 | 3)), "{crossed:?}");
    assert!(crossed.stderr.starts_with("failed: "), "{crossed:?}");
    assert!(crossed.stdout.contains("FAILED"), "{}", crossed.stdout);
    for expression in ["p95>1h", "p50>1h", "errors<50%"] {
        assert!(crossed.stdout.contains(expression), "{}", crossed.stdout);
    }
    let page =
        run(&[&["report", stored.str(), "--html", "-"][..], &["--fail-if", "errors<50%"]].concat());
    assert!(page.stdout.contains("FAILED") && page.stdout.contains("errors&lt;50%"));
    let wrong = run(&["report", stored.str(), "--fail-if", "errors>0.01"]);
    assert_eq!(wrong.status, Some(2));
    assert!(wrong.stderr.contains("write errors>1% for a share of 0.01"), "{wrong:?}");
}

/// A report of before there was a result has one when it is read.
#[test]
fn a_report_without_a_result_reads() {
    let server = KneeServer::start(&[]);
    let stored = TempPath::new("report-old.json");
    let url = server.url();
    run(&["run", &url, "-n", "20", "--fail-if", "errors<50%", "--json", stored.str()]);
    let text = std::fs::read_to_string(&stored.0).unwrap();
    let mut old: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(old["result"], "failed");
    let object = old.as_object_mut().unwrap();
    object.remove("result");
    object.remove("failed_because");
    std::fs::write(&stored.0, old.to_string()).unwrap();
    let read = run(&["report", stored.str(), "--json", "-"]);
    assert_eq!(read.stdout, text);
}
