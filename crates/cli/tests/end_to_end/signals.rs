//! SIGINT and SIGTERM in every phase of every command: it ends soon, with the report of what was
//! measured, and leaves no process.

use crate::support::{Ended, TempPath, knee, signal};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// Far beyond the second that an end may take, and far below what is waited for.
const SOON: Duration = Duration::from_secs(25);

/// Answers every request but those for `/never`, and says what it was asked for; `connected` for a
/// connection.
fn server() -> (SocketAddr, Receiver<String>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (seen, sees) = mpsc::channel();
    thread::spawn(move || {
        for connection in listener.incoming().map_while(Result::ok) {
            let seen = seen.clone();
            thread::spawn(move || converse(&connection, &seen));
        }
    });
    (address, sees)
}

fn converse(mut connection: &TcpStream, seen: &Sender<String>) {
    // Nobody listens after what was waited for.
    let _ = seen.send("connected".to_owned());
    let mut lines = BufReader::new(connection).lines();
    while let Some(Ok(asked)) = lines.next() {
        let _ = seen.send(asked.clone());
        while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
        if asked.contains("/never") {
            continue;
        }
        if connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").is_err() {
            return;
        }
        thread::sleep(Duration::from_millis(1));
    }
}

fn wait_for(sees: &Receiver<String>, what: &str) {
    while !sees.recv_timeout(Duration::from_secs(60)).expect(what).contains(what) {}
}

/// Has it end by one signal, or a second one where it takes longer.
fn ends_by(child: Child, number: libc::c_int, twice: bool) -> Ended {
    signal(&child, number);
    if twice {
        // Two at once would be one wish.
        thread::sleep(Duration::from_millis(150));
        // SAFETY: kill(2) has no preconditions; the child was not waited for, so the pid is its.
        unsafe { libc::kill(child.id().cast_signed(), number) };
    }
    let begin = Instant::now();
    let ended = Ended::within(SOON, child);
    assert!(begin.elapsed() < SOON);
    ended
}

/// A phase of a command: a name, its arguments, with `ADDRESS` for that of the server and `FILE` for
/// that of its scenario; the scenario; what the server sees of the phase.
type Phase = (&'static str, &'static str, &'static str, &'static str);

const PHASES: &[Phase] = &[
    ("before: handshake", "run https://ADDRESS/ --connect-timeout 60s", "", "connected"),
    ("before: version", "sweep https://ADDRESS/ --connect-timeout 60s", "", "connected"),
    ("before: reflection", "run grpc://ADDRESS/a.B/C -b {} --connect-timeout 60s", "", "connected"),
    ("before: observer", "run http://ADDRESS/ --observe ADDRESS", "", "\"service\""),
    ("before: service", "latency ADDRESS", "", "connected"),
    ("before: service", "udp ADDRESS", "", "connected"),
    ("before: fleet", "run http://ADDRESS/ --fleet nats://ADDRESS", "", "connected"),
    ("warm-up", "run http://ADDRESS/ -c 2 --warmup 60s", "", "GET / "),
    ("load", "run http://ADDRESS/ -c 2 -d 60s", "", "GET / "),
    ("load without an answer", "run http://ADDRESS/never -c 2 -d 60s --timeout 60s", "", "/never"),
    ("drain", "run http://ADDRESS/never -R 100 -d 20ms --warmup 0 --timeout 60s", "", "/never"),
    ("recovery", "recover http://ADDRESS/ -R 20 --before 60s --after 60s", "", "GET / "),
    ("overload", "overload http://ADDRESS/ --rate 50 -d 60s", "", "GET / "),
    ("levels", "sweep http://ADDRESS/ --vusers 1,2 -d 60s", "", "GET / "),
    (
        "setup",
        "run FILE -d 60s",
        "setup: [{get: /never}]\nsessions: {s: {steps: [{get: /}]}}",
        "/never",
    ),
    (
        "teardown",
        "run FILE -d 300ms -c 1 --timeout 60s",
        "teardown: [{get: /never}]\nsessions: {s: {steps: [{get: /}]}}",
        "/never",
    ),
    (
        "steps that take no time",
        "run FILE -d 60s -c 2",
        "sessions: {s: {steps: [{get: /}, {repeat: 1000000000, steps: [{when: a == b, steps: \
         [{get: /}]}]}]}}",
        "GET / ",
    ),
];

