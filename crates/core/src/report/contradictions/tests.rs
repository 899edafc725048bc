//! Each check finds what it is there for, and nothing in what agrees.

use super::*;
use crate::experiment::latency::report::{LatencyConclusion, PathFigures, ScenarioRow};
use crate::experiment::overload::report::{
    CameBack, LevelRow, OverloadConclusion, Recovery, SClientRow, SimpleRow,
};
use crate::experiment::run::RunConclusion;
use crate::experiment::sweep::report::{SweepConclusion, SweepLevel};
use crate::experiment::throttle::report::{RateRow, ThrottleConclusion};
use crate::experiment::udp::report::{LawRow, UdpConclusion};
use crate::experiment::{SingleRun, conduct};
use crate::finding::{Finding, Severity};
use crate::report::Conclusion;
use crate::trial::assess::assess;
use crate::trial::detail::{LedgerReport, UdpDetail};
use crate::trial::findings::trial_findings;
use crate::trial::report::{TrialReport, Verdict};
use knee_load::law::Law;
use knee_load::measure::Outcome;
use knee_load::rng;
use knee_load::spec::{ArrivalLaw, Level, Load, OpenLoad, Pause, PauseKind, Rate};
use knee_load::time::Nanos;
use knee_sim::fixture::trial as spec_of;
use knee_sim::{Faults, RejectAbove, Stall, World, simulate};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::ops::ControlFlow;

fn measured(faults: Faults) -> TrialReport {
    let users = Load::Closed {
        vusers: 4,
        pause: Pause { kind: PauseKind::Think, law: Law::ZERO },
        stages: Vec::new(),
    };
    let world = World { faults, ..World::station(2, Law::Exp(Nanos::from_millis(1))) };
    assess(&simulate(&spec_of(users, Nanos::from_secs(4)), &world).trial)
}

fn run_contradictions(trial: &TrialReport, findings: &[Finding]) -> Vec<String> {
    let report =
        CheckedReport { verdict: trial.verdict, trials: std::slice::from_ref(trial), findings };
    contradictions(report, &RunConclusion::default())
}

fn conclusion_contradictions(conclusion: Conclusion) -> Vec<String> {
    contradictions(with(&[]), conclusion.answer())
}

/// Valid, and these findings.
fn with(findings: &[Finding]) -> CheckedReport<'_> {
    CheckedReport { verdict: Verdict::Valid, trials: &[], findings }
}

#[track_caller]
fn assert_says(lines: &[String], part: &str) {
    assert!(lines.iter().any(|line| line.contains(part)), "`{part}` is not in {lines:?}");
}

#[test]
fn a_trial_that_was_measured_agrees_with_itself() {
    let trial = measured(Faults::default());
    assert_eq!(run_contradictions(&trial, &trial_findings(&trial)), [""; 0]);
}

#[test]
fn numbers_of_a_trial_that_disagree_are_found() {
    type Change = fn(&mut TrialReport);
    let cases: [(Change, &str); 7] = [
        (|t| t.attempted += 1, "outcomes"),
        (|t| t.completed -= 1, "responses"),
        (|t| t.response_time_ns.p50 = Some(u64::MAX), "p50"),
        (|t| t.response_time_ns.count = 0, "without one observation"),
        (|t| t.goodput_per_s = Some(1e9), "goodput"),
        (|t| t.verdict = Verdict::Invalid, "Invalid"),
        (|t| t.intervals.reverse(), "follows"),
    ];
    for (change, part) in cases {
        let mut trial = measured(Faults::default());
        change(&mut trial);
        assert_says(&run_contradictions(&trial, &[]), part);
    }
}

fn finding(code: &str, severity: Severity) -> Finding {
    Finding {
        code: code.into(),
        severity,
        text: "It is so.".into(),
        evidence: BTreeMap::new(),
        next_step: String::new(),
    }
}

#[test]
fn a_valid_report_does_not_blame_the_generator() {
    let trial = measured(Faults::default());
    let blames = [finding("generator_distorted", Severity::Error)];
    assert_says(&run_contradictions(&trial, &blames), "VALID");
    let remarks = [finding("generator_distorted", Severity::Info)];
    assert_eq!(run_contradictions(&trial, &remarks), [""; 0]);
}

#[test]
fn failures_need_a_finding_that_says_how() {
    let trial = measured(Faults { errors: 0.2, ..Faults::default() });
    assert!(trial.outcomes.count(Outcome::HTTP_5XX) > 5);
    let beside = [finding("non_stationary", Severity::Warning)];
    assert_says(&run_contradictions(&trial, &beside), "no finding says how");
    let named = [finding("errors", Severity::Warning)];
    assert_eq!(run_contradictions(&trial, &named), [""; 0]);
    let few = measured(Faults { errors: 0.000_1, ..Faults::default() });
    assert_eq!(run_contradictions(&few, &[]), [""; 0]);
}

