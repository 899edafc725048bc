//! What the trials of `knee overload` say.

use super::super::{Diagnosis, grouped};
use super::OverloadDiagnosis;
use crate::analysis::overload::{Point, SYN_AGAIN, Setting, Summary};
use crate::measure::Outcome;
use crate::report::{Finding, TrialReport};

/// Simple clients are flat where none of them offers more than this many times the capacity, …
const FLAT_FACTOR: f64 = 1.1;
/// … and that is worth a word where others offer at least this many times as much.
const PRESSED_FACTOR: f64 = 2.0;
/// Throughput falls where it is below this share of the most, with certainty; within it, it is
/// flat.
const FALLEN_SHARE: f64 = 0.95;
/// From this share of the attempts on an end is worth a word, in percent.
const WORTH_PERCENT: f64 = 1.0;
/// The same of ghosts, which ought not to be.
const GHOSTS_PERCENT: f64 = 0.1;
/// SYNs that come again are worth a word from this share of the first ones on.
const AGAIN_SHARE: f64 = 0.01;
/// An automatic choice came near enough to its factor at this share of it.
const FACTOR_SHARE: f64 = 0.9;

/// What a person should know about these trials.
pub fn overload_findings(
    trials: &[TrialReport],
    summary: &Summary,
    setting: &Setting,
) -> Vec<Finding> {
    let mut found = of_generator(trials, summary, setting);
    found.extend(of_server(trials, summary));
    found.extend(flatten(summary));
    found.extend(throughput(summary));
    found.extend(of_counts(trials, summary, setting));
    let found = found.into_iter().map(Diagnosis::Overload);
    let distorted = distorted(trials, summary, setting);
    let all = distorted.into_iter().chain(found);
    all.map(|d| finding(&d)).collect()
}

/// It in words. What to do about a distorted load has other options here than elsewhere.
fn finding(diagnosis: &Diagnosis) -> Finding {
    let mut finding = diagnosis.finding();
    if matches!(diagnosis, Diagnosis::GeneratorDistorted { .. }) {
        finding.next_step = "repeat on a quieter or larger machine".into();
    }
    finding
}

/// What holds of any load, unless something here says it better. A connect that times out is no
/// failure here: it is what S-Clients are made of.
fn distorted(trials: &[TrialReport], summary: &Summary, setting: &Setting) -> Vec<Diagnosis> {
    let is_said = |t: &TrialReport| {
        let point = Point::of(t, setting);
        t.outcomes.no_resources() > 0 || point.is_some_and(|p| p.is_pressing() && p.is_limited())
    };
    let rest: Vec<&TrialReport> = trials.iter().filter(|t| !is_said(t)).collect();
    let is_of_any = |d: &Diagnosis| match d {
        Diagnosis::GeneratorLimited { .. } | Diagnosis::GeneratorDistorted { .. } => true,
        // Where nothing is served, nothing moves.
        Diagnosis::NonStationary { .. } => summary.capacity_per_s > 0.0,
        _ => false,
    };
    let mut found = grouped(&rest);
    found.retain(is_of_any);
    found
}

/// Of the generator and its host.
fn of_generator(
    trials: &[TrialReport],
    summary: &Summary,
    setting: &Setting,
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
    let mut found = Vec::new();
    if let Some((p, count)) = worst(summary, Outcome::Refused, WORTH_PERCENT) {
        found.push(OverloadDiagnosis::RefusesConnections {
            at: p.level,
            count,
            percent: p.percent(Outcome::Refused),
        });
    }
    if let Some((p, count)) = worst(summary, Outcome::Reset, WORTH_PERCENT) {
        found.push(OverloadDiagnosis::Resets {
            at: p.level,
            count,
            percent: p.percent(Outcome::Reset),
            served_per_s: p.served_per_s,
        });
    }
    if let Some((p, count)) = worst(summary, Outcome::Ghost, GHOSTS_PERCENT) {
        found.push(OverloadDiagnosis::Ghosts {
            at: p.level,
            count,
            percent: p.percent(Outcome::Ghost),
        });
    }
    found.extend(never_accepts(summary));
    found.extend(syncookies(trials));
    found
}

/// Not where connections are refused or reset: then the server, or its host, does answer.
fn never_accepts(summary: &Summary) -> Option<OverloadDiagnosis> {
    let sum = |outcome: Outcome| -> u64 {
        let counts = summary.points.iter().map(|p| p.outcomes.count(outcome));
        counts.sum()
    };
    let attempts: u64 = summary.points.iter().map(|p| p.outcomes.total()).sum();
    let responses: u64 = summary.points.iter().map(|p| p.outcomes.responses()).sum();
    let waited = [
        Outcome::ConnectTimeout,
        Outcome::Ghost,
        Outcome::ResponseTimeout,
        Outcome::Late,
    ];
    let waited: u64 = waited.map(sum).iter().sum();
    let established = summary
        .points
        .iter()
        .map(|p| p.established_per_s * p.seconds)
        .sum::<f64>();
    (responses == 0 && 2 * waited > attempts).then_some(OverloadDiagnosis::NeverAccepts {
        attempts,
        established: established.round() as u64,
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
    let is_long = setting.patience >= SYN_AGAIN && summary.pressing().next().is_some();
    if is_long {
        found.push(OverloadDiagnosis::PatienceTooLong {
            patience_ns: setting.patience.0 as f64,
        });
    }
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

/// What becomes of throughput beyond the capacity. It is said to fall only where the intervals
/// leave no doubt, and to be flat only where it is.
fn throughput(summary: &Summary) -> Option<OverloadDiagnosis> {
    let beyond = || {
        summary
            .pressing()
            .filter(|p| p.is_valid && p.past_saturation)
    };
    let capacity_per_s = summary.capacity_per_s;
    let served = |a: &&Point, b: &&Point| a.served_per_s.total_cmp(&b.served_per_s);
    let least = beyond().min_by(served)?;
    let best_low = summary
        .points
        .iter()
        .filter(|p| p.is_valid)
        .filter_map(|p| p.served_ci95_per_s)
        .map(|[low, _]| low)
        .fold(0.0, f64::max);
    if let Some(ci95) = least.served_ci95_per_s
        && least.served_per_s < FALLEN_SHARE * capacity_per_s
        && ci95[1] < best_low
    {
        return Some(OverloadDiagnosis::ThroughputFalls {
            capacity_per_s,
            served_per_s: least.served_per_s,
            served_ci95_per_s: ci95,
            offered_per_s: least.offered_per_s,
        });
    }
    let offered = |a: &&Point, b: &&Point| a.offered_per_s.total_cmp(&b.offered_per_s);
    let last = beyond().max_by(offered)?;
    let is_flat = least.served_per_s >= FALLEN_SHARE * capacity_per_s
        && last.offered_per_s >= PRESSED_FACTOR * capacity_per_s;
    (is_flat && capacity_per_s > 0.0).then_some(OverloadDiagnosis::ThroughputFlat {
        capacity_per_s,
        served_per_s: last.served_per_s,
        served_ci95_per_s: last.served_ci95_per_s,
        offered_per_s: last.offered_per_s,
    })
}

/// The trial of which the largest share ended so, if more than `beyond_percent` did, and how many.
fn worst(summary: &Summary, outcome: Outcome, beyond_percent: f64) -> Option<(&Point, u64)> {
    let points = summary.points.iter();
    let worst = points.max_by(|a, b| a.percent(outcome).total_cmp(&b.percent(outcome)))?;
    let is_worth = worst.percent(outcome) > beyond_percent;
    is_worth.then(|| (worst, worst.outcomes.count(outcome)))
}
