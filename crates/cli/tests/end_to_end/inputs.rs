//! What comes from elsewhere: files without measure, lists without end, tokens.

use crate::support::{Ended, KneeServer, TempPath, knee, run};
use std::fs::File;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Refused at once, in one line that says so.
#[track_caller]
fn refused(arguments: &[&str], why: &str) {
    let begun = Instant::now();
    let ended = run(arguments);
    let shown: Vec<&str> = arguments.iter().map(|a| &a[..a.len().min(60)]).collect();
    assert_eq!(ended.status, Some(2), "{shown:?}: {}", ended.stderr);
    assert_eq!(ended.stderr.lines().count(), 1, "{shown:?}: {}", ended.stderr);
    assert!(ended.stderr.contains(why), "{shown:?}: {}", ended.stderr);
    assert!(ended.stderr.len() < 400, "{shown:?}: {}", ended.stderr);
    assert!(begun.elapsed() < Duration::from_secs(20), "{shown:?}");
}

/// A FIFO without a writer: to open it waits for one.
fn fifo(name: &str) -> TempPath {
    let path = TempPath::new(name);
    let made = Command::new("mkfifo").arg(&path.0).status().unwrap();
    assert!(made.success());
    path
}

/// Every way to name a file that is read.
fn readers(file: &str) -> Vec<Vec<String>> {
    let url = "http://127.0.0.1:9/";
    let body = format!("@{file}");
    let trace = format!("trace({file})");
    [
        &["report", file][..],
        &["compare", file, file],
        &["analyze", "sweep", file],
        &["analyze", "latency", file],
        &["run", "--targets", file],
        &["run", url, "--body", &body],
        &["run", url, "--arrival", &trace],
        &["udp", "--wait", &trace],
        &["run", url, "--form", &format!("f={body}")],
        &["import", "har", file],
        &["import", "openapi", file],
        &["import", "jmeter", file],
        &["import", "curl", "--", "curl", url, "-d", &body],
        &["scenario", "check", file],
        &["run", "https://127.0.0.1:9/", "--cacert", file],
        &["run", "https://127.0.0.1:9/", "--cert", file, "--key", file],
        &["serve", "http", "--tls", "--cert", file, "--key", file],
        &["serve", "udp", "--token-file", file],
        &["agent", "--nats", "nats://127.0.0.1:9", "--nats-creds", file],
        &["agent", "--nats", "nats://127.0.0.1:9", "--nats-password-file", file],
    ]
    .iter()
    .map(|arguments| arguments.iter().map(|a| (*a).to_owned()).collect())
    .collect()
}

#[test]
fn files_without_measure_are_refused_at_once() {
    let huge = TempPath::new("huge");
    // It takes no room on the disk.
    File::create(&huge.0).unwrap().set_len(1 << 30).unwrap();
    for (file, why) in [(huge.str(), "more than the "), ("/dev/zero", "is a device")] {
        for arguments in readers(file) {
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            refused(&arguments, why);
        }
    }
    let lines = TempPath::new("lines.jsonl");
    File::create(&lines.0).unwrap().set_len(1 << 30).unwrap();
    refused(&["run", lines.str()], "line 1: has more than 16 MiB");
}

#[test]
fn fifos_are_refused_at_once_with_what_to_do() {
    let fifo = fifo("input-fifo");
    for arguments in readers(fifo.str()) {
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        refused(&arguments, "is a pipe: expected a regular file; ");
    }
    let mut history = knee(&["history"]);
    let ended = Ended::of(history.env("KNEE_HISTORY", &fifo.0).spawn().unwrap());
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("is a pipe"), "{ended:?}");
    let mut system = knee(&["run", "https://127.0.0.1:9/"]);
    let ended = Ended::of(system.env("SSL_CERT_FILE", &fifo.0).spawn().unwrap());
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("is a pipe"), "{ended:?}");
}

#[test]
fn files_that_a_scenario_names_are_no_pipes() {
    let fifo = fifo("scenario-fifo");
    let name = fifo.0.file_name().unwrap().to_str().unwrap();
    let body = format!("{{post: /, body_file: '{name}'}}");
    let plain = format!("target: http://h\nsessions: {{s: {{steps: [{body}]}}}}\n");
    let scenario = TempPath::with("fifo-body.yaml", &plain);
    refused(&["scenario", "check", scenario.str()], "is a pipe: expected a regular file; ");
}

