//! The first screen of a report: the key figures, the gravest findings, and the answer last, where a
//! reader looks. Findings and reasons are whole.
//!
//! The gravest finding is whole; rows of tables give way to it, then sentences. Further findings
//! and plots take what is left. `--full` writes all.

use super::page::{INDENT, TextPage};
use super::plot::Drawing;
use super::{INTERRUPTED, show_answer, show_block};
use crate::document::head::{DocumentHead, severity};
use crate::document::line::{Ink, Line};
use crate::document::table::Table;
use crate::document::{Block, Document, Medium};
use crate::number::{TIE, plural};
use crate::plot::Plot;
use knee_core::finding::Finding;

/// Findings shown at most.
const FINDINGS_MAX: usize = 3;

/// Reasons for INVALID and for FAILED shown at most, each.
const REASONS_MAX: usize = 2;

/// Rows within the axes of a figure; a figure with fewer would show nothing.
const PLOT_ROWS_MIN: usize = 5;
const PLOT_ROWS_MAX: usize = 12;

/// The least number of rows of a table.
const TABLE_ROWS_MIN: usize = 1;

/// Lays out the first screen of a document in this number of lines; `whole` is the command that
/// shows all of it.
pub(super) fn laid_out(
    doc: &Document,
    lines: usize,
    whole: &str,
    empty: &dyn Fn() -> TextPage,
) -> TextPage {
    let mut end = empty();
    show_end(&mut end, &doc.head);
    let findings = doc.findings.as_deref().unwrap_or_default();
    let room = lines.saturating_sub(end.lines() + 1);
    let findings_page = |shown| show_findings(empty(), findings, shown, whole);
    let left_by = |shown| room.saturating_sub(findings_page(shown).lines());
    // The gravest finding is shown whole: figures give way to it, plots to all that are shown.
    let most = FINDINGS_MAX.min(findings.len());
    let mut page = show_figures(doc, empty, left_by(most.min(1)), left_by(most));
    let left = room.saturating_sub(page.lines());
    let fitting = (0..=most).rev().find(|shown| findings_page(*shown).lines() <= left);
    let mut rest = findings_page(fitting.unwrap_or(0));
    rest.gap();
    page.append(rest);
    page.append(end);
    page
}

/// The blocks of the first screen in at most `room` lines. Where they have more, rows of tables are
/// left out, then sentences. Plots are added where `room_with_plots` has room for them.
fn show_figures(
    doc: &Document,
    empty: &dyn Fn() -> TextPage,
    room: usize,
    room_with_plots: usize,
) -> TextPage {
    let blocks: Vec<&Block> =
        doc.sections.iter().flat_map(|section| section.blocks_for(Medium::Screen)).collect();
    let tables = blocks.iter().filter_map(|block| match block {
        Block::Table(_, table) => Some(table.rows()),
        _ => None,
    });
    let rows_max = tables.max().unwrap_or(TABLE_ROWS_MIN).max(TABLE_ROWS_MIN);
    let figures = |has_sentences: bool, rows: usize| {
        let mut page = empty();
        if !doc.head.made.is_empty() {
            page.cut(0, Line::of(Ink::Dim, &doc.head.made));
        }
        let is_shown = |block: &&&Block| has_sentences || !matches!(block, Block::Paragraph(_));
        blocks.iter().filter(is_shown).for_each(|block| show_key(&mut page, block, rows));
        page
    };
    let mut pages = (TABLE_ROWS_MIN..=rows_max).rev().map(|rows| figures(true, rows));
    let page = pages.find(|page| page.lines() <= room);
    let mut page = page.unwrap_or_else(|| figures(false, TABLE_ROWS_MIN).begin(room));
    let plots = blocks.into_iter().filter_map(|block| match block {
        Block::Plots(plots, _) => Some(plots),
        _ => None,
    });
    plots.flatten().for_each(|plot| show_plot(&mut page, plot, room_with_plots));
    page
}

