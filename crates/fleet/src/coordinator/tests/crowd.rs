//! A coordinator of many agents on a real NATS server. The agents are real but for their trials,
//! which are simulated. They live in other processes, so that what this one takes is the
//! coordinator's alone.

use super::{Simulated, spec, trial_of};
use crate::bus::now_ns;
use crate::clocks::TimeSpan;
use crate::coordinator::{Fleet, FleetOptions};
use crate::nats_access::NatsAccess;
use crate::{Agent, AgentOptions, Patience, Selector};
use knee_core::trial::assess::assess;
use knee_engine::StartBarrier;
use knee_engine::error::RunError;
use knee_engine::permit::Permit;
use knee_engine::sys::thread::raise_open_files;
use knee_load::arrival::ArrivalLaw;
use knee_load::measure::{Histogram, Interval, IntervalWatcher, Trial};
use knee_load::rng::{self, ORDER};
use knee_load::spec::{Load, Margins, Rate, TrialSpec, WorkerRange};
use knee_load::time::Nanos;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

/// Operations per second of each agent.
const EACH_PER_S: u64 = 100;
/// Time for which NATS is away where it is restarted.
const AWAY: Duration = Duration::from_secs(1);

/// A process that ends with this.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A NATS server that can be restarted with what it has stored.
struct NatsServer {
    binary: PathBuf,
    folder: PathBuf,
    port: u16,
}

impl NatsServer {
    /// `None`, and a line that says so, where none is installed.
    fn find(folder: &Path) -> Option<NatsServer> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain([PathBuf::from("/usr/sbin")]);
        let found = folders.map(|f| f.join("nats-server")).find(|f| f.is_file());
        let Some(binary) = found else {
            assert!(std::env::var_os("CI").is_none(), "nats-server is missing");
            println!("skipped: nats-server is not installed");
            return None;
        };
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        Some(NatsServer { binary, folder: folder.to_owned(), port })
    }

    fn start(&self) -> Running {
        let mut command = Command::new(&self.binary);
        command.args(["-js", "-a", "127.0.0.1", "-p", &self.port.to_string(), "-sd"]);
        command.arg(&self.folder).stdout(Stdio::null()).stderr(Stdio::null());
        let running = Running(command.spawn().unwrap());
        let since = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(since.elapsed() < Duration::from_secs(30), "it starts");
            thread::sleep(Duration::from_millis(20));
        }
        running
    }

    fn access(&self) -> NatsAccess {
        NatsAccess { url: format!("nats://127.0.0.1:{}", self.port), ..NatsAccess::default() }
    }
}

fn name(number: usize) -> String {
    format!("a{number:04}")
}

/// Makes an agent's part of a trial against a target in virtual time, whose intervals come when
/// those of a real one would.
fn simulated_part(
    spec: &TrialSpec,
    crew: WorkerRange,
    barrier: &dyn StartBarrier,
    stop: &AtomicBool,
) -> Result<(Trial, Vec<TimeSpan>), RunError> {
    let mut worker = Simulated::new(spec, crew.share(0));
    let never = || RunError::NotPermitted("it received no start request".to_owned());
    let begin_ns = barrier.begin().ok_or_else(never)?;
    barrier.begun(now_ns().saturating_sub(begin_ns));
    let length_ns = (spec.window_end() + spec.timeout).0;
    while now_ns() < begin_ns + length_ns && !stop.load(Ordering::Relaxed) {
        thread::sleep(Duration::from_millis(100));
        let parts = worker.go_on(Nanos(now_ns().saturating_sub(begin_ns)));
        parts.iter().for_each(|part| barrier.part(part));
    }
    let (measurement, rest) = worker.finish(spec.timeout);
    rest.iter().for_each(|part| barrier.part(part));
    Ok((trial_of(spec, measurement), Vec::new()))
}

