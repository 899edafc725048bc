//! HTTP/3: knee against its own server and against one that others wrote.

use crate::support::http_servers::{LARGE, SMALL};
use crate::support::http2_servers::Http2Kind;
use crate::support::{Certificates, KneeServer, TempPath, backends, measured, run};
use serde_json::{Value, json};
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

const REQUESTS: u64 = 200;

/// A server that speaks HTTP/3, and the certificate to trust.
fn serve(options: &[&str]) -> (KneeServer, String) {
    let server = KneeServer::start(&[&["--tls", "--http3"][..], options].concat());
    let certificate = server.certificate.clone().unwrap();
    (server, certificate)
}

/// A trial in which every request must succeed over HTTP/3.
fn trial(url: &str, options: &[&str]) -> Value {
    let count = REQUESTS.to_string();
    let load = ["--http3", "-n", &count, "-d", "60s", "--warmup", "0s", "--vusers", "4"];
    let report = measured(&[&["run", url][..], &load, options].concat());
    let trial = report["trials"][0].clone();
    let context = || format!("{url} {options:?}: {trial:#}");
    assert_eq!(trial["outcomes"], json!({ "ok": REQUESTS }), "{}", context());
    assert_eq!(trial["protocol"]["http"], "3", "{}", context());
    assert_eq!(trial["protocol"]["tls"]["agreed"]["version"], "1.3", "{}", context());
    assert_eq!(trial["protocol"]["tls"]["agreed"]["protocol"], "h3", "{}", context());
    trial
}

#[test]
fn own_server_counts_what_knee_sent() {
    let other = KneeServer::start(&[]);
    for backend in backends(&other.url()) {
        for connections in ["1", "4"] {
            let (server, certificate) = serve(&["--size", "20000"]);
            let options = ["--cacert", &certificate, "-c", connections, "--backend", backend];
            let trial = trial(&server.url(), &options);
            let received = trial["bytes_received"].as_u64().unwrap();
            assert!(received > REQUESTS * 20_000 && received < REQUESTS * 20_200, "{received}");
            let served = server.served();
            assert_eq!((&served["requests"], &served["responses"]), (&json!(200), &json!(200)));
            assert_eq!(served["errors"], json!({}));
        }
    }
}

#[test]
fn every_connection_that_resumes_a_session_brings_its_request() {
    let other = KneeServer::start(&[]);
    for backend in backends(&other.url()) {
        let (server, certificate) = serve(&["--tls-resume", "0rtt"]);
        let once = ["--cacert", &certificate, "--no-keepalive", "--tls-resume", "0rtt"];
        let trial = trial(&server.url(), &[&once[..], &["--backend", backend]].concat());
        let tls = &trial["protocol"]["tls"];
        assert_eq!(tls["early_data"]["taken"], tls["handshakes_resumed"], "{tls:#}");
        assert_eq!(tls["early_data"]["refused"], 0, "{tls:#}");
        // A connection that ends before its tickets came has none for the next.
        assert!(tls["early_data"]["taken"].as_u64() >= Some(20), "{tls:#}");
        assert_eq!(server.served()["responses"], REQUESTS);
    }
}

#[test]
fn bodies_arrive_whole() {
    let (server, certificate) = serve(&[]);
    let body = TempPath::with("http3-body", &"x".repeat(300_000));
    let body = format!("@{}", body.str());
    let trial = trial(&server.url(), &["--cacert", &certificate, "-b", &body]);
    assert!(trial["bytes_sent"].as_u64() >= Some(REQUESTS * 300_000), "{trial:#}");
    let served = server.served();
    assert_eq!(served["responses"], REQUESTS);
    assert_eq!(served["errors"], json!({}));
}

#[test]
fn sessions_are_resumed_or_not() {
    for (resume, resumed) in [("ticket", true), ("off", false)] {
        let (server, certificate) = serve(&[]);
        let options = ["--cacert", &certificate, "--no-keepalive", "--tls-resume", resume];
        let trial = trial(&server.url(), &options);
        let tls = &trial["protocol"]["tls"];
        let counts = [&tls["handshakes_full"], &tls["handshakes_resumed"]];
        let [full, again] = counts.map(|count| count.as_u64().unwrap());
        assert_eq!((full + again, again > 0), (REQUESTS, resumed), "{tls:#}");
    }
}

