//! Findings about a single trial: pure predicates over its report.

use crate::diagnosis::Diagnosis;
use crate::finding::Finding;
use crate::measure::error_share;
use crate::measure::{Interval, Outcome, Outcomes};
use crate::spec::Level;
use crate::trial::report::{OutageReport, TrialReport, Verdict};
use crate::trial::validity::{BUSY_PERCENT, BUSY_WINDOW, GENERATOR_LIMITED};
use crate::words::value;

/// From this share on failures are a warning.
pub(crate) const ERRORS_PERCENT: f64 = 1.0;
/// Little's law says nothing about a window with fewer operations per user than this: those that
/// straddle its ends are too large a part.
const LAW_OPERATIONS: f64 = 20.0;
/// So few failures are no outage, whatever else did not happen meanwhile.
const OUTAGE_FAILURES: u64 = 5;
/// A pause may overshoot by this share of itself, or by this many nanoseconds.
const PAUSE_SHARE: f64 = 0.05;
const PAUSE_NS: f64 = 50_000.0;
/// A queue grows if at least this share of what was attempted waits at the end, …
const WAITING_SHARE: f64 = 0.01;
/// … and at least so many operations, …
const WAITING_MIN: f64 = 10.0;
/// … and if at half time it had between these shares of its final length.
const HALF_TIME_SHARES: [f64; 2] = [0.2, 0.9];
/// From this share of the operations on it is worth a word that they were never sent.
const UNSENT_SHARE: f64 = 0.001;
/// A stall is a response time of at least this many nanoseconds, this many medians.
const STALL_NS: u64 = 100_000_000;
const STALL_MEDIANS: u64 = 20;
/// During it completions fall below, and after it they rise above, these shares of the usual.
const STALL_DIP: f64 = 0.7;
const STALL_BURST: f64 = 1.3;

/// What a person should know about a trial that stands alone, the gravest first.
pub fn trial_findings(trial: &TrialReport) -> Vec<Finding> {
    let mut findings: Vec<Finding> = diagnose_trial(trial)
        .iter()
        .map(Diagnosis::finding)
        .collect();
    findings.sort_by_key(|f| std::cmp::Reverse(f.severity));
    findings
}

/// The diagnoses of one trial, without a level named.
pub fn diagnose_trial(trial: &TrialReport) -> Vec<Diagnosis> {
    let checks: [fn(&TrialReport) -> Option<Diagnosis>; 13] = [
        generator_limited,
        generator_distorted,
        littles_law,
        connections_limit,
        target_queue_grows,
        non_stationary,
        errors,
        outage,
        hung,
        periodic_pauses,
        think_deviation,
        server_stalled,
        surplus_bytes,
    ];
    let mut all: Vec<Diagnosis> = checks.iter().filter_map(|check| check(trial)).collect();
    // What waits for a target that is away is no sign of more than it can serve.
    if all.iter().any(|d| matches!(d, Diagnosis::Outage { .. })) {
        all.retain(|d| !matches!(d, Diagnosis::TargetQueueGrows { .. }));
    }
    all
}

/// The diagnoses of several trials, one for each kind, naming the levels that it holds for. The
/// numbers are those of the first trial of its kind; lists of clauses are joined.
pub fn grouped(trials: &[&TrialReport]) -> Vec<Diagnosis> {
    let mut all: Vec<Diagnosis> = Vec::new();
    for trial in trials {
        for mut found in diagnose_trial(trial) {
            let same = all.iter_mut().find(|d| d.code() == found.code());
            if let Some(at) = found.at_mut() {
                at.push(trial.level);
            }
            match same {
                Some(earlier) => earlier.absorb(found),
                None => all.push(found),
            }
        }
    }
    all
}

/// Whether, in an open loop, the queue grew all through the window: what was started and
/// has not ended accumulates from beginning to end, or arrivals had to be shed.
pub fn queue_grows(trial: &TrialReport) -> bool {
    growing_queue(trial).is_some()
}

impl Diagnosis {
    fn at_mut(&mut self) -> Option<&mut Vec<crate::spec::Level>> {
        match self {
            Diagnosis::NonStationary { at, .. }
            | Diagnosis::LittlesLawViolation { at, .. }
            | Diagnosis::GeneratorLimited { at, .. }
            | Diagnosis::GeneratorDistorted { at, .. }
            | Diagnosis::ThinkDeviation { at, .. }
            | Diagnosis::Errors { at, .. }
            | Diagnosis::TargetQueueGrows { at, .. }
            | Diagnosis::ConnectionsLimit { at, .. }
            | Diagnosis::SurplusBytes { at, .. }
            | Diagnosis::ServerStalled { at, .. }
            | Diagnosis::Hung { at, .. }
            | Diagnosis::PeriodicPauses { at, .. }
            | Diagnosis::Outage { at, .. } => Some(at),
            _ => None,
        }
    }

