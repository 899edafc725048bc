//! The comparison in one or two sentences.

use crate::compare::report::{ComparisonRow, ComparisonVerdict};
use crate::trial::statistics::statistic;
use crate::words::{exact, list, number, percent, ratio, time};

/// Most figures in the sentence; the table has the rest.
const FIGURES_MAX: usize = 4;
/// Two sides are alike if a change of less than this, in percent, would have shown in their first
/// figure. It is about twice what a single run of each on a quiet machine shows in its median.
const ALIKE_PERCENT: f64 = 25.0;
/// Ratio from which the change is written as a factor ("2.1 times") rather than in percent.
const FACTOR: f64 = 2.0;

/// Verdict of the rows that matter.
pub(super) fn verdict(rows: &[ComparisonRow]) -> ComparisonVerdict {
    let has = |verdict| rows.iter().any(|row| row.matters && row.verdict == verdict);
    match (has(ComparisonVerdict::Worse), has(ComparisonVerdict::Better)) {
        (true, true) => ComparisonVerdict::Different,
        (true, false) => ComparisonVerdict::Worse,
        (false, true) => ComparisonVerdict::Better,
        (false, false) if has(ComparisonVerdict::Same) && would_show(rows) => {
            ComparisonVerdict::Same
        }
        (false, false) => ComparisonVerdict::Unknown,
    }
}

/// Figures without a difference that had a test, the first in order first, with the smallest change
/// that each would have shown, in percent.
fn shows_from(rows: &[ComparisonRow]) -> Vec<(&ComparisonRow, f64)> {
    let mut tested: Vec<(&ComparisonRow, f64)> = rows
        .iter()
        .filter(|row| row.verdict == ComparisonVerdict::Same && row.matters)
        .filter(|row| row.p_value.is_some())
        .filter_map(|row| Some((row, row.smallest_seen_percent?)))
        .collect();
    tested.sort_by_key(|(row, _)| rank(row));
    tested
}

/// Whether more than large changes would have shown. What is equal without a test is equal.
fn would_show(rows: &[ComparisonRow]) -> bool {
    shows_from(rows).first().is_none_or(|(_, least)| *least <= ALIKE_PERCENT)
}

/// `changes below 35 % in p50 and 60 % in p99 would not show`
fn would_not_show(rows: &[ComparisonRow]) -> Option<String> {
    let figures: Vec<String> = shows_from(rows)
        .into_iter()
        .take(FIGURES_MAX)
        .map(|(row, least)| {
            format!("{} in {}{}", percent(least), name(&row.metric), at_label(&row.label))
        })
        .collect();
    (!figures.is_empty()).then(|| format!("changes below {} would not show", list(&figures)))
}

/// The answer for these rows.
pub(super) fn answer(rows: &[ComparisonRow]) -> String {
    let rows_with = |verdict| -> Vec<&ComparisonRow> {
        rows.iter().filter(|r| r.matters && r.verdict == verdict).collect()
    };
    let worse = rows_with(ComparisonVerdict::Worse);
    let better = rows_with(ComparisonVerdict::Better);
    match verdict(rows) {
        ComparisonVerdict::Worse => sentence(&worse),
        ComparisonVerdict::Better => sentence(&better),
        ComparisonVerdict::Different => {
            format!(
                "B is worse in some and better in others. {} {}",
                sentence(&worse),
                sentence(&better)
            )
        }
        ComparisonVerdict::Same => {
            no_difference(&rows_with(ComparisonVerdict::Same), rows)
                + &left_out(rows_with(ComparisonVerdict::Unknown).len(), rows.len())
        }
        ComparisonVerdict::Unknown => {
            let reason = would_not_show(rows);
            let first = rows.first().map_or("", |row| row.because.as_str());
            format!(
                "Could not tell whether A and B differ: {}.",
                reason.as_deref().unwrap_or(first)
            )
        }
    }
}

/// Sentence about rows that could not be judged.
fn left_out(unknown: usize, total: usize) -> String {
    match unknown {
        0 => String::new(),
        1 => format!(" 1 of {total} figures could not be judged."),
        n => format!(" {n} of {total} figures could not be judged."),
    }
}

/// Order of figures in the sentence: of the whole before that of a level, response time before
/// throughput, the median before the tail.
fn rank(row: &ComparisonRow) -> (bool, usize) {
    const ORDER: [&str; 5] = ["p50_ns", "p90_ns", "p99_ns", "throughput_per_s", "error_percent"];
    let place = ORDER.iter().position(|metric| *metric == row.metric);
    (!row.label.is_empty(), place.unwrap_or(ORDER.len()))
}

