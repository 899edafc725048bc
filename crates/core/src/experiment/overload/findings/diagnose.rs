//! What the trials of `knee overload` say.

use super::OverloadDiagnosis;
use crate::diagnosis::Diagnosis;
use crate::experiment::overload::analysis::{Beyond, PRESSED_FACTOR, Point, Setting, Summary, Why};
use crate::finding::Finding;
use crate::measure::Outcome;
use crate::spec::Level;
use crate::trial::findings::{
    GENERATOR_DISTORTED, GENERATOR_LIMITED, NON_STATIONARY, findings_at_levels,
};
use crate::trial::report::{TrialReport, Verdict};

/// Simple clients are flat where none of them offers more than this many times the capacity.
const FLAT_FACTOR: f64 = 1.1;
/// From this share of the attempts on an end is worth a word, in percent.
const WORTH_PERCENT: f64 = 1.0;
/// What becomes of attempts that are not served, each with a finding of its own.
const FAILURES: [Outcome; 13] = [
    Outcome::Refused,
    Outcome::Reset,
    Outcome::Closed,
    Outcome::Truncated,
    Outcome::Malformed,
    Outcome::Http5xx,
    Outcome::Http4xx,
    Outcome::ResponseTimeout,
    Outcome::Ghost,
    Outcome::Unreachable,
    Outcome::Late,
    Outcome::Timeout,
    Outcome::OtherError,
];
/// More stops than this are not told of one by one.
const STOPS_MAX: usize = 3;
/// The same of ghosts, which ought not to be.
const GHOSTS_PERCENT: f64 = 0.1;
/// SYNs that come again are worth a word from this share of the first ones on.
const AGAIN_SHARE: f64 = 0.01;
/// An automatic choice came near enough to its factor at this share of it.
const FACTOR_SHARE: f64 = 0.9;

/// What a person should know about these trials, given the verdict on them together.
pub fn overload_findings(
    trials: &[TrialReport],
    summary: &Summary,
    setting: &Setting,
    verdict: Verdict,
) -> Vec<Finding> {
    let mut found = of_generator(trials, summary, setting, verdict);
    found.extend(of_server(trials, summary));
    found.extend(flatten(summary));
    found.extend(throughput(summary));
    found.extend(of_counts(trials, summary, setting));
    let found = found.into_iter().map(|d| Diagnosis::Overload(d).finding());
    let mut all = distorted(trials, summary, setting, verdict);
    all.extend(found);
    all
}

/// What holds of any load, unless something here says it better. A connect that times out is no
/// failure here: it is what S-Clients are made of.
fn distorted(
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
    let mut found = findings_at_levels(&rest);
    found.retain(|f| match f {
        f if f.is(GENERATOR_LIMITED) || f.is(GENERATOR_DISTORTED) => is_invalid,
        f => f.is(NON_STATIONARY) && moves,
    });
    for f in found.iter_mut().filter(|f| f.is(GENERATOR_DISTORTED)) {
        // Other options are of use here than elsewhere.
        f.next_step = "repeat on a quieter or larger machine".into();
    }
    if verdict == Verdict::Valid {
        let left_out = left_out(&rest, trials.len());
        found.extend(left_out.map(|d| Diagnosis::Overload(d).finding()));
    }
    found
}

/// Levels that a valid conclusion does without.
fn left_out(rest: &[&TrialReport], of: usize) -> Option<OverloadDiagnosis> {
    let invalid = || rest.iter().filter(|t| t.verdict == Verdict::Invalid);
    let at: Vec<Level> = invalid().map(|t| t.level).collect();
    let mut clauses: Vec<String> = Vec::new();
    for clause in invalid().flat_map(|t| &t.invalid_because) {
        if clauses.len() < 2 && !clauses.contains(clause) {
            clauses.push(clause.clone());
        }
    }
    (!at.is_empty()).then_some(OverloadDiagnosis::LevelsLeftOut { at, of, clauses })
}

/// Of the generator and its host.
fn of_generator(
    trials: &[TrialReport],
    summary: &Summary,
    setting: &Setting,
    verdict: Verdict,
) -> Vec<OverloadDiagnosis> {
    let mut found = Vec::new();
    if let Some((p, count)) = worst(summary, Outcome::PortExhausted, 0.0) {
        found.push(OverloadDiagnosis::PortsExhausted {
            at: p.level,
            count,
            percent: p.percent(Outcome::PortExhausted),
            close: setting.close,
        });
    }
    if let Some((p, count)) = worst(summary, Outcome::DescriptorExhausted, 0.0) {
        found.push(OverloadDiagnosis::DescriptorsExhausted {
            at: p.level,
            count,
            percent: p.percent(Outcome::DescriptorExhausted),
        });
    }
    let mut limited: Vec<&Point> = summary.pressing().filter(|p| p.is_limited()).collect();
    limited.sort_by(|a, b| a.due_per_s.total_cmp(&b.due_per_s));
    found.extend(
        limited
            .first()
            .map(|p| OverloadDiagnosis::GeneratorLimitsSynRate {
                at: p.level,
                started_per_s: p.attempts_per_s,
                due_per_s: p.due_per_s,
                busy_percent: p.busy_percent,
                kept_per_s: summary.generator_limit_per_s,
                is_left_out: verdict == Verdict::Valid,
            }),
    );
    found.extend(factor_not_reached(trials, summary, setting));
    found
}

