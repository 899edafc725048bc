//! What response times are made of, against servers whose delays are known. Each stage is reported
//! with its owner, and the nearest other delay as another stage.

mod support;

use knee_engine::sys::socket::{Address, Listener, RawAddress};
use knee_load::measure::{Outcome, Stage, Trial};
use knee_load::spec::{
    ArrivalLaw, BackendChoice, Body, EngineOptions, Load, OpenLoad, Rate, TimestampsChoice,
    TrialSpec,
};
use knee_load::time::Nanos;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;
use support::{run_over, target, unless_disturbed};

const MS: fn(u64) -> Nanos = Nanos::from_millis;
const DELAY: Duration = Duration::from_millis(20);

/// This number of operations, 25 a second, over at most `connections_max` connections.
fn spec(port: u16, operations: u64, connections_max: u32, body: Body) -> TrialSpec {
    let load = Load::Open(OpenLoad {
        rate: Rate::per_second(25).unwrap(),
        arrival: ArrivalLaw::Constant,
        connections_max,
        in_flight_max: None,
    });
    TrialSpec {
        label: "timing".to_owned(),
        level: load.level(),
        load,
        target: target(port, "POST", body, true),
        warmup: Nanos::ZERO,
        duration: MS(30_000),
        operations_max: Some(operations),
        timeout: MS(20_000),
        retry: None,
        sentinel: None,
        connect_timeout: MS(10_000),
        interval: MS(100),
        seed: 1,
        engine: EngineOptions::default(),
    }
}

/// Checks a trial over each backend, where io_uring is permitted, each against a server of its own.
fn check(spec_of: impl Fn() -> TrialSpec, trial: impl Fn(&Trial)) {
    let both = || {
        let both = [BackendChoice::Epoll, BackendChoice::IoUring];
        both.into_iter().filter_map(|b| run_over(&spec_of(), b)).collect()
    };
    unless_disturbed(both, |trials| {
        for of in trials {
            let outcomes = &of.measurement.outcomes;
            assert_eq!(outcomes.count(Outcome::Ok), outcomes.total(), "{outcomes:?}");
            trial(of);
        }
    });
}

/// The shortest time of a stage: what a busy host adds is not in it.
fn shortest(trial: &Trial, stage: Stage) -> Nanos {
    trial.measurement.stage(stage).unwrap().min()
}

fn longest(trial: &Trial, stage: Stage) -> Nanos {
    trial.measurement.stage(stage).unwrap().max()
}

/// Answers each request as `answer` does, each connection on a thread of its own. Returns its port.
fn server(answer: impl Fn(&mut TcpStream) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = answer.clone();
            let mut stream = stream.unwrap();
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || {
                while read_request(&mut stream, Duration::ZERO) {
                    answer(&mut stream);
                }
            });
        }
    });
    port
}

/// Reads a request whole, its body only after `pause`. Whether there was one.
fn read_request(stream: &mut TcpStream, pause: Duration) -> bool {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => return false,
        }
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.split("content-length: ").nth(1).unwrap_or("0");
    let length: usize = length.split("\r\n").next().unwrap().parse().unwrap();
    thread::sleep(pause);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).is_ok()
}

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n";
const WHOLE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody";

#[test]
fn a_pause_within_a_response_is_not_one_before_it() {
    let before = |stream: &mut TcpStream| {
        thread::sleep(DELAY);
        let _ = stream.write_all(WHOLE);
    };
    let within = |stream: &mut TcpStream| {
        let _ = stream.write_all(HEAD);
        thread::sleep(DELAY);
        let _ = stream.write_all(b"body");
    };
    check(
        || spec(server(before), 10, 10, Body::default()),
        |trial| {
            assert!(shortest(trial, Stage::FirstByte) >= MS(20));
            assert_eq!(shortest(trial, Stage::Receive), Nanos::ZERO);
        },
    );
    check(
        || spec(server(within), 10, 10, Body::default()),
        |trial| {
            assert!(shortest(trial, Stage::Receive) >= MS(19), "{trial:?}");
            assert!(shortest(trial, Stage::FirstByte) < MS(19));
        },
    );
}

