//! The rows of a sweep as reported: levels with their marks, slices with what was amiss in them,
//! outages and the host's speed.

use super::progress::users_of;
use crate::experiment::sweep::findings::AxisKind;
use crate::experiment::sweep::knee::{fails, outlasts};
use crate::experiment::sweep::report::{SweepConclusion, SweepLevel, SweepOutage, SweepSlice};
use crate::experiment::sweep::table::LevelPoint;
use crate::trial::report::{TrialReport, Verdict};
use knee_load::measure::error_share;
use knee_load::spec::Level;
use knee_load::stats::rounds::median;

/// Shortest silence that is an outage, …
const OUTAGE_NS: u64 = 250_000_000;
/// … if at least this number of responses was expected in it, …
const EXPECTED: f64 = 8.0;
/// … and it exceeds this multiple of the median response time.
const RESPONSES: f64 = 5.0;
/// Share of failures above the usual of the level that is marked.
const MORE_FAIL: f64 = 0.01;
/// Stolen share of the host's processor time that is marked.
const STEAL_PERCENT: f64 = 2.0;
/// Longest gap between silences of one outage.
const SAME_OUTAGE_GAP_NS: u64 = 1_000_000_000;

/// One reported level for each row of `table`, with figures of the merged trials and the marks of
/// the conclusion. The conclusion rests on the rows `used`.
pub(super) fn levels(
    axis: AxisKind,
    table: &[LevelPoint],
    used: &[LevelPoint],
    merged: &[TrialReport],
    conclusion: &SweepConclusion,
) -> Vec<SweepLevel> {
    let knee = conclusion.knee_vusers.or(conclusion.knee_rate_per_s);
    let nearest = knee.and_then(|knee| {
        let distance = |p: &LevelPoint| (p.level / knee).ln().abs();
        table.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).map(|p| p.level)
    });
    let best = conclusion.best_within_bound.as_ref();
    let best = best.map(|b| b.rate_per_s.unwrap_or(f64::from(b.vusers)));
    let row = |p: &LevelPoint| {
        let level = axis.level(p.level);
        let trial = merged.iter().find(|t| t.level == level);
        let times = p.latency.as_ref().filter(|times| times.count > 0);
        SweepLevel {
            level,
            trials: p.trials as u32,
            throughput_per_s: p.throughput_per_s,
            throughput_ci95_per_s: p.throughput_ci95,
            mean_ns: p.mean_ns.map(|ns| ns.round() as u64),
            p50_ns: times.and_then(|times| times.p50),
            p90_ns: p.p90_ns.map(|ns| ns.round() as u64),
            p95_ns: times.and_then(|times| times.p95),
            p99_ns: times.and_then(|times| times.p99),
            errors: trial.map(|t| t.outcomes.errors()),
            busiest_worker_percent: trial.map(|t| t.generator.busiest_worker_percent),
            cpu_us_per_op: trial.and_then(|t| t.generator.cpu_s_per_million_ops),
            littles_law_deviation_percent: trial
                .and_then(|t| t.http()?.littles_law.as_ref())
                .map(|law| law.deviation_percent),
            excluded_because: excluded_because(p, used),
            is_knee: nearest == Some(p.level),
            is_best_within_bound: best == Some(p.level),
        }
    };
    table.iter().map(row).collect()
}

fn excluded_because(p: &LevelPoint, used: &[LevelPoint]) -> Option<String> {
    let reason = if used.iter().any(|u| u.level == p.level) {
        return None;
    } else if outlasts(p) {
        "no response within its time"
    } else if p.throughput_per_s <= 0.0 {
        "nothing answered"
    } else if fails(p) {
        "failures"
    } else {
        "invalid"
    };
    Some(reason.to_owned())
}

/// Trials as slices of these rounds, in the order in which they were measured. Round 0 explored.
pub(super) fn slices(past: &[TrialReport], rounds: &[u32]) -> Vec<SweepSlice> {
    let of = |(trial, &round): (&TrialReport, &u32)| {
        let times = &trial.response_time_ns;
        let same = past.iter().filter(|t| t.level == trial.level);
        let usual_failures = median(same.map(|t| error_share(&t.outcomes)));
        let stolen = trial.generator.steal_percent.unwrap_or(0.0);
        let outage_ns = outage(past, trial);
        let marks = [
            (round == 0, EXPLORED),
            (outage_ns.is_some(), OUTAGE),
            (error_share(&trial.outcomes) > usual_failures + MORE_FAIL, "errors"),
            (trial.verdict == Verdict::Invalid, INVALID),
            (stolen >= STEAL_PERCENT, "stolen"),
        ];
        let marks = marks.into_iter().filter(|mark| mark.0);
        SweepSlice {
            round,
            level: trial.level,
            begin_ns: trial.slice().map(|slice| slice.begin_ns),
            duration_ns: Some(trial.duration_ns),
            throughput_per_s: trial.successes_per_s(),
            mean_ns: times.mean,
            p90_ns: times.p90,
            errors: trial.outcomes.errors(),
            cpu_us_per_op: trial.generator.cpu_us_per_op(),
            host_speed: None,
            weight: 1.0,
            outage_ns,
            marks: marks.map(|mark| mark.1.to_owned()).collect(),
        }
    };
    let mut slices: Vec<SweepSlice> = past.iter().zip(rounds).map(of).collect();
    let speeds = host_speeds(&slices);
    for (slice, speed) in slices.iter_mut().zip(speeds) {
        slice.host_speed = speed;
    }
    slices
}

