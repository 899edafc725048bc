//! What a step of sessions has beyond any other target.

use crate::measure::{Series, Stage, TargetMeasured, known_keys};
use crate::stats::batch::mean_ci95;
use crate::stats::order::design_effect;
use crate::stats::stationarity::{RESPONSE_SHARE, THROUGHPUT_SHARE, is_stationary};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a step of sessions has beyond any other target.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StepReport {
    /// Operations of it per second, of those intended in the window.
    pub rate_per_s: f64,
    /// 95 % confidence interval of that; absent where the data permit none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_ci95_per_s: Option<[f64; 2]>,
    /// The mean time in each stage that took any; they sum to the mean response time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[serde(deserialize_with = "known_keys")]
    pub mean_ns: BTreeMap<Stage, u64>,
}

/// That of a target within a window of this length; `None` where it is no step, or the window is
/// empty.
pub(super) fn step_report(measured: &TargetMeasured, window: Nanos) -> Option<StepReport> {
    let step = measured.step.as_ref()?;
    let window_s = window.as_secs_f64();
    if window_s <= 0.0 {
        return None;
    }
    let rate_per_s = measured.outcomes.total() as f64 / window_s;
    let operations = measured.response.count();
    let stages = Stage::all().zip(&step.stages_ns);
    let mean_of = |sum: &u64| (*sum as f64 / operations.max(1) as f64).round() as u64;
    Some(StepReport {
        rate_per_s,
        // What ended in the slots is not quite what was intended: their spread tells of both.
        rate_ci95_per_s: rate_ci95(&step.series, window, rate_per_s),
        mean_ns: stages
            .map(|(stage, sum)| (stage, mean_of(sum)))
            .filter(|(_, ns)| *ns > 0)
            .collect(),
    })
}

/// 95 % confidence interval of a rate of what ended in these slots; `None` where that drifts or
/// jumps, or is too little.
pub(super) fn rate_ci95(series: &Series, window: Nanos, rate_per_s: f64) -> Option<[f64; 2]> {
    let counts = &series.response_count[..series.whole_slots(window)];
    let counts: Vec<f64> = counts.iter().map(|n| *n as f64).collect();
    let mean = counts.iter().sum::<f64>() / counts.len().max(1) as f64;
    let ends = mean_ci95(&counts).filter(|_| mean > 0.0)?;
    let is_steady = is_stationary(&counts, THROUGHPUT_SHARE);
    is_steady.then(|| ends.map(|end| (end / mean * rate_per_s).max(0.0)))
}

/// The design effect of correlation on the response times of a step; `None` of other targets, and
/// where the response times of the step drift or jump, so that its percentiles may not be bounded.
pub(super) fn step_effect(measured: &TargetMeasured, window: Nanos) -> Option<f64> {
    let series = &measured.step.as_ref()?.series;
    let means = series.means_ns(0..series.whole_slots(window));
    is_stationary(&means, RESPONSE_SHARE).then(|| design_effect(series, &measured.response))
}
