//! Overload against real sockets: whatever the server does, each attempt ends in one outcome.

mod support;

use knee_engine::sys::socket::{Address, Listener, RawAddress};
use knee_load::measure::{Outcome, Trial};
use knee_load::spec::{
    BackendChoice, Body, CloseKind, ConnectScheme, DnsSettings, EngineOptions, Load, OverloadLoad,
    Protocol, TrialSpec, WaitPolicy,
};
use knee_load::time::Nanos;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;
use support::{Quiet, run_over, target, unless_disturbed};

const T: Nanos = Nanos::from_millis(100);

fn s_clients(descriptors: u32) -> ConnectScheme {
    ConnectScheme::SClients { sclients: 1, descriptors }
}

fn spec(port: u16, scheme: ConnectScheme, close: CloseKind, duration_ms: u64) -> TrialSpec {
    let load = Load::Overload(OverloadLoad { scheme, close });
    TrialSpec {
        label: "overload".to_owned(),
        level: load.level(),
        load,
        target: target(port, "GET", Body::default(), false),
        warmup: Nanos::ZERO,
        duration: Nanos::from_millis(duration_ms),
        operations_max: None,
        timeout: Nanos::from_millis(400),
        retry: None,
        sentinel: None,
        connect_timeout: T,
        interval: Nanos::from_millis(100),
        seed: 1,
        engine: EngineOptions {
            workers: 2,
            backend: BackendChoice::Epoll,
            wait: WaitPolicy::Hybrid,
            ..EngineOptions::default()
        },
    }
}

/// Runs it, over both backends where io_uring is permitted.
fn run(spec: &TrialSpec) -> Vec<Trial> {
    let trials = [BackendChoice::Epoll, BackendChoice::IoUring].map(|b| run_over(spec, b));
    trials.into_iter().flatten().collect()
}

/// Runs it and checks each trial; nothing may be left without an outcome.
fn check(spec: &TrialSpec, trial: impl Fn(&Trial)) {
    unless_disturbed(
        || run(spec),
        |trials| {
            for of in trials {
                assert_eq!(count(of, Outcome::InFlight), 0, "{:?}", of.measurement);
                trial(of);
            }
        },
    );
}

fn count(trial: &Trial, outcome: Outcome) -> u64 {
    trial.measurement.outcomes.count(outcome)
}

/// A listener whose accept queue is full and stays so.
fn silent() -> (Listener, TcpStream, u16) {
    let any = Address::Tcp((Ipv4Addr::LOCALHOST, 0).into());
    let listener = Listener::bind(&RawAddress::new(&any).unwrap(), 0).unwrap();
    let Address::Tcp(address) = listener.local_address().unwrap() else {
        panic!("a TCP listener");
    };
    // A backlog of 0 has room for one.
    let first = TcpStream::connect(address).unwrap();
    (listener, first, address.port())
}

/// What a test's server does with each connection.
type Serve = fn(TcpStream);

/// Raises a flag as it goes, also where a test fails, so that the server beside it ends.
struct EndOf<'a>(&'a AtomicBool, Option<SocketAddr>);

impl Drop for EndOf<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
        drop(self.1.map(TcpStream::connect));
    }
}

/// Runs `body` beside a server that does so with each connection, one after the other.
fn beside<R>(serve: Serve, body: impl FnOnce(u16, &dyn Fn() -> Vec<SocketAddr>) -> R) -> R {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let over = AtomicBool::new(false);
    let peers = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok((stream, peer)) = listener.accept() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                peers.lock().unwrap().push(peer);
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                serve(stream);
            }
        });
        let _end = EndOf(&over, Some(address));
        body(address.port(), &|| peers.lock().unwrap().clone())
    })
}

fn answer(mut stream: TcpStream) {
    let mut request = [0; 512];
    if stream.read(&mut request).is_ok_and(|n| n > 0) {
        let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi";
        // A client that timed out does not matter.
        let _ = stream.write_all(head);
    }
}

/// The same by queries of DNS over UDP.
fn in_datagrams(mut spec: TrialSpec) -> TrialSpec {
    let settings = DnsSettings { queries_max: DnsSettings::QUERIES_MAX, ..DnsSettings::default() };
    spec.target.protocol = Protocol::Dns(settings);
    spec.target.requests[0].path = "/a.b?type=A".to_owned();
    spec
}

#[test]
fn silent_datagrams_time_out_d_over_t() {
    let silent = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    check(&in_datagrams(spec(port, s_clients(50), CloseKind::Fin, 1_000)), |trial| {
        assert_eq!(count(trial, Outcome::ResponseTimeout), 500);
        assert_eq!(trial.measurement.outcomes.total(), 500);
    });
}

#[test]
fn refused_datagrams_are_replaced_after_t() {
    let closed = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    check(&in_datagrams(spec(closed, s_clients(50), CloseKind::Fin, 1_000)), |trial| {
        assert_eq!(count(trial, Outcome::Refused), 500);
        assert_eq!(trial.measurement.outcomes.total(), 500);
    });
}

