//! Fleets: agents in processes of their own, a real NATS server.

mod failures;
mod ground;
mod limits;
mod manifests;
mod partitions;
mod permissions;
mod refused;

use crate::support::{Ended, KneeServer, TempPath, knee, run};
use ground::{Agent, Ground, Nats, agents};

/// Whether it measured, however busy the machine was meanwhile.
fn measured(ended: &Ended) -> bool {
    matches!(ended.status, Some(0 | 3))
}

#[test]
fn four_agents_offer_exactly_what_was_asked_for() {
    let Some(ground) = Ground::with(4) else {
        return;
    };
    let ended = ground.run(&["-R", "800", "-n", "1602", "--seed", "5"]);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    let trial = &report["trials"][0];
    assert_eq!(trial["outcomes"]["ok"], 1602, "{trial}");
    let each: Vec<u64> = agents(&report).iter().map(|a| a["attempted"].as_u64().unwrap()).collect();
    assert_eq!(each, [401, 401, 400, 400]);
    assert!(agents(&report).iter().all(|a| a["lost_because"].is_null()));
    assert!(agents(&report).iter().all(|a| a["clock"]["uncertainty_ns"].as_u64() < Some(1 << 30)));
    let intervals = trial["intervals"].as_array().unwrap();
    let completed: u64 = intervals.iter().map(|i| i["completed"].as_u64().unwrap()).sum();
    assert_eq!(completed, 1602, "each interval has all agents");
    let text = run(&["fleet", "ls", "--nats", &ground.nats.url()]);
    assert!(text.status == Some(0) && text.stdout.contains("a4"), "{text:?}");
    drop(ground.agents);
    assert_eq!(ground.server.served()["requests"], 1602);
}

#[test]
fn users_are_dealt_and_those_without_any_sit_out() {
    let Some(ground) = Ground::with(4) else {
        return;
    };
    let ended = ground.run(&["--vusers", "3", "-n", "300", "--agents", "a1,a2,a3,a4"]);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 300);
    assert_eq!(agents(&report).len(), 3, "one worker has no user");
    let one = ground.run(&["--vusers", "3", "-n", "300", "--agents", "a2"]).json();
    assert_eq!(agents(&one)[0]["agent"], "a2");
    assert_eq!(agents(&one).len(), 1);
}

#[test]
fn a_sweep_and_an_overload_are_made_by_agents_too() {
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    let _agents = ["x", "y"].map(|name| Agent::start(&nats.url(), name, &[]));
    let server = KneeServer::start(&["--workers", "1", "--service", "1ms"]);
    let (target, url) = (server.url(), nats.url());
    let times = ["-d", "300ms", "--warmup", "100ms", "--json", "-", "--quiet", "-t", "1"];
    let sweep = [&["sweep", &target, "--fleet", &url, "--vusers", "1,4"], &times[..]].concat();
    let overload =
        [&["overload", &target, "--fleet", &url, "--descriptors", "16"], &times[..]].concat();
    for (arguments, agents) in [(sweep, [1, 2]), (overload, [2, 2])] {
        let ended = run(&arguments);
        assert!(measured(&ended), "{ended:?}");
        let report = ended.json();
        let trials = report["trials"].as_array().unwrap();
        for (trial, agents) in trials.iter().zip(agents) {
            assert_eq!(trial["agents"].as_array().unwrap().len(), agents, "{trial}");
            assert!(trial["completed"].as_u64() > Some(0), "{trial}");
        }
    }
}

