//! Sessions over loopback. Nothing here depends on speed.

use super::*;
use crate::experiment::udp::wire::{
    self, DatagramHeader, Hello, SERVICE, UdpReply, UdpRequest, UdpSessionSpec,
};
use crate::experiment::udp::{self, preflight};
use knee_load::experiment::udp::{
    ClientWait, ClientsAs, DropPlace, ServiceMode, ServiceSetup, UdpTrial, UdpTrialSpec,
};
use knee_load::law::Law;
use knee_load::measure::{Histogram, Interval, IntervalWatcher};
use knee_load::spec::{ArrivalLaw, BackendChoice, EngineOptions, Level, Rate, WaitPolicy};
use knee_load::time::Nanos;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// Room for all that a test sends, where the host is stalled before it is read.
const ROOMY: Option<u32> = Some(1 << 20);

pub(super) fn server(change: impl FnOnce(&mut UdpServerSpec)) -> UdpServer {
    let mut spec = UdpServerSpec {
        listen: "127.0.0.1:0".parse().unwrap(),
        rcvbuf: ROOMY,
        ..UdpServerSpec::default()
    };
    change(&mut spec);
    UdpServer::start(spec).unwrap()
}

/// 240 datagrams of two clients at 6,000/s; a receive buffer by default holds some 250.
pub(super) fn trial_of(service: SocketAddr) -> UdpTrialSpec {
    UdpTrialSpec {
        label: "test".into(),
        level: Level::Clients(2),
        service: service.to_string(),
        token: String::new(),
        clients: 2,
        wait: ClientWait::Schedule {
            rate: Rate::per_second(6_000).unwrap(),
            arrival: ArrivalLaw::Constant,
        },
        carried_as: ClientsAs::Multiplexed,
        unsynchronised: false,
        size: 64,
        gso: false,
        timer_slack: Nanos::from_micros(50),
        send_cost: Nanos::ZERO,
        client_cpus: Vec::new(),
        setup: ServiceSetup::default(),
        duration: Nanos::from_secs(60),
        datagrams_max: Some(240),
        interval: Nanos::from_millis(20),
        seed: 7,
        engine: EngineOptions {
            workers: 1,
            wait: WaitPolicy::Hybrid,
            backend: BackendChoice::Epoll,
            ..EngineOptions::default()
        },
    }
}

#[derive(Default)]
struct Seen(u64);

impl IntervalWatcher for Seen {
    fn on_interval(&mut self, interval: &Interval, _: &Histogram) {
        self.0 += interval.sent.unwrap();
    }
}

/// Tells of each interval.
struct TellsWhenOn(mpsc::Sender<()>);

impl IntervalWatcher for TellsWhenOn {
    fn on_interval(&mut self, _: &Interval, _: &Histogram) {
        let _ = self.0.send(());
    }
}

pub(super) fn run(spec: &UdpTrialSpec) -> UdpTrial {
    let mut seen = Seen::default();
    let stop = AtomicBool::new(false);
    let trial = udp::run(spec, Path::new("none"), &mut seen, &stop).unwrap();
    assert_eq!(seen.0, trial.sent.sent, "each datagram was told once");
    trial
}

fn refusal(service: &str, token: &str) -> String {
    match preflight(service, token).unwrap_err() {
        RunError::Unreachable(line)
        | RunError::NotPermitted(line)
        | RunError::NotStarted(line)
        | RunError::FleetLost(line) => {
            assert!(!line.contains('\n'), "one line: {line}");
            line
        }
    }
}

#[test]
fn every_datagram_is_accounted_for() {
    let server = server(|_| {});
    let trial = run(&trial_of(server.address()));
    let received = trial.received.expect("the service told");
    assert_eq!((trial.sent.sent, received.received), (240, 240));
    assert_eq!(received.by_client, [120, 120]);
    assert_eq!(received.by_interval.iter().sum::<u64>(), 240);
    assert_eq!((received.duplicates, received.socket_drops), (0, 0));
    assert_eq!(received.arrivals.len(), 240);
    assert!(received.arrivals.is_sorted() && received.discarded.is_empty());
    assert_eq!(received.one_way_delay.count(), 240);
    // Both clocks are one: nothing arrives before it was sent, to the microsecond.
    assert!(received.arrivals.last() >= trial.sent.starts.last());
    assert!(trial.service.same_host && trial.service.clock_uncertainty_ns == 0);
    assert!(trial.service.buffer_datagrams.is_some_and(|n| n > 10));
    assert_eq!(trial.service.pid, std::process::id());
    assert!(trial.service_lost.is_none() && !trial.interrupted);
    let stats = server.stop();
    assert_eq!((stats.sessions, stats.sessions_lost, stats.received), (1, 0, 240));
    assert_eq!(stats.intervals.iter().map(|i| i.received).sum::<u64>(), 240);
    assert!(stats.to_string().starts_with("received 240 datagrams of 1 sessions"));
}

