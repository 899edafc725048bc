//! The report for a terminal: the answer first, then the sections, the findings last, where a
//! reader looks. The meaning of a code is a page of its own.

mod canvas;
mod figure;
mod page;
mod plot;
mod screen;
mod table;

use crate::document::head::{DocumentHead, evidence, findings_title, severity};
use crate::document::line::{Ink, Line};
use crate::document::{Block, Document, DocumentSection, Documented, Fact, Medium};
use crate::{Renderer, number};
use knee_core::finding::{Code, Finding, Severity};
use knee_core::report::codes::{CodeChapter, CodeEntry};
use page::{INDENT, TextPage};
use std::io;

/// The narrowest page that everything is laid out for.
const WIDTH_MIN: usize = 60;

/// Reasons shown for INVALID and FAILED, each.
const REASONS_MAX: usize = 6;

/// The remark on an interrupted run.
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
    /// How much of a report is shown.
    pub extent: TextExtent,
}

/// How much of a report is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextExtent {
    /// All of it.
    Whole,
    /// The first screen.
    FirstScreen {
        /// The run's number in the history, which shows the rest; `None` if it is not kept.
        run: Option<i64>,
    },
}

impl Default for Text {
    fn default() -> Text {
        Text { color: false, width: 100, unicode: true, extent: TextExtent::Whole }
    }
}

impl Text {
    fn empty_page(&self) -> TextPage {
        TextPage::new(self.width.max(WIDTH_MIN), self.unicode)
    }
}

impl<T: Documented> Renderer<T> for Text {
    fn render(&self, result: &T, out: &mut dyn io::Write) -> io::Result<()> {
        let doc = result.document();
        let empty = || self.empty_page();
        let page = match (doc.screen_lines, self.extent) {
            (Some(lines), TextExtent::FirstScreen { run }) => {
                let whole = run.map(|id| format!("knee history show {id} --full"));
                screen::laid_out(&doc, lines, whole.as_deref().unwrap_or("--full"), &empty)
            }
            _ => whole(&doc, empty()),
        };
        page.write(self.color, out)
    }
}

/// All of a document, on this page.
fn whole(doc: &Document, mut page: TextPage) -> TextPage {
    show_head(&mut page, &doc.head);
    let end = doc.appendix_at.min(doc.sections.len());
    let (rest, appendix) = doc.sections.split_at(end);
    rest.iter().for_each(|section| show_section(&mut page, section));
    if let Some(findings) = &doc.findings {
        show_findings(&mut page, findings);
    }
    appendix.iter().for_each(|section| show_section(&mut page, section));
    page
}

/// Both verdicts and the answer.
fn show_answer(page: &mut TextPage, head: &DocumentHead) {
    let mut line = Line::default();
    for (i, (ink, word)) in head.words.iter().enumerate() {
        line.push(Ink::Plain, if i > 0 { ", " } else { "" });
        line.push(*ink, word);
    }
    let hang = if head.words.is_empty() { 0 } else { INDENT };
    line.push(Ink::Plain, " ".repeat(hang));
    line.push(Ink::Strong, &head.answer);
    page.paragraph(0, hang, line);
}

fn show_head(page: &mut TextPage, head: &DocumentHead) {
    show_answer(page, head);
    for (word, reasons) in &head.reasons {
        show_reasons(page, word, reasons);
    }
    if head.interrupted {
        page.paragraph(0, 0, Line::of(Ink::Warn, INTERRUPTED));
    }
    if !head.made.is_empty() {
        page.paragraph(0, INDENT, Line::of(Ink::Dim, &head.made));
    }
    page.facts(&head.facts);
}

fn show_reasons(page: &mut TextPage, word: &str, reasons: &[String]) {
    let more = reasons.len().saturating_sub(REASONS_MAX);
    let rest = (more > 0).then(|| format!("and {more} more like these: see --json"));
    for reason in reasons.iter().take(REASONS_MAX).chain(&rest) {
        let line = Line::of(Ink::Bad, format!("- {word}: {reason}"));
        page.paragraph(INDENT, INDENT + 2, line);
    }
}

