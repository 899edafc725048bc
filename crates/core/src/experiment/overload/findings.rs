//! Findings about load beyond capacity. Of several levels they are about the worst.

mod failures;
mod generator;
mod rates;
mod recovery;
mod server;
#[cfg(test)]
mod tests;

pub(super) use generator::ports_remedy;

use super::analysis::{OverloadPoint, OverloadSetting, OverloadSummary};
use super::preflight;
use crate::finding::{Code, Finding};
use crate::trial::findings::{
    FLEET_INCOMPLETE, FindingContext, GENERATOR_DISTORTED, GENERATOR_LIMITED, NON_STATIONARY,
    RATE_MAX_REACHED, SESSION_CODES, findings_at_levels, with_agents,
};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{levels, number};
use knee_load::measure::Outcome;
use knee_load::spec::Level;

/// All kinds of findings of `knee overload`.
pub(super) fn codes() -> Vec<Code> {
    [
        failures::CODES,
        generator::CODES,
        preflight::CODES,
        recovery::CODES,
        server::CODES,
        rates::CODES,
    ]
    .concat()
}

/// From this share of the attempts on an end is worth a word, in percent.
const WORTH_PERCENT: f64 = 1.0;

/// What a person should know about these trials, given the verdict on them together.
pub(super) fn overload_findings(
    trials: &[TrialReport],
    summary: &OverloadSummary,
    setting: &OverloadSetting,
    verdict: Verdict,
) -> Vec<Finding> {
    let mut found = findings_of_any_load(trials, summary, setting, verdict);
    found.extend(generator::ports_exhausted(summary, setting));
    found.extend(generator::descriptors_exhausted(summary));
    found.extend(generator::limits_syn_rate(summary, verdict));
    found.extend(generator::factor_not_reached(trials, summary, setting));
    found.extend(server::stopped(summary));
    found.extend(recovery::service(summary, setting));
    let silent = server::never_answers(summary);
    // Another finding says that responses never come, or why datagrams have none.
    let says_timeouts = silent.is_some() || summary.is_of_datagrams;
    let is_said = |how: Outcome| says_timeouts && how == Outcome::ResponseTimeout;
    let failures = failures::all(summary, is_said);
    found.extend(silent);
    if summary.is_of_datagrams {
        found.extend(server::unanswered_datagrams(summary));
    } else {
        found.extend(server::unanswered(summary));
        found.extend(rates::syncookies(trials));
    }
    found.extend(failures);
    found.extend(rates::not_overloaded(summary));
    found.extend(rates::simple_clients_flatten(summary));
    found.extend(rates::beyond_capacity(summary));
    found.extend(rates::retransmissions(summary, setting));
    found.extend(rates::captures_disagree(trials, summary));
    found
}

/// What holds of any load, unless something here says it better. A connect that times out is no
/// failure here: it is what S-Clients are made of.
fn findings_of_any_load(
    trials: &[TrialReport],
    summary: &OverloadSummary,
    setting: &OverloadSetting,
    verdict: Verdict,
) -> Vec<Finding> {
    let is_said = |t: &TrialReport| {
        let point = OverloadPoint::of(t, setting);
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

/// The trial with the largest share of attempts that ended so, their number, and the share in
/// percent. Only trials count where the server did not stop and the share is above
/// `beyond_percent`.
fn worst_of(
    summary: &OverloadSummary,
    how: Outcome,
    percent: fn(&OverloadPoint, Outcome) -> f64,
    beyond_percent: f64,
) -> Option<(&OverloadPoint, f64, f64)> {
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

/// ` (95 %: 120 to 130)`; nothing where no interval of confidence is known.
fn within(ci95: Option<[f64; 2]>) -> String {
    ci95.map_or(String::new(), |[low, high]| {
        format!(" (95 %: {} to {})", number(low), number(high))
    })
}
