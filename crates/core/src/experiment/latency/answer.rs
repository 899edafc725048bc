//! The sentences of the answer.

use super::analysis::{PATH_FIGURES, PathFigure, grade};
use super::distorted;
use super::report::{LatencyConclusion, PathFigures, ScenarioRow};
use crate::words::{exact, list, time};
use knee_load::time::Nanos;

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
pub(super) fn figure_in_words(figure: &PathFigure, path: &PathFigures) -> Option<String> {
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
