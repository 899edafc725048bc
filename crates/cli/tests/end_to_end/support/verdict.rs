//! Runs on a machine that may be busy with other things.

use super::process::{Ended, run};
use serde_json::Value;

/// Makes a run of it to its end; a busy machine may make it invalid, but what it counts stands.
pub fn measured(arguments: &[&str]) -> Value {
    let ended = run(&[arguments, &["--json", "-", "--quiet"]].concat());
    assert!(
        matches!(ended.status, Some(0 | 3)),
        "{arguments:?}: {ended:?}"
    );
    ended.json()
}

/// Attempts again where the machine was too busy for a valid run; three times must do. `attempt`
/// ends with the report as JSON on standard output, and what else the test is about.
pub fn until_valid<T>(mut attempt: impl FnMut() -> (Ended, T)) -> (Value, T) {
    let mut reasons = Vec::new();
    for _ in 0..3 {
        let (ended, more) = attempt();
        match ended.status {
            Some(0) => return (ended.json(), more),
            Some(3) => {
                let report = ended.json();
                let trials = report["trials"].as_array().unwrap();
                reasons.extend(trials.iter().map(|t| t["invalid_because"].to_string()));
            }
            _ => panic!("{ended:?}"),
        }
    }
    panic!("invalid three times: {reasons:#?}");
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