    /// Takes over the levels, and the worse number, of another of the same kind.
    fn absorb(&mut self, mut other: Diagnosis) {
        let theirs = other.at_mut().map(std::mem::take).unwrap_or_default();
        if let Some(at) = self.at_mut() {
            at.extend(theirs);
            at.sort_by(|a, b| value(*a).total_cmp(&value(*b)));
            at.dedup();
        }
        match (self, other) {
            (
                Diagnosis::NonStationary {
                    longest_s: mine, ..
                },
                Diagnosis::NonStationary {
                    longest_s: theirs, ..
                },
            )
            | (
                Diagnosis::Errors { percent: mine, .. },
                Diagnosis::Errors {
                    percent: theirs, ..
                },
            )
            | (
                Diagnosis::GeneratorLimited {
                    busy_percent: mine, ..
                },
                Diagnosis::GeneratorLimited {
                    busy_percent: theirs,
                    ..
                },
            ) => *mine = mine.max(theirs),
            (
                Diagnosis::GeneratorDistorted { clauses: mine, .. },
                Diagnosis::GeneratorDistorted {
                    clauses: theirs, ..
                },
            ) => {
                let new: Vec<String> = theirs.into_iter().filter(|c| !mine.contains(c)).collect();
                mine.extend(new);
            }
            _ => {}
        }
    }
}

fn generator_limited(t: &TrialReport) -> Option<Diagnosis> {
    let g = &t.generator;
    let used = g.busiest_worker_percent - g.busiest_worker_spin_percent;
    let busy_percent = match t.level {
        // With what others used of it: see the clause of the verdict.
        Level::Vusers(_) => (used + g.busiest_worker_waiting_percent).min(used.max(100.0)),
        Level::RatePerS(_) | Level::Clients(_) | Level::Descriptors(_) | Level::Flows { .. } => {
            used
        }
    };
    let long = t.duration_ns >= BUSY_WINDOW.0;
    (long && busy_percent > BUSY_PERCENT).then(|| Diagnosis::GeneratorLimited {
        at: Vec::new(),
        busy_percent,
        workers: t.generator.workers,
    })
}

/// What [`generator_limited`] says is not said again.
fn generator_distorted(t: &TrialReport) -> Option<Diagnosis> {
    let is_limit = |clause: &String| clause.contains(GENERATOR_LIMITED);
    let (limits, clauses): (Vec<String>, Vec<String>) =
        t.invalid_because.iter().cloned().partition(is_limit);
    let is_all_said = clauses.is_empty() && !limits.is_empty();
    let is_distorted = t.verdict == Verdict::Invalid && !is_all_said;
    is_distorted.then(|| Diagnosis::GeneratorDistorted {
        at: Vec::new(),
        clauses,
    })
}

fn littles_law(t: &TrialReport) -> Option<Diagnosis> {
    let law = t.littles_law.as_ref().filter(|law| !law.ok)?;
    // Users who hang are in N and not in X·R: that is a finding of its own.
    if t.silence.hung > 0 {
        return None;
    }
    if (t.completed as f64) < LAW_OPERATIONS * law.n {
        return None;
    }
    Some(Diagnosis::LittlesLawViolation {
        at: Vec::new(),
        n: law.n,
        x_times_r: law.x_times_r,
        deviation_percent: law.deviation_percent.abs(),
    })
}

fn non_stationary(t: &TrialReport) -> Option<Diagnosis> {
    // A queue that grows is never stationary, and that is a finding of its own.
    (!t.stationary && t.completed > 0 && !queue_grows(t)).then(|| Diagnosis::NonStationary {
        at: Vec::new(),
        longest_s: t.duration_ns as f64 / 1e9,
    })
}

/// Any failure is said of a load of operations; of pings and connects each has findings of its own.
fn errors(t: &TrialReport) -> Option<Diagnosis> {
    let percent = 100.0 * error_share(&t.outcomes);
    let least = match t.level {
        Level::Vusers(_) | Level::RatePerS(_) => 0.0,
        Level::Clients(_) | Level::Descriptors(_) | Level::Flows { .. } => ERRORS_PERCENT,
    };
    (percent > least).then(|| Diagnosis::Errors {
        at: Vec::new(),
        percent,
        kind: most_frequent_failure(&t.outcomes),
    })
}