#[test]
fn findings_that_say_nothing_are_found() {
    let trial = measured(Faults::default());
    let mut silent = finding("errors", Severity::Info);
    silent.text.clear();
    assert_says(&run_contradictions(&trial, &[silent]), "says nothing");
    let mut odd = finding("errors", Severity::Info);
    for (text, is_odd) in [
        ("NaN % of all failed", true),
        ("serves NaN/s", true),
        ("a share of inf%.", true),
        ("the first: GET /?a=NaN was to give '{\"a\":NaN}'", false),
        ("info of 3 infinite loops", false),
    ] {
        odd.text = text.into();
        let lines = run_contradictions(&trial, std::slice::from_ref(&odd));
        assert_eq!(lines.iter().any(|line| line.contains("no number")), is_odd, "{text}");
    }
}

fn level(users: u32, throughput_per_s: f64) -> SweepLevel {
    let known = serde_json::json!({
        "level": Level::Vusers(users),
        "trials": 1,
        "throughput_per_s": throughput_per_s,
        "is_knee": false,
        "is_best_within_bound": false,
    });
    serde_json::from_value(known).expect("what is left out is not known")
}

fn sweep() -> SweepConclusion {
    SweepConclusion {
        max_throughput_per_s: 60_000.0,
        knee_vusers: Some(16.0),
        knee_ci95: Some([14.0, 18.0]),
        throughput_at_knee_per_s: Some(50_000.0),
        recommended_vusers: Some(16),
        levels: vec![level(1, 5_000.0), level(16, 50_000.0), level(32, 60_000.0)],
        ..SweepConclusion::default()
    }
}

#[test]
fn the_answer_of_a_sweep_is_held_against_its_levels() {
    assert_eq!(conclusion_contradictions(Conclusion::Sweep(sweep())), [""; 0]);
    type Change = fn(&mut SweepConclusion);
    let cases: [(Change, &str); 8] = [
        (|s| s.max_throughput_per_s = 50_000.0, "a level has 60000/s"),
        (|s| s.knee_range = Some([10.0, 20.0]), "beside a range"),
        (|s| s.answer = "At most 7/s.".into(), "and the answer"),
        (|s| s.max_throughput_per_s = 70_000.0, "no level has more"),
        (|s| s.knee_vusers = Some(4.56), "outside of its interval"),
        (|s| s.throughput_at_knee_per_s = Some(70_000.0), "at the knee"),
        (|s| s.recommended_vusers = Some(64), "recommended"),
        (|s| s.levels.reverse(), "before"),
    ];
    for (change, part) in cases {
        let mut changed = sweep();
        change(&mut changed);
        assert_says(&conclusion_contradictions(Conclusion::Sweep(changed)), part);
    }
}

#[test]
fn a_level_past_the_knee_cannot_gain_nearly_as_much_again() {
    let mut past = finding("past_knee", Severity::Info);
    past.evidence.insert("gain_percent".into(), 89.0);
    let lines = contradictions(with(&[past]), &sweep());
    assert_says(&lines, "past_knee: ");
}

#[test]
fn an_overload_that_served_has_a_capacity() {
    let overload = |capacity_per_s| {
        Conclusion::Overload(OverloadConclusion {
            capacity_per_s,
            sclients: vec![SClientRow {
                row: LevelRow { served_per_s: 130.0, ..LevelRow::default() },
                ..SClientRow::default()
            }],
            ..OverloadConclusion::default()
        })
    };
    assert_eq!(conclusion_contradictions(overload(130.0)), [""; 0]);
    assert_says(&conclusion_contradictions(overload(0.0)), "and 130/s served");
    assert_says(&conclusion_contradictions(overload(150.0)), "at most 130/s");
}

fn overload() -> OverloadConclusion {
    let row = LevelRow {
        syn_per_s: 130.0,
        first_syn_per_s: 130.0,
        served_per_s: 130.0,
        served_ci95_per_s: Some([128.0, 132.0]),
        ..LevelRow::default()
    };
    OverloadConclusion {
        capacity_per_s: 130.0,
        max_syn_per_s: 130.0,
        simple: vec![SimpleRow { clients: 4, row: row.clone() }],
        recovery: Some(Box::new(Recovery {
            came_back: CameBack::Yes,
            level: Some(Level::Clients(4)),
            before: Some(row.clone()),
            again: Some(row),
            ..Recovery::default()
        })),
        answer: "Service came back: as at first.".into(),
        ..OverloadConclusion::default()
    }
}

