//! Arrivals and loss: where each datagram went, and why.

pub mod clients;
pub mod explained;
mod ledger;
mod plots;
mod series;
pub mod trial;

use super::heading;
use super::page::Page;
use super::run::{is_cut_short, show_generator, show_kernel};
use crate::number::{plural, time_short};
use knee_core::experiment::udp::report::UdpConclusion;
use knee_core::report::Report;

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &UdpConclusion) {
    heading::show(page, report, &conclusion.answer, &remark(report));
    let laws = &conclusion.laws;
    if report.trials.iter().all(is_cut_short) {
        return;
    }
    clients::show(page, laws);
    explained::show(page, conclusion);
    ledger::show(page, laws);
    series::show(page, laws);
    let is_explained = !conclusion.effects.is_empty();
    if let [only] = report.trials.as_slice() {
        trial::show(page, only);
    } else if !is_explained {
        clients::show_trials(page, &report.trials);
    }
    plots::show(page, laws);
    if let [only] = report.trials.as_slice() {
        show_generator(page, only);
        show_kernel(page, only);
    }
}

/// How it was made.
pub fn remark(report: &Report) -> String {
    match report.trials.as_slice() {
        [only] => format!(
            ", {}, sent for {}",
            only.label,
            time_short(only.duration_ns)
        ),
        trials => format!(", {}", plural(trials.len() as u64, "trial")),
    }
}
