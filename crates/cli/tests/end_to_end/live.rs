//! The live view on a terminal, and the figures of a running load over HTTP.

use crate::support::{Ended, KneeServer, OnTerminal, TempPath, knee, run, signal};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;

/// To the alternate screen, and back.
const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";

const LONG: [&str; 8] = ["--rate", "50", "-d", "60s", "--warmup", "0", "--interval", "200ms"];

fn long_run(url: &str, more: &[&str]) -> Vec<String> {
    let arguments = [&["run", url, "--json", "-"], &LONG[..], more].concat();
    arguments.into_iter().map(str::to_string).collect()
}

fn start(arguments: &[String], size: (u16, u16), env: &[(&str, &str)]) -> OnTerminal {
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    OnTerminal::start(&arguments, size, env)
}

/// After the way back there is nothing but plain lines, and that the cursor is to be seen.
fn ends_on_main_screen(ended: &Ended) -> bool {
    let after = ended.stderr.split_once(LEAVE).map(|(_, after)| after);
    after.is_some_and(|after| !after.replace("\u{1b}[?25h", "").contains('\u{1b}'))
}

#[test]
fn it_comes_up_and_whatever_ends_it_the_terminal_is_as_before() {
    let server = KneeServer::start(&[]);
    for end in ["q", "\u{3}", "SIGTERM"] {
        let mut on_terminal = start(&long_run(&server.url(), &[]), (80, 24), &[]);
        on_terminal.wait_for(ENTER);
        // After the first interval.
        on_terminal.wait_for("p50");
        // There is room for a second chart of response times.
        on_terminal.resize((110, 30));
        on_terminal.wait_for("• p50");
        on_terminal.press("?");
        on_terminal.wait_for("keys and signs");
        match end {
            "SIGTERM" => signal(&on_terminal.child, libc::SIGTERM),
            key => on_terminal.press(key),
        }
        let (ended, is_as_before) = on_terminal.end();
        assert!(is_as_before, "{end:?}");
        assert!(ends_on_main_screen(&ended), "{end:?}: {ended:?}");
        assert_eq!(ended.json()["interrupted"], true, "{end:?}");
        let status = match end {
            "q" => 0,
            "SIGTERM" => 143,
            _ => 130,
        };
        let is_right = ended.status.is_some_and(|s| s == status || s == 3);
        assert!(is_right, "{end:?}: {ended:?}");
        // The text does not follow: standard output is no terminal.
        assert!(ended.stderr.contains("VALID  "), "{end:?}: {ended:?}");
    }
}

/// As Alt and `[` or a slow link leave them.
#[test]
fn begun_key_sequences_hold_up_neither_keys_nor_signals() {
    let server = KneeServer::start(&[]);
    for begun in [&b"\x1b["[..], b"\x1bO", b"\x1b[1;", b"\xc3"] {
        for end in ["\u{3}", "SIGTERM"] {
            let mut on_terminal = start(&long_run(&server.url(), &[]), (80, 24), &[]);
            on_terminal.wait_for("p50");
            on_terminal.press(begun);
            match end {
                "SIGTERM" => signal(&on_terminal.child, libc::SIGTERM),
                key => on_terminal.press(key),
            }
            let (ended, is_as_before) = on_terminal.end();
            assert!(is_as_before && ends_on_main_screen(&ended), "{begun:?}: {ended:?}");
            assert_eq!(ended.json()["interrupted"], true, "{begun:?} {end:?}");
        }
    }
}

#[test]
fn a_second_ctrl_c_aborts_and_the_terminal_is_as_before() {
    let server = KneeServer::start(&[]);
    let mut on_terminal = start(&long_run(&server.url(), &[]), (80, 24), &[]);
    on_terminal.wait_for("p50");
    on_terminal.press("\u{3}\u{3}");
    let (ended, is_as_before) = on_terminal.end();
    assert_eq!(ended.status, Some(130), "{ended:?}");
    assert!(is_as_before && ends_on_main_screen(&ended), "{ended:?}");
    assert_eq!(ended.stdout, "");
}

#[test]
fn what_is_said_meanwhile_follows_on_the_main_screen() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let sweep = ["sweep", &url, "--vusers", "1,2", "-d", "300ms", "--warmup", "0"];
    let (ended, _) = OnTerminal::start(&sweep, (100, 30), &[]).end();
    let (screen, after) = ended.stderr.split_once(LEAVE).unwrap();
    assert!(screen.contains(ENTER), "{ended:?}");
    for label in ["vusers=1 ", "vusers=2 "] {
        assert!(after.contains(label), "{after:?}");
    }
    assert!(ended.stdout.contains("users"), "{ended:?}");
}

#[test]
fn where_it_is_not_wanted_or_does_not_fit_there_is_a_line() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let plain = long_run(&url, &[]);
    let no_tui = long_run(&url, &["--no-tui"]);
    for (arguments, size, term) in [
        (&no_tui, (80, 24), "xterm"),
        (&plain, (80, 24), "dumb"),
        (&plain, (80, 8), "xterm"),
        (&plain, (30, 24), "xterm"),
    ] {
        let mut on_terminal = start(arguments, size, &[("TERM", term)]);
        on_terminal.wait_for("\r\u{1b}[K");
        on_terminal.wait_for("rate=50/s");
        on_terminal.press("\u{3}");
        let (ended, is_as_before) = on_terminal.end();
        assert!(!ended.stderr.contains(ENTER), "{arguments:?} {size:?} {term}");
        assert!(is_as_before);
        // By the signal alone it would have ended without a word.
        let told = "\"interrupted\": true";
        assert!(ended.stdout.contains(told), "{ended:?}");
        // Of so few operations, or none, the result may be worse than interrupted.
        assert!(ended.status.is_some(), "{ended:?}");
    }
}

