//! knee over TLS against nginx: the counts, the bytes and what was agreed on are what nginx says.

use crate::support::http_servers::{HttpServer, SMALL};
use crate::support::http2_servers::Nginx;
use crate::support::{Certificates, KneeServer, backends, measured};
use serde_json::{Value, json};

const REQUESTS: u64 = 200;

/// A trial of [`REQUESTS`] requests that must all succeed, as in the report.
fn trial(server: &HttpServer, certificates: &Certificates, options: &[&str]) -> Value {
    let url = server.secure_url("small");
    let count = REQUESTS.to_string();
    let load = ["-n", &count, "-d", "60s", "--warmup", "0s"];
    let trust = ["--cacert", certificates.authority.str()];
    let report = measured(&[&["run", &url], &load[..], &trust, options].concat());
    let trial = report["trials"][0].clone();
    assert_eq!(trial["outcomes"], json!({ "ok": REQUESTS }), "{trial:#}");
    assert_eq!(trial["attempted"], REQUESTS, "{trial:#}");
    trial
}

/// A line of the access log.
struct Logged {
    http: String,
    status: u64,
    bytes: u64,
    body: u64,
    resumed: bool,
    early: bool,
}

/// What nginx logged since the last time, once it has logged all that knee asked for.
fn logged(server: &HttpServer) -> Vec<Logged> {
    let begun = std::time::Instant::now();
    let patience = std::time::Duration::from_secs(5);
    let mut text = String::new();
    while text.lines().count() < 200 && begun.elapsed() < patience {
        std::thread::sleep(std::time::Duration::from_millis(20));
        text = server.site.read("access");
    }
    text.lines()
        .map(|line| {
            let words: Vec<&str> = line.split(' ').collect();
            let number = |i: usize| words[i].parse().unwrap();
            Logged {
                http: words[0].to_string(),
                status: number(1),
                bytes: number(2),
                body: number(3),
                resumed: words[4] == "r",
                early: words[5] == "1",
            }
        })
        .collect()
}

#[test]
fn every_request_and_byte_over_both_versions_of_http_and_of_tls() {
    let certificates = Certificates::new();
    for (http_option, http, alpn) in [("--http1.1", "1.1", "http/1.1"), ("--http2", "2", "h2")] {
        for tls in ["1.2", "1.3"] {
            let Some(server) = Nginx::PLAIN.start(&certificates) else {
                return;
            };
            let options = ["-c", "4", http_option, "--tls-min", tls, "--tls-max", tls];
            let trial = trial(&server, &certificates, &options);
            let context = format!("HTTP/{http}, TLS {tls}: {:#}", trial["protocol"]);
            let log = logged(&server);
            assert_eq!(log.len() as u64, REQUESTS, "{context}");
            assert!(log.iter().all(|l| l.status == 200 && l.body == SMALL), "{context}");
            let version = if http == "2" { "HTTP/2.0" } else { "HTTP/1.1" };
            assert!(log.iter().all(|l| l.http == version), "{context}");
            let sent: u64 = log.iter().map(|l| l.bytes).sum();
            assert_eq!(trial["bytes_received"], sent, "{context}");

            let protocol = &trial["protocol"];
            assert_eq!(protocol["http"], http, "{context}");
            let (counts, agreed) = (&protocol["tls"], &protocol["tls"]["agreed"]);
            assert_eq!(agreed["version"], tls, "{context}");
            assert_eq!(agreed["protocol"], alpn, "{context}");
            let cipher = agreed["cipher"].as_str().unwrap();
            assert_eq!(cipher.starts_with("TLS13_"), tls == "1.3", "{context}");
            assert_eq!(agreed["group"], "X25519", "{context}");
            assert_eq!(counts["handshakes_full"], 4, "{context}");
            assert_eq!(counts["handshakes_resumed"], 0, "{context}");
            assert_eq!(counts["handshakes_failed"], 0, "{context}");
            assert_eq!(trial["connections_opened"], 4, "{context}");
        }
    }
}