#[test]
fn a_station_has_its_queue_over_http3() {
    let (server, certificate) = serve(&["--workers", "2", "--service", "fixed(2ms)"]);
    let trial = trial(&server.url(), &["--cacert", &certificate, "-c", "1"]);
    // Two workers with 2 ms each serve 1,000 requests in a second.
    let per_s = trial["throughput_per_s"].as_f64().unwrap();
    assert!(per_s > 0.0 && per_s < 1_100.0, "{per_s}");
    assert_eq!(server.served()["responses"], REQUESTS);
}

#[test]
fn faults_of_the_server_have_their_outcomes() {
    for (fault, outcome) in [
        ("reset(1)", "stream_reset"),
        ("truncate(1)", "stream_reset"),
        ("garbage(1)", "malformed"),
        ("error(1,503)", "http_5xx"),
    ] {
        let (server, certificate) = serve(&["--fault", fault]);
        let report = measured(&[
            "run",
            &server.url(),
            "--http3",
            "--cacert",
            &certificate,
            "-n",
            "20",
            "-d",
            "20s",
            "--warmup",
            "0s",
            "--vusers",
            "2",
        ]);
        let outcomes = &report["trials"][0]["outcomes"];
        assert_eq!(outcomes[outcome], 20, "{fault}: {outcomes}");
    }
}

#[test]
fn an_overload_opens_a_connection_for_each_request() {
    let (server, certificate) = serve(&[]);
    let load = ["-d", "400ms", "--warmup", "200ms", "--timeout", "3s", "--seed", "1"];
    let options = ["--http3", "--cacert", &certificate, "--simple", "2"];
    let report = measured(&[&["overload", &server.url()][..], &load, &options].concat());
    for trial in report["trials"].as_array().unwrap() {
        let outcomes = trial["outcomes"].as_object().unwrap();
        let sum: u64 = outcomes.values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!(trial["attempted"], sum);
        assert!(outcomes["served"].as_u64() > Some(0), "{outcomes:?}");
        assert!(trial["connections_opened"].as_u64() >= trial["attempted"].as_u64(), "{trial:#}");
    }
}

