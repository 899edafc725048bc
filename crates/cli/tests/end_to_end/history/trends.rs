//! Figures over many runs: what users see, and the exit code for a pipeline.

use super::Data;
use crate::support::{KneeServer, TempPath};
use serde_json::Value;

/// Runs against a server of this service time at this address, and where that was.
fn runs(data: &Data, count: usize, service: &str, address: &str) -> String {
    let server = KneeServer::with(&["--listen", address, "--workers", "2", "--service", service]);
    for _ in 0..count {
        let url = server.url();
        let load = ["run", &url, "-R", "100", "-d", "300ms", "--warmup", "0s", "--quiet"];
        let ended = data.run(&load);
        assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    }
    server.address.clone()
}

#[test]
fn a_server_that_became_slower_is_found_and_ends_a_pipeline() {
    let data = Data::new("trends");
    assert!(data.refused(&["history", "trend"]).contains("no run is kept yet"));
    // All servers are at one address, as runs of other targets are not compared.
    let address = &runs(&data, 2, "fixed(2ms)", "127.0.0.1:0");
    assert!(data.refused(&["history", "trend"]).contains("a trend needs at least 6"));
    runs(&data, 10, "fixed(2ms)", address);
    runs(&data, 8, "fixed(20ms)", address);
    let page = TempPath::new("trend.html");
    let pipeline =
        ["history", "trend", "--metric", "p50_ns", "--fail-on-regression", "--json", "-"];
    let ended = data.run(&[&pipeline[..], &["--html", page.str()]].concat());
    let trend: Value = serde_json::from_str(&ended.stdout).unwrap_or_default();
    // A busy machine makes runs INVALID, which are left out.
    let runs = trend["runs"].as_array().cloned().unwrap_or_default();
    let numbers: Vec<u32> =
        runs.iter().map(|run| run["name"].as_str().unwrap().parse().unwrap()).collect();
    let slow = numbers.iter().filter(|number| **number > 12).count();
    if slow < 6 || numbers.len() - slow < 8 {
        return eprintln!("skipped: only the runs {numbers:?} are VALID here: {ended:?}");
    }
    let changes = trend["rows"][0]["changes"].as_array().unwrap();
    let worse = changes.iter().find(|change| change["change_percent"].as_f64() > Some(300.0));
    let worse = worse.unwrap_or_else(|| panic!("{trend:#}"));
    let first = numbers.iter().find(|number| **number > 12).unwrap().to_string();
    assert_eq!(worse["first_run"], first, "{trend:#}");
    if worse["verdict"] == "worse" {
        assert_eq!(ended.status, Some(1), "{ended:?}");
        let line = format!("--fail-on-regression: worse: p50 since run {first}");
        assert!(ended.stderr.contains(&line), "{ended:?}");
    }
    let page = std::fs::read_to_string(&page.0).unwrap();
    assert!(page.contains(&format!("since run {first}")), "the page has it");
    // Runs of one server differ too where the machine is busy.
    let old = data.run(&["history", "trend", "12", "--metric", "p50_ns", "--fail-on-regression"]);
    assert!(matches!(old.status, Some(0 | 1)), "{old:?}");
    assert!(!old.stdout.contains("since run 13"), "{old:?}");
    let unknown = data.refused(&["history", "trend", "--metric", "p98_ns"]);
    assert!(unknown.contains("no figure 'p98_ns': expected throughput_per_s"), "{unknown}");
}
