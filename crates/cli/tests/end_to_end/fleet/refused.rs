//! What a fleet cannot do ends in one line that names the agent and the remedy, before any load.

use super::ground::{Agent, Ground, Nats, agents};
use crate::support::{Ended, KneeServer, TempPath, knee, run};
use std::io::{BufRead, BufReader};
use std::process::Command;

/// It ends with this code, and one line that has these words.
fn refused(ended: &Ended, status: i32, words: &[&str]) {
    assert_eq!(ended.status, Some(status), "{ended:?}");
    let line = ended.stderr.trim();
    assert_eq!(line.lines().count(), 1, "{line}");
    for word in words {
        assert!(line.contains(word), "{word}: {line}");
    }
}

#[test]
fn nobody_there() {
    let run_on = |url: &str| run(&["run", "http://127.0.0.1:9/", "--fleet", url, "--quiet"]);
    refused(&run_on("nats://127.0.0.1:9"), 4, &["no NATS at nats://127.0.0.1:9"]);
    refused(&run_on("nats://me:secret@127.0.0.1:9"), 2, &["NATS_PASSWORD"]);
    refused(&run(&["fleet", "ls"]), 2, &["NATS_URL"]);
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    refused(&run_on(&nats.url()), 4, &["no agents", "knee agent --nats"]);
    refused(&run(&["fleet", "ls", "--nats", &nats.url()]), 4, &["no agents"]);
    refused(&run(&["fleet", "stop", "--nats", &nats.url()]), 2, &["no run is in progress"]);
    refused(&run(&["fleet", "collect", "--nats", &nats.url()]), 4, &["no run"]);
}

#[test]
fn experiments_wait_for_agents_and_begin_with_no_fewer() {
    let alone = run(&["run", "http://127.0.0.1:9/", "--fleet-wait", "1s"]);
    refused(&alone, 2, &["--fleet-wait", "--fleet"]);
    let Some(mut nats) = Nats::start(&[]) else {
        return;
    };
    let url = nats.url();
    let _first = Agent::start(&url, "a1", &[]);
    let few = run(&["run", "http://127.0.0.1:9/", "--fleet", &url, "--agents-min", "2"]);
    refused(&few, 4, &["1 of the 2 agents", "a1"]);
    // NATS is away when all begin, and one agent comes late.
    nats.kill();
    let server = KneeServer::start(&["--workers", "1"]);
    let target = server.url();
    let patient = ["--fleet", &url, "--agents-min", "2", "--fleet-wait", "60s", "-t", "1"];
    let load = ["run", &target, "-R", "100", "-n", "20", "--json", "-", "--quiet"];
    let mut waiting = knee(&[&load[..], &patient].concat()).spawn().unwrap();
    let mut told = BufReader::new(waiting.stderr.take().unwrap()).lines();
    let first = told.next().unwrap().unwrap();
    assert!(first.starts_with("waiting for up to 60s: no NATS at"), "{first}");
    let late = knee(&["agent", "--nats", &url, "--name", "a2", "--fleet-wait", "60s"]);
    let mut late = Agent::of(late);
    nats.restart();
    late.wait();
    let ended = Ended::of(waiting);
    assert!(matches!(ended.status, Some(0 | 3)), "{ended:?}");
    assert_eq!(agents(&ended.json()).len(), 2);
}

#[test]
fn credentials_are_asked_for_and_told_apart() {
    let Some(nats) = Nats::start(&["--user", "me", "--pass", "right"]) else {
        return;
    };
    let url = nats.url();
    let ls = |password: &str| {
        let mut command = knee(&["fleet", "status", "--nats", &url]);
        command.env("NATS_USER", "me").env("NATS_PASSWORD", password);
        Ended::of(command.spawn().unwrap())
    };
    refused(&ls("wrong"), 4, &["authorization"]);
    let right = ls("right");
    assert!(right.status == Some(0) && right.stdout.contains("nothing runs"), "{right:?}");
    let file = TempPath::with("password", "right\n");
    let options = ["--nats-user", "me", "--nats-password-file", file.str()];
    let by_file = run(&[&["fleet", "status", "--nats", &url], &options[..]].concat());
    assert_eq!(by_file.status, Some(0), "{by_file:?}");
}

#[test]
fn an_agent_says_what_it_may_not() {
    let Some(mut ground) = Ground::with(1) else {
        return;
    };
    let url = ground.nats.url();
    let fleet = |target: &str, options: &[&str]| {
        run(&[&["run", target, "--fleet", &url, "--quiet"], options].concat())
    };
    refused(&fleet("http://192.0.2.1/", &[]), 2, &["agent a1", "--allow-target 192.0.2.1"]);
    refused(&fleet("http://127.0.0.1:9/", &[]), 4, &["agent a1", "refused"]);
    let target = ground.server.url();
    refused(&fleet(&target, &["--agents", "zone=x"]), 2, &["--agents", "a1"]);
    let taken = run(&["agent", "--nats", &url, "--name", "a1"]);
    refused(&taken, 2, &["'a1' is in use", "--name"]);
    // One that may have few descriptors, and one that may make few operations.
    let mut few = Command::new("sh");
    let line = "ulimit -n 80; exec \"$0\" agent --nats \"$1\" --name few";
    let knee = env!("CARGO_BIN_EXE_knee");
    few.args(["-c", line, knee, &url]).stdout(std::process::Stdio::piped());
    ground.agents.push(Agent::of(few));
    ground.agents[1].wait();
    let many = fleet(&target, &["--agents", "few", "--vusers", "70"]);
    refused(&many, 2, &["70", "ulimit -n"]);
    ground.agents.push(Agent::start(&url, "slow", &["--rate-max", "50"]));
    let fast = fleet(&target, &["--agents", "slow", "-R", "100"]);
    refused(&fast, 2, &["agent slow", "--rate-max is 50"]);
}

#[test]
fn a_second_coordinator_is_refused() {
    let Some(ground) = Ground::with(1) else {
        return;
    };
    let first = ground.begin(&["-R", "50", "-d", "60s"]);
    let url = ground.nats.url();
    super::ground::eventually("the first does not begin", || {
        run(&["fleet", "status", "--nats", &url]).stdout.starts_with("run ")
    });
    refused(&ground.run(&["-R", "10"]), 2, &["the fleet is in use", "knee fleet stop"]);
    run(&["fleet", "stop", "--nats", &url]);
    crate::support::signal(&first, libc::SIGINT);
    let ended = Ended::of(first);
    assert!(ended.stdout.contains("\"interrupted\": true"), "{ended:?}");
}

#[test]
fn an_agent_of_another_version_is_named_with_both() {
    let Some(ground) = Ground::with(1) else {
        return;
    };
    // It says less of itself than agents of today.
    let held = r#"{"protocol": 0, "version": "0.0.9"}"#;
    ground.nats.put("$KV.knee-agents.old", held);
    let listed = run(&["fleet", "ls", "--nats", &ground.nats.url()]);
    assert!(listed.stdout.contains("0.0.9"), "{listed:?}");
    refused(
        &ground.run(&["-n", "10"]),
        2,
        &["agent old", "0.0.9", env!("CARGO_PKG_VERSION"), "one version"],
    );
    // Left out, it is nobody's business.
    let without = ground.run(&["-R", "100", "-n", "10", "--agents", "a1"]);
    assert!(super::measured(&without), "{without:?}");
}
