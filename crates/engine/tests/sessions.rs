//! Users who log in, carry values from step to step, and fill carts, against the reference server's
//! shop. Over both versions of HTTP and both backends, in both loops.

mod support;

use knee_engine::sys::socket::{Address, Listener, RawAddress};
use knee_load::law::Law;
use knee_load::measure::{Outcome, SessionAttempts, SessionMeasured, Trial};
use knee_load::session::*;
use knee_load::spec::{
    ArrivalLaw, BackendChoice, CloseKind, ConnectScheme, EngineOptions, Hole, HttpRequest,
    HttpVersion, Load, OpenLoad, OverloadLoad, Part, Pause, Pick, Rate, Target, TrialSpec, Url,
    parse_header,
};
use knee_load::time::Nanos;
use knee_serve::http::{App, HttpServer, HttpServerSpec};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use support::run_over;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

fn shop() -> (HttpServer, u16) {
    let server = knee_serve::http::start(HttpServerSpec {
        listen: Address::Tcp("127.0.0.1:0".parse().unwrap()),
        app: Some(App::Shop),
        ..HttpServerSpec::default()
    });
    let server = server.unwrap();
    let Address::Tcp(address) = server.address() else {
        panic!("a TCP server");
    };
    let port = address.port();
    (server, port)
}

fn piece(piece: TemplatePiece) -> Template {
    Template(vec![piece])
}

/// A request whose texts have a `@` for each hole.
fn request(url: &Url, method: &str, path: &str, headers: &[&str], body: &str) -> HttpRequest {
    let headers = headers.iter().map(|header| parse_header(header).unwrap());
    let headers = headers.collect();
    let mut request = HttpRequest::new(method, url, headers, Vec::new(), 1).unwrap();
    let mut holes = Vec::new();
    let mut cut = |part: Part, text: &str| {
        let mut plain = String::new();
        for c in text.chars() {
            match c {
                '@' => holes.push(Hole { part, at: plain.len() as u32 }),
                c => plain.push(c),
            }
        }
        plain
    };
    request.path = cut(Part::Path, path);
    for (number, (_, value)) in request.headers.iter_mut().enumerate() {
        *value = cut(Part::Header(number as u16), value);
    }
    request.body = cut(Part::Body, body).into_bytes().into();
    request.holes = holes;
    request
}

fn step(name: &str, fills: Vec<Template>, status: u16) -> RequestStep {
    let fill = |value| Fill { value, escape: Escape::None };
    RequestStep {
        name: name.to_owned(),
        fills: fills.into_iter().map(fill).collect(),
        expect: vec![Expectation::Status(vec![(status, status)])],
        ..RequestStep::default()
    }
}

fn extract(variable: u16, source: Source) -> Extraction {
    Extraction { name: format!("v{variable}"), variable, source, otherwise: None }
}