/// Were each replaced after T alone, this would take a quarter of an hour.
#[test]
fn answered_datagrams_are_replaced_at_once() {
    let server = UdpSocket::bind("127.0.0.1:0").unwrap();
    server.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let port = server.local_addr().unwrap().port();
    let mut spec = in_datagrams(spec(port, s_clients(2), CloseKind::Fin, 60_000));
    (spec.connect_timeout, spec.timeout) = (Nanos::from_secs(10), Nanos::from_secs(20));
    spec.operations_max = Some(200);
    let over = AtomicBool::new(false);
    let ports = std::thread::scope(|scope| {
        let ports = scope.spawn(|| {
            let (mut ports, mut query) = (BTreeSet::new(), [0; 512]);
            while !over.load(Ordering::SeqCst) {
                let Ok((length, from)) = server.recv_from(&mut query) else {
                    continue;
                };
                ports.insert(from.port());
                query[2] |= 0x80;
                server.send_to(&query[..length], from).unwrap();
            }
            ports
        });
        let end = EndOf(&over, None);
        check(&spec, |trial| {
            assert_eq!(count(trial, Outcome::Served), 200, "{:?}", trial.measurement.outcomes);
        });
        drop(end);
        ports.join().unwrap()
    });
    assert!(ports.len() > 2, "{ports:?}");
}

#[test]
fn a_server_that_never_answers_times_out_each_of_d_over_t() {
    let (_listener, _first, port) = silent();
    check(&spec(port, s_clients(50), CloseKind::Fin, 1_000), |trial| {
        assert_eq!(count(trial, Outcome::ConnectTimeout), 500);
        assert_eq!(trial.measurement.outcomes.total(), 500);
    });
}

#[test]
fn a_refusing_port_refuses_each_of_d_over_t_and_no_more() {
    let (listener, first, port) = silent();
    drop((listener, first));
    check(&spec(port, s_clients(50), CloseKind::Rst, 1_000), |trial| {
        assert_eq!(count(trial, Outcome::Refused), 500);
        assert_eq!(trial.measurement.outcomes.total(), 500);
    });
}

#[test]
fn connections_that_are_served_are_replaced_at_once() {
    for close in [CloseKind::Fin, CloseKind::Rst] {
        beside(answer, |port, _| {
            check(&spec(port, s_clients(4), close, 300), |trial| {
                let outcomes = &trial.measurement.outcomes;
                // Four descriptors alone would make 12; what is served comes on top of it.
                assert!(count(trial, Outcome::Served) > 12, "{close:?}: {outcomes:?}");
            });
        });
    }
}

#[test]
fn simple_clients_are_served_one_at_a_time() {
    beside(answer, |port, _| {
        let simple = ConnectScheme::Simple { clients: 3 };
        check(&spec(port, simple, CloseKind::Fin, 300), |trial| {
            let outcomes = &trial.measurement.outcomes;
            assert!(count(trial, Outcome::Served) > 3, "{outcomes:?}");
            assert_eq!(outcomes.total(), count(trial, Outcome::Served), "{outcomes:?}");
        });
    });
}

#[test]
fn a_server_that_resets_or_says_nothing_has_its_own_outcome() {
    // Closing with a byte unread resets.
    let reset: Serve = |stream| drop(stream.peek(&mut [0]));
    beside(reset, |port, _| {
        check(&spec(port, s_clients(3), CloseKind::Fin, 300), |trial| {
            let outcomes = &trial.measurement.outcomes;
            assert!(count(trial, Outcome::Reset) > 0, "{outcomes:?}");
        });
    });
    let keep: Serve = |stream| {
        static KEPT: AtomicUsize = AtomicUsize::new(0);
        KEPT.fetch_add(1, Ordering::SeqCst);
        std::mem::forget(stream);
    };
    beside(keep, |port, _| {
        let simple = ConnectScheme::Simple { clients: 5 };
        check(&spec(port, simple, CloseKind::Rst, 300), |trial| {
            // What is taken in, if only by the kernel, is no ghost.
            assert_eq!(count(trial, Outcome::ResponseTimeout), 5);
        });
    });
}

#[test]
fn a_server_that_vanishes_leaves_outcomes_and_no_hang() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = std::thread::spawn(move || {
        // As many connections as take a while, then it is gone.
        for _ in 0..40 {
            answer(listener.accept().unwrap().0);
        }
    });
    let mut spec = spec(port, s_clients(4), CloseKind::Fin, 1_000);
    spec.engine.workers = 1;
    let trial = knee_engine::run(&spec, &mut Quiet, &AtomicBool::new(false)).unwrap();
    server.join().unwrap();
    let outcomes = &trial.measurement.outcomes;
    assert!(count(&trial, Outcome::Served) > 0, "{outcomes:?}");
    assert!(count(&trial, Outcome::Refused) > 0, "{outcomes:?}");
    assert_eq!(count(&trial, Outcome::InFlight), 0, "{outcomes:?}");
}

