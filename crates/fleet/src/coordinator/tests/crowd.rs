//! A coordinator of many agents on a real NATS server. Another process stands for all of them, so
//! that what this one takes is the coordinator's alone.

use super::{Simulated, delivered_by, spec};
use crate::bus::{Bus, Stores, json, now_ns, parse};
use crate::coordinator::{Fleet, FleetOptions};
use crate::interval_share::IntervalShare;
use crate::nats_access::NatsAccess;
use crate::parcel::{ParcelPieces, pack, parse_piece, unpack};
use crate::protocol::{
    AGENTS, AgentAnswer, BEAT, ClockReading, GoRequest, Heartbeat, JobState, PIECE, PrepareRequest,
    RENEW, Snapshot, TrialKey, TrialOrder, Verb, beat_subject, facts_of_test, live_subject,
    result_subject,
};
use crate::{Patience, Selector};
use async_nats::Message;
use async_nats::jetstream::Context;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::join_all;
use knee_load::arrival::ArrivalLaw;
use knee_load::measure::{Histogram, Interval, IntervalWatcher};
use knee_load::spec::{Load, Rate, TrialSpec};
use knee_load::time::Nanos;
use std::collections::BTreeMap;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// Operations per second of each agent.
const EACH_PER_S: u64 = 100;
/// Results that are packed and stored at a time.
const STORING: usize = 8;

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A NATS server and where it is; `None`, and a line that says so, where none is installed.
fn nats(folder: &PathBuf) -> Option<(Running, String)> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
    let found = folders.map(|f| f.join("nats-server")).find(|f| f.is_file());
    let Some(binary) = found else {
        assert!(std::env::var_os("CI").is_none(), "nats-server is missing");
        println!("skipped: nats-server is not installed");
        return None;
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut command = Command::new(binary);
    let at = ["-js", "-a", "127.0.0.1", "-p", &port.to_string(), "-sd"];
    command.args(at).arg(folder);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    let running = Running(quiet.spawn().unwrap());
    let since = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(since.elapsed() < Duration::from_secs(30), "it starts");
        std::thread::sleep(Duration::from_millis(20));
    }
    Some((running, format!("nats://127.0.0.1:{port}")))
}

fn access(url: &str) -> NatsAccess {
    NatsAccess { url: url.to_owned(), ..NatsAccess::default() }
}

fn name(number: usize) -> String {
    format!("a{number:04}")
}

/// One of the crowd.
#[derive(Default)]
struct Simulant {
    pieces: ParcelPieces,
    part: Option<PrepareRequest>,
    spec: Option<TrialSpec>,
    worker: Option<Simulated>,
    begin_ns: Option<u64>,
    parts: Vec<IntervalShare>,
    sum: IntervalShare,
    doing: Option<JobState>,
}

type Crowd = Arc<Vec<Mutex<Simulant>>>;

fn lock(one: &Mutex<Simulant>) -> MutexGuard<'_, Simulant> {
    one.lock().unwrap()
}

impl Simulant {
    fn answer(&mut self, verb: Verb, message: &Message) -> Bytes {
        match verb {
            Verb::Clock => {
                let now = now_ns();
                json(&ClockReading {
                    came_ns: now,
                    went_ns: now,
                    realtime_ahead_ns: knee_engine::sys::clock::realtime_ahead_ns() as i64,
                    is_synchronised: true,
                    chrony_error_ns: None,
                })
            }
            Verb::Piece => {
                let header = message.headers.as_ref().and_then(|h| h.get(PIECE)).unwrap();
                let place = parse_piece(header.as_str()).unwrap();
                self.pieces.put(place, message.payload.clone());
                json(&AgentAnswer::Yes)
            }
            Verb::Prepare => {
                let order: TrialOrder = unpack(&self.pieces.take().unwrap()).unwrap();
                let part: PrepareRequest = parse(&message.payload).unwrap();
                self.worker = Some(Simulated::new(&order.spec, part.crew.share(0)));
                (self.spec, self.part) = (Some(order.spec), Some(part));
                (self.parts, self.sum, self.begin_ns) =
                    (Vec::new(), IntervalShare::default(), None);
                self.doing = Some(JobState::Busy);
                json(&AgentAnswer::Yes)
            }
            Verb::Go => {
                self.begin_ns = parse::<GoRequest>(&message.payload).map(|go| go.at_ns);
                json(&AgentAnswer::Yes)
            }
            Verb::Cancel => {
                self.begin_ns = None;
                json(&AgentAnswer::Yes)
            }
            Verb::Thanks => {
                self.doing = None;
                json(&AgentAnswer::Yes)
            }
            Verb::Stop | Verb::Greet | Verb::Aim => json(&AgentAnswer::Yes),
            Verb::Result => Bytes::new(),
        }
    }

    fn key(&self) -> Option<TrialKey> {
        self.part.as_ref().map(|part| part.key.clone())
    }

