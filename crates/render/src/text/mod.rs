//! The report for a person at a terminal: the answer first, then what it rests on, and what was
//! found last, where it is seen.

mod bars;
mod boxes;
mod canvas;
mod explain;
mod figure;
mod page;
mod plot;
mod screen;
mod table;

use crate::Renderer;
use crate::document::line::{Ink, Line};
use crate::document::opening::Opening;
use crate::document::{Block, Document, Medium, Section, findings};
use crate::number;
use knee_core::compare::report::Comparison;
use knee_core::finding::{Finding, Severity};
use knee_core::report::Report;
use page::{INDENT, Page};
use std::io;

/// The narrowest page that everything is laid out for.
const WIDTH_MIN: usize = 60;

/// More reasons why a result is invalid than these say nothing new.
const REASONS_MAX: usize = 6;

/// What a report that ended before its time begins with.
const INTERRUPTED: &str =
    "INTERRUPTED  ended before its time; this is what was measured until then";

/// The report as text.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Whether to colour it (SGR sequences); it reads as well without.
    pub color: bool,
    /// Columns that may be used, at least 60.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
    /// Whether a report is shown whole. Otherwise its first screen is.
    pub full: bool,
}

impl Default for Text {
    fn default() -> Text {
        Text {
            color: false,
            width: 100,
            unicode: true,
            full: true,
        }
    }
}

impl Text {
    fn write_whole(&self, doc: &Document, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = Page::new(self.width.max(WIDTH_MIN), self.unicode);
        show_opening(&mut page, &doc.opening);
        let end = doc.closes_at.min(doc.sections.len());
        let (rest, closing) = doc.sections.split_at(end);
        rest.iter()
            .for_each(|section| show_section(&mut page, section));
        if let Some(findings) = &doc.findings {
            show_findings(&mut page, findings);
        }
        closing
            .iter()
            .for_each(|section| show_section(&mut page, section));
        page.write(self.color, out)
    }
}

impl Renderer for Text {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let doc = Document::of(report);
        if self.full {
            return self.write_whole(&doc, out);
        }
        screen::laid_out(&doc, self.width.max(WIDTH_MIN), self.unicode).write(self.color, out)
    }
}

impl Renderer<Comparison> for Text {
    fn render(&self, comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
        self.write_whole(&Document::of_comparison(comparison), out)
    }
}

/// Both verdicts and the answer.
fn show_answer(page: &mut Page, opening: &Opening) {
    let mut line = Line::new();
    for (i, (ink, word)) in opening.words.iter().enumerate() {
        line.push(Ink::Plain, if i > 0 { ", " } else { "" });
        line.push(*ink, word);
    }
    let hang = match opening.words.is_empty() {
        true => 0,
        false => INDENT,
    };
    line.push(Ink::Plain, " ".repeat(hang));
    line.push(Ink::Strong, &opening.answer);
    page.paragraph(0, hang, line);
}

fn show_opening(page: &mut Page, opening: &Opening) {
    show_answer(page, opening);
    for (word, reasons) in &opening.reasons {
        show_reasons(page, word, reasons);
    }
    if opening.interrupted {
        page.paragraph(0, 0, Line::of(Ink::Warn, INTERRUPTED));
    }
    if !opening.made.is_empty() {
        page.paragraph(0, INDENT, Line::of(Ink::Dim, &opening.made));
    }
    page.facts(&opening.facts);
}

fn show_reasons(page: &mut Page, word: &str, reasons: &[String]) {
    let more = reasons.len().saturating_sub(REASONS_MAX);
    let rest = (more > 0).then(|| format!("and {more} more like these: see --json"));
    for reason in reasons.iter().take(REASONS_MAX).chain(&rest) {
        let line = Line::of(Ink::Bad, format!("- {word}: {reason}"));
        page.paragraph(INDENT, INDENT + 2, line);
    }
}

fn show_section(page: &mut Page, section: &Section) {
    let mut blocks = section.blocks_for(Medium::Lines).peekable();
    let is_heading = section.blocks.is_empty();
    if blocks.peek().is_none() && !is_heading {
        return;
    }
    match section.title.is_empty() {
        true => page.gap(),
        false => page.heading(&section.title, &section.remark),
    }
    let mut before = None;
    for block in blocks {
        let is_large = |block: &Block| matches!(block, Block::Plots(..) | Block::Table(..));
        let is_apart = match block {
            Block::Plots(..) => true,
            Block::Table(..) => before.is_some_and(is_large),
            Block::Facts(_) => before.is_some_and(|b| matches!(b, Block::Plots(..))),
            _ => false,
        };
        if is_apart {
            page.gap();
        }
        show_block(page, block);
        before = Some(block);
    }
}

fn show_block(page: &mut Page, block: &Block) {
    match block {
        Block::Facts(facts) => page.facts(facts),
        Block::Table(_, table) => page.table(table),
        Block::Plots(plots, _) => figure::show(page, plots),
        // A table beside them has the numbers.
        Block::Stacks(_) => {}
        Block::Note(text) => page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, text)),
        Block::Paragraph(line) => page.paragraph(INDENT, INDENT, line.clone()),
        Block::List(lines) => {
            let lines = lines.iter().cloned();
            lines.for_each(|line| page.paragraph(INDENT, INDENT + 2, line));
        }
        Block::Subheading(title) => page.heading(title, ""),
        Block::Folded(title, blocks) => {
            page.heading(title, "");
            blocks.iter().for_each(|block| show_block(page, block));
        }
        Block::Command(text) => page.paragraph(INDENT, INDENT + 2, Line::plain(text)),
        Block::Verbatim(lines) => lines.iter().for_each(|line| page.verbatim(line)),
    }
}

fn show_findings(page: &mut Page, findings: &[Finding]) {
    page.heading(findings::title(findings), "");
    let hang = INDENT + 2;
    let tie = number::TIE;
    for (i, finding) in findings.iter().enumerate() {
        if i > 0 {
            page.gap();
        }
        let (mark, ink, _) = findings::severity(finding.severity);
        let ink_of_text = match finding.severity {
            Severity::Info => Ink::Plain,
            Severity::Warning | Severity::Error => Ink::Strong,
        };
        let line = Line::of(ink, format!("{mark}{tie}"));
        page.paragraph(INDENT, hang, line.with(ink_of_text, &finding.text));
        page.paragraph(hang, hang, Line::of(Ink::Dim, findings::evidence(finding)));
        if !finding.next_step.is_empty() {
            let line = Line::of(Ink::Good, format!("→{tie}"));
            let line = line.with(Ink::Plain, &finding.next_step);
            page.paragraph(hang, hang + 2, line);
        }
    }
}
