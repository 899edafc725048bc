//! The text, and that it keeps the rules of its format.

use super::*;
use crate::live::{LiveKind, LiveTrial};
use crate::metrics::Metrics;
use knee_core::trial::step_names::SessionNames;
use knee_load::measure::{EndedCounts, Interval};
use knee_load::time::Nanos;
use std::collections::{BTreeMap, BTreeSet};

fn trial(label: &str, kind: LiveKind) -> LiveTrial {
    LiveTrial {
        label: label.to_string(),
        kind,
        warmup: Nanos::ZERO,
        total: None,
        interval: Nanos::from_secs(1),
        asked_per_s: None,
        names: Default::default(),
    }
}

fn new(info: &[(&'static str, &str)]) -> Metrics {
    Metrics::new(info.iter().map(|(name, value)| MetricLabel::text(name, *value)).collect(), 0)
}

fn text(metrics: &Metrics) -> String {
    openmetrics(&metrics.families(0))
}

fn second(at_s: u64) -> Interval {
    Interval {
        start_ns: at_s * 1_000_000_000,
        end_ns: (at_s + 1) * 1_000_000_000,
        attempted: 1_000,
        completed: 990,
        errors: 3,
        p50_ns: 730_000,
        p90_ns: 1_000_000,
        p95_ns: 1_150_000,
        p99_ns: 1_310_000,
        max_ns: 5_000_000,
        pacing_error_ns_mean: Some(3_100),
        pacing_error_ns_max: Some(52_000),
        ..Interval::default()
    }
}

fn times() -> Times {
    let up_to = |bound: &Nanos| (bound.0 / 5_000).min(993);
    Times { up_to: BOUNDS.iter().map(up_to).collect(), count: 993, sum_ns: 7.5e8 }
}

/// Trials of every kind, the last one running.
fn all_kinds() -> Metrics {
    let mut metrics = new(&[("command", "run"), ("version", "0.1.0")]);
    let carried = Interval { up_bytes: Some(1_000), down_bytes: Some(2_000_000), ..second(0) };
    let sent = Interval { sent: Some(5_000), ..second(0) };
    let row = LiveKind::Row { number: 1, of: 2, before: Nanos::ZERO, all: Nanos::from_secs(2) };
    metrics.trial_begins(&trial("1 up, 1 down", LiveKind::Flows), None, 0);
    metrics.interval(&carried, Some(&times()));
    metrics.trial_ends(None);
    metrics.trial_begins(&trial("yield*64", LiveKind::Datagrams), None, 0);
    metrics.interval(&sent, None);
    metrics.trial_ends(None);
    metrics.trial_begins(&trial("a \"row\" \\ of\ntwo lines", row), None, 0);
    metrics.trial_ends(None);
    metrics.trial_begins(
        &LiveTrial { asked_per_s: Some(1_000.0), ..trial("rate=1000/s", LiveKind::Operations) },
        None,
        0,
    );
    metrics.interval(&second(0), Some(&times()));
    metrics.interval(&second(1), Some(&times()));
    metrics
}

/// Sessions of two kinds. No visitor has come to an end yet.
fn of_sessions() -> Metrics {
    let ended = |good, failed, timed: u64| EndedCounts {
        good,
        failed,
        between: BOUNDS.map(|bound| u64::from(bound == Nanos::from_millis(1)) * timed),
        timed,
        sum_ns: timed as f64 * 8e5,
    };
    let mut metrics = new(&[("command", "run")]);
    let name = |name: &str| Some(name.to_owned());
    metrics.trial_begins(
        &LiveTrial {
            names: SessionNames {
                steps: vec![name("buyer: login"), None, name("visitor: \"/\"")],
                kinds: vec!["buyer".to_owned(), "visitor".to_owned()],
            },
            ..trial("rate=10/s", LiveKind::Operations)
        },
        None,
        0,
    );
    let interval = Interval {
        steps: vec![ended(8, 2, 10), EndedCounts::default(), ended(5, 0, 5)],
        sessions: vec![ended(7, 2, 7)],
        ..second(0)
    };
    metrics.interval(&interval, Some(&times()));
    metrics.interval(&interval, Some(&times()));
    metrics
}

#[test]
fn sessions_as_they_are() {
    let text = text(&of_sessions());
    let is_of_sessions = |line: &&str| line.contains("knee_step_") || line.contains("knee_session");
    let lines: Vec<&str> = text.lines().filter(is_of_sessions).collect();
    let seldom = |line: &&&str| !line.contains("_bucket") || line.contains("le=\"0.001\"");
    let lines: Vec<&str> = lines.iter().filter(seldom).copied().collect();
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn as_it_is() {
    insta::assert_snapshot!(text(&all_kinds()));
}

#[test]
fn bounds_are_written_as_elsewhere() {
    for (value, expected) in [
        (0.00001, "1e-05"),
        (0.000025, "2.5e-05"),
        (0.0001, "0.0001"),
        (0.25, "0.25"),
        (1.0, "1.0"),
        (60.0, "60.0"),
    ] {
        assert_eq!(canonical(value), expected);
    }
}

#[test]
fn it_keeps_the_rules() {
    for metrics in [Metrics::default(), new(&[("command", "run")]), all_kinds(), of_sessions()] {
        check(&text(&metrics));
    }
    let mut ended = all_kinds();
    ended.trial_ends(None);
    let text = text(&ended);
    check(&text);
    // What is of the running trial goes with it; counters stay.
    assert!(!text.contains("knee_throughput") && text.contains("knee_operations_attempted_total"));
}

/// The rules of OpenMetrics 1.0 that concern us. Families stand one after another, each with its
/// type once, then its unit, which ends its name. The names of samples are as the type wants them.
/// Buckets ascend and end in +Inf. The text has an end.
fn check(text: &str) {
    let body = text.strip_suffix("# EOF\n").expect("an end");
    let mut families = BTreeSet::new();
    let (mut name, mut kind) = (String::new(), String::new());
    let mut seen = BTreeSet::new();
    let mut buckets: BTreeMap<String, (f64, f64)> = BTreeMap::new();
    for text in body.lines() {
        if let Some(meta) = text.strip_prefix("# ") {
            let (what, rest) = meta.split_once(' ').unwrap();
            let (of, rest) = rest.split_once(' ').unwrap();
            match what {
                "TYPE" => {
                    assert!(families.insert(of.to_string()), "{of} twice");
                    (name, kind) = (of.to_string(), rest.to_string());
                }
                "UNIT" => assert!(of == name && name.ends_with(&format!("_{rest}"))),
                "HELP" => assert_eq!(of, name),
                other => panic!("{other}"),
            }
            continue;
        }
        let (sample, value) = text.rsplit_once(' ').unwrap();
        let value: f64 = value.parse().unwrap();
        assert!(seen.insert(sample.to_string()), "{sample} twice");
        let (sample_name, labels) = match sample.split_once('{') {
            Some((n, labels)) => (n, labels.strip_suffix('}').expect("a closing brace")),
            None => (sample, ""),
        };
        let suffix = sample_name.strip_prefix(&name).expect("in its family");
        let permitted: &[&str] = match kind.as_str() {
            "info" => &["_info"],
            "counter" => &["_total"],
            "gauge" => &[""],
            "histogram" => &["_bucket", "_count", "_sum"],
            other => panic!("{other}"),
        };
        assert!(permitted.contains(&suffix), "{sample}");
        if suffix == "_bucket" {
            let (of, le) = labels.split_once(",le=\"").unwrap();
            let le: f64 = le.trim_end_matches('"').parse().unwrap();
            let last = buckets.insert(of.to_string(), (le, value));
            assert!(last.is_none_or(|(l, v)| l < le && v <= value), "{sample}");
        }
        if suffix == "_count" {
            assert_eq!(buckets.get(labels), Some(&(f64::INFINITY, value)));
            buckets.clear();
        }
    }
}
