//! From argv to a resolved spec, or to the one line that says what is wrong: no load is sent.

mod copied_lines;
mod curl;
mod deployed;
mod documented;
pub mod refused;
mod simulated;

use crate::command::raw::{RawArgs, RawCommand};
use crate::command::run::RawRun;
use crate::machine::Machine;
use crate::resolved_options::ResolvedOptions;
use crate::usage;
use clap::CommandFactory;
use knee_load::arrival::RampLaw;
use knee_load::law::Law;
use knee_load::secrets::Secrets;
use knee_load::spec::{ArrivalLaw, BackendChoice, Endpoint, Level, Load, OpenLoad, Pause};
use knee_load::spec::{PauseKind, Pick, Rate, TrialSpec, WaitPolicy};
use knee_load::time::Nanos;
use refused::refusal;
use std::ffi::OsString;

pub const MACHINE: Machine = Machine {
    cpus: 4,
    open_files: knee_engine::OpenFiles { limit: 1_024, per_connection: 1 },
    is_fleet: false,
};

const URL: &str = "http://127.0.0.1:8080/";

pub fn parse(arguments: &str) -> Result<RawCommand, String> {
    let argv = std::iter::once("knee").chain(arguments.split_whitespace());
    let argv: Vec<OsString> = argv.map(OsString::from).collect();
    let command = RawArgs::command_of(argv.iter().cloned());
    let read = RawArgs::read(argv.iter().cloned());
    read.map(|raw| raw.command).map_err(|e| usage::one_line(&e, &command, &argv))
}

fn raw_run(arguments: &str) -> Result<RawRun, String> {
    match parse(&format!("run {arguments}"))? {
        RawCommand::Run(raw) => Ok(*raw),
        other => panic!("{arguments}: {other:?}"),
    }
}

fn run(arguments: &str) -> Result<(TrialSpec, ResolvedOptions), String> {
    let spec = raw_run(arguments)?.resolve(&MACHINE);
    spec.map(|spec| (spec.trial, spec.setup.options)).map_err(|failure| failure.line)
}

fn trial(arguments: &str) -> TrialSpec {
    let (trial, _) = run(arguments).unwrap_or_else(|e| panic!("{arguments}: {e}"));
    trial
}

fn open(trial: &TrialSpec) -> &OpenLoad {
    match &trial.load {
        Load::Open(load) => load,
        Load::Closed { .. } | Load::Overload(_) => panic!("{} has no schedule", trial.label),
    }
}

#[test]
fn default_run_is_ten_users_for_ten_seconds() {
    let trial = trial(&format!("{URL} --seed 7"));
    assert_eq!(trial.label, "vusers=10");
    assert_eq!(trial.level, Level::Vusers(10));
    let load = Load::Closed { vusers: 10, pause: Pause::NONE, stages: Vec::new() };
    assert_eq!(trial.load, load);
    assert_eq!(trial.duration, Nanos::from_secs(10));
    assert_eq!(trial.warmup, Nanos::from_secs(1));
    assert_eq!(trial.operations_max, None);
    assert_eq!(trial.timeout, Nanos::from_secs(10));
    assert_eq!(trial.connect_timeout, Nanos::from_secs(5));
    assert_eq!(trial.interval, Nanos::from_secs(1));
    assert_eq!(trial.seed, 7);
    assert_eq!(trial.engine.workers, 2);
    assert_eq!(trial.engine.backend, BackendChoice::Auto);
    assert_eq!(trial.engine.wait, WaitPolicy::Auto);
    assert!(trial.target.keep_alive);
    assert_eq!(trial.target.pick, Pick::InOrder);
}

#[test]
fn connections_alone_mean_users_as_in_wrk() {
    let trial = trial(&format!("-t 2 -c 100 -d 30s {URL}"));
    assert_eq!(trial.level, Level::Vusers(100));
    assert_eq!(trial.engine.workers, 2);
    assert_eq!(trial.duration, Nanos::from_secs(30));
}

#[test]
fn half_of_the_processors_are_left_to_a_target_on_this_host() {
    for (arguments, workers) in [
        ("http://127.0.0.9/", 2),
        ("http://[::1]:8080/", 2),
        ("http://localhost/ --unix-socket /tmp/a.sock", 2),
        ("http://127.0.0.1/ -t 4", 4),
        ("http://127.0.0.1/ -c 1", 1),
        ("http://192.0.2.7/", 4),
        ("http://192.0.2.7/ -R 30000", 2),
        ("http://127.0.0.1/ -R 90000", 2),
        ("http://192.0.2.7/ -R 90000", 4),
    ] {
        assert_eq!(trial(arguments).engine.workers, workers, "{arguments}");
    }
}

