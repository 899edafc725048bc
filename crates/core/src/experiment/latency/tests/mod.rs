use super::distorted::REPEATS_MAX;
use super::*;
use crate::consistency::CheckedReport;
use crate::experiment::latency::analysis::tests::path;
use crate::experiment::latency::analysis::{assess, grade};
use crate::experiment::latency::parse_classic;
use crate::experiment::{Conducted, EndReason, conduct};
use crate::finding::Finding;
use crate::report::contradictions::{assert_consistent, contradictions};
use knee_load::experiment::latency::{FlowLost, LatencyTrial, ScenarioEnded};
use knee_sim::fixture;
use knee_sim::simulate_flows;
use proptest::prelude::*;
use std::ops::ControlFlow;

fn plan(scenarios: &[(u32, u32)], congestion: &[&str]) -> LatencyPlan {
    LatencyPlan {
        base: fixture::flows(0, 0, Nanos::from_secs(4)),
        scenarios: scenarios.to_vec(),
        idle: Nanos::from_secs(1),
        congestion: congestion.iter().map(|&name| Some(name.to_owned())).collect(),
    }
}

/// The whole experiment on a path with a queue of this length in ms; `change` may spoil any trial.
fn run(
    plan: LatencyPlan,
    queue_ms: u64,
    change: impl Fn(usize, &mut LatencyTrial),
) -> Conducted<TrialReport, LatencyConclusion> {
    let mut experiment = Latency::new(plan);
    let mut count = 0;
    let conducted = conduct(&mut experiment, |spec| {
        // bbr keeps the queue short by itself.
        let bbr = spec.sockets.congestion_control.as_deref() == Some("bbr");
        let queue = Nanos::from_millis(if bbr { 15 } else { queue_ms });
        let mut trial = simulate_flows(spec, &path(queue));
        change(count, &mut trial);
        count += 1;
        Ok::<_, ()>(ControlFlow::Continue(assess(&trial)))
    });
    let conducted = conducted.expect("no error");
    assert_consistent(&conducted);
    conducted
}

fn conclusion(conducted: &Conducted<TrialReport, LatencyConclusion>) -> &LatencyConclusion {
    &conducted.conclusion
}

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|f| f.code.as_str()).collect()
}

#[test]
fn idle_path_comes_first_then_each_scenario_and_control() {
    let conducted = run(plan(&[(1, 0), (1, 1)], &["cubic", "bbr"]), 100, |_, _| {});
    let labels: Vec<&str> = conducted.trials.iter().map(|t| t.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "idle",
            "1 up, 0 down, cubic",
            "1 up, 1 down, cubic",
            "1 up, 0 down, bbr",
            "1 up, 1 down, bbr"
        ]
    );
    assert_eq!(conducted.ended, EndReason::Converged);
    let conclusion = conclusion(&conducted);
    let names = conclusion.scenarios.iter().map(|r| r.congestion_control.as_str());
    assert!(names.eq(["cubic", "cubic", "bbr", "bbr"]));
    let by: Vec<&str> = conclusion
        .by_congestion_control
        .iter()
        .map(|row| row.congestion_control.as_str())
        .collect();
    assert_eq!(by, ["cubic", "bbr"]);
    let [cubic, bbr] = &conclusion.by_congestion_control[..] else {
        panic!("two rows");
    };
    assert_eq!(conclusion.path.grade, cubic.path.grade, "that of the first");
    assert!(cubic.path.added_latency_ns > bbr.path.added_latency_ns);
    assert!(codes(&conducted.findings).contains(&"congestion_control_hides_bloat"));
    assert!(conclusion.answer.contains("By congestion control"), "{}", conclusion.answer);
}

#[test]
fn without_an_idle_time_only_the_scenarios_are_run() {
    let mut plan = plan(&[(0, 1)], &[]);
    plan.idle = Nanos::ZERO;
    let mut experiment = Latency::new(plan.clone());
    assert_eq!(experiment.steps(), 1);
    let NextTrial::Run(spec) = experiment.next(&[]) else {
        panic!("a trial");
    };
    assert_eq!((spec.up, spec.down), (0, 1));
    assert_eq!(spec.sockets.congestion_control, None);
    assert_eq!(spec.end, plan.base.end);
    let conducted = run(plan, 100, |_, _| {});
    let conclusion = conclusion(&conducted);
    assert_eq!((conclusion.min_rtt_ns, conclusion.path.added_latency_ns), (None, None));
    assert_eq!(conclusion.path.grade, "");
    assert_eq!(conclusion.path.upload_capacity_kib_per_s, None, "no scenario uploads");
    assert!(conclusion.path.download_capacity_kib_per_s > Some(0));
}

