//! Client and observer over loopback.

use super::wire::{self, ObserverRequest};
use super::*;
use crate::control::{HelloReply, line};
use crate::error::RunError;
use crate::sys::clock::monotonic_ns;
use knee_load::measure::SynSource;
use knee_load::time::Nanos;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const LONG: Nanos = Nanos::from_secs(60);
const INTERVAL: Nanos = Nanos::from_millis(100);

fn observer(port: u16, token: Option<&str>) -> (ObserveServer, String) {
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = ObserveServer::start(listen, port, token.map(str::to_owned)).unwrap();
    let at = server.address().to_string();
    (server, at)
}

fn service() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Once the observer has seen that its client is gone.
fn connect_in_time(at: &str) -> ObserverClient {
    connect_with(at, None)
}

fn connect_with(at: &str, token: Option<&str>) -> ObserverClient {
    let begun = Instant::now();
    loop {
        match ObserverClient::connect(at, token) {
            Ok(watch) => return watch,
            Err(e) if begun.elapsed() > Duration::from_secs(20) => panic!("{e}"),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    }
}

fn why(result: Result<ObserverClient, RunError>) -> String {
    result.expect_err("it refuses").to_string()
}

/// What comes back for some bytes, until the observer closes.
fn say(at: &str, bytes: &[u8]) -> Vec<String> {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // It may close before it has read all.
    let _ = stream.write_all(bytes);
    BufReader::new(stream).lines().map_while(Result::ok).collect()
}

#[test]
fn windows_are_watched_one_after_another() {
    let (listener, address) = service();
    let (server, at) = observer(address.port(), None);
    let mut watch = ObserverClient::connect(&at, None).unwrap();
    assert_eq!(watch.port(), address.port());
    for attempts in [7, 30] {
        watch.arm().unwrap();
        let begin = monotonic_ns();
        for _ in 0..attempts {
            let _client = TcpStream::connect(address).unwrap();
            listener.accept().unwrap();
        }
        // Late, and nothing is missed.
        watch.begin(begin, INTERVAL, LONG).unwrap();
        let observed = watch.finish().unwrap();
        assert_eq!(observed.source, watch.source());
        match observed.source {
            SynSource::Capture => assert_eq!(observed.first_syns, attempts),
            _ => assert!(observed.first_syns >= attempts && observed.because.is_some()),
        }
    }
    drop(watch);
    drop(connect_in_time(&at));
    let stats = server.stop();
    assert_eq!((stats.clients, stats.windows), (2, 2));
}

#[test]
fn one_client_at_a_time() {
    let (server, at) = observer(1, None);
    let first = ObserverClient::connect(&at, None).unwrap();
    let refused = why(ObserverClient::connect(&at, None));
    assert!(refused.contains(&at) && refused.contains("busy"), "{refused}");
    // One that says nothing takes no place.
    let _silent = TcpStream::connect(&at).unwrap();
    drop(first);
    connect_in_time(&at);
    assert!(server.stop().refused >= 1);
}

/// More connections than wait at once. None of them sends anything, and each stays.
#[test]
fn idle_connections_keep_no_client_out() {
    let (server, at) = observer(1, Some("secret"));
    let _idle: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&at).unwrap()).collect();
    for _ in 0..3 {
        let mut watch = connect_with(&at, Some("secret"));
        watch.arm().unwrap();
        // Neither do those that come while it is served put it out.
        let _more: Vec<TcpStream> = (0..40).map(|_| TcpStream::connect(&at).unwrap()).collect();
        watch.begin(monotonic_ns(), INTERVAL, LONG).unwrap();
        watch.finish().unwrap();
    }
    let stats = server.stop();
    assert_eq!((stats.clients, stats.windows), (3, 3));
    assert!(stats.refused >= 100, "{stats:?}");
}

fn observer_with(first_s: u64, idle_s: u64) -> (ObserveServer, String) {
    let place =
        server::HoldLimits { first: Nanos::from_secs(first_s), idle: Nanos::from_secs(idle_s) };
    let listen = "127.0.0.1:0".parse().unwrap();
    let server = ObserveServer::start_with(listen, 1, None, place).unwrap();
    let at = server.address().to_string();
    (server, at)
}

/// As long as it has not asked for anything, and longer than a request may take after it has.
#[test]
fn a_client_that_asks_for_nothing_gives_its_place_to_another() {
    let (_server, at) = observer_with(0, 600);
    let _silent = ObserverClient::connect(&at, None).unwrap();
    let mut watch = ObserverClient::connect(&at, None).unwrap();
    watch.arm().unwrap();
    // The place of one that has asked is its own.
    let refused = why(ObserverClient::connect(&at, None));
    assert!(refused.contains("busy"), "{refused}");
    watch.begin(monotonic_ns(), INTERVAL, LONG).unwrap();
    watch.finish().unwrap();

    // Neither has one to go that came just now.
    let (_server, at) = observer_with(600, 0);
    let mut first = ObserverClient::connect(&at, None).unwrap();
    let refused = why(ObserverClient::connect(&at, None));
    assert!(refused.contains("busy"), "{refused}");
    first.arm().unwrap();
    let mut next = ObserverClient::connect(&at, None).unwrap();
    next.arm().unwrap();
    let gone = first.begin(monotonic_ns(), INTERVAL, LONG);
    assert!(gone.is_err(), "its place is another's");
    // Whoever watches is not idle, however quiet.
    next.begin(monotonic_ns(), INTERVAL, LONG).unwrap();
    let refused = why(ObserverClient::connect(&at, None));
    assert!(refused.contains("busy"), "{refused}");
    next.finish().unwrap();
}