fn outage(t: &TrialReport) -> Option<Diagnosis> {
    let all = match t.silence.outages.is_empty() {
        true => dead_intervals(t),
        false => t.silence.outages.clone(),
    };
    let (first, last) = (all.first()?, all.last()?);
    let length = |o: &OutageReport| (o.end_ns - o.start_ns) as f64;
    let until = Some(first.end_ns as f64).filter(|_| first.end_ns < t.duration_ns);
    Some(Diagnosis::Outage {
        at: Vec::new(),
        from_ns: first.start_ns as f64,
        until_ns: until.filter(|_| all.len() > 1 || last.end_ns < t.duration_ns),
        count: all.len() as f64,
        lasted_ns: all.iter().map(length).sum(),
        failures: all.iter().map(|o| o.failures as f64).sum(),
    })
}

/// What the intervals tell of outages, where they are all that is known or few operations came. In
/// a closed loop users back off from a target that fails, so that an outage leaves few failures
/// among many responses. Where nothing ever came, `errors` says so.
fn dead_intervals(t: &TrialReport) -> Vec<OutageReport> {
    let dead = t
        .intervals
        .iter()
        .filter(|i| i.completed == 0 && i.errors > 0);
    let mut all: Vec<OutageReport> = Vec::new();
    for i in dead {
        match all.last_mut() {
            Some(last) if last.end_ns == i.start_ns => {
                last.end_ns = i.end_ns;
                last.failures += i.errors;
            }
            _ => all.push(OutageReport {
                start_ns: i.start_ns,
                end_ns: i.end_ns,
                failures: i.errors,
            }),
        }
    }
    let failures: u64 = all.iter().map(|o| o.failures).sum();
    all.retain(|_| t.completed > 0 && failures >= OUTAGE_FAILURES);
    all
}

/// Who hangs because the target was away at the end is in that outage.
fn hung(t: &TrialReport) -> Option<Diagnosis> {
    let silence = &t.silence;
    let users = match t.level {
        Level::Vusers(n) => Some(f64::from(n)),
        _ => None,
    };
    let lasts = |o: &OutageReport| o.end_ns >= t.duration_ns;
    let is_outage = silence.outages.last().is_some_and(lasts);
    let hangs = silence.hung_throughout > 0 || users.is_some() && silence.hung > 0 && !is_outage;
    hangs.then(|| Diagnosis::Hung {
        at: Vec::new(),
        hung: silence.hung as f64,
        throughout: silence.hung_throughout as f64,
        users,
        waited_ns: silence.hung_ns_min.unwrap_or(0) as f64,
    })
}

/// While the generator was on time.
fn periodic_pauses(t: &TrialReport) -> Option<Diagnosis> {
    let pauses = t.silence.pauses.as_ref()?;
    let late = t.offered.pacing_error_ns.max.unwrap_or(0);
    let on_time = late.max(t.offered.stall_ns_max) < pauses.length_ns / 2;
    (on_time && t.verdict == Verdict::Valid).then(|| Diagnosis::PeriodicPauses {
        at: Vec::new(),
        count: pauses.count as f64,
        period_ns: pauses.period_ns as f64,
        length_ns: pauses.length_ns as f64,
        percent: pauses.percent,
        closed_per_s: match t.offered.asked_per_s {
            None => Some(t.responses_per_s()),
            Some(_) => None,
        },
    })
}

fn most_frequent_failure(outcomes: &Outcomes) -> &'static str {
    outcomes
        .iter()
        .filter(|(o, _)| !matches!(o, Outcome::Ok | Outcome::InFlight))
        .max_by_key(|&(_, count)| count)
        .map_or("none", |(o, _)| o.name())
}

/// The pause asked for follows from Little's law as reported, Z = X·(R + Z)/X − R; how far it
/// overshot is the pacing error, started − intended.
fn think_deviation(t: &TrialReport) -> Option<Diagnosis> {
    let law = t.littles_law.as_ref()?;
    let cycle_ns = 1e9 * law.x_times_r / t.throughput_per_s?;
    let asked_ns = cycle_ns - t.response_time_ns.mean? as f64;
    let overshoot_ns = t.offered.pacing_error_ns.p50? as f64;
    let deviates = overshoot_ns > PAUSE_NS && overshoot_ns > PAUSE_SHARE * asked_ns;
    (deviates && asked_ns > 0.01 * cycle_ns).then_some(Diagnosis::ThinkDeviation {
        at: Vec::new(),
        asked_ns,
        overshoot_ns,
    })
}