/// One line, and exit code 4, before any load.
#[test]
fn a_server_without_http3_is_told_before_the_load() {
    let server = KneeServer::start(&["--tls"]);
    let certificate = server.certificate.clone().unwrap();
    let (with, trusted) = serve(&[]);
    for (url, options, told) in [
        (server.url(), vec!["--cacert", &certificate], "no server listens on this UDP port"),
        (with.url(), vec![], "an issuer that is not trusted here"),
        (with.url(), vec!["--cacert", &trusted, "--sni", "other.example"], "other.example"),
    ] {
        let load = ["--http3", "-n", "5", "--connect-timeout", "2s"];
        let ended = run(&[&["run", &url][..], &load, &options].concat());
        assert_eq!(ended.status, Some(4), "{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
        assert!(ended.stderr.contains(told), "{}: {told}", ended.stderr);
    }
}

#[test]
fn options_that_do_not_fit_are_refused() {
    for (options, told) in [
        (vec!["run", "http://127.0.0.1:9/", "--http3"], "write https://"),
        (vec!["run", "https://127.0.0.1:9/", "--http3", "--tls-max", "1.2"], "TLS 1.3"),
        (vec!["run", "https://127.0.0.1:9/", "--http3", "--proxy", "http://127.0.0.1:8"], "proxy"),
        (vec!["run", "https://127.0.0.1:9/", "--http3", "--http2"], "--http2"),
        (vec!["run", "wss://127.0.0.1:9/", "--http3"], "--http3"),
        (vec!["run", "http://127.0.0.1:9/", "--http3-if-offered"], "write https://"),
        (vec!["run", "https://127.0.0.1:9/", "--http3-if-offered", "--http3"], "--http3"),
        (vec!["overload", "https://127.0.0.1:9/", "--http3-if-offered"], "give --http3"),
        (vec!["serve", "http", "--http3"], "--tls"),
        (vec!["serve", "http", "--tls", "--http3", "--fault", "slow(10)"], "slow"),
    ] {
        let ended = run(&options);
        assert_eq!(ended.status, Some(2), "{options:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(told), "{options:?}: {}", ended.stderr);
    }
}

#[test]
fn caddy() {
    let certificates = Certificates::new();
    let Some(server) = Http2Kind::Caddy.start(Some(&certificates)) else {
        return;
    };
    for connections in ["1", "4"] {
        let options = ["--cacert", certificates.authority.str(), "-c", connections];
        for (file, size) in [("small", SMALL), ("large", LARGE)] {
            let trial = trial(&server.secure_url(file), &options);
            let beside = trial["bytes_received"].as_u64().unwrap() - REQUESTS * size;
            assert!(beside > REQUESTS * 20 && beside < REQUESTS * 1_500, "{beside}");
            let packets = &trial["protocol"]["packets"];
            assert_eq!(packets["responses"], REQUESTS, "{packets}");
            assert!(packets["sent"].as_u64() > Some(0), "{packets}");
        }
    }
}

/// Caddy names its HTTP/3 in `Alt-Svc`; the built-in server without HTTP/3 names none.
#[test]
fn an_offer_of_http3_is_followed() {
    let load = ["--http3-if-offered", "-n", "20", "-d", "20s", "--warmup", "0s", "-c", "1"];
    let version = |url: &str, certificate: &str| {
        let report = measured(&[&["run", url, "--cacert", certificate][..], &load].concat());
        let trial = &report["trials"][0];
        assert_eq!(trial["outcomes"], json!({ "ok": 20 }), "{url}: {trial:#}");
        trial["protocol"]["http"].as_str().unwrap().to_owned()
    };
    let server = KneeServer::start(&["--tls"]);
    assert_eq!(version(&server.url(), &server.certificate.clone().unwrap()), "2");
    let certificates = Certificates::new();
    if let Some(caddy) = Http2Kind::Caddy.start(Some(&certificates)) {
        assert_eq!(version(&caddy.secure_url("small"), certificates.authority.str()), "3");
    }
}

/// Passes the datagrams of a client on to a server and back, until it is dropped. Of those to the
/// server it drops one of `one_of`, after the first ones.
struct LossyPath {
    port: u16,
    dropped: Arc<AtomicU64>,
    is_over: Arc<AtomicBool>,
}

impl LossyPath {
    fn to(server: SocketAddr, one_of: u64) -> LossyPath {
        // The handshake before the load, and that of the load.
        const PASSED_FIRST: u64 = 20;
        let outer = UdpSocket::bind("127.0.0.1:0").unwrap();
        let inner = UdpSocket::bind("127.0.0.1:0").unwrap();
        inner.connect(server).unwrap();
        for socket in [&outer, &inner] {
            socket.set_read_timeout(Some(Duration::from_millis(50))).unwrap();
        }
        let path = LossyPath {
            port: outer.local_addr().unwrap().port(),
            dropped: Arc::default(),
            is_over: Arc::default(),
        };
        let client = Arc::new(Mutex::new(None::<SocketAddr>));
        let (answers, to_client) = (inner.try_clone().unwrap(), outer.try_clone().unwrap());
        let (last_client, is_over) = (Arc::clone(&client), Arc::clone(&path.is_over));
        thread::spawn(move || {
            let mut buffer = [0; 65_536];
            while !is_over.load(Relaxed) {
                let received = answers.recv(&mut buffer);
                if let (Ok(count), Some(client)) = (received, *last_client.lock().unwrap()) {
                    let _ = to_client.send_to(&buffer[..count], client);
                }
            }
        });
        let (dropped, is_over) = (Arc::clone(&path.dropped), Arc::clone(&path.is_over));
        thread::spawn(move || {
            let (mut buffer, mut received) = ([0; 65_536], 0);
            while !is_over.load(Relaxed) {
                let Ok((count, sender)) = outer.recv_from(&mut buffer) else { continue };
                *client.lock().unwrap() = Some(sender);
                received += 1;
                if received > PASSED_FIRST && received % one_of == 0 {
                    dropped.fetch_add(1, Relaxed);
                } else {
                    let _ = inner.send(&buffer[..count]);
                }
            }
        });
        path
    }
}

impl Drop for LossyPath {
    fn drop(&mut self) {
        self.is_over.store(true, Relaxed);
    }
}

#[test]
fn lost_packets_are_counted_and_told() {
    let (server, certificate) = serve(&[]);
    let path = LossyPath::to(server.address.parse().unwrap(), 15);
    let url = format!("https://127.0.0.1:{}/", path.port);
    let report = trial(&url, &["--cacert", &certificate, "-c", "1"]);
    let packets = &report["protocol"]["packets"];
    let (lost, dropped) = (packets["lost"].as_u64().unwrap(), path.dropped.load(Relaxed));
    // The loss of the last ones is not known before the end.
    assert!(dropped > 3 && lost + 3 >= dropped, "{dropped}: {packets}");
    assert!(packets["responses_beside_loss"].as_u64() > Some(0), "{packets}");
}
