//! From argv to the scenarios that are run, or to the line that refuses.

use super::*;
use crate::command::raw::RawCommand;
use crate::command::tests::refused::check;
use crate::command::tests::{MACHINE, parse, typed};
use knee_core::experiment::latency::{QUICK, SCENARIOS};
use knee_load::experiment::latency::{LatencyTrialSpec, ScenarioEnd, Settle};

fn resolve(arguments: &str) -> LatencySpec {
    match parse(&format!("latency {arguments}")) {
        Ok(RawCommand::Latency(raw)) => raw.resolve(&MACHINE).unwrap_or_else(|e| panic!("{e}")),
        other => panic!("{arguments}: {other:?}"),
    }
}

fn base(arguments: &str) -> LatencyTrialSpec {
    resolve(arguments).plan.base
}

#[test]
fn the_former_name_of_the_service_still_works() {
    let serve = |line: &str| match parse(line) {
        Ok(RawCommand::Serve(raw)) => format!("{:?}", raw.resolve().expect("a service")),
        other => panic!("{line}: {other:?}"),
    };
    assert_eq!(serve("serve bulk"), serve("serve latency"));
}

#[test]
fn without_options_there_are_the_19_scenarios_until_they_settle() {
    let spec = resolve("");
    assert_eq!(spec.plan.scenarios, SCENARIOS);
    assert_eq!(spec.plan.idle, Nanos::from_secs(2));
    assert!(spec.plan.congestion.is_empty());
    assert_eq!(spec.service, None);
    let base = spec.plan.base;
    let settle = Settle { tolerance: 0.05, window: Nanos::from_millis(250), windows: 6 };
    let limit = Nanos::from_secs(600);
    assert_eq!(base.end, ScenarioEnd::Settled { settle, limit });
    assert_eq!(base.bytes_max, None);
    assert_eq!((base.sockets.dscp, base.sockets.ecn), (None, None));
    assert_eq!(base.probes.every, Nanos::from_millis(10));
    assert!(base.probes.udp);
    assert_eq!(base.interval, Nanos::from_millis(500));
    assert_eq!(base.engine.workers, 1);
}

#[test]
fn the_options_say_what_is_run() {
    let spec = resolve(
        "192.0.2.7 --token t --scenarios 1/1,4/4 -d 3s --idle 0 --bytes-max 1GB --cc cubic,bbr \
         --dscp EF --ecn off --probe-every 5ms --no-udp --interval 50ms -t 2 --seed 7",
    );
    assert_eq!(spec.service.as_deref(), Some("192.0.2.7:7008"));
    assert_eq!(spec.plan.scenarios, [(1, 1), (4, 4)]);
    assert_eq!(spec.plan.idle, Nanos::ZERO);
    let both = ["cubic", "bbr"].map(|name| Some(name.to_owned()));
    assert_eq!(spec.plan.congestion, both);
    let base = spec.plan.base;
    assert_eq!(base.end, ScenarioEnd::After(Nanos::from_secs(3)));
    assert_eq!(base.token, "t");
    assert_eq!(base.bytes_max, Some(1_000_000_000));
    assert_eq!((base.sockets.dscp, base.sockets.ecn), (Some(46), Some(false)));
    assert_eq!(base.probes.every, Nanos::from_millis(5));
    assert!(!base.probes.udp);
    assert_eq!(base.interval, Nanos::from_millis(50));
    assert_eq!((base.engine.workers, base.seed), (2, 7));
    let quick = resolve("--quick --scenario-limit 20s --settle 2.5");
    assert_eq!(quick.plan.scenarios, QUICK);
    let ScenarioEnd::Settled { settle, limit } = quick.plan.base.end else {
        panic!("it ends after a time");
    };
    assert_eq!((settle.tolerance, limit), (0.025, Nanos::from_secs(20)));
    assert_eq!(base_interval("-d 2s"), Nanos::from_millis(200));
}

fn base_interval(arguments: &str) -> Nanos {
    base(arguments).interval
}

#[test]
fn what_is_to_come_is_announced() {
    for (arguments, expected) in [
        (
            "",
            "19 scenarios, each until it has settled, at most 10.0 min, after 2s of the idle path",
        ),
        (
            "--scenarios 1/0 -d 3s --cc cubic,bbr --idle 0",
            "1 scenario of 3s with each of cubic and bbr: about 6 s",
        ),
    ] {
        assert_eq!(options::announcement(&resolve(arguments).plan), expected);
    }
}

