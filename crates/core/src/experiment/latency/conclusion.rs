//! What a report asks of the conclusion of `knee latency`, and whether that agrees with all else.

use super::analysis::figures::grade;
use super::findings::CODES;
use super::report::{LatencyConclusion, ScenarioRow};
use crate::consistency::{Contradictions, Said, trial};
use crate::experiment::answer::{Answer, values};
use crate::finding::Code;
use crate::time::Nanos;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::value;
use serde_json::Value;

impl Answer for LatencyConclusion {
    fn codes() -> &'static [Code] {
        CODES
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
    let rows: Vec<&ScenarioRow> = of
        .scenarios
        .iter()
        .filter(|s| Some(s.congestion_control.as_str()) == first)
        .collect();
    worst(
        "responsiveness",
        of.responsiveness_hz,
        rows.iter().map(|s| s.responsiveness_hz),
        found,
    );
    worst(
        "smoothness",
        of.smoothness_hz,
        rows.iter().map(|s| s.smoothness_hz),
        found,
    );
    capacity(
        "upload",
        of.upload_capacity_kib_per_s,
        rows.iter().map(|s| s.up_kib_per_s),
        found,
    );
    capacity(
        "download",
        of.download_capacity_kib_per_s,
        rows.iter().map(|s| s.down_kib_per_s),
        found,
    );
    found.unless(of.grade.is_empty() || of.added_latency_ns.is_some(), || {
        format!("grade {} of a latency that is not known", of.grade)
    });
    for row in &of.scenarios {
        let lost = row.flows.iter().filter(|f| !f.lost.is_empty()).count();
        found.unless(lost == 0 || row.smoothness_hz == Some(0.0), || {
            format!(
                "{}/{}: {lost} flows lost, smoothness {:?}",
                row.up, row.down, row.smoothness_hz
            )
        });
    }
}

/// An overall figure is the least of its scenarios, rounded down.
fn worst(
    what: &str,
    overall: Option<u64>,
    of: impl Iterator<Item = Option<f64>>,
    found: &mut Contradictions,
) {
    let least = of.flatten().reduce(f64::min);
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
    of: impl Iterator<Item = Option<f64>>,
    found: &mut Contradictions,
) {
    let all: Vec<f64> = of.flatten().collect();
    let (least, most) = (
        all.iter().copied().reduce(f64::min),
        all.iter().copied().reduce(f64::max),
    );
    if let (Some(overall), Some(least), Some(most)) = (overall, least, most) {
        found.unless(
            overall <= most.floor() as u64 && overall >= least.floor() as u64,
            || format!("{what} capacity {overall} KiB/s of scenarios with {least} to {most}"),
        );
    }
}
