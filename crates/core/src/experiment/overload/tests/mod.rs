//! The policy, and what it concludes.

mod fake;
mod properties;
pub(crate) mod trials;

use self::fake::{Fault, Server};
use super::*;
use crate::experiment::overload::report::CameBack;
use crate::experiment::overload::tests::trials::{clients, sclients};
use crate::experiment::{Conducted, conduct};
use crate::report::contradictions::assert_consistent;
use knee_load::spec::{CloseKind, ConnectScheme, Load, OverloadLoad};
use knee_sim::fixture::trial;
use std::convert::Infallible;
use std::ops::ControlFlow;

/// The sweeps of the paper, T = 500 ms, 10 s per level.
pub(crate) fn spec() -> OverloadSpec {
    let load = Load::Overload(OverloadLoad {
        scheme: ConnectScheme::Simple { clients: 1 },
        close: CloseKind::Fin,
    });
    OverloadSpec {
        base: TrialSpec {
            connect_timeout: Nanos::from_millis(500),
            warmup: Nanos::from_secs(2),
            ..trial(load, Nanos::from_secs(10))
        },
        simple: vec![1, 16, 256],
        sclients: 12,
        descriptors: Descriptors::Auto,
        offered_factor_max: OverloadSpec::OFFERED_FACTOR_MAX,
        descriptors_max: 1 << 20,
        scheduled: None,
    }
}

/// A whole experiment against a server in virtual time.
pub(crate) fn conducted(
    spec: OverloadSpec,
    server: Server,
) -> (Conducted<TrialReport, OverloadConclusion>, OverloadConclusion) {
    let mut trials = 0..;
    let run = |spec: &TrialSpec| {
        let trial = server.run(spec, trials.next().unwrap_or(0));
        Ok::<_, Infallible>(ControlFlow::Continue(trial))
    };
    let Ok(conducted) = conduct(&mut Overload::new(spec), run);
    let conclusion = conducted.conclusion.clone();
    (conducted, conclusion)
}

fn codes(conducted: &Conducted<TrialReport, OverloadConclusion>) -> Vec<&str> {
    let mut codes: Vec<&str> = conducted.findings.iter().map(|f| f.code.as_str()).collect();
    codes.sort_unstable();
    codes
}

fn near(value: f64, expected: f64, share: f64) -> bool {
    (value - expected).abs() <= share * expected
}

#[test]
fn the_two_curves_of_the_paper() {
    let (conducted, c) = conducted(spec(), Server::REFERENCE);
    assert_eq!(conducted.verdict, Verdict::Valid);
    assert!(near(c.capacity_per_s, 130.0, 0.01), "{}", c.capacity_per_s);
    for row in &c.simple {
        assert!(near(row.row.served_per_s, 130.0, 0.05), "{row:?}");
        assert!(row.row.first_syn_per_s < 1.05 * 130.0, "{row:?}");
    }
    assert_eq!(c.sclients.len(), 9);
    for row in &c.sclients {
        let expected = row.row.served_per_s + f64::from(row.descriptors) / 0.5;
        assert!(near(row.offered_per_s, expected, 1e-9), "{row:?}");
        assert!(near(row.row.first_syn_per_s, expected, 0.03), "{row:?}");
        assert!(row.past_saturation && near(row.row.served_per_s, 130.0, 0.05), "{row:?}");
        assert_eq!(row.row.syn_per_s, row.row.first_syn_per_s, "none is sent again within T");
        assert!(row.row.served_ci95_per_s.is_some(), "{row:?}");
    }
    assert!(near(c.slope_per_descriptor.expect("a line"), 2.0, 0.01), "{c:?}");
    assert!(c.r_squared.expect("a line") > 0.999, "{c:?}");
    assert!(c.deviation_percent.expect("levels") < 3.0, "{c:?}");
    assert!(c.max_syn_per_s > 2_040.0, "{}", c.max_syn_per_s);
    assert_eq!(c.generator_limit_per_s, Some(c.max_syn_per_s));
    assert_eq!(c.syn_source, knee_load::measure::SynSource::Capture);
    // 256 clients are more than the queue holds, and wait until their SYNs are sent again.
    assert_eq!(
        codes(&conducted),
        [
            "accept_queue_full",
            "simple_clients_flatten",
            "syn_retransmissions",
            "throughput_flat_under_overload"
        ]
    );
    assert!(c.answer.starts_with("The server serves 130/s whatever is offered; "), "{}", c.answer);
}

#[test]
fn trials_are_named_and_seeded_each_for_itself() {
    let (conducted, _) = conducted(spec(), Server::REFERENCE);
    let labels: Vec<&str> = conducted.trials.iter().map(|t| t.label.as_str()).collect();
    assert_eq!(labels[..4], ["clients=1", "clients=16", "clients=256", "descriptors=17"]);
    let mut overload = Overload::new(spec());
    let mut seeds = std::collections::BTreeSet::new();
    let mut past = Vec::new();
    while let NextTrial::Run(spec) = overload.next(&past) {
        assert_eq!(spec.level, spec.load.level());
        assert!(seeds.insert(spec.seed));
        past.push(conducted.trials[past.len()].clone());
    }
    assert_eq!(past.len(), conducted.trials.len());
}

