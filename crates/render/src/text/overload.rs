//! Load beyond capacity: what arrives, and what is served.

use super::heading;
use super::page::Page;
use knee_core::report::{OverloadConclusion, Report};

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &OverloadConclusion) {
    heading::show(page, report, &conclusion.answer, "");
}