/// A login, a page of items, and one of them viewed twice and put into the cart. Then the cart, and
/// a page that is redirected to the items.
fn target(port: u16, rows: usize, deal: Deal) -> Target {
    let url = Url::parse(&format!("http://127.0.0.1:{port}/")).unwrap();
    let name = || piece(TemplatePiece::Column { data: 0, column: 0 });
    let cookies = || piece(TemplatePiece::Cookies);
    let page = Function::Random { low: 1, high: 3 };
    let mut login = step("login", vec![name(), name()], 200);
    login.extract = vec![
        extract(0, Source::Json("/token".to_owned())),
        extract(2, Source::Header("x-csrf".to_owned())),
    ];
    login.expect.push(Expectation::Value {
        source: Source::Json("/user".to_owned()),
        is: Match::Equals(name()),
    });
    let mut items = step("items", vec![piece(TemplatePiece::Call(Box::new(page))), cookies()], 200);
    items.extract = vec![extract(1, Source::Json("/items/3/id".to_owned()))];
    let item = step("item", vec![piece(TemplatePiece::Variable(1)), cookies()], 200);
    let token = piece(TemplatePiece::Variable(0));
    let add = step("add", vec![token, cookies(), piece(TemplatePiece::Variable(1))], 201);
    let mut cart = step("cart", vec![cookies()], 200);
    cart.expect.push(Expectation::Value {
        source: Source::Body,
        is: Match::Contains(piece(TemplatePiece::Variable(1))),
    });
    let mut old = step("old", vec![cookies()], 200);
    (old.redirects, old.redirected) = (1, Some(Redirected { same: 6, get: 6, is_post: false }));
    let redirected = step("redirected", vec![piece(TemplatePiece::Cookies), cookies()], 200);
    let form = "Content-Type: application/x-www-form-urlencoded";
    let asked = |method, path, headers: &[&str], body| request(&url, method, path, headers, body);
    let requests = vec![
        asked("POST", "/login", &[], r#"{"name": "@", "password": "@"}"#),
        asked("GET", "/items?page=@", &["Cookie: @"], ""),
        asked("GET", "/items/@", &["Cookie: @"], ""),
        asked("POST", "/cart", &["Authorization: Bearer @", form, "Cookie: @"], "id=@"),
        asked("GET", "/cart", &["Cookie: @"], ""),
        asked("GET", "/old", &["Cookie: @"], ""),
        asked("GET", "@", &["Cookie: @"], ""),
    ];
    let names = (0..rows).map(|row| vec![format!("user-{row}-\u{e4}")]);
    let plan = SessionPlan {
        kinds: vec![SessionKind {
            name: "buyer".to_owned(),
            weight: 1,
            data: vec![0],
            program: vec![
                Instruction::Request(0),
                Instruction::Think(Law::Fixed(MS(1))),
                Instruction::Request(1),
                Instruction::Begin(0),
                Instruction::Pass { repetition: 0, end: 7 },
                Instruction::Request(2),
                Instruction::Jump(4),
                Instruction::Request(3),
                Instruction::Request(4),
                Instruction::Request(5),
            ],
            variables: ["token", "item", "price"].map(str::to_owned).to_vec(),
            repetitions: vec![Repetition {
                passes: Passes::Times(Template(vec![TemplatePiece::Text("2".to_owned())])),
                at_most: 0,
                variable: None,
            }],
            new_connection: false,
        }],
        requests: vec![login, items, item, add, cart, old, redirected],
        data: vec![DataSet {
            name: "users".to_owned(),
            columns: vec!["name".to_owned()],
            rows: names.collect(),
            deal,
        }],
        ..SessionPlan::default()
    };
    let endpoint = url.endpoint().clone();
    let mut target = Target::new(endpoint, requests, Pick::InOrder, true).unwrap();
    target.sessions = Some(Arc::new(plan));
    target
}

/// A session's operations: its six steps, one of them done twice, and one redirection.
const OPERATIONS: u64 = 8;

fn spec(target: Target, load: Load, sessions: Option<u64>) -> TrialSpec {
    TrialSpec {
        label: "sessions".to_owned(),
        level: load.level(),
        load,
        target,
        warmup: Nanos::ZERO,
        duration: MS(60_000),
        operations_max: sessions,
        timeout: MS(20_000),
        retry: None,
        connect_timeout: MS(10_000),
        interval: MS(100),
        seed: 1,
        sentinel: None,
        engine: EngineOptions::default(),
    }
}

fn users(vusers: u32) -> Load {
    Load::Closed { vusers, pause: Pause::NONE, stages: Vec::new() }
}

fn buyers(trial: &Trial) -> &SessionMeasured {
    &trial.measurement.sessions.as_ref().expect("sessions").kinds[0]
}

fn check_all_bought(trial: &Trial, sessions: u64) {
    let measured = &trial.measurement;
    let told = &measured.sessions.as_ref().unwrap().unexpected;
    assert_eq!(told, &[], "{:?}", measured.malformed_because);
    let outcomes = &measured.outcomes;
    assert_eq!(outcomes.count(Outcome::Ok), outcomes.total(), "{outcomes:?}");
    assert_eq!(outcomes.total(), sessions * OPERATIONS);
    let buyers = buyers(trial);
    assert_eq!((buyers.completed, buyers.failed, buyers.unfinished), (sessions, 0, 0));
    assert_eq!(buyers.time.count(), sessions);
    assert!(buyers.time.min() >= MS(1), "they pause");
    assert_eq!(measured.started, sessions);
    let by_step: Vec<u64> = measured.targets.iter().map(|t| t.outcomes.total()).collect();
    assert_eq!(by_step, [1, 1, 2, 1, 1, 2, 0].map(|n| n * sessions));
}

fn both() -> [BackendChoice; 2] {
    [BackendChoice::Epoll, BackendChoice::IoUring]
}

#[test]
fn users_get_their_values_over_both_versions_and_backends() {
    for version in [HttpVersion::Http11, HttpVersion::Http2] {
        for backend in both() {
            let (_server, port) = shop();
            let mut target = target(port, 64, Deal::InOrder);
            target = target.with_version(version);
            let spec = spec(target, users(16), Some(200));
            if let Some(trial) = run_over(&spec, backend) {
                check_all_bought(&trial, 200);
                let most = trial.measurement.connections_max;
                assert!(most <= 16, "a user keeps its connection: {most}");
            }
        }
    }
}

#[test]
fn sessions_arrive_by_a_schedule() {
    for version in [HttpVersion::Http11, HttpVersion::Http2] {
        let (_server, port) = shop();
        let mut target = target(port, 64, Deal::Random);
        target = target.with_version(version);
        let load = Load::Open(OpenLoad {
            rate: Rate::per_second(200).unwrap(),
            arrival: ArrivalLaw::Poisson,
            connections_max: 4,
            in_flight_max: None,
        });
        let trial = run_over(&spec(target, load, Some(100)), BackendChoice::Epoll).unwrap();
        check_all_bought(&trial, 100);
        assert!(trial.measurement.connections_max <= 4);
        assert_eq!(trial.measurement.starts.len(), 100);
    }
}

#[test]
fn unique_records_end_the_load_when_there_is_none_left() {
    let (_server, port) = shop();
    let mut spec = spec(target(port, 30, Deal::Unique), users(4), None);
    spec.engine.workers = 2;
    let trial = run_over(&spec, BackendChoice::Epoll).unwrap();
    check_ran_out(&trial, 30);
    assert!(trial.measurement.window.length() < MS(50_000), "long before its time");
}

fn check_ran_out(trial: &Trial, sessions: u64) {
    let measured = trial.measurement.sessions.as_ref().unwrap();
    assert_eq!(measured.ran_out.as_ref().unwrap().set, "users");
    assert_eq!(buyers(trial).completed, sessions, "each record once");
    assert_eq!(trial.measurement.outcomes.total(), sessions * OPERATIONS);
}

#[test]
fn what_was_not_expected_ends_a_session_and_is_told() {
    let (_server, port) = shop();
    let mut target = target(port, 64, Deal::InOrder);
    let plan = Arc::make_mut(target.sessions.as_mut().unwrap());
    plan.requests[2].expect.push(Expectation::Value {
        source: Source::Json("/price".to_owned()),
        is: Match::Equals(piece(TemplatePiece::Text("free".to_owned()))),
    });
    let spec = spec(target, users(4), Some(20));
    let trial = run_over(&spec, BackendChoice::Epoll).unwrap();
    let measured = &trial.measurement;
    assert_eq!(measured.outcomes.count(Outcome::Unexpected), 20);
    assert_eq!(measured.outcomes.total(), 60, "login, items, item");
    let buyers = buyers(&trial);
    assert_eq!((buyers.completed, buyers.failed), (0, 20));
    assert_eq!(buyers.failed_at.get(&2), Some(&20));
    let told = &measured.sessions.as_ref().unwrap().unexpected;
    assert_eq!(told.len(), 3, "the first three");
    assert_eq!((told[0].request, told[0].status), (2, 200));
    assert_eq!(told[0].expected, "/price in the JSON of the body to be 'free'");
    assert!(told[0].sample.contains("price"), "{}", told[0].sample);
}

#[test]
fn a_failed_step_ends_the_session_unless_it_may_fail() {
    for (goes_on, operations) in [(false, 1), (true, 1 + OPERATIONS)] {
        let (_server, port) = shop();
        let mut target = target(port, 64, Deal::InOrder);
        let plan = Arc::make_mut(target.sessions.as_mut().unwrap());
        // Without the cookie of a login the cart is refused.
        let program = &mut plan.kinds[0].program;
        program.insert(0, Instruction::Request(4));
        program[5] = Instruction::Pass { repetition: 0, end: 8 };
        program[7] = Instruction::Jump(5);
        plan.requests[4].goes_on = goes_on;
        let trial = run_over(&spec(target, users(2), Some(10)), BackendChoice::Epoll).unwrap();
        assert_eq!(trial.measurement.outcomes.total(), 10 * operations);
        let buyers = buyers(&trial);
        let want = if goes_on { (10, 0) } else { (0, 10) };
        assert_eq!((buyers.completed, buyers.failed), want, "{goes_on}");
    }
}

#[test]
fn a_session_with_a_connection_of_its_own_closes_it() {
    let (_server, port) = shop();
    let mut target = target(port, 64, Deal::InOrder);
    let plan = Arc::make_mut(target.sessions.as_mut().unwrap());
    plan.kinds[0].new_connection = true;
    let trial = run_over(&spec(target, users(2), Some(10)), BackendChoice::Epoll).unwrap();
    check_all_bought(&trial, 10);
    assert_eq!(trial.measurement.connections_opened, 10);
}

#[test]
fn no_run_begins_where_nobody_listens() {
    let (server, port) = shop();
    drop(server);
    let mut spec = spec(target(port, 64, Deal::InOrder), users(2), None);
    spec.duration = MS(300);
    let stop = AtomicBool::new(false);
    assert!(knee_engine::run(&spec, &mut support::Quiet, &stop).is_err());
}

fn overload(scheme: ConnectScheme, close: CloseKind) -> Load {
    Load::Overload(OverloadLoad { scheme, close })
}

fn s_clients(descriptors: u32) -> ConnectScheme {
    ConnectScheme::SClients { sclients: 1, descriptors }
}

fn attempts(trial: &Trial) -> &SessionAttempts {
    let sessions = trial.measurement.sessions.as_ref().expect("sessions");
    sessions.attempts.as_ref().expect("an overload")
}

#[test]
fn overload_session_keeps_its_one_connection() {
    for (backend, close) in both().into_iter().zip([CloseKind::Rst, CloseKind::Fin]) {
        let (_server, port) = shop();
        let load = overload(s_clients(4), close);
        let mut spec = spec(target(port, 64, Deal::InOrder), load, Some(60));
        spec.connect_timeout = MS(2_000);
        let Some(trial) = run_over(&spec, backend) else {
            continue;
        };
        check_all_bought(&trial, 60);
        let attempts = attempts(&trial);
        assert_eq!(attempts.outcomes.count(Outcome::Served), 60);
        assert_eq!(attempts.outcomes.total(), 60);
        assert_eq!((attempts.established, attempts.connections), (60, 60));
        assert_eq!(trial.measurement.connections_opened, 60);
    }
}

/// A server that answers one request of each connection, and closes it.
fn closing(answers: &str, body: impl FnOnce(u16)) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while let Ok((mut stream, _)) = listener.accept() {
                if over.load(Ordering::SeqCst) {
                    return;
                }
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
                let _ = stream.read(&mut [0; 4_096]);
                let _ = stream.write_all(answers.as_bytes());
            }
        });
        body(address.port());
        over.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(address);
    });
}

