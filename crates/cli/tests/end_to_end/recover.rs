//! A service after an overload: a retry storm, and what ends it.

use crate::support::{KneeServer, run, until_valid};
use serde_json::Value;

/// One worker that serves 250/s.
const STATION: [&str; 4] = ["--workers", "1", "--service", "fixed(4ms)"];

/// Users who give up after 200 ms, at 100/s, and four times that for 2 s.
fn recovers(server: &[&str], users: &[&str]) -> Value {
    let (report, ()) = until_valid(|| {
        let server = KneeServer::start(&[&STATION, server].concat());
        let url = server.url();
        let load = ["recover", &url, "-R", "100", "--trigger", "4x", "--timeout", "200ms"];
        let times = ["--warmup", "500ms", "--before", "2s", "--for", "2s", "--after", "6s"];
        let grain = ["--interval", "250ms", "--json", "-"];
        (run(&[&load[..], &times, &grain, users].concat()), ())
    });
    report
}

#[test]
fn retry_storm_stays_and_budget_or_bounded_queue_end_it() {
    let retries = ["--retries", "3", "--backoff", "exp(50ms,200ms)"];
    let budget = [&retries[..], &["--retry-budget", "10%"]].concat();
    let cases = [
        ("stuck", &[][..], &retries[..]),
        ("recovered", &[], &budget),
        ("recovered", &["--max-queue", "20"], &retries),
    ];
    for (verdict, server, users) in cases {
        let report = recovers(server, users);
        let c = &report["conclusion"];
        assert_eq!(c["verdict"], verdict, "{users:?}: {c:#}");
        assert_eq!(c["recovery_ns"].is_u64(), verdict == "recovered", "{c:#}");
        let amplification = c["amplification"].as_f64().unwrap();
        assert_eq!(amplification > 3.0, verdict == "stuck", "{c:#}");
        let findings = report["findings"].as_array().unwrap();
        let is_said = findings.iter().any(|f| f["code"] == "metastable_failure");
        assert_eq!(is_said, verdict == "stuck", "{findings:#?}");
    }
}

#[test]
fn base_load_beyond_capacity_ends_with_1() {
    let server = KneeServer::start(&STATION);
    let url = server.url();
    let load = ["recover", &url, "-R", "400", "--trigger", "2x", "--timeout", "100ms"];
    let times = ["--warmup", "200ms", "--before", "1s", "--for", "500ms", "--after", "1s"];
    let ended = run(&[&load[..], &times].concat());
    assert!(matches!(ended.status, Some(1 | 3)), "{ended:?}");
    assert!(ended.stdout.contains("base load"), "{ended:?}");
}
