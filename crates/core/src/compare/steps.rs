//! Steps of sessions, and kinds of sessions, compared one by one.

use super::draft::{Better, Draft, Of, Subject};
use super::estimate::{BEYOND_MIN, Estimate, FigureWithInterval};
use super::levels::Matched;
use super::metrics::{SPREAD_P50, SPREAD_P95, SPREAD_P99, SPREAD_THROUGHPUT, failed_by_interval};
use super::share::Count;
use crate::measure::{Outcome, error_share};
use crate::trial::report::{TargetReport, TimesReport, TrialReport};
use crate::trial::sessions::{SessionReport, distinct};
use std::collections::BTreeMap;

/// A percentile of response or session time.
struct Percentile {
    of_step: &'static str,
    of_session: &'static str,
    q: f64,
    spread: f64,
    of: fn(&TimesReport) -> FigureWithInterval,
}

/// Those that reports show of steps and sessions. Every row makes it harder to tell the others from
/// chance, so that there are fewer than of a whole trial.
const PERCENTILES: [Percentile; 3] = [
    Percentile {
        of_step: "p50_ns",
        of_session: "session_p50_ns",
        q: 0.5,
        spread: SPREAD_P50,
        of: |l| (l.p50, l.p50_ci95),
    },
    Percentile {
        of_step: "p95_ns",
        of_session: "session_p95_ns",
        q: 0.95,
        spread: SPREAD_P95,
        of: |l| (l.p95, l.p95_ci95),
    },
    Percentile {
        of_step: "p99_ns",
        of_session: "session_p99_ns",
        q: 0.99,
        spread: SPREAD_P99,
        of: |l| (l.p99, l.p99_ci95),
    },
];

impl Percentile {
    /// That of these times; `None` with fewer than five observations beyond it.
    fn estimate(&self, times: &TimesReport) -> Option<Estimate> {
        if times.count as f64 * (1.0 - self.q) < BEYOND_MIN {
            return None;
        }
        let (value, ci95) = (self.of)(times);
        let ci95 = ci95.map(|ends| ends.map(|ns| ns as f64));
        Estimate::with_ci95(value? as f64, ci95)
    }
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
    let times = PERCENTILES.iter().filter_map(|percentile| {
        let of = |t: &TrialReport| percentile.estimate(&step(t, name)?.response_time_ns);
        let subject = subject(percentile.of_step, "ns", Better::Less);
        matched.figure(subject, percentile.spread, &of)
    });
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
    let times = PERCENTILES.iter().filter_map(|percentile| {
        let of = |t: &TrialReport| percentile.estimate(&kind(t, name)?.session_time_ns);
        matched.figure(subject(percentile.of_session, "ns"), percentile.spread, &of)
    });
    let failed = |t: &TrialReport| {
        kind(t, name).map_or(Count::default(), |kind| Count {
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
