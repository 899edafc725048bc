//! Several addresses of a name, and the local addresses that connections come from.

use crate::support::{Ended, FAR, KneeServer, Link, NEAR, backends, knee, measured};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

fn port_of(address: &str) -> u16 {
    address.rsplit_once(':').unwrap().1.parse().unwrap()
}

fn addresses(trial: &Value) -> Vec<(String, u64)> {
    let all = trial["routed"]["addresses"].as_array().cloned().unwrap_or_default();
    let one = |of: &Value| {
        assert_eq!(of["opened"], of["answered"], "{trial:#}");
        (of["address"].as_str().unwrap().to_owned(), of["opened"].as_u64().unwrap())
    };
    all.iter().map(one).collect()
}

#[test]
fn connections_go_round_all_addresses() {
    let server = KneeServer::with(&["--listen", "0.0.0.0:0"]);
    let port = port_of(&server.address);
    let rule = format!("many.test:{port}:127.0.0.1,127.0.0.2,127.0.0.3");
    let url = format!("http://many.test:{port}/");
    let at = |last: u8, opened| (format!("127.0.0.{last}:{port}"), opened);
    for backend in backends(&format!("http://127.0.0.1:{port}/")) {
        let always = ["run", &url, "--resolve", &rule, "--backend", backend, "-t", "1"];
        let kept = [&always[..], &["--vusers", "6", "-n", "60"]].concat();
        let trial = measured(&kept)["trials"][0].clone();
        assert_eq!(addresses(&trial), [at(1, 2), at(2, 2), at(3, 2)], "{backend}");
        let closed = [&always[..], &["--vusers", "1", "-n", "60", "--no-keepalive"]].concat();
        let trial = measured(&closed)["trials"][0].clone();
        assert_eq!(addresses(&trial), [at(1, 20), at(2, 20), at(3, 20)], "{backend}");
    }
    // One address needs no words.
    let trial = measured(&["run", &format!("http://127.0.0.1:{port}/"), "-n", "1"]);
    assert_eq!(trial["trials"][0]["routed"], Value::Null);
}

#[test]
fn other_experiments_take_the_same_way() {
    let server = KneeServer::with(&["--listen", "0.0.0.0:0"]);
    let port = port_of(&server.address);
    let rule = format!("many.test:{port}:127.0.0.1,127.0.0.2");
    let url = format!("http://many.test:{port}/");
    for (command, options) in [
        ("sweep", &["--vusers", "2", "-d", "200ms"][..]),
        ("overload", &["--simple", "4", "-d", "200ms", "--warmup", "0s"]),
        ("recover", &["-R", "100", "--trigger", "200", "--before", "1s", "--for", "1s"]),
    ] {
        let more =
            if command == "recover" { &["--after", "2s", "--warmup", "0s"][..] } else { &[] };
        let always = [command, &url, "--resolve", &rule, "--source", "127.0.0.9"];
        let report = measured(&[&always[..], options, more].concat());
        let used: BTreeSet<String> =
            addresses(&report["trials"][0]).into_iter().map(|(address, _)| address).collect();
        let expected = [1, 2].map(|last| format!("127.0.0.{last}:{port}"));
        assert_eq!(used, BTreeSet::from(expected), "{command}");
    }
}

#[test]
fn address_that_refuses_is_left_out() {
    let server = KneeServer::with(&["--listen", "127.0.0.1:0"]);
    let port = port_of(&server.address);
    let rule = format!("two.test:{port}:[::1],127.0.0.1");
    let url = format!("http://two.test:{port}/");
    let report = measured(&["run", &url, "--resolve", &rule, "--vusers", "2", "-n", "20"]);
    let trial = &report["trials"][0];
    assert_eq!(trial["outcomes"], json!({"ok": 20}));
    let left_out = &trial["routed"]["addresses"][1];
    assert_eq!(left_out["address"], format!("[::1]:{port}"), "{trial:#}");
    assert_eq!(left_out["left_out_because"], "connection refused");
}