/// `B is 15 % slower (13 to 17 %): p50 1.15 ms instead of 1 ms, p90 ….`
fn sentence(rows: &[&ComparisonRow]) -> String {
    let mut sorted = rows.to_vec();
    sorted.sort_by_key(|row| rank(row));
    let Some(first) = sorted.first() else {
        return String::new();
    };
    let figures: Vec<String> = sorted.iter().take(FIGURES_MAX).map(|row| instead(row)).collect();
    let more = match sorted.len().saturating_sub(FIGURES_MAX) {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    format!("{}: {}{more}.", headline(first), figures.join(", "))
}

/// ` at vusers=8`, empty for the whole.
pub(super) fn at_label(label: &str) -> String {
    if label.is_empty() {
        return String::new();
    }
    format!(" at {label}")
}

fn headline(row: &ComparisonRow) -> String {
    let at = at_label(&row.label);
    let Some(change) = change(row) else {
        return match row.verdict {
            ComparisonVerdict::Worse => format!("B fails more{at}"),
            _ => format!("B fails less{at}"),
        };
    };
    let grew = row.ratio.is_some_and(|r| r > 1.0);
    match (row.unit.as_str(), grew) {
        ("ns", true) => format!("B is {} slower{at}{}", change.by, change.interval),
        ("ns", false) => format!("B is {} faster{at}{}", change.by, change.interval),
        ("percent", true) => format!("B fails {} more often{at}{}", change.by, change.interval),
        ("percent", false) => format!("B fails {} less often{at}{}", change.by, change.interval),
        (_, true) => format!("B achieves {} more{at}{}", change.by, change.interval),
        (_, false) => format!("B achieves {} less{at}{}", change.by, change.interval),
    }
}

/// Size of a change and its interval, as text.
struct ChangeText {
    by: String,
    interval: String,
}

fn change(row: &ComparisonRow) -> Option<ChangeText> {
    let center = row.ratio?;
    let [low, high] = row.ratio_ci95?;
    if center >= FACTOR {
        return Some(ChangeText {
            by: format!("{} times", ratio(center)),
            interval: format!(" ({} to {} times)", ratio(low), ratio(high)),
        });
    }
    // The nearer bound first, and both counted in the direction of the change.
    let sign = if center >= 1.0 { 1.0 } else { -1.0 };
    let points = |r: f64| (r - 1.0) * 100.0 * sign;
    let (near, far) = if center >= 1.0 { (low, high) } else { (high, low) };
    let whole = |v: f64| percent(v).trim_end_matches(" %").to_owned();
    Some(ChangeText {
        by: percent(points(center)),
        interval: format!(" ({} to {} %)", whole(points(near)), whole(points(far))),
    })
}

/// `p50 1.15 ms instead of 1 ms`
fn instead(row: &ComparisonRow) -> String {
    let at = at_label(&row.label);
    let value = |v: Option<f64>| v.map_or("nothing".to_owned(), |v| figure(&row.unit, v));
    let (a, b) = (value(row.a), value(row.b));
    format!("{}{at} {b} instead of {a}", name(&row.metric))
}

/// Name of a metric for people.
pub fn name(metric: &str) -> String {
    if let Some(row) = statistic(metric) {
        return row.title.to_owned();
    }
    let units = ["_per_s", "_ns", "_percent", "_kib", "_bytes", "_hz"];
    let mut stem = metric;
    while let Some(shorter) = units.iter().find_map(|u| stem.strip_suffix(u)) {
        stem = shorter;
    }
    stem.replace('_', " ")
}

fn figure(unit: &str, value: f64) -> String {
    match unit {
        "ns" => time(value),
        "per_s" => format!("{}/s", number(value)),
        "percent" => percent(value),
        "kib_per_s" => format!("{} KiB/s", number(value)),
        "bytes_per_s" => format!("{} B/s", exact(value.round())),
        "hz" => format!("{} Hz", number(value)),
        _ => number(value),
    }
}

/// Sentence about the regressions that are excluded, of the first figures in order.
fn no_difference(rows: &[&ComparisonRow], all_rows: &[ComparisonRow]) -> String {
    let none = match would_not_show(all_rows) {
        Some(limits) => format!("No difference beyond chance; {limits}."),
        None => "No difference beyond chance.".to_owned(),
    };
    let mut sorted: Vec<&&ComparisonRow> = rows.iter().collect();
    sorted.sort_by_key(|row| rank(row));
    let bounds: Vec<String> = sorted
        .iter()
        .filter_map(|row| {
            let worst = row.regression_excluded_percent?;
            let at = at_label(&row.label);
            Some(format!("over {} in {}{at}", percent(worst), name(&row.metric)))
        })
        .take(FIGURES_MAX)
        .collect();
    if bounds.is_empty() {
        return none;
    }
    format!("{none} With 95 % confidence a regression is excluded {}.", list(&bounds))
}
