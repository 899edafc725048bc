//! The server over real sockets. Nothing here depends on how fast the machine is: a response may
//! come late, never early.

mod http2;
mod http2_frames;
mod secure;
mod shop;

use super::*;
use knee_load::law::Law;
use knee_load::time::Nanos;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const GET_CLOSE: &str = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

/// Far beyond what any response takes: a test that would hang fails instead.
const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));

fn spec() -> HttpServerSpec {
    HttpServerSpec {
        listen: Address::Tcp("127.0.0.1:0".parse().unwrap()),
        body_size: 100,
        ..HttpServerSpec::default()
    }
}

fn with_fault(fault: Fault) -> HttpServer {
    let faults = vec![fault];
    start(HttpServerSpec { faults, ..spec() }).unwrap()
}

fn with_station(workers: u32, service_ms: u64) -> HttpServerSpec {
    HttpServerSpec {
        workers: Some(workers),
        service: Law::Fixed(Nanos::from_millis(service_ms)),
        ..spec()
    }
}

fn connect(server: &HttpServer) -> TcpStream {
    let Address::Tcp(address) = server.address() else {
        panic!("a TCP server");
    };
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(PATIENCE).unwrap();
    stream.set_write_timeout(PATIENCE).unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Reads one response by its Content-Length: status, head, body.
fn read_response(stream: &mut impl Read, has_body: bool) -> (u16, String, Vec<u8>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("the rest of the head");
        head.push(byte[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let field = head.lines().find_map(|l| l.strip_prefix("Content-Length: "));
    let length = field.filter(|_| has_body).map_or(0, |l| l.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).expect("the rest of the body");
    (head[9..12].parse().unwrap(), head, body)
}

fn get_ok(stream: &mut (impl Read + Write)) {
    stream.write_all(GET.as_bytes()).unwrap();
    let (status, _, body) = read_response(stream, true);
    assert_eq!((status, body.len()), (200, 100));
}

fn read_to_end(stream: &mut impl Read) -> Vec<u8> {
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    all
}

/// All that comes back for `input` until the server closes.
fn exchange(server: &HttpServer, input: &[u8]) -> String {
    let mut stream = connect(server);
    stream.write_all(input).unwrap();
    String::from_utf8_lossy(&read_to_end(&mut stream)).into_owned()
}

#[test]
fn connections_are_kept_or_closed_as_asked() {
    let server = start(spec()).unwrap();
    let mut kept = connect(&server);
    (0..3).for_each(|_| get_ok(&mut kept));
    drop(kept);
    for (input, closes) in [
        (GET_CLOSE, true),
        ("GET / HTTP/1.0\r\n\r\n", true),
        ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", false),
    ] {
        let mut stream = connect(&server);
        stream.write_all(input.as_bytes()).unwrap();
        let (status, head, body) = read_response(&mut stream, true);
        assert_eq!((status, body.len()), (200, 100), "{input:?}");
        assert_eq!(head.contains("Connection: close"), closes, "{input:?}");
        if closes {
            assert_eq!(read_to_end(&mut stream), b"", "{input:?}");
        } else {
            get_ok(&mut stream);
        }
    }
    let stats = server.stop();
    assert_eq!((stats.requests, stats.responses, stats.connections), (7, 7, 4));
    assert!(stats.errors.is_empty() && stats.faults.is_empty() && stats.station.is_none());
    assert!(stats.bytes_sent > 700 && stats.gap_cv.is_some());
}

#[test]
fn a_request_may_be_split_at_any_byte() {
    let server = start(spec()).unwrap();
    let request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                   5\r\nhello\r\n0\r\n\r\n";
    let mut stream = connect(&server);
    for cut in 1..request.len() {
        stream.write_all(&request.as_bytes()[..cut]).unwrap();
        std::thread::yield_now();
        stream.write_all(&request.as_bytes()[cut..]).unwrap();
        let (status, _, body) = read_response(&mut stream, true);
        assert_eq!((status, body.len()), (200, 100), "cut at {cut}");
    }
    assert_eq!(server.stop().requests, request.len() as u64 - 1);
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    for spec in [spec(), with_station(2, 1)] {
        let server = start(spec).unwrap();
        let mut stream = connect(&server);
        let head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
        let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc";
        stream.write_all(format!("{GET}{head}{post}{GET_CLOSE}").as_bytes()).unwrap();
        for (has_body, closes) in [(true, false), (false, false), (true, false), (true, true)] {
            let (status, head, _) = read_response(&mut stream, has_body);
            assert_eq!(status, 200);
            assert_eq!(head.contains("Connection: close"), closes);
        }
        assert_eq!(read_to_end(&mut stream), b"");
        assert_eq!(server.stop().responses, 4);
    }
}

#[test]
fn many_more_requests_than_fit_are_answered_all_the_same() {
    // More than the read buffer holds, and responses that overflow the socket's buffers while the
    // client is still sending: writes are partial and reads pause.
    let body_size = 20_000;
    let server = start(HttpServerSpec { body_size, ..spec() }).unwrap();
    let mut stream = connect(&server);
    let mut sender = stream.try_clone().unwrap();
    let requests = 4_000;
    let thread = std::thread::spawn(move || {
        sender.write_all(GET.repeat(requests).as_bytes()).unwrap();
        sender.shutdown(Shutdown::Write).unwrap();
    });
    // Begin to read late, so that the server runs into a full socket.
    std::thread::sleep(Duration::from_millis(50));
    let mut stream_in = std::io::BufReader::new(&mut stream);
    for _ in 0..requests {
        let (status, _, body) = read_response(&mut stream_in, true);
        assert_eq!((status, body.len()), (200, 20_000));
    }
    assert_eq!(read_to_end(&mut stream_in), b"");
    thread.join().unwrap();
    assert_eq!(server.stop().responses, requests as u64);
}

#[test]
fn a_long_body_is_consumed_after_100_continue() {
    let server = start(spec()).unwrap();
    let mut stream = connect(&server);
    let head =
        "PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 300000\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    assert_eq!(read_response(&mut stream, false).0, 100);
    stream.write_all(&vec![b'x'; 300_000]).unwrap();
    assert_eq!(read_response(&mut stream, true).0, 200);
    get_ok(&mut stream);
    let stats = server.stop();
    assert_eq!((stats.requests, stats.responses), (2, 2));
}

#[test]
fn bad_requests_are_refused_and_the_connection_closed() {
    let server = start(spec()).unwrap();
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "x".repeat(100_000));
    for (input, status) in [
        ("nonsense\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/3.0\r\nHost: a\r\n\r\n", "505"),
        ("GET / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", "501"),
        (&long, "431"),
    ] {
        let mut stream = connect(&server);
        stream.write_all(input.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let all = String::from_utf8(read_to_end(&mut stream)).unwrap();
        assert!(all.starts_with(&format!("HTTP/1.1 {status} ")), "{all}");
        assert!(all.contains("Connection: close\r\n"), "{all}");
    }
    let mut cut_short = connect(&server);
    cut_short.write_all(&GET.as_bytes()[..10]).unwrap();
    cut_short.shutdown(Shutdown::Write).unwrap();
    assert_eq!(read_to_end(&mut cut_short), b"");
    let errors = server.stop().errors;
    let count = |kind: &str| errors.get(kind).copied();
    assert_eq!(count("malformed"), Some(2));
    assert_eq!(count("version"), Some(1));
    assert_eq!(count("unknown_coding"), Some(1));
    assert_eq!(count("head_too_large"), Some(1));
    assert_eq!(count("incomplete"), Some(1));
}

#[test]
fn a_unix_socket_serves_too_and_its_path_goes_with_it() {
    let name = format!("knee-serve-{}.sock", std::process::id());
    let path = std::env::temp_dir().join(name);
    // A dead server's path is taken over, a live one's is not.
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    let listen = Address::Unix(path.clone());
    let spec = HttpServerSpec { listen, ..spec() };
    let server = start(spec.clone()).unwrap();
    let again = start(spec).unwrap_err();
    assert_eq!(again.kind(), ErrorKind::AddrInUse);
    let mut stream = UnixStream::connect(&path).unwrap();
    stream.set_read_timeout(PATIENCE).unwrap();
    (0..3).for_each(|_| get_ok(&mut stream));
    assert_eq!(server.stop().responses, 3);
    assert!(!path.exists());
}

#[test]
fn a_reset_fault_resets() {
    let server = with_fault(Fault::Reset(1.0));
    let mut stream = connect(&server);
    stream.write_all(GET.as_bytes()).unwrap();
    let error = stream.read(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    let stats = server.stop();
    assert_eq!((stats.faults["reset"], stats.responses), (1, 0));
}

#[test]
fn a_truncate_fault_sends_half_of_the_body() {
    let server = with_fault(Fault::Truncate(1.0));
    let all = exchange(&server, GET.as_bytes());
    let (head, body) = all.split_once("\r\n\r\n").unwrap();
    assert!(head.contains("Content-Length: 100"));
    assert_eq!(body.len(), 50);
    assert_eq!(server.stop().faults["truncate"], 1);
}

#[test]
fn a_garbage_fault_sends_no_http() {
    let server = with_fault(Fault::Garbage(1.0));
    let all = exchange(&server, GET.as_bytes());
    assert!(!all.is_empty() && !all.starts_with("HTTP"));
    assert_eq!(server.stop().faults["garbage"], 1);
}

#[test]
fn an_error_fault_has_its_status_and_keeps_the_connection() {
    let server = with_fault(Fault::Error(1.0, 503));
    let mut stream = connect(&server);
    for _ in 0..2 {
        stream.write_all(GET.as_bytes()).unwrap();
        assert_eq!(read_response(&mut stream, true).0, 503);
    }
    let stats = server.stop();
    assert_eq!((stats.faults["error"], stats.responses), (2, 2));
}

#[test]
fn a_slow_fault_never_sends_ahead_of_its_speed() {
    // 100 bytes at 1,000 bytes per second take 100 ms.
    let server = with_fault(Fault::Slow(1_000));
    let mut stream = connect(&server);
    let begin = Instant::now();
    get_ok(&mut stream);
    assert!(begin.elapsed() >= Duration::from_millis(100));
    stream.write_all(b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    assert_eq!(read_response(&mut stream, false).0, 200);
    assert_eq!(server.stop().responses, 2);
}

#[test]
fn a_stalled_server_stands_still_and_then_goes_on() {
    let stall = Fault::Stall { at: Nanos::ZERO, length: Nanos::from_millis(150) };
    let begin = Instant::now();
    let server = with_fault(stall);
    // The kernel accepts; the server answers after the stall alone. (Its clock begins within
    // `with_fault`, so the stall ends no earlier than 150 ms after `begin`.)
    get_ok(&mut connect(&server));
    assert!(begin.elapsed() >= Duration::from_millis(150));
    assert_eq!(server.stop().responses, 1);

    let forever = Fault::Stall { at: Nanos::ZERO, length: Nanos::from_secs(3600) };
    assert_eq!(with_fault(forever).stop().requests, 0, "it can be stopped");
}

#[test]
fn a_worker_serves_one_at_a_time_and_never_early() {
    let server = start(with_station(1, 20)).unwrap();
    let mut streams: Vec<TcpStream> = (0..4).map(|_| connect(&server)).collect();
    let begin = Instant::now();
    for stream in &mut streams {
        stream.write_all(GET.as_bytes()).unwrap();
    }
    for stream in &mut streams {
        assert_eq!(read_response(stream, true).0, 200);
    }
    assert!(begin.elapsed() >= Duration::from_millis(4 * 20));
    let station = server.stop().station.expect("there is one");
    assert_eq!((station.workers, station.arrivals), (1, 4));
    assert_eq!(station.service_mean_ns, 20e6);
    assert!(station.sojourn.mean_ns >= 20e6 && station.write_lateness.max_ns > 0);
}

#[test]
fn a_client_that_leaves_early_harms_nobody() {
    let server = start(with_station(1, 5)).unwrap();
    for _ in 0..5 {
        connect(&server).write_all(GET.as_bytes()).unwrap();
    }
    get_ok(&mut connect(&server));
    // The last one is served after those five, which were all in the queue.
    assert_eq!(server.stop().requests, 6);
}

#[test]
fn a_worker_accepts_only_when_it_is_free() {
    let accept = AcceptPolicy::PerWorker;
    let spec = HttpServerSpec { accept, ..with_station(2, 5) };
    let server = start(spec).unwrap();
    let begin = Instant::now();
    let mut clients: Vec<_> = (0..8).map(|_| connect(&server)).collect();
    for client in &mut clients {
        client.write_all(GET_CLOSE.as_bytes()).unwrap();
    }
    for mut client in clients {
        assert_eq!(read_response(&mut client, true).0, 200);
    }
    assert!(begin.elapsed() >= Duration::from_millis(4 * 5));
    let stats = server.stop();
    assert_eq!((stats.connections, stats.requests), (8, 8));
}

#[test]
fn what_finds_no_free_worker_stays_in_the_kernels_queue() {
    let accept = AcceptPolicy::PerWorker;
    let spec = HttpServerSpec { accept, ..with_station(1, 60_000) };
    let server = start(spec).unwrap();
    let mut first = connect(&server);
    first.write_all(GET.as_bytes()).unwrap();
    // Until it is surely accepted: the others would only make the test say less.
    std::thread::sleep(Duration::from_millis(50));
    let others: Vec<_> = (0..5).map(|_| connect(&server)).collect();
    std::thread::sleep(Duration::from_millis(50));
    drop(others);
    assert_eq!(server.stop().connections, 1);
}

#[test]
fn a_connection_without_a_request_takes_no_worker_up() {
    let accept = AcceptPolicy::PerWorker;
    let spec = HttpServerSpec { accept, ..with_station(1, 5) };
    let server = start(spec).unwrap();
    let silent: Vec<_> = (0..3).map(|_| connect(&server)).collect();
    get_ok(&mut connect(&server));
    // They are served all the same once they ask.
    for mut client in silent {
        client.write_all(GET_CLOSE.as_bytes()).unwrap();
        assert_eq!(read_response(&mut client, true).0, 200);
    }
    assert_eq!(server.stop().requests, 4);
}

#[test]
fn arrivals_are_kept_as_asked_and_ascend() {
    let spec = HttpServerSpec { arrivals_max: 3, ..spec() };
    let server = start(spec).unwrap();
    let mut stream = connect(&server);
    (0..5).for_each(|_| get_ok(&mut stream));
    let stats = server.stop();
    assert_eq!((stats.requests, stats.arrivals.len()), (5, 3));
    assert!(stats.arrivals.is_sorted() && stats.arrivals[0] > Nanos::ZERO);
}

#[test]
fn an_idle_server_sleeps() {
    let server = start(with_station(3, 5)).unwrap();
    get_ok(&mut connect(&server));
    std::thread::sleep(Duration::from_millis(200));
    let stats = server.stop();
    assert!(stats.cpu_user_s + stats.cpu_system_s < 0.1, "{stats}");
}

#[test]
fn a_dropped_server_ends_and_closes_its_connections() {
    let server = start(spec()).unwrap();
    let mut stream = connect(&server);
    get_ok(&mut stream);
    drop(server);
    assert_eq!(read_to_end(&mut stream), b"");
}

#[test]
fn each_request_is_logged_with_its_way_through_the_station() {
    let spec = HttpServerSpec { log_max: 3, ..with_station(1, 2) };
    let server = start(spec).unwrap();
    let mut stream = connect(&server);
    let port = stream.local_addr().unwrap().port();
    let before_ns = knee_engine::sys::clock::monotonic_ns();
    // The second is there before the first is served, the third after both.
    stream.write_all(GET.repeat(2).as_bytes()).unwrap();
    read_response(&mut stream, true);
    read_response(&mut stream, true);
    get_ok(&mut stream);
    get_ok(&mut stream);
    // One that is never answered, and has no room.
    stream.write_all(GET.as_bytes()).unwrap();
    let log = server.stop().log;
    let after_ns = knee_engine::sys::clock::monotonic_ns();
    assert_eq!(log.entries.len(), 3);
    assert!((1..=2).contains(&log.left_out), "{}", log.left_out);
    let ms = Nanos::from_millis(2);
    for (i, entry) in (0..).zip(&log.entries) {
        let absolute = log.origin_ns + entry.arrival.0;
        // Two clocks are compared: a little is left to that.
        let range = before_ns - 1_000_000..=after_ns;
        assert!(range.contains(&absolute), "{entry:?}");
        assert_eq!((entry.port, entry.connection, entry.request), (port, 0, i));
        assert!(entry.arrival <= entry.read, "{entry:?}");
        assert_eq!(entry.end - entry.start, ms, "{entry:?}");
        assert!(entry.written.unwrap() >= entry.end, "{entry:?}");
    }
    let [first, second, third] = log.entries[..] else {
        panic!("{log:?}");
    };
    assert_eq!(first.arrival, second.arrival, "both came in one read");
    assert!(second.start >= first.end);
    assert!(third.start >= second.end);
}

#[test]
fn a_request_without_a_response_is_logged_without_its_end() {
    let server = start(HttpServerSpec { log_max: 9, faults: vec![Fault::Reset(1.0)], ..spec() });
    let server = server.unwrap();
    let mut stream = connect(&server);
    stream.write_all(GET.as_bytes()).unwrap();
    let gone = stream.read(&mut [0]).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::ConnectionReset);
    let log = server.stop().log;
    assert_eq!(log.entries.len(), 1);
    assert_eq!(log.entries[0].written, None);
}

#[test]
fn a_unix_socket_has_a_log_by_the_process() {
    let path = std::env::temp_dir().join(format!("knee-log-{}.sock", std::process::id()));
    let server =
        start(HttpServerSpec { listen: Address::Unix(path.clone()), log_max: 9, ..spec() });
    let server = server.unwrap();
    get_ok(&mut UnixStream::connect(&path).unwrap());
    let log = server.stop().log;
    let entry = log.entries[0];
    assert_eq!((entry.by_kernel, entry.port), (false, 0));
    assert_eq!(entry.arrival, entry.read);
}