/// Serves as agents of these numbers until this process is killed.
#[test]
#[ignore = "another test starts it, in a process of its own"]
fn the_crowd() {
    let told = std::env::var("KNEE_CROWD").unwrap();
    let [url, first, count] = Vec::from_iter(told.split(' ')).try_into().unwrap();
    let first: usize = first.parse().unwrap();
    raise_open_files();
    let join = |number: usize| {
        let agent = Agent::join(AgentOptions {
            access: NatsAccess { url: url.to_owned(), ..NatsAccess::default() },
            name: Some(name(number)),
            patience: Patience { limit: Duration::from_secs(30), tell: |_| () },
            labels: Vec::new(),
            permit: Permit::default(),
            margins: Margins::UNKNOWN,
            clock_shift_ns: 0,
        });
        let agent = agent.unwrap().with_make_part(simulated_part);
        let serve = move || agent.serve(&AtomicBool::new(false), &|_| ());
        thread::Builder::new().spawn(serve).unwrap()
    };
    let count: usize = count.parse().unwrap();
    let serving: Vec<_> = (first..first + count).map(join).collect();
    println!("ready");
    serving.into_iter().for_each(|agent| agent.join().unwrap().unwrap());
}

/// Starts a process that stands for agents, without waiting until they are there.
fn crowd(nats: &NatsServer, first: usize, count: usize) -> Running {
    let mut crowd = Command::new(std::env::current_exe().unwrap());
    let of_itself = "coordinator::tests::crowd::the_crowd";
    crowd
        .args(["--exact", of_itself, "--ignored", "--nocapture"])
        .env("KNEE_CROWD", format!("{} {first} {count}", nats.access().url))
        .stdout(Stdio::piped());
    Running(crowd.spawn().unwrap())
}

fn wait_until_ready(crowd: &mut Running) {
    // It stays open: the test's own words would end the crowd otherwise.
    let lines = BufReader::new(crowd.0.stdout.as_mut().unwrap());
    let mut lines = lines.lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "ready"), "the crowd is there");
}

#[derive(Default)]
struct Watched {
    attempted: u64,
    notes: Vec<String>,
    /// When the first interval had ended.
    began: Arc<OnceLock<Instant>>,
}

impl IntervalWatcher for Watched {
    fn on_interval(&mut self, interval: &Interval, _: &Histogram) {
        self.began.get_or_init(Instant::now);
        self.attempted += interval.attempted;
    }

    fn on_note(&mut self, note: &str) {
        self.notes.push(note.to_owned());
    }
}

