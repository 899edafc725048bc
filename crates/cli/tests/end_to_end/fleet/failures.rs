//! How a fleet fails, with real processes: each failure has an end that is stated, and loses
//! nothing that was promised.
//!
//! | what happens | how it ends |
//! | --- | --- |
//! | `kill -9` of an agent | the trial is INVALID and names it; the others count |
//! | `kill -9` of the coordinator | `knee fleet collect` has all |
//! | `kill -9` of NATS, and a new start | agents go on and deliver |
//! | NATS stays away from an agent that is to end | it ends |
//! | `kill -STOP` of an agent for 3 s | INVALID as stalled, not lost |
//! | `kill -STOP` of the coordinator for 3 s | nothing is lost |
//! | JetStream is full | the result comes from the agent |
//! | a network cut for 3 s, or for good | in `partitions`: delivered; lost, collected later |
//! | `knee fleet stop` from elsewhere | a report of what was measured |

use super::ground::{Agent, Ground, Nats, agents, eventually};
use super::measured;
use crate::support::{Ended, TempPath, run, signal};
use serde_json::Value;
use std::process::Child;
use std::time::Duration;

/// A run that is under way: its load has begun.
fn under_way(ground: &Ground, options: &[&str]) -> Child {
    let child = ground.begin(options);
    let url = ground.nats.url();
    eventually("the run does not begin", || {
        let told = run(&["fleet", "status", "--nats", &url]);
        told.stdout.contains("conducts") || told.stdout.starts_with("run ")
    });
    // From the lease to the first operation.
    std::thread::sleep(Duration::from_secs(3));
    child
}

pub fn lost(report: &Value) -> Vec<&str> {
    let lost = agents(report)
        .iter()
        .filter(|a| !a["lost_because"].is_null());
    lost.map(|a| a["agent"].as_str().unwrap()).collect()
}

const TEN_SECONDS: [&str; 6] = ["-R", "100", "-d", "10s", "--warmup", "0s"];

#[test]
fn an_agent_that_is_killed_is_lost_and_the_trial_invalid() {
    let Some(mut ground) = Ground::with(3) else {
        return;
    };
    let child = under_way(&ground, &TEN_SECONDS);
    drop(ground.agents.remove(1));
    let ended = Ended::of(child);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let report = ended.json();
    assert_eq!(lost(&report), ["a2"]);
    let trial = &report["trials"][0];
    assert_eq!(trial["invalid_clauses"][0], "agent_lost");
    let found = report["findings"].as_array().unwrap();
    assert!(
        found.iter().any(|f| f["code"] == "fleet_incomplete"),
        "{found:?}"
    );
    let others: u64 = agents(&report)
        .iter()
        .map(|a| a["completed"].as_u64().unwrap())
        .sum();
    assert!(
        others > 0 && trial["completed"] == others,
        "what was measured is there"
    );
}

#[test]
fn agents_whose_coordinator_is_killed_keep_what_they_measured() {
    let Some(ground) = Ground::with(2) else {
        return;
    };
    let child = under_way(&ground, &["-R", "100", "-n", "600"]);
    signal(&child, libc::SIGKILL);
    let _ = child.wait_with_output();
    let url = ground.nats.url();
    let mut report = Value::Null;
    eventually("nothing can be collected", || {
        let ended = run(&["fleet", "collect", "--nats", &url, "--json", "-"]);
        report = serde_json::from_str(&ended.stdout).unwrap_or_default();
        measured(&ended) && lost(&report).is_empty()
    });
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 600);
    // And the fleet is free: the lease of who died on this host is nobody's.
    let next = ground.run(&["-R", "100", "-n", "20"]);
    assert!(measured(&next), "{next:?}");
}

#[test]
fn agents_go_on_while_nats_is_away_and_deliver_when_it_is_back() {
    let Some(mut ground) = Ground::with(2) else {
        return;
    };
    let child = under_way(&ground, &["-R", "100", "-n", "600"]);
    ground.nats.kill();
    std::thread::sleep(Duration::from_secs(2));
    ground.nats.restart();
    let ended = Ended::of(child);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    assert!(lost(&report).is_empty(), "{ended:?}");
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 600);
}

#[test]
fn an_agent_ends_although_nats_is_away() {
    let Some(mut ground) = Ground::with(1) else {
        return;
    };
    ground.nats.kill();
    ground.agents[0].signal(libc::SIGTERM);
    eventually("it does not end", || ground.agents[0].has_ended());
}

#[test]
fn an_agent_that_is_stopped_for_seconds_makes_the_trial_invalid_and_is_not_lost() {
    let Some(ground) = Ground::with(2) else {
        return;
    };
    let child = under_way(&ground, &TEN_SECONDS);
    ground.agents[0].signal(libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(3));
    ground.agents[0].signal(libc::SIGCONT);
    let ended = Ended::of(child);
    assert_eq!(ended.status, Some(3), "{ended:?}");
    let report = ended.json();
    assert!(lost(&report).is_empty());
    let clauses = report["trials"][0]["invalid_clauses"].to_string();
    assert!(clauses.contains("stalled"), "{clauses}");
    assert!(
        !agents(&report)[0]["invalid_because"]
            .as_array()
            .unwrap()
            .is_empty()
    );
}

#[test]
fn a_result_that_jetstream_has_no_room_for_comes_from_its_agent() {
    let config = TempPath::with("full.conf", "jetstream { max_file_store: 12000 }\n");
    let Some(nats) = Nats::start(&["-c", config.str()]) else {
        return;
    };
    let Some(ground) = Ground::of(nats, 2) else {
        return;
    };
    let ended = ground.run(&["-R", "400", "-n", "800"]);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    assert!(lost(&report).is_empty(), "{ended:?}");
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 800);
    let kept = |agent: &Agent| agent.has_said("keeps the result until it is fetched");
    assert!(ground.agents.iter().any(kept), "there was room after all");
}

#[test]
fn who_only_listens_slowly_loses_nothing() {
    let Some(ground) = Ground::with(2) else {
        return;
    };
    let child = under_way(&ground, &["-R", "100", "-n", "600", "--interval", "100ms"]);
    // Snapshots come in meanwhile, and nobody takes them.
    signal(&child, libc::SIGSTOP);
    std::thread::sleep(Duration::from_secs(3));
    signal(&child, libc::SIGCONT);
    let ended = Ended::of(child);
    assert!(measured(&ended), "{ended:?}");
    assert!(lost(&ended.json()).is_empty());
    assert_eq!(ended.json()["trials"][0]["outcomes"]["ok"], 600);
}

#[test]
fn a_run_is_ended_from_elsewhere_with_what_was_measured() {
    let Some(ground) = Ground::with(2) else {
        return;
    };
    let child = under_way(&ground, &["-R", "100", "-d", "60s", "--warmup", "0s"]);
    let told = run(&["fleet", "stop", "--nats", &ground.nats.url()]);
    assert_eq!(told.status, Some(0), "{told:?}");
    let ended = Ended::of(child);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["interrupted"], true);
    assert!(report["trials"][0]["completed"].as_u64() > Some(0));
}
