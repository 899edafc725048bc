//! What each agent of a fleet contributed.

use super::line::{Ink, Line};
use super::table::{Align, Table};
use super::{Document, Medium};
use crate::number::{count, known, percent, plural, rate, time_short};
use knee_core::measure::AgentMeasured;
use knee_core::trial::agents::{AgentState, agent_state};
use knee_core::trial::report::TrialReport;

/// So many agents are listed where there is little room, those that are lost first.
const SHOWN: usize = 12;

/// Adds them, where several made the trial. `of`: which trial, where there are several.
pub(super) fn show(doc: &mut Document, trial: &TrialReport, of: &str) {
    let Some(http) = trial.http().filter(|http| !http.agents.is_empty()) else {
        return;
    };
    let agents = &http.agents;
    let began = match http.agents_skew_ns_max {
        Some(skew_ns) => format!(", begun within {} of each other", time_short(skew_ns)),
        None => String::new(),
    };
    let made = match of {
        "" => format!(
            "{} made the load together{began}",
            plural(agents.len() as u64, "agent")
        ),
        of => format!(
            "{of} made by {}{began}",
            plural(agents.len() as u64, "agent")
        ),
    };
    doc.section("Agents", made);
    let is_off = |a: &&AgentMeasured| a.clock.is_some_and(|c| c.agrees_with_chrony == Some(false));
    let off: Vec<&str> = agents
        .iter()
        .filter(is_off)
        .map(|a| a.agent.as_str())
        .collect();
    if !off.is_empty() {
        doc.note(format!(
            "The time of day of {} is further from the coordinator's than chrony permits. The \
             beginning does not depend on it.",
            off.join(", ")
        ));
    }
    let (lost, others): (Vec<_>, Vec<_>) = agents.iter().partition(|a| a.lost_because.is_some());
    let ordered: Vec<&AgentMeasured> = lost.into_iter().chain(others).collect();
    let shown = &ordered[..ordered.len().min(SHOWN)];
    if shown.len() == ordered.len() {
        doc.table("Agents", table(&ordered));
        return;
    }
    doc.only(Medium::Page, |doc| doc.table("Agents", table(&ordered)));
    doc.only(Medium::Lines, |doc| {
        doc.table("Agents", table(shown));
        doc.note("The page and the JSON have all of them.");
    });
}

/// Where there are several trials: those of the trial that got the most, and of all others each
/// agent that was lost, stopped or distorted its share.
pub(super) fn show_levels(doc: &mut Document, trials: &[TrialReport]) {
    show_busiest(doc, trials);
    let rows = trials.iter().flat_map(|trial| {
        let agents = trial.http().map(|http| http.agents.as_slice());
        agents.unwrap_or_default().iter().map(move |a| (trial, a))
    });
    let rows: Vec<(&TrialReport, &AgentMeasured)> = rows
        .filter(|(_, a)| agent_state(a) != AgentState::Fine)
        .collect();
    if rows.is_empty() {
        return;
    }
    let mut table = Table::default();
    let column = |cell: &dyn Fn(&TrialReport, &AgentMeasured) -> Line| -> Vec<Line> {
        rows.iter()
            .map(|(trial, agent)| cell(trial, agent))
            .collect()
    };
    let level = column(&|trial, _| Line::plain(trial.label.clone()));
    table.column("level", Align::Left, level);
    let agent = column(&|_, agent| Line::plain(agent.agent.clone()));
    table.column("agent", Align::Left, agent);
    table.column("state", Align::Left, column(&|_, agent| state(agent)));
    doc.table("Agents that did not do their part", table);
}

fn show_busiest(doc: &mut Document, trials: &[TrialReport]) {
    let more =
        |a: &&TrialReport, b: &&TrialReport| a.responses_per_s().total_cmp(&b.responses_per_s());
    if let Some(trial) = trials.iter().max_by(more) {
        show(doc, trial, &trial.label);
    }
}

fn table(agents: &[&AgentMeasured]) -> Table {
    let mut table = Table::default();
    let column = |cell: &dyn Fn(&AgentMeasured) -> Line| -> Vec<Line> {
        agents.iter().map(|agent| cell(agent)).collect()
    };
    table.column("", Align::Left, column(&|a| Line::plain(a.agent.clone())));
    table.column(
        "share",
        Align::Right,
        column(&|a| Line::plain(percent(a.share_percent))),
    );
    table.column(
        "workers",
        Align::Right,
        column(&|a| Line::plain(count(a.workers.into()))),
    );
    // Of one that is lost nothing is known.
    let told = |of: fn(&AgentMeasured) -> String| {
        move |a: &AgentMeasured| match a.lost_because {
            Some(_) => Line::plain("–"),
            None => Line::plain(of(a)),
        }
    };
    let started = told(|a| rate(a.started_per_s));
    table.column("started", Align::Right, column(&started));
    let failed = |a: &AgentMeasured| match a.attempted - a.completed.min(a.attempted) {
        0 => told(|_| count(0))(a),
        n => Line::of(Ink::Bad, count(n)),
    };
    table.column("errors", Align::Right, column(&failed));
    let p50 = told(|a| known(a.p50_ns, time_short));
    table.column("p50", Align::Right, column(&p50));
    let p99 = told(|a| known(a.p99_ns, time_short));
    table.column("p99", Align::Right, column(&p99));
    let late = told(|a| known(a.pacing_error_p99_ns, time_short));
    table.column("started late, p99", Align::Right, column(&late));
    let busy = told(|a| percent(a.busiest_worker_percent));
    table.column("busiest core", Align::Right, column(&busy));
    let clock = |a: &AgentMeasured| {
        Line::plain(known(a.clock, |clock| {
            format!("± {}", time_short(clock.uncertainty_ns))
        }))
    };
    table.column("began within", Align::Right, column(&clock));
    table.column("", Align::Left, column(&state));
    table
}

fn state(agent: &AgentMeasured) -> Line {
    let state = agent_state(agent);
    match state {
        AgentState::Fine => Line::plain(""),
        AgentState::Lost(_) | AgentState::Stopped(_) => Line::of(Ink::Bad, state.words()),
        AgentState::Distorted(_) => Line::of(Ink::Warn, state.words()),
    }
}
