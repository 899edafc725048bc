//! Overload over other protocols than HTTP/1.1. Rates are not checked.

use crate::support::{Ended, KneeServer, TempPath, run, unless_disturbed};
use serde_json::Value;
use std::net::UdpSocket;

fn serve(options: &[&str]) -> KneeServer {
    let listen = ["--listen", "127.0.0.1:0", "--seed", "1", "--json", "-"];
    KneeServer::of(&[&options[..1], &listen, &options[1..]].concat())
}

/// Levels of all schemes, so short that a test has time for them.
fn overload(url: &str, options: &[&str]) -> Ended {
    let short = ["-d", "400ms", "--warmup", "200ms", "--timeout", "3s", "--seed", "1"];
    run(&[&["overload", url][..], &short, options, &["--json", "-"]].concat())
}

/// The report of an overload of a server of its own, with this many trials, each with an outcome
/// for each attempt. Some were served: a slow server may still be busy with a trial in the next.
fn served(server: &[&str], at: &str, options: &[&str], trials: usize) -> Value {
    let attempt = || {
        let server = serve(server);
        overload(&at.replace("ADDRESS", &server.address), options)
    };
    unless_disturbed(attempt, |report| {
        let mut served = 0;
        for trial in report["trials"].as_array().unwrap() {
            let outcomes = trial["outcomes"].as_object().unwrap();
            let sum: u64 = outcomes.values().map(|n| n.as_u64().unwrap()).sum();
            assert_eq!(trial["attempted"], sum, "{}: {outcomes:?}", trial["label"]);
            served += outcomes.get("served").and_then(Value::as_u64).unwrap_or(0);
        }
        assert!(served > 0, "{report:#}");
        assert_eq!(report["trials"].as_array().unwrap().len(), trials);
    })
}

/// Simple clients, S-Clients and the base load again, after a schedule.
fn all_schemes(server: &[&str], at: &str, options: &[&str]) -> Value {
    served(server, at, &[&["--rate", "50"], options].concat(), 1);
    let levels = ["--simple", "1,4", "--descriptors", "2,8"];
    served(server, at, &[&levels, options].concat(), 5)
}

#[test]
fn each_call_of_grpc_has_a_connection() {
    let at = "grpc://ADDRESS/knee.Echo/Say";
    let slow = ["grpc", "--workers", "1", "--service", "2ms"];
    let report = all_schemes(&slow, at, &["-b", r#"{"text":"hi"}"#]);
    let trial = &report["trials"][0];
    assert_eq!(trial["protocol"]["application"], "gRPC");
    assert!(trial["connections_opened"].as_u64() >= trial["attempted"].as_u64(), "{trial:#}");
    assert_eq!(report["conclusion"]["close"], "fin");
    // A server of its own: calls of the levels above would still wait in that one.
    let server = serve(&["grpc"]);
    let url = at.replace("ADDRESS", &server.address);
    let fails = || overload(&url, &["-b", r#"{"status":14}"#, "--simple", "2"]);
    unless_disturbed(fails, |report| {
        let failed = &report["trials"][0]["outcomes"]["grpc_failed"];
        assert!(failed.as_u64() > Some(0), "{report:#}");
        let text = report["findings"].to_string();
        assert!(text.contains("received a gRPC status other than OK"), "{text}");
    });
}

#[test]
fn each_request_of_http2_has_a_connection() {
    let options = ["--http2-prior-knowledge", "--close", "rst"];
    let report = all_schemes(&["http"], "http://ADDRESS/", &options);
    let trial = &report["trials"][0];
    assert_eq!(trial["protocol"]["http"], "2", "{trial:#}");
    assert!(trial["connections_opened"].as_u64() >= trial["attempted"].as_u64(), "{trial:#}");
    assert_eq!(report["conclusion"]["close"], "rst");
}

const SLOW_DNS: [&str; 5] = ["dns", "--workers", "1", "--service", "2ms"];

#[test]
fn queries_over_tcp_have_connections() {
    let report = all_schemes(&SLOW_DNS, "dns+tcp://ADDRESS/www.example.com", &[]);
    assert_eq!(report["trials"][0]["protocol"]["application"], "DNS over TCP");
}

#[test]
fn queries_over_udp_have_no_connections() {
    let report = all_schemes(&SLOW_DNS, "dns://ADDRESS/www.example.com", &[]);
    assert_eq!(report["trials"][0]["protocol"]["application"], "DNS over UDP");
    let conclusion = &report["conclusion"];
    assert_eq!(
        (&conclusion["close"], &conclusion["syn_source"]),
        (&Value::Null, &"attempts".into())
    );
    assert_eq!(conclusion["simple"][0]["accept_queue_max"], Value::Null);
    let server = serve(&SLOW_DNS);
    let url = format!("dns://{}/www.example.com", server.address);
    let text = run(&["overload", &url, "--descriptors", "2,8", "-d", "300ms", "--full"]).stdout;
    assert!(text.contains("sent/s") && text.contains("answered + D/T"), "{text}");
    for word in ["SYN", "connect is", "closed with"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn truncated_answers_are_asked_for_over_tcp() {
    let server = ["dns", "--records", "40"];
    let report = served(&server, "dns://ADDRESS/www.example.com", &["--simple", "2"], 1);
    let trial = &report["trials"][0];
    assert!(trial["truncated_answers"].as_u64() > Some(0), "{trial:#}");
}

#[test]
fn sessions_ask_over_udp_from_a_port_each() {
    let server = serve(&["dns"]);
    let text = format!(
        "target: dns://{}\nsessions: {{s: {{steps: [{{get: '/a.example.com?type=A'}}, \
         {{get: '/b.example.com?type=A'}}]}}}}\n",
        server.address
    );
    let file = TempPath::with("overload-dns.yaml", &text);
    let report = overload(file.str(), &["--simple", "2", "--descriptors", "4"]).json();
    for trial in report["trials"].as_array().unwrap() {
        let attempts = &trial["sessions"]["attempts"];
        assert!(attempts["outcomes"]["served"].as_u64() > Some(0), "{attempts:#}");
    }
}

#[test]
fn silence_over_udp_is_no_connect_timeout() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("dns://{}/a", silent.local_addr().unwrap());
    let ended = overload(&url, &["--descriptors", "8", "--connect-timeout", "100ms"]);
    let report = ended.json();
    let outcomes = report["trials"][0]["outcomes"].as_object().unwrap();
    let mut ends = outcomes.iter().filter(|(_, count)| count.as_u64() > Some(0));
    assert!(ends.all(|(end, _)| end == "response_timeout"), "{outcomes:?}");
    let findings = report["findings"].as_array().unwrap();
    assert!(findings.iter().any(|f| f["code"] == "never_answers"), "{findings:?}");
}

#[test]
fn what_has_no_meaning_is_refused() {
    for (url, options, want) in [
        ("ws://h/", &["--simple", "1"][..], "a WebSocket carries many messages"),
        ("dns://h/a", &["--close", "rst"], "--close: over UDP there is no connection to close"),
    ] {
        let ended = overload(url, options);
        assert_eq!(ended.status, Some(2), "{url}: {ended:?}");
        assert!(ended.stderr.contains(want), "{url}: {}", ended.stderr);
    }
}
