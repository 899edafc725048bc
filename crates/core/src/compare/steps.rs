//! Steps of sessions, and kinds of sessions, compared one by one.

use super::draft::{RowDraft, RowSubject};
use super::estimate::{LogEstimate, of_times};
use super::levels::MatchedLevel;
use super::metrics::failed_by_interval;
use super::share::FailureCount;
use crate::trial::report::{TargetReport, TimesReport, TrialReport};
use crate::trial::sessions::{SessionReport, distinct};
use crate::trial::statistics::{Better, SPREAD_THROUGHPUT, StatisticSource, statistic};
use knee_load::measure::{Outcome, error_share};
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
        let of = |t: &TrialReport| of_times(&figure, times(t)?, true);
        matched.figure(subject(metrics(names)), statistic.spread, &of)
    };
    PERCENTILES.into_iter().filter_map(draft).collect()
}

/// Rows of the steps and kinds of sessions that both sides have.
pub(super) fn drafts(matched: &MatchedLevel) -> Vec<RowDraft> {
    let steps = common(matched, |t| steps(t).into_iter().map(|(name, _)| name).collect());
    let kinds = common(matched, |t| kinds(t).iter().map(|k| k.session.clone()).collect());
    let of_steps = steps.iter().flat_map(|name| step_drafts(matched, name));
    let of_kinds = kinds.iter().flat_map(|name| kind_drafts(matched, name));
    of_steps.chain(of_kinds).collect()
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
    let named = targets.map(|target| (distinct(target.target.clone(), &mut seen), target));
    named.collect()
}

fn step<'a>(trial: &'a TrialReport, name: &str) -> Option<&'a TargetReport> {
    let steps = steps(trial).into_iter();
    steps.filter(|(of, _)| of == name).map(|(_, step)| step).next()
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
        |(of_step, _)| of_step,
        |metric| subject(metric, "ns", Better::Less),
        |t| Some(&step(t, name)?.response_time_ns),
    );
    let failed = |t: &TrialReport| step(t, name).map_or(FailureCount::default(), failed_of_step);
    let errors = subject("error_percent", "percent", Better::Less);
    // Failures of a step come in the same bursts as all failures.
    let errors = matched.share(errors, &failed, &failed_by_interval);
    rate.into_iter().chain(times).chain(errors).collect()
}

fn failed_of_step(step: &TargetReport) -> FailureCount {
    let ended = step.outcomes.total() - step.outcomes.count(Outcome::InFlight);
    FailureCount { hits: (error_share(&step.outcomes) * ended as f64).round() as u64, all: ended }
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
        |(_, of_session)| of_session,
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
    let failures = matched.share(failures, &failed, &failed_by_interval);
    times.into_iter().chain(failures).collect()
}

#[cfg(test)]
mod tests;
