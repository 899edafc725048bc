use super::*;
use crate::analysis::flows::assess;
use crate::analysis::flows::tests::path;
use crate::analysis::flows::{ClassicOverall, parse_classic};
use crate::experiment::{Conducted, Ended, conduct};
use crate::measure::{FlowLost, FlowTrial, FlowsEnded};
use crate::report::Finding;
use crate::sim::simulate_flows;
use crate::spec::fixture;
use std::ops::ControlFlow;

fn plan(scenarios: &[(u32, u32)], congestion: &[&str]) -> LatencyPlan {
    LatencyPlan {
        base: fixture::flows(0, 0, Nanos::from_secs(4)),
        scenarios: scenarios.to_vec(),
        idle: Nanos::from_secs(1),
        congestion: congestion
            .iter()
            .map(|&name| Some(name.to_owned()))
            .collect(),
    }
}

/// The whole experiment on a path with a queue of so many ms; `change` may spoil any trial.
fn run(
    plan: LatencyPlan,
    queue_ms: u64,
    change: impl Fn(usize, &mut FlowTrial),
) -> Conducted<TrialReport> {
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
    conducted.expect("no error")
}

fn conclusion(conducted: &Conducted<TrialReport>) -> &LatencyConclusion {
    match &conducted.conclusion {
        Conclusion::Latency(conclusion) => conclusion,
        other => panic!("{other:?}"),
    }
}

fn codes(findings: &[Finding]) -> Vec<&str> {
    findings.iter().map(|f| f.code.as_str()).collect()
}

#[test]
fn the_idle_path_comes_first_and_then_each_scenario_with_each_congestion_control() {
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
    assert_eq!(conducted.ended, Ended::Converged);
    let conclusion = conclusion(&conducted);
    let names = conclusion
        .scenarios
        .iter()
        .map(|r| r.congestion_control.as_str());
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
    assert_eq!(conclusion.grade, cubic.grade, "that of the first");
    assert!(cubic.added_latency_ns > bbr.added_latency_ns);
    assert!(codes(&conducted.findings).contains(&"congestion_control_hides_bloat"));
    assert!(
        conclusion.answer.contains("By congestion control"),
        "{}",
        conclusion.answer
    );
}

#[test]
fn without_an_idle_time_only_the_scenarios_are_run() {
    let mut plan = plan(&[(0, 1)], &[]);
    plan.idle = Nanos::ZERO;
    let mut experiment = Latency::new(plan.clone());
    assert_eq!(experiment.trials(), 1);
    let Next::Run(spec) = experiment.next(&[]) else {
        panic!("a trial");
    };
    assert_eq!((spec.up, spec.down), (0, 1));
    assert_eq!(spec.sockets.congestion_control, None);
    assert_eq!(spec.end, plan.base.end);
    let conducted = run(plan, 100, |_, _| {});
    let conclusion = conclusion(&conducted);
    assert_eq!(
        (conclusion.min_rtt_ns, conclusion.added_latency_ns),
        (None, None)
    );
    assert_eq!(conclusion.grade, "");
    assert_eq!(
        conclusion.upload_capacity_kib_per_s, None,
        "no scenario uploads"
    );
    assert!(conclusion.download_capacity_kib_per_s > Some(0));
}

#[test]
fn a_long_queue_is_found_and_a_short_one_is_not() {
    let long = run(plan(&[(1, 0), (0, 1), (1, 1)], &[]), 1_000, |_, _| {});
    let of_long = conclusion(&long);
    assert!(of_long.responsiveness_hz <= Some(2), "{of_long:?}");
    let min_ms = of_long.min_rtt_ns.expect("measured") as f64 / 1e6;
    assert!((min_ms - 10.0).abs() < 0.01, "{min_ms}");
    assert!(
        codes(&long.findings).contains(&"bloated"),
        "{:?}",
        long.findings
    );
    assert_eq!(of_long.grade, "F");
    assert!(
        of_long.answer.contains("Bufferbloat F") && of_long.answer.contains("bends with 1 "),
        "{}",
        of_long.answer
    );
    let short = run(plan(&[(1, 0), (0, 1), (1, 1)], &[]), 20, |_, _| {});
    let of_short = conclusion(&short);
    assert!(of_short.responsiveness_hz >= Some(15), "{of_short:?}");
    assert!(
        !codes(&short.findings).contains(&"bloated"),
        "{:?}",
        short.findings
    );
    assert!(
        ["A", "B"].contains(&of_short.grade.as_str()),
        "{}",
        of_short.grade
    );
    assert_eq!(short.verdict, Verdict::Valid);
}