#[test]
fn a_server_that_every_syn_costs_something_falls() {
    let server = Server { per_syn: Nanos::from_micros(300), ..Server::REFERENCE };
    let (conducted, c) = conducted(spec(), server);
    let last = c.sclients.last().expect("levels");
    // Of each second 2,000 · 300 µs go into SYNs.
    assert!(last.row.served_per_s < 70.0, "{last:?}");
    assert!(codes(&conducted).contains(&"throughput_falls_under_overload"));
    assert!(c.r_squared.expect("a line") > 0.99, "still linear: {c:?}");
    assert!(c.answer.contains(" under overload; "), "{}", c.answer);
}

#[test]
fn levels_that_are_given_are_run_as_they_are() {
    let listed = OverloadSpec {
        simple: Vec::new(),
        descriptors: Descriptors::List(vec![256, 64, 64]),
        ..spec()
    };
    let (conducted, c) = conducted(listed, Server::REFERENCE);
    assert_eq!(conducted.trials[0].level, Level::Descriptors(256));
    let descriptors: Vec<u32> = c.sclients.iter().map(|row| row.descriptors).collect();
    assert_eq!(descriptors, [64, 64, 256]);
    assert_eq!((c.simple.len(), c.r_squared), (0, None), "two different levels only");
    assert_eq!(codes(&conducted), ["accept_queue_full", "throughput_flat_under_overload"]);
}

#[test]
fn without_simple_clients_a_first_level_finds_the_capacity() {
    let alone = OverloadSpec { simple: Vec::new(), ..spec() };
    let (_, c) = conducted(alone, Server::REFERENCE);
    assert_eq!(c.sclients[0].descriptors, 16);
    assert_eq!(c.sclients.len(), 10);
    assert!(c.max_syn_per_s > 2_040.0, "{}", c.max_syn_per_s);
}

#[test]
fn a_schedule_takes_the_place_of_s_clients() {
    let rate = knee_load::spec::Rate::per_second(800).expect("a rate");
    let scheduled = OverloadSpec {
        simple: vec![4],
        scheduled: Some((rate, knee_load::spec::ArrivalLaw::Poisson, 1_000)),
        ..spec()
    };
    let (conducted, c) = conducted(scheduled, Server::REFERENCE);
    let labels: Vec<&str> = conducted.trials.iter().map(|t| t.label.as_str()).collect();
    assert_eq!(labels, ["clients=4", "rate=800/s", "base again, clients=4"]);
    let row = &c.sclients[0];
    assert_eq!((row.descriptors, row.past_saturation), (1_000, true));
    assert!(near(row.row.first_syn_per_s, 800.0, 0.05), "{row:?}");
    assert!(near(row.offered_per_s, 800.0, 1e-9), "{row:?}");
    assert!(c.answer.contains("the schedule offered up to "), "{}", c.answer);
}

#[test]
fn nothing_run_concludes_nothing() {
    let concluded_of_none = Overload::new(spec()).conclude(&[]);
    let c = concluded_of_none.conclusion.clone();
    assert_eq!(c.answer, "Nothing was measured.");
    assert!(concluded_of_none.findings.is_empty());
    assert_eq!(concluded_of_none.verdict, Verdict::Valid);
}

#[test]
fn s_clients_none_of_which_counts_make_it_invalid() {
    let mut pressed = sclients(1_000, 1_300);
    pressed.verdict = Verdict::Invalid;
    let valid = sclients(100, 1_300);
    assert_eq!(overload_verdict(&[clients(8, 1_300), pressed.clone()]), Verdict::Invalid);
    assert_eq!(overload_verdict(&[clients(8, 1_300), valid, pressed]), Verdict::Valid);
    assert_eq!(overload_verdict(&[clients(8, 1_300)]), Verdict::Valid);
}

/// Two levels, and the base load again, of a server with this fault.
fn after_overload(fault: Fault) -> OverloadConclusion {
    let spec =
        OverloadSpec { simple: vec![4], descriptors: Descriptors::List(vec![256]), ..spec() };
    let (conducted, c) = conducted(spec, Server { fault, ..Server::REFERENCE });
    assert_consistent(&conducted);
    let labels: Vec<&str> = conducted.trials.iter().map(|t| t.label.as_str()).collect();
    assert_eq!(labels, ["clients=4", "descriptors=256", "base again, clients=4"]);
    assert_eq!((c.simple.len(), c.sclients.len()), (1, 1), "it is no level");
    let is_said = codes(&conducted).contains(&"service_not_back");
    let came_back = c.recovery.as_ref().expect("two levels").came_back;
    assert_eq!(is_said, came_back == CameBack::No, "{}", c.answer);
    c
}

