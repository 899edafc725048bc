//! A comparison: what differs beyond chance first, then all that was compared.

mod words;

use crate::axis::span;
use crate::document::line::{Ink, Line};
use crate::document::opening::Opening;
use crate::document::table::{Align, Table};
use crate::document::{Document, Layout, Medium, fact};
use crate::plot::{Plot, Point, Reference, Scale, Series, Tone, Unit};
use knee_core::compare::report::{ComparedSide, Comparison, ComparisonRow, ComparisonVerdict};
use knee_core::trial::report::Verdict;
use words::{figure, interval, metric, probability, ratio, smallest, verdict_word};

/// Its head.
pub(crate) fn opening(comparison: &Comparison) -> Opening {
    let verdict = comparison.verdict;
    Opening {
        title: title(comparison),
        words: vec![(ink(verdict), heading(verdict))],
        answer: comparison.answer.clone(),
        facts: vec![
            fact("A", side(&comparison.a)),
            fact("B", side(&comparison.b)),
        ],
        ..Opening::default()
    }
}

/// The title of its page.
fn title(comparison: &Comparison) -> String {
    let names = |side: &knee_core::compare::report::ComparedSide| {
        let names: Vec<&str> = side.runs.iter().map(|r| r.name.as_str()).collect();
        names.join(", ")
    };
    format!(
        "knee compare: {} against {}",
        names(&comparison.b),
        names(&comparison.a)
    )
}

/// Adds the rest.
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
    let reasons = not_judged(&comparison.rows);
    if !reasons.is_empty() {
        doc.section("Not judged", "");
        let line = |(reason, metrics): (&str, Vec<String>)| {
            Line::plain(format!("{}: ", metrics.join(", "))).with(Ink::Dim, reason)
        };
        doc.list(reasons.into_iter().map(line).collect());
    }
    doc.only(Medium::Page, |doc| {
        doc.note(format!("knee {}", comparison.knee_version))
    });
}

/// The verdict before the answer.
fn heading(verdict: ComparisonVerdict) -> String {
    match verdict {
        ComparisonVerdict::Same => "ALIKE".to_owned(),
        verdict => verdict_word(verdict).to_uppercase(),
    }
}

/// The colour of a verdict.
fn ink(verdict: ComparisonVerdict) -> Ink {
    match verdict {
        ComparisonVerdict::Better => Ink::Good,
        ComparisonVerdict::Worse => Ink::Bad,
        ComparisonVerdict::Different | ComparisonVerdict::Unknown => Ink::Warn,
        ComparisonVerdict::Same => Ink::Plain,
    }
}

/// The reports of a side: what of them is alike is told once.
fn side(side: &ComparedSide) -> Line {
    let mut line = Line::new();
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
        let text = format!(
            " (knee {}{space}{}, {})",
            first.command, first.target, first.started_at
        );
        line.push(Ink::Dim, text);
    }
    line
}

/// All rows.
fn table(rows: &[ComparisonRow]) -> Table {
    let mut table = Table::default();
    let mut column = |title: &str, align: Align, cell: &dyn Fn(&ComparisonRow) -> Line| {
        table.column(title, align, rows.iter().map(cell).collect());
    };
    let dim = |text: String| Line::of(Ink::Dim, text);
    column("", Align::Left, &|r| Line::plain(metric(r)));
    column("A", Align::Right, &|r| Line::plain(figure(&r.unit, r.a)));
    column("B", Align::Right, &|r| Line::plain(figure(&r.unit, r.b)));
    column("B/A", Align::Right, &|r| match r.ratio {
        Some(of) => Line::plain(format!("×{}", ratio(of))),
        None => dim(crate::number::MISSING.to_owned()),
    });
    column("95 %", Align::Right, &|r| dim(interval(r.ratio_ci95)));
    column("could see", Align::Right, &|r| {
        dim(smallest(r.p_value.and(r.smallest_seen_percent)))
    });
    column("p", Align::Right, &|r| dim(probability(r.p_value)));
    column("B is", Align::Left, &|r| {
        Line::of(ink(r.verdict), verdict_word(r.verdict))
    });
    table
}

