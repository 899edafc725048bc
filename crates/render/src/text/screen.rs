//! The first screen of a report: the key figures, the gravest findings in a line each, and the
//! answer last, where a reader looks.

use super::page::{INDENT, TextPage};
use super::plot::Drawing;
use super::{INTERRUPTED, show_answer, show_block};
use crate::document::head::{DocumentHead, severity};
use crate::document::line::{Ink, Line};
use crate::document::table::Table;
use crate::document::{Block, Document, Medium};
use crate::number::{self, plural};
use crate::plot::Plot;
use knee_core::finding::Finding;

/// Findings shown at most.
const FINDINGS_MAX: usize = 5;

/// Reasons for INVALID and for FAILED shown at most, each.
const REASONS_MAX: usize = 2;

/// Rows within the axes of a figure; a figure with fewer would show nothing.
const PLOT_ROWS_MIN: usize = 5;
const PLOT_ROWS_MAX: usize = 12;

/// The least number of rows of a table.
const TABLE_ROWS_MIN: usize = 1;

/// Lays out the first screen of a document in this number of lines.
pub(super) fn laid_out(doc: &Document, lines: usize, empty: &dyn Fn() -> TextPage) -> TextPage {
    let mut end = empty();
    show_end(&mut end, &doc.head);
    let all = doc.findings.as_deref().unwrap_or_default();
    let room = lines.saturating_sub(end.lines() + 1);
    // Sentences of the figures are cut for a second finding, and lines left out only for the first.
    let [wished, most] = [2, 1].map(|findings| {
        let lines = show_findings(empty(), all, findings).lines();
        room.saturating_sub(lines)
    });
    let mut page = show_figures(doc, empty, wished, most);
    let room = room.saturating_sub(page.lines());
    let most = FINDINGS_MAX.min(all.len());
    let fitting = (0..=most).rev().find(|n| show_findings(empty(), all, *n).lines() <= room);
    let mut rest = show_findings(empty(), all, fitting.unwrap_or(0));
    rest.gap();
    page.append(rest);
    page.append(end);
    page
}

/// The blocks of the first screen: in `wished` lines where that leaves none out, or else in at most
/// `most`.
fn show_figures(
    doc: &Document,
    empty: &dyn Fn() -> TextPage,
    wished: usize,
    most: usize,
) -> TextPage {
    let blocks: Vec<&Block> =
        doc.sections.iter().flat_map(|section| section.blocks_for(Medium::Screen)).collect();
    let tables = blocks.iter().filter_map(|block| match block {
        Block::Table(_, table) => Some(table.rows()),
        _ => None,
    });
    let rows_max = tables.max().unwrap_or(TABLE_ROWS_MIN).max(TABLE_ROWS_MIN);
    let figures = |is_tight: bool, rows: usize| {
        let mut page = empty();
        if !doc.head.made.is_empty() {
            page.cut(0, Line::of(Ink::Dim, &doc.head.made));
        }
        let each = blocks.iter();
        each.for_each(|block| show_key(&mut page, block, is_tight, rows));
        page
    };
    // Sentences are cut before rows are left out.
    let tight = (TABLE_ROWS_MIN..=rows_max).rev().map(|rows| figures(true, rows));
    let mut pages = std::iter::once(figures(false, rows_max)).chain(tight);
    let page = pages.find(|page| page.lines() <= wished);
    let mut page = page.unwrap_or_else(|| figures(true, TABLE_ROWS_MIN).begin(most));
    let plots = blocks.into_iter().filter_map(|block| match block {
        Block::Plots(plots, _) => Some(plots),
        _ => None,
    });
    plots.flatten().for_each(|plot| show_plot(&mut page, plot, wished));
    page
}

fn show_key(page: &mut TextPage, block: &Block, is_tight: bool, rows: usize) {
    match block {
        Block::Plots(..) => {}
        Block::Table(_, table) => {
            page.gap();
            show_table(page, table, rows);
        }
        Block::Paragraph(line) if is_tight => page.cut(INDENT, line.clone()),
        Block::List(lines) => lines.iter().for_each(|line| page.cut(INDENT, line.clone())),
        other => show_block(page, other),
    }
}

/// A table with at most this number of rows.
fn show_table(page: &mut TextPage, table: &Table, rows: usize) {
    page.table(&table.with_rows(|row| row < rows));
    let more = table.rows().saturating_sub(rows);
    if more > 0 {
        let more = format!("and {}", plural(more as u64, "more row"));
        page.cut(INDENT, Line::of(Ink::Dim, more));
    }
}

/// A figure, where at least its smallest form fits.
fn show_plot(page: &mut TextPage, plot: &Plot, room: usize) {
    let drawing = Drawing::of(plot, page.unicode);
    let lines = |rows| drawing.laid_out(page.inner_width(), rows);
    // One more for the gap.
    let left = room.saturating_sub(page.lines() + 1);
    let rows = (PLOT_ROWS_MIN..=PLOT_ROWS_MAX).rev();
    if let Some(lines) = rows.map(lines).find(|lines| lines.len() <= left) {
        page.gap();
        page.block(lines);
    }
}

/// The gravest findings, a line each, and what `--full` has beyond them.
fn show_findings(mut page: TextPage, all: &[Finding], shown: usize) -> TextPage {
    page.blank();
    for finding in all.iter().take(shown) {
        let (mark, ink, _) = severity(finding.severity);
        let line = Line::of(ink, format!("{mark}{}", number::TIE));
        page.cut(INDENT, line.with(Ink::Plain, &finding.text));
    }
    let more = all.len().saturating_sub(shown);
    let text = if more > 0 {
        format!("{}, and all figures: --full", plural(more as u64, "more finding"))
    } else {
        "all figures, evidence and what to do next: --full".to_owned()
    };
    page.cut(INDENT, Line::of(Ink::Dim, text));
    page
}

/// The reasons for INVALID and FAILED, and the answer.
fn show_end(page: &mut TextPage, head: &DocumentHead) {
    for (word, reasons) in &head.reasons {
        for reason in reasons.iter().take(REASONS_MAX) {
            page.cut(INDENT, Line::of(Ink::Bad, format!("- {word}: {reason}")));
        }
        let more = reasons.len().saturating_sub(REASONS_MAX);
        if more > 0 {
            let more = format!("- {word}: and {}", plural(more as u64, "more reason"));
            page.cut(INDENT, Line::of(Ink::Bad, more));
        }
    }
    if head.interrupted {
        page.cut(0, Line::of(Ink::Warn, INTERRUPTED));
    }
    show_answer(page, head);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Documented;
    use crate::fixtures;

    #[test]
    fn second_finding_leaves_no_figure_out() {
        let mut doc = fixtures::run_errors().document();
        let finding = doc.findings.as_ref().unwrap()[0].clone();
        let mut has_outcomes = |lines: usize, findings: usize| {
            doc.findings = Some(vec![finding.clone(); findings]);
            let mut bytes = Vec::new();
            laid_out(&doc, lines, &|| TextPage::new(80, true)).write(false, &mut bytes).unwrap();
            let text = String::from_utf8(bytes).unwrap();
            assert!(text.lines().count() <= lines, "{lines}:\n{text}");
            text.contains("  outcomes ")
        };
        let shown: Vec<bool> = (8..=24).map(|lines| has_outcomes(lines, 1)).collect();
        assert!(shown.contains(&true) && shown.contains(&false), "{shown:?}");
        assert_eq!(shown, Vec::from_iter((8..=24).map(|lines| has_outcomes(lines, 2))));
    }
}