fn recovery(of: &mut OverloadConclusion) -> &mut Recovery {
    of.recovery.as_mut().expect("there is one")
}

#[test]
fn the_answer_of_an_overload_is_held_against_its_rows() {
    assert_eq!(conclusion_contradictions(Conclusion::Overload(overload())), [""; 0]);
    type Change = fn(&mut OverloadConclusion);
    let cases: [(Change, &str); 8] = [
        (|o| o.max_syn_per_s = 100.0, "at most 100"),
        (|o| o.simple[0].row.syn_per_s = 100.0, "first SYNs per second of 100"),
        (|o| o.simple[0].row.served_ci95_per_s = Some([140.0, 150.0]), "outside"),
        (
            |o| {
                o.simple[0].row.served_range_per_s = Some(Default::default());
            },
            "and the range",
        ),
        (|o| recovery(o).came_back = CameBack::No, "and the answer"),
        (|o| recovery(o).because = "it ended".into(), "because"),
        (|o| recovery(o).again = None, "nothing was measured"),
        (|o| o.simple[0].row.outcomes.add(Outcome::Served), "in no row"),
    ];
    for (change, part) in cases {
        let mut changed = overload();
        change(&mut changed);
        assert_says(&conclusion_contradictions(Conclusion::Overload(changed)), part);
    }
    let mut unserved = overload();
    unserved.recovery = None;
    let row = &mut unserved.simple[0].row;
    (row.served_per_s, row.served_ci95_per_s) = (0.0, None);
    row.outcomes.add_many(Outcome::Served, 473);
    let lines = conclusion_contradictions(Conclusion::Overload(unserved));
    assert_says(&lines, "473 attempts served at 0/s, and no reason");
}

#[test]
fn figures_of_findings_on_overload_are_in_a_row() {
    let mut stopped = finding("service_not_back", Severity::Warning);
    for (name, value, is_there) in [
        ("served_per_s", 130.0, true),
        ("served_before_per_s", 131.0, false),
        ("served_low_per_s", 128.0, true),
        ("accept_queue_max", 17.0, false),
        ("capacity_per_s", 120.0, false),
    ] {
        stopped.evidence = [(name.to_owned(), value)].into();
        let lines = contradictions(with(std::slice::from_ref(&stopped)), &overload());
        assert_eq!(lines.is_empty(), is_there, "{name}: {lines:?}");
    }
}

#[test]
fn the_percentiles_of_a_way_to_hold_a_rate_ascend() {
    let throttle = |error_p99_ns| {
        Conclusion::Throttle(ThrottleConclusion {
            rates: vec![RateRow {
                method: "throttle".into(),
                error_p50_ns: 10,
                error_p99_ns,
                error_max_ns: 20,
                ..RateRow::default()
            }],
            ..ThrottleConclusion::default()
        })
    };
    assert_eq!(conclusion_contradictions(throttle(15)), [""; 0]);
    assert_says(&conclusion_contradictions(throttle(25)), "throttle: p99 25 is above max 20");
}

#[test]
fn unbalanced_ledgers_and_repeated_causes_are_found() {
    let mut trial = measured(Faults::default());
    let ledger = LedgerReport { intended: 10, received: 9, ..LedgerReport::default() };
    let detail = UdpDetail { ledger, ..UdpDetail::default() };
    trial.detail = detail.into();
    assert_says(&run_contradictions(&trial, &[]), "the ledger of 10 datagrams sums to 9");
    let udp = UdpConclusion {
        supported: vec!["receive_buffer: it is full".into()],
        ruled_out: vec!["receive_buffer: it is not".into()],
        ..UdpConclusion::default()
    };
    assert_says(&conclusion_contradictions(Conclusion::Udp(udp)), "`receive_buffer` ended");
}

#[test]
fn the_figures_of_a_path_are_those_of_its_worst_scenario() {
    let latency = |responsiveness_hz| {
        Conclusion::Latency(LatencyConclusion {
            path: PathFigures {
                responsiveness_hz: Some(responsiveness_hz),
                ..PathFigures::default()
            },
            answer: format!("Under load link responsiveness is {responsiveness_hz} Hz."),
            scenarios: vec![
                ScenarioRow { responsiveness_hz: Some(2.9), ..ScenarioRow::default() },
                ScenarioRow { responsiveness_hz: Some(30.0), ..ScenarioRow::default() },
            ],
            ..LatencyConclusion::default()
        })
    };
    assert_eq!(conclusion_contradictions(latency(2)), [""; 0]);
    assert_says(&conclusion_contradictions(latency(30)), "30 Hz of scenarios with 2.9 to 2.9");
}