#[test]
fn with_quiet_or_without_a_terminal_nothing_is_shown() {
    let server = KneeServer::start(&[]);
    let url = server.url();
    let short = ["run", &url, "-n", "20", "--quiet"];
    let (ended, _) = OnTerminal::start(&short, (80, 24), &[]).end();
    assert_eq!(ended.stderr, "");
    assert_eq!(run(&short[..4]).stderr, "");
}

#[test]
fn colours_and_characters_are_as_the_environment_permits() {
    let server = KneeServer::start(&[]);
    let env = [("NO_COLOR", "1"), ("LC_ALL", "C")];
    let mut on_terminal = start(&long_run(&server.url(), &[]), (80, 24), &env);
    on_terminal.wait_for("p50");
    on_terminal.press("q");
    let (ended, _) = on_terminal.end();
    assert!(ended.stderr.is_ascii(), "{ended:?}");
    for color in ["\u{1b}[31m", "\u{1b}[36m", "\u{1b}[38;"] {
        assert!(!ended.stderr.contains(color), "{ended:?}");
    }
}

/// What a GET brings: head and body.
fn get(url: &str) -> (String, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (address, path) = rest.split_once('/').unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    write!(stream, "GET /{path} HTTP/1.1\r\nHost: {address}\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_string(), body.to_string())
}

fn sample(text: &str, name: &str) -> Option<f64> {
    let line = text.lines().find(|l| l.starts_with(name))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn the_running_figures_are_served_and_end_with_the_run() {
    let server = KneeServer::start(&[]);
    let arguments = long_run(&server.url(), &["--metrics", "127.0.0.1:0"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = knee(&arguments).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.as_mut().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("metrics: ").unwrap().to_string();
    let mut completed = 0.0;
    for _ in 0..600 {
        let (head, text) = get(&url);
        assert!(head.contains("application/openmetrics-text; version=1.0.0"), "{head}");
        assert!(text.ends_with("# EOF\n"), "{text}");
        completed = sample(&text, "knee_operations_completed_total{").unwrap_or(0.0);
        if completed > 0.0 {
            let count = sample(&text, "knee_response_time_seconds_count{");
            assert_eq!(count, Some(completed), "{text}");
            assert_eq!(sample(&text, "knee_rate_asked{"), Some(50.0));
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert!(completed > 0.0);
    signal(&child, libc::SIGINT);
    let ended = Ended::of(child);
    let report: Value = ended.json();
    assert!(report["trials"][0]["completed"].as_f64().unwrap() >= completed);
    let address = url.strip_prefix("http://").unwrap().split('/').next().unwrap();
    assert!(TcpStream::connect(address).is_err());
}

#[test]
fn steps_and_sessions_are_served_by_name() {
    let server = KneeServer::start(&["--app", "shop"]);
    let url = server.url();
    let target = url.trim_end_matches('/');
    let file = TempPath::with(
        "steps.yaml",
        &format!(
            "target: {target}\nsessions:\n  one:\n    steps:\n      \
             - {{get: /, name: front}}\n      \
             - {{get: /missing, name: lost, expect: {{status: 200}}}}\n  two:\n    steps:\n      \
             - {{get: /, name: front}}\n"
        ),
    );
    let arguments = long_run(file.str(), &["--metrics", "127.0.0.1:0"]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut child = knee(&arguments).spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.as_mut().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("metrics: ").unwrap().to_string();
    let of = |name: &str, of: &str| format!("{name}{{trial=\"1\",label=\"rate=50/s\",{of}}}");
    let mut text = String::new();
    for _ in 0..600 {
        text = get(&url).1;
        let value = |name, label| sample(&text, &of(name, label)).unwrap_or(0.0);
        if value("knee_sessions_completed_total", "session=\"two\"") > 0.0
            && value("knee_sessions_failed_total", "session=\"one\"") > 0.0
        {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    signal(&child, libc::SIGINT);
    let ended = Ended::of(child);
    let value = |name, label| {
        let value = sample(&text, &of(name, label));
        value.unwrap_or_else(|| panic!("{name} {label}: {text}\n{ended:?}"))
    };
    let lost = "step=\"one: lost\"";
    let failed = value("knee_step_operations_failed_total", lost);
    assert!(failed > 0.0, "{text}");
    assert_eq!(value("knee_step_operations_ended_total", lost), failed);
    assert_eq!(value("knee_step_response_time_seconds_count", lost), failed, "{text}");
    let [one, two] = ["session=\"one\"", "session=\"two\""];
    assert_eq!(value("knee_sessions_completed_total", one), 0.0);
    assert_eq!(
        value("knee_sessions_completed_total", two),
        value("knee_session_time_seconds_count", two)
    );
}

#[test]
fn unusable_listen_address_is_refused_before_any_load() {
    let server = KneeServer::start(&[]);
    for address in [server.address.as_str(), "7009", "localhost", "192.0.2.1:7009"] {
        let ended = run(&["run", &server.url(), "-n", "1", "--metrics", address]);
        assert_eq!(ended.status, Some(2), "{ended:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
        assert!(ended.stderr.starts_with("error: --metrics: "), "{ended:?}");
    }
    assert_eq!(server.served()["requests"].as_u64(), Some(0));
}