#[test]
fn a_rate_makes_an_open_loop() {
    let trial = trial(&format!("{URL} --rate 90/m"));
    assert_eq!(trial.label, "rate=1.5/s");
    assert_eq!(trial.level, Level::RatePerS(1.5));
    let expected = OpenLoad {
        rate: Rate::new(90, Nanos::from_secs(60)).unwrap(),
        arrival: ArrivalLaw::Constant,
        connections_max: 960,
        in_flight_max: Some(1_000_000),
    };
    assert_eq!(open(&trial), &expected);
    let trial = self::trial(&format!("{URL} -R 2.5k -c 64 --arrival poisson --max-in-flight 9"));
    assert_eq!(open(&trial).rate.per_s(), 2500.0);
    assert_eq!(open(&trial).arrival, ArrivalLaw::Poisson);
    assert_eq!(open(&trial).connections_max, 64);
    assert_eq!(open(&trial).in_flight_max, Some(9));
}

#[test]
fn a_ramp_carries_its_rate_and_lasts_the_whole_run() {
    let trial = trial(&format!("{URL} --arrival ramp(100,300) -d 9s"));
    assert_eq!(trial.level, Level::RatePerS(200.0));
    let expected = ArrivalLaw::Ramp(RampLaw {
        from: Rate::per_second(100).unwrap(),
        to: Rate::per_second(300).unwrap(),
        over: Nanos::from_secs(10),
    });
    assert_eq!(open(&trial).arrival, expected);
}

#[test]
fn a_trace_carries_its_moments_and_its_length() {
    let file = TempFile::new("trace", "0\n0.5\n1500ms\n3\n");
    let trial = trial(&format!("{URL} --arrival trace({})", file.path));
    let moments = [0, 500, 1500, 3000].map(Nanos::from_millis);
    assert_eq!(open(&trial).arrival, ArrivalLaw::Trace(moments.into()));
    assert_eq!(trial.level, Level::RatePerS(1.0));
    assert_eq!((trial.warmup, trial.duration), (Nanos::ZERO, Nanos::from_secs(4)));
    let wrong = TempFile::new("wrong-trace", "0\nsoon\n");
    let line = refusal(&format!("run {URL} --arrival trace({})", wrong.path));
    assert!(line.starts_with(&format!("--arrival: {}: line 2: 'soon' ", wrong.path)), "{line}");
}

#[test]
fn a_number_of_requests_has_no_warm_up() {
    let trial = trial(&format!("{URL} -n 200"));
    assert_eq!(trial.operations_max, Some(200));
    assert_eq!(trial.warmup, Nanos::ZERO);
    assert_eq!(trial.duration, Nanos::from_secs(24 * 3600));
    let trial = self::trial(&format!("{URL} -n 200 -d 5s --warmup 0"));
    assert_eq!(trial.duration, Nanos::from_secs(5));
}

#[test]
fn users_pause() {
    let pause = |arguments: &str| match trial(&format!("{URL} {arguments}")).load {
        Load::Closed { pause, .. } => pause,
        Load::Open(_) | Load::Overload(_) => panic!("{arguments}"),
    };
    let think = pause("--vusers 5 --think exp(10ms)");
    assert_eq!((think.kind, think.law), (PauseKind::Think, Law::Exp(Nanos::from_millis(10))));
    let cycle = pause("--cycle 20ms");
    assert_eq!((cycle.kind, cycle.law), (PauseKind::Cycle, Law::Fixed(Nanos::from_millis(20))));
}

#[test]
fn the_target_is_what_the_options_say() {
    let body = TempFile::new("body", "{\"a\":1}");
    let target = trial(&format!(
        "http://[::1]:81/items?x=1 -H X-A:1 -H X-B:2 -b @{} -T application/json --no-keepalive",
        body.path
    ))
    .target;
    let endpoint = Endpoint::Tcp { host: "::1".to_string(), port: 81 };
    assert_eq!(target.endpoint, endpoint);
    assert!(!target.keep_alive);
    let request = &target.requests[0];
    assert_eq!(request.method, "POST");
    assert_eq!(request.path, "/items?x=1");
    assert_eq!(&*request.body, b"{\"a\":1}");
    let header = |name: &str, value: &str| (name.to_string(), value.to_string());
    let expected =
        [header("X-A", "1"), header("X-B", "2"), header("Content-Type", "application/json")];
    assert_eq!(request.headers, expected);
    let socket = trial("http://app/ --unix-socket /run/app.sock --disable-keepalive").target;
    let path = "/run/app.sock".to_string();
    assert_eq!(socket.endpoint, Endpoint::Unix { path });
    assert_eq!(socket.requests[0].host, "app");
    assert!(!socket.keep_alive);
}

