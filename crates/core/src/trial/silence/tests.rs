//! Servers that hang, die, stand still and pause, in virtual time; and those that only seem to.

use crate::finding::{Finding, Severity};
use crate::trial::assess::assess;
use crate::trial::assess::tests::{closed, open, spec};
use crate::trial::findings::trial_findings;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::silence::{Silence, joined, silence};
use crate::trial::slice::Slice;
use crate::trial::validity::Clause;
use knee_load::law::Law;
use knee_load::measure::TargetMeasured;
use knee_load::spec::{ArrivalLaw, Level, Load, OpenLoad, Rate, TrialSpec};
use knee_load::time::Nanos;
use knee_sim::{Faults, Stall, World, simulate};
use proptest::prelude::*;

const MS: fn(u64) -> Nanos = Nanos::from_millis;

fn level(load: &Load) -> Level {
    match load {
        Load::Closed { vusers, .. } => Level::Vusers(*vusers),
        Load::Open(open) => Level::RatePerS(open.rate.per_s()),
        Load::Overload(_) => Level::Descriptors(1),
    }
}

fn spec_of(load: Load) -> TrialSpec {
    TrialSpec { level: level(&load), ..spec(load) }
}

fn at_rate(per_s: u64) -> Load {
    Load::Open(OpenLoad {
        rate: Rate::per_second(per_s).expect("not zero"),
        arrival: ArrivalLaw::Poisson,
        connections_max: 1_000,
        in_flight_max: None,
    })
}

fn run(load: Load, world: &World) -> (TrialReport, Vec<Finding>) {
    let report = assess(&simulate(&spec_of(load), world).trial);
    let findings = trial_findings(&report);
    (report, findings)
}

fn found<'a>(findings: &'a [Finding], code: &str) -> Option<&'a Finding> {
    findings.iter().find(|f| f.code == code)
}

fn fast() -> World {
    World::station(8, Law::Exp(MS(2)))
}

#[test]
fn users_who_hang_from_the_warm_up_on_are_seen() {
    let mut world = fast();
    world.faults.hangs_every = 4;
    let (report, findings) = run(closed(16), &world);
    let hung = found(&findings, "hung_operations").expect("4 of 16 hang");
    assert_eq!(hung.severity, Severity::Error);
    assert!(hung.text.contains("4 of 16 users never got a response"), "{}", hung.text);
    assert_eq!(found(&findings, "littles_law_violation"), None);
    assert_eq!((report.as_http().silence.hung, report.as_http().silence.hung_throughout), (4, 4));
    // They are in outcomes and percentiles, and no minimum.
    assert_eq!(report.outcomes.total(), report.attempted);
    assert_eq!(report.outcomes.errors(), 4);
    assert!(report.response_time_ns.max >= Some(MS(11_000).0));
    assert!(report.response_time_ns.min < Some(MS(2).0));
    assert!(found(&findings, "errors").is_some(), "{findings:#?}");
    assert_eq!(report.as_http().transient_ns, 0);

    let (_, findings) = run(closed(16), &fast());
    assert_eq!(findings, [], "the same server when it answers");
}

#[test]
fn operations_of_an_open_loop_that_hang_are_seen() {
    let mut world = fast();
    world.faults.hangs_every = 4;
    let (report, findings) = run(at_rate(200), &world);
    assert!(report.as_http().silence.hung_throughout > 0, "{:?}", report.as_http().silence);
    assert!(found(&findings, "hung_operations").is_some());
    assert_eq!(report.verdict, Verdict::Valid, "{:?}", report.invalid_because);
}

#[test]
fn long_operations_do_not_hang_and_bias_nothing() {
    let mut spec = spec_of(closed(4));
    spec.duration = MS(20_000);
    for law in [Law::Fixed(MS(5_000)), Law::Uniform(MS(4_000), MS(6_000))] {
        let report = assess(&simulate(&spec, &World::station(None, law)).trial);
        let off = (report.responses_per_s() / 0.8 - 1.0).abs();
        let chance = if law == Law::Fixed(MS(5_000)) { 0.02 } else { 0.1 };
        assert!(off < chance, "{law:?}: {off}");
        assert!(report.as_http().silence.is_none(), "{:?}", report.as_http().silence);
        // So few operations of random length may look like a drift, and that is all.
        let findings = trial_findings(&report);
        let others = findings.iter().find(|f| f.code != "non_stationary");
        assert_eq!(others, None);
    }
}