    /// What it has to say of the intervals that are over by now, and whether the load is.
    fn go_on(&mut self) -> (Vec<Bytes>, bool) {
        let now = now_ns();
        let (Some(key), Some(begin_ns)) = (self.key(), self.begin_ns.filter(|&at| at < now)) else {
            return (Vec::new(), false);
        };
        let (Some(worker), Some(spec)) = (&mut self.worker, &self.spec) else {
            return (Vec::new(), false);
        };
        let mut told = Vec::new();
        for part in worker.go_on(Nanos(now - begin_ns)) {
            let part = IntervalShare::of(&part);
            self.sum.accumulate(&part.coarse());
            self.parts.push(part);
            told.push(json(&Snapshot { key: key.clone(), sum: self.sum.clone() }));
        }
        (told, now - begin_ns > (spec.window_end() + spec.timeout).0)
    }

    /// What it delivers, packed.
    fn finish(&mut self, agent: String) -> Option<Vec<Bytes>> {
        let (spec, part) = (self.spec.as_ref()?, self.part.as_ref()?);
        let (measurement, rest) = self.worker.take()?.finish(spec.timeout);
        let mut parts = std::mem::take(&mut self.parts);
        parts.extend(rest.iter().map(IntervalShare::of));
        let delivered = delivered_by((agent, part.crew), spec, measurement, parts);
        pack(&delivered).ok()
    }
}

/// Stands for this number of agents, until it is killed.
async fn stand_for(bus: &Bus, stores: &Stores, agents: usize) {
    let crowd: Crowd = Arc::new((0..agents).map(|_| Mutex::default()).collect());
    let lease = |number: usize| json(&facts_of_test(&name(number)));
    let all: Vec<usize> = (0..agents).collect();
    for some in all.chunks(100) {
        let put = some.iter().map(|&n| stores.agents.put(name(n), lease(n)));
        assert!(join_all(put).await.iter().all(Result::is_ok));
    }
    println!("ready");
    let mut asked = bus.client.subscribe("knee.agent.*.*").await.unwrap();
    let answering = (bus.client.clone(), crowd.clone());
    bus.spawn(async move {
        let (client, crowd) = answering;
        while let Some(message) = asked.next().await {
            let Some(verb) = Verb::of_subject(&message.subject) else {
                continue;
            };
            let number = message.subject.split('.').nth(2).unwrap();
            let number: usize = number[1..].parse().unwrap();
            let answer = lock(&crowd[number]).answer(verb, &message);
            let reply = message.reply.clone().unwrap();
            client.publish(reply, answer).await.unwrap();
        }
    });
    let (mut renew, mut beat) = (tokio::time::interval(RENEW), tokio::time::interval(BEAT));
    let mut tick = tokio::time::interval(Duration::from_millis(50));
    let few = Arc::new(Semaphore::new(STORING));
    loop {
        tokio::select! {
            _ = renew.tick() => for number in 0..agents {
                let subject = format!("$KV.{AGENTS}.{}", name(number));
                bus.client.publish(subject, lease(number)).await.unwrap();
            },
            _ = beat.tick() => for (number, one) in crowd.iter().enumerate() {
                let beat = {
                    let one = lock(one);
                    one.key().zip(one.doing.clone()).map(|(key, doing)| Heartbeat { key, doing })
                };
                if let Some(beat) = beat {
                    let subject = beat_subject(&beat.key.run, &name(number));
                    bus.client.publish(subject, json(&beat)).await.unwrap();
                }
            },
            _ = tick.tick() => for number in 0..agents {
                let (told, is_over) = lock(&crowd[number]).go_on();
                let Some(key) = lock(&crowd[number]).key() else {
                    continue;
                };
                for snapshot in told {
                    let subject = live_subject(&key.run, &name(number));
                    bus.client.publish(subject, snapshot).await.unwrap();
                }
                if is_over {
                    lock(&crowd[number]).begin_ns = None;
                    let (few, crowd) = (few.clone(), crowd.clone());
                    bus.spawn(store(few, crowd, number, (bus.stream.clone(), key)));
                }
            },
        }
    }
}

async fn store(few: Arc<Semaphore>, crowd: Crowd, number: usize, to: (Context, TrialKey)) {
    let (stream, key) = to;
    let _one_of_few = few.acquire().await;
    let packing = crowd.clone();
    let pack = move || lock(&packing[number]).finish(name(number)).unwrap();
    let pieces = tokio::task::spawn_blocking(pack).await.unwrap();
    for (piece, bytes) in pieces.iter().enumerate() {
        let subject = result_subject(&key, &name(number), &piece.to_string());
        let sent = stream.publish(subject, bytes.clone()).await;
        sent.unwrap().await.unwrap();
    }
    lock(&crowd[number]).doing = Some(JobState::Stored(pieces.len() as u32));
}