#[test]
fn options_of_curl_mean_what_they_mean_there() {
    let file = TempFile::new("form", "c=3\r\nd=4\n");
    let form = trial(&format!("{URL} --data a=1 --data b=2 --data @{} -u me:se:cret", file.path));
    let request = &form.target.requests[0];
    assert_eq!(request.method, "POST");
    assert_eq!(&*request.body, b"a=1&b=2&c=3d=4");
    let header = |name: &str, value: &str| (name.to_string(), value.to_string());
    let expected = [
        header("Authorization", "Basic bWU6c2U6Y3JldA=="),
        header("Content-Type", "application/x-www-form-urlencoded"),
    ];
    assert_eq!(request.headers, expected);

    let own = trial(&format!("{URL} -X PUT --data x -T text/plain -H Authorization:mine -u me:"));
    let request = &own.target.requests[0];
    assert_eq!(request.method, "PUT");
    let expected = [header("Authorization", "mine"), header("Content-Type", "text/plain")];
    assert_eq!(request.headers, expected);

    let (_, mut words) = run(&format!("{URL} -u me:secret")).unwrap();
    Secrets::default().hide_options(&mut words.0);
    let told = serde_json::to_string(&words.0).unwrap();
    assert!(told.contains("me:$KNEE_SECRET_PASSWORD") && !told.contains("secret"), "{told}");
    for refused in ["-u me", "--data a -b c"] {
        assert!(run(&format!("{URL} {refused}")).is_err(), "{refused}");
    }
}

#[test]
fn what_is_resolved_can_be_typed_again() {
    for arguments in [
        "",
        "--vusers 3 --think uniform(5ms,15ms) -d 1500ms --warmup 0 --interval 50ms",
        "--rate 0.5 --arrival burst(3,0.2,1s) --max-in-flight 10 -c 5",
        "--arrival ramp(10,20) --timeout 1s --connect-timeout 200ms",
        "-n 50 --backend epoll --wait spin -t 3",
        "-m DELETE -H X-A:1 --no-keepalive --fail-if p99>200ms --fail-if invalid",
    ] {
        let (trial, words) = run(&format!("{URL} {arguments}")).unwrap();
        let typed: Vec<String> = words.0.iter().flat_map(|(k, v)| typed(k, v)).collect();
        let (again, same_words) = run(&typed.join(" ")).unwrap();
        assert_eq!(again, trial, "{arguments}");
        assert_eq!(same_words, words, "{arguments}");
    }
}

/// An option of the report's spec as it would be typed.
pub fn typed(option: &str, value: &serde_json::Value) -> Vec<String> {
    use serde_json::Value;
    match value {
        Value::String(text) if matches!(option, "url" | "target") => vec![text.clone()],
        Value::String(text) => vec![format!("--{option}={}", text.replace(": ", ":"))],
        Value::Bool(_) => vec![format!("--{option}")],
        Value::Array(several) => several.iter().flat_map(|v| typed(option, v)).collect(),
        other => vec![format!("--{option}={other}")],
    }
}

#[test]
fn random_seeds_differ() {
    let seeds = [0; 3].map(|_| trial(URL).seed);
    assert!(seeds[0] != seeds[1] || seeds[1] != seeds[2], "{seeds:?}");
}

#[test]
fn short_help_is_a_screenful_with_an_example() {
    let mut knee = RawArgs::command();
    knee.build();
    insta::assert_snapshot!("help_knee", knee.clone().term_width(100).render_help());
    for path in [
        &["run"][..],
        &["sweep"],
        &["overload"],
        &["throttle"],
        &["udp"],
        &["latency"],
        &["analyze", "sweep"],
        &["analyze", "latency"],
        &["report"],
        &["compare"],
        &["history"],
        &["history", "show"],
        &["serve", "http"],
        &["serve", "qotd"],
        &["serve", "udp"],
        &["serve", "latency"],
    ] {
        let name = format!("help_{}", path.join("_"));
        let mut command = &mut knee;
        for part in path {
            command = command.find_subcommand_mut(part).unwrap();
        }
        // The width of whatever terminal the tests run in must not matter.
        let help = command.clone().term_width(100).render_help().to_string();
        assert!(help.lines().count() <= 48, "{name} has {} lines", help.lines().count());
        assert!(help.contains("Example"), "{name}");
        insta::assert_snapshot!(name, help);
    }
}

/// A file that is gone when the test ends.
struct TempFile {
    path: String,
}

impl TempFile {
    fn new(name: &str, content: &str) -> TempFile {
        let path = std::env::temp_dir().join(format!("knee-{}-{name}", std::process::id()));
        std::fs::write(&path, content).unwrap();
        TempFile { path: path.to_str().unwrap().to_string() }
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