fn factor_not_reached(
    trials: &[TrialReport],
    summary: &Summary,
    setting: &Setting,
) -> Option<OverloadDiagnosis> {
    let wanted = setting.wanted_factor?;
    let offered_per_s = summary.most_offered_per_s()?;
    let below = offered_per_s < FACTOR_SHARE * wanted * summary.capacity_per_s;
    // Three levels at least: one that was interrupted has not ended where it was to.
    let is_whole = trials.len() >= 3 && summary.pressing().count() >= 2;
    (below && is_whole).then_some(OverloadDiagnosis::FactorNotReached {
        offered_per_s,
        capacity_per_s: summary.capacity_per_s,
        wanted,
    })
}

/// Of what the server does with connections.
fn of_server(trials: &[TrialReport], summary: &Summary) -> Vec<OverloadDiagnosis> {
    let mut found: Vec<OverloadDiagnosis> = summary
        .stops
        .iter()
        .take(STOPS_MAX)
        .map(|stop| OverloadDiagnosis::Stopped(*stop))
        .collect();
    let silent = never_answers(summary);
    let is_silent = silent.is_some();
    found.extend(silent);
    found.extend(unanswered(summary));
    for how in FAILURES {
        // That they never come has been said.
        if !(is_silent && how == Outcome::ResponseTimeout) {
            found.extend(fails(summary, how));
        }
    }
    found.extend(syncookies(trials));
    found
}

/// Not where connections are refused or reset: then the server, or its host, does answer. The
/// accept queue of a server that does not accept may be full before the window begins.
fn never_answers(summary: &Summary) -> Option<OverloadDiagnosis> {
    let sum = |outcome: Outcome| -> u64 {
        let counts = summary.points.iter().map(|p| p.outcomes.count(outcome));
        counts.sum()
    };
    let attempts: u64 = summary.points.iter().map(|p| p.outcomes.total()).sum();
    let responses: u64 = summary.points.iter().map(|p| p.outcomes.responses()).sum();
    let established: u64 = summary.points.iter().map(Point::established).sum();
    let waited = sum(Outcome::Ghost) + sum(Outcome::ResponseTimeout) + sum(Outcome::InFlight);
    let fullest = |p: &&Point| (queue(p).map(|(most, _)| most), p.established());
    let fullest = summary.points.iter().max_by_key(fullest)?;
    let waits = established > 0 && 2 * waited > established;
    let is_stuck = || {
        let (worst, _) = worst_of(summary, Outcome::ConnectTimeout, Point::percent)?;
        let is_full = worst.why_unanswered() == Why::QueueFull;
        (is_full && 2 * sum(Outcome::ConnectTimeout) > attempts).then_some(())
    };
    (responses == 0 && (waits || is_stuck().is_some())).then(|| OverloadDiagnosis::NeverAnswers {
        attempts,
        established,
        accepts: fullest.accepts(),
        queue: queue(fullest),
    })
}

fn queue(p: &Point) -> Option<(u32, u32)> {
    let server = p.server?;
    server.accept_queue_max.zip(server.accept_queue_limit)
}

fn unanswered(summary: &Summary) -> Option<OverloadDiagnosis> {
    let how = Outcome::ConnectTimeout;
    let (p, count) = worst_of(summary, how, Point::percent)?;
    Some(OverloadDiagnosis::Unanswered {
        at: p.level,
        count,
        percent: p.percent(how),
        why: p.why_unanswered(),
        arrived_per_s: p.first_syn_per_s,
        listen_drops: p.server.and_then(|s| s.listen_drops),
        queue: queue(p),
    })
}

fn fails(summary: &Summary, how: Outcome) -> Option<OverloadDiagnosis> {
    let percent = match ends_connections(how) {
        true => Point::percent_of_established,
        false => Point::percent,
    };
    let (p, count) = worst_of(summary, how, percent)?;
    Some(OverloadDiagnosis::Fails {
        how,
        at: p.level,
        count,
        percent: percent(p, how),
        served_per_s: p.served_per_s,
    })
}

fn syncookies(trials: &[TrialReport]) -> Option<OverloadDiagnosis> {
    let sent = |t: &TrialReport| {
        let names = ["TcpExtSyncookiesSent", "TcpExtTCPReqQFullDoCookies"];
        let seen = t.observed.iter().map(|o| &o.kernel).chain([&t.kernel]);
        let counts = seen.flat_map(|kernel| names.iter().filter_map(|name| kernel.get(*name)));
        counts.copied().max().unwrap_or(0).max(0) as u64
    };
    let most = trials.iter().max_by_key(|t| sent(t))?;
    (sent(most) > 0).then(|| OverloadDiagnosis::SyncookiesActive {
        at: most.level,
        sent: sent(most),
    })
}

