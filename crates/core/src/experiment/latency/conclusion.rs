//! The conclusion of `knee latency` as a report sees it, and its checks for contradictions.

use super::analysis::{PATH_FIGURES, grade};
use super::answer::figure_in_words;
use super::findings::codes;
use super::report::{LatencyConclusion, ScenarioRow};
use crate::consistency::{self, CheckedReport, ConsistencyCheck};
use crate::experiment::{Answer, values};
use crate::finding::Code;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{time, value};
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

    fn check(&self, report: CheckedReport<'_>, check: &mut ConsistencyCheck) {
        let is_valid = report.verdict == Verdict::Valid;
        check.require(!is_valid || self.distorted.is_empty(), || {
            format!("VALID, and distorted are {:?}", self.distorted)
        });
        if let Some(ns) = self.path.added_latency_ns {
            check.require(self.path.grade == grade(Nanos(ns)), || {
                format!("grade {} of {ns} ns added", self.path.grade)
            });
        }
        if let Some(idle) = &self.idle_ns {
            consistency::times("idle path", idle, check);
        }
        // Overall figures are of the first congestion control, and scenarios of all of them.
        let first = self.scenarios.first().map(|s| s.congestion_control.as_str());
        let rows: Vec<&ScenarioRow> = self
            .scenarios
            .iter()
            .filter(|s| Some(s.congestion_control.as_str()) == first)
            .collect();
        for figure in &PATH_FIGURES {
            let known = || rows.iter().filter_map(|row| (figure.of_row)(row));
            let (least, most) = (known().reduce(f64::min), known().reduce(f64::max));
            if let (Some(overall), Some(least), Some(most)) =
                ((figure.of_path)(&self.path), least, most)
            {
                let most = if figure.is_capacity { most } else { least };
                let is_within = overall >= least.floor() as u64 && overall <= most.floor() as u64;
                check.require(is_within, || {
                    let (name, unit) = (figure.name, figure.unit);
                    format!("{name} {overall} {unit} of scenarios with {least} to {most}")
                });
            }
        }
        check.require(self.path.grade.is_empty() || self.path.added_latency_ns.is_some(), || {
            format!("grade {} of a latency that is not known", self.path.grade)
        });
        for row in &self.scenarios {
            check.within(&format!("{}/{}", row.up, row.down), |check| {
                check_row(report, row, check);
            });
        }
        statements(report, self, check);
    }
}

/// A row is that of its trial, and no figure is absent of a scenario that began.
fn check_row(report: CheckedReport<'_>, row: &ScenarioRow, check: &mut ConsistencyCheck) {
    let lost = row.flows.iter().filter(|f| !f.lost.is_empty()).count();
    check.require(lost == 0 || row.smoothness_hz == Some(0.0), || {
        format!("{lost} flows lost, smoothness {:?}", row.smoothness_hz)
    });
    let trial = row.trial.and_then(|trial| report.trials.get(trial));
    let Some((trial, flows)) = trial.and_then(|trial| Some((trial, trial.flows()?))) else {
        return;
    };
    check.require(row.state == flows.state && row.reason == flows.reason, || {
        format!("{} ({}) of a trial that is {}", row.state, row.reason, flows.state)
    });
    let begun = flows.has_begun();
    let ways = [(row.up, row.up_kib_per_s, &flows.up), (row.down, row.down_kib_per_s, &flows.down)];
    for (n, capacity, direction) in ways {
        let own = direction.as_ref().map(|d| d.capacity_kib_per_s);
        let expected = own.filter(|_| begun);
        check.require(capacity == expected && (n > 0) == own.is_some(), || {
            format!("{n} flows with {capacity:?} KiB/s of a trial with {own:?}")
        });
    }
    let figures = [
        ("responsiveness", row.responsiveness_hz, flows.tcp.sent > 0),
        ("smoothness", row.smoothness_hz, begun),
    ];
    for (what, figure, is_known) in figures {
        check.require(figure.is_some() == is_known, || {
            format!("{what} {figure:?} of {}, {} pings", trial.label, flows.tcp.sent)
        });
    }
}

/// The answer and the findings agree with the table.
fn statements(
    report: CheckedReport<'_>,
    latency: &LatencyConclusion,
    check: &mut ConsistencyCheck,
) {
    let known = PATH_FIGURES.iter().filter_map(|figure| figure_in_words(figure, &latency.path));
    let mut words: Vec<String> = known.collect();
    if let Some(ns) = latency.path.added_latency_ns {
        words.push(format!("Bufferbloat {}: load adds {}", latency.path.grade, time(ns as f64)));
    }
    for words in words.iter().filter(|_| !latency.scenarios.is_empty()) {
        check.require(latency.answer.contains(words), || {
            format!("{words}, and the answer is: {}", latency.answer)
        });
    }
    let forced = latency.scenarios.iter().filter(|row| row.state == "forced").count() as f64;
    let worst = latency.scenarios.iter().filter_map(|row| row.added_latency_ns).max();
    for finding in report.findings {
        let evidence = |name: &str| finding.evidence.get(name).copied();
        let (stated, table) = match finding.code.as_str() {
            "not_settled" => (evidence("not_settled"), Some(forced)),
            "bloated" => (evidence("added_latency_ns"), worst.map(|ns| ns as f64)),
            _ => continue,
        };
        check.require(stated == table, || {
            format!("`{}` states {stated:?}, the table {table:?}", finding.code)
        });
    }
    let says = report.findings.iter().any(|f| f.code == "not_settled");
    check.require(says == (forced > 0.0) || report.trials.is_empty(), || {
        format!("{forced} scenarios have not settled, and a finding says so: {says}")
    });
}
