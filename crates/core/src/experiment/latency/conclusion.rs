//! The conclusion of `knee latency` as a report sees it: its sentences, and its checks for
//! contradictions.

use super::analysis::{PATH_FIGURES, PathFigure, grade};
use super::distorted;
use super::findings::codes;
use super::report::{LatencyConclusion, PathFigures, ScenarioRow};
use crate::consistency::{self, CheckedReport, ConsistencyCheck};
use crate::experiment::{Answer, values};
use crate::finding::Code;
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{exact, list, time, value};
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
        check_all(report, self, check);
    }
}

fn check_all(report: CheckedReport<'_>, latency: &LatencyConclusion, check: &mut ConsistencyCheck) {
    let is_valid = report.verdict == Verdict::Valid;
    check.require(!is_valid || latency.distorted.is_empty(), || {
        format!("VALID, and distorted are {:?}", latency.distorted)
    });
    if let Some(ns) = latency.path.added_latency_ns {
        check.require(latency.path.grade == grade(Nanos(ns)), || {
            format!("grade {} of {ns} ns added", latency.path.grade)
        });
    }
    if let Some(idle) = &latency.idle_ns {
        consistency::times("idle path", idle, check);
    }
    // Overall figures are of the first congestion control, and scenarios of all of them.
    let first = latency.scenarios.first().map(|s| s.congestion_control.as_str());
    let rows: Vec<&ScenarioRow> =
        latency.scenarios.iter().filter(|s| Some(s.congestion_control.as_str()) == first).collect();
    for figure in &PATH_FIGURES {
        let known = || rows.iter().filter_map(|row| (figure.of_row)(row));
        let (least, most) = (known().reduce(f64::min), known().reduce(f64::max));
        if let (Some(overall), Some(least), Some(most)) =
            ((figure.of_path)(&latency.path), least, most)
        {
            let most = if figure.is_capacity { most } else { least };
            let is_within = overall >= least.floor() as u64 && overall <= most.floor() as u64;
            check.require(is_within, || {
                let (name, unit) = (figure.name, figure.unit);
                format!("{name} {overall} {unit} of scenarios with {least} to {most}")
            });
        }
    }
    check.require(latency.path.grade.is_empty() || latency.path.added_latency_ns.is_some(), || {
        format!("grade {} of a latency that is not known", latency.path.grade)
    });
    for row in &latency.scenarios {
        check.within(&format!("{}/{}", row.up, row.down), |check| {
            check_row(report, row, check);
        });
    }
    statements(report, latency, check);
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

/// What the path is like, and where it bends.
pub(super) fn in_words(conclusion: &LatencyConclusion) -> String {
    let name = conclusion.scenarios.first().map_or("", |row| &row.congestion_control);
    let rows: Vec<&ScenarioRow> =
        conclusion.scenarios.iter().filter(|r| r.congestion_control == name).collect();
    if rows.is_empty() {
        return match conclusion.min_rtt_ns {
            Some(ns) => format!(
                "A round trip on the idle path takes {} at least; nothing was measured under load.",
                time(ns as f64)
            ),
            None => "Nothing was measured.".to_owned(),
        };
    }
    let sentences = [
        under_load(conclusion, &rows),
        bends(conclusion, &rows),
        by_probe(conclusion),
        congestion(conclusion),
        stands(conclusion),
    ];
    sentences.into_iter().flatten().collect::<Vec<String>>().join(" ")
}

/// `link responsiveness is 12 Hz`; nothing where it is not known.
fn figure_in_words(figure: &PathFigure, path: &PathFigures) -> Option<String> {
    let value = (figure.of_path)(path)?;
    Some(format!("{} is {} {}", figure.name, exact(value as f64), figure.unit))
}

/// Responsiveness, smoothness, capacity.
fn under_load(conclusion: &LatencyConclusion, rows: &[&ScenarioRow]) -> Option<String> {
    let worst = rows
        .iter()
        .filter_map(|row| Some((row, row.responsiveness_hz?)))
        .min_by(|a, b| a.1.total_cmp(&b.1));
    let with = worst
        .filter(|(_, hz)| *hz > 0.0)
        .map(|(row, hz)| {
            let longest = time(1e9 / hz);
            format!(" (with {} a ping took up to {longest})", row.flows_in_words())
        })
        .unwrap_or_default();
    let (capacities, frequencies) = PATH_FIGURES.split_at(2);
    let known = frequencies.iter().chain(capacities).filter_map(|figure| {
        let with = if figure.key == "responsiveness_hz" { with.as_str() } else { "" };
        Some(figure_in_words(figure, &conclusion.path)? + with)
    });
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| format!("Under load {}.", list(&known)))
}

/// The grade, and the fewest flows from which on latency is felt.
fn bends(conclusion: &LatencyConclusion, rows: &[&ScenarioRow]) -> Option<String> {
    let added = conclusion.path.added_latency_ns?;
    let felt = |row: &&&ScenarioRow| row.added_latency_ns.is_some_and(|ns| ns >= FELT_NS);
    let bend = match rows.iter().filter(felt).min_by_key(|row| row.up + row.down) {
        Some(row) => format!("it bends with {}", row.flows_in_words()),
        None => "no scenario bends it".to_owned(),
    };
    Some(format!(
        "Bufferbloat {}: load adds {} to the median ping; {bend}.",
        grade(Nanos(added)),
        time(added as f64)
    ))
}

/// From this much on latency is worse than grade A.
const FELT_NS: i64 = 30_000_000;

/// Where probes over UDP give another grade.
fn by_probe(conclusion: &LatencyConclusion) -> Option<String> {
    let added = conclusion.udp_added_latency_ns?;
    let differs =
        !conclusion.path.grade.is_empty() && conclusion.udp_grade != conclusion.path.grade;
    differs.then(|| {
        format!(
            "That is of pings over TCP; by probes over UDP it is {}, {} added.",
            conclusion.udp_grade,
            time(added as f64)
        )
    })
}

/// What can be trusted, where not all can.
fn stands(conclusion: &LatencyConclusion) -> Option<String> {
    let (resting, standing) = distorted::distorted_and_sound(conclusion);
    (!resting.is_empty()).then(|| {
        if standing.is_empty() {
            "The generator distorted scenarios that all of this rests on.".to_owned()
        } else {
            format!(
                "The generator distorted scenarios that this rests on; what stands is {}.",
                list(&standing)
            )
        }
    })
}

fn congestion(conclusion: &LatencyConclusion) -> Option<String> {
    let known = conclusion.by_congestion_control.iter().filter(|row| !row.path.grade.is_empty());
    let grades: Vec<String> =
        known.map(|row| format!("{} with {}", row.path.grade, row.congestion_control)).collect();
    (grades.len() > 1).then(|| format!("By congestion control the grade is {}.", list(&grades)))
}
