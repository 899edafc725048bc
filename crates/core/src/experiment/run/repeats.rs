//! One answer from several repeats of a run: what differs between repeats is in its intervals.

use super::report::RepeatedFigure;
use crate::stats::rounds::{Cell, fit};
use crate::trial::figure::Figure;
use crate::trial::report::{TrialReport, Verdict};
use crate::trial::statistics::{Compared, StatisticUnit, TrialStatistic, compared_in};

/// The figures of repeats of the same load; none of fewer than two that are VALID.
pub(super) fn repeated(trials: &[TrialReport]) -> Vec<RepeatedFigure> {
    let valid = || trials.iter().filter(|t| t.verdict == Verdict::Valid);
    let figure = |row: &TrialStatistic| {
        let exact = valid().filter_map(|t| match row.value(t) {
            Figure::Exactly(value) => Some(value),
            Figure::Within(..) | Figure::Absent => None,
        });
        let logs = exact.filter(|v| *v > 0.0).map(f64::ln);
        let cells: Vec<Cell> = logs
            .map(|value| Cell {
                level: 0,
                round: 0,
                value,
            })
            .collect();
        let fit = fit(&cells, 1, 1)?;
        let estimate = fit.level(0)?;
        Some(RepeatedFigure {
            metric: row.key.to_owned(),
            repeats: cells.len() as u32,
            value: estimate.value.exp(),
            ci95: estimate.ci95().map(f64::exp),
            spread_percent: 100.0 * fit.spread,
        })
    };
    let rows = compared_in(Compared::Load);
    let figures = rows.filter(|row| row.unit != StatisticUnit::Percent);
    figures.filter_map(figure).collect()
}
