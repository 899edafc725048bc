//! Sweeps of a station whose answer is known: 3 workers of 5 ms each serve 600/s, and three users
//! keep them busy.

use crate::support::{KneeServer, run, until_valid};
use serde_json::Value;

fn sweep(options: &[&str]) -> Value {
    sweep_of(&["--workers", "3", "--service", "fixed(5ms)"], options)
}

fn sweep_of(server: &[&str], options: &[&str]) -> Value {
    let (report, ()) = until_valid(|| {
        let server = KneeServer::start(server);
        let url = server.url();
        let time = ["-d", "500ms", "--warmup", "100ms", "--json", "-", "--quiet"];
        (run(&[&["sweep", &url][..], &time, options].concat()), ())
    });
    let trials = report["trials"].as_array().unwrap();
    // Short trials of rates are more.
    let most = if options.contains(&"rate") { 56 } else { 14 };
    assert!(trials.len() <= most, "{} trials", trials.len());
    for trial in trials {
        let outcomes = trial["outcomes"].as_object().unwrap();
        let sum: u64 = outcomes.values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(trial["attempted"], sum, "{}", trial["label"]);
    }
    report["conclusion"].clone()
}

/// A host that is stalled in a trial makes a slower server of this one: not each time.
fn sweep_that_finds(options: &[&str], is_found: impl Fn(&Value) -> bool) {
    let mut seen = Vec::new();
    for _ in 0..4 {
        let conclusion = sweep(options);
        if is_found(&conclusion) {
            return;
        }
        seen.push(conclusion);
    }
    panic!("{seen:#?}");
}

fn is_near_600(rate: &Value) -> bool {
    rate.as_f64().is_some_and(|r| (540.0..=660.0).contains(&r))
}

#[test]
fn users_find_the_maximum_the_knee_and_what_a_bound_permits() {
    sweep_that_finds(&["--bound", "p90=12ms"], |conclusion| {
        // Seven users wait for 7/3 services, which is less than 12 ms; eight do not.
        let best = &conclusion["best_within_bound"];
        let knee = conclusion["knee_vusers"].as_f64();
        is_near_600(&conclusion["max_throughput_per_s"])
            && knee.is_some_and(|knee| (2.0..=5.0).contains(&knee))
            && is_near_600(&best["throughput_per_s"])
            && best["p90_ns"].as_u64().unwrap() <= 12_000_000
    });
}

#[test]
fn rates_find_the_most_that_is_served() {
    sweep_that_finds(&["--axis", "rate"], |conclusion| is_near_600(&conclusion["knee_rate_per_s"]));
}

#[test]
fn rates_never_go_down_for_undecided_trials() {
    let server = ["--workers", "4", "--service", "fixed(1ms)"];
    let mut seen = Vec::new();
    for _ in 0..4 {
        let conclusion = sweep_of(&server, &["--axis", "rate", "--bound", "p90=50ms"]);
        let rate = conclusion["knee_rate_per_s"].as_f64();
        let goals = conclusion["goals"].as_array().unwrap();
        assert_eq!(goals.len(), 2, "{conclusion:#}");
        let levels = conclusion["levels"].as_array().unwrap();
        let lowest = levels[0]["level"]["rate_per_s"].as_f64().unwrap_or(100.0);
        if lowest >= 100.0 && rate.is_some_and(|r| (3_400.0..=4_400.0).contains(&r)) {
            return;
        }
        seen.push(conclusion);
    }
    panic!("{seen:#?}");
}
