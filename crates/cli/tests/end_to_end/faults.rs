//! Each way in which a server goes wrong is an outcome of its own.

use crate::support::{KneeServer, backends, measured, run_impatiently};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

const REQUESTS: u64 = 200;

/// About half of the requests meet the fault; the server says which.
#[test]
fn every_fault_is_told_by_its_name() {
    for backend in backends(&KneeServer::start(&[]).url()) {
        for (fault, name, outcome) in [
            ("reset(0.5)", "reset", "reset"),
            ("truncate(0.5)", "truncate", "truncated"),
            ("garbage(0.5)", "garbage", "malformed"),
            ("error(0.5,503)", "error", "http_5xx"),
            ("error(0.5,404)", "error", "http_4xx"),
        ] {
            let server = KneeServer::start(&["--fault", fault]);
            let url = server.url();
            let n = REQUESTS.to_string();
            let report = measured(&["run", &url, "-n", &n, "-c", "4", "--backend", backend]);
            let trial = &report["trials"][0];
            let served = server.served();
            let struck = served["faults"][name].as_u64().unwrap();
            assert!((50..150).contains(&struck), "{backend} {fault}: {struck}");
            let outcomes = &trial["outcomes"];
            assert_eq!(outcomes[outcome], struck, "{backend} {fault}: {outcomes:#}");
            assert_eq!(outcomes["ok"], REQUESTS - struck, "{backend} {fault}: {outcomes:#}");
            assert_eq!(trial["attempted"], REQUESTS, "{backend} {fault}");
            let because = trial["malformed_because"].as_str();
            assert_eq!(because.is_some(), outcome == "malformed", "{because:?}");
            assert_eq!(served["requests"], REQUESTS, "{backend} {fault}: none is sent twice");
        }
    }
}

#[test]
fn a_stream_that_is_reset_is_told_with_what_the_server_said() {
    let server = KneeServer::start(&["--fault", "reset(0.5)"]);
    let url = server.url();
    let report = measured(&["run", &url, "-n", "100", "--http2-prior-knowledge"]);
    let trial = &report["trials"][0];
    let struck = &server.served()["faults"]["reset"];
    assert_eq!(&trial["outcomes"]["stream_reset"], struck);
    let because = &trial["stream_reset_because"];
    assert_eq!(because, "RST_STREAM with INTERNAL_ERROR");
}

#[test]
fn other_protocol_that_nobody_asked_for_is_malformed() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let head = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n";
            thread::spawn(move || {
                let mut request = [0; 4_096];
                while stream.read(&mut request).is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(head);
                }
            });
        }
    });
    let asks = ["-H", "Connection: upgrade", "-H", "Upgrade: x"];
    for (more, outcome) in [(&[][..], "malformed"), (&asks, "ok")] {
        let load = ["run", &url, "-n", "8", "-c", "2", "--timeout", "20s"];
        let report = measured(&[&load[..], more].concat());
        let trial = &report["trials"][0];
        assert_eq!(trial["outcomes"][outcome], 8, "{:#}", trial["outcomes"]);
        let because = trial["malformed_because"].as_str();
        assert_eq!(because.is_some_and(|rule| rule.contains("101")), more.is_empty());
    }
}

/// 2,000 bytes at 20,000 per second take 100 ms.
#[test]
fn a_body_that_trickles_is_waited_for() {
    for backend in backends(&KneeServer::start(&[]).url()) {
        let server = KneeServer::start(&["--size", "2000", "--fault", "slow(20000)"]);
        let report = measured(&["run", &server.url(), "-n", "8", "-c", "4", "--backend", backend]);
        let trial = &report["trials"][0];
        assert_eq!(trial["outcomes"]["ok"], 8, "{backend}");
        let times = &trial["response_time_ns"];
        // It is a range where the host held the generator up.
        let min = times["min"].as_u64();
        assert!(min.is_none_or(|ns| ns > 70_000_000), "{backend}: {times:#}");
    }
}

/// Bytes that keep coming put no timeout off: it counts from the intended time.
#[test]
fn a_body_that_trickles_for_too_long_is_a_timeout() {
    for backend in backends(&KneeServer::start(&[]).url()) {
        let server = KneeServer::start(&["--size", "2000", "--fault", "slow(1000)"]);
        let url = server.url();
        let ended = run_impatiently(&url, backend);
        // 3 where the host held the generator up meanwhile.
        let is_told = matches!(ended.status, Some(1 | 3));
        assert!(is_told, "not one response: {ended:?}");
        let report = ended.json();
        assert_eq!(report["trials"][0]["outcomes"]["timeout"], 8, "{backend}");
        // One whose time is up before it has a connection is not sent.
        let served = server.served()["requests"].as_u64();
        assert!(served.is_some_and(|served| (1..=8).contains(&served)), "{backend}: {served:?}");
    }
}
