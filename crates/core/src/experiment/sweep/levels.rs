//! The rows of a sweep as reported: what the table and the plots show.

use crate::experiment::sweep::findings::AxisKind;
use crate::experiment::sweep::knee::fails;
use crate::experiment::sweep::report::{SweepConclusion, SweepLevel};
use crate::experiment::sweep::table::LevelPoint;
use crate::trial::report::{TrialReport, Verdict};

/// One row per level of `table`, with what the trials of the level add to it, and the marks that
/// follow from the conclusion, which rests on the rows `used`.
pub(super) fn levels(
    axis: AxisKind,
    table: &[LevelPoint],
    used: &[LevelPoint],
    past: &[TrialReport],
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
            ..row(axis, p, past)
        })
        .collect()
}

fn row(axis: AxisKind, p: &LevelPoint, past: &[TrialReport]) -> SweepLevel {
    let level = axis.level(p.level);
    let here = || past.iter().filter(|t| t.level == level);
    // The generator's figures of the last trial that counts, or of the last one.
    let trial = here()
        .rfind(|t| t.verdict == Verdict::Valid)
        .or_else(|| here().next_back());
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
        errors: trial.map(|_| here().map(|t| t.outcomes.errors()).sum()),
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