#[test]
fn a_long_queue_is_found_and_a_short_one_is_not() {
    let long = run(plan(&[(1, 0), (0, 1), (1, 1)], &[]), 1_000, |_, _| {});
    let of_long = conclusion(&long);
    assert!(of_long.path.responsiveness_hz <= Some(2), "{of_long:?}");
    let min_ms = of_long.min_rtt_ns.expect("measured") as f64 / 1e6;
    assert!((min_ms - 10.0).abs() < 0.01, "{min_ms}");
    assert!(codes(&long.findings).contains(&"bloated"), "{:?}", long.findings);
    assert_eq!(of_long.path.grade, "F");
    assert!(
        of_long.answer.contains("Bufferbloat F") && of_long.answer.contains("bends with 1 "),
        "{}",
        of_long.answer
    );
    let short = run(plan(&[(1, 0), (0, 1), (1, 1)], &[]), 20, |_, _| {});
    let of_short = conclusion(&short);
    assert!(of_short.path.responsiveness_hz >= Some(15), "{of_short:?}");
    assert!(!codes(&short.findings).contains(&"bloated"), "{:?}", short.findings);
    assert!(["A", "B"].contains(&of_short.path.grade.as_str()), "{}", of_short.path.grade);
    assert_eq!(short.verdict, Verdict::Valid);
}

#[test]
fn killed_flow_makes_figures_zero_and_the_run_goes_on() {
    let conducted = run(plan(&[(2, 2), (1, 1)], &[]), 50, |trial, measured| {
        if trial == 1 {
            measured.flows[1].ended = Nanos::from_secs(2);
            measured.flows[1].lost = Some(FlowLost {
                at: Nanos::from_secs(2),
                why: "connection reset by peer".to_owned(),
            });
        }
    });
    assert_eq!(conducted.trials.len(), 3);
    assert_eq!(conducted.ended, EndReason::Converged);
    let conclusion = conclusion(&conducted);
    assert_eq!(conclusion.path.upload_capacity_kib_per_s, Some(0));
    assert_eq!(conclusion.path.smoothness_hz, Some(0));
    assert!(conclusion.path.download_capacity_kib_per_s > Some(0));
    assert!(conclusion.path.responsiveness_hz > Some(0));
    let killed = conducted.findings.iter().find(|f| f.code == "flow_killed");
    let text = &killed.expect("a finding").text;
    assert!(text.starts_with("upload 1 of 2 uploads and 2 downloads was lost after 2 s"), "{text}");
}

#[test]
fn a_service_that_dies_ends_it_with_what_there_is() {
    let dies = |trial: usize, measured: &mut LatencyTrial| {
        if trial == 2 {
            measured.ended = ScenarioEnded::Aborted("the service closed the control".to_owned());
            lose_half(measured);
        }
    };
    let conducted = run(plan(&[(1, 0), (0, 1), (1, 1)], &[]), 50, dies);
    let outcomes = &conducted.trials[2].outcomes;
    assert!(3 * outcomes.errors() > outcomes.total(), "{outcomes:?}");
    assert_eq!(conducted.trials.len(), 3, "the third scenario is not run");
    let EndReason::Doomed(reason) = &conducted.ended else {
        panic!("{:?}", conducted.ended);
    };
    assert_eq!(reason, "0 up, 1 down was aborted: the service closed the control");
    assert_eq!(conclusion(&conducted).scenarios.len(), 2);
    let stopped = &conducted.findings[0];
    assert_eq!(stopped.code, "stopped_early");
    assert!(stopped.next_step.contains("knee latency 127.0.0.1:7008 --scenarios 1/0"));
}

/// The pings of the second half do not come back.
fn lose_half(measured: &mut LatencyTrial) {
    let probes = &mut measured.tcp.probes;
    let half = probes.len() / 2;
    probes[half..].iter_mut().for_each(|ping| ping.back = None);
}

