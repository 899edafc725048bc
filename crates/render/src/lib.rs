//! knee-render SHOWS: a [`Report`] becomes bytes.
//!
//! No statistic is computed here: every number shown is a field of the report (rounded, with its
//! unit), so that text and JSON cannot disagree. Nothing here knows where the bytes go.

#![forbid(unsafe_code)]

mod json;
mod number;
mod progress;
mod text;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod snapshots;

pub use json::{Json, parse_report};
pub use progress::{ProgressLine, RowLine, SendLine, sent_line};
pub use text::Text;

use knee_core::report::Report;
use std::io;

/// Turns a report into bytes of one format.
pub trait Renderer {
    /// Writes the whole report.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    fn render(&self, report: &Report, out: &mut dyn io::Write) -> io::Result<()>;
}
