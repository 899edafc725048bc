//! Reports of what is left of an experiment that was cut short. They have no conclusion beyond an
//! answer, and a trial that is known by its intervals only.

use crate::{Csv, Html, Json, Junit, Renderer, Text, answer, fixtures, parse_report};
use knee_core::report::Report;
use knee_core::report::salvage::{PartialExperiment, RunningTrial, salvage};
use knee_core::report::{Command, Kind};
use knee_load::measure::{Histogram, Interval};
use knee_load::spec::Level;
use knee_load::time::Nanos;

/// A command cut short in its first trial, or in its second after one that ended.
fn cut_short(kind: Kind, level: Level, ended: usize) -> Report {
    let second = 1_000_000_000;
    let interval = |start: u64| Interval {
        start_ns: start * second,
        end_ns: (start + 1) * second,
        attempted: 101,
        completed: 100,
        errors: 1,
        p50_ns: 2_000_000,
        p90_ns: 2_000_000,
        p99_ns: 3_000_000,
        max_ns: 3_000_000,
        ..Interval::default()
    };
    let mut response = Histogram::default();
    (0..300).for_each(|i| response.record(Nanos::from_millis(2 + i / 290)));
    let so_far = Report {
        command: Command::of(kind),
        conclusion: kind.without_conclusion(),
        trials: Vec::new(),
        findings: Vec::new(),
        ..fixtures::run_open()
    };
    let running = RunningTrial {
        label: "the first".to_owned(),
        level,
        planned_ns: Some(10 * second),
        asked_per_s: None,
        intervals: (0..3).map(interval).collect(),
        response,
    };
    salvage(PartialExperiment { so_far, ended, running: Some(running), goes_on: false }).unwrap()
}

fn written(form: &dyn Renderer, report: &Report) -> String {
    let mut bytes = Vec::new();
    form.render(report, &mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn every_form_shows_every_command() {
    for (kind, level) in [
        (Kind::Run, Level::RatePerS(100.0)),
        (Kind::Sweep, Level::Vusers(4)),
        (Kind::Overload, Level::Descriptors(128)),
        (Kind::Udp, Level::Clients(2)),
        (Kind::Throttle, Level::Clients(1)),
        (Kind::Latency, Level::Flows { up: 1, down: 1 }),
    ] {
        for ended in [0, 1] {
            let report = cut_short(kind, level, ended);
            let forms: [&dyn Renderer; 5] = [&Text::default(), &Html, &Json, &Csv, &Junit];
            for form in forms {
                let shown = written(form, &report);
                assert!(!shown.contains("NaN") && !shown.contains("inf "), "{shown}");
            }
            let text = written(&Text::default(), &report);
            assert!(text.contains("INTERRUPTED"), "{text}");
            assert!(text.contains("cut_short"), "{text}");
            let again = parse_report(&written(&Json, &report)).unwrap();
            assert_eq!(again, report);
            assert!(ended > 0 || !answer(&report).is_empty(), "{kind:?}");
        }
    }
}

#[test]
fn a_run_that_was_cut_short() {
    let report = cut_short(Kind::Run, Level::RatePerS(100.0), 0);
    let page = written(&Html, &report);
    for unknown in ["Outcomes", "Generator", "connections", "peak memory"] {
        assert!(!page.contains(unknown), "{unknown} is not known");
    }
    insta::assert_snapshot!("run_cut_short", written(&Text::default(), &report));
}
