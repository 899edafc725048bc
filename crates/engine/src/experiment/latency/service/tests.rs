//! The service with real clients over loopback: what happens, never how fast.

use super::*;
use crate::experiment::latency as flows;
use knee_load::experiment::latency::{
    FlowMeasured, FlowSockets, LatencyTrial, LatencyTrialSpec, ProbeSpec, ScenarioEnd,
    ScenarioEnded, Settle,
};
use knee_load::measure::{Direction, Histogram, Interval, IntervalWatcher};
use knee_load::spec::{BackendChoice, EngineOptions, Level, WaitPolicy};
use knee_load::time::Nanos;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn server(change: impl FnOnce(&mut LatencyServerSpec)) -> LatencyServer {
    let mut spec = LatencyServerSpec { workers: 1, ..LatencyServerSpec::default() };
    change(&mut spec);
    LatencyServer::start(spec).unwrap()
}

fn scenario(service: &LatencyServer, up: u32, down: u32, length: Nanos) -> LatencyTrialSpec {
    LatencyTrialSpec {
        label: format!("{up} up, {down} down"),
        level: Level::Flows { up, down },
        service: service.address().to_string(),
        token: String::new(),
        up,
        down,
        end: ScenarioEnd::After(length),
        bytes_max: None,
        sockets: FlowSockets::default(),
        probes: ProbeSpec {
            every: Nanos::from_millis(10),
            udp: true,
            timeout: Nanos::from_secs(1),
        },
        interval: Nanos::from_millis(50),
        seed: 1,
        engine: EngineOptions {
            workers: 1,
            backend: BackendChoice::Auto,
            wait: WaitPolicy::Sleep,
            ..EngineOptions::default()
        },
    }
}

#[derive(Default)]
struct Seen(Vec<Interval>);

impl IntervalWatcher for Seen {
    fn on_interval(&mut self, interval: &Interval, response: &Histogram) {
        assert_eq!(interval.completed > 0, !response.is_empty());
        self.0.push(interval.clone());
    }
}

fn run(spec: &LatencyTrialSpec) -> LatencyTrial {
    let mut seen = Seen::default();
    let trial = flows::run(spec, &mut seen, &AtomicBool::new(false)).unwrap();
    check(&trial, &seen.0);
    trial
}

/// Runs until what is to happen within the scenario has happened. Where the host stalls for longer
/// than that, the scenario is run again and is four times as long.
fn run_until(
    mut spec: LatencyTrialSpec,
    has_happened: impl Fn(&LatencyTrial) -> bool,
) -> LatencyTrial {
    for _ in 0..2 {
        let trial = run(&spec);
        if has_happened(&trial) {
            return trial;
        }
        let ScenarioEnd::After(length) = &mut spec.end else { unreachable!() };
        *length = Nanos(4 * length.0);
    }
    run(&spec)
}

/// What holds for every trial.
fn check(trial: &LatencyTrial, shown: &[Interval]) {
    let spec = &trial.spec;
    assert_eq!(trial.flows.len() as u32, spec.flows());
    assert_eq!(shown.last().unwrap().end_ns, trial.elapsed.0);
    assert!(shown.windows(2).all(|pair| pair[0].end_ns == pair[1].start_ns));
    let sent: u64 = shown.iter().map(|i| i.attempted).sum();
    assert_eq!(sent, trial.tcp.sent);
    assert_eq!(trial.tcp.probes.len() as u64, trial.tcp.sent);
    for (n, flow) in trial.flows.iter().enumerate() {
        let up = (n as u32) < spec.up;
        assert_eq!(flow.direction == Direction::Up, up);
        assert_eq!(flow.by_interval.len(), shown.len());
        assert_eq!(flow.inside_max_by_interval.len(), shown.len());
        assert!(flow.by_interval.iter().sum::<u64>() <= flow.received_bytes);
        assert!(flow.gap_at + flow.gap_max <= flow.ended, "{flow:?}");
    }
    for probe in &trial.tcp.probes {
        assert!(probe.sent >= probe.intended);
        if let Some(back) = probe.back {
            assert!(back.round_trip <= trial.tcp.longest);
        }
    }
}

const SHORT: Nanos = Nanos::from_millis(300);