#[test]
fn ipv6_does_as_ipv4() {
    let spec = UdpServerSpec {
        listen: "[::1]:0".parse().unwrap(),
        mode: ServiceMode::Echo,
        rcvbuf: ROOMY,
        ..UdpServerSpec::default()
    };
    let Ok(server) = UdpServer::start(spec) else {
        eprintln!("skipped: no IPv6 here");
        return;
    };
    let trial = run(&trial_of(server.address()));
    let received = trial.received.unwrap();
    assert_eq!((received.received, received.replies), (240, 240));
    assert_eq!(trial.sent.round_trip.count(), 240);
}

/// The drops column of a UDP socket in /proc/net/udp.
fn drops_in_proc(port: u16) -> u64 {
    let text = std::fs::read_to_string("/proc/net/udp").unwrap();
    let port = format!(":{port:04X}");
    let of_port = |line: &&str| line.split_whitespace().nth(1).unwrap().ends_with(&port);
    let line = text.lines().skip(1).find(of_port).unwrap();
    line.split_whitespace().last().unwrap().parse().unwrap()
}

#[test]
fn small_buffer_drops_equal_the_kernels_count() {
    let server = server(|spec| spec.rcvbuf = Some(4096));
    for work_us in [200, 1_000] {
        let before = drops_in_proc(server.address().port());
        let mut spec = trial_of(server.address());
        spec.duration = Nanos::from_millis(300);
        spec.datagrams_max = None;
        spec.setup.work = Some(Law::Fixed(Nanos::from_micros(work_us)));
        let trial = run(&spec);
        let (sent, received) = (trial.sent.sent, trial.received.unwrap());
        let drops = drops_in_proc(server.address().port()) - before;
        assert_eq!(received.socket_drops, drops);
        assert_eq!(sent, received.received + drops, "{received:?}");
        let ours = trial.drops.iter().filter(|c| !c.host_wide);
        assert_eq!(ours.map(|c| c.count).sum::<u64>(), drops);
        let full = trial.drops.iter().filter(|c| c.place == DropPlace::ReceiveBuffer);
        assert_eq!(full.map(|c| c.count).sum::<u64>(), drops);
        assert!(work_us < 1_000 || drops > 0, "1,800 datagrams find room for some 300");
        assert!(received.cpu > Nanos::ZERO);
        assert_eq!(trial.service.rcvbuf_bytes, 8192);
        assert_eq!(trial.service.work, spec.setup.work);
    }
    let stats = server.stop();
    assert_eq!(stats.intervals.iter().map(|i| i.dropped).sum::<u64>(), stats.drops);
}

#[test]
fn an_echo_comes_back_and_a_setup_lasts_for_its_session_alone() {
    let server = server(|_| {});
    let mut spec = trial_of(server.address());
    spec.setup = ServiceSetup {
        mode: Some(ServiceMode::Echo),
        work: Some(Law::Exp(Nanos::from_micros(10))),
        rcvbuf: Some(2 << 20),
        cpu: None,
        realtime: false,
    };
    let trial = run(&spec);
    assert_eq!(trial.received.unwrap().replies, 240);
    assert_eq!(trial.sent.round_trip.count(), 240);
    let large = trial.service;
    assert_eq!((large.mode, large.rcvbuf_bytes), (Some(ServiceMode::Echo), 4 << 20));
    let trial = run(&trial_of(server.address()));
    assert_eq!(trial.received.unwrap().replies, 0);
    let usual = preflight(&server.address().to_string(), "").unwrap();
    assert_eq!(trial.service.rcvbuf_bytes, usual.rcvbuf_bytes);
    assert!(trial.service.buffer_datagrams < large.buffer_datagrams);
    assert_eq!(server.stop().replies, 240);
}

#[test]
fn a_processor_that_is_not_there_is_refused() {
    let server = server(|_| {});
    let mut spec = trial_of(server.address());
    spec.setup.cpu = Some(1_000);
    let refused = udp::run(&spec, Path::new("none"), &mut Seen::default(), &false.into());
    let line = refused.unwrap_err().to_string();
    assert!(line.contains("refuses") && line.contains("processor 1000"), "{line}");
    spec.setup.cpu = None;
    run(&spec);
}