#[test]
fn every_phase_of_a_command_ends_soon() {
    for (phase, arguments, scenario, sign) in PHASES {
        for (number, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
            for twice in [false, true] {
                let (address, sees) = server();
                let file = TempPath::new("signals.yaml");
                fs::write(&file.0, format!("target: http://{address}\n{scenario}\n")).unwrap();
                let words = arguments.split(' ').map(|word| match word {
                    "FILE" => file.str().to_owned(),
                    word => word.replace("ADDRESS", &address.to_string()),
                });
                let words: Vec<String> = words.collect();
                let words: Vec<&str> = words.iter().map(String::as_str).collect();
                let command = [&words[..], &["--no-save", "--quiet"]].concat();
                let child = knee(&command).spawn().unwrap();
                wait_for(&sees, sign);
                let ended = ends_by(child, number, twice);
                // One whose operations all failed, and one whose setup was interrupted.
                let mut statuses = vec![Some(status), Some(1), Some(3), Some(4)];
                // All was measured before.
                statuses.extend((*phase == "teardown").then_some(Some(0)));
                assert!(statuses.contains(&ended.status), "{phase}, {twice}: {ended:?}");
                assert!(!ended.stderr.contains("reached"), "{phase}, {twice}: {ended:?}");
            }
        }
    }
}

/// Processes with this in their environment.
fn marked(mark: &str) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let is_marked = |entry: &fs::DirEntry| {
        let environment = fs::read(entry.path().join("environ")).unwrap_or_default();
        String::from_utf8_lossy(&environment).contains(mark)
    };
    all.filter(is_marked).map(|entry| entry.file_name().into_string().unwrap()).collect()
}

#[test]
fn demonstrations_leave_no_process_and_no_file() {
    for arguments in [&["demo"][..], &["fleet", "demo"]] {
        for (number, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
            for twice in [false, true] {
                let page = TempPath::new("signals.html");
                let mark = format!("KNEE_TEST_MARK=of-{}-{number}-{twice}", std::process::id());
                let (name, value) = mark.split_once('=').unwrap();
                let mut command = knee(&[arguments, &["--html", page.str()]].concat());
                let folder = TempPath::new("signals");
                fs::create_dir(&folder.0).unwrap();
                command.env("TMPDIR", folder.str());
                let mut child = command.env(name, value).spawn().unwrap();
                let out = child.stdout.take().unwrap();
                let mut lines = BufReader::new(out).lines().map_while(Result::ok);
                let started = lines
                    .by_ref()
                    .find(|line| line.starts_with("$ knee") && !line.contains("$ knee agent"));
                let rest = thread::spawn(move || lines.count());
                let Some(started) = started else {
                    let ended = Ended::of(child);
                    assert!(ended.stderr.contains("there is no nats-server"), "{ended:?}");
                    println!("skipped: {}", ended.stderr);
                    continue;
                };
                let ended = ends_by(child, number, twice);
                rest.join().unwrap();
                let statuses = [Some(status), Some(0), Some(3), Some(4)];
                assert!(statuses.contains(&ended.status), "{started}, {twice}: {ended:?}");
                let begin = Instant::now();
                while !marked(&mark).is_empty() {
                    assert!(begin.elapsed() < SOON, "{started}, {twice}: {:?}", marked(&mark));
                    thread::sleep(Duration::from_millis(20));
                }
                assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0, "{started}, {twice}");
            }
        }
    }
}
