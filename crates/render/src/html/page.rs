//! The page: what every part of it is written through.

use super::markup::Markup;
use super::words::{untied, write_line, write_table};
use crate::document::line::Line;
use crate::document::table::Table;
use crate::document::{Fact, Layout};
use crate::plot::Plot;
use std::fmt::Display;

/// A page in the making.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// What is written so far.
    pub m: Markup,
    figures: usize,
    /// How deep the headings of a report lie.
    depth: usize,
}

/// The least width of a figure on a telephone, and of one of many beside each other, as the style
/// has it, in CSS pixels.
const FIGURE_PX: usize = 345;
const PANEL_PX: usize = 300;

/// Headings by their depth.
const HEADINGS: [&str; 6] = ["h1", "h2", "h3", "h4", "h5", "h6"];

impl Page {
    /// The tag of a heading so far below that of a report.
    pub(super) fn heading_tag(&self, below: usize) -> &'static str {
        HEADINGS[(self.depth + below).min(HEADINGS.len() - 1)]
    }

    /// What follows is parts of a whole: its headings lie two deeper.
    pub(super) fn deepen(&mut self) {
        self.depth = 2;
    }

    /// A part of the whole, which can be gone to by its `id`.
    pub(super) fn part(&mut self, id: &str, title: &str, content: impl FnOnce(&mut Page)) {
        self.m.raw("<article>");
        self.m
            .el("h2")
            .attr("class", "part")
            .attr("id", id)
            .text(title);
        content(self);
        self.m.raw("</article>");
    }

    /// A section with a heading; the remark beside it may be empty.
    pub(super) fn section(&mut self, title: &str, remark: &str, content: impl FnOnce(&mut Page)) {
        self.m.raw("<section>");
        let tag = self.heading_tag(1);
        self.m.el(tag).attr("class", "section").with(|m| {
            m.text(title);
            if !remark.is_empty() {
                m.raw(" ");
                m.el("small").text(remark);
            }
        });
        content(self);
        self.m.raw("</section>");
    }

    /// A heading within a section.
    pub(super) fn subheading(&mut self, title: &str) {
        let tag = self.heading_tag(2);
        self.m.el(tag).attr("class", "sub").text(title);
    }

    /// A paragraph.
    pub(super) fn paragraph(&mut self, line: &Line) {
        self.m.el("p").with(|m| write_line(m, line));
    }

    /// Lines of a kind.
    pub(super) fn list(&mut self, lines: &[Line]) {
        self.m.el("ul").attr("class", "marked").with(|m| {
            for line in lines {
                m.el("li").with(|m| write_line(m, line));
            }
        });
    }

    /// A remark in small print.
    pub(super) fn note(&mut self, text: impl Display) {
        self.m.el("p").attr("class", "note").text(text);
    }

    /// A command, broken into lines before options, not within them.
    pub(super) fn command(&mut self, command: &str) {
        let command = untied(command);
        self.m.el("pre").with(|m| {
            m.el("code").with(|m| {
                for (i, option) in command.split(" --").enumerate() {
                    m.text(if i > 0 { " " } else { "" });
                    let dashes = if i > 0 { "--" } else { "" };
                    let span = m.el("span").attr("class", "option");
                    span.text(format_args!("{dashes}{option}"));
                }
            });
        });
    }

    /// Lines as they are.
    pub(super) fn verbatim(&mut self, lines: &[String]) {
        self.m.el("pre").text(lines.join("\n"));
    }

    /// Figures.
    pub(super) fn plots(&mut self, plots: &[Plot], layout: Layout) {
        let (open, least_px) = match layout {
            Layout::Wide => ("", FIGURE_PX),
            Layout::Pairs => ("<div class=\"pair\">", FIGURE_PX),
            Layout::Panels => ("<div class=\"pair many\">", PANEL_PX),
        };
        self.m.raw(open);
        for plot in plots {
            self.figures += 1;
            plot.draw(&mut self.m, self.figures, least_px);
        }
        if !open.is_empty() {
            self.m.raw("</div>");
        }
    }

    /// A table; its caption is for screen readers only.
    pub(super) fn table(&mut self, caption: &str, table: &Table) {
        write_table(&mut self.m, caption, table);
    }

    /// Names and what is to be said of them.
    pub(super) fn facts(&mut self, facts: &[Fact]) {
        if facts.is_empty() {
            return;
        }
        self.m.raw("<dl>");
        for (name, value) in facts {
            self.m.raw("<div>");
            self.m.el("dt").text(name);
            self.m.el("dd").with(|m| write_line(m, value));
            self.m.raw("</div>");
        }
        self.m.raw("</dl>");
    }

    /// Facts that are for those who look closer, folded up.
    pub(super) fn folded(&mut self, title: &str, content: impl FnOnce(&mut Page)) {
        self.m.raw("<details class=\"more\">");
        self.m.el("summary").text(title);
        content(self);
        self.m.raw("</details>");
    }

    /// The whole document.
    pub(super) fn into_document(self, title: &str) -> String {
        let mut m = Markup::default();
        m.raw("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
        m.raw("<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">");
        m.raw("<meta name=\"color-scheme\" content=\"light dark\">");
        m.el("title").text(title);
        m.raw("<style>");
        m.raw(include_str!("style.css"));
        m.raw("</style></head><body><main>");
        m.append(self.m);
        m.raw("</main><script>");
        m.raw(include_str!("script.js"));
        m.raw("</script></body></html>\n");
        m.into_string()
    }
}