/// A server that dies, 3 s into the measurement of 10 s: at the end, in the middle, at the
/// beginning.
#[test]
fn an_outage_has_a_beginning_and_an_end_and_nothing_is_cut() {
    let dies = |from: u64, until: Option<u64>| {
        let mut world = fast();
        match until {
            None => world.faults.crash_at = Some(MS(from)),
            Some(until) => {
                world.server_stalls = vec![Stall { at: MS(from), length: MS(until - from) }];
            }
        }
        world
    };
    for (load, timeout) in [(closed(16), 500), (at_rate(300), 500)] {
        for (from, until) in [(4_000, None), (4_000, Some(6_500)), (500, Some(3_000))] {
            let mut spec = spec_of(load.clone());
            spec.timeout = MS(timeout);
            let report = assess(&simulate(&spec, &dies(from, until)).trial);
            let findings = trial_findings(&report);
            let what = format!("{load:?} {from} {until:?}: {:?}", report.as_http().silence);
            let outage = found(&findings, "outage").unwrap_or_else(|| panic!("{what}"));
            assert_eq!(found(&findings, "target_queue_grows"), None, "{what}");
            let near = |name: &str, ms: f64| {
                let value = outage.evidence[name] / 1e6;
                assert!((value - ms).abs() < 200.0, "{name}: {value}, {what}");
            };
            near("from_ns", from as f64 - 1_000.0);
            match until {
                Some(until) => near("until_ns", until as f64 - 1_000.0),
                None => assert!(outage.text.contains("until its end"), "{}", outage.text),
            }
            assert_eq!(report.as_http().transient_ns, 0, "{what}");
            assert_eq!(report.outcomes.total(), report.attempted);
        }
    }
}

#[test]
fn silence_for_good_after_many_answers_is_an_outage() {
    let mut world = fast();
    world.server_stalls = vec![Stall { at: MS(4_000), length: MS(100_000) }];
    let (report, findings) = run(closed(16), &world);
    let outage = found(&findings, "outage").expect("it never answers again");
    assert!(outage.text.contains("until its end"), "{}", outage.text);
    assert_eq!(outage.evidence["failures"], 16.0);
    assert_eq!(found(&findings, "hung_operations"), None, "said once");
    let per_s = report.responses_per_s();
    assert!((900.0..1_500.0).contains(&per_s), "{per_s}: of all the window");
}

#[test]
fn one_stall_without_a_failure_is_an_outage_or_a_pause() {
    for (length, code, other) in [(1_500, "outage", "pauses"), (300, "pauses", "outage")] {
        let mut world = fast();
        world.server_stalls = vec![Stall { at: MS(5_000), length: MS(length) }];
        for load in [closed(1), closed(16), at_rate(300)] {
            let (report, findings) = run(load, &world);
            let what = format!("{findings:#?}");
            let silence = &report.as_http().silence;
            let times = silence.outages.iter().map(|o| [o.start_ns, o.end_ns]);
            let pauses = silence.pauses.iter().flat_map(|p| p.times_ns.iter().copied());
            let times: Vec<[i64; 2]> = times.chain(pauses).collect();
            let [[start, end]] = times[..] else { panic!("{times:?}") };
            assert!((start - 4_000_000_000).abs() < 50_000_000, "{what}");
            assert!((end - start - length as i64 * 1_000_000).abs() < 50_000_000, "{what}");
            assert!(found(&findings, code).is_some(), "{what}");
            for none in [other, "non_stationary", "server_stalled", "periodic_pauses"] {
                assert_eq!(found(&findings, none), None);
            }
            assert_eq!((report.as_http().transient_ns, report.verdict), (0, Verdict::Valid));
        }
    }
}