#[test]
fn a_client_that_vanishes_makes_room() {
    let (_server, at) = observer(1, None);
    let mut watch = ObserverClient::connect(&at, None).unwrap();
    watch.arm().unwrap();
    watch.begin(monotonic_ns(), INTERVAL, LONG).unwrap();
    drop(watch);
    let mut next = connect_in_time(&at);
    let refused = next.finish().unwrap_err().to_string();
    assert!(refused.contains("nothing was begun"), "{refused}");
}

#[test]
fn a_token_is_needed_beyond_loopback_and_has_to_be_right() {
    let beyond = "0.0.0.0:0".parse().unwrap();
    for token in [None, Some(String::new())] {
        let refused = ObserveServer::start(beyond, 1, token).expect_err("no token");
        assert!(refused.to_string().contains("token"));
    }
    ObserveServer::start(beyond, 1, Some("secret".to_owned())).unwrap();
    let (_server, at) = observer(1, Some("secret"));
    for token in [None, Some(""), Some("secreT"), Some("secret1")] {
        let refused = why(ObserverClient::connect(&at, token));
        assert!(refused.contains("refuses: wrong token"), "{refused}");
    }
    ObserverClient::connect(&at, Some("secret")).unwrap();
}

#[test]
fn garbage_is_refused_and_the_next_is_served() {
    let (server, at) = observer(1, None);
    let greeting = wire::Hello::new(wire::SERVICE, "");
    let hello = line(&ObserverRequest::Hello(greeting.clone()));
    let other = line(&ObserverRequest::Hello(wire::Hello { version: 99, ..greeting }));
    let long = vec![b'x'; 3 * wire::ASK_MAX];
    let now = monotonic_ns();
    let begin = |at_ns| line(&ObserverRequest::Begin { at_ns, interval_ns: 1, duration_ns: 1 });
    let after_hello = |rest: &[u8]| [&hello, rest].concat();
    for (what, bytes, expected) in [
        ("no JSON", b"GET / HTTP/1.1\r\n\r\n".to_vec(), "expected a request"),
        ("no hello", b"{\"ask\":\"finish\"}\n".to_vec(), "expected hello"),
        ("another version", other, "version"),
        ("a long line", long, "at most 4096 bytes"),
        ("garbage later", after_hello(b"\0\n"), "expected a request"),
        ("hello twice", after_hello(&hello), "already"),
        ("nothing to finish", after_hello(b"{\"ask\":\"finish\"}\n"), "nothing was begun"),
        ("nothing armed", after_hello(&begin(now)), "nothing was armed"),
        ("a far begin", after_hello(&begin(u64::MAX)), "within an hour"),
    ] {
        let begun = Instant::now();
        let mut replies = say(&at, &bytes);
        // The one before may not have left yet.
        while replies.last().is_some_and(|r| r.contains("busy")) {
            assert!(begun.elapsed() < Duration::from_secs(20), "{what}");
            replies = say(&at, &bytes);
        }
        let last = replies.last().expect("an answer");
        match serde_json::from_str(last) {
            Ok(HelloReply::<()>::Refused { reason }) => {
                assert!(reason.contains(expected), "{what}: {reason}");
            }
            other => panic!("{what}: {other:?}"),
        }
    }
    connect_in_time(&at);
    drop(server);
}

#[test]
fn an_observer_that_is_none_is_told() {
    // Nobody there.
    let (listener, address) = service();
    drop(listener);
    let refused = why(ObserverClient::connect(&address.to_string(), None));
    assert!(refused.contains("refused"), "{refused}");
    // Somebody else there.
    for answer in ["HTTP/1.1 400 Bad Request\r\n\r\n", "{\"say\":\"begun\"}\n", ""] {
        let (listener, address) = service();
        let other = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            // Read before it closes, so that it does not reset.
            let _ = BufReader::new(&stream).read_line(&mut String::new());
        });
        let refused = why(ObserverClient::connect(&address.to_string(), None));
        assert!(refused.contains(&address.to_string()), "{refused}");
        other.join().unwrap();
    }
}

#[test]
fn the_place_to_observe_from_is_chosen() {
    let (_listener, address) = service();
    let mut here = watch_for(address, None, None).unwrap().expect("loopback is here");
    here.arm();
    here.begin(monotonic_ns(), INTERVAL, LONG);
    assert_ne!(here.finish().source, SynSource::Attempts);
    assert!(here.finish().because.is_some(), "nothing was begun");
    // Of the addresses for documentation (RFC 5737) this host has none.
    let elsewhere = "192.0.2.1:80".parse().unwrap();
    assert!(watch_for(elsewhere, None, None).unwrap().is_none());

    let (server, at) = observer(address.port(), None);
    let other = SocketAddr::from(([127, 0, 0, 1], 9));
    let refused = watch_for(other, Some(&at), None).unwrap_err().to_string();
    assert!(refused.contains("--port 9"), "{refused}");
    drop(connect_in_time(&at));
    let begun = Instant::now();
    let mut there = loop {
        match watch_for(address, Some(&at), None) {
            Ok(there) => break there.expect("it was named"),
            Err(e) => assert!(begun.elapsed() < Duration::from_secs(20), "{e}"),
        }
    };
    there.arm();
    there.begin(monotonic_ns(), INTERVAL, LONG);
    // It ends in the middle: the trial goes on, and the result says what was not seen.
    drop(server);
    let observed = there.finish();
    assert_eq!(observed.source, SynSource::Attempts);
    assert!(observed.because.is_some_and(|why| why.contains(&at)));
}