/// Pings may be lost without a finding only where their scenario was aborted.
#[test]
fn pings_lost_in_a_whole_scenario_need_a_finding() {
    let mut measured =
        simulate_flows(&fixture::flows(1, 0, Nanos::from_secs(4)), &path(Nanos::from_millis(50)));
    lose_half(&mut measured);
    let lines = |measured: &LatencyTrial| {
        let trials = [assess(measured)];
        let report = CheckedReport { verdict: Verdict::Valid, trials: &trials, findings: &[] };
        contradictions(report, &LatencyConclusion::default())
    };
    let unnamed = |lines: &[String]| lines.iter().any(|line| line.contains("no finding says how"));
    assert!(unnamed(&lines(&measured)));
    measured.ended = ScenarioEnded::Aborted("the service is gone".to_owned());
    assert!(!unnamed(&lines(&measured)));
}

#[test]
fn a_cap_on_bytes_ends_only_its_scenario() {
    let ends = |trial: usize, measured: &mut LatencyTrial| {
        if trial > 0 {
            measured.ended = ScenarioEnded::Aborted("the cap of 1 MB was reached".to_owned());
            measured.service_cpu = Some(Nanos::from_secs(1));
        }
    };
    let conducted = run(plan(&[(1, 0), (0, 1)], &[]), 50, ends);
    assert_eq!(conducted.ended, EndReason::Converged);
    let states = conclusion(&conducted).scenarios.iter().map(|r| r.state.as_str());
    assert!(states.eq(["aborted", "aborted"]));
}

/// A pinger that is late in the trials of these numbers.
fn late(which: &'static [usize]) -> impl Fn(usize, &mut LatencyTrial) {
    move |trial, measured| {
        if which.contains(&trial) {
            measured.tcp.pacing_error.record(Nanos::from_millis(150));
        }
    }
}

#[test]
fn what_rests_on_distorted_trials_is_told_and_what_stands() {
    let scenarios = || plan(&[(1, 0), (0, 1)], &[]);
    let sound = run(scenarios(), 100, late(&[]));
    assert_eq!((sound.verdict, sound.trials.len()), (Verdict::Valid, 3));
    assert!(conclusion(&sound).distorted.is_empty());
    // Both runs of the second scenario: what has no part in it stands.
    let down = run(scenarios(), 100, late(&[2, 3]));
    assert_eq!((down.verdict, down.trials.len()), (Verdict::Invalid, 4));
    let distorted = &conclusion(&down).distorted;
    assert!(distorted.contains(&"download_capacity_kib_per_s".to_owned()));
    assert!(!distorted.contains(&"upload_capacity_kib_per_s".to_owned()));
    let answer = &conclusion(&down).answer;
    assert!(answer.contains("what stands is the minimum round trip, upload capacity"), "{answer}");
    let found = codes(&down.findings);
    for code in ["generator_distorted", "rests_on_distorted", "run_again"] {
        assert!(found.contains(&code), "{found:?}");
    }
    let rests = down.findings.iter().find(|f| f.code == "rests_on_distorted");
    let text = &rests.expect("a finding").text;
    assert!(text.starts_with("1 of 3 trials are INVALID: download capacity"), "{text}");
    // Where no figure is known, none rests on them.
    let all: Vec<&TrialReport> = down.trials.iter().collect();
    let of_none = super::distorted::rests_on_distorted(&LatencyConclusion::default(), &all)
        .expect("a finding");
    assert_eq!(of_none.text, "2 of 4 trials are INVALID: no overall figure rests on them");
    // The idle path is what the grade compares with.
    let idle = run(scenarios(), 100, late(&[0, 1]));
    assert_eq!(idle.verdict, Verdict::Invalid);
    assert_eq!(conclusion(&idle).distorted, ["min_rtt_ns", "grade"]);
}

