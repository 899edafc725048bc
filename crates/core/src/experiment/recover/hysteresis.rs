//! Load up and down in steps: whether a service serves on the way down what it served on the way
//! up.

use super::report::HysteresisStep;
use super::{RecoverSpec, Trigger};
use crate::trial::report::TrialReport;
use knee_load::spec::Rate;
use knee_load::stats::sample::mean;

/// Steps on the way up.
const STEPS_UP: usize = 8;
/// From this share of the lowest load on it counts as served.
const CARRIED_SHARE: f64 = 0.9;
/// The lowest step, as a share of the base load.
const LOWEST_SHARE: f64 = 0.5;

/// The rates, up to the trigger and down again.
pub(super) fn steps_of(spec: &RecoverSpec) -> Vec<Rate> {
    let (Trigger::Load(most) | Trigger::Stays(most) | Trigger::Search(most)) = spec.trigger;
    let (low, high) = (LOWEST_SHARE * spec.rate.per_s(), most.per_s());
    let part = |index: usize| low + (high - low) * index as f64 / (STEPS_UP - 1) as f64;
    let up = (0..STEPS_UP).filter_map(|index| Rate::from_f64(part(index)));
    let up: Vec<Rate> = up.collect();
    let down: Vec<Rate> = up.iter().rev().skip(1).copied().collect();
    up.into_iter().chain(down).collect()
}

/// Goodput at each rate on both ways: the mean of the later half of a step.
pub(super) fn measured(spec: &RecoverSpec, trial: &TrialReport) -> Vec<HysteresisStep> {
    let (Some(requests), Some(length)) = (trial.requests(), spec.hysteresis) else {
        return Vec::new();
    };
    let rates = steps_of(spec);
    let goodput = |step: usize| {
        let begin = length.0 * step as u64;
        let (from, to) = (begin + length.0 / 2, begin + length.0);
        let within = requests.intervals.iter().filter(|i| i.start_ns >= from && i.end_ns <= to);
        let per_s: Vec<f64> = within.map(|i| i.per_s(i.good)).collect();
        (!per_s.is_empty()).then(|| mean(&per_s))
    };
    let up = rates.iter().take(STEPS_UP).enumerate();
    let rows = up.map(|(index, rate)| HysteresisStep {
        offered_per_s: rate.per_s(),
        goodput_up_per_s: goodput(index),
        // The highest step is the begin of the way down.
        goodput_down_per_s: goodput(2 * (STEPS_UP - 1) - index),
    });
    rows.collect()
}

/// Whether the lowest load was served before it rose: else the service had not rested.
pub(super) fn is_first_carried(steps: &[HysteresisStep]) -> bool {
    let first = steps.first().map(|step| (step.offered_per_s, step.goodput_up_per_s));
    !matches!(first, Some((offered, Some(good))) if good < CARRIED_SHARE * offered)
}

/// The area between the two ways in percent of the one under the way up; `None` of fewer than two
/// steps.
pub(super) fn area_percent(steps: &[HysteresisStep]) -> Option<f64> {
    let known = steps.iter().filter_map(|step| {
        Some((step.offered_per_s, step.goodput_up_per_s?, step.goodput_down_per_s?))
    });
    let known: Vec<(f64, f64, f64)> = known.collect();
    let mut areas = (0.0, 0.0);
    for pair in known.windows(2) {
        let [(from, up, down), (to, next_up, next_down)] = [pair[0], pair[1]];
        areas.0 += (to - from) * ((up - down) + (next_up - next_down)) / 2.0;
        areas.1 += (to - from) * (up + next_up) / 2.0;
    }
    (areas.1 > 0.0).then(|| 100.0 * areas.0 / areas.1)
}
