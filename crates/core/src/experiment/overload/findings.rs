//! Findings about load beyond capacity, and about the recovery after it. Of several levels they are
//! about the worst.

mod failures;
mod generator;
mod rates;
mod server;
#[cfg(test)]
mod tests;

use super::analysis::{OverloadPoint, OverloadSetting, OverloadSummary};
use super::preflight;
use crate::experiment::overload::analysis::{end, heaviest};
use crate::experiment::overload::report::{CameBack, LevelRow};
use crate::finding::{Code, Finding, Severity, codes};
use crate::trial::findings::{
    FLEET_INCOMPLETE, FindingContext, GENERATOR_DISTORTED, GENERATOR_LIMITED, NON_STATIONARY,
    RATE_MAX_REACHED, SESSION_CODES, findings_at_levels, with_agents,
};
use crate::trial::report::{TrialReport, Verdict};
use crate::words::{exact, levels, number, percent};
use knee_load::measure::Outcome;
use knee_load::spec::Level;
use knee_load::time::Nanos;

/// All kinds of findings of `knee overload`.
pub(super) fn codes() -> Vec<Code> {
    [failures::CODES, generator::CODES, preflight::CODES, CODES, server::CODES, rates::CODES]
        .concat()
}

/// From this share of the attempts on an end is worth a word, in percent.
const WORTH_PERCENT: f64 = 1.0;

/// The findings about these trials, given the verdict on them together.
pub(super) fn overload_findings(
    trials: &[TrialReport],
    summary: &OverloadSummary,
    setting: &OverloadSetting,
    verdict: Verdict,
) -> Vec<Finding> {
    let mut findings = findings_of_any_load(trials, summary, setting, verdict);
    findings.extend(generator::ports_exhausted(summary, setting));
    findings.extend(generator::descriptors_exhausted(summary));
    findings.extend(generator::limits_syn_rate(summary, verdict));
    findings.extend(generator::factor_not_reached(trials, summary, setting));
    findings.extend(server::stopped(summary));
    findings.extend(service_after(summary, setting));
    let silent = server::never_answers(summary);
    // Other findings say that responses never come, and why datagrams have none.
    let says_timeouts = silent.is_some() || summary.is_of_datagrams;
    let is_reported = |how: Outcome| says_timeouts && how == Outcome::ResponseTimeout;
    let failures = failures::failure_findings(summary, is_reported);
    findings.extend(silent);
    if summary.is_of_datagrams {
        findings.extend(server::unanswered_datagrams(summary));
    } else {
        findings.extend(server::unanswered(summary));
        findings.extend(rates::syncookies(trials));
    }
    findings.extend(failures);
    findings.extend(rates::not_overloaded(summary));
    findings.extend(rates::simple_clients_flatten(summary));
    findings.extend(rates::beyond_capacity(summary));
    findings.extend(rates::retransmissions(summary, setting));
    findings.extend(rates::captures_disagree(trials, summary));
    findings
}

/// The findings that apply to any load, except those that this module replaces. A connect that
/// times out is no failure: S-Clients consist of such.
fn findings_of_any_load(
    trials: &[TrialReport],
    summary: &OverloadSummary,
    setting: &OverloadSetting,
    verdict: Verdict,
) -> Vec<Finding> {
    let is_reported = |t: &TrialReport| {
        let point = OverloadPoint::of(t, setting);
        t.outcomes.no_resources() > 0 || point.is_some_and(|p| p.is_pressing() && p.is_limited())
    };
    let rest: Vec<&TrialReport> = trials.iter().filter(|t| !is_reported(t)).collect();
    // If nothing is served, or the server stops, its series says nothing.
    let serves_throughout = summary.capacity_per_s > 0.0 && summary.stops.is_empty();
    let is_invalid = verdict == Verdict::Invalid;
    let context = FindingContext {
        // No option makes an overload easier for the generator.
        lighter: "",
        ..FindingContext::default()
    };
    let mut findings = findings_at_levels(&rest, context);
    findings.retain(|f| match f {
        f if f.is(GENERATOR_LIMITED) || f.is(GENERATOR_DISTORTED) => is_invalid,
        f if f.is(RATE_MAX_REACHED) || f.is(FLEET_INCOMPLETE) => true,
        f if SESSION_CODES.iter().any(|&code| f.is(code)) => true,
        f => f.is(NON_STATIONARY) && serves_throughout,
    });
    if verdict == Verdict::Valid {
        findings.extend(generator::left_out(&rest, trials.len()));
    }
    let measured: Vec<&TrialReport> = trials.iter().collect();
    with_agents(&measured, findings)
}