fn show_section(page: &mut TextPage, section: &DocumentSection) {
    let mut blocks = section.blocks_for(Medium::Lines).peekable();
    let is_heading = section.blocks.is_empty();
    if blocks.peek().is_none() && !is_heading {
        return;
    }
    if section.title.is_empty() {
        page.gap()
    } else {
        page.heading(&section.title, &section.remark)
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

fn show_block(page: &mut TextPage, block: &Block) {
    match block {
        Block::Facts(facts) => page.facts(facts),
        Block::Table(_, table) => page.table(table),
        Block::Plots(plots, _) => figure::show(page, plots),
        // A table beside them has the numbers.
        Block::Bars(_) => {}
        Block::Note(text) => page.paragraph(INDENT, INDENT, Line::of(Ink::Dim, text)),
        Block::Paragraph(line) => page.paragraph(INDENT, INDENT, line.clone()),
        Block::List(lines) => {
            lines.iter().cloned().for_each(|line| page.paragraph(INDENT, INDENT + 2, line));
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

fn show_findings(page: &mut TextPage, findings: &[Finding]) {
    page.heading(findings_title(findings), "");
    let hang = INDENT + 2;
    let tie = number::TIE;
    for (i, finding) in findings.iter().enumerate() {
        if i > 0 {
            page.gap();
        }
        let (mark, ink, _) = severity(finding.severity);
        let ink_of_text = match finding.severity {
            Severity::Info => Ink::Plain,
            Severity::Warning | Severity::Error => Ink::Strong,
        };
        let line = Line::of(ink, format!("{mark}{tie}"));
        page.paragraph(INDENT, hang, line.with(ink_of_text, &finding.text));
        page.paragraph(hang, hang, Line::of(Ink::Dim, evidence(finding)));
        if !finding.next_step.is_empty() {
            let line = Line::of(Ink::Good, format!("→{tie}")).with(Ink::Plain, &finding.next_step);
            page.paragraph(hang, hang + 2, line);
        }
    }
}

impl Renderer<CodeEntry> for Text {
    fn render(&self, entry: &CodeEntry, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = self.empty_page();
        let Code { name, cause, remedy } = entry.code;
        page.heading(name, "");
        page.facts(&[
            ("cause".to_owned(), Line::plain(cause)),
            ("remedy".to_owned(), Line::plain(remedy)),
        ]);
        if !entry.reasons.is_empty() {
            page.heading("Reasons", "'knee explain REASON' says more");
            list(&mut page, &entry.reasons);
        }
        page.write(self.color, out)
    }
}

impl Renderer<Vec<CodeChapter>> for Text {
    fn render(&self, chapters: &Vec<CodeChapter>, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = self.empty_page();
        for chapter in chapters {
            page.heading(&chapter.title, "");
            list(&mut page, &chapter.codes);
        }
        page.gap();
        page.paragraph(0, 0, Line::plain("'knee explain CODE' says more about one."));
        page.write(self.color, out)
    }
}

/// A line for each code: its name and the first sentence of its cause, as far as that fits.
fn list(page: &mut TextPage, codes: &[Code]) {
    let column = codes.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let room = page.width.saturating_sub(INDENT + column + 2);
    let line = |code: &Code| {
        let text = shortened(first_sentence(code.cause), room);
        (code.name.to_owned(), Line::of(Ink::Plain, text))
    };
    let lines: Vec<Fact> = codes.iter().map(line).collect();
    page.facts(&lines);
}

/// Up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> &str {
    match text.find(". ") {
        Some(end) => &text[..=end],
        None => text,
    }
}

fn shortened(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let start: String = text.chars().take(width.saturating_sub(1)).collect();
    match start.rsplit_once(' ') {
        Some((words, _)) => format!("{}…", words.trim_end_matches([',', ':'])),
        None => start,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_core::report::codes::{chapters, codes, entry};

    fn shown<T>(whole: &T, unicode: bool) -> String
    where
        Text: Renderer<T>,
    {
        let text = Text { color: false, width: 80, unicode, ..Text::default() };
        let mut out = Vec::new();
        text.render(whole, &mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn a_page_says_all_of_cause_and_remedy_within_the_width() {
        let unwrapped = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for code in codes() {
            let page = shown(&entry(code.name).expect("a code"), true);
            let text = unwrapped(&page);
            assert!(text.starts_with(code.name), "{page}");
            for part in [code.cause, code.remedy] {
                assert!(text.contains(&unwrapped(part)), "{page}");
            }
            assert!(page.lines().all(|l| l.chars().count() <= 80), "{page}");
        }
    }

    #[test]
    fn the_list_has_a_line_for_each_code() {
        let list = shown(&chapters(), true);
        for code in codes() {
            let line = format!("  {} ", code.name);
            let lines = list.lines().filter(|l| l.starts_with(&line));
            assert_eq!(lines.count(), 1, "{}: {list}", code.name);
        }
        let titles = chapters().len();
        let all = list.lines().filter(|l| !l.is_empty()).count();
        assert_eq!(all, codes().count() + titles + 1, "{list}");
        assert!(shown(&chapters(), false).is_ascii());
    }

    #[test]
    fn invalid_lists_its_reasons() {
        let page = shown(&entry("INVALID").expect("the verdict"), true);
        assert!(page.contains("  fell_behind "), "{page}");
        let other = shown(&entry("past_knee").expect("a finding"), true);
        assert!(!other.contains("fell_behind"), "{other}");
    }
}
