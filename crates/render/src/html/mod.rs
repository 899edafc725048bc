//! The report as one page for a browser. Everything is in the file, nothing is fetched. The page is
//! readable without script; the script adds values on hover, zoom and a choice of light or dark.
//!
//! `page` writes the document with its head and findings, `svg` its figures.

mod command_words;
mod markup;
mod page;
mod svg;

#[cfg(test)]
mod tests;

use crate::Renderer;
use crate::document::{Block, Document, DocumentSection, Documented, Medium};
use knee_core::report::Report;
use markup::write_table;
use page::{HtmlPage, write_bars};
use std::io;

/// The report as one page for a browser.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl<T: Documented> Renderer<T> for Html {
    fn render(&self, result: &T, out: &mut dyn io::Write) -> io::Result<()> {
        let doc = result.document();
        let mut page = HtmlPage::default();
        show(&mut page, &doc);
        out.write_all(page.into_document(&doc.head.title).as_bytes())
    }
}

/// Several reports as one page, each under its own heading, with a table of contents.
///
/// # Errors
///
/// Only those of `out`.
pub fn html_tour(reports: &[(&str, &Report)], out: &mut dyn io::Write) -> io::Result<()> {
    let mut page = HtmlPage::default();
    page.m.el("h1").text("A tour of knee");
    page.m.el("nav").attr("aria-label", "Contents").with(|m| {
        m.el("ol").with(|m| {
            for (i, (heading, _)) in reports.iter().enumerate() {
                let link = |m: &mut markup::Markup| {
                    m.el("a").attr("href", format_args!("#part{i}")).text(heading);
                };
                m.el("li").with(link);
            }
        });
    });
    page.deepen();
    for (i, (heading, report)) in reports.iter().enumerate() {
        page.part(&format!("part{i}"), heading, |page| show(page, &report.document()));
    }
    out.write_all(page.into_document("A tour of knee").as_bytes())
}

fn show(page: &mut HtmlPage, doc: &Document) {
    page::show(page, &doc.head);
    if let Some(findings) = &doc.findings {
        page::show_findings(page, findings);
    }
    for section in &doc.sections {
        show_section(page, section);
    }
}

fn show_section(page: &mut HtmlPage, section: &DocumentSection) {
    let blocks: Vec<&Block> = section.blocks_for(Medium::Page).collect();
    if blocks.is_empty() && !section.blocks.is_empty() {
        return;
    }
    let show = |page: &mut HtmlPage| blocks.iter().for_each(|block| show_block(page, block));
    if section.title.is_empty() {
        show(page)
    } else {
        page.section(&section.title, &section.remark, show)
    }
}

fn show_block(page: &mut HtmlPage, block: &Block) {
    match block {
        Block::Facts(facts) => page.facts(facts),
        Block::Table(caption, table) => write_table(&mut page.m, caption, table),
        Block::Plots(plots, layout) => page.plots(plots, *layout),
        Block::Bars(bars) => write_bars(&mut page.m, bars),
        Block::Note(text) => page.note(text),
        Block::Paragraph(line) => page.paragraph(line),
        Block::List(lines) => page.list(lines),
        Block::Subheading(title) => page.subheading(title),
        Block::Folded(title, blocks) => page.folded(title, |page| {
            blocks.iter().for_each(|block| show_block(page, block));
        }),
        Block::Command(text) => page.command(text),
        Block::Verbatim(lines) => page.verbatim(lines),
    }
}