#[test]
fn connections_come_from_each_source_in_turn() {
    beside(answer, |port, peers| {
        let mut spec = spec(port, s_clients(4), CloseKind::Rst, 200);
        let sources = ["127.0.0.2", "127.0.0.3", "127.0.0.4"];
        spec.target.route.sources = sources.map(str::to_owned).to_vec();
        run(&spec);
        let seen: BTreeSet<String> = peers().iter().map(|p| p.ip().to_string()).collect();
        assert_eq!(seen, BTreeSet::from(sources.map(str::to_owned)));
    });
}

#[test]
fn a_source_that_is_not_of_this_machine_is_refused_in_words() {
    for (source, word) in [("192.0.2.7", "assign"), ("here", "no IP"), ("::1", "kind")] {
        let mut spec = spec(1, s_clients(1), CloseKind::Fin, 100);
        spec.target.route.sources = vec![source.to_owned()];
        let error = knee_engine::run(&spec, &mut Quiet, &AtomicBool::new(false)).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(source) && text.contains(word), "{text}");
    }
}

/// Tells the copy of this program that runs in a network of its own.
const INSIDE: &str = "KNEE_TEST_INSIDE_A_NETWORK_OF_ITS_OWN";

/// Whether this is that copy. Elsewhere `test` is run in one, with a port range of 1,000, where
/// that is permitted.
fn is_inside(test: &str) -> bool {
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let prepare = "ip link set lo up && echo 30000 30999 > /proc/sys/net/ipv4/ip_local_port_range";
    let script = format!("{prepare} || exit 77; exec \"$0\" --exact {test} --nocapture");
    let program = std::env::current_exe().unwrap();
    let run = Command::new("unshare")
        .args(["-n", "sh", "-c", &script])
        .arg(program)
        .env(INSIDE, "1")
        .output();
    match run {
        Ok(run) if run.status.success() => {}
        Ok(run) if String::from_utf8_lossy(&run.stdout).contains("running 1 test") => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            panic!("{}{}", text(&run.stdout), text(&run.stderr));
        }
        _ => eprintln!("skipped: no network namespace (needs root, unshare and ip)"),
    }
    false
}

/// A counter of this network namespace.
fn counter(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/net/snmp").unwrap();
    let mut lines = text.lines().filter(|line| line.starts_with("Tcp:"));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    let (_, value) = pairs.find(|(n, _)| *n == name).unwrap();
    value.parse().unwrap()
}

#[test]
fn ports_run_out_and_what_has_one_sends_a_syn_and_nothing_else() {
    if !is_inside("ports_run_out_and_what_has_one_sends_a_syn_and_nothing_else") {
        return;
    }
    let (_listener, _first, port) = silent();
    let mut spec = spec(port, s_clients(2_000), CloseKind::Fin, 500);
    // A search for a free port takes the kernel long where none is left. On a slow machine connects
    // end later than after T, and still have their outcome.
    spec.timeout = Nanos::from_secs(10);
    let counters = || ["OutSegs", "RetransSegs"].map(counter);
    let before = Cell::new([0; 2]);
    let attempt = || {
        before.set(counters());
        run(&spec)
    };
    unless_disturbed(attempt, |trials| {
        let [segments, again] = counters();
        let [segments, again] = [segments - before.get()[0], again - before.get()[1]];
        let timed_out: u64 = trials.iter().map(|t| count(t, Outcome::ConnectTimeout)).sum();
        for trial in trials {
            let outcomes = &trial.measurement.outcomes;
            assert!(count(trial, Outcome::PortExhausted) > 0, "{outcomes:?}");
            // Five rounds of T at the most, and the first one at least.
            assert!((2_000..=10_000).contains(&outcomes.total()), "{outcomes:?}");
            let both = count(trial, Outcome::ConnectTimeout) + count(trial, Outcome::PortExhausted);
            assert_eq!(both, outcomes.total(), "{outcomes:?}");
        }
        assert_eq!(segments, timed_out, "a segment for each");
        assert_eq!(counter("OutRsts"), 0);
        let longest = trials.iter().map(|t| t.measurement.response.max()).max();
        // Held for longer than the kernel waits for an answer (RFC 6298), one does send again.
        assert!(
            again == 0 || longest >= Some(Nanos::from_millis(900)),
            "{again} SYNs again, the longest attempt {longest:?}"
        );
    });
}

#[test]
fn twice_the_addresses_have_twice_the_ports() {
    if !is_inside("twice_the_addresses_have_twice_the_ports") {
        return;
    }
    let (_listener, _first, port) = silent();
    // More than the 1,000 ports of one address.
    let mut spec = spec(port, s_clients(1_200), CloseKind::Fin, 3_000);
    // The kernel searches long for a free port: a slow machine does so 1,200 times in a second.
    (spec.connect_timeout, spec.timeout) = (Nanos::from_secs(1), Nanos::from_secs(10));
    spec.target.route.sources = ["127.0.0.2", "127.0.0.3"].map(str::to_owned).to_vec();
    // On a host that was stalled, those that are caught up with need more at a time.
    check(&spec, |trial| assert_eq!(count(trial, Outcome::ConnectTimeout), 3_600));
}