/// Past its end nothing is due until the client asks for the record.
#[test]
fn a_session_past_its_end_waits_without_a_limit() {
    let begin = LatencySessionSpec {
        session: 1,
        up: 1,
        down: 0,
        sockets: FlowSockets::default(),
        interval: Nanos::from_millis(10),
        window: Nanos::ZERO,
        limit: Nanos::from_millis(25),
        bytes_max: None,
    };
    let mut session = LatencySession::new(begin, [127, 0, 0, 1].into());
    let flow_run = FlowRun::new(1, 0, 25_000_000, 0, Nanos::from_millis(10));
    session.running = Some(RunningFlows {
        carriers: None,
        flow_run,
        used: ThreadUse::now(),
        due: Nanos::from_millis(10),
        is_ending: false,
        is_over: false,
    });
    let now_ns = 60_000_000;
    let told = std::iter::from_fn(|| session.next_message(now_ns, None));
    assert_eq!(told.count(), 2, "at 10 and 20 ms");
    assert_eq!(session.patience(now_ns), Nanos::MAX);
}

#[test]
fn flows_of_both_directions_are_carried_and_accounted_for() {
    let server = server(|_| {});
    for (up, down) in [(1, 0), (0, 1), (2, 3), (0, 16)] {
        let trial = run(&scenario(&server, up, down, SHORT));
        assert_eq!(trial.ended, ScenarioEnded::Forced);
        assert_eq!(trial.elapsed, SHORT);
        assert!(!trial.interrupted && trial.service.same_host);
        assert_eq!(trial.service.clock_uncertainty_ns, 0);
        for flow in &trial.flows {
            assert_eq!(flow.lost, None);
            assert!(flow.received_bytes > 0 && flow.gap_max < flow.ended, "{flow:?}");
            assert!(flow.inside.count() > 0 && !flow.samples.is_empty());
            assert!(!flow.congestion_control.is_empty() && !flow.ecn);
            assert!(flow.samples.iter().all(|s| s.window_bytes > 0));
        }
        assert!(trial.tcp.probes.iter().all(|p| p.back.is_some()));
        assert!(trial.udp.unwrap().probes.iter().any(|p| p.back.is_some()));
        assert!(trial.service_cpu.is_some());
    }
    let stats = server.stop();
    assert_eq!((stats.sessions, stats.sessions_lost), (4, 0));
    assert_eq!(stats.flows, 1 + 1 + 5 + 16);
    assert!(stats.received_bytes > 0 && stats.sent_bytes > 0 && stats.pings > 0);
}

#[test]
fn an_idle_path_has_probes_alone() {
    let server = server(|_| {});
    let mut spec = scenario(&server, 0, 0, SHORT);
    let trial = run(&spec);
    assert!(trial.tcp.sent > 1 && trial.flows.is_empty());
    assert!(trial.tcp.probes.iter().all(|p| p.back.is_some()));
    let first = trial.tcp.probes[0].back.unwrap();
    assert!(first.up + first.down >= first.round_trip);
    assert!(trial.udp.is_some());
    spec.probes.udp = false;
    assert!(run(&spec).udp.is_none());
}

#[test]
fn a_reset_flow_is_told_and_the_others_go_on() {
    for direction in [Direction::Up, Direction::Down] {
        let at = Nanos::from_millis(100);
        let server = server(|spec| {
            spec.faults = vec![FlowFault { direction, number: 1, at, kind: FlowFaultKind::Reset }];
        });
        let is_reset = |trial: &LatencyTrial| trial.flows.iter().any(|flow| flow.lost.is_some());
        let trial = run_until(scenario(&server, 2, 2, SHORT), is_reset);
        assert_eq!(trial.ended, ScenarioEnded::Forced);
        for flow in &trial.flows {
            let is_killed = flow.direction == direction && flow.number == 1;
            assert_eq!(flow.lost.is_some(), is_killed, "{flow:?}");
            if let Some(lost) = &flow.lost {
                assert!(lost.at >= at && lost.at == flow.ended && !lost.why.is_empty());
            } else {
                assert!(flow.ended >= trial.elapsed);
            }
        }
    }
}

