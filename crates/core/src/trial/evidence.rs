//! What is known of a trial to judge whether it counts.

use super::offered::{demand_of, gap_evidence};
use super::sessions::unfit_report;
use super::validity::{PacingQuantiles, STALL_NS, ValidityEvidence};
use knee_load::measure::{Interval, Outcome, RateLimitUse, Trial};
use knee_load::spec::{ArrivalLaw, Load};

/// The evidence of this trial.
pub(super) fn evidence(trial: &Trial) -> ValidityEvidence {
    let measured = &trial.measurement;
    let sessions = measured.sessions.as_ref();
    let programs = sessions.and_then(|sessions| sessions.programs.as_ref());
    // The schedule asks for first attempts.
    let retries = measured.attempts.as_ref().map_or(0, |attempts| attempts.retries);
    ValidityEvidence {
        asked: demand_of(trial),
        window: measured.window.length(),
        open_loop: trial.spec.load.is_open_loop(),
        // What the schedule asks for are sessions, where there are any.
        attempted: match measured.sessions {
            Some(_) => measured.started,
            None => (measured.outcomes.total() - measured.carried).saturating_sub(retries),
        },
        shed: measured.outcomes.count(Outcome::Shed),
        started: measured.started_first(),
        pacing_error_ns: PacingQuantiles::of(&measured.pacing_error),
        late_rms_ns: if measured.undelayed.is_empty() {
            0.0
        } else {
            measured.pacing_error.root_mean_square_ns()
        },
        replaced_after: match trial.spec.load {
            Load::Overload(_) => Some(trial.spec.connect_timeout),
            Load::Open(_) | Load::Closed { .. } => None,
        },
        // The connects of an overload replace each other.
        each_stall_counts: matches!(trial.spec.load, Load::Overload(_)),
        in_phases: match trial.spec.load.schedule() {
            // Share of the intervals in which operations started late by as much as a stall.
            Some((_, ArrivalLaw::Steps(_))) => {
                let late = |i: &&Interval| i.pacing_error_ns_max.is_some_and(|ns| ns >= STALL_NS);
                let stalled = measured.intervals.iter().filter(late).count();
                Some(stalled as f64 / measured.intervals.len().max(1) as f64)
            }
            _ => None,
        },
        agents_lost: trial
            .agents
            .iter()
            .filter_map(|a| Some((a.agent.clone(), a.lost_because.clone()?)))
            .collect(),
        lost: measured.lost,
        stall_ns_max: measured.stall_ns_max,
        gaps: gap_evidence(trial),
        no_resources: measured.outcomes.no_resources(),
        program_failed: measured.outcomes.count(Outcome::ProgramFailed),
        program_failed_because: programs.and_then(|programs| programs.failed.clone()),
        unfit_values: measured.outcomes.count(Outcome::UnfitValue),
        unfit_because: unfit_report(trial).map(|unfit| unfit.sentence()),
        program_ended: programs.is_some_and(|programs| programs.has_ended),
        rate_limit: measured.rate_limit.filter(|limit| !is_asked_for(trial, limit)),
    }
}

/// Whether a limit on operations per second is the load that was asked for: the script's own.
fn is_asked_for(trial: &Trial, limit: &RateLimitUse) -> bool {
    let asked = trial.spec.target.script().and_then(|script| script.requests_per_s_max);
    asked.is_some_and(|per_s| limit.per_s >= 0.999 * per_s)
}