/// The cart, looked at twice without a login.
fn two_steps(port: u16) -> Target {
    let mut target = target(port, 64, Deal::InOrder);
    let plan = Arc::make_mut(target.sessions.as_mut().unwrap());
    plan.kinds[0].program = vec![Instruction::Request(4); 2];
    plan.requests[4].expect.clear();
    target
}

#[test]
fn a_step_whose_connection_was_closed_opens_another() {
    let closes = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    for close in [CloseKind::Fin, CloseKind::Rst] {
        closing(closes, |port| {
            let load = overload(ConnectScheme::Simple { clients: 1 }, close);
            let spec = spec(two_steps(port), load, Some(5));
            let trial = run_over(&spec, BackendChoice::Epoll).unwrap();
            let attempts = attempts(&trial);
            assert_eq!(attempts.outcomes.count(Outcome::Served), 5, "{attempts:?}");
            assert_eq!((attempts.established, attempts.connections), (5, 10));
            assert_eq!(buyers(&trial).completed, 5);
        });
    }
}

#[test]
fn a_session_ends_as_the_step_that_it_fails_at() {
    let refuses = "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n";
    closing(refuses, |port| {
        let load = overload(ConnectScheme::Simple { clients: 1 }, CloseKind::Fin);
        let spec = spec(two_steps(port), load, Some(3));
        let trial = run_over(&spec, BackendChoice::Epoll).unwrap();
        let attempts = attempts(&trial);
        assert_eq!(attempts.outcomes.count(Outcome::HTTP_5XX), 3, "{attempts:?}");
        assert_eq!((attempts.outcomes.total(), attempts.established), (3, 3));
        assert_eq!(trial.measurement.outcomes.total(), 3, "steps");
    });
}

