//! A comparison: what differs beyond chance first, then all that was compared.

use super::line::{Ink, Line};
use super::page::{INDENT, Page};
use super::table::{Align, Table};
use crate::compared::{figure, interval, metric, probability, ratio, smallest, verdict_word};
use knee_core::compare::report::{ComparedSide, Comparison, ComparisonRow, ComparisonVerdict};
use knee_core::trial::report::Verdict;

/// Writes it.
pub fn show(page: &mut Page, comparison: &Comparison) {
    let mut line = Line::of(ink(comparison.verdict), heading(comparison.verdict));
    line.push(Ink::Plain, "  ");
    let hang = line.width();
    line.push(Ink::Strong, comparison.answer.as_str());
    page.paragraph(0, hang, line);
    page.facts(vec![
        ("A".to_owned(), side(&comparison.a)),
        ("B".to_owned(), side(&comparison.b)),
    ]);
    if !comparison.warnings.is_empty() {
        page.heading("Read with care", "");
        for warning in &comparison.warnings {
            let line = Line::of(Ink::Warn, "! ").with(Ink::Plain, warning.as_str());
            page.paragraph(INDENT, INDENT + 2, line);
        }
    }
    show_rows(page, comparison);
    show_unknown(page, &comparison.rows);
}

/// The verdict before the answer.
pub fn heading(verdict: ComparisonVerdict) -> String {
    match verdict {
        ComparisonVerdict::Same => "ALIKE".to_owned(),
        verdict => verdict_word(verdict).to_uppercase(),
    }
}

/// The colour of a verdict.
pub fn ink(verdict: ComparisonVerdict) -> Ink {
    match verdict {
        ComparisonVerdict::Better => Ink::Good,
        ComparisonVerdict::Worse => Ink::Bad,
        ComparisonVerdict::Different | ComparisonVerdict::Unknown => Ink::Warn,
        ComparisonVerdict::Same => Ink::Plain,
    }
}

/// The reports of a side: what of them is alike is told once.
pub fn side(side: &ComparedSide) -> Line {
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

fn show_rows(page: &mut Page, comparison: &Comparison) {
    page.heading("Compared", "B against A");
    page.table(&table(&comparison.rows, page.unicode));
    page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, note(comparison)));
}

/// All rows.
pub fn table(rows: &[ComparisonRow], unicode: bool) -> Table {
    let mut table = Table::default();
    let mut column = |title: &str, align: Align, cell: &dyn Fn(&ComparisonRow) -> Line| {
        table.column(title, align, rows.iter().map(cell).collect());
    };
    let dim = |text: String| Line::of(Ink::Dim, text);
    column("", Align::Left, &|r| Line::plain(metric(r)));
    column("A", Align::Right, &|r| Line::plain(figure(&r.unit, r.a)));
    column("B", Align::Right, &|r| Line::plain(figure(&r.unit, r.b)));
    let times = if unicode { "×" } else { "x" };
    column("B/A", Align::Right, &|r| match r.ratio {
        Some(of) => Line::plain(format!("{times}{}", ratio(of))),
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
pub fn note(comparison: &Comparison) -> String {
    format!(
        "95 %: confidence interval of B/A, with what runs of the same differ by; could see: the \
         smallest change that would have counted as different here; p: the \
         probability of as much between equals. A row counts as different where that stands among \
         all rows: equals are called different in fewer than {} % of comparisons",
        comparison.false_alarms_percent
    )
}

/// Why nothing can be said of some rows, each reason once with what it is of.
pub fn not_judged(rows: &[ComparisonRow]) -> Vec<(&str, Vec<String>)> {
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

fn show_unknown(page: &mut Page, rows: &[ComparisonRow]) {
    let reasons = not_judged(rows);
    if reasons.is_empty() {
        return;
    }
    page.heading("Not judged", "");
    for (reason, metrics) in reasons {
        let line = Line::plain(format!("{}: ", metrics.join(", "))).with(Ink::Dim, reason);
        page.paragraph(INDENT, INDENT + 2, line);
    }
}
