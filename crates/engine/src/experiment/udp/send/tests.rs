//! Sending over loopback to a socket that counts. Nothing here depends on speed.

use super::tally::SendTally;
use super::*;
use crate::experiment::udp::wire::DatagramHeader;
use crate::sys::clock::monotonic_ns;
use knee_load::experiment::udp::{ClientWait, ServiceMode, ServiceSetup};
use knee_load::law::Law;
use knee_load::spec::{ArrivalLaw, BackendChoice, EngineOptions, Level, Rate, WaitPolicy};
use knee_load::time::Nanos;
use std::collections::BTreeMap;
use std::net::UdpSocket;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

const SESSION: u64 = 0x5e55_1011;
const ALL: u64 = 210;

/// 10,000/s by no wait, sleeps of a blink, or a schedule: small runs of every kind.
fn waits() -> Vec<ClientWait> {
    let blink = Nanos::from_micros(100);
    let schedule =
        |arrival| ClientWait::Schedule { rate: Rate::per_second(10_000).unwrap(), arrival };
    vec![
        ClientWait::None,
        ClientWait::Yield,
        ClientWait::SleepZero,
        ClientWait::Sleep(Law::Fixed(blink)),
        ClientWait::Sleep(Law::Exp(blink)),
        ClientWait::Tick(Nanos::from_millis(1)),
        schedule(ArrivalLaw::Constant),
        schedule(ArrivalLaw::Poisson),
    ]
}

/// Seven clients, 210 datagrams of 64 bytes in all, which fit a receive buffer by default.
pub(super) fn plan_to(target: SocketAddr, wait: ClientWait, carried_as: ClientsAs) -> SendPlan {
    let spec = UdpTrialSpec {
        label: "test".into(),
        level: Level::Clients(7),
        service: target.to_string(),
        token: String::new(),
        clients: 7,
        wait,
        carried_as,
        unsynchronised: false,
        size: 64,
        gso: false,
        timer_slack: Nanos::from_micros(50),
        send_cost: Nanos::ZERO,
        client_cpus: Vec::new(),
        setup: ServiceSetup::default(),
        duration: Nanos::from_secs(60),
        datagrams_max: Some(ALL),
        interval: Nanos::from_secs(1),
        seed: 7,
        engine: EngineOptions {
            workers: 2,
            backend: BackendChoice::Auto,
            wait: WaitPolicy::Sleep,
            ..EngineOptions::default()
        },
    };
    SendPlan {
        origin: monotonic_ns() + spec.lead().0,
        spec,
        target,
        session: SESSION,
        program: PathBuf::new(),
    }
}

