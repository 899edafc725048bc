//! Requests that come with the handshake, counted by both sides.

use crate::support::{KneeServer, backends, measured, run, unless_disturbed};
use serde_json::Value;

/// A server that takes early data, and the options that ask for it.
fn start(more: &[&str]) -> (KneeServer, Vec<String>) {
    let server = KneeServer::start(&[&["--tls", "--tls-resume", "0rtt"], more].concat());
    let certificate = server.certificate.clone().unwrap();
    let options = ["--cacert", &certificate, "--tls-resume", "0rtt"];
    (server, options.map(String::from).to_vec())
}

/// What a trial counts: handshakes, full and resumed; of these, with early data that was taken and
/// refused.
fn counts(trial: &Value) -> [u64; 4] {
    let tls = &trial["protocol"]["tls"];
    let early = &tls["early_data"];
    [&tls["handshakes_full"], &tls["handshakes_resumed"], &early["taken"], &early["refused"]]
        .map(|count| count.as_u64().unwrap())
}

#[test]
fn every_connection_that_resumes_a_session_brings_its_request() {
    let backends = backends(&KneeServer::start(&[]).url());
    for http in ["--http1.1", "--http2"] {
        for backend in &backends {
            let (server, options) = start(&[]);
            let url = server.url();
            let load = ["run", &url, "-n", "300", "-c", "2", "--warmup", "0s", http];
            let once = ["--no-keepalive", "--backend", backend];
            let options: Vec<&str> = options.iter().map(String::as_str).collect();
            let report = measured(&[&load[..], &once, &options].concat());
            let trial = &report["trials"][0];
            let context = format!("{http} {backend}: {:#}", trial["protocol"]);
            assert_eq!(trial["outcomes"]["ok"], 300, "{context}");
            let [full, resumed, taken, refused] = counts(trial);
            assert_eq!([full + resumed, refused], [300, 0], "{context}");
            assert_eq!(taken, resumed, "{context}");
            // A connection that ends before its tickets came has none for the next: how many do
            // depends on the host.
            assert!(taken >= 50, "{context}");
            let served = server.served();
            // The load may be over before the last handshakes are.
            let said = served["tls"]["early_data"].as_u64().unwrap();
            assert!((taken - 2..=taken).contains(&said), "{said}: {context}");
            assert_eq!(served["responses"], 300, "{context}");
        }
    }
}

#[test]
fn early_request_does_not_wait_for_its_handshake() {
    let (server, options) = start(&[]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let url = server.url();
    let load = ["run", &url, "-n", "100", "-c", "1", "--warmup", "0s"];
    let once = ["--no-keepalive", "--http1.1"];
    let trial = &measured(&[&load[..], &once, &options].concat())["trials"][0];
    let [_, resumed, taken, _] = counts(trial);
    assert_eq!(resumed, taken);
    let tls = &trial["stages_ns"]["tls"];
    // The handshakes took their time, and more than half of the requests waited for none of it.
    assert!(trial["protocol"]["tls"]["handshake_ns"]["p50"].as_u64() > Some(0));
    assert!(tls["p50"].as_u64().unwrap_or(0) == 0, "{tls:#}");
}

#[test]
fn requests_that_change_something_wait_for_the_handshake() {
    let (server, options) = start(&[]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let url = server.url();
    let load = ["run", &url, "-n", "50", "-c", "1", "--warmup", "0s"];
    let once = ["--no-keepalive", "--http1.1", "-X", "POST", "-b", "x"];
    let trial = &measured(&[&load[..], &once, &options].concat())["trials"][0];
    let [full, resumed, taken, refused] = counts(trial);
    assert_eq!([full + resumed, taken, refused], [50, 0, 0]);
    assert!(resumed > 5);
    assert_eq!(server.served()["tls"]["early_data"], 0);
}

#[test]
fn attempts_of_an_overload_bring_their_requests() {
    let (server, options) = start(&[]);
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    let url = server.url();
    let load = ["overload", &url, "--rate", "200", "-d", "1s", "--http1.1", "--json", "-"];
    let taken = |report: &Value| {
        report["trials"].as_array().unwrap().iter().map(|t| counts(t)[2]).sum::<u64>()
    };
    let report = unless_disturbed(
        || run(&[&load[..], &options].concat()),
        |report| assert!(taken(report) > 100, "{report:#}"),
    );
    let served = server.served();
    assert!(served["tls"]["early_data"].as_u64().unwrap() >= taken(&report));
}
