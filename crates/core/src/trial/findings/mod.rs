//! Findings about trials of any experiment.
//!
//! Each finding is one function: it checks every trial, and builds the finding if the check holds
//! for any.

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
pub use sessions::marked_failed;
pub(crate) use sessions::{CODES as SESSION_CODES, SCRIPT_ABORTED, SCRIPT_MARKED};
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
        context: FindingContext::default(),
    });
    gravest_first(&mut findings);
    findings
}

/// The findings of several trials, one of each kind, which names the levels that it holds for.
pub(crate) fn findings_at_levels(trials: &[&TrialReport], context: FindingContext) -> Vec<Finding> {
    diagnose(&TrialGroup::at_levels(trials, context))
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

/// Replaces the findings about the state of agents by those for all of these trials. Superseded
/// trials and those left out are the very ones in which an agent was stopped.
pub(crate) fn with_agents(trials: &[&TrialReport], mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.retain(|f| generator::STATE_CODES.iter().all(|&code| !f.is(code)));
    let trials = TrialGroup::at_levels(trials, FindingContext::default());
    findings.extend(generator::agent_stopped(&trials));
    findings.extend(generator::results_kept(&trials));
    findings
}

fn diagnose(trials: &TrialGroup) -> Vec<Finding> {
    let checks: &[fn(&TrialGroup) -> Option<Finding>] = &[
        sessions::script_failed,
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
        target::unmatched_messages,
        target::delayed_ack,
        target::packets_lost,
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
        sessions::script_aborted,
        sessions::script_marked,
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
    context: FindingContext,
}

impl<'a> TrialGroup<'a> {
    fn at_levels(trials: &'a [&'a TrialReport], context: FindingContext) -> TrialGroup<'a> {
        TrialGroup { trials, are_named: true, context }
    }

    /// The trials for which `check` holds, in words, and its result for each; `None` without any.
    fn results<T>(&self, check: impl Fn(&TrialReport) -> Option<T>) -> Option<(String, Vec<T>)> {
        let (at, results): (Vec<Level>, Vec<T>) =
            self.trials.iter().filter_map(|t| Some((t.level, check(t)?))).unzip();
        (!results.is_empty()).then(|| (self.place(at), results))
    }

    /// The trials for which `check` holds, in words, with the result for the first of them.
    fn first<T>(&self, check: impl Fn(&TrialReport) -> Option<T>) -> Option<(String, T)> {
        self.worst(check, |_| 0.0)
    }

    /// The trials for which `check` holds, in words, with the result of the largest weight, the
    /// first among equals.
    fn worst<T>(
        &self,
        check: impl Fn(&TrialReport) -> Option<T>,
        weight: impl Fn(&T) -> f64,
    ) -> Option<(String, T)> {
        let (place, results) = self.results(check)?;
        let heavier = |worst: T, next: T| {
            if weight(&next) > weight(&worst) { next } else { worst }
        };
        Some((place, results.into_iter().reduce(heavier)?))
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
