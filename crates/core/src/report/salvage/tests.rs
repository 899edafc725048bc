use super::*;
use crate::experiment::sweep::report::SweepConclusion;
use crate::report::{Command, Conclusion, Host, Kind, ReportResult};
use knee_load::measure::{Histogram, Interval};
use knee_load::spec::Level;
use knee_load::time::Nanos;

fn begun(kind: Kind) -> Report {
    Report {
        schema: crate::report::SCHEMA.to_owned(),
        command: Command::of(kind),
        knee_version: "1.2.3".to_owned(),
        started_at: "2026-05-04T09:30:00Z".to_owned(),
        seed: 7,
        verdict: Verdict::Valid,
        result: ReportResult::default(),
        failed_because: Vec::new(),
        interrupted: false,
        host: Host::default(),
        spec: BTreeMap::new(),
        trials: Vec::new(),
        findings: Vec::new(),
        thresholds: Vec::new(),
        conclusion: kind.without_conclusion(),
    }
}

/// Two intervals of a second each: 100 responses of 1 ms and one failure, then 50 of 3 ms.
fn running() -> RunningTrial {
    let interval = |start_s: u64, completed, errors| Interval {
        start_ns: start_s * 1_000_000_000,
        end_ns: (start_s + 1) * 1_000_000_000,
        attempted: completed + errors,
        completed,
        errors,
        ..Interval::default()
    };
    let mut response = Histogram::default();
    for i in 0..150 {
        response.record(Nanos::from_millis(if i < 100 { 1 } else { 3 }));
    }
    RunningTrial {
        label: "vusers=10".to_owned(),
        level: Level::Vusers(10),
        planned_ns: Some(10_000_000_000),
        asked_per_s: None,
        intervals: vec![interval(0, 100, 1), interval(1, 50, 0)],
        response,
    }
}

fn salvaged(kind: Kind, running: Option<RunningTrial>) -> Result<Report, String> {
    salvage(PartialExperiment { so_far: begun(kind), ended: 0, running, goes_on: false })
}

#[test]
fn a_run_is_told_by_its_intervals_and_never_valid() {
    let report = salvaged(Kind::Run, Some(running())).unwrap();
    assert_eq!((report.verdict, report.interrupted), (Verdict::Invalid, true));
    let trial = &report.trials[0];
    assert_eq!((trial.attempted, trial.completed), (151, 150));
    assert_eq!(trial.throughput_per_s, Some(75.0));
    assert_eq!(trial.duration_ns, 2_000_000_000);
    assert_eq!(trial.verdict, Verdict::Invalid);
    let Conclusion::Run(conclusion) = &report.conclusion else {
        panic!("of a run");
    };
    assert_eq!(conclusion.throughput_per_s, Some(75.0));
    let near =
        |ns: Option<u64>, ms: f64| (ns.expect("enough") as f64 / 1e6 / ms - 1.0).abs() < 2e-3;
    assert!(near(conclusion.p50_ns, 1.0) && near(conclusion.p99_ns, 3.0));
    assert!((conclusion.error_percent - 100.0 / 151.0).abs() < 1e-9);
    let finding = &report.findings[0];
    assert_eq!(finding.code, "cut_short");
    assert_eq!(finding.evidence["running_kept_s"], 2.0);
    assert_eq!(finding.evidence["running_planned_s"], 10.0);
}

#[test]
fn each_command_has_an_answer_of_its_own_kind() {
    for kind in Kind::all() {
        let report = salvaged(kind, Some(running())).unwrap();
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str(&json).ok(), Some(report), "{kind:?}");
    }
}

#[test]
fn before_the_first_interval_there_is_nothing_to_tell() {
    let none = RunningTrial { intervals: Vec::new(), response: Histogram::default(), ..running() };
    for kind in Kind::all() {
        for running in [None, Some(none.clone())] {
            let wrong = salvaged(kind, running).unwrap_err();
            assert_eq!(wrong, "it was cut short before anything was measured");
        }
    }
}

#[test]
fn what_had_ended_keeps_its_verdict_and_conclusion() {
    let so_far = Report {
        conclusion: Conclusion::Sweep(SweepConclusion {
            answer: "At most 5/s.".to_owned(),
            ..SweepConclusion::default()
        }),
        ..begun(Kind::Sweep)
    };
    let remains = PartialExperiment {
        so_far: so_far.clone(),
        ended: 3,
        running: Some(running()),
        goes_on: true,
    };
    let report = salvage(remains).unwrap();
    assert_eq!(report.conclusion, so_far.conclusion);
    assert_eq!(report.verdict, Verdict::Valid);
    assert_eq!(report.trials.len(), 1);
    assert!(report.findings[0].text.starts_with("it still goes on: 3 trials had ended"));
}
