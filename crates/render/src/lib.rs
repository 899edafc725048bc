//! knee-render SHOWS: a [`Report`] becomes bytes.
//!
//! No statistic is computed here: every number shown is a field of the report (rounded, with its
//! unit), so that text and JSON cannot disagree. Nothing here knows where the bytes go.

#![warn(unreachable_pub)]
#![forbid(unsafe_code)]

mod axis;
mod csv;
mod document;
mod html;
mod json;
mod junit;
pub mod live;
mod markdown;
mod number;
pub mod openmetrics;
mod plot;
mod progress;
mod text;

#[cfg(test)]
mod browser;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod schema;
#[cfg(test)]
mod snapshots;
#[cfg(test)]
mod tests;

pub use csv::Csv;
pub use document::closing::quoted;
pub use document::{answer, headline};
pub use html::{Html, html_tour};
pub use json::{Json, parse_report};
pub use junit::Junit;
pub use markdown::Markdown;
pub use progress::{ProgressLine, RowLine, SoFar, scenario_line, sent_line};
pub use text::Text;

use knee_core::report::Report;
use std::io;

/// Turns a report, or what else is shown as a whole, into bytes of one format.
pub trait Renderer<T = Report> {
    /// Writes the whole of it.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    fn render(&self, whole: &T, out: &mut dyn io::Write) -> io::Result<()>;
}
