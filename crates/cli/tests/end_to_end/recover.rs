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

/// 40 requests per second, of four attempts each, are 64 % of what is served: the queue drains.
#[test]
fn queue_that_drains_is_not_stuck_after_a_short_look() {
    let (report, ()) = until_valid(|| {
        let server = KneeServer::start(&STATION);
        let url = server.url();
        let load = ["recover", &url, "-R", "40", "--trigger", "4x", "--timeout", "200ms"];
        let retries = ["--retries", "3", "--backoff", "exp(50ms,200ms)", "--json", "-"];
        let times = ["--warmup", "500ms", "--before", "3s", "--for", "3s", "--after", "1s"];
        (run(&[&load[..], &retries, &times].concat()), ())
    });
    let c = &report["conclusion"];
    // On a host that freezes it may be gone before its fall is certain.
    let is_back = c["verdict"] == "recovered";
    assert!(is_back || c["verdict"] == "recovering", "{c:#}");
    assert_eq!(c["queue"]["back_in_ns"].is_u64(), !is_back, "{c:#}");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().all(|f| f["code"] != "metastable_failure"), "{findings:#?}");
    let sentinels = report["trials"][0]["requests"]["sentinels"].as_array().unwrap();
    assert!(sentinels.len() >= 5, "{sentinels:#?}");
}

/// What was dropped is stored only for clients who are still there, and they are not.
#[test]
fn cold_cache_stays_cold_and_a_longer_timeout_warms_it() {
    let cache = ["--cache", "hit=1ms,miss=40ms,keys=100,ttl=60s"];
    for (timeout, verdict) in [("200ms", "stuck"), ("20s", "recovered")] {
        let (report, ()) = until_valid(|| {
            let server = KneeServer::start(&cache);
            let url = server.url();
            let place = url.trim_start_matches("http://").trim_end_matches('/').replace(':', "/");
            let drop = format!(
                "bash -c 'exec 3<>/dev/tcp/{place}; read -r answer <&3 & printf \"POST /drop-cache \
                 HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n\" >&3; wait'"
            );
            let load = ["recover", &url, "-R", "60", "--trigger-exec", &drop];
            let times = ["--warmup", "500ms", "--before", "2s", "--for", "1s", "--after", "9s"];
            let grain = ["--interval", "250ms", "--json", "-", "--timeout", timeout];
            (run(&[&load[..], &times, &grain].concat()), ())
        });
        let c = &report["conclusion"];
        assert_eq!(c["verdict"], verdict, "{timeout}: {c:#}");
        let failed = c["failed_requests"].as_u64().unwrap();
        assert_eq!(failed > 100, verdict == "stuck", "{c:#}");
    }
}

#[test]
fn smallest_trigger_is_found_and_the_load_goes_up_and_down() {
    let (report, ()) = until_valid(|| {
        let server = KneeServer::start(&[&STATION[..], &["--max-queue", "60"]].concat());
        let url = server.url();
        let load = ["recover", &url, "-R", "100", "--trigger-max", "4x", "--timeout", "100ms"];
        let retries = ["--retries", "3", "--backoff", "exp(20ms,100ms)", "--hysteresis", "1s"];
        let times = ["--warmup", "300ms", "--before", "1s", "--for", "1s", "--after", "2s"];
        let rest = ["--rest", "1s", "--interval", "200ms", "--json", "-"];
        (run(&[&load[..], &retries, &times, &rest].concat()), ())
    });
    let c = &report["conclusion"];
    // A queue of 60 takes 240 ms, which is more than the timeout: retries keep it full.
    let (smallest, shortest) = (&c["smallest_trigger"], &c["shortest_trigger"]);
    let rate = smallest["rate_per_s"].as_f64().unwrap();
    assert!((200.0..=400.0).contains(&rate), "{c:#}");
    assert!(shortest["duration_ns"].as_u64() <= smallest["duration_ns"].as_u64(), "{c:#}");
    let steps = c["hysteresis"].as_array().unwrap();
    assert_eq!(steps.len(), 8, "{c:#}");
    assert!(c["hysteresis_percent"].as_f64().unwrap() > 5.0, "{c:#}");
}

#[test]
fn load_that_stays_is_served_once_there_is_room() {
    let (report, ()) = until_valid(|| {
        let server = KneeServer::start(&STATION);
        let url = server.url();
        let load = ["recover", &url, "-R", "50", "--trigger", "150", "--for", "forever"];
        let times = ["--warmup", "300ms", "--before", "2s", "--after", "3s", "--json", "-"];
        (run(&[&load[..], &times].concat()), ())
    });
    let c = &report["conclusion"];
    assert_eq!((&c["verdict"], &c["trigger_stays"]), (&"recovered".into(), &true.into()), "{c:#}");
}

#[test]
fn command_that_fails_ends_with_a_line() {
    let server = KneeServer::start(&STATION);
    let url = server.url();
    let load = ["recover", &url, "-R", "50", "--trigger-exec", "echo no such cache >&2; exit 3"];
    let times = ["--warmup", "100ms", "--before", "500ms", "--for", "1s", "--after", "1s"];
    let ended = run(&[&load[..], &times].concat());
    assert_eq!(ended.status, Some(4), "{ended:?}");
    assert!(ended.stderr.contains("exit status: 3: no such cache"), "{ended:?}");
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