#[test]
fn connections_come_from_the_sources_in_turn() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let peers = Arc::<Mutex<BTreeSet<String>>>::default();
    let seen = Arc::clone(&peers);
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            seen.lock().unwrap().insert(client.peer_addr().unwrap().ip().to_string());
            std::thread::spawn(move || {
                let lines = BufReader::new(client.try_clone().unwrap()).lines();
                let ends = lines.map_while(Result::ok).filter(String::is_empty);
                for _ in ends {
                    let _ = client.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
                }
            });
        }
    });
    let expected = BTreeSet::from(["127.0.0.5", "127.0.0.6"].map(str::to_owned));
    for backend in backends(&url) {
        peers.lock().unwrap().clear();
        let options = ["--source", "127.0.0.5,127.0.0.6", "--vusers", "4", "-n", "40"];
        measured(&[&["run", &url, "--backend", backend], &options[..]].concat());
        assert_eq!(*peers.lock().unwrap(), expected, "{backend}");
    }
    let ended = crate::support::run(&["run", &url, "--source", "192.0.2.77", "-n", "1"]);
    assert_eq!(ended.status, Some(2), "{ended:?}");
    assert!(ended.stderr.contains("cannot send from 192.0.2.77"), "{ended:?}");
}

#[test]
fn names_are_looked_up_again_for_new_connections() {
    let server = KneeServer::with(&["--listen", "0.0.0.0:0"]);
    let port = port_of(&server.address);
    let url = format!("http://localhost:{port}/");
    // Its lookup gives other addresses than the rule, which holds for a time.
    let rule = format!("+localhost:{port}:127.0.0.7");
    let options = ["--dns-refresh", "500ms", "-R", "50", "-d", "3s", "--warmup", "0s"];
    let always = ["run", &url, "--resolve", &rule, "--no-keepalive"];
    let trial = measured(&[&always[..], &options].concat())["trials"][0].clone();
    let used: Vec<String> = addresses(&trial).into_iter().map(|(address, _)| address).collect();
    let expected = ["127.0.0.7", "127.0.0.1"].map(|ip| format!("{ip}:{port}"));
    assert_eq!(used[..2], expected, "{trial:#}");
    assert!(trial["routed"]["lookups"].as_u64() >= Some(1), "{trial:#}");
}

/// An address of IPv6 at the far end that nobody answers for.
const SILENT: &str = "fd98::9";

#[test]
fn silent_ipv6_costs_no_time_limit() {
    let Some(link) = Link::through("pfifo") else {
        return;
    };
    let far = "02:00:00:00:00:09";
    if !link.set_up_here(&[
        "ip -6 addr add fd98::1/64 dev kneea nodad".to_owned(),
        format!("ip -6 neigh add {SILENT} lladdr {far} dev kneea nud permanent"),
    ]) {
        println!("skipped: no IPv6 here");
        return;
    }
    let listen = format!("{FAR}:0");
    let server = KneeServer::placed(&["http", "--listen", &listen], |command| link.there(command));
    let port = port_of(&server.address);
    let rule = format!("both.test:{port}:[{SILENT}],{FAR}");
    let url = format!("http://both.test:{port}/");
    // A wait for the silent address would take longer than the patience of this test.
    let mut command = knee(&["run", &url, "--resolve", &rule, "--connect-timeout", "600s"]);
    command.args(["--vusers", "2", "-n", "20", "--json", "-", "--no-save", "--quiet"]);
    link.here(&mut command);
    let ended = Ended::of(command.spawn().unwrap());
    let trial = ended.json()["trials"][0].clone();
    assert_eq!(trial["outcomes"], json!({"ok": 20}), "{ended:?}");
    let all = trial["routed"]["addresses"].as_array().unwrap();
    let left_out = all.iter().find(|of| of["address"] == format!("[{SILENT}]:{port}")).unwrap();
    assert_eq!(left_out["left_out_because"], "connection timed out", "{NEAR}: {trial:#}");
}