#[test]
fn a_flow_killed_in_the_middle_carries_its_zeros_and_the_run_goes_on() {
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
    assert_eq!(conducted.ended, Ended::Converged);
    let conclusion = conclusion(&conducted);
    assert_eq!(conclusion.upload_capacity_kib_per_s, Some(0));
    assert_eq!(conclusion.smoothness_hz, Some(0));
    assert!(conclusion.download_capacity_kib_per_s > Some(0));
    assert!(conclusion.responsiveness_hz > Some(0));
    let killed = conducted.findings.iter().find(|f| f.code == "flow_killed");
    let text = &killed.expect("a finding").text;
    assert!(
        text.starts_with("upload 1 of 2 uploads and 2 downloads was lost after 2 s"),
        "{text}"
    );
}

#[test]
fn a_service_that_dies_ends_it_with_what_there_is() {
    let dies = |trial: usize, measured: &mut FlowTrial| {
        if trial == 2 {
            measured.ended = FlowsEnded::Aborted("the service closed the control".to_owned());
        }
    };
    let conducted = run(plan(&[(1, 0), (0, 1), (1, 1)], &[]), 50, dies);
    assert_eq!(conducted.trials.len(), 3, "the third scenario is not run");
    let Ended::Doomed(reason) = &conducted.ended else {
        panic!("{:?}", conducted.ended);
    };
    assert_eq!(
        reason,
        "0 up, 1 down was aborted: the service closed the control"
    );
    assert_eq!(conclusion(&conducted).scenarios.len(), 2);
    let stopped = &conducted.findings[0];
    assert_eq!(stopped.code, "stopped_early");
    assert!(
        stopped
            .next_step
            .contains("knee latency 127.0.0.1:7008 --scenarios 1/0")
    );
}

#[test]
fn a_cap_on_bytes_ends_only_its_scenario() {
    let ends = |trial: usize, measured: &mut FlowTrial| {
        if trial > 0 {
            measured.ended = FlowsEnded::Aborted("the cap of 1 MB was reached".to_owned());
            measured.service_cpu = Some(Nanos::from_secs(1));
        }
    };
    let conducted = run(plan(&[(1, 0), (0, 1)], &[]), 50, ends);
    assert_eq!(conducted.ended, Ended::Converged);
    let states = conclusion(&conducted)
        .scenarios
        .iter()
        .map(|r| r.state.as_str());
    assert!(states.eq(["aborted", "aborted"]));
}

#[test]
fn an_invalid_scenario_spoils_only_what_it_decides() {
    let late = |which: usize| {
        move |trial: usize, measured: &mut FlowTrial| {
            if trial == which {
                measured.tcp.pacing_error.record(Nanos::from_millis(150));
            }
        }
    };
    // The idle path's latency is below that of any scenario.
    let idle = run(plan(&[(1, 0), (1, 1)], &[]), 100, late(0));
    assert_eq!(idle.verdict, Verdict::Valid);
    assert!(codes(&idle.findings).contains(&"generator_distorted"));
    let worst = run(plan(&[(1, 0), (1, 1)], &[]), 100, late(2));
    assert_eq!(worst.verdict, Verdict::Invalid);
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
        let index = SCENARIOS
            .iter()
            .position(|s| *s == (up, down))
            .expect("it is")
            + 1;
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
    let mean = crate::analysis::flows::figures::harmonic_mean(&uploads).expect("some");
    assert!((mean - 50_449.8).abs() < 0.05, "{mean}");
    let classic = parse_classic(&published()).expect("reads");
    let (findings, conclusion) = conclude_classic(&classic);
    assert_eq!(conclusion.scenarios.len(), 19);
    assert_eq!(conclusion.upload_capacity_kib_per_s, Some(50_449));
    assert_eq!(conclusion.download_capacity_kib_per_s, Some(0));
    assert_eq!(conclusion.responsiveness_hz, Some(0), "as printed");
    assert_eq!(conclusion.smoothness_hz, Some(0));
    assert_eq!(conclusion.min_rtt_ns, Some(0));
    assert_eq!(codes(&findings), ["recomputed_differs"]);
    assert_eq!(
        findings[0].text,
        "the text prints 50,450 KiB/s as upload capacity, its scenarios give 50,449.8 KiB/s: it \
         was made of figures that were not rounded yet"
    );
    assert_eq!(findings[0].severity, crate::report::Severity::Info);
    assert!(
        conclusion
            .answer
            .contains("upload capacity is 50,449 KiB/s"),
        "{}",
        conclusion.answer
    );
}

#[test]
fn an_overall_figure_that_its_scenarios_do_not_give_is_a_warning() {
    let mut classic = parse_classic(&published()).expect("reads");
    classic.overall.upload_capacity = Some(60_000.0);
    let (findings, _) = conclude_classic(&classic);
    assert_eq!(findings[0].severity, crate::report::Severity::Warning);
    classic.overall = ClassicOverall {
        upload_capacity: Some(50_449.0),
        ..ClassicOverall::default()
    };
    assert_eq!(conclude_classic(&classic).0, []);
}
