//! What the tools measure and tell, one at a time, until they are cancelled.

use super::{Session, processes_with, wait_until_none_with};
use crate::support::{KneeServer, signal};
use serde_json::json;
use std::fs;

#[test]
fn run_is_measured_kept_and_paged() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("run", &[]);
    let load = json!({"url": server.url(), "requests": 20, "header": ["X-A: b"], "seed": 7});
    let (answer, text) = session.told("run", load);
    assert_eq!(answer["result"], "passed");
    assert_eq!(answer["interrupted"], false);
    assert_eq!(answer["trials"][0]["error_percent"], 0.0);
    let p50 = &answer["trials"][0]["p50_ns"];
    let least = p50.as_f64().or(p50["at_least"].as_f64());
    assert!(least.unwrap() > 0.0, "{answer}");
    let said = answer["answer"].as_str().unwrap();
    let head = format!("{}  {said}\n", answer["verdict"].as_str().unwrap().to_uppercase());
    assert!(text.starts_with(&head), "{text}");
    let run = answer["run"].as_u64().unwrap();
    assert!(text.ends_with(&format!("Kept as run {run}: the tool report shows all of it.")));

    let asked = json!({"run": run.to_string(), "pointer": "/trials/0/outcomes"});
    let (page, _) = session.told("report", asked);
    assert_eq!(page, json!({"pointer": "/trials/0/outcomes", "value": {"ok": 20}}));
    let (page, text) = session.told("report", json!({}));
    assert_eq!(page["value"]["seed"], 7);
    assert!(text.len() < 16_000, "{} bytes", text.len());
    let wrong = session.refused("report", json!({"pointer": "/trails"}));
    assert!(wrong.starts_with("error: invalid pointer '/trails': '' has command,"), "{wrong}");
    let (_, list) = session.told("history", json!({"limit": 5}));
    assert!(list.contains(&server.address), "{list}");

    // In a process of its own, which has ended.
    assert_eq!(processes_with(&server.url()), Vec::<String>::new());
    assert_eq!(server.served()["responses"], 20);
}

#[test]
fn reports_and_targets_are_compared() {
    let servers = [KneeServer::start(&[]), KneeServer::start(&[])];
    let mut session = Session::start("compare", &[]);
    for _ in 0..2 {
        session.told("run", json!({"url": servers[0].url(), "requests": 50}));
    }
    let (answer, text) = session.told("compare", json!({"a": ["1"], "b": ["2"]}));
    assert!(text.contains(answer["answer"].as_str().unwrap().split(' ').next().unwrap()));
    assert!(!answer["rows"].as_array().unwrap().is_empty(), "{answer}");
    let [a, b] = servers.each_ref().map(KneeServer::url);
    let load = json!({"a": a, "b": b, "vusers": 1, "budget": "1ms"});
    let (answer, _) = session.told("compare_targets", load);
    assert!(answer["verdict"].is_string(), "{answer}");
}

#[test]
fn sweep_answers_and_a_scenario_is_checked() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("sweep", &[]);
    let load = json!({"url": server.url(), "vusers": "1,2", "duration": "200ms", "warmup": "0s"});
    let unknown = session.refused("sweep", load);
    assert!(unknown.starts_with("error: unknown argument 'warmup': expected url, bound"));
    let load = json!({"url": server.url(), "vusers": "1,2", "duration": "200ms"});
    let (answer, text) = session.told("sweep", load);
    assert_eq!(answer["trials"].as_array().unwrap().len(), 2, "{answer}");
    assert!(text.contains("vusers=2"), "{text}");

    let (_, example) = session.told("scenario_example", json!({}));
    fs::write(session.folder.join("shop.yaml"), "target: http://127.0.0.1/\nsessons: {}\n")
        .unwrap();
    let wrong = session.refused("scenario_check", json!({"file": "shop.yaml"}));
    assert!(wrong.starts_with("error: shop.yaml") && wrong.contains("sessons"), "{wrong}");
    assert!(example.contains("sessions:"), "{example}");
}

#[test]
fn cancelled_run_ends_and_is_not_answered() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("cancel", &[]);
    let url = server.url();
    let long = json!({"url": url, "rate": 20, "duration": "100s"});
    let first = session.call("run", long.clone());
    session.progress(first, " of 101");
    let second = session.call("run", long);
    session.progress(second, "waits for the measurement before it");
    let third = session.call("run", json!({"url": url, "requests": 5}));
    for id in [second, first] {
        let cancel = json!({"requestId": id, "reason": "no longer wanted"});
        session.write(&json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel,
        }));
    }
    // The third has its turn, and the others have no answer.
    let answer = session.answer(third)["result"].clone();
    assert_eq!(answer["structuredContent"]["result"], "passed", "{answer}");
    // What was measured until then is kept.
    let (_, list) = session.told("history", json!({}));
    assert_eq!(list.matches(&server.address).count(), 2, "{list}");
    assert!(list.contains("(interrupted)"), "{list}");
    assert_eq!(processes_with(&url), Vec::<String>::new());
    assert_eq!(session.close().status, Some(0));
}

#[test]
fn closed_input_ends_a_running_measurement() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("closed", &[]);
    let run = session.call("run", json!({"url": server.url(), "rate": 20, "duration": "100s"}));
    session.progress(run, " of 101");
    assert!(!processes_with(&server.url()).is_empty());
    let ended = session.close();
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
    wait_until_none_with(&server.url());
}

#[test]
fn killed_server_leaves_no_measurement() {
    let server = KneeServer::start(&[]);
    let mut session = Session::start("killed", &[]);
    let run = session.call("run", json!({"url": server.url(), "rate": 20, "duration": "100s"}));
    session.progress(run, " of 101");
    signal(session.child.as_ref().unwrap(), libc::SIGKILL);
    wait_until_none_with(&server.url());
}