/// What the columns mean.
fn note(comparison: &Comparison) -> String {
    format!(
        "95 %: confidence interval of B/A, with what runs of the same differ by; could see: the \
         smallest change that would have counted as different here; p: the \
         probability of as much between equals. A row counts as different where that stands among \
         all rows: equals are called different in fewer than {} % of comparisons",
        comparison.false_alarms_percent
    )
}

/// Why nothing can be said of some rows, each reason once with what it is of.
fn not_judged(rows: &[ComparisonRow]) -> Vec<(&str, Vec<String>)> {
    let unknown = rows
        .iter()
        .filter(|r| r.verdict == ComparisonVerdict::Unknown);
    let mut reasons: Vec<(&str, Vec<String>)> = Vec::new();
    for row in unknown {
        match reasons
            .iter_mut()
            .find(|(reason, _)| *reason == row.because)
        {
            Some((_, metrics)) => metrics.push(metric(row)),
            None => reasons.push((&row.because, vec![metric(row)])),
        }
    }
    reasons
}

/// A figure of more rows than this is no longer seen at a glance.
const NAMES_MAX: usize = 16;

/// Height of one row, in CSS pixels.
const ROW_PX: u32 = 28;

/// The ratios with their intervals: those of the whole beside each other, those of levels over the
/// levels, metric by metric.
fn plots(rows: &[ComparisonRow]) -> Vec<Plot> {
    let with_interval = || rows.iter().filter(|r| r.ratio_ci95.is_some());
    let whole: Vec<(String, &ComparisonRow)> = with_interval()
        .filter(|r| r.label.is_empty())
        .map(|r| (metric(r), r))
        .collect();
    let mut plots: Vec<Plot> = plot("B/A", &whole).into_iter().collect();
    let mut metrics: Vec<&str> = Vec::new();
    for row in with_interval().filter(|r| !r.label.is_empty()) {
        if !metrics.contains(&row.metric.as_str()) {
            metrics.push(&row.metric);
        }
    }
    for name in metrics {
        let of_levels = with_interval().filter(|r| !r.label.is_empty() && r.metric == name);
        let of_levels: Vec<(String, &ComparisonRow)> =
            of_levels.map(|r| (r.label.clone(), r)).collect();
        let Some((_, first)) = of_levels.first() else {
            continue;
        };
        let bare = ComparisonRow {
            label: String::new(),
            ..(*first).clone()
        };
        plots.extend(plot(&format!("B/A in {}", metric(&bare)), &of_levels));
    }
    plots
}

fn plot(title: &str, rows: &[(String, &ComparisonRow)]) -> Option<Plot> {
    if rows.is_empty() || rows.len() > NAMES_MAX {
        return None;
    }
    let bounds = rows.iter().filter_map(|(_, r)| r.ratio_ci95).flatten();
    let [low, high] = span(bounds.chain([0.9, 1.1]))?;
    let x = Scale::logarithmic(low / 1.02, high * 1.02, Unit::Number, "B/A");
    let y = Scale::categories(rows.iter().map(|(name, _)| name.clone()).collect(), "");
    let points = |is_found: bool| -> Vec<Point> {
        let numbered = (0..).zip(rows);
        let such = numbered.filter(|(_, (_, r))| r.significant == is_found);
        such.map(|(i, (_, r))| Point::with(r.ratio.unwrap_or(f64::NAN), f64::from(i), r.ratio_ci95))
            .collect()
    };
    let mut plot = Plot::new(title, x, y)
        .described("The ratio of B to A with its 95 % confidence interval; 1 is no difference.")
        .against(Reference::Vertical {
            x: 1.0,
            label: "no difference".to_owned(),
            tone: Tone::Muted,
            range: None,
        });
    plot.height = ROW_PX * rows.len() as u32;
    let kinds = [
        ("differs", Tone::Second, points(true)),
        ("within chance", Tone::First, points(false)),
    ];
    for (name, tone, points) in kinds {
        if !points.is_empty() {
            plot = plot.with(Series::points(name, points).toned(tone));
        }
    }
    Some(plot)
}