#[test]
fn who_cannot_be_served_is_told_why() {
    let server = server(|spec| spec.token = "secret".into());
    let service = server.address().to_string();
    let line = refusal(&service, "");
    assert!(line.contains("token"), "{line}");
    preflight(&service, "secret").unwrap();

    let mut holder = Client::connect(&service);
    holder.hello("secret");
    let line = refusal(&service, "secret");
    assert!(line.contains("busy with another client"), "{line}");
    drop(holder);
    preflight(&service, "secret").unwrap();

    drop(server);
    let line = refusal(&service, "secret");
    assert!(line.contains(&service) && line.contains("knee serve udp"), "{line}");
    for nowhere in ["127.0.0.1", "", "no.such.host.invalid:9"] {
        let line = refusal(nowhere, "");
        assert!(line.contains("HOST:PORT"), "{line}");
    }
}

#[test]
fn another_kind_of_server_is_no_service() {
    for answer in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"", b"{\"say\":\"alive\"}\n"] {
        let other = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap().to_string();
        let thread = thread::spawn(move || {
            let (mut stream, _) = other.accept().unwrap();
            assert!(stream.read(&mut [0; 100]).unwrap() > 0);
            stream.write_all(answer).unwrap();
        });
        let line = refusal(&address, "");
        assert!(line.contains("does not answer as a knee service"), "{line}");
        thread.join().unwrap();
    }
}

#[test]
fn an_address_that_others_reach_needs_a_token() {
    let mut spec =
        UdpServerSpec { listen: "0.0.0.0:0".parse().unwrap(), ..UdpServerSpec::default() };
    let line = UdpServer::start(spec.clone()).unwrap_err().to_string();
    assert!(line.contains("--token"), "{line}");
    spec.token = "t".into();
    let server = UdpServer::start(spec).unwrap();
    let port = server.address().port();
    let mut trial = trial_of(SocketAddr::from(([127, 0, 0, 1], port)));
    trial.token = "t".into();
    assert_eq!(run(&trial).received.unwrap().received, 240);
}

#[test]
fn a_service_that_vanishes_ends_the_trial() {
    let server = server(|_| {});
    let mut spec = trial_of(server.address());
    (spec.duration, spec.datagrams_max) = (Nanos::from_secs(600), None);
    let (begun, is_on) = mpsc::channel();
    let trial = thread::scope(|scope| {
        let trial = scope.spawn(move || {
            let stop = AtomicBool::new(false);
            udp::run(&spec, Path::new("none"), &mut TellsWhenOn(begun), &stop).unwrap()
        });
        is_on.recv().unwrap();
        let stats = server.stop();
        assert_eq!(stats.sessions, 1);
        trial.join().unwrap()
    });
    assert!(trial.received.is_none() && !trial.interrupted);
    let why = trial.service_lost.unwrap();
    assert!(why.contains("the service"), "{why}");
    assert!(trial.sent.elapsed < Nanos::from_secs(600));
}

#[test]
fn an_interrupted_trial_still_has_its_record() {
    let server = server(|_| {});
    let mut spec = trial_of(server.address());
    (spec.duration, spec.datagrams_max) = (Nanos::from_secs(600), None);
    let stop = AtomicBool::new(false);
    let trial = thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(400));
            stop.store(true, Ordering::Relaxed);
        });
        udp::run(&spec, Path::new("none"), &mut Seen::default(), &stop)
    });
    // An interruption before the begin is an error in one line instead.
    if let Ok(trial) = trial {
        assert!(trial.interrupted);
        let received = trial.received.unwrap();
        let arrived = received.received + received.socket_drops;
        assert_eq!(arrived, trial.sent.sent, "{received:?}");
    }
}

