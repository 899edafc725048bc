//! How a fleet fails, with real processes: each failure has an end that is stated, and loses
//! nothing that was promised.
//!
//! | what happens | how it ends |
//! | --- | --- |
//! | `kill -9` of an agent | the trial is INVALID and names it; the others count |
//! | `kill -9` of the coordinator | `knee fleet collect` has all |
//! | `kill -9` of NATS, and a new start | agents go on and deliver |
//! | NATS stays away from an agent or a run that is to end | it ends |
//! | `kill -9` of an agent, then another trial | the fleet is lost, and not the target |
//! | `kill -STOP` of an agent for 3 s | INVALID as stalled, not lost; its row says stopped |
//! | `kill -STOP` of the coordinator for 3 s | nothing is lost |
//! | JetStream is full | the result comes from the agent, and a finding says what to do |
//! | a network cut for 3 s, or for good | in `partitions`: delivered; lost, collected later |
//! | `knee fleet stop` from elsewhere | a report of what was measured |

use super::ground::{Agent, Ground, Nats, agents, eventually};
use super::measured;
use crate::support::{Ended, TempPath, run, run_with_input, signal};
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
    let lost = agents(report).iter().filter(|a| !a["lost_because"].is_null());
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
    assert!(found.iter().any(|f| f["code"] == "fleet_incomplete"), "{found:?}");
    let others: u64 = agents(&report).iter().map(|a| a["completed"].as_u64().unwrap()).sum();
    assert!(others > 0 && trial["completed"] == others, "what was measured is there");
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
    // The command that the report names makes the same report.
    let text = run(&["fleet", "collect", "--nats", &url, "--full"]).stdout;
    let named = text.find("knee fleet collect ").map(|at| &text[at..]);
    let line = named.and_then(|rest| rest.lines().next()).unwrap_or_default();
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    assert_eq!((words.len(), words.last()), (5, Some(&url.as_str())), "{text}");
    let again = run(&words);
    assert!(measured(&again), "{again:?}");
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
fn a_run_ends_when_it_is_asked_to_although_nats_is_away() {
    let Some(mut ground) = Ground::with(1) else {
        return;
    };
    let child = under_way(&ground, &["-R", "100", "-d", "600s"]);
    ground.nats.kill();
    signal(&child, libc::SIGINT);
    let ended = Ended::of(child);
    assert!(!matches!(ended.status, Some(0) | None), "{ended:?}");
    assert!(ended.stderr.contains("NATS has been away for"), "{ended:?}");
    assert!(ended.stderr.contains("knee fleet collect"), "{ended:?}");
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
fn agent_stopped_for_seconds_makes_the_trial_invalid() {
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
    assert!(!agents(&report)[0]["invalid_because"].as_array().unwrap().is_empty());
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
    let advises = |agent: &Agent| agent.has_said("knee fleet clear");
    assert!(ground.agents.iter().any(advises), "no word of what to do");
    let found = report["findings"].to_string();
    for words in ["results_kept", "JetStream is full", "knee-results", "knee fleet clear"] {
        assert!(found.contains(words), "{words}: {found}");
    }
    let url = ground.nats.url();
    let cleared = run(&["fleet", "clear", "--nats", &url]);
    assert_eq!(cleared.status, Some(0), "{cleared:?}");
    let left = run(&["fleet", "collect", "--nats", &url]);
    assert!(left.stderr.contains("no run"), "{left:?}");
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

/// An experiment of several trials on this fleet, under way.
fn levels_under_way(ground: &Ground, arguments: &[&str]) -> Child {
    let options = [&["--warmup", "0s"][..], &arguments[1..]].concat();
    let child = ground.begin_of(arguments[0], &ground.server.url(), &options);
    eventually("no agent begins", || {
        let begins = |agent: &Agent| agent.has_said("trial 1 of run");
        ground.agents.iter().all(begins)
    });
    child
}

#[test]
fn agent_killed_in_a_sweep_is_not_an_unreachable_target() {
    let Some(mut ground) = Ground::with(2) else {
        return;
    };
    let child = levels_under_way(&ground, &["sweep", "--vusers", "2,4,8", "-d", "3s"]);
    drop(ground.agents.remove(1));
    let ended = Ended::of(child);
    assert_eq!(ended.status, Some(4), "{ended:?}");
    let words = ["agent a2 is lost", "--allow-loss"];
    assert!(words.iter().all(|w| ended.stderr.contains(w)), "{ended:?}");
    let report = ended.json();
    let found = report["findings"].to_string();
    assert!(found.contains("fleet_lost") && found.contains("agent a2"), "{found}");
    assert!(!report.to_string().contains("target could not be reached"), "{found}");
}

#[test]
fn sweep_goes_on_without_an_agent_where_that_is_permitted() {
    let Some(mut ground) = Ground::with(2) else {
        return;
    };
    let options = ["sweep", "--vusers", "2,4,8", "-d", "3s", "--allow-loss"];
    let child = levels_under_way(&ground, &options);
    drop(ground.agents.remove(1));
    let ended = Ended::of(child);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    let levels = report["conclusion"]["levels"].as_array().unwrap();
    assert_eq!(levels.len(), 3, "{levels:#?}");
    assert!(!report["findings"].to_string().contains("fleet_lost"), "{report:#}");
}

#[test]
fn rows_of_agents_tell_stopped_from_noisy_in_every_experiment() {
    let Some(ground) = Ground::with(2) else {
        return;
    };
    for arguments in
        [["sweep", "--vusers", "2,4", "-d", "6s"], ["overload", "--descriptors", "4,8", "-d", "6s"]]
    {
        let child = levels_under_way(&ground, &arguments);
        if arguments[0] == "sweep" {
            // Its slices are short, and between two of them nobody sends.
            ground.agents[0].forget();
            eventually("no further slice begins", || ground.agents[0].has_said("of run"));
        } else {
            std::thread::sleep(Duration::from_secs(2));
        }
        ground.agents[0].signal(libc::SIGSTOP);
        std::thread::sleep(Duration::from_secs(2));
        ground.agents[0].signal(libc::SIGCONT);
        let ended = Ended::of(child);
        assert!(measured(&ended), "{ended:?}");
        let report = ended.json();
        let found = report["findings"].to_string();
        assert!(found.contains("agent a1 was stopped"), "{found}");
        if arguments[0] == "sweep" {
            // Its rows leave out the slice that the agent missed.
            ground.agents.iter().for_each(Agent::forget);
            continue;
        }
        let rows = agents(&report);
        assert!(rows[0]["stall_ns_max"].as_u64() > Some(1_500_000_000), "{rows:?}");
        assert!(rows[1]["stall_ns_max"].as_u64() < Some(1_500_000_000), "{rows:?}");
        let clauses = report["trials"][0]["invalid_clauses"].to_string();
        assert!(clauses.contains("stalled"), "{clauses}");
        let text = run_with_input(&["report", "-", "--full"], &ended.stdout).stdout;
        assert!(text.contains("stopped: did not run for"), "{text}");
        for agent in &ground.agents {
            agent.forget();
        }
    }
}
