//! From argv to the trials that are made, or to the line that refuses.

use super::*;
use crate::command::raw::RawCommand;
use crate::command::tests::refused::{check, refusal};
use crate::command::tests::{MACHINE, parse, typed};
use knee_core::experiment::udp::EXPLAIN_LIMIT;
use knee_load::experiment::udp::ServiceSetup;
use knee_load::spec::{ArrivalLaw, Level};

fn resolve(arguments: &str) -> UdpSpec {
    match parse(&format!("udp {arguments}")) {
        Ok(RawCommand::Udp(raw)) => raw.resolve(&MACHINE).unwrap_or_else(|e| panic!("{e}")),
        other => panic!("{arguments}: {other:?}"),
    }
}

fn trial(arguments: &str) -> UdpTrialSpec {
    match resolve(arguments).plan {
        Plan::Run(trial) => *trial,
        other => panic!("{arguments}: {other:?}"),
    }
}

#[test]
fn without_options_one_client_keeps_a_metronome() {
    let trial = trial("");
    assert_eq!(trial.label, "constant@10000/s");
    assert_eq!(trial.level, Level::Clients(1));
    let rate = Rate::per_second(10_000).unwrap();
    let arrival = ArrivalLaw::Constant;
    assert_eq!(trial.wait, ClientWait::Schedule { rate, arrival });
    assert_eq!(trial.carried_as, ClientsAs::Multiplexed);
    assert_eq!((trial.size, trial.gso), (64, false));
    assert_eq!(trial.timer_slack, Nanos::from_micros(50));
    assert_eq!(trial.setup, ServiceSetup::default());
    assert_eq!(trial.duration, Nanos::from_secs(10));
    assert_eq!(trial.interval, Nanos::from_secs(1));
    assert_eq!(trial.datagrams_max, None);
    assert_eq!(trial.engine.workers, 1);
}

#[test]
fn the_options_say_what_is_sent() {
    let trial = trial(
        "h:9 --clients 64 --wait tick(10ms) --clients-as processes --size 1200 --gso -n 500 \
         --interval 10s --timer-slack 1ns --mode echo --service exp(1ms) --rcvbuf 4096 \
         --service-cpu 0 --client-cpus 1-2 --token t --seed 7",
    );
    assert_eq!(trial.label, "tick(10ms)*64");
    assert_eq!(trial.carried_as, ClientsAs::Processes);
    assert_eq!((trial.size, trial.gso, trial.seed), (1_200, true, 7));
    assert_eq!(trial.duration, Nanos::from_secs(86_400));
    assert_eq!(trial.datagrams_max, Some(500));
    assert_eq!(trial.interval, Nanos::from_secs(10));
    assert_eq!(trial.timer_slack, Nanos(1));
    assert_eq!(trial.client_cpus, [1, 2]);
    assert_eq!(trial.token, "t");
    let setup = ServiceSetup {
        mode: Some(ServiceMode::Echo),
        work: Some(Law::Exp(Nanos::from_millis(1))),
        rcvbuf: Some(4_096),
        cpu: Some(0),
        realtime: false,
    };
    assert_eq!(trial.setup, setup);
}

#[test]
fn threads_follow_from_the_rate() {
    for (arguments, workers) in [
        ("--wait none", 1),
        ("-R 100k", 1),
        ("-R 250k --clients 8", 3),
        ("-R 9M --clients 8", MACHINE.cpus),
        ("--wait exp(200us) --clients 32", 2),
        ("-R 250k -t 1", 1),
    ] {
        assert_eq!(trial(arguments).engine.workers, workers, "{arguments}");
    }
}

#[test]
fn kinds_of_clients_are_compared() {
    let spec = resolve("--compare yield*64 exp(200us)*128 poisson@6000*4 --repeats 5 -d 1s");
    let Plan::Compare(laws, repeats) = spec.plan else {
        panic!("{:?}", spec.plan);
    };
    let labels: Vec<&str> = laws.iter().map(|law| law.label.as_str()).collect();
    assert_eq!(labels, ["yield*64", "exp(200us)*128", "poisson@6000/s*4"]);
    assert_eq!(repeats, 5);
    assert!(laws.iter().all(|law| law.carried_as == ClientsAs::Multiplexed));
}

