//! What `knee throttle` shows: how this machine waits, or how well each way holds a rate.

mod boxes;
pub mod rates;
pub mod waits;

use super::heading;
use super::page::Page;
use crate::number::plural;
use knee_core::experiment::throttle::report::ThrottleConclusion;
use knee_core::report::Report;

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &ThrottleConclusion) {
    let rows = conclusion.table.len() + conclusion.rates.len();
    let remark = format!(", {}", plural(rows as u64, "row"));
    heading::show(page, report, &conclusion.answer, &remark);
    if !conclusion.rates.is_empty() {
        rates::show(page, &conclusion.rates);
    }
    if !conclusion.table.is_empty() {
        waits::show(page, conclusion);
    }
}
