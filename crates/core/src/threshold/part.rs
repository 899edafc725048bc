//! A step of a session, or a session, as a trial of its own.

use crate::measure::{Outcome, Outcomes};
use crate::trial::report::TrialReport;

/// What a trial shows of the operations of this step, with or without its session's name before it,
/// or of this session.
pub(super) fn of(name: &str, trial: &TrialReport) -> Option<TrialReport> {
    let http = trial.http()?;
    let per_s = |count: u64| {
        let seconds = trial.duration_ns as f64 / 1e9;
        (count > 0 && seconds > 0.0).then(|| count as f64 / seconds)
    };
    let mut part = TrialReport {
        label: format!("{}, {name}", trial.label),
        ..trial.clone()
    };
    let is_named = |step: &str| {
        step == name
            || step
                .strip_suffix(name)
                .is_some_and(|before| before.ends_with(": "))
    };
    let mut steps = http.traffic.targets.iter();
    if let Some(step) = steps.find(|step| is_named(&step.target)) {
        part.response_time_ns = step.response_time_ns.clone();
        part.outcomes = step.outcomes.clone();
        part.throughput_per_s = per_s(step.completed);
        part.goodput_per_s = per_s(step.outcomes.count(Outcome::Ok));
        return Some(part);
    }
    let mut sessions = http.sessions.iter().flat_map(|sessions| &sessions.kinds);
    let Some(session) = sessions.find(|session| session.session == name) else {
        // One alone has no figures of its own: they are those of the trial.
        return http.traffic.targets.is_empty().then_some(part);
    };
    let mut outcomes = Outcomes::default();
    outcomes.add_many(Outcome::Ok, session.completed);
    outcomes.add_many(Outcome::Unexpected, session.failed);
    part.response_time_ns = session.session_time_ns.clone();
    part.outcomes = outcomes;
    part.throughput_per_s = per_s(session.completed + session.failed);
    part.goodput_per_s = per_s(session.completed);
    Some(part)
}
