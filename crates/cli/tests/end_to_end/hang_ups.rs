//! SIGHUP: a run ends with its report, a service with its statistics; nohup is obeyed.

use crate::support::{Ended, KneeServer, OnTerminal, TempPath, knee, signal};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};

/// A log on standard output says when the run has begun.
const LOAD: [&str; 6] = ["-c", "1", "--no-save", "--quiet", "--hdr", "-"];

/// Waits for the first line of the log; the rest is read, so that knee never waits.
fn wait_until_it_runs(child: &mut Child) {
    let mut log = BufReader::new(child.stdout.take().unwrap());
    log.read_line(&mut String::new()).unwrap();
    std::thread::spawn(move || log.read_to_end(&mut Vec::new()));
}

fn json(file: &TempPath) -> Value {
    serde_json::from_str(&std::fs::read_to_string(&file.0).unwrap()).unwrap()
}

/// A shell that goes away and its terminal send one SIGHUP each; timeout(1) signals its child and
/// then the group.
#[test]
fn two_signals_at_once_end_a_run_with_its_report() {
    let server = KneeServer::start(&[]);
    for (number, status) in [(libc::SIGHUP, 129), (libc::SIGTERM, 143)] {
        let [report, page] = ["twice.json", "twice.html"].map(TempPath::new);
        let url = server.url();
        let files = ["--json", report.str(), "--html", page.str()];
        let arguments = [&["run", &url, "-d", "60s"][..], &LOAD, &files].concat();
        let mut child = knee(&arguments).spawn().unwrap();
        wait_until_it_runs(&mut child);
        signal(&child, number);
        signal(&child, number);
        let ended = Ended::of(child);
        assert!(ended.status.is_some_and(|s| s == status || s == 3), "{ended:?}");
        assert_eq!(json(&report)["interrupted"], true);
        let page = std::fs::read_to_string(&page.0).unwrap();
        assert!(page.trim_end().ends_with("</html>"));
    }
}

#[test]
fn ignored_hang_up_stays_ignored() {
    let server = KneeServer::start(&[]);
    let report = TempPath::new("nohup.json");
    let url = server.url();
    let files = ["--json", report.str()];
    let arguments = [&["run", &url, "-d", "1s", "--warmup", "0"][..], &LOAD, &files].concat();
    let mut nohup = Command::new("sh");
    nohup.args(["-c", "trap '' HUP; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_knee")]);
    nohup.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = nohup.spawn().unwrap();
    wait_until_it_runs(&mut child);
    signal(&child, libc::SIGHUP);
    let ended = Ended::of(child);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert_eq!(json(&report)["interrupted"], false);
}

#[test]
fn services_end_in_order_at_a_hang_up() {
    for kind in ["http", "udp", "latency", "qotd"] {
        let server = KneeServer::of(&[kind, "--listen", "127.0.0.1:0", "--json", "-"]);
        let (rest, status) = server.end_by(libc::SIGHUP);
        assert_eq!(status, Some(0), "{kind}: {rest}");
        assert!(serde_json::from_str::<Value>(&rest).is_ok(), "{kind}: {rest}");
    }
    let observe = ["observe", "--port", "9", "--listen", "127.0.0.1:0"];
    let mut child = knee(&observe).spawn().unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    out.read_line(&mut String::new()).unwrap();
    signal(&child, libc::SIGHUP);
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("clients 0"), "{rest}");
    assert_eq!(Ended::of(child).status, Some(0));
}

/// The terminal is also standard output, where the report's text cannot go any more.
#[test]
fn closed_terminal_ends_the_run_with_its_files() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    for view in [&[][..], &["--no-tui"]] {
        let report = TempPath::new("closed-terminal.json");
        let always = ["run", &url, "-d", "60s", "-c", "1", "--no-save"];
        let arguments = [&always[..], &["--json", report.str()], view].concat();
        let on_terminal = OnTerminal::with_output(&arguments, (80, 24));
        on_terminal.wait_for("p50");
        let ended = on_terminal.hang_up();
        assert!(matches!(ended.status, Some(129 | 3)), "{view:?}: {ended:?}");
        assert_eq!(json(&report)["interrupted"], true, "{view:?}");
    }
}
