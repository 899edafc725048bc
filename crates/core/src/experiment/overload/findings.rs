//! Findings about load beyond capacity. Of several levels they tell of the worst.

mod failures;
mod generator;
mod recovery;
mod server;
mod syns;
#[cfg(test)]
mod tests;
mod throughput;

pub(super) use generator::ports_remedy;

use super::analysis::{Point, Setting, Summary};
use super::preflight;
use crate::finding::{Code, Finding};
use crate::measure::Outcome;
use crate::spec::Level;
use crate::trial::findings::{
    FLEET_INCOMPLETE, FindingContext, GENERATOR_DISTORTED, GENERATOR_LIMITED, NON_STATIONARY,
    RATE_MAX_REACHED, SESSION_CODES, findings_at_levels, with_agents,
};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::levels;

/// All codes of this experiment, those of its preflight included.
pub const CODES: &[Code] = &[
    failures::REFUSES_CONNECTIONS,
    failures::RESETS,
    failures::ACCEPTED_AND_CLOSED,
    failures::TRUNCATED_RESPONSES,
    failures::MALFORMED_RESPONSES,
    failures::ERROR_RESPONSES,
    failures::RESPONSE_TIMEOUTS,
    failures::GHOSTS,
    failures::HOST_UNREACHABLE,
    failures::ESTABLISHED_LATE,
    failures::OTHER_FAILURES,
    generator::PORTS_EXHAUSTED,
    generator::DESCRIPTORS_EXHAUSTED,
    generator::LIMITS_SYN_RATE,
    generator::FACTOR_NOT_REACHED,
    generator::LEVELS_LEFT_OUT,
    preflight::FILES_WILL_RUN_OUT,
    preflight::TOO_FEW_PORTS,
    preflight::PORTS_WILL_RUN_OUT,
    preflight::PATIENCE_TOO_LONG,
    preflight::BACKLOG_CUT,
    preflight::ABORTS_ON_OVERFLOW,
    preflight::SYNCOOKIES_ALWAYS,
    preflight::REQUEST_QUEUE_SHORT,
    recovery::SERVICE_NOT_BACK,
    recovery::SERVICE_NOT_AS_BEFORE,
    recovery::RECOVERY_UNKNOWN,
    server::SERVER_CRASHED,
    server::SERVER_STOPPED,
    server::NEVER_ACCEPTS,
    server::NEVER_ANSWERS,
    server::ACCEPT_QUEUE_FULL,
    server::NO_SYN_ACK,
    server::CONNECTS_UNANSWERED,
    syns::SYNCOOKIES_ACTIVE,
    syns::SYN_RETRANSMISSIONS,
    syns::CAPTURES_DISAGREE,
    throughput::NOT_OVERLOADED,
    throughput::SIMPLE_CLIENTS_FLATTEN,
    throughput::THROUGHPUT_FALLS,
    throughput::THROUGHPUT_FLAT,
];

/// From this share of the attempts on an end is worth a word, in percent.
const WORTH_PERCENT: f64 = 1.0;

/// What a person should know about these trials, given the verdict on them together.
pub(super) fn overload_findings(
    trials: &[TrialReport],
    summary: &Summary,
    setting: &Setting,
    verdict: Verdict,
) -> Vec<Finding> {
    let mut found = of_any(trials, summary, setting, verdict);
    found.extend(generator::ports_exhausted(summary, setting));
    found.extend(generator::descriptors_exhausted(summary));
    found.extend(generator::limits_syn_rate(summary, verdict));
    found.extend(generator::factor_not_reached(trials, summary, setting));
    found.extend(server::stopped(summary));
    found.extend(recovery::service(summary, setting));
    let silent = server::never_answers(summary);
    // That responses never come has been said.
    let is_said = |how: Outcome| silent.is_some() && how == Outcome::ResponseTimeout;
    let failures = failures::all(summary, is_said);
    found.extend(silent);
    found.extend(server::unanswered(summary));
    found.extend(failures);
    found.extend(syns::syncookies(trials));
    found.extend(throughput::not_overloaded(summary));
    found.extend(throughput::simple_clients_flatten(summary));
    found.extend(throughput::beyond_capacity(summary));
    found.extend(syns::retransmissions(summary, setting));
    found.extend(syns::captures_disagree(trials, summary));
    found
}

/// What holds of any load, unless something here says it better. A connect that times out is no
/// failure here: it is what S-Clients are made of.
fn of_any(
    trials: &[TrialReport],
    summary: &Summary,
    setting: &Setting,
    verdict: Verdict,
) -> Vec<Finding> {
    let is_said = |t: &TrialReport| {
        let point = Point::of(t, setting);
        t.outcomes.no_resources() > 0 || point.is_some_and(|p| p.is_pressing() && p.is_limited())
    };
    let rest: Vec<&TrialReport> = trials.iter().filter(|t| !is_said(t)).collect();
    // Where nothing is served, nothing moves; where a server stops, nothing else is to be said.
    let moves = summary.capacity_per_s > 0.0 && summary.stops.is_empty();
    let is_invalid = verdict == Verdict::Invalid;
    let asked = FindingContext {
        // No option makes an overload easier for the generator.
        lighter: "",
        ..FindingContext::default()
    };
    let mut found = findings_at_levels(&rest, asked);
    found.retain(|f| match f {
        f if f.is(GENERATOR_LIMITED) || f.is(GENERATOR_DISTORTED) => is_invalid,
        f if f.is(RATE_MAX_REACHED) || f.is(FLEET_INCOMPLETE) => true,
        f if SESSION_CODES.iter().any(|&code| f.is(code)) => true,
        f => f.is(NON_STATIONARY) && moves,
    });
    if verdict == Verdict::Valid {
        found.extend(generator::left_out(&rest, trials.len()));
    }
    let all: Vec<&TrialReport> = trials.iter().collect();
    with_agents(&all, found)
}

/// The trial of which the largest share ended so where no stop of the server is the reason, if it
/// is more than `beyond_percent`; also how many did, and that share in percent.
fn worst_of(
    summary: &Summary,
    how: Outcome,
    percent: fn(&Point, Outcome) -> f64,
    beyond_percent: f64,
) -> Option<(&Point, f64, f64)> {
    let explained = |trial: usize| summary.stops.iter().any(|s| s.explains(trial, how));
    let points = summary.points.iter().enumerate();
    let left = points.filter(|(trial, _)| !explained(*trial));
    let shares = left.map(|(_, p)| (p, p.outcomes.count(how) as f64, percent(p, how)));
    let worst = shares.max_by(|a, b| a.2.total_cmp(&b.2))?;
    (worst.2 > beyond_percent).then_some(worst)
}

/// A number that may not be known, for the evidence.
fn known(number: Option<impl Into<f64>>) -> f64 {
    number.map_or(f64::NAN, Into::into)
}

fn one(level: Level) -> String {
    levels(&[level])
}
