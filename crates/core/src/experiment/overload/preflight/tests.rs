//! Predictions, with numbers.

use super::super::tests::spec;
use super::*;
use knee_load::spec::{ArrivalLaw, Rate};

/// 1,000 local ports, an orderly close by this side, and the reference server on this host.
fn facts() -> PreflightFacts {
    PreflightFacts {
        port_range: (40_000, 40_999),
        sources: 1,
        tw_reuse: false,
        close: Some(CloseKind::Fin),
        closes_first: true,
        syn_retries: 6,
        files_hard: 1 << 20,
        time_wait: Nanos::from_secs(60),
        served_per_s: Some(130.0),
        server: Some(ServerFacts {
            somaxconn: 4_096,
            backlog: Some(128),
            tcp_max_syn_backlog: 512,
            syncookies: 1,
            abort_on_overflow: false,
            synack_retries: 5,
        }),
    }
}

/// A machine on which nothing goes wrong.
fn fine() -> PreflightFacts {
    PreflightFacts { port_range: (32_768, 60_999), closes_first: false, ..facts() }
}

fn codes(facts: &PreflightFacts, spec: &OverloadSpec) -> Vec<String> {
    let found = predict(facts, spec);
    for finding in &found {
        assert!(!finding.text.is_empty() && !finding.next_step.is_empty(), "{finding:?}");
    }
    found.into_iter().map(|f| f.code).collect()
}

fn listed(descriptors: &[u32]) -> OverloadSpec {
    OverloadSpec { descriptors: Descriptors::List(descriptors.to_vec()), ..spec() }
}

#[test]
fn nothing_is_said_where_nothing_is_wrong() {
    assert_eq!(predict(&fine(), &spec()), []);
}

#[test]
fn a_thousand_ports_are_not_enough() {
    let found = predict(&facts(), &spec());
    let texts: Vec<&str> = found.iter().map(|f| f.text.as_str()).collect();
    // 16 times 130/s take 975 descriptors, and 128 wait in the accept queue.
    let text = "descriptors=975 has 1,103 connections in flight, and there are 1,000 local ports: \
                what is beyond finds none (EADDRNOTAVAIL)";
    assert_eq!(texts, [text]);
    assert_eq!(found[0].severity, Severity::Error);
    assert!(found[0].next_step.contains("--source 127.0.0.2-127.0.0.20"));
}

#[test]
fn in_flight_connections_need_a_port_each() {
    let one_closes = PreflightFacts { closes_first: false, ..facts() };
    assert_eq!(codes(&one_closes, &listed(&[64, 872])), [""; 0], "1,000 in all");
    assert_eq!(codes(&one_closes, &listed(&[64, 873])), ["too_few_ports"]);
    let two = PreflightFacts { sources: 2, ..one_closes.clone() };
    assert_eq!(codes(&two, &listed(&[1_872])), [""; 0]);
    let by_schedule = OverloadSpec {
        scheduled: Rate::per_second(800).map(|r| (r, ArrivalLaw::Poisson, 900)),
        ..spec()
    };
    assert_eq!(codes(&one_closes, &by_schedule), ["too_few_ports"]);
    let many = OverloadSpec { simple: vec![1, 1_001], ..listed(&[]) };
    assert_eq!(codes(&one_closes, &many), ["too_few_ports"]);
    assert!(predict(&one_closes, &many)[0].text.starts_with("clients=1001 has 1,001 "));
    let unknown = PreflightFacts { served_per_s: None, ..one_closes };
    let found = predict(&unknown, &spec());
    assert_eq!(found[0].severity, Severity::Warning, "it may come to that: {found:?}");
}

#[test]
fn ports_in_time_wait_run_out_by_what_is_served() {
    // Of 1,000 ports 500 are free beside connects in flight and the queue. That is 8.3/s in the 60
    // s that four levels and the base load again take.
    let codes_with = |facts: PreflightFacts| codes(&facts, &listed(&[372]));
    let text = &predict(&facts(), &listed(&[372]))[0].text;
    assert!(text.starts_with("1,000 local ports last for 8.333/s served"), "{text}");
    assert!(text.ends_with("130/s are: after 3.85 s no port is left"), "{text}");
    assert_eq!(codes_with(facts()), ["ports_will_run_out"]);
    let slow = PreflightFacts { served_per_s: Some(8.3), ..facts() };
    assert_eq!(codes_with(slow), [""; 0]);
    let reset = PreflightFacts { close: Some(CloseKind::Rst), ..facts() };
    assert_eq!(codes_with(reset), [""; 0]);
    // A second each: 500/s.
    let reused = PreflightFacts { tw_reuse: true, ..facts() };
    assert_eq!(codes_with(reused), [""; 0]);
    let unknown = PreflightFacts { served_per_s: None, ..facts() };
    let found = predict(&unknown, &listed(&[372]));
    assert_eq!((found.len(), found[0].severity), (1, Severity::Warning));
    // In one trial of 12 s none comes back: 500 ports are 41.7/s.
    let short = OverloadSpec { simple: Vec::new(), ..listed(&[372]) };
    let served = |per_s| PreflightFacts { served_per_s: Some(per_s), ..facts() };
    assert_eq!(codes(&served(41.6), &short), [""; 0]);
    assert_eq!(codes(&served(41.7), &short), ["ports_will_run_out"]);
}

#[test]
fn descriptors_beyond_the_hard_limit() {
    let with_limit = |files_hard| PreflightFacts { files_hard, ..fine() };
    let spec = listed(&[808]);
    assert_eq!(codes(&with_limit(1_000), &spec), [""; 0], "808 and 128 and 64");
    assert_eq!(codes(&with_limit(999), &spec), ["files_will_run_out"]);
    assert!(predict(&with_limit(999), &spec)[0].next_step.contains("ulimit -Hn 1000"));
}

#[test]
fn a_t_of_a_second_is_too_long_if_syns_are_sent_again() {
    let with = |ms| {
        let mut spec = listed(&[64]);
        spec.base.connect_timeout = Nanos::from_millis(ms);
        spec
    };
    assert_eq!(codes(&fine(), &with(1_000)), ["patience_too_long"]);
    assert_eq!(codes(&fine(), &with(999)), [""; 0]);
    let once = PreflightFacts { syn_retries: 0, ..fine() };
    assert_eq!(codes(&once, &with(1_000)), [""; 0]);
}

#[test]
fn what_the_servers_host_makes_of_it() {
    let codes_with = |change: fn(&mut ServerFacts)| {
        let mut facts = fine();
        facts.server.iter_mut().for_each(change);
        codes(&facts, &listed(&[64]))
    };
    assert_eq!(codes_with(|s| s.somaxconn = 128), [""; 0]);
    assert_eq!(codes_with(|s| s.somaxconn = 127), ["backlog_cut"]);
    assert_eq!(codes_with(|s| s.abort_on_overflow = true), ["aborts_on_overflow"]);
    assert_eq!(codes_with(|s| s.syncookies = 2), ["syncookies_always"]);
    assert_eq!(codes_with(|s| s.syncookies = 0), [""; 0]);
    let short = |s: &mut ServerFacts| (s.syncookies, s.tcp_max_syn_backlog) = (0, 127);
    assert_eq!(codes_with(short), ["request_queue_short"]);
    assert_eq!(codes_with(|s| s.tcp_max_syn_backlog = 127), [""; 0], "cookies take over");
    let elsewhere = PreflightFacts { server: None, ..fine() };
    assert_eq!(codes(&elsewhere, &listed(&[64])), [""; 0]);
}
