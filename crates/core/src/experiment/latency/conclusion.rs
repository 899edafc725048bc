//! What a report asks of the conclusion of `knee latency`: its sentences, and whether it agrees
//! with all else.

use super::analysis::grade;
use super::classic::RowFigure;
use super::distorted;
use super::findings::codes;
use super::report::{LatencyConclusion, ScenarioRow};
use crate::consistency::{self, Contradictions, Said};
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
        consistency::times("idle path", idle, found);
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

/// What the path is like, and where it bends.
pub(super) fn in_words(conclusion: &LatencyConclusion) -> String {
    let name = conclusion.scenarios.first().map_or("", |row| &row.congestion_control);
    let own = conclusion.scenarios.iter();
    let rows: Vec<&ScenarioRow> = own.filter(|r| r.congestion_control == name).collect();
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
    let sentences: Vec<String> = sentences.into_iter().flatten().collect();
    sentences.join(" ")
}

const RESPONSIVENESS: &str = "link responsiveness";

/// The overall figures by their names, with their units.
pub(super) fn figures(of: &LatencyConclusion) -> [(&'static str, Option<u64>, &'static str); 4] {
    [
        (RESPONSIVENESS, of.responsiveness_hz, "Hz"),
        ("flow smoothness", of.smoothness_hz, "Hz"),
        ("upload capacity", of.upload_capacity_kib_per_s, "KiB/s"),
        ("download capacity", of.download_capacity_kib_per_s, "KiB/s"),
    ]
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
    let known = figures(conclusion).into_iter().filter_map(|(name, value, unit)| {
        let with = if name == RESPONSIVENESS { with.as_str() } else { "" };
        Some(format!("{name} is {} {unit}{with}", exact(value? as f64)))
    });
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| format!("Under load {}.", list(&known)))
}

/// The grade, and the fewest flows from which on latency is felt.
fn bends(conclusion: &LatencyConclusion, rows: &[&ScenarioRow]) -> Option<String> {
    let added = conclusion.added_latency_ns?;
    let felt = |row: &&&ScenarioRow| row.added_latency_ns.is_some_and(|ns| ns >= FELT_NS);
    let bend = rows.iter().filter(felt).min_by_key(|row| row.up + row.down);
    let where_ = match bend {
        Some(row) => format!("it bends with {}", row.flows_in_words()),
        None => "no scenario bends it".to_owned(),
    };
    Some(format!(
        "Bufferbloat {}: load adds {} to the median ping; {where_}.",
        grade(Nanos(added)),
        time(added as f64)
    ))
}

/// From this much on latency is worse than grade A.
const FELT_NS: i64 = 30_000_000;

/// Where probes over UDP give another grade.
fn by_probe(conclusion: &LatencyConclusion) -> Option<String> {
    let added = conclusion.udp_added_latency_ns?;
    let differs = !conclusion.grade.is_empty() && conclusion.udp_grade != conclusion.grade;
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
    let known = conclusion.by_congestion_control.iter().filter(|row| !row.grade.is_empty());
    let each = known.map(|row| format!("{} with {}", row.grade, row.congestion_control));
    let each: Vec<String> = each.collect();
    (each.len() > 1).then(|| format!("By congestion control the grade is {}.", list(&each)))
}
