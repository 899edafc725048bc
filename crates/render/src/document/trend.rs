//! Figures over many runs, and where they changed.

use super::compare::{figure, ink, metric_at, verdict_word};
use super::head::DocumentHead;
use super::line::{Ink, Line};
use super::table::TableOf;
use super::{Document, Layout, Medium, fact};
use crate::number::{count, percent, plural};
use crate::plot::{Mark, Plot, PlotSeries, Point, Reference, Scale, Tone, Unit};
use knee_core::compare::report::{ComparisonVerdict, TrendChange, TrendReport, TrendRow};

/// The head of the document.
pub(super) fn head(trend: &TrendReport) -> DocumentHead {
    let [first, last] = [trend.runs.first(), trend.runs.last()];
    let ends = first.zip(last).map(|(first, last)| {
        let [from, to] = [first, last].map(|run| format!("{} ({})", run.name, run.started_at));
        fact("runs", format!("{from} to {to}"))
    });
    let left_out = [
        (trend.invalid_left_out, "INVALID"),
        (trend.unlike_left_out, "made with other options, on another machine or version"),
    ];
    let left_out = left_out.iter().filter(|(runs, _)| *runs > 0);
    let left_out: Vec<String> =
        left_out.map(|(runs, why)| format!("{} {why}", count(*runs))).collect();
    let left_out = (!left_out.is_empty()).then(|| fact("left out", left_out.join(", ")));
    DocumentHead {
        title: format!("knee history trend: {}", trend.command),
        answer: answer(trend),
        facts: ends.into_iter().chain(left_out).collect(),
        ..DocumentHead::default()
    }
}

/// The latest change of each figure, in a sentence.
fn answer(trend: &TrendReport) -> String {
    let latest = trend.rows.iter().filter_map(|row| {
        let change = row.changes.last()?;
        Some(format!("{} {} since run {}", name(row), size(change), change.first_run))
    });
    let latest: Vec<String> = latest.collect();
    let runs = plural(trend.runs.len() as u64, "run");
    match latest.as_slice() {
        [] => format!("No figure changed in {runs}"),
        latest => format!("In {runs}: {}", latest.join(", ")),
    }
}

/// Adds everything below the head.
pub(super) fn show(doc: &mut Document, trend: &TrendReport) {
    doc.section("Figures", "geometric means between changes");
    let plots = trend.rows.iter().filter_map(|row| plot(row, trend));
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    let rows: Vec<(&TrendRow, Option<&TrendChange>)> = trend
        .rows
        .iter()
        .flat_map(|row| {
            let changes = row.changes.iter().map(move |change| (row, Some(change)));
            changes.chain(row.changes.is_empty().then_some((row, None)))
        })
        .collect();
    let mut table = TableOf::new(&rows);
    table.left("", |(row, _)| name(row));
    table.right("before", |(row, change)| {
        let before = change.map_or(row.mean, |change| Some(change.before));
        figure(&row.unit, before)
    });
    table.right("after", |(row, change)| {
        change.map_or(String::new(), |change| figure(&row.unit, Some(change.after)))
    });
    table.right("change", |(_, change)| change.map_or(String::new(), size));
    table.left("since run", |(_, change)| {
        change.map_or("no change".to_owned(), |change| change.first_run.clone())
    });
    table.left("is", |(_, change)| match change {
        Some(change) => Line::of(ink(change.verdict), word(change)),
        None => Line::of(Ink::Dim, ""),
    });
    doc.table("Changes", table.done());
    let reasons = rows.iter().filter_map(|(row, change)| {
        let change = change.filter(|change| !change.because.is_empty())?;
        Some(Line::plain(format!(
            "{} since run {}: {}",
            name(row),
            change.first_run,
            change.because
        )))
    });
    let reasons: Vec<Line> = reasons.collect();
    if !reasons.is_empty() {
        doc.section("Not judged", "");
        doc.list(reasons);
    }
}

fn name(row: &TrendRow) -> String {
    metric_at(&row.metric, &row.label)
}

/// `+28 %`
fn size(change: &TrendChange) -> String {
    let sign = if change.change_percent > 0.0 { "+" } else { "−" };
    format!("{sign}{}", percent(change.change_percent.abs()))
}

fn word(change: &TrendChange) -> &'static str {
    match change.verdict {
        ComparisonVerdict::Same => "alike",
        ComparisonVerdict::Unknown => "not judged",
        verdict => verdict_word(verdict),
    }
}

/// The values of all runs, and the means between changes.
fn plot(row: &TrendRow, trend: &TrendReport) -> Option<Plot> {
    let unit = match row.unit.as_str() {
        "ns" => Unit::Time,
        "per_s" => Unit::PerS,
        _ => Unit::Number,
    };
    let values = row.values.iter().enumerate();
    let points: Vec<Point> =
        values.filter_map(|(at, value)| Some(Point::new(at as f64 + 1.0, (*value)?))).collect();
    let last = points.last()?.x;
    let y = Scale::fitting(points.iter().map(|point| point.y), unit, name(row));
    let x = Scale::linear(0.5, last + 0.5, Unit::Count, "run");
    let starts = row.changes.iter().map(|change| (change.at as f64 + 1.0, change.after));
    let first = row.changes.first().map_or(row.mean, |change| Some(change.before));
    let levels = first.map(|level| (1.0, level)).into_iter().chain(starts);
    let mut means: Vec<Point> = levels.map(|(at, level)| Point::new(at - 0.5, level)).collect();
    means.extend(means.last().map(|level| Point::new(last + 0.5, level.y)));
    let changes = row.changes.iter().map(|change| {
        let tone = match change.verdict {
            ComparisonVerdict::Worse => Tone::Bad,
            ComparisonVerdict::Better => Tone::Third,
            _ => Tone::Muted,
        };
        Reference::x(change.at as f64 + 0.5, size(change)).toned(tone)
    });
    let runs = plural(trend.runs.len() as u64, "run");
    let mut plot = Plot::new(name(row), x, y)
        .described(format!("{} in {runs}; lines are means between changes", name(row)))
        .with(PlotSeries::marks("runs", points).marked(Mark::Dot))
        .with(PlotSeries::step("mean", means).toned(Tone::Second));
    plot.references.extend(changes);
    Some(plot)
}
