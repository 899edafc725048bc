use super::*;
use crate::sys::socket::{Address, Connect, Listener, RawAddress, Socket};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Instant;

const INTERVAL: Nanos = Nanos::from_millis(100);
const LONG: Nanos = Nanos::from_secs(60);

/// A watch of a window that begins at once; `None`, with a word, where no capture is permitted.
fn capture(address: SocketAddr) -> Option<PortWatch> {
    let watch = PortWatch::begin(address.port(), monotonic_ns(), INTERVAL, LONG);
    if watch.source() == SynSource::Capture {
        return Some(watch);
    }
    println!("skipped: {}", watch.because().unwrap_or_default());
    None
}

/// A listener that never accepts and whose accept queue is full, with what fills it.
fn full(host: &str) -> (SocketAddr, Listener, Vec<TcpStream>) {
    let any = RawAddress::new(&Address::Tcp(host.parse().unwrap())).unwrap();
    let listener = Listener::bind(&any, 1).unwrap();
    let Address::Tcp(address) = listener.local_address().unwrap() else {
        panic!("TCP was asked for");
    };
    let fill = (0..2).map(|_| TcpStream::connect(address).unwrap());
    let fill = fill.collect();
    (address, listener, fill)
}

fn attempt(address: SocketAddr) -> Socket {
    let raw = RawAddress::new(&Address::Tcp(address)).unwrap();
    let socket = Socket::new(&raw).unwrap();
    assert_eq!(socket.connect(&raw).unwrap(), Connect::InProgress);
    socket
}

#[test]
fn a_capture_sees_each_attempt_once() {
    for host in ["127.0.0.1:0", "[::1]:0"] {
        let listener = TcpListener::bind(host).unwrap();
        let address = listener.local_addr().unwrap();
        let Some(watch) = capture(address) else {
            return;
        };
        for _ in 0..100 {
            let client = TcpStream::connect(address).unwrap();
            let (server, _) = listener.accept().unwrap();
            drop(client);
            drop(server);
        }
        let observed = watch.finish();
        assert_eq!(observed.source, SynSource::Capture);
        assert_eq!((observed.first_syns, observed.repeated_syns), (100, 0), "{host}");
        assert_eq!(observed.client_ends, 100, "each client sent its FIN");
        assert_eq!(observed.first_syns_by_interval.iter().sum::<u64>(), 100);
        assert_eq!(observed.capture_lost, 0);
        assert!(observed.accept_queue_max.is_some());
        assert!(observed.kernel["TcpPassiveOpens"] >= 100);
        assert!(observed.elapsed_ns > 0 && observed.elapsed_ns < LONG.0);
    }
}

#[test]
fn a_window_that_is_told_of_late_misses_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    for because in [None, Some("a test")] {
        let port = address.port();
        let armed = because
            .map_or_else(|| ArmedWatch::new(port), |why| ArmedWatch::with_counters(port, why));
        let begin = monotonic_ns();
        let clients: Vec<_> = (0..20).map(|_| TcpStream::connect(address).unwrap()).collect();
        let watch = armed.begin(begin, INTERVAL, LONG);
        let source = watch.source();
        let observed = watch.finish();
        match source {
            SynSource::Capture => assert_eq!(observed.first_syns, 20),
            _ => assert!(observed.first_syns >= 20, "{observed:?}"),
        }
        assert!(observed.kernel["TcpPassiveOpens"] >= 20, "{observed:?}");
        drop(clients);
    }
}

#[test]
fn unanswered_attempts_are_counted_as_repeated() {
    let (address, _listener, _fill) = full("127.0.0.1:0");
    let Some(watch) = capture(address) else {
        return;
    };
    let attempts: Vec<Socket> = (0..20).map(|_| attempt(address)).collect();
    // The first retransmission comes after a second (RFC 6298).
    thread::sleep(Duration::from_millis(1800));
    let observed = watch.finish();
    drop(attempts);
    assert_eq!(observed.first_syns, 20);
    assert!(observed.repeated_syns >= 20, "{observed:?}");
    assert_eq!(observed.client_ends, 0);
    assert_eq!(observed.accept_queue_max, Some(2));
    assert!(observed.accept_queue_limit.is_none_or(|l| l == 1));
    assert!(observed.kernel["TcpExtListenOverflows"] >= 40);
}

