//! Findings about flows and the latency under them. Of several scenarios they tell of the worst.

mod flows;
mod queues;
#[cfg(test)]
mod tests;

use super::attempts::RUN_AGAIN;
use super::classic::RECOMPUTED_DIFFERS;
use super::report::ScenarioRow;
use super::standing::RESTS_ON_DISTORTED;
use crate::finding::{Code, Finding};
use crate::measure::Direction;
use crate::trial::findings::{FindingContext, GENERATOR_DISTORTED, findings_at_levels};
use crate::trial::flows::FlowsReport;
use crate::trial::report::TrialReport;
use crate::words::list;

/// All codes of this experiment.
pub const CODES: &[Code] = &[
    flows::FLOW_KILLED,
    flows::STARVED_FLOW,
    flows::UNFAIR,
    flows::ASYMMETRIC,
    flows::NOT_SETTLED,
    queues::BLOATED,
    queues::PROBES_DISAGREE,
    queues::HIDES_BLOAT,
    RECOMPUTED_DIFFERS,
    RESTS_ON_DISTORTED,
    RUN_AGAIN,
];

/// A scenario as findings see it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scenario<'a> {
    /// It in short.
    pub row: &'a ScenarioRow,
    /// It in full, where it was measured and not read from a text.
    pub trial: Option<&'a TrialReport>,
}

impl<'a> Scenario<'a> {
    fn flows(&self) -> Option<&'a FlowsReport> {
        self.trial?.flows()
    }
}

/// What a person should know about these scenarios. `past` are all trials that count, the idle
/// path's included.
pub(super) fn latency_findings(
    past: &[&TrialReport],
    idle: Option<&TrialReport>,
    scenarios: &[Scenario<'_>],
) -> Vec<Finding> {
    let view = View { idle, scenarios };
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
struct View<'a> {
    idle: Option<&'a TrialReport>,
    scenarios: &'a [Scenario<'a>],
}

impl View<'_> {
    /// `1 upload and 31 downloads (cubic)`: the congestion control where there are several.
    fn name(&self, row: &ScenarioRow) -> String {
        let of = |n: u32, noun: &str| match n {
            0 => None,
            1 => Some(format!("1 {noun}")),
            n => Some(format!("{n} {noun}s")),
        };
        let both = [of(row.up, "upload"), of(row.down, "download")];
        let flows = list(&both.into_iter().flatten().collect::<Vec<String>>());
        let asked = &row.congestion_control;
        let several = || {
            self.scenarios
                .iter()
                .any(|s| s.row.congestion_control != *asked)
        };
        match !asked.is_empty() && several() {
            true => format!("{flows} ({asked})"),
            false => flows,
        }
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
