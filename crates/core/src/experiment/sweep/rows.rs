//! The rows of a sweep as reported: levels with their marks, slices with what was amiss in them,
//! outages and the host's speed.

use super::inference::Inference;
use super::progress::level_of;
use crate::experiment::sweep::findings::AxisKind;
use crate::experiment::sweep::knee::fails;
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
/// Weight below which a slice is an outlier.
const LOW_WEIGHT: f64 = 0.45;
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
    let distance = |p: &LevelPoint, knee: f64| (p.level / knee).ln().abs();
    let nearest = knee.and_then(|knee| {
        let by_distance =
            |a: &&LevelPoint, b: &&LevelPoint| distance(a, knee).total_cmp(&distance(b, knee));
        table.iter().min_by(by_distance).map(|p| p.level)
    });
    let best = conclusion.best_within_bound.as_ref();
    let best = best.map(|b| b.rate_per_s.unwrap_or(f64::from(b.vusers)));
    table
        .iter()
        .map(|p| SweepLevel {
            is_knee: nearest == Some(p.level),
            is_best_within_bound: best == Some(p.level),
            excluded_because: excluded_because(p, used),
            ..row(axis, p, merged)
        })
        .collect()
}

fn row(axis: AxisKind, p: &LevelPoint, merged: &[TrialReport]) -> SweepLevel {
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
        excluded_because: None,
        is_knee: false,
        is_best_within_bound: false,
    }
}

fn excluded_because(p: &LevelPoint, used: &[LevelPoint]) -> Option<String> {
    let reason = if used.iter().any(|u| u.level == p.level) {
        return None;
    } else if p.throughput_per_s <= 0.0 {
        "nothing answered"
    } else if fails(p) {
        "failures"
    } else {
        "invalid"
    };
    Some(reason.to_owned())
}

/// All slices in the order in which they were measured.
pub(super) fn slices(found: &Inference) -> Vec<SweepSlice> {
    let speeds = host_speeds(found);
    (0..found.past.len())
        .map(|i| {
            let trial = &found.past[i];
            let times = &trial.response_time_ns;
            SweepSlice {
                round: found.rounds[i],
                level: trial.level,
                begin_ns: begin_ns(trial),
                duration_ns: trial.duration_ns,
                throughput_per_s: trial.successes_per_s(),
                mean_ns: times.mean,
                p90_ns: times.p90,
                errors: trial.outcomes.errors(),
                cpu_us_per_op: trial.generator.cpu_us_per_op(),
                host_speed: speeds[i],
                weight: found.weights[i],
                marks: marks(found, i),
            }
        })
        .collect()
}

fn begin_ns(trial: &TrialReport) -> u64 {
    trial.slice().map_or(0, |slice| slice.begin_ns)
}

fn marks(found: &Inference, i: usize) -> Vec<String> {
    let trial = &found.past[i];
    let fails = error_share(&trial.outcomes) > usual_failures(found, i) + MORE_FAIL;
    let stolen = trial.generator.steal_percent.unwrap_or(0.0);
    [
        (found.rounds[i] == 0, "explored"),
        (silence(found, i).is_some(), "outage"),
        (fails, "errors"),
        (!found.is_kept(i), "other_regime"),
        (trial.verdict == Verdict::Invalid, "invalid"),
        (stolen >= STEAL_PERCENT, "stolen"),
        (found.weights[i] < LOW_WEIGHT && found.is_kept(i), "outlier"),
    ]
    .into_iter()
    .filter(|mark| mark.0)
    .map(|mark| mark.1.to_owned())
    .collect()
}

fn usual_failures(found: &Inference, i: usize) -> f64 {
    let same = found.past.iter().filter(|t| t.level == found.past[i].level);
    median(same.map(|t| error_share(&t.outcomes)))
}

/// Begin and end of an outage in a slice, from the begin of the sweep.
fn silence(found: &Inference, i: usize) -> Option<[u64; 2]> {
    let trial = &found.past[i];
    let slice = trial.slice()?;
    let [start, end] = slice.silence_ns?;
    let same = || {
        let level = level_of(trial);
        let others = found.past.iter().filter(move |t| level_of(t) == level);
        others.filter(|t| t.completed > 0)
    };
    // A level with few slices takes the throughput of lower levels.
    let least = found.past.iter().filter(|t| level_of(t) <= level_of(trial));
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
pub(super) fn outages(found: &Inference) -> Vec<SweepOutage> {
    let mut all: Vec<SweepOutage> = Vec::new();
    for (i, trial) in found.past.iter().enumerate() {
        let Some([begin, end]) = silence(found, i) else {
            continue;
        };
        let failures = trial.outcomes.errors();
        let goes_on = |o: &&mut SweepOutage| {
            let gap = begin.saturating_sub(o.end_ns);
            gap <= SAME_OUTAGE_GAP_NS && begin <= begin_ns(trial) + SAME_OUTAGE_GAP_NS / 20
        };
        match all.last_mut().filter(goes_on) {
            Some(last) => {
                last.end_ns = end;
                last.failures += failures;
                if !last.levels.contains(&trial.level) {
                    last.levels.push(trial.level);
                }
            }
            None => all.push(SweepOutage {
                begin_ns: begin,
                end_ns: end,
                levels: vec![trial.level],
                failures,
            }),
        }
    }
    all
}

/// Speed of the host in each slice: the median processor time per operation of the level, divided
/// by that of the slice.
fn host_speeds(found: &Inference) -> Vec<Option<f64>> {
    let usual = |level: Level| {
        let here = (0..found.past.len()).filter(|&i| found.rounds[i] > 0);
        let here = here.filter(|&i| found.past[i].level == level);
        median(here.filter_map(|i| found.past[i].generator.cpu_us_per_op()))
    };
    found
        .past
        .iter()
        .enumerate()
        .map(|(i, t)| {
            Some(usual(t.level) / t.generator.cpu_us_per_op()?)
                .filter(|s| found.rounds[i] > 0 && *s > 0.0)
        })
        .collect()
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
