//! Overload over other protocols than HTTP/1.1. Rates are not checked.

use crate::support::{Ended, KneeServer, TempPath, run};
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

/// The report of an overload whose every trial has an outcome for each attempt. Some were served: a
/// slow server may still be busy with a trial in the next.
fn served(ended: &Ended) -> Value {
    assert!(matches!(ended.status, Some(0 | 1 | 3)), "{ended:?}");
    let report = ended.json();
    let mut served = 0;
    for trial in report["trials"].as_array().unwrap() {
        let outcomes = trial["outcomes"].as_object().unwrap();
        let sum: u64 = outcomes.values().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(trial["attempted"], sum, "{}: {outcomes:?}", trial["label"]);
        served += outcomes.get("served").and_then(Value::as_u64).unwrap_or(0);
    }
    assert!(served > 0, "{ended:?}");
    report
}

/// Simple clients, S-Clients, and a schedule.
fn all_schemes(url: &str, options: &[&str]) -> Value {
    let scheduled = served(&overload(url, &[&["--rate", "50"], options].concat()));
    assert_eq!(scheduled["trials"].as_array().unwrap().len(), 1);
    let levels = ["--simple", "1,4", "--descriptors", "2,8"];
    let report = served(&overload(url, &[&levels, options].concat()));
    assert_eq!(report["trials"].as_array().unwrap().len(), 5, "and the base load again");
    report
}

#[test]
fn each_call_of_grpc_has_a_connection() {
    let server = serve(&["grpc", "--workers", "1", "--service", "2ms"]);
    let url = format!("grpc://{}/knee.Echo/Say", server.address);
    let report = all_schemes(&url, &["-b", r#"{"text":"hi"}"#]);
    let trial = &report["trials"][0];
    assert_eq!(trial["protocol"]["application"], "gRPC");
    assert!(trial["connections_opened"].as_u64() >= trial["attempted"].as_u64(), "{trial:#}");
    assert_eq!(report["conclusion"]["close"], "fin");
    let fails = overload(&url, &["-b", r#"{"status":14}"#, "--simple", "2"]);
    let report = fails.json();
    assert!(report["trials"][0]["outcomes"]["grpc_failed"].as_u64() > Some(0), "{report:#}");
    let text = report["findings"].to_string();
    assert!(text.contains("received a gRPC status other than OK"), "{text}");
}

#[test]
fn each_request_of_http2_has_a_connection() {
    let server = serve(&["http"]);
    let url = format!("http://{}/", server.address);
    let report = all_schemes(&url, &["--http2-prior-knowledge", "--close", "rst"]);
    let trial = &report["trials"][0];
    assert_eq!(trial["protocol"]["http"], "2", "{trial:#}");
    assert!(trial["connections_opened"].as_u64() >= trial["attempted"].as_u64(), "{trial:#}");
    assert_eq!(report["conclusion"]["close"], "rst");
}

#[test]
fn queries_over_tcp_have_connections() {
    let server = serve(&["dns", "--workers", "1", "--service", "2ms"]);
    let url = format!("dns+tcp://{}/www.example.com", server.address);
    let report = all_schemes(&url, &[]);
    assert_eq!(report["trials"][0]["protocol"]["application"], "DNS over TCP");
}

#[test]
fn queries_over_udp_have_no_connections() {
    let server = serve(&["dns", "--workers", "1", "--service", "2ms"]);
    let url = format!("dns://{}/www.example.com", server.address);
    let report = all_schemes(&url, &[]);
    assert_eq!(report["trials"][0]["protocol"]["application"], "DNS over UDP");
    let conclusion = &report["conclusion"];
    assert_eq!(
        (&conclusion["close"], &conclusion["syn_source"]),
        (&Value::Null, &"attempts".into())
    );
    assert_eq!(conclusion["simple"][0]["accept_queue_max"], Value::Null);
    let text = run(&["overload", &url, "--descriptors", "2,8", "-d", "300ms", "--full"]).stdout;
    assert!(text.contains("sent/s") && text.contains("answered + D/T"), "{text}");
    for word in ["SYN", "connect is", "closed with"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
}

#[test]
fn truncated_answers_are_asked_for_over_tcp() {
    let server = serve(&["dns", "--records", "40"]);
    let url = format!("dns://{}/www.example.com", server.address);
    let report = served(&overload(&url, &["--simple", "2"]));
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