fn run(plan: &SendPlan) -> Sent {
    send(plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap()
}

/// A socket whose datagrams are taken in by a thread until none has come for a while.
struct Service {
    address: SocketAddr,
    datagrams: mpsc::Receiver<(DatagramHeader, usize)>,
    closing: mpsc::Sender<()>,
}

impl Service {
    fn start(echoes: usize) -> Service {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let patience = Duration::from_millis(100);
        socket.set_read_timeout(Some(patience)).unwrap();
        let (told, datagrams) = mpsc::channel();
        let (closing, closed) = mpsc::channel::<()>();
        thread::spawn(move || {
            let mut bytes = vec![0; 65_536];
            // On a host that stalls one look may be over before it has begun.
            let mut looks_left = 2;
            while looks_left > 0 {
                let Ok((length, from)) = socket.recv_from(&mut bytes) else {
                    let is_over = closed.try_recv() == Err(mpsc::TryRecvError::Disconnected);
                    looks_left -= u32::from(is_over);
                    continue;
                };
                for _ in 0..echoes {
                    socket.send_to(&bytes[..length], from).unwrap();
                }
                let header = DatagramHeader::read(&bytes[..length]).expect("one of ours");
                if told.send((header, length)).is_err() {
                    return;
                }
            }
        });
        Service { address, datagrams, closing }
    }

    /// All that came, once nothing more comes.
    fn all(self) -> Vec<(DatagramHeader, usize)> {
        drop(self.closing);
        self.datagrams.iter().collect()
    }
}

/// Each client's numbers count from 0 without gaps; datagrams per client.
fn clients_of(datagrams: &[(DatagramHeader, usize)]) -> BTreeMap<u32, usize> {
    let mut numbers = BTreeMap::<u32, Vec<u64>>::new();
    for (header, _) in datagrams {
        assert_eq!(header.session, SESSION);
        assert!(header.intended <= header.sent);
        numbers.entry(header.client).or_default().push(header.number);
    }
    let mut counts = BTreeMap::new();
    for (client, mut numbers) in numbers {
        numbers.sort_unstable();
        let all: Vec<u64> = (0..numbers.len() as u64).collect();
        assert_eq!(numbers, all, "client {client}");
        counts.insert(client, all.len());
    }
    counts
}

fn assert_books(sent: &UdpSent, scheduled: bool) {
    let errors: u64 = sent.send_errors.values().sum();
    assert_eq!(sent.intended, sent.sent + errors + sent.not_attempted);
    assert_eq!(sent.by_interval.iter().sum::<u64>(), sent.sent);
    assert_eq!(sent.starts.len() as u64, sent.sent);
    assert!(sent.starts.is_sorted());
    assert!(sent.starts.last().is_none_or(|&t| t < sent.starts_until));
    let paced = if scheduled { sent.sent } else { 0 };
    assert_eq!(sent.pacing_error.count(), paced);
}

#[test]
fn every_wait_sends_what_it_says_from_every_client() {
    for wait in waits() {
        for carried_as in [ClientsAs::Multiplexed, ClientsAs::Threads] {
            let what = format!("{wait:?} {carried_as:?}");
            let scheduled = matches!(wait, ClientWait::Schedule { .. });
            let service = Service::start(0);
            let result = run(&plan_to(service.address, wait.clone(), carried_as));
            assert!(!result.interrupted, "{what}");
            let sent = result.sent;
            assert_books(&sent, scheduled);
            assert_eq!((sent.intended, sent.sent), (ALL, ALL), "{what}: {sent:?}");
            let came = service.all();
            assert!(came.iter().all(|(_, length)| *length == 64));
            let clients = clients_of(&came);
            assert_eq!(clients.values().sum::<usize>() as u64, ALL, "{what}");
            assert_eq!(clients.len(), 7, "{what}: {clients:?}");
            // Clients that sleep by a law of their own send as it falls.
            let emulated = carried_as == ClientsAs::Multiplexed
                && matches!(wait, ClientWait::Sleep(_) | ClientWait::Tick(_));
            if !emulated {
                // Two workers have 105 each for four and three clients.
                assert!(clients.values().all(|n| (26..=35).contains(n)), "{what}: {clients:?}");
            }
        }
    }
}

#[test]
fn a_process_does_what_a_thread_does() {
    for wait in waits() {
        let service = Service::start(0);
        let plan = plan_to(service.address, wait.clone(), ClientsAs::Processes);
        let order = serde_json::json!({ "plan": plan, "client": 2 }).to_string();
        let mut answer = Vec::new();
        client_process(order.as_bytes(), &mut answer).unwrap();
        let last = String::from_utf8(answer).unwrap();
        let said: serde_json::Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        let sent: UdpSent = serde_json::from_value(said["done"]["sent"].clone()).unwrap();
        assert_books(&sent, matches!(wait, ClientWait::Schedule { .. }));
        assert_eq!(clients_of(&service.all()), BTreeMap::from([(2, 30)]), "{wait:?}");
    }
    let bad = client_process(&b"{}"[..], &mut Vec::new());
    assert!(bad.is_err(), "no order");
}

#[test]
fn a_program_that_is_no_client_is_told() {
    let service = Service::start(0);
    let mut plan = plan_to(service.address, ClientWait::None, ClientsAs::Processes);
    for (program, why) in [("/nonexistent/knee", "cannot run"), ("/bin/true", "ended early")] {
        plan.program = program.into();
        let error = send(&plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap_err();
        // A program that ends at once may not even read its order.
        let said = error.to_string();
        assert!(said.contains(why) || said.contains("Broken pipe"), "{said}");
        assert!(said.contains(program), "{said}");
    }
}

#[test]
fn segments_arrive_as_datagrams_of_their_own() {
    for (size, wait) in [(64, ClientWait::None), (9_000, ClientWait::None)]
        .into_iter()
        .chain([(64, waits().pop().unwrap())])
    {
        let service = Service::start(0);
        let mut plan = plan_to(service.address, wait.clone(), ClientsAs::Multiplexed);
        plan.spec.gso = true;
        plan.spec.size = size;
        plan.spec.datagrams_max = Some(130);
        // All are due at once: one burst after another.
        if let ClientWait::Schedule { rate, .. } = &mut plan.spec.wait {
            *rate = Rate::per_second(100_000_000).unwrap();
        }
        let result = run(&plan);
        assert_eq!(result.sent.sent, 130);
        assert_eq!(result.generator.backend, "udp_segment");
        let came = service.all();
        assert!(came.iter().all(|(_, length)| *length == size as usize));
        // 9,000 bytes may overrun the receiver's buffer, 64 bytes do not.
        if size == 64 {
            assert_eq!(clients_of(&came).values().sum::<usize>(), 130);
        }
    }
}

#[test]
fn what_is_too_long_is_refused_by_name() {
    for (gso, carried_as) in [
        (false, ClientsAs::Multiplexed),
        (true, ClientsAs::Multiplexed),
        (false, ClientsAs::Threads),
    ] {
        for wait in [waits().remove(0), waits().remove(1), waits().remove(6)] {
            let service = Service::start(0);
            let mut plan = plan_to(service.address, wait, carried_as);
            plan.spec.size = UdpTrialSpec::SIZE_MAX + 1;
            plan.spec.gso = gso;
            let sent = run(&plan).sent;
            assert_eq!(sent.send_errors, BTreeMap::from([("EMSGSIZE".into(), ALL)]));
            assert_eq!((sent.intended, sent.sent, sent.not_attempted), (ALL, 0, 0));
            assert!(service.all().is_empty());
        }
    }
}

#[test]
fn a_dead_port_is_told_by_name_and_ends() {
    let dead = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for wait in waits() {
        for (gso, carried_as) in [
            (false, ClientsAs::Multiplexed),
            (true, ClientsAs::Multiplexed),
            (false, ClientsAs::Threads),
        ] {
            let mut plan = plan_to(dead, wait.clone(), carried_as);
            plan.spec.gso = gso;
            // Datagrams that leave together share an error; a host that stalls makes them do so.
            let attempts = std::iter::repeat_with(|| run(&plan).sent).take(12);
            let sent = attempts.into_iter().find(|sent| sent.send_errors["ECONNREFUSED"] >= 35);
            let what = format!("{wait:?} {carried_as:?} gso {gso}");
            let sent = sent.unwrap_or_else(|| panic!("{what}: few were refused"));
            assert_eq!(sent.send_errors.len(), 1, "{what}: {:?}", sent.send_errors);
            assert!(sent.sent >= 7, "{what}");
            assert_eq!((sent.intended, sent.not_attempted), (ALL, 0), "{what}");
        }
    }
}

#[test]
fn time_ends_a_trial_and_the_rest_was_not_attempted() {
    for wait in waits() {
        for carried_as in [ClientsAs::Multiplexed, ClientsAs::Threads] {
            let service = Service::start(0);
            let mut plan = plan_to(service.address, wait.clone(), carried_as);
            plan.spec.duration = Nanos::from_millis(30);
            plan.spec.interval = Nanos::from_millis(10);
            plan.spec.datagrams_max = None;
            let constant =
                matches!(wait, ClientWait::Schedule { arrival: ArrivalLaw::Constant, .. });
            let mut told = Vec::new();
            let stop = AtomicBool::new(false);
            let result = send(&plan, &stop, &mut |index, sent| told.push((index, sent))).unwrap();
            let sent = result.sent;
            assert_books(&sent, matches!(wait, ClientWait::Schedule { .. }));
            assert!(sent.elapsed >= plan.spec.duration && !result.interrupted);
            let intervals: Vec<_> = (0..).zip(sent.by_interval.iter().copied()).collect();
            assert_eq!((intervals.len(), &told), (3, &intervals), "{wait:?}");
            if constant {
                assert_eq!(sent.intended, 300, "{carried_as:?}");
            }
        }
    }
}

#[test]
fn a_datagram_costs_its_client_what_it_is_to() {
    let cost = Nanos::from_millis(2);
    for wait in [ClientWait::Yield, ClientWait::SleepZero, ClientWait::None] {
        for carried_as in [ClientsAs::Multiplexed, ClientsAs::Threads] {
            let service = Service::start(0);
            let mut plan = plan_to(service.address, wait.clone(), carried_as);
            plan.spec.send_cost = cost;
            plan.spec.duration = Nanos::from_millis(100);
            plan.spec.datagrams_max = None;
            let Sent { sent, generator, .. } = run(&plan);
            assert_books(&sent, false);
            let used_s = generator.cpu_user_s + generator.cpu_system_s;
            let least_s = cost.as_secs_f64() * sent.sent as f64;
            // Times of threads are exact to a few microseconds.
            assert!(used_s >= 0.99 * least_s, "{used_s} {least_s} {wait:?}");
        }
    }
}

#[test]
fn sending_ends_with_its_time_however_late_that_is_seen() {
    let mut spec = plan_to(([127, 0, 0, 1], 9).into(), ClientWait::Yield, ClientsAs::Threads).spec;
    spec.duration = Nanos::from_millis(500);
    let elapsed = |last_ms, now_ms| {
        let mut tally = SendTally::new(&spec, 10);
        tally.taken(1, Nanos::from_millis(last_ms));
        let (now, over) = (Nanos::from_millis(now_ms), spec.duration);
        tally.finish(now, over, None).elapsed
    };
    assert_eq!(elapsed(499, 620), spec.duration);
    assert_eq!(elapsed(510, 620), Nanos::from_millis(510), "it sent later");
    assert_eq!(elapsed(60, 70), Nanos::from_millis(70), "it was stopped");
}

#[test]
fn a_hopeless_schedule_leaves_what_it_never_came_to() {
    let service = Service::start(0);
    let wait = ClientWait::Schedule {
        rate: Rate::per_second(100_000_000).unwrap(),
        arrival: ArrivalLaw::Constant,
    };
    let mut plan = plan_to(service.address, wait, ClientsAs::Multiplexed);
    plan.spec.duration = Nanos::from_millis(20);
    plan.spec.datagrams_max = None;
    let sent = run(&plan).sent;
    assert_eq!(sent.intended, 2_000_000);
    assert!(sent.not_attempted > 0);
    assert_books(&sent, true);
}

#[test]
fn a_stop_ends_it_early_with_what_there_is() {
    for wait in waits().into_iter().chain([ClientWait::Sleep(Law::Fixed(Nanos::from_secs(50)))]) {
        for carried_as in [ClientsAs::Multiplexed, ClientsAs::Threads] {
            let Service { address, datagrams, closing: _closing } = Service::start(0);
            let mut plan = plan_to(address, wait.clone(), carried_as);
            plan.spec.datagrams_max = None;
            plan.spec.interval = Nanos::from_millis(20);
            let stop = AtomicBool::new(false);
            let result = thread::scope(|scope| {
                let stop = &stop;
                let stopping = scope.spawn(move || {
                    let seen = datagrams.iter().take(7).count();
                    stop.store(true, Ordering::Relaxed);
                    (seen, datagrams)
                });
                let result = send(&plan, stop, &mut |_, _| {}).unwrap();
                assert_eq!(stopping.join().unwrap().0, 7);
                result
            });
            assert!(result.interrupted, "{wait:?} {carried_as:?}");
            let sent = result.sent;
            assert!(sent.sent >= 7 && sent.elapsed < plan.spec.duration);
            assert_eq!(sent.intended, sent.sent + sent.not_attempted, "{wait:?}");
        }
    }
}

/// On a path of 300 ms, and where the service falls further behind with each datagram.
#[test]
fn echoes_that_come_late_are_waited_for() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    let echoing = thread::spawn(move || {
        let mut bytes = [0; 64];
        for delay_ms in [300, 150, 150] {
            let (length, from) = socket.recv_from(&mut bytes).unwrap();
            thread::sleep(Duration::from_millis(delay_ms));
            socket.send_to(&bytes[..length], from).unwrap();
        }
    });
    let mut plan = plan_to(address, ClientWait::None, ClientsAs::Multiplexed);
    plan.spec.clients = 1;
    plan.spec.level = Level::Clients(1);
    plan.spec.setup.mode = Some(ServiceMode::Echo);
    plan.spec.datagrams_max = Some(3);
    let sent = run(&plan).sent;
    echoing.join().unwrap();
    assert_eq!((sent.sent, sent.round_trip.count()), (3, 3));
    assert!(sent.round_trip.max() >= Nanos::from_millis(600));
}

#[test]
fn echoes_are_matched_and_copies_are_strays() {
    for wait in waits() {
        for carried_as in [ClientsAs::Multiplexed, ClientsAs::Threads] {
            for copies in [1, 2] {
                let service = Service::start(copies);
                let mut plan = plan_to(service.address, wait.clone(), carried_as);
                plan.spec.setup.mode = Some(ServiceMode::Echo);
                plan.spec.datagrams_max = Some(70);
                let sent = run(&plan).sent;
                let what = format!("{wait:?} {carried_as:?}");
                assert_eq!((sent.sent, sent.round_trip.count()), (70, 70), "{what}");
                let strays = if copies == 1 { 0..=0 } else { 1..=70 };
                assert!(strays.contains(&sent.stray_replies), "{what}: {}", sent.stray_replies);
                assert!(sent.round_trip.min() > Nanos::ZERO, "{what}");
            }
        }
    }
}

#[test]
fn datagrams_leave_over_ipv6_as_well() {
    let Ok(socket) = UdpSocket::bind("[::1]:0") else {
        return;
    };
    socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    for gso in [false, true] {
        let target = socket.local_addr().unwrap();
        let mut plan = plan_to(target, ClientWait::None, ClientsAs::Multiplexed);
        plan.spec.gso = gso;
        assert_eq!(run(&plan).sent.sent, ALL);
        let mut bytes = [0; 100];
        let came = (0..ALL).map(|_| {
            let length = socket.recv(&mut bytes).unwrap();
            (DatagramHeader::read(&bytes[..length]).unwrap(), length)
        });
        let came: Vec<_> = came.collect();
        assert_eq!(clients_of(&came).values().sum::<usize>() as u64, ALL);
    }
}

#[test]
fn clients_run_where_they_may_and_nowhere_else() {
    let service = Service::start(0);
    let first = crate::sys::thread::affinity().unwrap()[0];
    for carried_as in [ClientsAs::Multiplexed, ClientsAs::Threads] {
        let mut plan = plan_to(service.address, ClientWait::None, carried_as);
        plan.spec.client_cpus = vec![first];
        assert_eq!(run(&plan).sent.sent, ALL);
        plan.spec.client_cpus = vec![1_000];
        let error = send(&plan, &AtomicBool::new(false), &mut |_, _| {}).unwrap_err();
        assert!(error.to_string().contains("1000"), "{error}");
    }
}
