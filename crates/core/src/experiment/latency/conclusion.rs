//! What a report asks of the conclusion of `knee latency`, and whether that agrees with all else.

use super::analysis::grade;
use super::answer::figures;
use super::classic::RowFigure;
use super::findings::codes;
use super::report::{LatencyConclusion, ScenarioRow};
use crate::consistency::{Contradictions, Said, trial};
use crate::experiment::answer::{Answer, values};
use crate::finding::Code;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{exact, time, value};
use knee_load::time::Nanos;
use serde_json::Value;

impl Answer for LatencyConclusion {
    fn codes() -> Vec<Code> {
        codes()
    }

    fn cut_short(&mut self, _trial: &TrialReport, words: String) {
        self.answer = words;
    }

    fn rows(&self) -> usize {
        self.scenarios.len()
    }

    fn table(&self) -> serde_json::Result<Vec<Value>> {
        values(&self.scenarios)
    }

    /// Every scenario that has flows.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        trials.iter().filter(|t| value(t.level) > 0.0).collect()
    }

    fn operation(&self) -> &'static str {
        "ping"
    }

    fn check(&self, said: Said<'_>, found: &mut Contradictions) {
        check(said, self, found);
    }
}

fn check(said: Said<'_>, of: &LatencyConclusion, found: &mut Contradictions) {
    let is_valid = said.verdict == Verdict::Valid;
    found.unless(!is_valid || of.distorted.is_empty(), || {
        format!("VALID, and distorted are {:?}", of.distorted)
    });
    if let Some(ns) = of.added_latency_ns {
        found.unless(of.grade == grade(Nanos(ns)), || {
            format!("grade {} of {ns} ns added", of.grade)
        });
    }
    if let Some(idle) = &of.idle_ns {
        trial::times("idle path", idle, found);
    }
    // Overall figures are of the first congestion control, and scenarios of all of them.
    let first = of.scenarios.first().map(|s| s.congestion_control.as_str());
    let rows: Vec<&ScenarioRow> =
        of.scenarios.iter().filter(|s| Some(s.congestion_control.as_str()) == first).collect();
    let worst_of: [(&str, Option<u64>, RowFigure); 2] = [
        ("responsiveness", of.responsiveness_hz, |s| s.responsiveness_hz),
        ("smoothness", of.smoothness_hz, |s| s.smoothness_hz),
    ];
    for (what, overall, figure) in worst_of {
        worst(what, overall, rows.iter().filter_map(|row| figure(row)), found);
    }
    let capacities: [(&str, Option<u64>, RowFigure); 2] = [
        ("upload", of.upload_capacity_kib_per_s, |s| s.up_kib_per_s),
        ("download", of.download_capacity_kib_per_s, |s| s.down_kib_per_s),
    ];
    for (what, overall, figure) in capacities {
        capacity(what, overall, rows.iter().filter_map(|row| figure(row)), found);
    }
    found.unless(of.grade.is_empty() || of.added_latency_ns.is_some(), || {
        format!("grade {} of a latency that is not known", of.grade)
    });
    for row in &of.scenarios {
        found.within(&format!("{}/{}", row.up, row.down), |found| {
            check_row(said, row, found);
        });
    }
    statements(said, of, found);
}

/// A row is that of its trial, and no figure is absent of a scenario that began.
fn check_row(said: Said<'_>, row: &ScenarioRow, found: &mut Contradictions) {
    let lost = row.flows.iter().filter(|f| !f.lost.is_empty()).count();
    found.unless(lost == 0 || row.smoothness_hz == Some(0.0), || {
        format!("{lost} flows lost, smoothness {:?}", row.smoothness_hz)
    });
    let trial = row.trial.and_then(|trial| said.trials.get(trial));
    let Some((trial, flows)) = trial.and_then(|trial| Some((trial, trial.flows()?))) else {
        return;
    };
    found.unless(row.state == flows.state && row.reason == flows.reason, || {
        format!("{} ({}) of a trial that is {}", row.state, row.reason, flows.state)
    });
    let begun = flows.has_begun();
    let ways = [(row.up, row.up_kib_per_s, &flows.up), (row.down, row.down_kib_per_s, &flows.down)];
    for (n, capacity, direction) in ways {
        let own = direction.as_ref().map(|d| d.capacity_kib_per_s);
        let expected = own.filter(|_| begun);
        found.unless(capacity == expected && (n > 0) == own.is_some(), || {
            format!("{n} flows with {capacity:?} KiB/s of a trial with {own:?}")
        });
    }
    let figures = [
        ("responsiveness", row.responsiveness_hz, flows.tcp.sent > 0),
        ("smoothness", row.smoothness_hz, begun),
    ];
    for (what, figure, is_known) in figures {
        found.unless(figure.is_some() == is_known, || {
            format!("{what} {figure:?} of {}, {} pings", trial.label, flows.tcp.sent)
        });
    }
}

/// What the answer and the findings say is in the table.
fn statements(said: Said<'_>, of: &LatencyConclusion, found: &mut Contradictions) {
    let mut words: Vec<String> = figures(of)
        .into_iter()
        .filter_map(|(name, figure, unit)| {
            Some(format!("{name} is {} {unit}", exact(figure? as f64)))
        })
        .collect();
    if let Some(ns) = of.added_latency_ns {
        words.push(format!("Bufferbloat {}: load adds {}", of.grade, time(ns as f64)));
    }
    for words in words.iter().filter(|_| !of.scenarios.is_empty()) {
        found.unless(of.answer.contains(words), || {
            format!("{words}, and the answer is: {}", of.answer)
        });
    }
    let forced = of.scenarios.iter().filter(|row| row.state == "forced").count() as f64;
    let worst = of.scenarios.iter().filter_map(|row| row.added_latency_ns).max();
    for finding in said.findings {
        let evidence = |name: &str| finding.evidence.get(name).copied();
        let (told, table) = match finding.code.as_str() {
            "not_settled" => (evidence("not_settled"), Some(forced)),
            "bloated" => (evidence("added_latency_ns"), worst.map(|ns| ns as f64)),
            _ => continue,
        };
        found.unless(told == table, || {
            format!("`{}` tells of {told:?}, the table of {table:?}", finding.code)
        });
    }
    let says = said.findings.iter().any(|f| f.code == "not_settled");
    found.unless(says == (forced > 0.0) || said.trials.is_empty(), || {
        format!("{forced} scenarios have not settled, and a finding says so: {says}")
    });
}

/// An overall figure is the least of its scenarios, rounded down.
fn worst(
    what: &str,
    overall: Option<u64>,
    of: impl Iterator<Item = f64>,
    found: &mut Contradictions,
) {
    let least = of.reduce(f64::min);
    if let (Some(overall), Some(least)) = (overall, least) {
        found.unless(overall == least.floor() as u64, || {
            format!("{what} {overall} Hz, and {least} Hz in the worst scenario")
        });
    }
}

/// An overall capacity is not above its best scenario and not below its worst.
fn capacity(
    what: &str,
    overall: Option<u64>,
    of: impl Iterator<Item = f64>,
    found: &mut Contradictions,
) {
    let all: Vec<f64> = of.collect();
    let (least, most) =
        (all.iter().copied().reduce(f64::min), all.iter().copied().reduce(f64::max));
    if let (Some(overall), Some(least), Some(most)) = (overall, least, most) {
        found.unless(overall <= most.floor() as u64 && overall >= least.floor() as u64, || {
            format!("{what} capacity {overall} KiB/s of scenarios with {least} to {most}")
        });
    }
}
