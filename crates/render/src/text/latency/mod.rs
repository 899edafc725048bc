//! Latency under load: the classic text, then what it leaves out.

mod classic;
pub mod flows;
mod plots;
pub mod scenarios;

use super::heading;
use super::page::Page;
use super::run::{show_generator, show_kernel};
use crate::number::plural;
use knee_core::experiment::latency::report::{LatencyConclusion, ScenarioRow};
use knee_core::report::Report;
use knee_core::trial::flows::FlowsReport;
use knee_core::trial::report::TrialReport;

/// Writes it.
pub fn show(page: &mut Page, report: &Report, conclusion: &LatencyConclusion) {
    let scenarios = conclusion.scenarios.len() as u64;
    let remark = format!(", {}", plural(scenarios, "scenario"));
    heading::show(page, report, &conclusion.answer, &remark);
    classic::show(page, conclusion);
    let shown = pairs(report, conclusion);
    scenarios::show_grade(page, conclusion);
    scenarios::show_latency(page, conclusion, &shown);
    scenarios::show_flows(page, &shown);
    scenarios::show_ends(page, conclusion);
    scenarios::show_congestion_controls(page, &conclusion.by_congestion_control);
    if let Some(worst) = worst(&shown) {
        let title = name(worst.row, names_controls(shown.iter().map(|s| s.row)));
        flows::show(page, &worst, &title, shown.len());
        plots::show(page, &worst, &title);
    }
    if let [only] = shown.as_slice() {
        show_generator(page, only.trial);
        show_kernel(page, only.trial);
    }
}

/// A scenario that was measured here.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// In short.
    pub row: &'a ScenarioRow,
    /// Its trial.
    pub trial: &'a TrialReport,
    /// Its flows.
    pub flows: &'a FlowsReport,
}

/// The scenarios with the trials that count. The trials without any flow, of the idle path, have no
/// row; a text of others has no trials; old reports do not say which trial is whose.
pub fn pairs<'a>(report: &'a Report, conclusion: &'a LatencyConclusion) -> Vec<Shown<'a>> {
    let with_flows = |trial: &'a TrialReport| {
        let flows = trial.flows.as_ref()?;
        (flows.up.is_some() || flows.down.is_some()).then_some((trial, flows))
    };
    let mut in_order = report.trials.iter().filter_map(with_flows);
    let rows = conclusion.scenarios.iter();
    let shown = rows.filter_map(|row| {
        let (trial, flows) = match row.trial {
            Some(index) => with_flows(report.trials.get(index)?)?,
            None => in_order.next()?,
        };
        Some(Shown { row, trial, flows })
    });
    shown.collect()
}

/// The scenario with the longest latency: what a plot is made of.
pub fn worst<'a>(shown: &[Shown<'a>]) -> Option<Shown<'a>> {
    shown.iter().max_by_key(|s| s.flows.latency_ns_max).copied()
}

/// A scenario by its flows, uploads first: `1/31`, with its congestion control where several were
/// compared.
pub fn name(row: &ScenarioRow, names_control: bool) -> String {
    match names_control && !row.congestion_control.is_empty() {
        true => format!("{}/{} {}", row.up, row.down, row.congestion_control),
        false => format!("{}/{}", row.up, row.down),
    }
}

/// Whether scenarios of several congestion controls stand beside each other.
pub fn names_controls<'a>(mut rows: impl Iterator<Item = &'a ScenarioRow>) -> bool {
    let first = rows.next().map(|row| &row.congestion_control);
    rows.any(|row| Some(&row.congestion_control) != first)
}
