//! Servers that never stop sending, and servers that refuse what they were asked: the load ends in
//! time, and nothing that began is lost.

use crate::support::{KneeServer, run_load};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;

/// Sends `first` and then `again` for as long as the client takes it.
fn flood(first: &'static [u8], again: &'static [u8]) -> String {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || send_all(stream, first, &again.repeat(1 + 60_000 / again.len())));
        }
    });
    format!("http://127.0.0.1:{port}/")
}

fn send_all(mut stream: TcpStream, first: &[u8], again: &[u8]) {
    let asked = stream.read(&mut [0; 4_096]).is_ok_and(|n| n > 0);
    if asked && stream.write_all(first).is_ok() {
        while stream.write_all(again).is_ok() {}
    }
}

/// The trial of eight operations against a flood.
fn flooded(first: &'static [u8], again: &'static [u8], backend: &str) -> Value {
    let options = ["-n", "8", "-c", "2", "--timeout", "1s", "-t", "1", "--backend", backend];
    let ended = run_load(&flood(first, again), &options);
    ended.json()["trials"][0].clone()
}

#[test]
fn endless_framing_is_malformed() {
    const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let chunked = |rest: &str| -> &'static [u8] { format!("{CHUNKED}{rest}").leak().as_bytes() };
    let floods: [(&[u8], &[u8], &str); 4] = [
        (chunked("1;"), b"a", "chunk size"),
        (chunked("0\r\n"), b"a: b\r\n", "trailer"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "interim"),
        (b"", b"\r\n", "empty lines"),
    ];
    for backend in ["epoll", "io_uring"] {
        for (first, again, rule) in floods {
            let trial = flooded(first, again, backend);
            assert_eq!(trial["outcomes"]["malformed"], 8, "{rule}: {:#}", trial["outcomes"]);
            let because = trial["malformed_because"].as_str().unwrap();
            assert!(because.contains(rule), "{because}");
        }
    }
}

#[test]
fn endless_body_is_a_timeout() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 999999999999\r\n\r\n";
    for backend in ["epoll", "io_uring"] {
        let trial = flooded(head, b"body", backend);
        assert_eq!(trial["outcomes"]["timeout"], 8, "{:#}", trial["outcomes"]);
        let busy = trial["generator"]["busiest_worker_percent"].as_f64().unwrap();
        assert!(busy <= 100.0, "{busy} % of a core");
    }
}

/// The server permits fewer streams than a client opens before it knows that.
#[test]
fn streams_refused_before_the_limit_is_known_go_again() {
    for (limit, connections) in [("2", "1"), ("1", "3")] {
        let server = KneeServer::start(&["--streams", limit]);
        for backend in ["epoll", "io_uring"] {
            let load = ["-n", "200", "--vusers", "20", "-c", connections, "-t", "1"];
            let how = ["--http2-prior-knowledge", "--backend", backend];
            let report = run_load(&server.url(), &[&load[..], &how].concat()).json();
            let outcomes = &report["trials"][0]["outcomes"];
            assert_eq!(outcomes["ok"], 200, "{outcomes:#}");
        }
    }
}