#[test]
fn what_is_resolved_can_be_typed_again() {
    for arguments in [
        "",
        "h --quick --scenario-limit 90s --settle 2.5%",
        "::1 --scenarios 1/1,0/32 -d 1500ms --cc bbr --dscp AF41 --ecn on --no-udp -t 2",
        "h:9 --idle 0 --bytes-max 4GiB --probe-every 20ms --fail-if p99>1s --fail-if invalid",
    ] {
        let first = resolve(arguments);
        let words = first.setup.options.0.iter().flat_map(|(k, v)| typed(k, v));
        let words: Vec<String> = words.collect();
        let again = resolve(&words.join(" "));
        assert_eq!(again.plan, first.plan, "{arguments}");
        assert_eq!(again.service, first.service, "{arguments}");
        assert_eq!(again.setup.options, first.setup.options, "{arguments}");
    }
}

#[test]
fn a_token_is_not_told() {
    let spec = resolve("127.0.0.1 --token secret");
    assert!(!format!("{:?}", spec.setup.options).contains("secret"));
}

#[test]
fn bad_input_gets_one_clear_line() {
    check(REFUSED);
}

const REFUSED: &[(&str, &str)] = &[
    ("latency h:0", "HOST[:PORT]: 'h:0' has the port 0: give HOST or HOST:PORT of a 'knee serve…"),
    ("latency http://h/", "HOST[:PORT]: 'http://h/' is no service:…"),
    ("latency h:99999", "HOST[:PORT]: 'h:99999' has no port from 1 to 65535:…"),
    ("latency h h", "'h': one argument too many; values follow their options"),
    ("latency --token t", "--token: the built-in service needs none: give HOST"),
    ("latency --scenarios 4", "--scenarios: `4` is not a scenario:…"),
    ("latency --scenarios 0/0", "--scenarios: `0/0` has no flow:…"),
    ("latency --scenarios 1/1,1", "--scenarios: `1` is not a scenario:…"),
    (
        "latency --quick --scenarios 1/1",
        "--quick and --scenarios exclude each other: leave one out",
    ),
    ("latency -d 3s --settle 5%", "--duration and --settle exclude each other: leave one out"),
    (
        "latency -d 3s --scenario-limit 5s",
        "--duration and --scenario-limit exclude each other: leave one out",
    ),
    ("latency -d 0", "--duration: '0' is no time at all:…"),
    ("latency --settle 0", "--settle: '0' is not a share above 0 % and below 100 %, such as 5%"),
    ("latency --settle -5", "--settle: '-5' is not a share above 0 % and below 100 %, such as 5%"),
    ("latency --cc", "--cc: a value is missing"),
    (
        "latency --cc cubic,,bbr",
        "--cc: '' is no congestion control: give names such as cubic or cubic,bbr",
    ),
    ("latency --cc bbr,bbr", "--cc: 'bbr' is there twice: name each once"),
    ("latency --dscp 64", "--dscp: '64' is no code point: give 0 to 63, or EF,…"),
    ("latency --ecn maybe", "--ecn: 'maybe' is neither on nor off"),
    (
        "latency --probe-every 10us",
        "--probe-every: '10us' is too often, as probes are no load: at least 1ms",
    ),
    ("latency --interval 1ms", "--interval: '1ms' is too short: at least 10ms"),
    ("latency --bytes-max lots", "--bytes-max: 'lots' is no amount of data:…"),
    ("latency -t 0", "--threads: '0' is too few: at least 1"),
    ("latency --fail-if slow", "--fail-if: 'slow' compares nothing:…"),
    (
        "serve latency --listen 7008",
        "--listen: '7008' is no address to listen at: give ADDR:PORT such as 127.0.0.1:7008",
    ),
    (
        "serve latency --listen 0.0.0.0:7008",
        "--token: is needed at 0.0.0.0:7008, which others can reach: give the same secret here…",
    ),
    ("serve latency --max-time 0", "--max-time: '0' is no time at all:…"),
    ("serve latency --max-bytes 0", "--max-bytes: '0' is no amount of data:…"),
    (
        "serve latency --fault reset(up)",
        "--fault: 'reset(up)' is no fault: give reset(up,0,2s) or stall(down,2,2s,334ms)",
    ),
];