/// Of what was counted.
fn of_counts(
    trials: &[TrialReport],
    summary: &Summary,
    setting: &Setting,
) -> Vec<OverloadDiagnosis> {
    let mut found = Vec::new();
    // Whoever waits for longer than a second sends again: of S-Clients first, if they do.
    let again = |p: &&Point| p.repeated_syn_per_s > AGAIN_SHARE * p.first_syn_per_s;
    let most = |a: &&Point, b: &&Point| a.repeated_syn_per_s.total_cmp(&b.repeated_syn_per_s);
    let pressed = summary.pressing().filter(again).max_by(most);
    let worst = pressed.or_else(|| summary.simple().filter(again).max_by(most));
    found.extend(worst.map(|p| OverloadDiagnosis::SynRetransmissions {
        at: p.level,
        repeated_per_s: p.repeated_syn_per_s,
        first_per_s: p.first_syn_per_s,
        patience_ns: setting.patience.0 as f64,
    }));
    found.extend(captures(trials, summary));
    found
}

fn captures(trials: &[TrialReport], summary: &Summary) -> Option<OverloadDiagnosis> {
    let differ = summary.points.iter();
    let differ = differ.filter_map(|p| Some((p, p.capture_differs_percent()?)));
    let (p, percent) = differ.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let there = trials.iter().filter(|t| t.level == p.level);
    let lost = there.filter_map(|t| Some(t.observed.as_ref()?.capture_lost));
    Some(OverloadDiagnosis::CapturesDisagree {
        at: p.level,
        captured_per_s: p.first_syn_per_s,
        started_per_s: p.attempts_per_s,
        percent,
        capture_lost: lost.max().unwrap_or(0),
    })
}

fn flatten(summary: &Summary) -> Option<OverloadDiagnosis> {
    let most = |a: &&Point, b: &&Point| a.first_syn_per_s.total_cmp(&b.first_syn_per_s);
    let most_per_s = summary.simple().max_by(most)?.first_syn_per_s;
    let clients = summary.simple().filter_map(Point::clients).max()?;
    let pressed_per_s = summary.most_offered_per_s()?;
    let capacity_per_s = summary.capacity_per_s;
    let is_flat = most_per_s <= FLAT_FACTOR * capacity_per_s;
    let is_pressed = pressed_per_s >= PRESSED_FACTOR * capacity_per_s.max(most_per_s);
    (is_flat && is_pressed && clients > 1).then_some(OverloadDiagnosis::SimpleClientsFlatten {
        clients,
        most_per_s,
        capacity_per_s,
        pressed_per_s,
    })
}

/// What becomes of throughput beyond the capacity.
fn throughput(summary: &Summary) -> Option<OverloadDiagnosis> {
    let capacity_per_s = summary.capacity_per_s;
    match summary.beyond_capacity() {
        Beyond::Falls(least) => Some(OverloadDiagnosis::ThroughputFalls {
            capacity_per_s,
            served_per_s: least.served_per_s,
            served_ci95_per_s: least.served_ci95_per_s,
            offered_per_s: least.first_syn_per_s,
        }),
        Beyond::Flat(last) => Some(OverloadDiagnosis::ThroughputFlat {
            capacity_per_s,
            served_per_s: last.served_per_s,
            served_ci95_per_s: last.served_ci95_per_s,
            offered_per_s: last.first_syn_per_s,
        }),
        Beyond::Untold => None,
    }
}

/// Whether an attempt that ends so was established: then it is compared with such.
pub(super) fn ends_connections(how: Outcome) -> bool {
    matches!(
        how,
        Outcome::Reset
            | Outcome::Closed
            | Outcome::Truncated
            | Outcome::Malformed
            | Outcome::Http4xx
            | Outcome::Http5xx
            | Outcome::ResponseTimeout
    )
}

/// The trial of which the largest share ended so where no stop of the server is the reason, if it
/// is worth a word, and how many did.
fn worst_of(
    summary: &Summary,
    how: Outcome,
    percent: fn(&Point, Outcome) -> f64,
) -> Option<(&Point, u64)> {
    let explained = |trial: usize| summary.stops.iter().any(|s| s.explains(trial, how));
    let points = summary.points.iter().enumerate();
    let left = points.filter(|(trial, _)| !explained(*trial));
    let worst = left.map(|(_, p)| p);
    let worst = worst.max_by(|a, b| percent(a, how).total_cmp(&percent(b, how)))?;
    let least = match how {
        Outcome::Ghost => GHOSTS_PERCENT,
        _ => WORTH_PERCENT,
    };
    (percent(worst, how) > least).then(|| (worst, worst.outcomes.count(how)))
}

/// The trial of which the largest share ended so, if more than `beyond_percent` did, and how many.
fn worst(summary: &Summary, outcome: Outcome, beyond_percent: f64) -> Option<(&Point, u64)> {
    let points = summary.points.iter();
    let worst = points.max_by(|a, b| a.percent(outcome).total_cmp(&b.percent(outcome)))?;
    let is_worth = worst.percent(outcome) > beyond_percent;
    is_worth.then(|| (worst, worst.outcomes.count(outcome)))
}