#[test]
fn a_stalled_flow_has_a_gap() {
    let stall = Nanos::from_millis(334);
    for direction in [Direction::Up, Direction::Down] {
        let server = server(|spec| {
            spec.faults = vec![FlowFault {
                direction,
                number: 0,
                at: Nanos::from_millis(100),
                kind: FlowFaultKind::Stall(stall),
            }];
        });
        // What was under way when it stalled comes within that time.
        let has_gap = |flow: &FlowMeasured| flow.gap_max >= Nanos::from_millis(300);
        let is_stalled = |trial: &LatencyTrial| {
            trial.flows.iter().any(|flow| flow.direction == direction && has_gap(flow))
        };
        let trial = run_until(scenario(&server, 1, 1, Nanos::from_millis(700)), is_stalled);
        for flow in &trial.flows {
            assert_eq!(flow.lost, None);
            if flow.direction == direction {
                assert!(has_gap(flow), "{direction:?}: {:?}", flow.gap_max);
            }
        }
    }
}

#[test]
fn a_scenario_settles_or_is_ended_by_force() {
    let server = server(|_| {});
    let mut spec = scenario(&server, 1, 1, SHORT);
    let settle = |tolerance| Settle { tolerance, window: Nanos::from_millis(40), windows: 6 };
    spec.end = ScenarioEnd::Settled { settle: settle(1e9), limit: Nanos::from_secs(30) };
    let trial = run(&spec);
    assert_eq!(trial.ended, ScenarioEnded::Settled);
    assert!(trial.elapsed < Nanos::from_secs(30));
    spec.end = ScenarioEnd::Settled { settle: settle(0.0), limit: SHORT };
    let trial = run(&spec);
    assert_eq!((trial.ended, trial.elapsed), (ScenarioEnded::Forced, SHORT));
}

#[test]
fn caps_on_bytes_abort() {
    let generous = server(|_| {});
    let mut spec = scenario(&generous, 1, 1, Nanos::from_secs(30));
    spec.bytes_max = Some(100_000);
    let trial = run(&spec);
    let ScenarioEnded::Aborted(why) = &trial.ended else {
        panic!("{:?}", trial.ended);
    };
    assert!(why.contains("100000 bytes"), "{why}");
    let strict = server(|spec| spec.bytes_max = Some(100_000));
    let trial = run(&scenario(&strict, 1, 0, Nanos::from_secs(30)));
    let ScenarioEnded::Aborted(why) = &trial.ended else {
        panic!("{:?}", trial.ended);
    };
    assert!(why.contains("service permits"), "{why}");
    assert!(trial.flows[0].received_bytes >= 100_000);
    let short = server(|spec| spec.session_max = Nanos::from_millis(10));
    let refused = refusal(&scenario(&short, 1, 0, SHORT));
    assert!(refused.contains("permits 10 ms"), "{refused}");
}

fn refusal(spec: &LatencyTrialSpec) -> String {
    let run = flows::run(spec, &mut Seen::default(), &AtomicBool::new(false));
    run.unwrap_err().to_string()
}

#[test]
fn a_service_that_dies_leaves_what_was_measured() {
    let server = server(|_| {});
    let spec = scenario(&server, 1, 1, Nanos::from_secs(30));
    let killer = thread::spawn(move || {
        thread::sleep(Duration::from_millis(400));
        server.stop()
    });
    let trial = run(&spec);
    let ScenarioEnded::Aborted(why) = &trial.ended else {
        panic!("{:?}", trial.ended);
    };
    assert!(why.contains("the service"), "{why}");
    for flow in &trial.flows {
        assert!(flow.received_bytes > 0, "{flow:?}");
    }
    assert!(trial.elapsed > Nanos::from_millis(100) && trial.service_cpu.is_none());
    let stats = killer.join().unwrap();
    assert_eq!((stats.sessions, stats.sessions_lost), (1, 1));
}

#[test]
fn an_interruption_ends_it_at_once() {
    let server = server(|_| {});
    let spec = scenario(&server, 2, 2, Nanos::from_secs(30));
    let stop = AtomicBool::new(false);
    let mut seen = Seen::default();
    let (trial, took) = thread::scope(|scope| {
        let stopper = scope.spawn(|| {
            thread::sleep(Duration::from_millis(300));
            stop.store(true, Ordering::Relaxed);
            Instant::now()
        });
        let trial = flows::run(&spec, &mut seen, &stop).unwrap();
        let ended = Instant::now();
        (trial, ended - stopper.join().unwrap())
    });
    check(&trial, &seen.0);
    assert!(trial.interrupted && trial.elapsed < Nanos::from_secs(20));
    assert!(took < Duration::from_secs(10), "{took:?}");
    // And the service has room for the next.
    run(&scenario(&server, 1, 0, SHORT));
}