/// The cost to the coordinator of a trial with a number of agents.
#[derive(Debug)]
struct Took {
    /// Processor time from the request for the trial to the verdict, in seconds.
    cpu_s: f64,
    wall_s: f64,
    /// From the end of the load, with the time limit of its last operations, to the verdict.
    verdict_s: f64,
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

/// Has a trial made by this number of agents. Where some are to be `lost`, each is killed at a
/// random time of it, and NATS is restarted once.
fn coordinate(agents: usize, lost: usize, duration: Nanos) -> Option<Took> {
    let folder = std::env::temp_dir().join(format!("knee-crowd-{}-{agents}", std::process::id()));
    let nats = NatsServer::find(&folder)?;
    let mut running = nats.start();
    let stay = agents - lost;
    let mut crowds = vec![crowd(&nats, 0, stay)];
    wait_until_ready(&mut crowds[0]);
    crowds.extend((stay..agents).map(|number| crowd(&nats, number, 1)));
    crowds[1..].iter_mut().for_each(wait_until_ready);

    let mut fleet = Fleet::gather(FleetOptions {
        access: nats.access(),
        select: Selector::default(),
        agents_min: agents as u32,
        patience: Patience { limit: Duration::from_secs(60), tell: |_| () },
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
    let has_ended = AtomicBool::new(false);
    let (trial, report) = thread::scope(|scope| {
        let (nats, running, crowds, ended) = (&nats, &mut running, &mut crowds, &has_ended);
        let began = watched.began.clone();
        scope.spawn(move || {
            let mut random = rng::stream(agents as u64, ORDER);
            let mut at = || {
                let after_s = rng::unit(&mut random) * (duration.as_secs_f64() - 2.0);
                Duration::from_secs_f64(after_s)
            };
            // The first is NATS.
            let processes = if lost > 0 { 0..lost + 1 } else { 0..0 };
            let mut kills: Vec<(Duration, usize)> =
                processes.map(|process| (at(), process)).collect();
            kills.sort();
            for (at, process) in kills {
                while began.get().is_none_or(|since| since.elapsed() < at) {
                    thread::sleep(Duration::from_millis(10));
                    if ended.load(Ordering::Relaxed) {
                        return;
                    }
                }
                match process {
                    0 => {
                        let _ = running.0.kill();
                        let _ = running.0.wait();
                        thread::sleep(AWAY);
                        *running = nats.start();
                    }
                    process => drop(crowds[process].0.kill()),
                }
            }
        });
        let trial = fleet.run(&spec, None, &mut watched, &AtomicBool::new(false));
        has_ended.store(true, Ordering::Relaxed);
        let trial = trial.unwrap();
        let report = assess(&trial);
        (trial, report)
    });
    let end_ns = trial.measurement.began_ns + (spec.window_end() + spec.timeout).0;
    let took = Took {
        cpu_s: cpu_s() - before,
        wall_s: since.elapsed().as_secs_f64(),
        verdict_s: now_ns().saturating_sub(end_ns) as f64 / 1e9,
        memory_mib: memory_mib_max(),
    };
    let each = EACH_PER_S * (duration.0 / 1_000_000_000);
    let whys = trial.agents.iter().filter_map(|a| Some((&a.agent, a.lost_because.as_ref()?)));
    let whys = Vec::from_iter(whys.filter(|(agent, _)| **agent < name(stay)));
    assert!(whys.is_empty(), "{took:?}: {whys:?}");
    assert_eq!(trial.measurement.outcomes.total(), each * stay as u64, "{took:?}");
    let kept: u64 = trial.measurement.intervals.iter().map(|i| i.attempted).sum();
    assert_eq!(kept, each * stay as u64);
    assert!(watched.attempted <= each * agents as u64);
    assert_eq!(trial.agents.len(), agents);
    let gone = trial.agents.iter().filter(|a| a.lost_because.is_some()).map(|a| a.agent.clone());
    let gone = BTreeSet::from_iter(gone);
    assert_eq!(gone, (stay..agents).map(name).collect(), "{took:?}");
    assert!(trial.agents.iter().all(|a| a.attempted == each || gone.contains(&a.agent)));
    assert_eq!(report.invalid_because.is_empty(), lost == 0, "{:?}", report.invalid_because);
    let because = report.invalid_because.join("; ");
    assert!(gone.iter().all(|agent| because.contains(agent.as_str())), "{because}");
    assert_eq!(watched.notes.len(), if lost > 0 { 2 } else { 0 }, "{:?}", watched.notes);
    drop(fleet);
    let _ = std::fs::remove_dir_all(folder);
    Some(took)
}

#[test]
fn a_coordinator_of_many_agents_loses_nothing() {
    coordinate(60, 0, Nanos::from_secs(3));
}

#[test]
fn each_agent_that_is_killed_is_named_and_the_others_are_counted() {
    coordinate(24, 4, Nanos::from_secs(6));
}

/// `KNEE_FLEET=AGENTSxSECONDSxLOST`.
#[test]
#[ignore = "minutes: cargo xtask bench --only fleet"]
fn what_a_coordinator_takes() {
    let size = std::env::var("KNEE_FLEET").unwrap_or("60x3x0".to_owned());
    let numbers: Vec<u64> = size.split('x').map(|n| n.parse().unwrap()).collect();
    let [agents, seconds, lost] = numbers.try_into().unwrap();
    let took = coordinate(agents as usize, lost as usize, Nanos::from_secs(seconds));
    let took = took.expect("nats-server");
    let Took { cpu_s, wall_s, verdict_s, memory_mib } = took;
    let percent = 100.0 * cpu_s / wall_s;
    println!(
        "| {agents} | {lost} | {seconds} | {cpu_s:.2} | {percent:.1} | {verdict_s:.1} | \
         {memory_mib} |"
    );
}
