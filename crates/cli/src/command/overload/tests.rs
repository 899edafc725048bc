//! From argv to a resolved overload: no load is sent.

use super::super::tests::{MACHINE, parse};
use super::{ResolvedOverload, announcement};
use crate::command::raw::RawCommand;
use knee_core::experiment::overload::{Descriptors, OverloadSpec};
use knee_load::spec::{CloseKind, Load, OverloadLoad};
use knee_load::time::Nanos;

const URL: &str = "http://127.0.0.1:8080/";

fn resolved(arguments: &str) -> ResolvedOverload {
    match parse(&format!("overload {arguments}")).unwrap() {
        RawCommand::Overload(raw) => raw.resolve(&MACHINE).unwrap(),
        other => panic!("{arguments}: {other:?}"),
    }
}

fn spec(arguments: &str) -> OverloadSpec {
    resolved(&format!("{URL} {arguments}")).spec
}

fn load(spec: &OverloadSpec) -> &OverloadLoad {
    match &spec.base.load {
        Load::Overload(load) => load,
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_a_list_there_are_both_sweeps() {
    let spec = spec("--seed 7");
    assert_eq!(spec.simple, [1, 2, 4, 8, 16, 32, 64, 128, 256]);
    assert_eq!(spec.descriptors, Descriptors::Auto);
    assert_eq!(spec.descriptors_max, 960);
    assert_eq!((spec.sclients, &spec.scheduled), (12, &None));
    let base = &spec.base;
    assert_eq!(base.connect_timeout, Nanos::from_millis(500));
    assert_eq!(base.timeout, Nanos::from_secs(10));
    assert_eq!(base.duration, Nanos::from_secs(5));
    assert_eq!(base.warmup, Nanos::from_secs(1));
    assert_eq!(base.seed, 7);
    assert!(!base.target.keep_alive);
    assert_eq!(load(&spec).close, CloseKind::Fin);
    assert!(spec.base.target.route.sources.is_empty());
}

#[test]
fn what_is_named_runs_alone() {
    let only_simple = spec("--simple 1,5");
    assert_eq!(only_simple.simple, [1, 5]);
    assert_eq!(only_simple.descriptors, Descriptors::List(Vec::new()));
    let only_descriptors = spec("--descriptors 8,9 --sclients 2 --connect-timeout 2s");
    assert!(only_descriptors.simple.is_empty());
    assert_eq!(only_descriptors.descriptors, Descriptors::List(vec![8, 9]));
    assert_eq!(only_descriptors.sclients, 2);
    assert_eq!(only_descriptors.base.warmup, Nanos::from_secs(2));
    let both = spec("--simple auto --descriptors auto");
    assert_eq!((both.simple.len(), both.descriptors), (9, Descriptors::Auto));
}

#[test]
fn a_rate_takes_the_place_of_s_clients() {
    let spec = spec("--rate 2000 --arrival burst(paper) --descriptors 500 --close rst");
    assert!(spec.simple.is_empty());
    assert_eq!(spec.descriptors, Descriptors::List(Vec::new()));
    let (rate, arrival, most) = spec.scheduled.clone().unwrap();
    assert_eq!((rate.per_s(), most), (2000.0, 500));
    assert_eq!(arrival.text(""), "burst(6,0.05,100s)");
    assert_eq!(load(&spec).close, CloseKind::Rst);
}

#[test]
fn workers_are_as_many_as_the_rate_has_use_for() {
    for (arguments, workers) in [
        ("--descriptors 64,900", 1),
        ("--descriptors 900 --connect-timeout 30ms", 2),
        ("--descriptors 900 -t 2", 2),
        ("--rate 25k", 2),
        ("--rate 25k -t 3", 3),
        ("", 2),
    ] {
        assert_eq!(spec(arguments).base.engine.workers, workers, "{arguments}");
    }
}

#[test]
fn the_words_resolve_to_the_same_again() {
    for arguments in [
        "--seed 7",
        "--simple 1,5 --seed 1 --fail-if invalid",
        "--descriptors 64,128 --sclients 3 --seed 1 --close rst --source 127.0.0.2-127.0.0.4",
        "--rate 90/m --arrival burst(paper) --descriptors 77 --seed 2",
        "--arrival ramp(10/s,20/s) -d 2s --seed 3",
    ] {
        let first = resolved(&format!("{URL} {arguments}"));
        let typed = first.setup.options.0.iter().map(|(option, value)| {
            let texts = match value {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Array(list) => list[0].as_str().unwrap().to_string(),
                other => other.to_string(),
            };
            match option.as_str() {
                "url" => texts,
                option => format!("--{option} {texts}"),
            }
        });
        let again = resolved(&typed.collect::<Vec<_>>().join(" "));
        assert_eq!(again.spec, first.spec, "{arguments}");
        assert_eq!(again.setup.options, first.setup.options, "{arguments}");
    }
}

#[test]
fn the_time_is_told() {
    for (arguments, expected) in [
        ("--simple 1", "1 level of 6 s each: 6 s"),
        (
            "--simple 1,2 --descriptors 64 -d 2s --warmup 1s --timeout 3s",
            "3 levels and the base load again, of 3 s each: 12 s",
        ),
        ("", "at most 18 levels and the base load again, of 6 s each: at most 114 s"),
    ] {
        let told = announcement(&spec(arguments));
        assert!(told.starts_with(expected), "{told}");
    }
}

#[test]
fn scenario_replaces_url_and_sessions_keep_connections() {
    let name = format!("knee-of-overload-{}.yaml", std::process::id());
    let file = std::env::temp_dir().join(name);
    let text = "target: http://127.0.0.1:81\ndefaults: {timeout: 3s}\nload: {rate: 9/s}\n\
                sessions: {s: {steps: [{get: /a}, {get: /b}]}}\n";
    std::fs::write(&file, text).unwrap();
    let base = resolved(&format!("{} --descriptors 64", file.display())).spec.base;
    let _ = std::fs::remove_file(&file);
    assert!(base.target.sessions.is_some() && base.target.keep_alive);
    assert_eq!(base.timeout, Nanos::from_secs(3));
    assert_eq!(base.connect_timeout, Nanos::from_millis(500), "T");
    // How many sessions come is up to the scheme.
    assert!(matches!(base.load, Load::Overload(_)), "{:?}", base.load);
}

#[test]
fn bad_input_gets_one_clear_line() {
    crate::command::tests::refused::check(REFUSED);
}

const REFUSED: &[(&str, &str)] = &[
    (
        "overload http://h/ --simple 0",
        "--simple: '0' is too few: at least 1; levels are 'auto' or a list such as 1,10,50",
    ),
    (
        "overload http://h/ --descriptors 64,many",
        "--descriptors: 'many' is not a whole number such as 100; levels are 'auto' or a list \
         such as 1,10,50",
    ),
    (
        "overload http://h/ --descriptors 961",
        "--descriptors: 961 connections need 1025 open files (64 are for knee \
         itself), and the limit is 1024: raise the limit (ulimit -n 1025), or ask \
         for at most 960",
    ),
    ("overload http://h/ --simple 5000", "--simple: 5000 connections need 5064 open…"),
    ("overload http://h/ --sclients 0", "--sclients: '0' is too few: at least 1"),
    ("overload http://h/ --simple 3 --sclients 2", "--sclients: they need --descriptors to share"),
    (
        "overload http://h/ --rate 5 --sclients 2",
        "--sclients: with a rate the schedule takes their place: leave one out",
    ),
    (
        "overload http://h/ --rate 5 --simple 2",
        "--simple: simple clients keep no schedule: leave them or the rate out",
    ),
    (
        "overload http://h/ --rate 5 --descriptors 1,2",
        "--descriptors: with a rate they are the most in flight: give one number",
    ),
    (
        "overload http://h/ --arrival poisson",
        "--arrival: needs a rate: give --rate, such as --rate 1000",
    ),
    (
        "overload http://h/ --rate 5 --arrival ramp(1,2)",
        "--rate: the arrivals carry their own: leave one out",
    ),
    (
        "overload http://h/ --rate 5 --arrival burst(novel)",
        "--arrival: 'burst(novel)' has the wrong number of arguments:…",
    ),
    ("overload http://h/ --connect-timeout 0", "--connect-timeout: '0' is no time at all:…"),
    (
        "overload http://h/ --timeout 500ms",
        "--timeout: must be longer than --connect-timeout, as the response comes after the \
         connect",
    ),
    ("overload http://h/ --close gently", "--close: 'gently' is not one of fin, rst"),
    (
        "overload http://h/ --source eth0",
        "--source: 'eth0' is no IP address of this host, such as 127.0.0.2, nor a range such as \
         127.0.0.2-127.0.0.20",
    ),
    (
        "overload http://h/ --source 10.0.0.9-10.0.0.2",
        "--source: '10.0.0.9-10.0.0.2' has its ends the wrong way round",
    ),
    (
        "overload http://h/ --unix-socket /tmp/s",
        "--unix-socket: a Unix socket has no SYNs and no T: give the URL of a TCP port",
    ),
    ("overload http://h/ --observe server", "--observe: 'server' is no HOST:PORT,…"),
    ("overload http://h/ -d 0", "--duration: '0' is no time at all:…"),
    ("overload http://h:99999/", "URL: …"),
];
