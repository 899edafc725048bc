//! Followed connections to a server that logs what it did.

use knee_engine::observe::{ObserveServer, ObserverClient, Vantage, watch_for};
use knee_engine::sys::clock::monotonic_ns;
use knee_engine::sys::socket::Address;
use knee_load::both_ends::{JoinedTimes, OffsetRecorder, Sampled, TimeParts, is_followed, join};
use knee_load::law::Law;
use knee_load::time::Nanos;
use knee_serve::http::{HttpServer, HttpServerSpec, RequestLog};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::mpsc;
use std::thread;

const SERVICE: Nanos = Nanos::from_millis(2);

/// Two clocks are compared, which takes some time.
const SLACK: Nanos = Nanos::from_millis(1);

fn server(listen: &str) -> (HttpServer, SocketAddr) {
    let server = knee_serve::http::start(HttpServerSpec {
        listen: Address::Tcp(listen.parse().unwrap()),
        workers: Some(1),
        service: Law::Fixed(SERVICE),
        log_max: 100,
        ..HttpServerSpec::default()
    });
    let server = server.unwrap();
    match *server.address() {
        Address::Tcp(address) => (server, address),
        Address::Unix(_) => panic!("a TCP server"),
    }
}

/// Requests of `length` bytes over one connection, as a generator notes them.
fn load(address: SocketAddr, count: usize, length: usize) -> Sampled {
    let mut stream = TcpStream::connect(address).unwrap();
    let port = stream.local_addr().unwrap().port();
    let mut request = b"GET / HTTP/1.1\r\nHost: a\r\nPad: ".to_vec();
    request.resize(length - 4, b'x');
    request.extend_from_slice(b"\r\n\r\n");
    let now = || Nanos(monotonic_ns());
    let mut recorder = OffsetRecorder::new(1, 1);
    recorder.established(0, port, now());
    for _ in 0..count {
        // Before it is written: a thread that is held up just after it would hide the host's time.
        let written = now();
        stream.write_all(&request).unwrap();
        recorder.sent(0, request.len() as u64);
        let (mut bytes, mut text) = ([0; 4096], Vec::new());
        let mut first_byte = None;
        while !is_whole(&text) {
            let count = stream.read(&mut bytes).unwrap();
            first_byte.get_or_insert_with(now);
            text.extend_from_slice(&bytes[..count]);
            recorder.received(0, count as u64);
        }
        recorder.ended(0, [written, written, first_byte.unwrap(), now()]);
    }
    Sampled::of(vec![recorder])
}

/// A head and the body of 1,294 bytes.
fn is_whole(text: &[u8]) -> bool {
    let head = text.windows(4).position(|w| w == b"\r\n\r\n");
    head.is_some_and(|head| text.len() >= head + 4 + 1294)
}

/// The parts of each sample, which are what the server logged.
fn check(joined: &JoinedTimes, log: &RequestLog) -> Vec<TimeParts> {
    assert_eq!((joined.unseen, joined.incomplete), (0, 0));
    assert_eq!(log.entries.len(), joined.parts.len());
    let parts: Vec<TimeParts> = joined.parts.iter().flatten().copied().collect();
    for (parts, entry) in parts.iter().zip(&log.entries) {
        // The bytes leave the host before the server has read the clock after the write.
        let logged = entry.written.unwrap() - entry.arrival;
        assert!(parts.host_first + SLACK >= SERVICE, "{parts:?} {entry:?}");
        let is_shorter = parts.host <= logged + SLACK;
        assert!(is_shorter || !entry.by_kernel, "{parts:?} {entry:?}");
    }
    parts
}

/// Follows one of `one_of` connections to a server of this host.
fn follow(address: SocketAddr, one_of: u16) -> Vantage {
    let mut vantage = watch_for(address, None, None).unwrap().expect("this host is the target's");
    vantage.follow(one_of);
    vantage
}

#[test]
fn the_hosts_time_is_what_the_server_logged() {
    let (server, address) = server("127.0.0.1:0");
    let mut vantage = follow(address, 1);
    let sampled = load(address, 20, 100);
    let (seen, log) = (vantage.seen(), server.stop().log);
    if let Some(because) = &seen.because {
        return println!("skipped: {because}");
    }
    assert_eq!((seen.lost, seen.left_out), (0, 0));
    check(&join(&seen, &sampled), &log);
}