/// What the generator does not see while it is stalled says nothing about the target.
#[test]
fn a_stall_of_the_generator_is_no_silence() {
    let mut world = fast();
    world.client_stalls = vec![Stall { at: MS(5_000), length: MS(1_000) }];
    for load in [closed(16), at_rate(300)] {
        let (report, _) = run(load, &world);
        assert!(report.as_http().silence.is_none(), "{:?}", report.as_http().silence);
        assert!(report.breaks(Clause::Stalled), "{:?}", report.invalid_because);
    }
}

/// A silence that begins in one slice and ends in the next is one. Both are of the target.
#[test]
fn a_silence_across_two_slices_is_one() {
    let mut spec = spec_of(closed(16));
    (spec.warmup, spec.duration, spec.timeout) = (MS(100), MS(1_000), MS(1_500));
    let slice = |from: u64, length: u64, began: u64| {
        let mut world = fast();
        world.server_stalls = vec![Stall { at: MS(from), length: MS(length) }];
        Slice::of(&simulate(&spec, &world).trial, MS(began))
    };
    let first = slice(900, 100_000, 10_000);
    let second = slice(0, 700, first.end_ns / 1_000_000);
    assert_eq!((first.load_begin_ns, first.begin_ns), (MS(10_000).0, MS(10_100).0));
    let steady = slice(100_000, 1, 0);
    let level = Slice::silences_of_levels(&[vec![&first, &second, &steady]]).remove(0);
    assert_eq!(level[2], []);
    let all = joined(level.concat(), MS(100));
    let apart = Silence { end_ns: second.load_begin_ns, ..Silence::default() };
    assert_eq!(joined([apart, level[1][0]], MS(100)).len(), 2, "an answer came in between");
    let [one] = &all[..] else { panic!("{all:?}") };
    assert!(one.begin_ns.abs_diff(MS(10_900).0) < MS(20).0, "{one:?}");
    assert!(one.end_ns.abs_diff(second.load_begin_ns + MS(700).0) < MS(20).0, "{one:?}");
    assert!(one.failures >= 16 && one.is_of_target() && one.is_outage(), "{one:?}");
}

/// Slices that are shorter than a silence has to be, all of them refused.
#[test]
fn refusals_in_short_slices_are_one_outage() {
    let mut spec = spec_of(closed(4));
    (spec.warmup, spec.duration) = (MS(50), MS(200));
    let slice = |crash_at: Option<Nanos>, began: u64| {
        let mut world = fast();
        world.faults.crash_at = crash_at;
        Slice::of(&simulate(&spec, &world).trial, MS(began))
    };
    let down = |began| slice(Some(Nanos::ZERO), began);
    let slices =
        [slice(None, 0), slice(Some(MS(150)), 300), down(600), down(900), slice(None, 1_200)];
    let all: Vec<&Slice> = slices.iter().collect();
    let level = Slice::silences_of_levels(&[all]).remove(0);
    let outages: Vec<Silence> = joined(level.concat(), MS(1_000))
        .into_iter()
        .filter(|silence| silence.is_of_target() && silence.is_outage())
        .collect();
    let [one] = &outages[..] else { panic!("{outages:?}") };
    assert!(one.begin_ns.abs_diff(MS(450).0) < MS(20).0, "{one:?}");
    // The last refusal, or the next start.
    assert!((MS(1_030).0..MS(1_220).0).contains(&one.end_ns), "{one:?}");
    // Of one such slice nothing is said: a fifth of a second is no outage.
    let alone = [slice(None, 0), down(300), slice(None, 600)];
    let level = Slice::silences_of_levels(&[alone.iter().collect()]).remove(0);
    let all = joined(level.concat(), MS(1_000));
    assert!(!all.iter().any(|s| s.is_of_target() && s.length_ns() < MS(200).0), "{all:?}");
}