/// What a capture sees of an attempt that timed out before it was answered.
#[test]
fn an_attempt_given_up_sent_one_syn_and_no_end() {
    for _ in 0..5 {
        let (address, _listener, _fill) = full("127.0.0.1:0");
        let Some(watch) = capture(address) else {
            return;
        };
        let begun = Instant::now();
        let given_up = attempt(address);
        thread::sleep(Duration::from_millis(300));
        drop(given_up);
        let took = begun.elapsed();
        thread::sleep(Duration::from_millis(100));
        let observed = watch.finish();
        // On a stalled machine the SYN was sent again meanwhile: another try.
        if took < Duration::from_millis(900) {
            assert_eq!((observed.first_syns, observed.repeated_syns), (1, 0));
            assert_eq!(observed.client_ends, 0, "neither FIN nor RST");
            return;
        }
    }
    panic!("the machine never kept 300 ms within 900 ms");
}

#[test]
fn only_what_comes_in_the_window_counts() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let begin = monotonic_ns() + 300_000_000;
    let duration = Nanos::from_millis(300);
    let watch = PortWatch::begin(address.port(), begin, Nanos::from_millis(100), duration);
    if watch.source() != SynSource::Capture {
        return println!("skipped: {}", watch.because().unwrap_or_default());
    }
    let (mut inside, mut unsure) = (0, 0);
    while monotonic_ns() < begin + 400_000_000 {
        let before = monotonic_ns();
        let _client = TcpStream::connect(address).unwrap();
        let _server = listener.accept().unwrap();
        let after = monotonic_ns();
        // The SYN came between the two; the clocks' difference is known to some microseconds.
        let slack = 1_000_000;
        let is_in = before >= begin + slack && after + slack < begin + duration.0;
        let is_out = after + slack < begin || before >= begin + duration.0 + slack;
        inside += u64::from(is_in);
        unsure += u64::from(!is_in && !is_out);
        thread::sleep(Duration::from_millis(2));
    }
    let observed = watch.finish();
    let seen = observed.first_syns;
    assert!(seen >= inside && seen <= inside + unsure, "{inside} {unsure} {observed:?}");
    assert_eq!(observed.elapsed_ns, duration.0);
    assert_eq!(observed.first_syns_by_interval.len(), 3);
    assert_eq!(observed.first_syns_by_interval.iter().sum::<u64>(), seen);
}

#[test]
fn counters_stand_for_a_capture() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let now = monotonic_ns();
    let armed = ArmedWatch::with_counters(address.port(), "the test says so");
    let watch = armed.begin(now, INTERVAL, LONG);
    assert_eq!(watch.source(), SynSource::Counters);
    let _clients: Vec<_> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
    let observed = watch.finish();
    assert_eq!(observed.because.as_deref(), Some("the test says so"));
    // Other tests connect at the same time: the counters are of all ports.
    assert!(observed.first_syns >= 50, "{observed:?}");
    assert_eq!(observed.first_syns_by_interval.iter().sum::<u64>(), observed.first_syns);
    assert_eq!((observed.repeated_syns, observed.client_ends), (0, 0));
    assert_eq!(observed.accept_queue_max, Some(50));
}

#[test]
fn a_window_of_no_length_and_one_that_is_over_are_empty() {
    for origin in [monotonic_ns(), monotonic_ns() + LONG.0, 0] {
        for because in [None, Some("a test")] {
            let zero = Nanos::ZERO;
            let armed =
                because.map_or_else(|| ArmedWatch::new(1), |why| ArmedWatch::with_counters(1, why));
            let observed = armed.begin(origin, zero, zero).finish();
            assert_eq!((observed.elapsed_ns, observed.first_syns), (0, 0));
        }
    }
}
