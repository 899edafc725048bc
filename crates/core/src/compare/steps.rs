//! Steps of sessions, kinds of sessions and agents of a fleet, compared one by one.
//!
//! A difference between agents shows a slow path or a busy host, not the target.

#[cfg(test)]
mod tests;

use super::difference::FailureCount;
use super::draft::{RowDraft, RowSubject};
use super::estimate::LogEstimate;
use super::levels::MatchedLevel;
use super::metrics::quantile_estimate;
use crate::trial::figure::TimesReport;
use crate::trial::report::TrialReport;
use crate::trial::sessions::SessionReport;
use crate::trial::statistics::{Better, SPREAD_P50, SPREAD_THROUGHPUT, StatisticSource, statistic};
use crate::trial::step_names::distinct;
use crate::trial::traffic::TargetReport;
use knee_load::measure::AgentMeasured;
use std::collections::BTreeMap;

/// Percentiles of steps and sessions: the metric of a step, that of a session. Fewer than of a
/// whole trial, as every row hides differences of the others.
const PERCENTILES: [(&str, &str); 3] =
    [("p50_ns", "session_p50_ns"), ("p95_ns", "session_p95_ns"), ("p99_ns", "session_p99_ns")];

/// The rows of percentiles; `metrics` chooses the metric of a step or of a session.
fn percentile_drafts(
    matched: &MatchedLevel,
    metrics: impl Fn((&'static str, &'static str)) -> &'static str,
    subject: impl Fn(&'static str) -> RowSubject,
    times: impl Fn(&TrialReport) -> Option<&TimesReport>,
) -> Vec<RowDraft> {
    let draft = |names: (&'static str, &'static str)| {
        let statistic = statistic(names.0)?;
        let StatisticSource::Time { figure, .. } = statistic.source else {
            return None;
        };
        let estimate = |t: &TrialReport| quantile_estimate(&figure, times(t)?, true);
        matched.figure(subject(metrics(names)), statistic.spread, &estimate)
    };
    PERCENTILES.into_iter().filter_map(draft).collect()
}

/// Rows of the steps and kinds of sessions that both sides have.
pub(super) fn drafts(matched: &MatchedLevel) -> Vec<RowDraft> {
    let steps = common(matched, |t| steps(t).into_iter().map(|(name, _)| name).collect());
    let kinds = common(matched, |t| kinds(t).iter().map(|k| k.session.clone()).collect());
    let step_rows = steps.iter().flat_map(|name| step_drafts(matched, name));
    step_rows.chain(kinds.iter().flat_map(|name| kind_drafts(matched, name))).collect()
}

/// Names that both sides have, in A's order.
fn common(matched: &MatchedLevel, names: impl Fn(&TrialReport) -> Vec<String>) -> Vec<String> {
    let [a, b] = matched.firsts().map(|first| first.map(&names));
    let (mut a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    a.retain(|name| b.contains(name));
    a
}

/// Steps of a trial of sessions by name. Names that repeat have a number.
fn steps(trial: &TrialReport) -> Vec<(String, &TargetReport)> {
    let Some(http) = trial.http().filter(|http| http.sessions.is_some()) else {
        return Vec::new();
    };
    let mut seen = BTreeMap::new();
    let targets = http.traffic.targets.iter();
    targets.map(|target| (distinct(target.target.clone(), &mut seen), target)).collect()
}

fn step<'a>(trial: &'a TrialReport, name: &str) -> Option<&'a TargetReport> {
    steps(trial).into_iter().find(|(step, _)| step == name).map(|(_, report)| report)
}

fn kinds(trial: &TrialReport) -> &[SessionReport] {
    trial.sessions().map_or(&[], |sessions| &sessions.kinds)
}

fn kind<'a>(trial: &'a TrialReport, name: &str) -> Option<&'a SessionReport> {
    kinds(trial).iter().find(|kind| kind.session == name)
}

fn step_drafts(matched: &MatchedLevel, name: &str) -> Vec<RowDraft> {
    let subject = |metric, unit, better| {
        let mut subject = matched.subject(metric, unit, better);
        subject.row.step = Some(name.to_owned());
        name.clone_into(&mut subject.row.label);
        subject
    };
    let rate = |t: &TrialReport| {
        let step = step(t, name)?.step.as_ref()?;
        LogEstimate::with_ci95(step.rate_per_s, step.rate_ci95_per_s)
    };
    // The rate of a step follows from the load and from the steps before it.
    let rate_subject = subject("rate_per_s", "per_s", Better::Neither);
    let rate = matched.figure(rate_subject, SPREAD_THROUGHPUT, &rate);
    let times = percentile_drafts(
        matched,
        |(step, _)| step,
        |metric| subject(metric, "ns", Better::Less),
        |t| Some(&step(t, name)?.response_time_ns),
    );
    let failed = |t: &TrialReport| {
        step(t, name).map_or(FailureCount::default(), |step| FailureCount::of(&step.outcomes))
    };
    let errors = subject("error_percent", "percent", Better::Less);
    // Failures of a step come in the same bursts as all failures.
    let errors = matched.share(errors, &failed);
    rate.into_iter().chain(times).chain(errors).collect()
}

fn kind_drafts(matched: &MatchedLevel, name: &str) -> Vec<RowDraft> {
    let subject = |metric, unit| {
        let mut subject = matched.subject(metric, unit, Better::Less);
        subject.row.session = Some(name.to_owned());
        name.clone_into(&mut subject.row.label);
        subject
    };
    let times = percentile_drafts(
        matched,
        |(_, session)| session,
        |metric| subject(metric, "ns"),
        |t| Some(&kind(t, name)?.session_time_ns),
    );
    let failed = |t: &TrialReport| {
        kind(t, name).map_or(FailureCount::default(), |kind| FailureCount {
            hits: kind.failed,
            all: kind.completed + kind.failed,
        })
    };
    let failures = subject("failed_sessions_percent", "percent");
    let failures = matched.share(failures, &failed);
    times.into_iter().chain(failures).collect()
}

/// Most agents that have rows: each row hides differences of the others.
const ROWS_MAX: usize = 12;

fn agents(trial: &TrialReport) -> &[AgentMeasured] {
    trial.http().map_or(&[], |http| &http.agents)
}

/// A row for each agent that both sides have: its mean response time.
pub(super) fn agent_drafts(matched: &MatchedLevel) -> Vec<RowDraft> {
    let [a, b] = matched.firsts().map(|first| first.map_or(&[][..], agents));
    let names: Vec<&str> = a
        .iter()
        .filter(|a| b.iter().any(|b| b.agent == a.agent))
        .map(|a| a.agent.as_str())
        .collect();
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
mod agents_tests {
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
        rows.filter_map(|r| Some((r.agent.as_deref()?, r.verdict, r.matters))).collect()
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
