//! knee-render SHOWS: a [`Report`] becomes bytes.
//!
//! This crate computes no statistic: every number shown is a field of the report, rounded, with its
//! unit, so that text and JSON cannot disagree. It does not know where the bytes go.
//!
//! # Parts
//!
//! From the bottom up: `csv`, `json`, `number`; `plot`, `progress`; `document`, which puts the
//! content of a report together once for all forms; the painters `text`, `html` and `markdown`, and
//! `junit` and `live`; `metrics`, which `openmetrics` and `otlp` write. Painters know the document
//! and not each other.
//!
//! `tests/figures` checks that no form shows a number that is not in the JSON. `tests/browser`
//! opens every page in Chromium over its DevTools pipe, wide, narrow, light, dark and printed;
//! `KNEE_SCREENSHOTS=DIR` keeps what was seen.

#![warn(unreachable_pub)]
#![forbid(unsafe_code)]

mod csv;
mod document;
mod html;
mod json;
mod junit;
pub mod live;
mod markdown;
pub mod metrics;
mod number;
pub mod openmetrics;
pub mod otlp;
mod plot;
mod progress;
mod text;

#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod tests;

pub use csv::Csv;
pub use document::appendix::quoted;
pub use document::{answer, headline};
pub use html::{Html, html_tour};
pub use json::{Json, parse_report};
pub use junit::Junit;
pub use markdown::Markdown;
pub use progress::{ProgressCounts, ProgressLine, scenario_line, sent_line};
pub use text::{Text, TextExtent};

use knee_core::report::Report;
use std::io;

/// Turns a report or another whole document into bytes of one format.
pub trait Renderer<T = Report> {
    /// Writes the document.
    ///
    /// # Errors
    ///
    /// Only those of `out`.
    fn render(&self, document: &T, out: &mut dyn io::Write) -> io::Result<()>;
}
