//! One answer from several repeats of a run: what differs between repeats is in its intervals.

use super::report::RepeatedFigure;
use crate::stats::rounds::{Cell, fit};
use crate::trial::report::{TrialReport, Verdict};

type Figure = fn(&TrialReport) -> Option<f64>;

const FIGURES: [(&str, Figure); 5] = [
    ("throughput_per_s", |t| t.throughput_per_s),
    ("p50_ns", |t| t.response_time_ns.p50.map(|ns| ns as f64)),
    ("p90_ns", |t| t.response_time_ns.p90.map(|ns| ns as f64)),
    ("p95_ns", |t| t.response_time_ns.p95.map(|ns| ns as f64)),
    ("p99_ns", |t| t.response_time_ns.p99.map(|ns| ns as f64)),
];

/// The figures of repeats of the same load; none of fewer than two that are VALID.
pub(super) fn repeated(trials: &[TrialReport]) -> Vec<RepeatedFigure> {
    let valid = || trials.iter().filter(|t| t.verdict == Verdict::Valid);
    let figure = |(metric, of): &(&str, Figure)| {
        let logs = valid().filter_map(of).filter(|v| *v > 0.0).map(f64::ln);
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
            metric: (*metric).to_owned(),
            repeats: cells.len() as u32,
            value: estimate.value.exp(),
            ci95: estimate.ci95().map(f64::exp),
            spread_percent: 100.0 * fit.spread,
        })
    };
    FIGURES.iter().filter_map(figure).collect()
}
