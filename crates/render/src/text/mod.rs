//! The report for a person at a terminal: the answer first, then what it rests on.
//!
//! Modules that are public make the words, facts and tables that the page for a browser shows too,
//! so that the two cannot disagree.

mod bars;
mod canvas;
pub mod closing;
pub mod compare;
mod explain;
pub mod heading;
pub mod latency;
pub mod line;
pub mod observed;
pub mod overload;
mod overload_plots;
mod page;
mod plot;
pub mod run;
pub mod sweep;
pub mod sweep_plots;
pub mod table;
pub mod throttle;
pub mod traffic;
pub mod udp;

pub(crate) use line::{Ink, Line, cleaned};

use crate::Renderer;
use knee_core::compare::report::Comparison;
use knee_core::report::{Conclusion, Report};
use page::Page;
use std::io;

/// The narrowest page that everything is laid out for.
const WIDTH_MIN: usize = 60;

/// The report as text.
#[derive(Clone, Copy, Debug)]
pub struct Text {
    /// Whether to colour it (SGR sequences); it reads as well without.
    pub color: bool,
    /// Columns that may be used, at least 60.
    pub width: usize,
    /// Whether characters beyond ASCII may be used.
    pub unicode: bool,
}

impl Default for Text {
    fn default() -> Text {
        Text {
            color: false,
            width: 100,
            unicode: true,
        }
    }
}

/// Verdict, result and answer in a line, without colour; in ASCII unless `unicode`.
pub fn headline(report: &Report, unicode: bool) -> String {
    let words = heading::verdicts(report).into_iter().map(|(_, word)| word);
    let words: Vec<&str> = words.collect();
    let line = Line::plain(format!("{}  {}", words.join(", "), answer(report)));
    line.cleaned(unicode).text()
}

/// The answer in one or two sentences, as it stands at the head of the report; why there is none
/// where nothing was measured.
pub fn answer(report: &Report) -> String {
    heading::first_words(report, &answer_of(report))
}

fn answer_of(report: &Report) -> String {
    match &report.conclusion {
        Conclusion::Sweep(conclusion) => sweep::answer(conclusion),
        Conclusion::Run(conclusion) => run::answer(report, conclusion),
        Conclusion::Overload(conclusion) => conclusion.answer.clone(),
        Conclusion::Udp(conclusion) => conclusion.answer.clone(),
        Conclusion::Latency(conclusion) => conclusion.answer.clone(),
        Conclusion::Throttle(conclusion) => conclusion.answer.clone(),
    }
}

/// Whether there is nothing to show but why.
pub fn is_empty(report: &Report) -> bool {
    report.trials.is_empty() && !report.has_measured()
}

impl Renderer for Text {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = Page::new(self.width.max(WIDTH_MIN), self.unicode);
        match &report.conclusion {
            _ if is_empty(report) => heading::show(&mut page, report, "", ""),
            Conclusion::Sweep(conclusion) => sweep::show(&mut page, report, conclusion),
            Conclusion::Run(conclusion) => run::show(&mut page, report, conclusion),
            Conclusion::Overload(conclusion) => overload::show(&mut page, report, conclusion),
            Conclusion::Udp(conclusion) => udp::show(&mut page, report, conclusion),
            Conclusion::Latency(conclusion) => latency::show(&mut page, report, conclusion),
            Conclusion::Throttle(conclusion) => throttle::show(&mut page, report, conclusion),
        }
        closing::show(&mut page, report);
        page.write(self.color, out)
    }
}

impl Renderer<Comparison> for Text {
    fn render(&self, comparison: &Comparison, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = Page::new(self.width.max(WIDTH_MIN), self.unicode);
        compare::show(&mut page, comparison);
        page.write(self.color, out)
    }
}