#[test]
fn periodic_pauses_are_found_in_closed_and_open_loops() {
    let mut world = fast();
    world.server_stalls = Stall::every(MS(1_150), MS(150), MS(60_000));
    for (load, hides) in [(closed(16), true), (at_rate(500), false)] {
        let (report, findings) = run(load, &world);
        let pauses = found(&findings, "periodic_pauses");
        let pauses = pauses.unwrap_or_else(|| panic!("{:?}", report.as_http().silence));
        let period = pauses.evidence["period_ns"] / 1e6;
        let length = pauses.evidence["length_ns"] / 1e6;
        assert!((period - 1_150.0).abs() <= 20.0, "{period}");
        assert!((length - 150.0).abs() <= 20.0, "{length}");
        assert!((pauses.evidence["percent"] - 13.0).abs() < 2.5);
        assert_eq!(pauses.text.contains("closed loop"), hides, "{}", pauses.text);
        assert_eq!(pauses.next_step.contains("--rate"), hides);
    }
}

/// 256 users wait for 256 ms, so that a pause of 200 ms is no time for one of them. Sessions of one
/// step have one target of their own. The nearest case: a fast and a slow target, for which all
/// users may wait at once.
#[test]
fn a_pause_shorter_than_the_wait_of_many_users_is_named() {
    let mut world = World::station(8, Law::Exp(MS(8)));
    world.server_stalls = Stall::every(MS(3_000), MS(200), MS(60_000));
    let mut trial = simulate(&spec_of(closed(256)), &world).trial;
    let own = TargetMeasured {
        response: trial.measurement.response.clone(),
        ..TargetMeasured::default()
    };
    for (targets, pauses) in [(0, 3), (1, 3), (2, 0)] {
        trial.measurement.targets = vec![own.clone(); targets];
        let report = silence(&trial);
        let found = report.pauses.as_ref().map_or(0, |pauses| pauses.count);
        assert_eq!((found, report.outages.len()), (pauses, 0), "{targets}: {report:?}");
    }
}

#[test]
fn what_is_not_periodic_or_no_pause_is_not_called_so() {
    let stall = |ms: u64| Stall { at: MS(ms), length: MS(150) };
    let once = vec![stall(5_000)];
    let any_time = [1_300, 2_900, 3_350, 6_000, 8_700, 9_100].map(stall).to_vec();
    let slow = World::station(1, Law::Fixed(MS(150)));
    let in_step = World::station(None, Law::Fixed(MS(150)));
    let heavy = World::station(4, Law::LogNormal(MS(5), 2.0));
    let stalled = |server_stalls| World { server_stalls, ..fast() };
    for (what, world) in [
        ("one stall", stalled(once)),
        ("stalls at any time", stalled(any_time)),
        ("slow but steady", slow),
        ("users in step", in_step),
        ("single slow operations", heavy),
        ("nothing", fast()),
    ] {
        for load in [closed(16), closed(1), open(ArrivalLaw::Constant), at_rate(20)] {
            let (report, findings) = run(load, &world);
            let none = found(&findings, "periodic_pauses").is_none();
            assert!(none, "{what}: {:?}", report.as_http().silence);
        }
    }
}

#[test]
fn one_response_is_shown_and_none_is_no_figure() {
    let few = |per_10_000_s: u64| {
        let mut load = spec(closed(1));
        load.warmup = Nanos::ZERO;
        load.load = Load::Open(OpenLoad {
            rate: Rate::new(per_10_000_s, MS(10_000_000)).expect("not zero"),
            arrival: ArrivalLaw::Constant,
            connections_max: 1,
            in_flight_max: None,
        });
        load
    };
    let report = assess(&simulate(&few(10), &fast()).trial);
    assert_eq!(report.completed, 1);
    assert!((report.responses_per_s() - 0.1).abs() < 1e-9, "1 in 10 s");
    assert!(report.response_time_ns.p50.is_some() && report.response_time_ns.p99.is_none());

    // Every operation ends after the window.
    let long = World::station(None, Law::Fixed(MS(15_000)));
    let report = assess(&simulate(&spec(closed(4)), &long).trial);
    assert_eq!((report.throughput_per_s, report.goodput_per_s), (None, None));
    assert_eq!(report.throughput_ci95_per_s, None);
}