/// A client written by hand.
struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    fn connect(service: &str) -> Client {
        let stream = TcpStream::connect(service).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Client { stream: BufReader::new(stream) }
    }

    fn ask(&mut self, ask: &UdpRequest) -> UdpReply {
        self.stream.get_mut().write_all(&wire::line(ask)).unwrap();
        self.hear()
    }

    fn hear(&mut self) -> UdpReply {
        let mut line = String::new();
        self.stream.read_line(&mut line).unwrap();
        match serde_json::from_str(&line).unwrap() {
            UdpReply::Alive => self.hear(),
            say => say,
        }
    }

    fn hello(&mut self, token: &str) {
        let hello = UdpRequest::Hello(Hello::new(SERVICE, token));
        let stream = self.stream.get_mut();
        stream.write_all(&wire::line(&hello)).unwrap();
        let mut welcome = String::new();
        self.stream.read_line(&mut welcome).unwrap();
        assert!(welcome.starts_with(r#"{"say":"welcome""#), "{welcome}");
    }

    fn begin(&mut self, session: u64) {
        let begin = UdpSessionSpec {
            session,
            setup: ServiceSetup { mode: Some(ServiceMode::Echo), ..ServiceSetup::default() },
            clients: 1,
            interval: Nanos::from_secs(1),
            duration: Nanos::from_secs(1),
            size: 40,
            gso: false,
            sharing: None,
        };
        let ready = self.ask(&UdpRequest::Begin(begin));
        assert!(matches!(ready, UdpReply::Ready { .. }), "{ready:?}");
    }
}

fn datagram(session: u64, client: u32, number: u64) -> [u8; 40] {
    let mut bytes = [0; 40];
    let header = DatagramHeader { session, client, number, intended: Nanos(1), sent: Nanos(2) };
    header.write(&mut bytes);
    bytes
}

#[test]
fn what_is_not_of_the_session_is_told_apart_and_never_answered() {
    let server = server(|_| {});
    let service = server.address().to_string();
    let mut client = Client::connect(&service);
    client.hello("");
    client.begin(7);
    let origin_ns = crate::sys::clock::monotonic_ns();
    assert!(matches!(client.ask(&UdpRequest::Start { origin_ns }), UdpReply::Started));
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let others = UdpSocket::bind("127.0.0.2:0").unwrap();
    let send = |socket: &UdpSocket, bytes: &[u8]| socket.send_to(bytes, &service).unwrap();
    // Good, the same again, a later one, one between.
    for number in [0, 0, 2, 1] {
        send(&sender, &datagram(7, 0, number));
    }
    send(&sender, &datagram(8, 0, 0));
    send(&others, &datagram(7, 0, 9));
    send(&sender, b"");
    send(&sender, &[0; 40]);
    send(&sender, &datagram(7, 1, 0));
    send(&sender, &[&datagram(7, 0, 5)[..], b"more"].concat());
    let UdpReply::Record(mut record) = client.ask(&UdpRequest::End { sent: 4 }) else {
        panic!("no record");
    };
    record.unpack();
    let received = record.received;
    assert_eq!((received.received, received.duplicates, received.reordered), (3, 1, 1));
    let counts: Vec<_> = received.discarded.into_iter().collect();
    assert_eq!(counts, [("malformed".to_owned(), 4), ("not_of_this_run".to_owned(), 2)]);
    assert_eq!((received.replies, received.arrivals.len()), (4, 3));
    assert!(received.arrivals.is_sorted());
    others.set_nonblocking(true).unwrap();
    assert!(others.recv(&mut [0; 64]).is_err(), "nobody else is answered");
    drop(client);
    send(&sender, &datagram(7, 0, 10));
    preflight(&service, "").unwrap();
    let stats = server.stop();
    assert_eq!((stats.received, stats.replies), (4, 4));
    assert!(stats.to_string().contains("malformed 4"), "{stats}");
}

#[test]
fn a_session_whose_client_is_gone_leaves_the_service_free() {
    let server = server(|_| {});
    let service = server.address().to_string();
    for session in 0..3 {
        let mut client = Client::connect(&service);
        client.hello("");
        client.begin(session);
    }
    assert_eq!(run(&trial_of(server.address())).received.unwrap().received, 240);
    let stats = server.stop();
    assert_eq!((stats.sessions, stats.sessions_lost), (4, 3));
}

#[test]
fn rubbish_on_the_control_port_harms_nobody() {
    let server = server(|_| {});
    let service = server.address().to_string();
    let long = vec![b'x'; 100_000];
    let deep = "[".repeat(5_000) + "\n";
    let begin = b"{\"ask\":\"end\",\"sent\":1}\n";
    let rubbish: [&[u8]; 6] =
        [b"GET / HTTP/1.1\r\n\r\n", b"\n", b"\0\xff\n", &long, deep.as_bytes(), begin];
    for bytes in rubbish {
        let mut stream = TcpStream::connect(&service).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let _ = stream.write_all(bytes);
        let mut said = Vec::new();
        // A reset where more was sent than is read is as good an answer.
        if stream.read_to_end(&mut said).is_ok() {
            let said = String::from_utf8(said).unwrap();
            assert!(said.contains("refused"), "{said:?}");
        }
    }
    // Those who say nothing do not hold the service.
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&service).unwrap()).collect();
    preflight(&service, "").unwrap();
    drop(silent);
    preflight(&service, "").unwrap();
}