#[test]
fn a_path_whose_answer_or_findings_differ_is_found() {
    let path = LatencyConclusion {
        path: PathFigures { responsiveness_hz: Some(2), ..PathFigures::default() },
        answer: "Under load link responsiveness is 3 Hz.".into(),
        scenarios: vec![ScenarioRow {
            responsiveness_hz: Some(2.9),
            state: "forced".into(),
            ..ScenarioRow::default()
        }],
        ..LatencyConclusion::default()
    };
    let mut settled = finding("not_settled", Severity::Warning);
    settled.evidence.insert("not_settled".into(), 2.0);
    let lines = contradictions(with(&[settled]), &path);
    assert_says(&lines, "responsiveness is 2 Hz, and the answer is");
    assert_says(&lines, "`not_settled` states Some(2.0), the table Some(1.0)");
}

#[test]
fn datagrams_whose_answer_or_findings_differ_are_found() {
    let law = LawRow {
        label: "yield*4".into(),
        trials: 1,
        sent_per_s: 10.0,
        received_per_s: 9.0,
        dropped_per_s: 1.0,
        loss_percent: 10.0,
        ledger: LedgerReport {
            intended: 10,
            received: 9,
            lost: [("qdisc".to_owned(), 1)].into(),
            ..LedgerReport::default()
        },
        ..LawRow::default()
    };
    let conclusion = |law: LawRow| UdpConclusion {
        answer: "yield*4 sent 10/s and lost 10 % of it.".into(),
        laws: vec![law],
        ..UdpConclusion::default()
    };
    let says = |law: LawRow| contradictions(with(&[]), &conclusion(law));
    assert_says(&says(law.clone()), "1 lost at qdisc, and the evidence is of 0");
    assert_says(&says(law.clone()), "`lost_in_qdisc` states 0");
    let fewer = LawRow { dropped_per_s: 0.5, loss_percent: 5.0, ..law };
    assert_says(&says(fewer.clone()), "5 % lost, and 9 of 10 were received");
    assert_says(&says(fewer.clone()), "9 received, 0.5 dropped");
    assert_says(&says(fewer), "lost 5 % of it. The answer is");
}

/// A server that serves well, or fails in one of seven ways.
fn any_server(number: u64) -> World {
    let mut rng = rng::stream(number, 5);
    let mut any = |lo: f64, hi: f64| lo + (hi - lo) * rng::unit(&mut rng);
    let ms = Nanos::from_millis(1);
    let service = [Law::Fixed(ms), Law::Exp(ms), Law::LogNormal(ms, any(0.2, 1.0))];
    let workers = any(1.0, 9.0) as u32;
    let mut world = World::station(workers, service[number as usize % 3]);
    world.transport = Nanos::from_micros(any(10.0, 200.0) as u64);
    match number % 8 {
        0 => world.faults.hangs_every = any(2.0, 9.0) as u64,
        1 => {
            world.faults.rejects = Some(RejectAbove {
                per_s: any(200.0, 900.0),
                burst: 3.0,
                takes: Nanos::from_micros(100),
            });
        }
        2 => world.faults.errors = any(0.0, 0.5),
        3 => world.faults.crash_at = Some(Nanos::from_millis(any(0.0, 4_500.0) as u64)),
        4 => {
            let length = Nanos::from_millis(any(20.0, 200.0) as u64);
            world.server_stalls =
                Stall::every(Nanos::from_millis(700), length, Nanos(5 * ms.0 * 1_000));
        }
        5 => world.capacity = Some(workers + any(0.0, 4.0) as u32),
        6 => world.drift_per_s = any(0.0, 0.3),
        _ => {}
    }
    world
}

#[test]
fn runs_against_any_server_agree_with_themselves() {
    for number in 0..240 {
        let load = match number % 2 {
            0 => Load::Closed {
                stages: Vec::new(),
                vusers: 1 + (number % 23) as u32,
                pause: Pause { kind: PauseKind::Think, law: Law::ZERO },
            },
            _ => Load::Open(OpenLoad {
                rate: Rate::per_second(200 + 5 * number).expect("a rate"),
                arrival: ArrivalLaw::Poisson,
                connections_max: 64,
                in_flight_max: None,
            }),
        };
        let mut spec = spec_of(load, Nanos::from_secs(3));
        spec.warmup = Nanos::from_millis(500);
        spec.timeout = Nanos::from_millis([400, 10_000][(number / 2 % 2) as usize]);
        spec.seed = number;
        let world = any_server(number);
        let Ok(conducted) = conduct(&mut SingleRun::new(spec), |spec| {
            let trial = assess(&simulate(spec, &world).trial);
            Ok::<_, Infallible>(ControlFlow::Continue(trial))
        });
        assert_consistent(&conducted);
    }
}
