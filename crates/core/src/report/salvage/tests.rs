use super::*;
use crate::measure::{Histogram, Interval};
use crate::report::{Host, ReportResult};
use crate::spec::Level;
use crate::time::Nanos;

const COMMANDS: [&str; 6] = ["run", "sweep", "udp", "overload", "throttle", "latency"];

fn begun(command: &str) -> Report {
    Report {
        schema: crate::report::SCHEMA.to_owned(),
        command: command.to_owned(),
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
        conclusion: without_conclusion(command).unwrap(),
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

fn salvaged(command: &str, running: Option<RunningTrial>) -> Result<Report, String> {
    salvage(Remains {
        so_far: begun(command),
        ended: 0,
        running,
        goes_on: false,
    })
}

#[test]
fn a_run_is_told_by_its_intervals_and_never_valid() {
    let report = salvaged("run", Some(running())).unwrap();
    assert_eq!(
        (report.verdict, report.interrupted),
        (Verdict::Invalid, true)
    );
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
    for command in COMMANDS {
        let report = salvaged(command, Some(running())).unwrap();
        let json = serde_json::to_string(&report).unwrap();
        assert_eq!(serde_json::from_str(&json).ok(), Some(report), "{command}");
    }
    assert_eq!(without_conclusion("serve"), None);
}

#[test]
fn before_the_first_interval_there_is_nothing_to_tell() {
    let none = RunningTrial {
        intervals: Vec::new(),
        response: Histogram::default(),
        ..running()
    };
    for command in COMMANDS {
        for running in [None, Some(none.clone())] {
            let wrong = salvaged(command, running).unwrap_err();
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
        ..begun("sweep")
    };
    let remains = Remains {
        so_far: so_far.clone(),
        ended: 3,
        running: Some(running()),
        goes_on: true,
    };
    let report = salvage(remains).unwrap();
    assert_eq!(report.conclusion, so_far.conclusion);
    assert_eq!(report.verdict, Verdict::Valid);
    assert_eq!(report.trials.len(), 1);
    assert!(
        report.findings[0]
            .text
            .starts_with("it still goes on: 3 trials had ended")
    );
}