fn show_key(page: &mut TextPage, block: &Block, rows: usize) {
    match block {
        Block::Plots(..) => {}
        Block::Table(_, table) => {
            page.gap();
            show_table(page, table, rows);
        }
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

/// The gravest findings, and the command that shows the rest.
fn show_findings(mut page: TextPage, findings: &[Finding], shown: usize, whole: &str) -> TextPage {
    page.blank();
    for finding in findings.iter().take(shown) {
        let (mark, ink, _) = severity(finding.severity);
        let line = Line::of(ink, format!("{mark}{TIE}"));
        page.paragraph(INDENT, INDENT + 2, line.with(Ink::Plain, &finding.text));
    }
    let remainder = match findings.len().saturating_sub(shown) {
        0 => "all figures, evidence and what to do next".to_owned(),
        more if shown > 0 => format!("and {more} more"),
        more => plural(more as u64, "finding"),
    };
    // The command stands in one line.
    let whole = whole.replace(' ', &TIE.to_string());
    page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, format!("{remainder}: {whole}")));
    page
}

/// The reasons for INVALID and FAILED, and the answer.
fn show_end(page: &mut TextPage, head: &DocumentHead) {
    for (word, reasons) in &head.reasons {
        let more = reasons.len().saturating_sub(REASONS_MAX);
        let rest = (more > 0).then(|| format!("and {}", plural(more as u64, "more reason")));
        for reason in reasons.iter().take(REASONS_MAX).chain(&rest) {
            let line = Line::of(Ink::Bad, format!("- {word}: {reason}"));
            page.paragraph(INDENT, INDENT + 2, line);
        }
    }
    if head.interrupted {
        page.paragraph(0, 0, Line::of(Ink::Warn, INTERRUPTED));
    }
    show_answer(page, head);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Documented;
    use crate::fixtures;

    fn shown(doc: &Document, lines: usize) -> String {
        let mut bytes = Vec::new();
        let whole = "knee history show 67 --full";
        let page = laid_out(doc, lines, whole, &|| TextPage::new(80, true));
        page.write(false, &mut bytes).unwrap();
        String::from_utf8(bytes).unwrap()
    }

    #[test]
    fn gravest_finding_is_whole_and_figures_give_way() {
        let mut doc = fixtures::run_errors().document();
        let mut finding = doc.findings.as_ref().unwrap()[0].clone();
        finding.text = "word ".repeat(40) + "end";
        let has_outcomes = |doc: &Document, lines: usize| shown(doc, lines).contains("  outcomes ");
        for findings in 1..=5 {
            doc.findings = Some(vec![finding.clone(); findings]);
            for lines in 12..=40 {
                let text = shown(&doc, lines);
                assert!(text.lines().count() <= lines, "{lines}:\n{text}");
                let whole = text.matches("word end\n").count();
                assert!((1..=3).contains(&whole), "{lines}:\n{text}");
                let rest = match findings - whole {
                    0 => "what to do next: knee history show 67 --full".to_owned(),
                    more => format!("and {more} more: knee history show 67 --full"),
                };
                assert!(text.contains(&rest), "{lines}:\n{text}");
                assert!(!text.contains('…'), "{lines}:\n{text}");
            }
        }
        // Further findings are shown where they leave no figure out.
        let shown: Vec<bool> = (10..=24).map(|lines| has_outcomes(&doc, lines)).collect();
        doc.findings = Some(vec![finding]);
        assert!(shown.contains(&true) && shown.contains(&false), "{shown:?}");
        assert_eq!(shown, Vec::from_iter((10..=24).map(|lines| has_outcomes(&doc, lines))));
    }

    #[test]
    fn long_reasons_are_whole() {
        let mut doc = fixtures::run_errors().document();
        let reason = "cause ".repeat(30) + "end";
        doc.head.reasons = vec![("INVALID", vec![reason.clone(); 4])];
        let text = shown(&doc, 24);
        assert_eq!(text.matches("cause end\n").count(), 2, "{text}");
        assert!(text.contains("- INVALID: and 2 more reasons"), "{text}");
        assert!(!text.contains('…') && text.lines().count() <= 24, "{text}");
    }
}