fn came_back(fault: Fault) -> CameBack {
    after_overload(fault).recovery.expect("two levels").came_back
}

#[test]
fn a_server_that_overload_broke_for_ever_is_not_back() {
    let broken = after_overload(Fault::Hang((1, Nanos::from_secs(4)), None));
    let said = "Service did not come back: with 4 clients again 0/s are served, 130/s at first.";
    assert!(broken.answer.ends_with(said), "{}", broken.answer);
    let recovery = broken.recovery.expect("two levels");
    assert_eq!(recovery.level, Some(Level::Clients(4)));
    let again = recovery.again.expect("offered");
    assert_eq!(again.outcomes.count(knee_load::measure::Outcome::Served), 0);
    assert!(again.outcomes.errors() > 0, "{again:?}");
    assert_eq!(came_back(Fault::Wears(1, 2)), CameBack::No, "half as fast");
}

#[test]
fn a_server_that_recovers_is_back() {
    let sound = after_overload(Fault::None);
    let said = "Service came back: with 4 clients again 130/s are served, 130/s at first.";
    assert!(sound.answer.ends_with(said), "{}", sound.answer);
    let hung = Fault::Hang((1, Nanos::from_secs(4)), Some((2, Nanos::ZERO)));
    let hung = after_overload(hung);
    let stopped = "until the base load was offered again: ";
    assert!(hung.answer.contains(stopped), "{}", hung.answer);
    assert!(hung.answer.contains("Service came back: "), "{}", hung.answer);
}

#[test]
fn a_server_that_recovers_slowly_is_back_late_or_not_yet() {
    // The window of the base load offered again is from 2 s to 12 s.
    let until = |s| Fault::Hang((1, Nanos::from_secs(4)), Some((2, Nanos::from_secs(s))));
    assert_eq!(came_back(until(1)), CameBack::Yes);
    assert_eq!(came_back(until(5)), CameBack::Late);
    assert_eq!(came_back(until(10)), CameBack::No);
}

#[test]
fn the_base_load_again_enters_no_figure_of_the_levels() {
    let hung = |c: &OverloadConclusion| (c.capacity_per_s, c.max_syn_per_s, c.r_squared);
    let sound = after_overload(Fault::None);
    let broken = after_overload(Fault::Hang((2, Nanos::ZERO), None));
    assert_eq!(hung(&sound), hung(&broken));
    assert_eq!(sound.simple, broken.simple);
    assert!(broken.answer.contains("whatever is offered"), "{}", broken.answer);
}

#[test]
fn a_base_load_that_is_missing_or_served_nothing_is_not_judged() {
    let because = |spec: OverloadSpec, server: Server, trials: usize| {
        let mut overload = Overload::new(spec);
        let mut past = Vec::new();
        while let NextTrial::Run(spec) = overload.next(&past) {
            if past.len() == trials {
                break;
            }
            past.push(server.run(&spec, past.len()));
        }
        let c = overload.conclude(&past).conclusion;
        let recovery = c.recovery.expect("something was measured");
        assert_eq!(recovery.came_back, CameBack::NotJudged);
        assert!(past.len() == trials, "{trials} trials, and no more");
        recovery.because
    };
    let listed = |descriptors: &[u32]| OverloadSpec {
        simple: Vec::new(),
        descriptors: Descriptors::List(descriptors.to_vec()),
        ..spec()
    };
    let alone = because(listed(&[256]), Server::REFERENCE, 1);
    assert_eq!(alone, "no lighter level came before the heaviest");
    let falling = because(listed(&[256, 64]), Server::REFERENCE, 2);
    assert_eq!(falling, alone);
    let interrupted = because(listed(&[64, 256]), Server::REFERENCE, 2);
    assert_eq!(interrupted, "the base load was not offered again");
    let dead = Server { fault: Fault::Crash(0, Nanos::ZERO), ..Server::REFERENCE };
    let dead = because(listed(&[64, 256]), dead, 2);
    assert_eq!(dead, "nothing was served before the heaviest level");
}

#[test]
fn capacity_is_of_the_level_that_served_not_the_late_one() {
    use crate::experiment::overload::analysis::OverloadSummary;
    use crate::experiment::overload::tests::trials::{SETTING, heard};
    // 1.5 s of service, then the server hangs until the end of the next level.
    let served: Vec<u64> = (0..30).map(|tenth| if tenth < 15 { 5 } else { 0 }).collect();
    let hung = heard(clients(2, 75), &served);
    let late = TrialReport { throughput_per_s: Some(0.0), ..sclients(40, 3) };
    let summary = OverloadSummary::of(&[hung, late], &SETTING);
    assert_eq!(summary.stops.len(), 1);
    assert_eq!(summary.capacity_per_s, 25.0);
}
