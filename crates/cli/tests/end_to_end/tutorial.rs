//! The tutorial's own commands, from its first to its last.

use crate::support::{Ended, KneeServer, TempPath, knee, signal};
use std::process::Command;
use std::time::Duration;

const PAGE: &str = include_str!("../../../../docs/src/tutorial.md");

/// The server that the page starts.
const SERVER: &str = "http://127.0.0.1:8080/";

/// The words of each command of the page behind `knee`.
fn commands() -> Vec<Vec<String>> {
    let lines = PAGE.lines().filter_map(|line| line.strip_prefix("$ knee "));
    lines.map(words).collect()
}

/// The words of a command, in which a shell would only take quotes away.
fn words(command: &str) -> Vec<String> {
    let words = command.split(' ');
    words.map(|word| word.trim_matches('\'').to_owned()).collect()
}

/// Suspends and continues it, as Ctrl-Z and `fg` do, once its load has begun.
fn suspended(mut command: Command) -> Ended {
    let child = command.spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(1));
    signal(&child, libc::SIGCONT);
    Ended::of(child)
}

#[test]
fn every_command_of_the_tutorial_works() {
    let mut commands = commands().into_iter();
    let serve = commands.next().expect("a server");
    assert_eq!(serve[..2], ["serve", "http"]);
    let serve = serve.iter().skip(1).map(String::as_str);
    let serve: Vec<&str> = serve.chain(["--listen", "127.0.0.1:0"]).collect();
    let server = KneeServer::of(&serve);
    let history = TempPath::new("tutorial-state");
    let mut kinds = Vec::new();
    for words in commands {
        let line = words.join(" ");
        let is_suspended = line.contains("--rate 1000");
        let words: Vec<String> = words.iter().map(|w| w.replace(SERVER, &server.url())).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut command = knee(&words);
        command.env("XDG_STATE_HOME", &history.0);
        command.env("XDG_DATA_HOME", &history.0);
        let ended =
            if is_suspended { suspended(command) } else { Ended::of(command.spawn().unwrap()) };
        let text = &ended.stdout;
        // A busy machine may make a measurement INVALID, or cross a threshold.
        let (statuses, expected): (&[i32], &[&str]) = match words[0] {
            "run" if is_suspended => (&[3], &["INVALID", "stall"]),
            "run" => (&[0, 1, 3], &["VALID", "response", "p50"]),
            "sweep" => (&[0, 3], &["VALID", "users", "throughput"]),
            "explain" => (&[0], &words[1..]),
            "history" => (&[0], &["sweep", "run"]),
            "compare" => (&[0, 1, 3], &["throughput"]),
            other => panic!("knee {other} is not expected"),
        };
        assert!(ended.status.is_some_and(|s| statuses.contains(&s)), "{line}: {ended:?}");
        for part in expected {
            assert!(text.contains(part), "{line}: no {part}: {text}");
        }
        kinds.push(words[0].to_owned());
    }
    assert_eq!(kinds.first().map(String::as_str), Some("run"));
    assert_eq!(kinds.last().map(String::as_str), Some("compare"));
}
