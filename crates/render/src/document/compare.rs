//! A comparison: what differs beyond chance first, then all that was compared.

use super::head::DocumentHead;
use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::{Document, Layout, Medium, fact, grouped};
use crate::number::{MISSING, TIE, bytes, known, number, percent, rate, time};
use crate::plot::{Plot, PlotSeries, Point, Reference, Scale, Tone, Unit, span};
use knee_core::compare::metric_name;
use knee_core::compare::report::{ComparedSide, Comparison, ComparisonRow, ComparisonVerdict};
use knee_core::trial::report::Verdict;

/// The head of the document.
pub(crate) fn head(comparison: &Comparison) -> DocumentHead {
    let verdict = comparison.verdict;
    DocumentHead {
        title: title(comparison),
        words: vec![(ink(verdict), heading(verdict))],
        answer: comparison.answer.clone(),
        facts: vec![fact("A", side(&comparison.a)), fact("B", side(&comparison.b))],
        ..DocumentHead::default()
    }
}

/// The title of the page.
fn title(comparison: &Comparison) -> String {
    let names = |side: &ComparedSide| {
        let names: Vec<&str> = side.runs.iter().map(|r| r.name.as_str()).collect();
        names.join(", ")
    };
    format!("knee compare: {} against {}", names(&comparison.b), names(&comparison.a))
}

/// Adds everything below the head.
pub(crate) fn show(doc: &mut Document, comparison: &Comparison) {
    if !comparison.warnings.is_empty() {
        doc.section("Read with care", "");
        let warning = |text: &String| Line::of(Ink::Warn, "! ").with(Ink::Plain, text.as_str());
        doc.list(comparison.warnings.iter().map(warning).collect());
    }
    doc.section("Compared", "B against A");
    let plots = plots(&comparison.rows);
    doc.only(Medium::Page, |doc| doc.plots(plots, Layout::Pairs));
    doc.table("B against A", table(&comparison.rows));
    doc.note(note(comparison));
    if !comparison.stage_changes.is_empty() {
        doc.section("What the difference is made of", "");
        let changes = comparison.stage_changes.iter();
        doc.list(changes.map(|c| Line::plain(c.text.as_str())).collect());
    }
    let rows = comparison.rows.iter();
    let unknown = rows.filter(|row| row.verdict == ComparisonVerdict::Unknown);
    let reasons = grouped(unknown.map(|row| (row.because.as_str(), metric(row))));
    if !reasons.is_empty() {
        doc.section("Not judged", "");
        let line = |(reason, metrics): (&str, Vec<String>)| {
            Line::plain(format!("{}: ", metrics.join(", "))).with(Ink::Dim, reason)
        };
        doc.list(reasons.into_iter().map(line).collect());
    }
    doc.only(Medium::Page, |doc| doc.note(format!("knee {}", comparison.knee_version)));
}

/// The verdict before the answer.
fn heading(verdict: ComparisonVerdict) -> String {
    match verdict {
        ComparisonVerdict::Same => "ALIKE".to_owned(),
        verdict => verdict_word(verdict).to_uppercase(),
    }
}

/// The colour of a verdict.
pub(super) fn ink(verdict: ComparisonVerdict) -> Ink {
    match verdict {
        ComparisonVerdict::Better => Ink::Good,
        ComparisonVerdict::Worse => Ink::Bad,
        ComparisonVerdict::Different | ComparisonVerdict::Unknown => Ink::Warn,
        ComparisonVerdict::Same => Ink::Plain,
    }
}

/// The runs of a side. Command, target and date are those of the first.
fn side(side: &ComparedSide) -> Line {
    let mut line = Line::default();
    for (i, run) in side.runs.iter().enumerate() {
        if i > 0 {
            line.push(Ink::Plain, ", ");
        }
        line.push(Ink::Strong, run.name.as_str());
        if run.verdict == Verdict::Invalid {
            line.push(Ink::Bad, " INVALID");
        }
    }
    if let Some(first) = side.runs.first() {
        let space = if first.target.is_empty() { "" } else { " " };
        let text =
            format!(" (knee {}{space}{}, {})", first.command, first.target, first.started_at);
        line.push(Ink::Dim, text);
    }
    line
}

fn table(rows: &[ComparisonRow]) -> Table {
    let dim = |text: String| Line::of(Ink::Dim, text);
    let mut table = TableOf::new(rows);
    table.left("", metric);
    table.right("A", |r| figure(&r.unit, r.a));
    table.right("B", |r| figure(&r.unit, r.b));
    table.right("B/A", |r| match r.ratio {
        Some(b_over_a) => Line::plain(format!("×{}", ratio(b_over_a))),
        None => dim(MISSING.to_owned()),
    });
    table.right("95 %", |r| {
        dim(known(r.ratio_ci95, |[low, high]| format!("{}–{}", ratio(low), ratio(high))))
    });
    let smallest = |r: &ComparisonRow| known(r.p_value.and(r.smallest_seen_percent), percent);
    table.right("could see", |r| dim(smallest(r)));
    table.right("p", |r| dim(known(r.p_value, probability)));
    table.left("B is", |r| Line::of(ink(r.verdict), verdict_word(r.verdict)));
    table.done()
}

