//! Runs that are repeated, and two servers measured in turns.

use crate::support::{Ended, KneeServer, knee, run, signal, unless_disturbed};
use serde_json::Value;
use std::time::Duration;

fn server(service: &str) -> KneeServer {
    KneeServer::start(&["--workers", "2", "--service", service])
}

/// The report, or a comparison, as JSON.
fn measured(arguments: &[&str]) -> Value {
    let shown = run(arguments);
    serde_json::from_str(&shown.stdout).unwrap_or_else(|e| panic!("{e}: {shown:?}"))
}

#[test]
fn a_slower_server_is_worse_in_turns() {
    let (a, b) = (server("fixed(2ms)"), server("fixed(4ms)"));
    let load = ["-c", "4", "--budget", "20s", "--json", "-"];
    let comparison = measured(&[&["compare", "--live", &a.url(), &b.url()], &load[..]].concat());
    assert_eq!(comparison["verdict"], "worse", "{comparison:#}");
    assert_eq!(comparison["a"]["runs"][0]["target"], a.url());
    assert_eq!(comparison["b"]["runs"][0]["target"], b.url());
    let rows = comparison["rows"].as_array().unwrap();
    let throughput = rows.iter().find(|r| r["metric"] == "throughput_per_s").unwrap();
    let ratio = throughput["ratio"].as_f64().unwrap();
    assert!((0.4..0.6).contains(&ratio), "{throughput:#}");
    assert!(throughput["ratio_ci95"].is_array(), "{throughput:#}");
    let answer = comparison["answer"].as_str().unwrap();
    assert!(answer.contains("rounds"), "{answer}");
}

#[test]
fn turns_that_a_signal_ends_say_so() {
    let (a, b) = (server("fixed(2ms)"), server("fixed(2ms)"));
    let (a, b) = (a.url(), b.url());
    let arguments = ["compare", "--live", &a, &b, "-d", "2s", "--budget", "600s"];
    let child = knee(&[&arguments[..], &["--fail-on-regression"]].concat()).spawn().unwrap();
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, libc::SIGTERM);
    let ended = Ended::of(child);
    assert!(ended.stderr.contains("ended early, after "), "{ended:?}");
    // Without a whole round there is nothing to compare.
    assert!(matches!(ended.status, Some(143 | 4)), "{ended:?}");
}

#[test]
fn turns_need_two_urls() {
    let refused = run(&["compare", "--live", "http://127.0.0.1:1/"]);
    assert_eq!(refused.status, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("expected two URLs"), "{refused:?}");
    let without = run(&["compare", "--budget", "5s", "a.json", "b.json"]);
    assert_eq!(without.status, Some(2), "{without:?}");
}

#[test]
fn repeats_are_all_in_the_report() {
    let server = server("fixed(2ms)");
    let time = ["--repeat", "3", "-d", "300ms", "--warmup", "100ms"];
    let output = ["-c", "2", "--json", "-", "--quiet"];
    let attempt = || run(&[&["run", &server.url()], &time[..], &output[..]].concat());
    unless_disturbed(attempt, |report| {
        assert_eq!(report["trials"].as_array().unwrap().len(), 3);
        assert_eq!(report["spec"]["repeat"], 3);
        let valid = report["trials"].as_array().unwrap().iter();
        if valid.filter(|t| t["verdict"] == "valid").count() < 2 {
            return;
        }
        let figure = &report["conclusion"]["repeats"][0];
        assert_eq!(figure["metric"], "throughput_per_s", "{figure:#}");
        let (low, high) = (&figure["ci95"][0], &figure["ci95"][1]);
        assert!(
            low.as_f64() <= figure["value"].as_f64() && figure["value"].as_f64() <= high.as_f64()
        );
    });
}
