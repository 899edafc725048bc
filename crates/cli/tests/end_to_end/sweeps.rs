//! Sweeps of a station whose answer is known: 3 workers of 5 ms each serve 600/s, and three users
//! keep them busy.

use crate::support::{KneeServer, run, until_valid};
use serde_json::Value;

fn sweep(options: &[&str]) -> Value {
    let (report, ()) = until_valid(|| {
        let server = KneeServer::start(&["--workers", "3", "--service", "fixed(5ms)"]);
        let url = server.url();
        let time = ["-d", "500ms", "--warmup", "100ms", "--json", "-", "--quiet"];
        (run(&[&["sweep", &url][..], &time, options].concat()), ())
    });
    let trials = report["trials"].as_array().unwrap();
    assert!(trials.len() <= 14, "{} trials", trials.len());
    for trial in trials {
        let outcomes = trial["outcomes"].as_object().unwrap();
        let sum: u64 = outcomes.values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(trial["attempted"], sum, "{}", trial["label"]);
    }
    report["conclusion"].clone()
}

fn near_600(rate: &Value) {
    let per_s = rate.as_f64().unwrap_or_else(|| panic!("{rate}"));
    assert!((540.0..=660.0).contains(&per_s), "{per_s}");
}

#[test]
fn users_find_the_maximum_the_knee_and_what_a_bound_permits() {
    let conclusion = sweep(&["--bound", "p90=12ms"]);
    near_600(&conclusion["max_throughput_per_s"]);
    let knee = conclusion["knee_vusers"].as_f64().unwrap();
    assert!((2.0..=5.0).contains(&knee), "{conclusion:#}");
    // Seven users wait for 7/3 services, which is less than 12 ms; eight do not.
    let best = &conclusion["best_within_bound"];
    near_600(&best["throughput_per_s"]);
    assert!(best["p90_ns"].as_u64().unwrap() <= 12_000_000, "{best:#}");
}

#[test]
fn rates_find_the_most_that_is_served() {
    let conclusion = sweep(&["--axis", "rate"]);
    near_600(&conclusion["knee_rate_per_s"]);
}