/// The trial with the largest share of attempts that ended so, their number, and the share in
/// percent. Only trials count where the server did not stop and the share is above
/// `beyond_percent`.
fn worst_trial(
    summary: &OverloadSummary,
    how: Outcome,
    percent: fn(&OverloadPoint, Outcome) -> f64,
    beyond_percent: f64,
) -> Option<(&OverloadPoint, f64, f64)> {
    let explained = |trial: usize| summary.stops.iter().any(|s| s.explains(trial, how));
    let left = summary.points.iter().enumerate().filter(|(trial, _)| !explained(*trial));
    let shares = left.map(|(_, p)| (p, p.row.outcomes.count(how) as f64, percent(p, how)));
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

codes! {
    SERVICE_NOT_BACK = "service_not_back":
        cause "After the last level knee offered the base load once more. The server served less \
               of it than at first, so the overload outlasts its cause.",
        remedy "Check the server's log and its open connections. A longer --warmup shows whether \
                the server comes back later.";
    SERVICE_NOT_AS_BEFORE = "service_not_as_before":
        cause "After the last level knee offered the base load once more. Service came back \
               late, or with failures that were not there at first.",
        remedy "Check the server's log. A longer --warmup shows whether the failures end.";
    RECOVERY_UNKNOWN = "recovery_unknown":
        cause "After the last level knee offered the base load once more. What was served could \
               not be judged: the generator was the limit, or too few responses came.",
        remedy "Measure each level longer, -d, or use a quieter machine.";
}

/// The next run waits at least this long before it measures the base load again, …
const WARMUP_MIN: Nanos = Nanos::from_secs(10);
/// … and this many times as long as this one did.
const WARMUP_FACTOR: u64 = 5;

fn service_after(summary: &OverloadSummary, setting: &OverloadSetting) -> Option<Finding> {
    let recovery = &summary.recovery;
    let (before, again) = recovery.before.as_ref().zip(recovery.again.as_ref())?;
    let at = one(recovery.level?);
    let served = format!(
        "with {at} again {}/s are served{}, {}/s{} at first",
        number(again.served_per_s),
        within(again.served_ci95_per_s),
        number(before.served_per_s),
        within(before.served_ci95_per_s)
    );
    let share = 100.0 * again.served_per_s / before.served_per_s;
    let failures = failures(again);
    let fails_more = failed_percent(again) > failed_percent(before) + WORTH_PERCENT;
    let (code, severity, text) = match recovery.came_back {
        CameBack::No => (
            SERVICE_NOT_BACK,
            Severity::Error,
            format!("service did not come back: {served} ({}){failures}", percent(share)),
        ),
        CameBack::Late => (
            SERVICE_NOT_AS_BEFORE,
            Severity::Warning,
            format!("service came back late: {served}, and as much in its second half{failures}"),
        ),
        CameBack::Yes if fails_more => (
            SERVICE_NOT_AS_BEFORE,
            Severity::Warning,
            format!("service came back with failures: {served}{failures}"),
        ),
        CameBack::Yes => return None,
        CameBack::NotJudged => (
            RECOVERY_UNKNOWN,
            if fails_more { Severity::Warning } else { Severity::Info },
            format!(
                "whether service came back is not known: {served}; {}{failures}",
                recovery.because
            ),
        ),
    };
    let next_step = match recovery.came_back {
        CameBack::NotJudged => "measure longer, -d, on a quieter machine".to_owned(),
        _ => later(summary, setting),
    };
    Some(code.finding(
        severity,
        text,
        [
            ("served_per_s", again.served_per_s),
            ("served_before_per_s", before.served_per_s),
            ("share_percent", share),
            ("attempts", again.outcomes.total() as f64),
            ("not_served", again.outcomes.errors() as f64),
        ],
        next_step,
    ))
}

fn failed_percent(row: &LevelRow) -> f64 {
    100.0 * row.outcomes.errors() as f64 / row.outcomes.total().max(1) as f64
}

/// How most of the attempts ended that were not served, as what follows a sentence.
fn failures(row: &LevelRow) -> String {
    if row.outcomes.total() == 0 {
        return "; attempts from before its window received no response within it".to_owned();
    }
    let fine = [Outcome::Ok, Outcome::Served, Outcome::InFlight];
    let failed = row.outcomes.iter().filter(|(how, n)| *n > 0 && !fine.contains(how));
    failed.max_by_key(|&(_, n)| n).map_or(String::new(), |(how, n)| {
        let (n, of) = (exact(n as f64), exact(row.outcomes.total() as f64));
        format!("; {n} of {of} attempts {}", end(how))
    })
}

/// The next step: the base load and the heaviest level alone, with more time between them.
fn later(summary: &OverloadSummary, setting: &OverloadSetting) -> String {
    let warmup = Nanos(setting.warmup.0.saturating_mul(WARMUP_FACTOR)).max(WARMUP_MIN);
    let heaviest = heaviest(&summary.points).map(|p| p.level);
    let load = match (summary.recovery.level, heaviest) {
        (Some(Level::Clients(base)), Some(Level::Clients(most))) => {
            format!(": --simple {base},{most}")
        }
        (Some(Level::Clients(base)), Some(Level::Descriptors(most))) => {
            format!(": --simple {base} --descriptors {most}")
        }
        (Some(Level::Descriptors(base)), Some(Level::Descriptors(most))) => {
            format!(": --descriptors {base},{most}")
        }
        _ => String::new(),
    };
    let warmup = warmup.exactly();
    format!(
        "see whether it comes back later, with the base load and the heaviest level alone{load} \
         --warmup {warmup}; and check the server's log and its open connections (`ss -tn`)"
    )
}