/// The legend of the table.
fn note(comparison: &Comparison) -> String {
    format!(
        "95 %: confidence interval of B/A; it includes the usual variation between runs; could see: the \
         smallest change that would have counted as different here; p: the \
         probability of as much between equals. A row counts as different where that stands among \
         all rows: equals are called different in fewer than {} % of comparisons",
        comparison.false_alarms_percent
    )
}

/// Rows of a figure; one with more rows is left out.
const NAMES_MAX: usize = 16;

/// Height of one row, in CSS pixels.
const ROW_PX: u32 = 28;

/// The ratios with their intervals: one figure for the whole, and one over the levels for each
/// metric.
fn plots(rows: &[ComparisonRow]) -> Vec<Plot> {
    let known: Vec<&ComparisonRow> = rows.iter().filter(|r| r.ratio_ci95.is_some()).collect();
    let (whole, levels): (Vec<_>, Vec<_>) = known.into_iter().partition(|r| r.label.is_empty());
    let mut plots = Vec::from_iter(plot("B/A", &whole, metric));
    for (name, rows) in grouped(levels.into_iter().map(|row| (row.metric.as_str(), row))) {
        let title = format!("B/A in {}", metric_name(name));
        plots.extend(plot(&title, &rows, |r| r.label.clone()));
    }
    plots
}

fn plot(title: &str, rows: &[&ComparisonRow], name: fn(&ComparisonRow) -> String) -> Option<Plot> {
    if rows.is_empty() || rows.len() > NAMES_MAX {
        return None;
    }
    let bounds = rows.iter().filter_map(|r| r.ratio_ci95).flatten();
    let [low, high] = span(bounds.chain([0.9, 1.1]))?;
    let x = Scale::logarithmic(low / 1.02, high * 1.02, Unit::Number, "B/A");
    let points = |is_significant: bool| -> Vec<Point> {
        let rows = (0..).zip(rows).filter(|(_, r)| r.significant == is_significant);
        rows.map(|(i, r)| Point::with(r.ratio.unwrap_or(f64::NAN), f64::from(i), r.ratio_ci95))
            .collect()
    };
    let names = rows.iter().map(|row| name(row));
    let plot = Plot::of_rows(title, x, names, ROW_PX)
        .described("The ratio of B to A with its 95 % confidence interval; 1 is no difference.")
        .against(Reference::x(1.0, "no difference"))
        .with_any(PlotSeries::marks("differs", points(true)).toned(Tone::Second))
        .with_any(PlotSeries::marks("within chance", points(false)));
    Some(plot)
}

fn metric(row: &ComparisonRow) -> String {
    metric_at(&row.metric, &row.label)
}

/// The name of a metric with its level, if any: `p90 at vusers=8`.
pub(super) fn metric_at(metric: &str, level: &str) -> String {
    let name = metric_name(metric);
    if level.is_empty() { name } else { format!("{name} at {level}") }
}

/// A value with its unit.
pub(super) fn figure(unit: &str, value: Option<f64>) -> String {
    let Some(value) = value else {
        return MISSING.to_owned();
    };
    match unit {
        "ns" => time(value.max(0.0).round() as u64),
        "per_s" => rate(value),
        "percent" => percent(value),
        "kib_per_s" => format!("{}{TIE}KiB/s", number(value)),
        "bytes_per_s" => format!("{}/s", bytes(value.max(0.0).round() as u64)),
        "hz" => format!("{}{TIE}Hz", number(value)),
        _ => number(value),
    }
}

/// Two digits after the point, more significant ones where that is next to nothing.
fn ratio(value: f64) -> String {
    if (0.1..100.0).contains(&value) { format!("{value:.2}") } else { number(value) }
}

/// `0.03`, `<0.001`
fn probability(p: f64) -> String {
    match p {
        p if p < 0.001 => "<0.001".to_owned(),
        p if p < 0.1 => format!("{p:.3}"),
        p => format!("{p:.2}"),
    }
}

/// The verdict on B as a word.
pub(super) fn verdict_word(verdict: ComparisonVerdict) -> &'static str {
    match verdict {
        ComparisonVerdict::Better => "better",
        ComparisonVerdict::Worse => "worse",
        ComparisonVerdict::Different => "different",
        ComparisonVerdict::Same => "within chance",
        ComparisonVerdict::Unknown => "unknown",
    }
}