/// All connections were open, and either operations timed out as none came free, or more than half
/// of the operations waited longer for one than they then took.
fn connections_limit(t: &TrialReport) -> Option<Diagnosis> {
    let connections = t.traffic.connections_limit? as f64;
    let offered_per_s = t.offered.asked_per_s?;
    let service_ns = t.service_time_ns.mean? as f64;
    let wait_ns = t.offered.connection_wait_ns.p50.unwrap_or(0) as f64;
    let starved = t.traffic.unsent as f64 > UNSENT_SHARE * t.attempted as f64;
    let all_open = t.connections_max as f64 >= connections;
    let carried_per_s = 1e9 * connections / service_ns.max(1.0);
    (all_open && (starved || wait_ns > service_ns)).then_some(Diagnosis::ConnectionsLimit {
        at: Vec::new(),
        connections,
        service_ns,
        offered_per_s,
        carried_per_s,
        unsent: t.traffic.unsent as f64,
        wait_ns,
    })
}

fn surplus_bytes(t: &TrialReport) -> Option<Diagnosis> {
    let responses = t.traffic.surplus_responses;
    (responses > 0).then(|| Diagnosis::SurplusBytes {
        at: Vec::new(),
        responses: responses as f64,
    })
}

/// Where there are too few connections, what waits for one waits here, not there.
fn target_queue_grows(t: &TrialReport) -> Option<Diagnosis> {
    growing_queue(t).filter(|_| connections_limit(t).is_none())
}

fn growing_queue(t: &TrialReport) -> Option<Diagnosis> {
    let offered_per_s = t.offered.asked_per_s?;
    let waiting_after = |intervals: &[Interval]| -> f64 {
        let left = |i: &Interval| i.attempted as f64 - (i.completed + i.errors) as f64;
        intervals.iter().map(left).sum()
    };
    let attempted: u64 = t.intervals.iter().map(|i| i.attempted).sum();
    let waiting = waiting_after(&t.intervals);
    let half_time = waiting_after(&t.intervals[..t.intervals.len() / 2]) / waiting;
    let [early, late] = HALF_TIME_SHARES;
    let grows = t.intervals.len() >= 4
        && waiting >= WAITING_MIN.max(WAITING_SHARE * attempted as f64)
        && (early..=late).contains(&half_time);
    let sheds = t.outcomes.count(Outcome::Shed) as f64 > 0.001 * t.attempted as f64;
    (grows || sheds).then_some(Diagnosis::TargetQueueGrows {
        at: Vec::new(),
        offered_per_s,
        served_per_s: t.responses_per_s(),
        waiting: waiting.max(0.0),
    })
}

/// A stall shows as an interval with few completions and a burst in the same interval's end or in
/// the next, with response times far beyond the median; all while the generator was on time.
fn server_stalled(t: &TrialReport) -> Option<Diagnosis> {
    if t.verdict == Verdict::Invalid || t.intervals.len() < 4 || t.silence.pauses.is_some() {
        return None;
    }
    let mut counts: Vec<u64> = t.intervals.iter().map(|i| i.completed).collect();
    counts.sort_unstable();
    let usual = counts[counts.len() / 2] as f64;
    let long = STALL_NS.max(STALL_MEDIANS * t.response_time_ns.p50?);
    let stalls: Vec<&[Interval]> = t
        .intervals
        .windows(2)
        .filter(|w| {
            let dip = (w[0].completed as f64) < STALL_DIP * usual;
            let burst = w[1].completed as f64 > STALL_BURST * usual;
            dip && burst && w[0].max_ns.max(w[1].max_ns) >= long
        })
        .collect();
    let late = t.offered.pacing_error_ns.max.unwrap_or(0);
    let on_time = late < long / 2 && t.offered.stall_ns_max < long / 2;
    let first = stalls.first().filter(|_| on_time && stalls.len() <= 3)?;
    Some(Diagnosis::ServerStalled {
        at: Vec::new(),
        from_ns: first[0].start_ns as f64,
        stall_ns: first[0].max_ns.max(first[1].max_ns) as f64,
    })
}