#[test]
fn what_is_not_followed_is_not_seen() {
    let (_server, address) = server("127.0.0.1:0");
    let mut vantage = follow(address, u16::MAX);
    let sampled = load(address, 2, 100);
    let seen = vantage.seen();
    if let Some(because) = &seen.because {
        return println!("skipped: {because}");
    }
    if !is_followed(sampled.samples[0].port, u16::MAX) {
        assert_eq!(seen.connections, []);
        assert_eq!(join(&seen, &sampled).unseen, 2);
    }
}

#[test]
fn an_observer_tells_the_same_as_this_host() {
    let (_server, address) = server("127.0.0.1:0");
    let observer = ObserveServer::start("127.0.0.1:0".parse().unwrap(), address.port(), None);
    let observer = observer.unwrap();
    let at = observer.address().to_string();
    for observer in [None, Some(at.as_str())] {
        let vantage = watch_for(address, observer, None).unwrap();
        let mut vantage = vantage.expect("this host is the target's");
        vantage.follow(1);
        let sampled = load(address, 3, 100);
        let seen = vantage.seen();
        if let Some(because) = &seen.because {
            assert!(because.contains("capture"), "{because}");
            println!("skipped: {because}");
            continue;
        }
        let joined = join(&seen, &sampled);
        assert_eq!((joined.unseen, joined.incomplete), (0, 0), "{observer:?}");
        let again = vantage.seen().because;
        assert!(again.is_some(), "nothing is followed any more");
    }
}

/// Moves the calling thread, and what it starts, to a network namespace of its own.
fn enter_new_namespace() -> bool {
    // SAFETY: no pointers; it affects this thread alone.
    unsafe { libc::unshare(libc::CLONE_NEWNET) == 0 }
}

/// A command in the namespace of the calling thread.
fn shell(line: &str) -> bool {
    let mut words = line.split(' ');
    let mut command = Command::new(words.next().unwrap());
    let output = command.args(words).output();
    output.is_ok_and(|out| out.status.success())
}

#[test]
fn a_slow_link_is_the_networks_time_and_not_the_hosts() {
    // The server's thread makes its namespace; the client's makes another and a link to it.
    let (made, make) = mpsc::channel();
    let (linked, link) = mpsc::channel::<()>();
    let (listening, listen) = mpsc::channel();
    let (over, end) = mpsc::channel::<()>();
    let far = thread::spawn(move || {
        // SAFETY: no pointers.
        let own = || unsafe { libc::gettid() };
        made.send(enter_new_namespace().then(own)).unwrap();
        link.recv().ok()?;
        let is_up = shell("ip addr add 10.97.7.2/24 dev kneeb") && shell("ip link set kneeb up");
        let (server, address) = is_up.then(|| server("10.97.7.2:0"))?;
        let token = Some("t".to_owned());
        let observer =
            ObserveServer::start("10.97.7.2:0".parse().unwrap(), address.port(), token).unwrap();
        listening.send((address, observer.address())).unwrap();
        let _ = end.recv();
        Some(server.stop().log)
    });
    let near = thread::spawn(move || {
        let peer = make.recv().unwrap().filter(|_| enter_new_namespace())?;
        let veth = format!("ip link add kneea type veth peer name kneeb netns {peer}");
        // Requests of 1,000 bytes take 20 ms each.
        let is_linked = shell(&veth)
            && shell("ip addr add 10.97.7.1/24 dev kneea")
            && shell("ip link set kneea up")
            && shell("tc qdisc add dev kneea root tbf rate 400kbit burst 1600 limit 60000");
        is_linked.then(|| linked.send(()).unwrap())?;
        let (address, observer) = listen.recv().ok()?;
        let mut watch = ObserverClient::connect(&observer.to_string(), Some("t")).unwrap();
        watch.follow(1).unwrap();
        let sampled = load(address, 12, 1_000);
        let seen = watch.seen().unwrap();
        over.send(()).unwrap();
        Some((seen, sampled))
    });
    let (Some((seen, sampled)), Some(log)) = (near.join().unwrap(), far.join().unwrap()) else {
        return println!("skipped: network namespaces, veth or tbf are not permitted here");
    };
    if let Some(because) = &seen.because {
        return println!("skipped: {because}");
    }
    let parts = check(&join(&seen, &sampled), &log);
    // What the first requests leave of the burst, and time in which the link rested, helps some.
    let slow = parts.iter().filter(|p| p.network_first > Nanos::from_millis(10));
    assert!(slow.count() >= 6, "{parts:?}");
}
