//! Runs on a machine that may be busy with other things.

use super::process::{Ended, run};
use serde_json::Value;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, PoisonError};

/// Runs it to its end. A busy machine may make it invalid, and all responses may be errors, but
/// what it counts stands.
pub fn measured(arguments: &[&str]) -> Value {
    let ended = run(&[arguments, &["--json", "-", "--quiet"]].concat());
    assert!(matches!(ended.status, Some(0 | 1 | 3)), "{arguments:?}: {ended:?}");
    ended.json()
}

/// Attempts that must do on a machine that is busy with other things.
const ATTEMPTS: u32 = 12;

/// Held by whoever needs a valid run: tests that do would only disturb each other.
static TURN: Mutex<()> = Mutex::new(());

/// Attempts again where the machine was too busy for a valid run. `attempt` ends with the report as
/// JSON on standard output, and what else the test is about.
pub fn until_valid<T>(attempt: impl FnMut() -> (Ended, T)) -> (Value, T) {
    let (ended, more) = until_it_ends_with(0, attempt);
    (ended.json(), more)
}

/// Attempts again where the machine was too busy for a valid run; a valid one ends with this code.
pub fn until_it_ends_with<T>(code: i32, mut attempt: impl FnMut() -> (Ended, T)) -> (Ended, T) {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let mut invalid = Vec::new();
    for _ in 0..ATTEMPTS {
        let (ended, more) = attempt();
        match ended.status {
            Some(status) if status == code => return (ended, more),
            Some(3) => invalid.push(ended.stderr),
            _ => panic!("{ended:?}"),
        }
    }
    panic!("invalid {ATTEMPTS} times: {invalid:#?}");
}

/// Attempts again where `check` panics and the machine was too busy for all trials to be valid, and
/// once in any case: the first attempt is made beside other tests. The report of the last attempt.
pub fn unless_disturbed(mut attempt: impl FnMut() -> Ended, check: impl Fn(&Value)) -> Value {
    let mut turn = None;
    for left in (0..ATTEMPTS).rev() {
        let ended = attempt();
        assert!(matches!(ended.status, Some(0 | 1 | 3)), "{ended:?}");
        let report = ended.json();
        let Err(failure) = catch_unwind(AssertUnwindSafe(|| check(&report))) else {
            return report;
        };
        let trials = report["trials"].as_array().unwrap();
        let is_disturbed = [&report].into_iter().chain(trials).any(|of| of["verdict"] == "invalid");
        if left == 0 || (turn.is_some() && !is_disturbed) {
            resume_unwind(failure);
        }
        turn.get_or_insert_with(|| TURN.lock().unwrap_or_else(PoisonError::into_inner));
    }
    unreachable!("the last attempt returns or panics");
}

/// A figure of `response_time_ns` or its like; the upper end where a busy host left a range of it.
pub fn figure(times: &Value, name: &str) -> Option<u64> {
    times[name].as_u64().or(times["ranges"][name]["at_most"].as_u64())
}

/// The text of a kept run as `knee report` of its file shows it: the file has no number in a history.
pub fn as_of_a_file(shown: &str) -> String {
    let mut parts = shown.split("knee history show ");
    let first = parts.next().unwrap_or_default().to_owned();
    let rest = parts.map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start());
    first + &rest.collect::<String>()
}

/// Which of the two backends this machine permits.
pub fn backends(url: &str) -> Vec<&'static str> {
    let permits = |backend: &&str| {
        let ended = run(&["run", url, "-n", "1", "--backend", backend, "--quiet"]);
        let refused = ended.stderr.contains("io_uring") && !matches!(ended.status, Some(0 | 3));
        if refused {
            println!("skipped: no io_uring here: {}", ended.stderr.trim());
        }
        !refused
    };
    ["epoll", "io_uring"].into_iter().filter(permits).collect()
}
