//! The report as one page for a browser: everything is in the file, nothing is fetched. What can be
//! seen needs no script; the script adds values on hover, zoom and a choice of light or dark.
//!
//! `opening` and `closing` are the same for all; between them each command has a file of its own.
//! Words, facts and tables are those of the text report.

mod closing;
mod compare;
mod latency;
mod markup;
mod opening;
mod overload;
mod page;
mod plot;
mod run;
mod series;
mod sweep;
mod sweep_plots;
mod throttle;
mod trial_plots;
mod typed;
mod udp;
mod words;

#[cfg(test)]
mod tests;

use crate::Renderer;
use crate::text::is_empty;
use knee_core::compare::report::Comparison;
use knee_core::report::{Conclusion, Report};
use page::Page;
use std::io;

/// The report as one page for a browser.
#[derive(Clone, Copy, Debug, Default)]
pub struct Html;

impl Renderer for Html {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = Page::default();
        show(&mut page, report);
        out.write_all(page.into_document(&opening::title(report)).as_bytes())
    }
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
        page.part(&format!("part{i}"), heading, |page| show(page, report));
    }
    out.write_all(page.into_document("A tour of knee").as_bytes())
}

fn show(page: &mut Page, report: &Report) {
    match &report.conclusion {
        _ if is_empty(report) => opening::show(page, report, "", ""),
        Conclusion::Run(conclusion) => run::show(page, report, conclusion),
        Conclusion::Sweep(conclusion) => sweep::show(page, report, conclusion),
        Conclusion::Throttle(conclusion) => throttle::show(page, report, conclusion),
        Conclusion::Udp(conclusion) => udp::show(page, report, conclusion),
        Conclusion::Overload(conclusion) => overload::show(page, report, conclusion),
        Conclusion::Latency(conclusion) => latency::show(page, report, conclusion),
    }
    closing::show(page, report);
}

impl Renderer<Comparison> for Html {
    fn render(&self, comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = Page::default();
        compare::show(&mut page, comparison);
        out.write_all(page.into_document(&compare::title(comparison)).as_bytes())
    }
}