#[test]
fn session_without_a_connection_fails_at_its_first_step() {
    let any = Address::Tcp("127.0.0.1:0".parse().unwrap());
    // A backlog of 0 has room for one.
    let listener = Listener::bind(&RawAddress::new(&any).unwrap(), 0).unwrap();
    let Address::Tcp(address) = listener.local_address().unwrap() else {
        panic!("a TCP listener");
    };
    let _first = TcpStream::connect(address).unwrap();
    let mut target = two_steps(address.port());
    // Whether the step may fail is of those that have a connection.
    let plan = Arc::make_mut(target.sessions.as_mut().unwrap());
    plan.requests[4].goes_on = true;
    let mut spec = spec(target, overload(s_clients(3), CloseKind::Fin), Some(9));
    spec.connect_timeout = MS(100);
    for trial in both().into_iter().filter_map(|b| run_over(&spec, b)) {
        let attempts = attempts(&trial);
        let timeouts = attempts.outcomes.count(Outcome::ConnectTimeout);
        assert_eq!((timeouts, attempts.outcomes.total()), (9, 9), "{attempts:?}");
        assert_eq!((attempts.established, attempts.connections), (0, 9));
        assert_eq!(trial.measurement.outcomes.total(), 9, "no second step");
        let buyers = buyers(&trial);
        assert_eq!((buyers.failed, buyers.failed_at[&4]), (9, 9));
    }
}
