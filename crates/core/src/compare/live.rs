//! Comparison of two targets in turns. Each round has a slice of A and one of B, in random order,
//! so that changes with time meet both.

use super::comparison;
use super::difference::Difference;
use super::draft::{self, RowDraft};
use super::host_speed::host_speed;
use super::levels::MatchedLevel;
use super::metrics::{compared_statistics, estimate};
use super::report::{ComparedRun, ComparedSide, Comparison};
use crate::report::Kind;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::statistics::{StatisticUnit, TrialStatistic, statistic};
use knee_load::rng;
use knee_load::stats::rounds::{BlockCell, RoundsFit, fit};
use knee_load::stats::sample::t_beyond;

/// Least number of rounds, if the budget permits.
pub const ROUNDS_MIN: usize = 8;
/// Half width of the difference's interval, as a share, at which it is known well enough.
const PRECISION: f64 = 0.02;

/// A target and its slices, one of each round.
#[derive(Clone, Debug)]
pub struct LiveSide {
    /// URL of the target.
    pub target: String,
    /// When the first slice began, RFC 3339.
    pub started_at: String,
    /// Slices in the order of rounds.
    pub slices: Vec<TrialReport>,
}

/// Whether B goes first in this round.
pub fn is_b_first(seed: u64, round: usize) -> bool {
    rng::unit(&mut rng::stream(seed, rng::ORDER + round as u64)) < 0.5
}

/// Whether the rounds suffice: at least [`ROUNDS_MIN`], and the main difference is known to ±2 %.
/// That is throughput in a closed loop, the median response time in an open one.
pub fn is_known(a: &[TrialReport], b: &[TrialReport]) -> bool {
    let is_open = a.iter().any(|t| t.offered.asked_per_s.is_some());
    let name = if is_open { "p50_ns" } else { "throughput_per_s" };
    let known = statistic(name).and_then(|row| fitted(row, [a, b])?.difference(0, 1));
    let is_near = known.is_some_and(|d| d.half_width <= PRECISION.ln_1p());
    a.len().min(b.len()) >= ROUNDS_MIN && is_near
}

/// Compares B with A.
///
/// # Errors
/// One line: there is no whole round.
pub fn compare_live(a: &LiveSide, b: &LiveSide, knee_version: &str) -> Result<Comparison, String> {
    let slices = [&a.slices[..], &b.slices[..]];
    if slices.iter().any(|side| side.is_empty()) {
        return Err("nothing to compare: not one round was made".to_owned());
    }
    let matched = MatchedLevel::from_slices(slices);
    let speed = host_speed(std::iter::once((a.slices.iter(), b.slices.iter())));
    let drafts = matched.drafts(Kind::Run).into_iter().map(|draft| {
        let draft = in_rounds(draft, slices);
        match speed {
            Some(speed) => speed.explain(draft),
            None => draft,
        }
    });
    let rows = draft::finish(drafts.collect());
    let mut warnings: Vec<String> = speed.and_then(|s| s.warning()).into_iter().collect();
    warnings.extend(left_out("A", &a.slices));
    warnings.extend(left_out("B", &b.slices));
    let stage_changes = matched.stage_changes(&rows);
    let whole = comparison([compared(a), compared(b)], rows, knee_version);
    Ok(Comparison {
        answer: format!(
            "{} Measured in {} rounds.",
            whole.answer,
            a.slices.len().min(b.slices.len())
        ),
        has_invalid: slices.iter().any(|side| verdict(side) == Verdict::Invalid),
        warnings,
        stage_changes,
        ..whole
    })
}

/// Replaces the difference between runs by that within rounds.
fn in_rounds(draft: RowDraft, slices: [&[TrialReport]; 2]) -> RowDraft {
    let metric = &draft.subject.row.metric;
    let Some(row) = compared_statistics(Kind::Run)
        .find(|row| row.key == metric && row.unit != StatisticUnit::Percent)
    else {
        return draft;
    };
    let fit = fitted(row, slices);
    let levels = fit.as_ref().map(|fit| [fit.levels[0], fit.levels[1]]);
    let values = levels.map_or(draft.values, |l| l.map(|level| level.map(f64::exp)));
    let difference = fit.as_ref().and_then(|fit| {
        let estimate = fit.difference(0, 1)?;
        let error = estimate.half_width / t_beyond(0.05, fit.freedom as u64);
        Some(Difference::new(estimate.value, error, fit.freedom as f64))
    });
    RowDraft::of(draft.subject, values, difference, "fewer than two valid rounds have this figure")
}

/// Fits a figure over the rounds that have it on both sides.
fn fitted(row: &TrialStatistic, [a, b]: [&[TrialReport]; 2]) -> Option<RoundsFit> {
    let value =
        |t: &TrialReport| estimate(row, t).filter(|_| t.verdict == Verdict::Valid).map(|e| e.log);
    let rounds: Vec<[f64; 2]> =
        a.iter().zip(b).filter_map(|(a, b)| Some([value(a)?, value(b)?])).collect();
    let mut cells = Vec::new();
    for (round, values) in rounds.iter().enumerate() {
        cells.extend((0..2).map(|level| BlockCell { level, round, value: values[level] }));
    }
    fit(&cells, 2, rounds.len())
}

fn left_out(side: &str, slices: &[TrialReport]) -> Option<String> {
    let invalid = slices.iter().filter(|t| t.verdict == Verdict::Invalid).count();
    (invalid > 0)
        .then(|| format!("{invalid} of {} slices of {side} are INVALID and left out", slices.len()))
}

/// A side is valid if at least half of its slices are.
fn verdict(slices: &[TrialReport]) -> Verdict {
    let valid = slices.iter().filter(|t| t.verdict == Verdict::Valid).count();
    if 2 * valid >= slices.len() { Verdict::Valid } else { Verdict::Invalid }
}

fn compared(side: &LiveSide) -> ComparedSide {
    ComparedSide {
        runs: vec![ComparedRun {
            name: side.target.clone(),
            command: "run".to_owned(),
            target: side.target.clone(),
            started_at: side.started_at.clone(),
            verdict: verdict(&side.slices),
        }],
    }
}

#[cfg(test)]
mod tests;
