//! The report for a person at a terminal: the answer first, then what it rests on.

mod bars;
mod canvas;
mod closing;
mod heading;
mod line;
mod observed;
mod overload;
mod page;
mod plot;
mod run;
mod sweep;
mod sweep_plots;
mod table;
mod throttle;
mod ticks;
mod udp;

use crate::Renderer;
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

impl Renderer for Text {
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()> {
        let mut page = Page::new(self.width.max(WIDTH_MIN), self.unicode);
        match &report.conclusion {
            Conclusion::Sweep(conclusion) => sweep::show(&mut page, report, conclusion),
            Conclusion::Run(conclusion) => run::show(&mut page, report, conclusion),
            Conclusion::Overload(conclusion) => overload::show(&mut page, report, conclusion),
            Conclusion::Udp(conclusion) => udp::show(&mut page, report, conclusion),
            Conclusion::Throttle(conclusion) => throttle::show(&mut page, report, conclusion),
        }
        closing::show(&mut page, report);
        page.write(self.color, out)
    }
}
