//! Agents of a fleet compared one by one. A difference shows a slow path or a busy host, not the
//! target.

use super::draft::RowDraft;
use super::estimate::LogEstimate;
use super::levels::MatchedLevel;
use crate::trial::report::TrialReport;
use crate::trial::statistics::{Better, SPREAD_P50};
use knee_load::measure::AgentMeasured;

/// Most agents that have rows: each row hides differences of the others.
const ROWS_MAX: usize = 12;

fn agents(trial: &TrialReport) -> &[AgentMeasured] {
    trial.http().map_or(&[], |http| &http.agents)
}

/// A row for each agent that both sides have: its mean response time.
pub(super) fn drafts(matched: &MatchedLevel) -> Vec<RowDraft> {
    let [a, b] = matched.firsts().map(|first| first.map_or(&[][..], agents));
    let common = a.iter().filter(|a| b.iter().any(|b| b.agent == a.agent));
    let names: Vec<&str> = common.map(|a| a.agent.as_str()).collect();
    if names.len() > ROWS_MAX {
        return Vec::new();
    }
    let rows = names.into_iter().filter_map(|name| {
        let mut subject = matched.subject("mean_ns", "ns", Better::Less);
        subject.row.matters = false;
        subject.row.agent = Some(name.to_owned());
        name.clone_into(&mut subject.row.label);
        let mean = |trial: &TrialReport| {
            let agent = agents(trial).iter().find(|a| a.agent == name)?;
            LogEstimate::with_ci95(agent.mean_ns?, agent.mean_ns_ci95)
        };
        matched.figure(subject, SPREAD_P50, &mean)
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use crate::compare::report::{Comparison, ComparisonVerdict};
    use crate::compare::tests::{report, run_of_ten_users};
    use crate::compare::{NamedReport, compare};
    use crate::trial::detail::Detail;
    use crate::trial::report::TrialReport;
    use knee_load::measure::AgentMeasured;

    fn made_by(agents: &[(&str, f64)], seed: u64) -> TrialReport {
        let mut trial = run_of_ten_users(seed);
        let agents = agents.iter().map(|&(name, mean_us)| AgentMeasured {
            agent: name.to_owned(),
            mean_ns: Some(mean_us * 1e3),
            mean_ns_ci95: Some([mean_us * 0.99e3, mean_us * 1.01e3]),
            ..AgentMeasured::default()
        });
        let agents = agents.collect();
        match &mut trial.detail {
            Detail::Http(http) => http.agents = agents,
            _ => unreachable!("a run over HTTP"),
        }
        trial
    }

    fn compared(a: &[(&str, f64)], b: &[(&str, f64)]) -> Comparison {
        let [a, b] = [(a, 1), (b, 2)].map(|(agents, seed)| report(made_by(agents, seed)));
        let named = |report| NamedReport { name: "x", report };
        compare(&[named(&a)], &[named(&b)], "1").unwrap()
    }

    fn rows(comparison: &Comparison) -> Vec<(&str, ComparisonVerdict, bool)> {
        let rows = comparison.rows.iter();
        let of_agents = rows.filter_map(|r| Some((r.agent.as_deref()?, r.verdict, r.matters)));
        of_agents.collect()
    }

    #[test]
    fn an_agent_whose_path_became_slow_is_told_and_decides_nothing() {
        let (same, worse) = (ComparisonVerdict::Same, ComparisonVerdict::Worse);
        let before = [("a1", 1000.0), ("a2", 1010.0), ("gone", 990.0)];
        let after = [("a1", 1005.0), ("a2", 2600.0), ("new", 990.0)];
        let found = compared(&before, &after);
        assert_eq!(rows(&found), [("a1", same, false), ("a2", worse, false)]);
        assert_eq!(found.verdict, same, "{}", found.answer);
        assert!(rows(&compared(&before, &[])).is_empty());
        let many: Vec<String> = (0..13).map(|n| format!("a{n}")).collect();
        let many: Vec<(&str, f64)> = many.iter().map(|n| (n.as_str(), 1000.0)).collect();
        assert!(rows(&compared(&many, &many)).is_empty());
        assert_eq!(rows(&compared(&many[..12], &many)).len(), 12);
    }
}