/// Its pipe is refused, and the same bytes on standard input are read.
#[test]
fn process_substitution_is_refused_and_a_dash_is_not() {
    let har = r#"{"log": {"entries": [{"request": {"method": "GET", "url": "http://h/a"}}]}}"#;
    let file = TempPath::with("substituted.har", har);
    let knee = env!("CARGO_BIN_EXE_knee");
    let through_bash = |line: &str| {
        let mut bash = Command::new("bash");
        Ended::from(bash.args(["-c", line, knee, file.str()]).output().unwrap())
    };
    let ended = through_bash("\"$0\" import har <(cat \"$1\")");
    assert_eq!(ended.status, Some(2), "{ended:?}");
    let advice = "for a pipe give '-' and connect it to standard input\n";
    assert!(ended.stderr.ends_with(advice), "{ended:?}");
    let ended = through_bash("cat \"$1\" | \"$0\" import har -");
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stdout.contains("/a"), "{ended:?}");
}

#[test]
fn a_stream_without_end_is_given_up() {
    let zeros = File::open("/dev/zero").unwrap();
    let child = knee(&["report", "-"]).stdin(Stdio::from(zeros)).spawn();
    let ended = Ended::of(child.unwrap());
    assert_eq!(ended.status, Some(2), "{ended:?}");
    let expected = "error: -: is more than the 256 MiB that are read at most\n";
    assert_eq!(ended.stderr, expected);
}

#[test]
fn lists_without_measure_are_refused_with_the_limit() {
    let url = "http://127.0.0.1:9/";
    let listed = |one: &str| vec![one; 30_000].join(",");
    let (numbers, scenarios) = (listed("7"), listed("1/1"));
    let many = "30000 levels are too many: give at most 1000";
    refused(&["sweep", url, "--vusers", &numbers], many);
    refused(&["sweep", url, "--rates", &numbers], many);
    refused(&["overload", url, "--simple", &numbers], many);
    refused(&["overload", url, "--descriptors", &numbers], many);
    let many = "30000 scenarios are too many: give at most 100";
    refused(&["latency", "--scenarios", &scenarios], many);
}

/// One short scenario against this service.
fn latency(service: &KneeServer, options: &[&str], variable: Option<&str>) -> Ended {
    let always = ["--scenarios", "1/0", "-d", "200ms", "--idle", "0", "--no-save", "--json", "-"];
    let arguments = [&["latency", &service.address], options, &always].concat();
    let mut command = knee(&arguments);
    if let Some(token) = variable {
        command.env("KNEE_TOKEN", token);
    }
    Ended::of(command.spawn().unwrap())
}

#[test]
fn tokens_come_from_files_and_the_environment() {
    let file = TempPath::with("token", "a secret\n");
    let service =
        KneeServer::of(&["latency", "--listen", "127.0.0.1:0", "--token-file", file.str()]);
    for (options, variable) in [
        (&["--token-file", file.str()][..], None),
        (&["--token", "a secret"], None),
        (&[], Some("a secret")),
        // An option says it more exactly than the environment.
        (&["--token", "a secret"], Some("another")),
    ] {
        let ended = latency(&service, options, variable);
        assert!(matches!(ended.status, Some(0 | 3)), "{options:?} {variable:?}: {ended:?}");
        assert!(!ended.stdout.contains("a secret"), "{options:?}");
    }
    for (options, variable) in [(&[][..], None), (&[], Some("another"))] {
        let ended = latency(&service, options, variable);
        assert_eq!(ended.status, Some(4), "{options:?} {variable:?}: {ended:?}");
        assert!(ended.stderr.contains("the token is not the service's"), "{ended:?}");
    }
}

#[test]
fn a_token_that_is_none_is_told() {
    let empty = TempPath::with("empty", "\n");
    let good = TempPath::with("good", "t");
    let observe = ["observe", "--port", "80", "--listen", "127.0.0.1:0"];
    let url = "http://127.0.0.1:9/";
    for command in [
        &["latency", "127.0.0.1:9"][..],
        &["udp", "127.0.0.1:9"],
        &["serve", "latency"],
        &["serve", "udp"],
        &observe,
    ] {
        let with = |options: &[&'static str], file: &str, why: &str| {
            let file = [file];
            let options = [command, options, &file].concat();
            refused(&options, why);
        };
        with(&["--token-file"], empty.str(), "--token-file: ");
        with(&["--token-file"], empty.str(), "is empty");
        with(&["--token-file"], "/nonexistent", "/nonexistent: cannot be read");
        with(&["--token", "x", "--token-file"], good.str(), "exclude each other");
        with(&["--token"], "", "--token: is empty");
    }
    let run = ["run", url, "--observe", "127.0.0.1:9", "--observe-token-file", empty.str()];
    refused(&run, "--observe-token-file: ");
}