#[test]
#[ignore = "another test starts it, in a process of its own"]
fn the_crowd() {
    let told = std::env::var("KNEE_CROWD").unwrap();
    let (url, agents) = told.split_once(' ').unwrap();
    let bus = Bus::connect(&access(url), "crowd", "crowd").unwrap();
    let stores = bus.stores().unwrap();
    bus.run(stand_for(&bus, &stores, agents.parse().unwrap()));
}

#[derive(Default)]
struct Watched {
    intervals: u64,
    attempted: u64,
}

impl IntervalWatcher for Watched {
    fn on_interval(&mut self, interval: &Interval, _: &Histogram) {
        self.intervals += 1;
        self.attempted += interval.attempted;
    }
}

/// The cost to the coordinator of a trial with a number of agents.
#[derive(Debug)]
struct Took {
    /// Processor time, in seconds.
    cpu_s: f64,
    /// From the beginning of the load to the trial.
    wall_s: f64,
    memory_mib: u64,
}

/// The processor time that this process has used: user and system, in ticks of 10 ms.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = |n: usize| fields[n].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

fn memory_mib_max() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = line.unwrap().trim().trim_end_matches(" kB").parse().unwrap();
    kib / 1024
}

fn coordinate(agents: usize, duration: Nanos) -> Option<Took> {
    let folder = std::env::temp_dir().join(format!("knee-crowd-{}-{agents}", std::process::id()));
    let (_nats, url) = nats(&folder)?;
    let mut crowd = Command::new(std::env::current_exe().unwrap());
    let of_itself = "coordinator::tests::crowd::the_crowd";
    crowd
        .args(["--exact", of_itself, "--ignored", "--nocapture"])
        .env("KNEE_CROWD", format!("{url} {agents}"))
        .stdout(Stdio::piped());
    let mut crowd = Running(crowd.spawn().unwrap());
    let lines = std::io::BufReader::new(crowd.0.stdout.take().unwrap());
    let mut lines = std::io::BufRead::lines(lines).map_while(Result::ok);
    assert!(lines.any(|line| line == "ready"), "the crowd is there");

    let mut fleet = Fleet::gather(FleetOptions {
        access: access(&url),
        select: Selector::default(),
        agents_min: agents as u32,
        patience: Patience { limit: Duration::ZERO, tell: |_| () },
        allow_loss: false,
        threads: Some(1),
        started_at: "now".to_owned(),
    })
    .unwrap();
    assert_eq!(fleet.agents().count(), agents);
    let mut spec = spec(ArrivalLaw::Constant);
    if let Load::Open(load) = &mut spec.load {
        load.rate = Rate::per_second(EACH_PER_S * agents as u64).unwrap();
        load.connections_max = agents as u32 * 2;
    }
    (spec.duration, spec.interval) = (duration, Nanos::from_secs(1));
    let mut watched = Watched::default();
    let (before, since) = (cpu_s(), Instant::now());
    let trial = fleet.run(&spec, None, &mut watched, &AtomicBool::new(false)).unwrap();
    let took = Took {
        cpu_s: cpu_s() - before,
        wall_s: since.elapsed().as_secs_f64(),
        memory_mib: memory_mib_max(),
    };
    let all = EACH_PER_S * agents as u64 * (duration.0 / 1_000_000_000);
    assert_eq!(trial.measurement.outcomes.total(), all, "{took:?}");
    assert!(trial.agents.iter().all(|a| a.lost_because.is_none()));
    assert_eq!(trial.agents.len(), agents);
    assert!(watched.intervals > 0 && watched.attempted <= all);
    let kept: u64 = trial.measurement.intervals.iter().map(|i| i.attempted).sum();
    assert_eq!(kept, all);
    let by_name: BTreeMap<_, _> = trial.agents.iter().map(|a| (&a.agent, a.attempted)).collect();
    assert!(by_name.values().all(|&n| n == all / agents as u64));
    drop(fleet);
    let _ = std::fs::remove_dir_all(folder);
    Some(took)
}

#[test]
fn a_coordinator_of_many_agents_loses_nothing() {
    coordinate(60, Nanos::from_secs(3));
}

/// `KNEE_FLEET=AGENTSxSECONDS`.
#[test]
#[ignore = "minutes: cargo xtask bench --only fleet"]
fn what_a_coordinator_takes() {
    let size = std::env::var("KNEE_FLEET").unwrap_or("60x3".to_owned());
    let (agents, seconds) = size.split_once('x').unwrap();
    let (agents, seconds) = (agents.parse().unwrap(), seconds.parse().unwrap());
    let took = coordinate(agents, Nanos::from_secs(seconds)).expect("nats-server");
    println!(
        "took agents {agents} seconds {seconds} cpu_s {:.2} wall_s {:.1} memory_mib {}",
        took.cpu_s, took.wall_s, took.memory_mib
    );
}
