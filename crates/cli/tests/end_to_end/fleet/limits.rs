//! `knee agent --rate-max`: the limit holds for every shape of load, and the report says so.

use super::ground::{Agent, Ground, Nats, agents};
use crate::support::{Ended, KneeServer, TempPath, unless_disturbed};
use serde_json::Value;

/// One agent that may start 100 operations per second, with one worker.
fn limited() -> Option<Ground> {
    let nats = Nats::start(&[])?;
    let agent = Agent::start(&nats.url(), "slow", &["--rate-max", "100"]);
    Some(Ground { nats, agents: vec![agent], server: KneeServer::start(&["--workers", "1"]) })
}

/// Operations that the limit permits in two seconds: one at once, and two at the edges.
const IN_TWO_SECONDS: u64 = 203;

fn has_finding(report: &Value, code: &str) -> bool {
    let findings = report["findings"].as_array().unwrap();
    findings.iter().any(|f| f["code"] == code)
}

#[test]
fn closed_loop_keeps_to_the_limit_of_the_agent_and_says_so() {
    let Some(ground) = limited() else {
        return;
    };
    let ended = ground.run(&["--vusers", "8", "-d", "2s", "--warmup", "0s"]);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let report = ended.json();
    let clauses = report["trials"][0]["invalid_clauses"].to_string();
    assert!(clauses.contains("rate_limited"), "{clauses}");
    assert!(has_finding(&report, "rate_max_reached"), "{report}");
    let because = agents(&report)[0]["invalid_because"].to_string();
    assert!(because.contains("--rate-max, 100/s in all"), "{because}");
    let requests = ground.server.served()["requests"].as_u64().unwrap();
    assert!((1..=IN_TWO_SECONDS).contains(&requests), "{requests}");
}

#[test]
fn number_of_operations_takes_the_time_of_the_limit() {
    let Some(ground) = limited() else {
        return;
    };
    let ended = ground.run(&["--vusers", "8", "-n", "101"]);
    assert!(super::measured(&ended), "{ended:?}");
    let trial = &ended.json()["trials"][0];
    assert_eq!(trial["outcomes"]["ok"], 101);
    assert!(trial["duration_ns"].as_u64() >= Some(990_000_000), "{trial}");
}

#[test]
fn sessions_keep_to_the_limit_with_each_step() {
    let Some(ground) = limited() else {
        return;
    };
    let target = ground.server.url();
    let steps = "[{get: /}, {get: /}, {get: /}]";
    let text = format!("target: {target}\nsessions: {{user: {{steps: {steps}}}}}\n");
    let file = TempPath::with("steps.yaml", &text);
    let load = ["--vusers", "8", "-d", "2s", "--warmup", "0s"];
    let ended = Ended::of(ground.begin_of("run", file.str(), &load));
    assert_eq!(ended.status, Some(3), "{ended:?}");
    assert!(has_finding(&ended.json(), "rate_max_reached"));
    let requests = ground.server.served()["requests"].as_u64().unwrap();
    assert!((1..=IN_TWO_SECONDS).contains(&requests), "{requests}");
}

#[test]
fn overload_keeps_to_the_limit_with_its_connects() {
    let Some(ground) = limited() else {
        return;
    };
    let overload = |descriptors: &str| {
        let load = ["--descriptors", descriptors, "--connect-timeout", "1s"];
        let options = [&load[..], &["-d", "2s", "--warmup", "0s"]].concat();
        Ended::of(ground.begin_of("overload", &ground.server.url(), &options))
    };
    let beyond = overload("1000");
    assert_eq!(beyond.status, Some(2), "{beyond:?}");
    assert!(beyond.stderr.contains("its --rate-max is 100"), "{beyond:?}");
    // Each of these is established at once and replaced: the target would take thousands.
    let within = overload("16");
    assert_eq!(within.status, Some(3), "{within:?}");
    assert!(has_finding(&within.json(), "rate_max_reached"), "{within:?}");
    let trial = &within.json()["trials"][0];
    let opened = trial["connections_opened"].as_u64();
    assert!((Some(1)..=Some(IN_TWO_SECONDS)).contains(&opened), "{trial}");
}

#[test]
fn open_loop_below_the_limit_is_as_without_one() {
    let Some(ground) = limited() else {
        return;
    };
    let attempt = || ground.run(&["-R", "100", "-n", "150"]);
    // What a stalled agent has to catch up with is beyond its limit.
    unless_disturbed(attempt, |report| {
        assert_eq!(report["trials"][0]["outcomes"]["ok"], 150);
        assert!(!has_finding(report, "rate_max_reached"), "{report}");
    });
}
