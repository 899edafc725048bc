//! The contribution of each agent of a fleet.

use super::line::{Ink, Line};
use super::table::{Table, TableOf};
use super::{Document, Medium};
use crate::number::{MISSING, count, known, percent, plural, rate, time_short};
use knee_core::trial::agents::{AgentState, agent_state};
use knee_core::trial::report::TrialReport;
use knee_load::measure::AgentMeasured;

/// Agents listed in a terminal, the lost ones first.
const SHOWN: usize = 12;

/// Adds the agents of a trial that a fleet made. `of` names the trial among several.
pub(super) fn show(doc: &mut Document, trial: &TrialReport, of: &str) {
    let Some(http) = trial.http().filter(|http| !http.agents.is_empty()) else {
        return;
    };
    let agents = &http.agents;
    let began = match http.agents_skew_ns_max {
        Some(skew_ns) => format!(", begun within {} of each other", time_short(skew_ns)),
        None => String::new(),
    };
    let number = plural(agents.len() as u64, "agent");
    let made = match of {
        "" => format!("{number} made the load together{began}"),
        of => format!("{of} made by {number}{began}"),
    };
    doc.section("Agents", made);
    let is_off = |a: &&AgentMeasured| a.clock.is_some_and(|c| c.agrees_with_chrony == Some(false));
    let off = agents.iter().filter(is_off).map(|a| a.agent.as_str());
    let off: Vec<&str> = off.collect();
    if !off.is_empty() {
        doc.note(format!(
            "The time of day of {} is further from the coordinator's than chrony permits. The \
             beginning does not depend on it.",
            off.join(", ")
        ));
    }
    let (lost, others): (Vec<_>, Vec<_>) = agents.iter().partition(|a| a.lost_because.is_some());
    let ordered: Vec<&AgentMeasured> = lost.into_iter().chain(others).collect();
    if ordered.len() <= SHOWN {
        doc.table("Agents", table(&ordered));
        return;
    }
    doc.only(Medium::Page, |doc| doc.table("Agents", table(&ordered)));
    doc.only(Medium::Lines, |doc| {
        doc.table("Agents", table(&ordered[..SHOWN]));
        doc.note("The page and the JSON have all of them.");
    });
}

/// Adds the agents of the trial with the highest throughput, and each agent of the other trials
/// that was lost, stopped or distorted its share.
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    let throughput = |trial: &&TrialReport| trial.responses_per_s();
    let busiest = trials.iter();
    if let Some(trial) = busiest.max_by(|a, b| throughput(a).total_cmp(&throughput(b))) {
        show(doc, trial, &trial.label);
    }
    let rows = trials.iter().flat_map(|trial| {
        let agents = trial.http().map(|http| http.agents.as_slice());
        agents.unwrap_or_default().iter().map(move |a| (trial, a))
    });
    let rows = rows.filter(|(_, a)| agent_state(a) != AgentState::Fine);
    let rows: Vec<(&TrialReport, &AgentMeasured)> = rows.collect();
    if rows.is_empty() {
        return;
    }
    let mut table = TableOf::new(&rows);
    table.left("level", |(trial, _)| trial.label.as_str());
    table.left("agent", |(_, agent)| agent.agent.as_str());
    table.left("state", |(_, agent)| state(agent));
    doc.table("Agents that did not do their part", table.done());
}

fn table(agents: &[&AgentMeasured]) -> Table {
    // Nothing is known of a lost agent.
    fn unless_lost(agent: &AgentMeasured, figure: impl Fn() -> String) -> String {
        match agent.lost_because {
            Some(_) => MISSING.to_owned(),
            None => figure(),
        }
    }
    let mut table = TableOf::new(agents);
    table.left("", |a| a.agent.as_str());
    table.right("share", |a| percent(a.share_percent));
    table.right("workers", |a| count(a.workers.into()));
    table.right("started", |a| unless_lost(a, || rate(a.started_per_s)));
    table.right("errors", |a| match a.attempted - a.completed.min(a.attempted) {
        0 => Line::plain(unless_lost(a, || count(0))),
        n => Line::of(Ink::Bad, count(n)),
    });
    let time = |a: &AgentMeasured, ns| unless_lost(a, || known(ns, time_short));
    table.right("p50", |a| time(a, a.p50_ns));
    table.right("p99", |a| time(a, a.p99_ns));
    table.right("started late, p99", |a| time(a, a.pacing_error_p99_ns));
    table.right("busiest core", |a| unless_lost(a, || percent(a.busiest_worker_percent)));
    let within = |ns: u64| format!("± {}", time_short(ns));
    table.right("began within", |a| known(a.clock, |clock| within(clock.uncertainty_ns)));
    table.left("", |a| state(a));
    table.done()
}

fn state(agent: &AgentMeasured) -> Line {
    let state = agent_state(agent);
    let ink = match state {
        AgentState::Fine => return Line::default(),
        AgentState::Lost(_) | AgentState::Stopped(_) => Ink::Bad,
        AgentState::Distorted(_) => Ink::Warn,
    };
    Line::of(ink, state.words())
}
