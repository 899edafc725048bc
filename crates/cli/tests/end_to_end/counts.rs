//! What knee counts is what the server counted: nothing is lost, nothing is made up.

use crate::support::{KneeServer, TempPath, backends, measured};
use serde_json::Value;

/// One trial against a server of its own, and what that server served.
fn trial(server: &[&str], options: &[&str]) -> (Value, Value) {
    let server = KneeServer::start(server);
    let url = server.url();
    let report = measured(&[&["run", &url], options].concat());
    (report["trials"][0].clone(), server.served())
}

fn outcomes(trial: &Value) -> u64 {
    let outcomes = trial["outcomes"].as_object().unwrap();
    outcomes.values().map(|n| n.as_u64().unwrap()).sum()
}

fn both_backends() -> Vec<&'static str> {
    backends(&KneeServer::start(&[]).url())
}

#[test]
fn n_operations_are_exactly_n() {
    for backend in both_backends() {
        for load in [
            &["-n", "501", "-c", "7"][..],
            &["-n", "501", "-c", "7", "--no-keepalive"],
            &["-n", "3", "-c", "7"],
            &["-n", "101", "-c", "5", "--think", "exp(2ms)", "-t", "3"],
            &["-n", "301", "--rate", "1000"],
            &["-n", "301", "--rate", "1000", "--arrival", "poisson"],
        ] {
            let (trial, served) = trial(&[], &[load, &["--backend", backend]].concat());
            let n: u64 = load[1].parse().unwrap();
            assert_eq!(trial["attempted"], n, "{backend} {load:?}");
            assert_eq!(trial["outcomes"]["ok"], n, "{backend} {load:?}");
            assert_eq!(trial["service_time_ns"]["count"], n, "{backend} {load:?}");
            assert_ne!(trial["response_time_ns"]["min"], 0, "{backend} {load:?}");
            assert_eq!(served["requests"], n, "{backend} {load:?}");
            assert_eq!(served["responses"], n, "{backend} {load:?}");
        }
    }
}

/// Seven users of one slow worker: one is served, six wait, and there is no eighth.
#[test]
fn a_closed_loop_has_never_more_in_flight_than_users() {
    let station = ["--workers", "1", "--service", "fixed(1ms)"];
    for backend in both_backends() {
        for threads in ["1", "2"] {
            let load = ["--vusers", "7", "-n", "300", "-t", threads];
            let (trial, served) = trial(&station, &[&load[..], &["--backend", backend]].concat());
            assert_eq!(trial["connections_max"], 7, "{backend}");
            let queue = &served["station"]["queue_max"];
            assert!((1..=6).contains(&queue.as_u64().unwrap()), "{backend}: {queue}");
            // Beside the users' there is the one connection that looked whether anyone is there.
            let open = &served["connections_max"];
            assert!((7..=8).contains(&open.as_u64().unwrap()), "{backend}: {open}");
        }
    }
}

#[test]
fn an_open_loop_counts_what_the_server_counts() {
    for backend in both_backends() {
        for arrival in ["constant", "poisson", "burst(3,0.2,250ms)"] {
            let load = ["--rate", "300", "--arrival", arrival, "-d", "1s", "--warmup", "0"];
            let (trial, served) = trial(&[], &[&load[..], &["--backend", backend]].concat());
            assert_eq!(trial["outcomes"]["ok"], trial["attempted"], "{backend} {arrival}");
            assert_eq!(served["requests"], trial["attempted"], "{backend} {arrival}");
            assert_eq!(outcomes(&trial), trial["attempted"], "{backend} {arrival}");
            // 300 are due; five standard deviations of Poisson's count are 87.
            let attempted = trial["attempted"].as_u64().unwrap();
            assert!((213..=387).contains(&attempted), "{backend} {arrival}: {attempted}");
        }
    }
}

/// 200/s for a worker that serves 20/s: most are shed, and those alone are not sent.
#[test]
fn what_is_shed_is_counted_and_never_sent() {
    let station = ["--workers", "1", "--service", "fixed(50ms)"];
    let load = ["--rate", "200", "-d", "1s", "--warmup", "0", "--max-in-flight", "2", "-t", "1"];
    let (trial, served) = trial(&station, &load);
    assert_eq!(trial["attempted"], 200);
    assert_eq!(outcomes(&trial), 200);
    let shed = trial["outcomes"]["shed"].as_u64().unwrap();
    assert!(shed >= 150, "{shed}");
    assert_eq!(served["requests"], 200 - shed);
    assert!(served["station"]["queue_max"].as_u64().unwrap() <= 1);
}

/// Only where nothing but a response ends a worker's sleep is the target who wakes it.
#[test]
fn who_wakes_the_generator_is_told_where_it_is_only_the_target() {
    let station = ["--workers", "1", "--service", "fixed(1ms)"];
    for backend in both_backends() {
        for (load, is_told) in [
            (&["--vusers", "2"][..], true),
            (&["--vusers", "2", "--think", "1ms"], false),
            (&["--rate", "100"], false),
        ] {
            let common = ["-n", "50", "-t", "1", "--wait", "hybrid", "--backend", backend];
            let (trial, _) = trial(&station, &[load, &common].concat());
            let woken = &trial["generator"]["woken_by_target_per_s"];
            let told = woken.as_f64().is_some_and(|per_s| per_s > 0.0);
            assert_eq!(told, is_told, "{backend} {load:?}: {woken}");
        }
    }
}

/// Users who pause beyond its end leave the window as long as it was to be.
#[test]
fn a_window_is_as_long_as_asked_though_all_users_pause() {
    let load = ["--vusers", "3", "--think", "fixed(20s)", "-d", "1s", "--warmup", "0"];
    let (trial, served) = trial(&[], &load);
    assert_eq!((&trial["attempted"], &served["requests"]), (&3.into(), &3.into()));
    assert_eq!(trial["duration_ns"], 1_000_000_000, "{trial:#}");
}

/// A body longer than what is sealed at once, or fits into an outbox of HTTP/2.
#[test]
fn long_bodies_arrive_whole_over_every_link() {
    let body = TempPath::with("counted-body", &"x".repeat(1_000_000));
    let file = format!("@{}", body.str());
    for backend in both_backends() {
        for (server, version) in [
            (&["--tls"][..], "--http1.1"),
            (&["--tls"], "--http2"),
            (&[], "--http2-prior-knowledge"),
        ] {
            let load = ["-b", &file, "-n", "20", "-c", "2", version, "--timeout", "10s"];
            let secured: &[&str] = if server.is_empty() { &[] } else { &["-k"] };
            let options = [&load[..], secured, &["--backend", backend]].concat();
            let (trial, served) = trial(server, &options);
            assert_eq!(trial["outcomes"]["ok"], 20, "{backend} {version} {trial}");
            assert_eq!(served["requests"], 20, "{backend} {version}");
            let received = served["bytes_received"].as_u64().unwrap();
            assert!(received > 20_000_000, "{backend} {version}: {received}");
        }
    }
}