#[test]
fn a_distorted_trial_is_run_again_and_its_second_run_counts() {
    let again = run(plan(&[(1, 0), (0, 1)], &[]), 100, late(&[0, 3]));
    let labels: Vec<&str> = again.trials.iter().map(|t| t.label.as_str()).collect();
    let expected = ["idle", "idle", "1 up, 0 down", "0 up, 1 down", "0 up, 1 down"];
    assert_eq!(labels, expected);
    assert_eq!(again.verdict, Verdict::Valid);
    let rows = &conclusion(&again).scenarios;
    let trials: Vec<Option<usize>> = rows.iter().map(|row| row.trial).collect();
    assert_eq!(trials, [Some(2), Some(4)]);
    let found = codes(&again.findings);
    assert!(found.contains(&"run_again") && !found.contains(&"generator_distorted"), "{found:?}");
    // Where everything is distorted, only the first few are tried twice.
    let always = run(plan(&[(1, 0); 6], &[]), 100, |_, measured| {
        measured.tcp.pacing_error.record(Nanos::from_millis(150));
    });
    assert_eq!(always.trials.len(), 7 + REPEATS_MAX);
    assert_eq!(always.verdict, Verdict::Invalid);
    let answer = &conclusion(&always).answer;
    assert!(answer.ends_with("The generator distorted scenarios that all of this rests on."));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Headline, grade, verdict and findings say what the numbers say, whatever was measured.
    #[test]
    fn no_statement_contradicts_a_number(
        scenarios in prop::collection::vec((0_u32..3, 0_u32..3), 1..4),
        queue_ms in 1_u64..600,
        udp_percent in 40_u64..160,
        late in prop::collection::vec(any::<bool>(), 10),
        killed in prop::option::of(0_usize..4),
    ) {
        let scenarios: Vec<(u32, u32)> =
            scenarios.iter().map(|&(up, down)| (up.max(u32::from(down == 0)), down)).collect();
        let mut plan = plan(&scenarios, &[]);
        plan.base.end = ScenarioEnd::After(Nanos::from_secs(1));
        let report = run(plan, queue_ms, |trial, measured| {
            if late[trial % late.len()] {
                measured.tcp.pacing_error.record(Nanos::from_millis(150));
            }
            if let (true, Some(flow)) = (killed == Some(trial), measured.flows.first_mut()) {
                let why = "reset".to_owned();
                flow.lost = Some(FlowLost { at: Nanos::from_millis(500), why });
            }
            for probe in measured.udp.iter_mut().flat_map(|udp| &mut udp.probes) {
                if let (true, Some(back)) = (trial > 0, &mut probe.back) {
                    back.round_trip = Nanos(back.round_trip.0 * udp_percent / 100);
                }
            }
        });
        consistent(&report);
    }
}

/// Panics where a statement contradicts a number.
fn consistent(report: &Conducted<TrialReport, LatencyConclusion>) {
    let conclusion = conclusion(report);
    let answer = &conclusion.answer;
    let codes = codes(&report.findings);
    let has = |code: &str| codes.contains(&code);
    let is_valid = report.verdict == Verdict::Valid;
    assert_eq!(is_valid, !has("generator_distorted"), "{codes:?}");
    assert_eq!(is_valid, !has("rests_on_distorted"), "{codes:?}");
    assert_eq!(is_valid, conclusion.distorted.is_empty(), "{:?}", conclusion.distorted);
    assert_eq!(is_valid, !answer.contains("The generator distorted"), "{answer}");
    let rows = &conclusion.scenarios;
    for row in rows {
        let trial = &report.trials[row.trial.expect("a trial")];
        assert_eq!(trial.level, Level::Flows { up: row.up, down: row.down });
        assert_eq!(row.distorted, trial.verdict == Verdict::Invalid);
    }
    // What is the worst is at least as bad as every scenario; a zero carries.
    for row in rows {
        for (all, own) in [
            (conclusion.path.responsiveness_hz, row.responsiveness_hz),
            (conclusion.path.smoothness_hz, row.smoothness_hz),
        ] {
            if let Some(own) = own {
                assert!(all.expect("it is known") as f64 <= own + 1e-6);
            }
        }
        let lost = row.flows.iter().any(|f| !f.lost.is_empty());
        assert!(!lost || conclusion.path.smoothness_hz == Some(0) && has("flow_killed"));
    }
    let worst = rows.iter().filter_map(|r| r.added_latency_ns).max();
    assert_eq!(conclusion.path.added_latency_ns, worst.map(|ns| ns.max(0) as u64));
    if let Some(added) = conclusion.path.added_latency_ns {
        let grade = grade(Nanos(added));
        assert_eq!(conclusion.path.grade, grade);
        assert!(answer.contains(&format!("Bufferbloat {grade}:")), "{answer}");
        assert_eq!(answer.contains("no scenario bends it"), added < 30_000_000, "{answer}");
        assert_eq!(has("bloated"), added >= 60_000_000, "{codes:?}");
    }
    let other_grade =
        conclusion.udp_grade != conclusion.path.grade && !conclusion.udp_grade.is_empty();
    assert_eq!(other_grade, answer.contains("by probes over UDP"), "{answer}");
    for finding in &report.findings {
        assert!(finding.evidence.values().all(|v| v.is_finite()), "{finding:?}");
        if finding.code == "bloated" {
            let added_ns = finding.evidence["added_latency_ns"];
            assert_eq!(Some(added_ns as u64), conclusion.path.added_latency_ns);
        }
        if finding.code == "probes_disagree" {
            let (tcp, udp) = (finding.evidence["tcp_ns"], finding.evidence["udp_ns"]);
            assert!((tcp / udp).max(udp / tcp) >= 1.25, "{}", finding.text);
            assert_eq!(tcp > udp, finding.text.contains("TCP adds waits"), "{}", finding.text);
        }
    }
}

