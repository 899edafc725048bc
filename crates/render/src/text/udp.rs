//! Arrivals and loss: where each datagram went, and why.

use super::heading;
use super::page::Page;
use knee_core::report::{Report, UdpConclusion};

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &UdpConclusion) {
    heading::show(page, report, &conclusion.answer, "");
}
