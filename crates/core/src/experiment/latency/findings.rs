//! Findings about flows and the latency under them. Of several scenarios they are about the worst.

mod flows;
mod queues;
#[cfg(test)]
mod tests;

use super::report::ScenarioRow;
use super::{classic, distorted};
use crate::finding::{Code, Finding};
use crate::trial::findings::{FindingContext, GENERATOR_DISTORTED, findings_at_levels};
use crate::trial::flows::FlowsReport;
use crate::trial::report::TrialReport;
use knee_load::measure::Direction;

/// All kinds of findings of `knee latency`.
pub(super) fn codes() -> Vec<Code> {
    [flows::CODES, queues::CODES, classic::CODES, distorted::CODES].concat()
}

/// A scenario as findings see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredScenario<'a> {
    /// Its row.
    pub row: &'a ScenarioRow,
    /// Its trial; `None` where the row was read from a text.
    pub trial: Option<&'a TrialReport>,
}

impl<'a> MeasuredScenario<'a> {
    fn flows(&self) -> Option<&'a FlowsReport> {
        self.trial?.flows()
    }
}

/// What a person should know about these scenarios. `past` are all trials that count, the idle
/// path's included.
pub(super) fn latency_findings(
    past: &[&TrialReport],
    idle: Option<&TrialReport>,
    scenarios: &[MeasuredScenario<'_>],
) -> Vec<Finding> {
    let view = LatencyDiagnosis { idle, scenarios };
    let mut found = distorted(past);
    found.extend(view.killed());
    found.extend(view.bloated());
    found.extend(view.probes_disagree());
    found.extend(view.hides_bloat());
    found.extend(view.may_hide_bloat());
    found.extend(view.starved());
    found.extend(view.unfair());
    found.extend(view.asymmetric());
    found.extend(view.not_settled());
    found
}

/// Of what holds for any trial, that which is about the pinger, with the options that matter to it.
/// A ping that does not come back is no failure here: it is a long latency.
fn distorted(past: &[&TrialReport]) -> Vec<Finding> {
    let asked = FindingContext {
        lighter: ", or with fewer flows: --scenarios 1/1,4/4",
        ..FindingContext::default()
    };
    let mut found = findings_at_levels(past, asked);
    found.retain(|f| f.is(GENERATOR_DISTORTED));
    found
}

/// All that the findings are made of.
struct LatencyDiagnosis<'a> {
    idle: Option<&'a TrialReport>,
    scenarios: &'a [MeasuredScenario<'a>],
}

impl LatencyDiagnosis<'_> {
    /// `1 upload and 31 downloads (cubic)`: the congestion control where there are several.
    fn name(&self, row: &ScenarioRow) -> String {
        let flows = row.flows_in_words();
        let asked = &row.congestion_control;
        let several = || self.scenarios.iter().any(|s| s.row.congestion_control != *asked);
        if !asked.is_empty() && several() { format!("{flows} ({asked})") } else { flows }
    }
}

/// Evidence for a finding about one scenario: its flows, and more.
fn evidence<const N: usize>(
    row: &ScenarioRow,
    more: [(&'static str, f64); N],
) -> impl IntoIterator<Item = (&'static str, f64)> {
    let flows = [("up", f64::from(row.up)), ("down", f64::from(row.down))];
    flows.into_iter().chain(more)
}

fn noun(direction: Direction) -> &'static str {
    match direction {
        Direction::Up => "upload",
        Direction::Down => "download",
    }
}
