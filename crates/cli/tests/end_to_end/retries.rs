//! Users who try again: requests apart from attempts.

use crate::support::{KneeServer, TempPath, measured, run_load, unless_disturbed};

/// Each request is answered with 503 by chance; a retry mends most.
#[test]
fn retries_make_good_what_failed_and_are_counted_as_load() {
    let server = KneeServer::start(&["--fault", "error(0.5,503)"]);
    let url = server.url();
    for load in [&["-R", "400", "-d", "1s", "--warmup", "0"][..], &["-n", "200", "-c", "4"]] {
        let users = ["--retries", "5", "--backoff", "1ms"];
        let attempt = || run_load(&url, &[&users[..], load].concat());
        unless_disturbed(attempt, |report| {
            let trial = &report["trials"][0];
            let requests = &trial["requests"];
            let of = |key: &str| requests[key].as_u64().unwrap();
            let attempts = of("attempted") as f64 / of("offered") as f64;
            assert!((1.6..2.4).contains(&attempts), "{attempts}: {requests:#}");
            assert!(of("good") as f64 > 0.9 * of("offered") as f64, "{requests:#}");
            assert!(of("good") + of("failed") + of("unfinished") == of("offered"), "{requests:#}");
            assert_eq!(trial["outcomes"]["ok"], of("good"), "{:#}", trial["outcomes"]);
        });
    }
    let served = server.served();
    assert!(served["requests"].as_u64().unwrap() > 800, "{served:#}");
}

#[test]
fn budget_bounds_retries_and_other_causes_get_none() {
    let server = KneeServer::start(&["--fault", "error(1,503)"]);
    let url = server.url();
    let users = ["run", &url, "-R", "500", "-d", "1s", "--warmup", "0", "--retries", "3"];
    for (more, most) in [(["--retry-budget", "10%"], 1.1), (["--retry-on", "timeout"], 1.0)] {
        let report = measured(&[&users[..], &["--backoff", "1ms"], &more].concat());
        let requests = &report["trials"][0]["requests"];
        let amplification = requests["amplification"].as_f64().unwrap();
        assert!(amplification <= most, "{requests:#}");
        let over_budget = requests["over_budget"].as_u64().unwrap();
        assert_eq!(over_budget > 0, most > 1.0, "{requests:#}");
        assert_eq!(requests["good"], 0, "{requests:#}");
    }
}

/// Every other request fails: with retries hardly any session does.
#[test]
fn users_of_a_scenario_try_a_step_again() {
    let server = KneeServer::start(&["--fault", "error(0.5,503)"]);
    let file = TempPath::new("two.yaml");
    let url = server.url();
    let text =
        format!("target: {url}\nsessions: {{user: {{steps: [{{get: /a}}, {{get: /b}}]}}}}\n");
    std::fs::write(&file.0, text).unwrap();
    for load in [&["-n", "200", "--vusers", "4"][..], &["-R", "200", "-d", "1s", "--warmup", "0"]] {
        let users = ["--retries", "9", "--backoff", "1ms"];
        let attempt = || run_load(file.str(), &[&users[..], load].concat());
        unless_disturbed(attempt, |report| {
            let trial = &report["trials"][0];
            let requests = &trial["requests"];
            let of = |key: &str| requests[key].as_u64().unwrap();
            let attempts = of("attempted") as f64 / of("offered") as f64;
            assert!((1.5..2.5).contains(&attempts), "{attempts}: {requests:#}");
            assert_eq!(trial["outcomes"]["ok"], of("good"), "{:#}", trial["outcomes"]);
            let user = &trial["sessions"]["kinds"][0];
            let completed = user["completed"].as_u64().unwrap();
            assert!(completed >= 190, "{user:#}");
            assert!(of("good") >= 2 * completed, "{requests:#}");
        });
    }
}

/// One worker with room for two, and eight who come at once.
#[test]
fn full_queue_answers_503_at_once() {
    let station = ["--workers", "1", "--service", "fixed(200ms)", "--max-queue", "2"];
    for protocol in [&[][..], &["--http2-prior-knowledge"]] {
        let server = KneeServer::start(&station);
        let url = server.url();
        let report = measured(&[&["run", &url, "-n", "8", "-c", "8"], protocol].concat());
        let outcomes = &report["trials"][0]["outcomes"];
        assert_eq!(outcomes["ok"], 3, "{outcomes:#}");
        assert_eq!(outcomes["http_5xx"], 5, "{outcomes:#}");
        let served = server.served();
        assert_eq!(served["station"]["rejected"], 5, "{served:#}");
        assert_eq!(served["station"]["queue_max"], 2, "{served:#}");
    }
}
