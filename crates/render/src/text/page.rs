//! A page of a given width: headings, paragraphs, facts, tables, plots, one below the other.

use super::table::laid_out;
use crate::document::Fact;
use crate::document::line::{Ink, Line, cleaned};
use crate::document::table::Table;
use std::io;

/// Indent of everything below a heading, in columns.
pub(super) const INDENT: usize = 2;

/// A page under construction.
#[derive(Debug)]
pub(super) struct TextPage {
    /// Columns that may be used.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
    lines: Vec<Line>,
    /// The number of lines up to the last heading.
    headed: usize,
}

impl TextPage {
    /// An empty page.
    pub(super) fn new(width: usize, unicode: bool) -> TextPage {
        TextPage { width, unicode, lines: Vec::new(), headed: 0 }
    }

    /// The columns within the indent.
    pub(super) fn inner_width(&self) -> usize {
        self.width - INDENT
    }

    /// The lines so far.
    pub(super) fn lines(&self) -> usize {
        self.lines.len()
    }

    /// Keeps the first lines only.
    pub(super) fn begin(mut self, lines: usize) -> TextPage {
        self.lines.truncate(lines);
        self
    }

    /// Adds the lines of another page of the same width.
    pub(super) fn append(&mut self, other: TextPage) {
        self.lines.extend(other.lines);
    }

    /// An empty line.
    pub(super) fn blank(&mut self) {
        self.lines.push(Line::default());
    }

    /// Text in one line from column `indent`; what does not fit is cut off at a word.
    pub(super) fn cut(&mut self, indent: usize, text: Line) {
        let width = self.width;
        let mut line = Line::plain(" ".repeat(indent));
        line.append(text.cleaned(self.unicode));
        if line.width() > width {
            let sign = cleaned("…", self.unicode);
            let mut lines = line.wrapped(width - 1 - sign.len(), 0).into_iter();
            line = lines.next().unwrap_or_default();
            line.push(Ink::Plain, sign);
        }
        self.lines.push(line);
    }

    /// An empty line, unless there is one already or a heading is just above.
    pub(super) fn gap(&mut self) {
        if self.lines.len() > self.headed && self.lines.last().is_some_and(|l| l.width() > 0) {
            self.lines.push(Line::default());
        }
    }

    /// A heading with a remark in brackets, and a gap before it.
    pub(super) fn heading(&mut self, title: &str, remark: &str) {
        self.headed = 0;
        self.gap();
        let mut line = Line::of(Ink::Strong, title);
        if !remark.is_empty() {
            line.push(Ink::Dim, format!(" ({remark})"));
        }
        self.paragraph(0, INDENT, line);
        self.headed = self.lines.len();
    }

    /// Text from column `indent`, wrapped to lines that begin at column `hang`.
    pub(super) fn paragraph(&mut self, indent: usize, hang: usize, text: Line) {
        let mut line = Line::plain(" ".repeat(indent));
        line.append(text.cleaned(self.unicode));
        self.lines.extend(line.wrapped(self.width, hang));
    }

    /// A line that other programs read: never wrapped.
    pub(super) fn verbatim(&mut self, text: &str) {
        self.lines.push(Line::plain(cleaned(text, self.unicode)));
    }

    /// Names and values in two columns.
    pub(super) fn facts(&mut self, facts: &[Fact]) {
        let names: Vec<String> = facts.iter().map(|(n, _)| cleaned(n, self.unicode)).collect();
        let column = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
        let hang = INDENT + column + 2;
        for (name, (_, text)) in names.into_iter().zip(facts) {
            let mut line = Line::of(Ink::Dim, name);
            line.pad_to(column + 2);
            line.append(text.clone());
            self.paragraph(INDENT, hang, line);
        }
    }

    /// A table; see [`laid_out`].
    pub(super) fn table(&mut self, table: &Table) {
        let lines = laid_out(table, self.inner_width(), self.unicode);
        self.block(lines);
    }

    /// Lines that are laid out already, indented.
    pub(super) fn block(&mut self, lines: Vec<Line>) {
        for line in lines {
            let mut moved = Line::plain(" ".repeat(INDENT));
            moved.append(line);
            self.lines.push(moved);
        }
    }

    /// Writes it, in colour or not.
    pub(super) fn write(&self, color: bool, out: &mut dyn io::Write) -> io::Result<()> {
        self.lines.iter().try_for_each(|line| line.write(color, out))
    }
}