#[test]
fn late_accept_is_a_wait_for_the_connection_late_answer_is_not() {
    // The queue of a listener with a backlog of 0 has room for one connection. The next SYN is
    // dropped, and comes again after a second. First `first` is in it, then the connection that
    // looks whether the target is there, and at last that of the operation.
    let crowded = || {
        let any = Address::Tcp((Ipv4Addr::LOCALHOST, 0).into());
        let listener = Listener::bind(&RawAddress::new(&any).unwrap(), 0).unwrap();
        let Address::Tcp(address) = listener.local_address().unwrap() else {
            panic!("a TCP listener");
        };
        let first = TcpStream::connect(address).unwrap();
        thread::spawn(move || {
            thread::sleep(Duration::from_millis(300));
            drop((listener.accept().unwrap(), first));
            thread::sleep(Duration::from_millis(1_200));
            loop {
                if let Ok(socket) = listener.accept() {
                    let mut stream = TcpStream::from(std::os::fd::OwnedFd::from(socket));
                    stream.set_nonblocking(false).unwrap();
                    thread::spawn(move || {
                        while read_request(&mut stream, Duration::ZERO) {
                            let _ = stream.write_all(WHOLE);
                        }
                    });
                }
                thread::sleep(Duration::from_millis(1));
            }
        });
        address.port()
    };
    check(
        || spec(crowded(), 1, 1, Body::default()),
        |trial| {
            assert!(longest(trial, Stage::Connect) >= MS(900), "{trial:?}");
        },
    );
    let late = |stream: &mut TcpStream| {
        thread::sleep(Duration::from_millis(300));
        let _ = stream.write_all(WHOLE);
    };
    check(
        || spec(server(late), 1, 1, Body::default()),
        |trial| {
            assert!(longest(trial, Stage::FirstByte) >= MS(300));
            assert!(longest(trial, Stage::Connect) < longest(trial, Stage::FirstByte));
        },
    );
}

#[test]
fn too_few_connections_are_told_from_a_slow_target() {
    // Each takes 80 ms, and one is due every 40 ms.
    let slow = |stream: &mut TcpStream| {
        thread::sleep(4 * DELAY);
        let _ = stream.write_all(WHOLE);
    };
    check(
        || spec(server(slow), 12, 1, Body::default()),
        |trial| {
            // The last has waited for eleven times 40 ms.
            assert!(longest(trial, Stage::ConnectionWait) >= MS(400), "{trial:?}");
            assert_eq!(trial.measurement.connections_opened, 1);
        },
    );
    check(
        || spec(server(slow), 12, 12, Body::default()),
        |trial| {
            assert_eq!(longest(trial, Stage::ConnectionWait), Nanos::ZERO);
            assert!(shortest(trial, Stage::FirstByte) >= MS(80));
        },
    );
}

#[test]
fn a_target_that_does_not_read_is_waited_for_by_the_request() {
    // More than the buffers of both ends hold.
    let body = || Body::from(vec![b'x'; 24 << 20]);
    let reads_late = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                while read_request(&mut stream, 10 * DELAY) {
                    let _ = stream.write_all(WHOLE);
                }
            }
        });
        port
    };
    check(
        || spec(reads_late(), 1, 1, body()),
        |trial| {
            assert!(longest(trial, Stage::WindowWait) >= MS(190), "{trial:?}");
        },
    );
    let answers_late = |stream: &mut TcpStream| {
        thread::sleep(10 * DELAY);
        let _ = stream.write_all(WHOLE);
    };
    check(
        || spec(server(answers_late), 1, 1, Body::default()),
        |trial| {
            assert_eq!(longest(trial, Stage::WindowWait), Nanos::ZERO);
            assert!(longest(trial, Stage::FirstByte) >= MS(200));
        },
    );
}

#[test]
fn responses_carry_the_kernels_timestamp_if_wanted() {
    let at_once = |stream: &mut TcpStream| {
        let _ = stream.write_all(WHOLE);
    };
    check(
        || spec(server(at_once), 10, 4, Body::default()),
        |trial| {
            // The kernel may begin to stamp only after the first.
            assert!(trial.measurement.by_kernel >= 9, "{}", trial.measurement.by_kernel);
        },
    );
    let unstamped = || {
        let mut spec = spec(server(at_once), 10, 4, Body::default());
        spec.engine.timestamps = TimestampsChoice::Off;
        spec
    };
    check(unstamped, |trial| {
        assert_eq!(trial.measurement.by_kernel, 0);
        assert_eq!(trial.measurement.pick_up.max(), Nanos::ZERO);
    });
}