fn any_world() -> impl Strategy<Value = World> {
    let law = prop_oneof![
        (1u64..50).prop_map(|ms| Law::Fixed(MS(ms))),
        (1u64..50).prop_map(|ms| Law::Exp(MS(ms))),
        (1u64..20).prop_map(|ms| Law::LogNormal(MS(ms), 1.0)),
    ];
    let stalls = prop_oneof![
        3 => Just(Vec::new()),
        1 => (0u64..11_000, 100u64..20_000).prop_map(|(at, length)| vec![Stall {
            at: MS(at),
            length: MS(length),
        }]),
        1 => (600u64..2_000, 50u64..250).prop_map(|(period, length)| {
            Stall::every(MS(period), MS(length), MS(60_000))
        }),
    ];
    let hangs = prop_oneof![2 => Just(0u64), 1 => 2u64..9];
    let crash = prop_oneof![2 => Just(None), 1 => (1_500u64..10_500).prop_map(|at| Some(MS(at)))];
    let errors = prop_oneof![2 => Just(0.0), 1 => 0.001f64..0.9];
    (law, 1u32..16, stalls, hangs, crash, errors).prop_map(
        |(service, workers, server_stalls, hangs_every, crash_at, errors)| World {
            server_stalls,
            faults: Faults { hangs_every, crash_at, errors, ..Faults::default() },
            ..World::station(workers, service)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    /// Whatever the server does: the counts sum, no figure comes from nothing, and a failure has a
    /// finding.
    #[test]
    fn no_report_contradicts_itself(
        world in any_world(),
        users in 1u32..40,
        is_open in any::<bool>(),
        timeout in prop_oneof![Just(300u64), Just(2_000), Just(30_000)],
    ) {
        let mut spec = spec_of(if is_open { at_rate(u64::from(users) * 5) } else { closed(users) });
        spec.timeout = MS(timeout);
        let report = assess(&simulate(&spec, &world).trial);
        let findings = trial_findings(&report);
        let times = &report.response_time_ns;
        prop_assert_eq!(report.outcomes.total(), report.attempted);
        prop_assert_eq!(report.outcomes.responses(), report.completed);
        prop_assert_eq!(times.count, report.attempted);
        prop_assert_eq!(times.p50.is_some(), times.count > 0);
        prop_assert_eq!(times.p99.is_some(), times.count >= 100);
        if report.throughput_per_s.is_none() {
            prop_assert!(report.intervals.iter().all(|i| i.completed == 0));
        }
        if report.outcomes.errors() > 0 {
            let named = findings.iter().any(|f| f.code == "errors");
            prop_assert!(named, "{:?}", report.outcomes);
        }
        if let Some(at) = world.faults.crash_at.filter(|at| *at < MS(10_000)) {
            // Where anything good had come before it, and often enough.
            if report.throughput_per_s.is_some_and(|x| x > 20.0) && world.faults.errors == 0.0
                && at > MS(2_500) && world.server_stalls.is_empty() && world.faults.hangs_every == 0
            {
                prop_assert!(found(&findings, "outage").is_some(), "{:?}", findings);
                prop_assert_eq!(report.as_http().transient_ns, 0);
            }
        }
        for outage in &report.as_http().silence.outages {
            prop_assert!(outage.start_ns < outage.end_ns);
            prop_assert!(outage.failures > 0 || outage.end_ns - outage.start_ns >= 1_000_000_000);
        }
        prop_assert!(report.as_http().silence.hung_throughout <= report.as_http().silence.hung);
        if let Level::Vusers(n) = report.level {
            prop_assert!(report.as_http().silence.hung <= u64::from(n));
        }
        // A queue that grows beyond the timeout fails too.
        let none_failed = report.outcomes.errors() == 0;
        if none_failed && world.server_stalls.is_empty() && world.faults == Faults::default() {
            prop_assert!(report.as_http().silence.is_none(), "{:?}", report.as_http().silence);
        }
    }
}