#[test]
fn agents_ask_name_servers_and_call_services() {
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    let _agents = ["x", "y"].map(|name| Agent::start(&nats.url(), name, &[]));
    let names = KneeServer::of(&["dns", "--listen", "127.0.0.1:0"]);
    let calls = KneeServer::of(&["grpc", "--listen", "127.0.0.1:0"]);
    let (zone, echo) = (&names.address, &calls.address);
    for (target, more) in [
        (format!("dns://{zone}/www.example"), &[][..]),
        (format!("dns+tcp://{zone}/www.example"), &[]),
        (format!("grpc://{echo}/knee.Echo/Say"), &["-b", r#"{"text": "hi"}"#]),
    ] {
        let load = ["run", &target, "--fleet", &nats.url(), "-R", "200", "-n", "100", "-c", "2"];
        let ended = run(&[&load[..], more, &["--json", "-", "--quiet"]].concat());
        assert!(measured(&ended) || ended.status == Some(1), "{target}: {ended:?}");
        let report = ended.json();
        let trial = &report["trials"][0];
        let each: Vec<_> = agents(&report).iter().map(|a| a["attempted"].as_u64()).collect();
        assert_eq!(each, [Some(50), Some(50)], "{target}");
        assert_eq!(trial["completed"], 100, "{target}");
    }
}

#[test]
fn agents_know_what_the_setup_of_a_scenario_gave() {
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    let _agents = ["x", "y"].map(|name| Agent::start(&nats.url(), name, &[]));
    let server = KneeServer::start(&["--app", "shop"]);
    let url = server.url();
    let file = TempPath::new("fleet-setup.yaml");
    let text = format!(
        "target: {}\nsetup: [{{post: /login, json: {{name: a, password: secret}}, extract: \
         {{token: {{json: /token}}}}}}]\nsessions: {{s: {{steps: [{{get: /items, headers: \
         {{Authorization: 'Bearer ${{setup.token}}'}}}}]}}}}\nload: {{stages: \
         [{{hold: 4 users, for: 400ms}}], warmup: 0s}}\n",
        url.trim_end_matches('/')
    );
    std::fs::write(&file.0, text).unwrap();
    let ended = run(&["run", file.str(), "--fleet", &nats.url(), "--json", "-", "--quiet"]);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    assert_eq!(agents(&report).len(), 2);
    let outcomes = report["trials"][0]["outcomes"].as_object().unwrap();
    assert_eq!(outcomes.keys().collect::<Vec<_>>(), ["ok"], "{outcomes:?}");
}

#[test]
fn the_server_is_watched_while_agents_load_it() {
    let Some(ground) = Ground::with(2) else {
        return;
    };
    let ended = ground.run(&["-R", "200", "-n", "200", "--observe", "here"]);
    assert!(measured(&ended), "{ended:?}");
    let trial = &ended.json()["trials"][0];
    let observed = &trial["observed"];
    let opened = trial["connections_opened"].as_u64().unwrap();
    assert!(opened >= 2, "{trial}");
    if observed["source"] == "capture" {
        // Those that come after the warm-up.
        assert!(observed["first_syns"].as_u64() <= Some(opened), "{observed}");
    }
    assert!(observed["elapsed_ns"].as_u64() > Some(0), "{observed}");
    assert!(observed["server_host"].is_null(), "{observed}");
    assert!(trial["agents_skew_ns_max"].as_u64() > Some(0), "{trial}");
}

#[test]
fn clocks_that_are_seconds_apart_change_nothing() {
    let Some(nats) = Nats::start(&[]) else {
        return;
    };
    let url = nats.url();
    let _agents = [
        Agent::start(&url, "ahead", &["--clock-shift-ns", "5000000000"]),
        Agent::start(&url, "behind", &["--clock-shift-ns", "-5000000000"]),
    ];
    let ground =
        Ground { nats, agents: Vec::new(), server: KneeServer::start(&["--workers", "1"]) };
    let ended = ground.run(&["-R", "200", "-n", "200"]);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 200);
    // Its monotonic clock is as far ahead as it says, and its time of day is not.
    for agent in agents(&report) {
        let offset_ns = agent["clock"]["offset_ns"].as_i64().unwrap();
        assert!(offset_ns.abs() < 1_000_000_000, "{agent}");
    }
}

#[test]
fn fifty_agents_on_one_machine() {
    let Some(ground) = Ground::with(50) else {
        return;
    };
    let ended = ground.run(&["-R", "500", "-n", "1000"]);
    assert!(measured(&ended), "{ended:?}");
    let report = ended.json();
    assert_eq!(report["trials"][0]["outcomes"]["ok"], 1000);
    assert_eq!(agents(&report).len(), 50);
    assert!(agents(&report).iter().all(|a| a["attempted"] == 20));
    let text = knee(&["report", "-", "--full"]);
    let mut child = text_of(text);
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), ended.stdout.as_bytes()).unwrap();
    let text = Ended::of(child);
    assert!(text.stdout.contains("50 agents made the load together"), "{text:?}");
}

fn text_of(mut command: std::process::Command) -> std::process::Child {
    command.stdin(std::process::Stdio::piped()).spawn().unwrap()
}
