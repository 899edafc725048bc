//! What a fleet's agents did.

use super::Trials;
use crate::finding::{Code, Finding, Severity};
use crate::trial::agents::{Differs, outlier};
use crate::trial::report::TrialReport;
use crate::words::{percent, time};

pub(super) const CODES: [Code; 2] = [FLEET_INCOMPLETE, AGENTS_DIFFER];

const FLEET_INCOMPLETE: Code = Code {
    name: "fleet_incomplete",
    cause: "An agent of the fleet did not deliver what it measured: it ended, was cut off, or its \
            host failed. Its share of the load is in no figure, and the trial is INVALID.",
    remedy: "See why the agent ended. Where it was cut off, it keeps its result and delivers it \
             once it is back: knee fleet collect fetches that.",
};

pub(super) fn fleet_incomplete(trials: &Trials) -> Option<Finding> {
    let lost = |t: &TrialReport| {
        let agents = &t.http()?.agents;
        let mut lost = agents
            .iter()
            .filter_map(|a| Some((a, a.lost_because.as_ref()?)));
        let (first, because) = lost.next()?;
        Some((
            first.agent.clone(),
            because.clone(),
            1 + lost.count(),
            agents.len(),
        ))
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

const AGENTS_DIFFER: Code = Code {
    name: "agents_differ",
    cause: "One agent of the fleet measured other response times, or more failures, than the \
            others, by more than chance. Its path to the target is slower, its host is busy, or \
            the target answers it from another place.",
    remedy: "Look at the table of agents. Measure from that host alone, or leave it out with \
             --agents, and compare.",
};

pub(super) fn agents_differ(trials: &Trials) -> Option<Finding> {
    let (place, found) = trials.worst(
        |t| outlier(&t.http()?.agents),
        |found| found.differs.weight(),
    )?;
    let (what, evidence) = match found.differs {
        Differs::Mean { own_ns, others_ns } => (
            format!(
                "its mean response time is {}, that of the others {}",
                time(own_ns),
                time(others_ns)
            ),
            [("own_mean_ns", own_ns), ("others_mean_ns", others_ns)],
        ),
        Differs::Errors { own, others } => (
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
        format!(
            "{place}agent {} differs from the others: {what}",
            found.agent
        ),
        evidence,
        "look at its path and its host; leave it out with --agents and compare",
    ))
}
