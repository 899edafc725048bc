//! The report as one page for a browser: everything is in the file, nothing is fetched. What can be
//! seen needs no script; the script adds values on hover, zoom and a choice of light or dark.
//!
//! What it says is in the document; `opening` writes its head and its findings, `svg` its figures.

mod markup;
mod opening;
mod page;
mod stacks;
mod svg;
mod typed;
mod words;

#[cfg(test)]
mod tests;

use crate::Renderer;
use crate::document::{Block, Document, Medium, Section};
use knee_core::compare::report::Comparison;
use knee_core::report::Report;
use page::Page;
use std::io;

/// The report as one page for a browser.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl Renderer for Html {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        write(&Document::of(report), out)
    }
}

impl Renderer<Comparison> for Html {
    fn render(&self, comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
        write(&Document::of_comparison(comparison), out)
    }
}

fn write(doc: &Document, out: &mut dyn io::Write) -> io::Result<()> {
    let mut page = Page::default();
    show(&mut page, doc);
    out.write_all(page.into_document(&doc.opening.title).as_bytes())
}

/// Several reports as one page, each under a heading of its own, with a table of contents.
///
/// # Errors
///
/// Only those of `out`.
pub fn html_tour(reports: &[(&str, &Report)], out: &mut dyn io::Write) -> io::Result<()> {
    let mut page = Page::default();
    page.m.el("h1").text("A tour of knee");
    page.m.el("nav").attr("aria-label", "Contents").with(|m| {
        m.el("ol").with(|m| {
            for (i, (heading, _)) in reports.iter().enumerate() {
                let link = |m: &mut markup::Markup| {
                    m.el("a")
                        .attr("href", format_args!("#part{i}"))
                        .text(heading);
                };
                m.el("li").with(link);
            }
        });
    });
    page.deepen();
    for (i, (heading, report)) in reports.iter().enumerate() {
        page.part(&format!("part{i}"), heading, |page| {
            show(page, &Document::of(report))
        });
    }
    out.write_all(page.into_document("A tour of knee").as_bytes())
}

fn show(page: &mut Page, doc: &Document) {
    opening::show(page, &doc.opening);
    if let Some(findings) = &doc.findings {
        opening::show_findings(page, findings);
    }
    for section in &doc.sections {
        show_section(page, section);
    }
}

fn show_section(page: &mut Page, section: &Section) {
    let blocks: Vec<&Block> = section.blocks_for(Medium::Page).collect();
    if blocks.is_empty() && !section.blocks.is_empty() {
        return;
    }
    let show = |page: &mut Page| blocks.iter().for_each(|block| show_block(page, block));
    match section.title.is_empty() {
        true => show(page),
        false => page.section(&section.title, &section.remark, show),
    }
}

fn show_block(page: &mut Page, block: &Block) {
    match block {
        Block::Facts(facts) => page.facts(facts),
        Block::Table(caption, table) => page.table(caption, table),
        Block::Plots(plots, layout) => page.plots(plots, *layout),
        Block::Stacks(bars) => stacks::draw(&mut page.m, bars),
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