#[test]
fn the_puzzle_is_what_is_explained() {
    for (arguments, labels) in [
        ("--explain", ["yield*64", "exp(200us)*128"]),
        ("--explain tick(10ms)*60 none", ["tick(10ms)*60", "none"]),
        ("127.0.0.1:9 --explain", ["yield*64", "exp(200us)*128"]),
    ] {
        let Plan::Explain(spec) = resolve(arguments).plan else {
            panic!("{arguments} explains nothing");
        };
        assert_eq!([&spec.first.label, &spec.second.label], labels);
        assert_eq!(spec.first.carried_as, ClientsAs::Processes);
        let cells = Nanos::from_millis(250)..=Nanos::from_millis(500);
        assert!(cells.contains(&spec.first.duration) && (3..=6).contains(&spec.repeats));
        assert!(spec.length() <= EXPLAIN_LIMIT && spec.cut.is_none());
        assert!(!spec.cpus.is_empty());
    }
    let Plan::Explain(remote) = resolve("192.0.2.7:9 --explain").plan else {
        panic!("nothing is explained");
    };
    assert!(remote.cpus.is_empty());
}

#[test]
fn what_is_resolved_can_be_typed_again() {
    for arguments in [
        "",
        "127.0.0.1:9 --clients 64 --wait yield --clients-as threads -n 50",
        "--wait burst(3,0.2,1s) -R 0.5 --gso --size 40 -t 3 --wait-policy spin",
        "--arrival ramp(10,20) -d 1500ms --fail-if errors>1% --fail-if invalid",
        "--wait uniform(5us,15us) --client-cpus 0-2 --timer-slack 7ns --mode sink",
        "--compare yield*64 poisson@90/m*3 --service lognormal(1ms,0.5) --rcvbuf 1",
        "--explain --interval 50ms",
        "--explain yield*64 none*2 --service-cpu 1",
    ] {
        let first = resolve(arguments);
        let words: Vec<String> =
            first.setup.options.0.iter().flat_map(|(k, v)| typed(k, v)).collect();
        let again = resolve(&words.join(" "));
        assert_eq!(again.plan, first.plan, "{arguments}");
        assert_eq!(again.setup.options, first.setup.options, "{arguments}");
    }
}

#[test]
fn a_token_is_not_told() {
    let spec = resolve("127.0.0.1:9 --token secret");
    assert!(!format!("{:?}", spec.setup.options).contains("secret"));
}

#[test]
fn bad_input_gets_one_clear_line() {
    check(REFUSED);
    // A file is read before anything else is asked.
    let line = refusal("udp --wait trace(/nonexistent)");
    assert!(line.starts_with("--arrival: /nonexistent: cannot be read: No such"));
}