/// Marks of slices that explored, had an outage, and are invalid.
const EXPLORED: &str = "explored";
pub(super) const OUTAGE: &str = "outage";
pub(super) const INVALID: &str = "invalid";

/// Begin and end of an outage in a slice, from the begin of the sweep.
fn outage(past: &[TrialReport], trial: &TrialReport) -> Option<[u64; 2]> {
    let slice = trial.slice()?;
    let [start, end] = slice.longest_silence()?;
    let same = || past.iter().filter(|t| t.level == trial.level && t.completed > 0);
    // A level with few slices takes the throughput of lower levels.
    let least = past.iter().filter(|t| users_of(t.level) <= users_of(trial.level));
    let per_s = median(same().map(|t| t.successes_per_s()));
    let per_s = per_s.max(median(least.map(|t| t.successes_per_s())));
    let response_ns = median(same().filter_map(|t| t.response_time_ns.p50).map(|ns| ns as f64));
    let length = end - start;
    let is_long = length >= OUTAGE_NS.min(trial.duration_ns * 9 / 10);
    let is_told = per_s * length as f64 / 1e9 >= EXPECTED;
    let is_outage = is_long && is_told && length as f64 >= RESPONSES * response_ns;
    is_outage.then(|| [slice.begin_ns + start, slice.begin_ns + end])
}

/// Outages; those of neighbouring slices are one.
pub(super) fn outages(slices: &[SweepSlice]) -> Vec<SweepOutage> {
    let mut all: Vec<SweepOutage> = Vec::new();
    let mut last_at = None;
    for (i, slice) in slices.iter().enumerate() {
        if !slice.marks.iter().any(|mark| mark == OUTAGE) {
            continue;
        }
        let [begin_ns, end_ns] = [0, 1].map(|end| slice.outage_ns.map(|out| out[end]));
        let goes_on = |o: &&mut SweepOutage| match (begin_ns, o.end_ns) {
            (Some(begin), Some(end)) => {
                let slice_begin = slice.begin_ns.unwrap_or(begin);
                begin.saturating_sub(end) <= SAME_OUTAGE_GAP_NS
                    && begin <= slice_begin + SAME_OUTAGE_GAP_NS / 20
            }
            _ => last_at.is_some_and(|last| last + 1 == i),
        };
        match all.last_mut().filter(goes_on) {
            Some(last) => {
                last.end_ns = end_ns;
                last.failures += slice.errors;
                if !last.levels.contains(&slice.level) {
                    last.levels.push(slice.level);
                }
            }
            None => all.push(SweepOutage {
                begin_ns,
                end_ns,
                round: slice.round,
                levels: vec![slice.level],
                failures: slice.errors,
            }),
        }
        last_at = Some(i);
    }
    all
}

/// Speed of the host in each slice: the median processor time per operation of the level, divided
/// by that of the slice.
fn host_speeds(slices: &[SweepSlice]) -> Vec<Option<f64>> {
    let measured = || slices.iter().filter(|s| s.round > 0);
    let usual = |level: Level| {
        median(measured().filter(|s| s.level == level).filter_map(|s| s.cpu_us_per_op))
    };
    let of = |s: &SweepSlice| Some(usual(s.level) / s.cpu_us_per_op?);
    slices.iter().map(|s| of(s).filter(|speed| s.round > 0 && *speed > 0.0)).collect()
}

/// Speed of the host by round; 1 is the median.
pub(super) fn speed_by_round(slices: &[SweepSlice]) -> Vec<f64> {
    let last = slices.iter().map(|s| s.round).max().unwrap_or(0);
    let of = |round: u32| {
        let here = slices.iter().filter(|s| s.round == round);
        median(here.filter_map(|s| s.host_speed))
    };
    let speeds: Vec<f64> = (1..=last).map(of).collect();
    let is_known = !speeds.is_empty() && speeds.iter().all(|s| *s > 0.0);
    if is_known { speeds } else { Vec::new() }
}
