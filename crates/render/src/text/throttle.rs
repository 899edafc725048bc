//! How this machine waits, or how well each way holds a rate.

use super::heading;
use super::page::Page;
use knee_core::report::{Report, ThrottleConclusion};

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &ThrottleConclusion) {
    heading::show(page, report, &conclusion.answer, "");
}