#[test]
fn a_second_client_is_told_that_the_service_is_busy() {
    let server = server(|_| {});
    let service = server.address().to_string();
    let spec = scenario(&server, 1, 0, Nanos::from_secs(30));
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let first = scope.spawn(|| flows::run(&spec, &mut Seen::default(), &stop));
        thread::sleep(Duration::from_millis(300));
        let second = flows::preflight(&service, "").unwrap_err().to_string();
        stop.store(true, Ordering::Relaxed);
        assert!(second.contains("busy"), "{second}");
        assert!(first.join().unwrap().unwrap().interrupted);
    });
    assert!(flows::preflight(&service, "").unwrap().cpus >= 1);
}

#[test]
fn a_token_is_asked_for() {
    let secret = server(|spec| spec.token = "secret".to_owned());
    let service = secret.address().to_string();
    let told = flows::preflight(&service, "guess").unwrap_err().to_string();
    assert!(told.contains("token"), "{told}");
    assert!(flows::preflight(&service, "secret").is_ok());
    let open = LatencyServer::start(LatencyServerSpec {
        listen: "0.0.0.0:0".parse().unwrap(),
        ..LatencyServerSpec::default()
    });
    assert!(open.unwrap_err().to_string().contains("--token"));
}

#[test]
fn congestion_control_is_what_was_asked_for_on_both_ends() {
    let server = server(|_| {});
    let mut spec = scenario(&server, 1, 1, SHORT);
    spec.sockets.dscp = Some(10);
    spec.sockets.congestion_control = Some("reno".to_owned());
    let trial = run(&spec);
    for flow in &trial.flows {
        assert_eq!(flow.congestion_control, "reno");
    }
    spec.sockets.congestion_control = Some("nosuch".to_owned());
    let told = refusal(&spec);
    assert!(told.contains("'nosuch' is not available"), "{told}");
}

#[test]
fn who_is_no_service_is_told_from_one_in_bounded_time() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap().to_string();
    let told = flows::preflight(&address, "").unwrap_err().to_string();
    assert!(told.contains("knee serve latency"), "{told}");
    drop(silent);
    let told = flows::preflight(&address, "").unwrap_err().to_string();
    assert!(told.contains("no knee service answers"), "{told}");
}

/// Speaks the language up to `started`, then says nothing more.
fn mute_service(listener: &std::net::TcpListener) {
    use crate::control::Welcome;
    use crate::experiment::latency::wire::{HelloReply, LatencyReply, LatencyRequest, line};
    use std::io::{BufRead, BufReader, Write};
    let (stream, _) = listener.accept().unwrap();
    let mut said = BufReader::new(stream.try_clone().unwrap()).lines();
    let say = |say: LatencyReply| (&stream).write_all(&line(&say)).unwrap();
    while let Some(Ok(heard)) = said.next() {
        match serde_json::from_str(&heard).unwrap() {
            LatencyRequest::Hello(_) => {
                let facts = LatencyServiceFacts::default();
                let welcome = HelloReply::Welcome(Welcome::with_facts(facts));
                (&stream).write_all(&line(&welcome)).unwrap();
            }
            LatencyRequest::Ping { n } => say(LatencyReply::Pong { n, reached_ns: 1, left_ns: 2 }),
            LatencyRequest::Begin(_) => {
                say(LatencyReply::Ready);
                say(LatencyReply::Joined);
            }
            LatencyRequest::Start { .. } => {
                say(LatencyReply::Started);
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    // Whatever is asked from now on has no answer, until the client leaves.
    said.for_each(drop);
}

#[test]
fn a_service_that_falls_silent_is_no_hang() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let mute = thread::spawn(move || mute_service(&listener));
    let other = server(|_| {});
    let mut spec = scenario(&other, 0, 0, SHORT);
    spec.service = address.to_string();
    let trial = run(&spec);
    let ScenarioEnded::Aborted(why) = &trial.ended else {
        panic!("{:?}", trial.ended);
    };
    assert!(why.contains("says nothing any more"), "{why}");
    assert!(trial.tcp.sent > 0 && trial.tcp.probes.iter().all(|p| p.back.is_none()));
    assert!(trial.tcp.longest >= Nanos::from_secs(9));
    mute.join().unwrap();
}