const REFUSED: &[(&str, &str)] = &[
    (
        "udp localhost:0",
        "HOST[:PORT]: 'localhost:0' has the port 0: give HOST or HOST:PORT of a 'knee serve udp'…",
    ),
    ("udp 1:2:9", "HOST[:PORT]: '1:2:9' is no service:…"),
    ("udp h:0", "HOST[:PORT]: 'h:0' has the port 0:…"),
    ("udp h:9 h:9", "'h:9': one argument too many; values follow their options"),
    ("udp --wait doze", "--wait: 'doze' is no way to wait: give none, yield,…"),
    ("udp --wait sleep", "--wait: 'sleep' lacks its time:…"),
    ("udp --wait poisson", "--wait: 'poisson' needs a rate: give --rate, such as --rate 1000"),
    (
        "udp --arrival poisson",
        "--arrival: 'poisson' needs a rate: give --rate, such as --rate 1000",
    ),
    ("udp --arrival yield", "--arrival: 'yield' is no arrival process:…"),
    ("udp --wait yield --rate 5", "--rate: 'yield' has no schedule, so it takes no rate:…"),
    ("udp --wait ramp(1,2) --rate 5", "--rate: 'ramp(1,2)' carries its own rate:…"),
    ("udp --wait ramp(1,2) -n 5", "--wait: a ramp takes its length from --duration: give it too"),
    (
        "udp --wait yield --arrival poisson",
        "--wait and --arrival exclude each other: leave one out",
    ),
    ("udp --rate 0", "--rate: '0' would offer nothing:…"),
    ("udp --clients 0", "--clients: '0' is too few: at least 1"),
    (
        "udp --clients-as fibers",
        "--clients-as: 'fibers' is not one of multiplexed, threads, processes",
    ),
    (
        "udp --clients-as threads --threads 2",
        "--threads: each client has a thread of its own: leave it or --clients-as out",
    ),
    ("udp --size 39", "--size: '39' is too small: each datagram carries a header of 40 bytes"),
    ("udp --size 65508", "--size: '65508' is too large: UDP over IPv4 carries at most 65507 bytes"),
    ("udp -n 0", "--datagrams: '0' is too few: at least 1"),
    ("udp --interval 5ms", "--interval: '5ms' is too short: at least 10ms"),
    ("udp --mode mirror", "--mode: 'mirror' is not one of sink, echo"),
    ("udp --service often", "--service: 'often' is no law:…"),
    ("udp --rcvbuf 0", "--rcvbuf: '0' is too few: at least 1"),
    ("udp --rcvbuf 3000000000", "--rcvbuf: '3000000000' is too large: at most 2147483647"),
    (
        "udp --client-cpus 1-",
        "--client-cpus: '1-' is no list of processors: give numbers such as 1 or 0,2-3",
    ),
    ("udp --token t", "--token: the built-in service needs none: give HOST"),
    (
        "udp --timer-slack 1us",
        "--timer-slack: only clients that sleep have it: give --wait sleep(T), exp(T) or tick(T)",
    ),
    (
        "udp --wait none --wait-policy spin",
        "--wait-policy: only a schedule is waited for: give --rate, or leave it out",
    ),
    ("udp --repeats 3", "--repeats: needs --compare or --explain"),
    ("udp --compare", "--compare: a value is missing"),
    (
        "udp --compare yield*64",
        "--compare: takes two kinds of clients or more, such as 'yield*64' 'exp(200us)*128'",
    ),
    (
        "udp --compare yield*64 poisson*4",
        "--compare: 'poisson' is a schedule and needs a rate: such as poisson@6000*4",
    ),
    (
        "udp --compare yield*64 none*many",
        "--compare: 'none*many' has no number of clients after its '*':…",
    ),
    (
        "udp --compare yield*64 none 127.0.0.1:9",
        "--compare: '127.0.0.1:9' is no way to wait: HOST goes before this option",
    ),
    (
        "udp --compare yield none --wait none",
        "--wait: --compare says of each kind of clients what it does: WAIT*N or ARRIVAL@RATE*N",
    ),
    (
        "udp --compare yield none -n 5",
        "--datagrams: with --compare each trial lasts for --duration: leave one out",
    ),
    (
        "udp --explain --clients 5",
        "--clients: --explain says of each kind of clients what it does: WAIT*N, such as…",
    ),
    (
        "udp --explain yield*64",
        "--explain: takes two kinds of clients, or none for 'yield*64' 'exp(200us)*128'",
    ),
    (
        "udp --explain --repeats 2",
        "--repeats: an explanation takes at least 3 to know what chance does",
    ),
    (
        "udp --explain --compare yield none",
        "--explain and --compare exclude each other: leave one out",
    ),
    (
        "serve udp --listen 7007",
        "--listen: '7007' is no address to listen at: give ADDR:PORT such as 127.0.0.1:7007",
    ),
    (
        "serve udp --listen 0.0.0.0:7007",
        "--token: is needed at 0.0.0.0:7007, which others can reach:…",
    ),
    ("serve udp --mode mirror", "--mode: 'mirror' is not one of sink, echo"),
    ("serve udp --cpu one", "--cpu: 'one' is not a whole number such as 100"),
];

#[test]
fn the_published_puzzle_is_a_preset() {
    let Plan::Compare(laws, 3) = resolve("--preset published").plan else {
        panic!("another plan");
    };
    let labels: Vec<&str> = laws.iter().map(|law| law.label.as_str()).collect();
    assert_eq!(labels, ["yield*64", "tick(10ms)*128"]);
    for law in &laws {
        assert_eq!(law.send_cost, Nanos::from_micros(75));
        assert_eq!(law.carried_as, ClientsAs::Processes);
        assert_eq!(law.client_cpus.len(), 1, "the service's");
        assert_eq!(law.setup.cpu, law.client_cpus.first().copied());
    }
    // What is given besides stays.
    let plan = resolve("--preset published --explain --send-cost 5us --clients-as threads").plan;
    let Plan::Explain(spec) = plan else {
        panic!("another plan");
    };
    assert_eq!(spec.second.label, "tick(10ms)*128");
    assert_eq!(spec.second.send_cost, Nanos::from_micros(5));
    assert_eq!(spec.second.carried_as, ClientsAs::Threads);
    assert_eq!(trial("--send-cost 20us").send_cost, Nanos::from_micros(20));
}