const PUBLISHED: [(u32, u32, f64); 14] = [
    (1, 0, 105_388.0),
    (1, 1, 50_998.0),
    (2, 0, 108_230.0),
    (1, 2, 33_296.0),
    (2, 1, 69_995.0),
    (3, 0, 102_502.0),
    (1, 3, 21_816.0),
    (2, 2, 52_828.0),
    (3, 1, 82_564.0),
    (4, 0, 110_715.0),
    (1, 31, 14_712.0),
    (16, 16, 76_252.0),
    (31, 1, 113_567.0),
    (32, 0, 107_671.0),
];

fn published() -> String {
    let mut text = "MinRTT: 0.0ms\n".to_owned();
    for (up, down) in SCENARIOS {
        let index = SCENARIOS.iter().position(|s| *s == (up, down)).expect("it is") + 1;
        text += &format!("Scenario {index}: {up} uploads, {down} downloads...");
        if let Some((_, _, kib)) = PUBLISHED.iter().find(|p| (p.0, p.1) == (up, down)) {
            text += &format!(" {kib} KiB/s up,");
        }
        text += match down {
            0 => " 2.90 Hz smoothness\n",
            _ => " 0 KiB/s down, 0.00 Hz smoothness\n",
        };
    }
    text + "OVERALL:\n    Upload Capacity: 50450 KiB/s\n  Download Capacity: 0 KiB/s\n\
            Link Responsiveness: 0 Hz\n    Flow Smoothness: 0 Hz\n"
}

#[test]
fn the_published_run_gives_its_overall_figures_again() {
    let uploads = PUBLISHED.map(|(_, _, kib)| kib);
    let mean = crate::experiment::latency::analysis::harmonic_mean(&uploads).expect("some");
    assert!((mean - 50_449.8).abs() < 0.05, "{mean}");
    let classic = parse_classic(&published()).expect("reads");
    let (findings, conclusion) = conclude_classic(&classic);
    assert_eq!(conclusion.scenarios.len(), 19);
    assert_eq!(conclusion.path.upload_capacity_kib_per_s, Some(50_449));
    assert_eq!(conclusion.path.download_capacity_kib_per_s, Some(0));
    assert_eq!(conclusion.path.responsiveness_hz, Some(0), "as printed");
    assert_eq!(conclusion.path.smoothness_hz, Some(0));
    assert_eq!(conclusion.min_rtt_ns, Some(0));
    assert_eq!(codes(&findings), ["recomputed_differs"]);
    assert_eq!(
        findings[0].text,
        "the text prints 50,450 KiB/s as upload capacity, its scenarios give 50,449.8 KiB/s: it \
         was computed before rounding"
    );
    assert_eq!(findings[0].severity, crate::finding::Severity::Info);
    assert!(conclusion.answer.contains("upload capacity is 50,449 KiB/s"), "{}", conclusion.answer);
}

#[test]
fn overall_figure_unlike_its_scenarios_is_a_warning() {
    let mut classic = parse_classic(&published()).expect("reads");
    classic.overall[0] = Some(60_000.0);
    let (findings, _) = conclude_classic(&classic);
    assert_eq!(findings[0].severity, crate::finding::Severity::Warning);
    classic.overall = [Some(50_449.0), None, None, None];
    assert_eq!(conclude_classic(&classic).0, []);
}
