//! Steps of sessions, and kinds of sessions, compared one by one.

use super::draft::{Draft, Of, Subject};
use super::estimate::{Estimate, of_times};
use super::levels::Matched;
use super::metrics::failed_by_interval;
use super::share::Count;
use crate::measure::{Outcome, error_share};
use crate::trial::report::{TargetReport, TimesReport, TrialReport};
use crate::trial::sessions::{SessionReport, distinct};
use crate::trial::statistics::{Better, SPREAD_THROUGHPUT, StatisticSource, statistic};
use std::collections::BTreeMap;

/// Percentiles of steps and of sessions: the metric of a step, that of a session. Every row makes
/// it harder to tell the others from chance, so that there are fewer than of a whole trial.
const PERCENTILES: [(&str, &str); 3] = [
    ("p50_ns", "session_p50_ns"),
    ("p95_ns", "session_p95_ns"),
    ("p99_ns", "session_p99_ns"),
];

/// The rows of percentiles; `metrics` chooses the metric of a step or of a session.
fn percentile_drafts(
    matched: &Matched,
    metrics: impl Fn((&'static str, &'static str)) -> &'static str,
    subject: impl Fn(&'static str) -> Subject,
    times: impl Fn(&TrialReport) -> Option<&TimesReport>,
) -> Vec<Draft> {
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

/// The rows of the steps and the kinds of sessions that both sides have, where trials are of
/// sessions.
pub(super) fn drafts(matched: &Matched) -> Vec<Draft> {
    let steps = common(matched, |t| {
        steps(t).into_iter().map(|(name, _)| name).collect()
    });
    let kinds = common(matched, |t| {
        kinds(t).iter().map(|k| k.session.clone()).collect()
    });
    let of_steps = steps.iter().flat_map(|name| step_drafts(matched, name));
    let of_kinds = kinds.iter().flat_map(|name| kind_drafts(matched, name));
    of_steps.chain(of_kinds).collect()
}

/// The names that a trial of each side has, in A's order.
fn common(matched: &Matched, names: impl Fn(&TrialReport) -> Vec<String>) -> Vec<String> {
    let [a, b] = matched.firsts().map(|first| first.map(&names));
    let (mut a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    a.retain(|name| b.contains(name));
    a
}

/// The steps of a trial of sessions by their names. Several may be called alike: further ones are
/// told by their place among them.
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
    steps
        .filter(|(of, _)| of == name)
        .map(|(_, step)| step)
        .next()
}

fn kinds(trial: &TrialReport) -> &[SessionReport] {
    trial.sessions().map_or(&[], |sessions| &sessions.kinds)
}

fn kind<'a>(trial: &'a TrialReport, name: &str) -> Option<&'a SessionReport> {
    kinds(trial).iter().find(|kind| kind.session == name)
}

fn step_drafts(matched: &Matched, name: &str) -> Vec<Draft> {
    let subject = |metric, unit, better| Subject {
        // How many there are of a step follows from the load and from what steps before it did.
        matters: better != Better::Neither,
        of: Of::Step(name.to_owned()),
        label: name.to_owned(),
        ..matched.subject(metric, unit, better)
    };
    let rate = |t: &TrialReport| {
        let step = step(t, name)?.step.as_ref()?;
        Estimate::with_ci95(step.rate_per_s, step.rate_ci95_per_s)
    };
    let rate_subject = subject("rate_per_s", "per_s", Better::Neither);
    let rate = matched.figure(rate_subject, SPREAD_THROUGHPUT, &rate);
    let times = percentile_drafts(
        matched,
        |(of_step, _)| of_step,
        |metric| subject(metric, "ns", Better::Less),
        |t| Some(&step(t, name)?.response_time_ns),
    );
    let failed = |t: &TrialReport| step(t, name).map_or(Count::default(), failed_of_step);
    let errors = subject("error_percent", "percent", Better::Less);
    // Failures of one step come in the same bursts as those of all.
    let errors = matched.share(errors, &failed, &failed_by_interval);
    rate.into_iter().chain(times).chain(errors).collect()
}

fn failed_of_step(step: &TargetReport) -> Count {
    let ended = step.outcomes.total() - step.outcomes.count(Outcome::InFlight);
    Count {
        hits: (error_share(&step.outcomes) * ended as f64).round() as u64,
        all: ended,
    }
}

fn kind_drafts(matched: &Matched, name: &str) -> Vec<Draft> {
    let subject = |metric, unit| Subject {
        of: Of::Session(name.to_owned()),
        label: name.to_owned(),
        ..matched.subject(metric, unit, Better::Less)
    };
    let times = percentile_drafts(
        matched,
        |(_, of_session)| of_session,
        |metric| subject(metric, "ns"),
        |t| Some(&kind(t, name)?.session_time_ns),
    );
    let failed = |t: &TrialReport| {
        kind(t, name).map_or(Count::default(), |kind| Count {
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
