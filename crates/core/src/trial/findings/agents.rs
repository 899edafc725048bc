//! Findings about the agents of a fleet.

use super::TrialGroup;
use crate::finding::{Code, Finding, Severity, codes};
use crate::trial::agents::{AgentDifference, AgentState, agent_state, outlier};
use crate::trial::report::TrialReport;
use crate::words::{percent, time};

codes! {
    FLEET_INCOMPLETE = "fleet_incomplete":
        cause "An agent of the fleet did not deliver what it measured: it ended, was cut off, or \
               its host failed. Its share of the load is in no figure, and the trial is INVALID.",
        remedy "See why the agent ended. Where it was cut off, it keeps its result and delivers \
                it once it is back: knee fleet collect fetches that.";

    AGENT_STOPPED = "agent_stopped":
        cause "The process of an agent did not run for 100 ms or longer: it was stopped, or its \
               machine was. Its share of the load was not offered in that time.",
        remedy "Find what stopped it: SIGSTOP, a suspended virtual machine, or a quota of \
                processor time in its container. An agent that is only slow has another remark in \
                its row.";

    AGENTS_DIFFER = "agents_differ":
        cause "One agent of the fleet measured other response times, or more failures, than the \
               others, by more than chance. Its path to the target is slower, its host is busy, \
               or the target answers it from another place.",
        remedy "Look at the table of agents. Measure from that host alone, or leave it out with \
                --agents, and compare.";

    RESULTS_KEPT = "results_kept":
        cause "JetStream did not store the result of an agent. The coordinator fetched it from \
               the agent, so nothing is missing. A result is lost, though, if its agent ends \
               before that.",
        remedy "Make room in JetStream: delete old results with knee fleet clear, or raise \
                max_file_store of nats-server and the limits of the account.";
}

/// Codes of the state of an agent, which do not depend on its trial.
pub(super) const STATE_CODES: &[Code] = &[AGENT_STOPPED, RESULTS_KEPT];

pub(super) fn fleet_incomplete(trials: &TrialGroup) -> Option<Finding> {
    let lost = |t: &TrialReport| {
        let agents = &t.http()?.agents;
        let mut lost = agents.iter().filter_map(|a| Some((a, a.lost_because.as_ref()?)));
        let (first, because) = lost.next()?;
        Some((first.agent.clone(), because.clone(), 1 + lost.count(), agents.len()))
    };
    let (place, (agent, because, lost, of)) = trials.worst(lost, |l| l.2 as f64)?;
    let others = match lost {
        1 => String::new(),
        n => format!(", and {} other agents", n - 1),
    };
    Some(FLEET_INCOMPLETE.finding(
        Severity::Error,
        format!(
            "{place}agent {agent} is lost{others}: {because}. The figures are those of the other \
             agents"
        ),
        [("lost", lost as f64), ("agents", of as f64)],
        "see why it ended, then repeat; if it was only cut off: knee fleet collect",
    ))
}

pub(super) fn agent_stopped(trials: &TrialGroup) -> Option<Finding> {
    let stopped = |t: &TrialReport| {
        let agents = t.http()?.agents.iter();
        let states = agents.filter_map(|a| match agent_state(a) {
            AgentState::Stopped(ns) => Some((a.agent.clone(), ns)),
            _ => None,
        });
        states.max_by_key(|(_, ns)| *ns)
    };
    let (place, (agent, ns)) = trials.worst(stopped, |found| found.1 as f64)?;
    Some(AGENT_STOPPED.finding(
        Severity::Warning,
        format!("{place}agent {agent} was stopped: it did not run for {}", time(ns as f64)),
        [("stopped_ns", ns as f64)],
        "find what stopped its process or its machine, then repeat",
    ))
}

pub(super) fn results_kept(trials: &TrialGroup) -> Option<Finding> {
    let kept = |t: &TrialReport| {
        let agents = &t.http()?.agents;
        let mut kept = agents.iter().filter_map(|a| Some((a, a.kept_because.as_ref()?)));
        let (first, because) = kept.next()?;
        Some((first.agent.clone(), because.clone(), 1 + kept.count()))
    };
    let (place, (agent, because, count)) = trials.worst(kept, |k| k.2 as f64)?;
    Some(RESULTS_KEPT.finding(
        Severity::Warning,
        format!("{place}the result of agent {agent} was fetched from it: {because}"),
        [("agents", count as f64)],
        "make room in JetStream: knee fleet clear, or raise max_file_store of nats-server",
    ))
}

pub(super) fn agents_differ(trials: &TrialGroup) -> Option<Finding> {
    let (place, found) =
        trials.worst(|t| outlier(&t.http()?.agents), |found| found.differs.weight())?;
    let (what, evidence) = match found.differs {
        AgentDifference::Mean { own_ns, others_ns } => (
            format!(
                "its mean response time is {}, that of the others {}",
                time(own_ns),
                time(others_ns)
            ),
            [("own_mean_ns", own_ns), ("others_mean_ns", others_ns)],
        ),
        AgentDifference::Errors { own, others } => (
            format!(
                "{} of its operations failed, {} of the others'",
                percent(own),
                percent(others)
            ),
            [("own_error_percent", own), ("others_error_percent", others)],
        ),
    };
    Some(AGENTS_DIFFER.finding(
        Severity::Warning,
        format!("{place}agent {} differs from the others: {what}", found.agent),
        evidence,
        "look at its path and its host; leave it out with --agents and compare",
    ))
}
