//! Steps of sessions, and kinds of sessions, compared one by one.

use super::draft::{Better, RowDraft};
use super::estimate::{BEYOND_MIN, FigureWithInterval, LogEstimate};
use super::levels::MatchedLevel;
use super::metrics::{SPREAD_P50, SPREAD_P95, SPREAD_P99, SPREAD_THROUGHPUT, failed_by_interval};
use super::share::FailureCount;
use crate::measure::{Outcome, error_share};
use crate::trial::report::{TargetReport, TimesReport, TrialReport};
use crate::trial::sessions::{SessionReport, distinct};
use std::collections::BTreeMap;

/// A percentile of response or session time.
struct ComparedPercentile {
    of_step: &'static str,
    of_session: &'static str,
    q: f64,
    spread: f64,
    of: fn(&TimesReport) -> FigureWithInterval,
}

/// Percentiles of steps and sessions. Fewer than of a whole trial, as every row hides differences
/// of the others.
const PERCENTILES: &[ComparedPercentile] = &[
    ComparedPercentile {
        of_step: "p50_ns",
        of_session: "session_p50_ns",
        q: 0.5,
        spread: SPREAD_P50,
        of: |l| (l.p50, l.p50_ci95),
    },
    ComparedPercentile {
        of_step: "p95_ns",
        of_session: "session_p95_ns",
        q: 0.95,
        spread: SPREAD_P95,
        of: |l| (l.p95, l.p95_ci95),
    },
    ComparedPercentile {
        of_step: "p99_ns",
        of_session: "session_p99_ns",
        q: 0.99,
        spread: SPREAD_P99,
        of: |l| (l.p99, l.p99_ci95),
    },
];

impl ComparedPercentile {
    /// The percentile of these times; `None` with fewer than five observations beyond it.
    fn estimate(&self, times: &TimesReport) -> Option<LogEstimate> {
        if times.count as f64 * (1.0 - self.q) < BEYOND_MIN {
            return None;
        }
        let (value, ci95) = (self.of)(times);
        let ci95 = ci95.map(|ends| ends.map(|ns| ns as f64));
        LogEstimate::with_ci95(value? as f64, ci95)
    }
}

/// Rows of the steps and kinds of sessions that both sides have.
pub(super) fn drafts(matched: &MatchedLevel) -> Vec<RowDraft> {
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
    let times = PERCENTILES.iter().filter_map(|percentile| {
        let of = |t: &TrialReport| percentile.estimate(&step(t, name)?.response_time_ns);
        let subject = subject(percentile.of_step, "ns", Better::Less);
        matched.figure(subject, percentile.spread, &of)
    });
    let failed = |t: &TrialReport| step(t, name).map_or(FailureCount::default(), failed_of_step);
    let errors = subject("error_percent", "percent", Better::Less);
    // Failures of a step come in the same bursts as all failures.
    let errors = matched.share(errors, &failed, &failed_by_interval);
    rate.into_iter().chain(times).chain(errors).collect()
}

fn failed_of_step(step: &TargetReport) -> FailureCount {
    let ended = step.outcomes.total() - step.outcomes.count(Outcome::InFlight);
    FailureCount {
        hits: (error_share(&step.outcomes) * ended as f64).round() as u64,
        all: ended,
    }
}

fn kind_drafts(matched: &MatchedLevel, name: &str) -> Vec<RowDraft> {
    let subject = |metric, unit| {
        let mut subject = matched.subject(metric, unit, Better::Less);
        subject.row.session = Some(name.to_owned());
        name.clone_into(&mut subject.row.label);
        subject
    };
    let times = PERCENTILES.iter().filter_map(|percentile| {
        let of = |t: &TrialReport| percentile.estimate(&kind(t, name)?.session_time_ns);
        matched.figure(subject(percentile.of_session, "ns"), percentile.spread, &of)
    });
    let failed = |t: &TrialReport| {
        kind(t, name).map_or(FailureCount::default(), |kind| FailureCount {
            hits: kind.failed,
            all: kind.completed + kind.failed,
        })
    };
    let failures = subject("failed_sessions_percent", "percent");
    let failures = matched.share(failures, &failed, &failed_by_interval);
    times.chain(failures).collect()
}

#[cfg(test)]
mod tests;