#[test]
fn sessions_are_resumed_by_ticket_and_not_where_that_is_off() {
    let certificates = Certificates::new();
    for tls in ["1.2", "1.3"] {
        for (how, http) in [("ticket", "--http1.1"), ("off", "--http1.1")] {
            let Some(server) = Nginx::PLAIN.start(&certificates) else {
                return;
            };
            let options =
                ["-c", "4", http, "--no-keepalive", "--tls-resume", how, "--tls-max", tls];
            let trial = trial(&server, &certificates, &options);
            let agreed = &trial["protocol"]["tls"];
            let context = format!("TLS {tls}, {how}: {agreed:#}");
            let count = |name: &str| agreed[name].as_u64().unwrap();
            let (full, resumed) = (count("handshakes_full"), count("handshakes_resumed"));
            assert_eq!(full + resumed, REQUESTS, "{context}");
            let log = logged(&server);
            let said = log.iter().filter(|l| l.resumed).count() as u64;
            assert_eq!(said, resumed, "{context}");
            match how {
                // Each of the four may open its first before there is a ticket.
                "ticket" => assert!(resumed >= REQUESTS - 20, "{context}"),
                _ => assert_eq!(resumed, 0, "{context}"),
            }
        }
    }
}

/// What a trial says of early data.
fn early_data(trial: &Value) -> [u64; 2] {
    let told = &trial["protocol"]["tls"]["early_data"];
    ["taken", "refused"].map(|name| told[name].as_u64().unwrap())
}

#[test]
fn requests_come_with_the_handshake_where_nginx_takes_them_so() {
    let certificates = Certificates::new();
    let takes = Nginx { more: "ssl_early_data on;", ..Nginx::PLAIN };
    let options = ["-c", "2", "--no-keepalive", "--tls-resume", "0rtt"];
    let backends = backends(&KneeServer::start(&[]).url());
    for http in ["--http1.1", "--http2"] {
        for &backend in &backends {
            let Some(server) = takes.start(&certificates) else {
                return;
            };
            let how = [http, "--backend", backend];
            let trial = trial(&server, &certificates, &[&options[..], &how].concat());
            let context = format!("{http} {backend}: {:#}", trial["protocol"]["tls"]);
            let log: Vec<_> = logged(&server);
            let said = log.iter().filter(|l| l.early).count() as u64;
            let [taken, refused] = early_data(&trial);
            // Where the handshake is over before nginx reads it, the request is not called early.
            assert!(said > 0 && said <= taken, "{said}: {context}");
            // Each full handshake gives two tickets.
            assert!(taken >= REQUESTS / 2, "{context}");
            assert_eq!(refused, 0, "{context}");
            let bytes: u64 = log.iter().map(|l| l.bytes).sum();
            assert_eq!(trial["bytes_received"], bytes, "{context}");
        }
    }
    let Some(server) = Nginx::PLAIN.start(&certificates) else {
        return;
    };
    let trial = trial(&server, &certificates, &options);
    assert_eq!(early_data(&trial), [0, 0], "it permits none");
}

#[test]
fn a_connection_that_nginx_ends_after_fifty_requests_costs_none() {
    let certificates = Certificates::new();
    let nginx = Nginx { requests: 50, ..Nginx::PLAIN };
    for (http, users) in [("--http2", "8"), ("--http2", "2")] {
        let Some(server) = nginx.start(&certificates) else {
            return;
        };
        let options = ["-c", "2", "--vusers", users, http];
        let trial = trial(&server, &certificates, &options);
        let opened = trial["connections_opened"].as_u64().unwrap();
        assert!((4..=12).contains(&opened), "{http}, {users} users: {opened} connections");
        let log = logged(&server);
        assert_eq!(log.len() as u64, REQUESTS, "{http}, {users} users");
        assert!(log.iter().all(|l| l.body == SMALL));
    }
}
