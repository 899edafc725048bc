//! What a person should know of trials, whatever experiment they belong to.
//!
//! Each finding is one function: it looks for something in every trial, and builds the finding
//! where it holds.

mod generator;
mod messages;
mod sessions;
mod silence;
mod target;
#[cfg(test)]
mod tests;

pub(crate) use generator::{
    FLEET_INCOMPLETE, GENERATOR_DISTORTED, GENERATOR_LIMITED, QUIETER, RATE_MAX_REACHED, distorted,
};
pub(crate) use sessions::CODES as SESSION_CODES;
pub(crate) use silence::{OUTAGE, PAUSES, PERIODIC_PAUSES};
pub(crate) use target::{
    ERRORS, FIND_THE_FAILURES, NON_STATIONARY, TARGET_QUEUE_GROWS, failure_kind,
};

use crate::finding::{Code, Finding, gravest_first};
use crate::trial::report::TrialReport;
use crate::words::{levels, value};
use knee_load::spec::Level;

/// The codes of these findings.
pub fn codes() -> impl Iterator<Item = Code> {
    let modules =
        [generator::CODES, target::CODES, silence::CODES, messages::CODES, sessions::CODES];
    modules.into_iter().flatten().copied()
}

/// The findings of a single trial, the gravest first.
pub fn trial_findings(trial: &TrialReport) -> Vec<Finding> {
    let mut findings = diagnose(&TrialGroup {
        trials: &[trial],
        are_named: false,
        asked: FindingContext::default(),
    });
    gravest_first(&mut findings);
    findings
}

/// The findings of several trials, one of each kind, which names the levels that it holds for.
pub(crate) fn findings_at_levels(trials: &[&TrialReport], asked: FindingContext) -> Vec<Finding> {
    diagnose(&TrialGroup::at_levels(trials, asked))
}

/// The parts of findings that depend on the command.
#[derive(Clone, Copy)]
pub(crate) struct FindingContext {
    /// Whether it is known what the target does in an open loop, so that no finding about a closed
    /// one needs to say it.
    pub is_open_loop_known: bool,
    /// How to ask less of a generator that distorts the load, with this command's options; see
    /// [`distorted`].
    pub lighter: &'static str,
}

impl Default for FindingContext {
    fn default() -> FindingContext {
        FindingContext {
            is_open_loop_known: false,
            lighter: ", or offer less: a lower --rate or --vusers",
        }
    }
}

/// How agents did their part, in all of these trials. Superseded trials and those left out are the
/// very ones in which an agent was stopped. Takes the place of what [`findings_at_levels`] found of
/// that in some of them.
pub(crate) fn with_agents(trials: &[&TrialReport], mut found: Vec<Finding>) -> Vec<Finding> {
    found.retain(|f| generator::STATE_CODES.iter().all(|&code| !f.is(code)));
    let trials = TrialGroup::at_levels(trials, FindingContext::default());
    found.extend(generator::agent_stopped(&trials));
    found.extend(generator::results_kept(&trials));
    found
}

fn diagnose(trials: &TrialGroup) -> Vec<Finding> {
    let checks: &[fn(&TrialGroup) -> Option<Finding>] = &[
        generator::fleet_incomplete,
        generator::generator_limited,
        generator::rate_max_reached,
        generator::agent_stopped,
        generator::generator_distorted,
        generator::generator_stalled,
        generator::figures_undetermined,
        generator::generator_woken,
        generator::littles_law,
        target::connections_limit,
        target::ids_exhausted,
        target::target_queue_grows,
        target::non_stationary,
        target::errors,
        silence::outages,
        silence::hung_operations,
        silence::pauses,
        generator::think_deviation,
        target::server_stalled,
        target::redirects,
        target::surplus_bytes,
        target::delayed_ack,
        generator::generator_polled,
        messages::streams_incomplete,
        messages::stream_errors,
        messages::buffered_stream,
        messages::streams_stalled,
        messages::messages_late,
        messages::message_count_missing,
        sessions::data_exhausted,
        sessions::unexpected_responses,
        sessions::program_failed,
        sessions::program_late,
        sessions::script_failed,
        sessions::script_aborted,
        sessions::script_limited,
        sessions::unfit_value,
        generator::agents_differ,
        generator::results_kept,
    ];
    checks.iter().filter_map(|check| check(trials)).collect()
}

/// Whether, in an open loop, the queue grew all through the window. Operations that have started
/// and not ended accumulate from beginning to end, or arrivals had to be shed.
pub fn queue_grows(trial: &TrialReport) -> bool {
    target::growing_queue(trial).is_some()
}

/// Trials that are diagnosed together.
struct TrialGroup<'a> {
    trials: &'a [&'a TrialReport],
    /// Whether a finding names the levels that it holds for.
    are_named: bool,
    asked: FindingContext,
}

impl<'a> TrialGroup<'a> {
    fn at_levels(trials: &'a [&'a TrialReport], asked: FindingContext) -> TrialGroup<'a> {
        TrialGroup { trials, are_named: true, asked }
    }

    /// Where it holds, in words, and what it found in each of those trials; `None` where nowhere.
    fn all<T>(&self, check: impl Fn(&TrialReport) -> Option<T>) -> Option<(String, Vec<T>)> {
        let found = self.trials.iter().filter_map(|t| Some((t.level, check(t)?)));
        let (at, all): (Vec<Level>, Vec<T>) = found.unzip();
        (!all.is_empty()).then(|| (self.place(at), all))
    }

    /// Where it holds, in words, with the result in the first of those trials.
    fn first<T>(&self, check: impl Fn(&TrialReport) -> Option<T>) -> Option<(String, T)> {
        self.worst(check, |_| 0.0)
    }

    /// Where it holds, in words, with the result of the largest weight, the first among equals.
    fn worst<T>(
        &self,
        check: impl Fn(&TrialReport) -> Option<T>,
        weight: impl Fn(&T) -> f64,
    ) -> Option<(String, T)> {
        let (place, all) = self.all(check)?;
        let heavier = |worst: T, next: T| {
            if weight(&next) > weight(&worst) { next } else { worst }
        };
        Some((place, all.into_iter().reduce(heavier)?))
    }

    fn count<T>(&self, check: impl Fn(&TrialReport) -> Option<T>) -> usize {
        self.trials.iter().filter_map(|t| check(t)).count()
    }

    fn place(&self, mut at: Vec<Level>) -> String {
        if !self.are_named {
            return String::new();
        }
        at.sort_by(|a, b| value(*a).total_cmp(&value(*b)));
        at.dedup();
        format!("at {}: ", levels(&at))
    }
}
