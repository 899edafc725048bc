//! Short trials of one load that become one trial: the slices of a level of a sweep.

use crate::trial::assess::assess;
use crate::trial::report::TrialReport;
use crate::trial::silence::{longest_silence, pauses_within};
use knee_load::measure::Trial;
use knee_load::time::Nanos;
use std::sync::Arc;

/// A trial as a slice of an experiment in rounds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Slice {
    /// Begin of the measured window, from the begin of the experiment.
    pub begin_ns: u64,
    /// The longest time within the window without a good response, as times of the window.
    pub silence_ns: Option<[u64; 2]>,
    /// Pauses of the target that lie within the window, as times of the window.
    pub pauses_ns: Vec<[u64; 2]>,
    /// The trial itself, as JSON: a histogram needs 270 KB, and this a hundredth of it.
    raw: Option<Arc<[u8]>>,
}

impl Slice {
    /// The slice that a trial is, whose measured window began at this time of the experiment.
    pub fn of(trial: &Trial, begin: Nanos) -> Slice {
        Slice {
            begin_ns: begin.0,
            silence_ns: longest_silence(&trial.measurement),
            pauses_ns: pauses_within(trial),
            raw: serde_json::to_vec(trial).ok().map(Arc::from),
        }
    }

    /// A slice that began at this time, in s, with this silence within it.
    #[cfg(test)]
    pub fn at(begin_s: f64, silence_s: Option<[f64; 2]>) -> Slice {
        let ns = |s: f64| (s * 1e9) as u64;
        Slice {
            begin_ns: ns(begin_s),
            silence_ns: silence_s.map(|s| s.map(ns)),
            pauses_ns: silence_s.iter().map(|s| s.map(ns)).collect(),
            raw: None,
        }
    }

    fn trial(&self) -> Option<Trial> {
        serde_json::from_slice(self.raw.as_deref()?).ok()
    }
}

/// The trial that slices of one level make together, so that each of its figures is of the same
/// operations. `None` without any.
pub fn merged(slices: &[&TrialReport]) -> Option<TrialReport> {
    let trials = slices.iter().map(|t| t.slice().and_then(Slice::trial));
    let whole = trials.collect::<Option<Vec<Trial>>>().and_then(|trials| {
        let mut trials = trials.into_iter();
        let mut first = trials.next()?;
        trials.for_each(|later| first.append(later));
        Some(assess(&first))
    });
    // Slices of tests hold no trials.
    #[cfg(test)]
    let whole = whole.or_else(|| tests::pooled(slices));
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The 95 % interval of a mean throughput over these reports. Its standard error is the larger
    /// of what their own intervals imply and what the scatter between them shows.
    fn interval(slices: &[&TrialReport], mean: Option<f64>) -> Option<[f64; 2]> {
        let mean = mean?;
        let length: u64 = slices.iter().map(|t| t.duration_ns).sum();
        let (mut within, mut scatter) = (0.0, 0.0);
        for trial in slices {
            let weight = trial.duration_ns as f64 / length.max(1) as f64;
            let [low, high] = trial.throughput_ci95_per_s?;
            within += (weight * (high - low) / 2.0).powi(2);
            scatter += weight * (trial.throughput_per_s? - mean).powi(2);
        }
        let between = scatter / (slices.len() as f64 - 1.0).max(1.0);
        let half = within.sqrt().max(1.96 * between.sqrt());
        Some([mean - half, mean + half])
    }

    /// The report in the middle by throughput, with the throughput and the counts of all.
    pub(super) fn pooled(slices: &[&TrialReport]) -> Option<TrialReport> {
        let mut sorted = slices.to_vec();
        sorted.sort_by(|a, b| a.successes_per_s().total_cmp(&b.successes_per_s()));
        let mut middle = (*sorted.get(slices.len() / 2)?).clone();
        let length: u64 = slices.iter().map(|t| t.duration_ns).sum();
        let mean = |of: fn(&TrialReport) -> Option<f64>| {
            let sum = slices
                .iter()
                .map(|t| of(t).map(|x| x * t.duration_ns as f64))
                .sum::<Option<f64>>()?;
            Some(sum / length.max(1) as f64)
        };
        middle.throughput_per_s = mean(|t| t.throughput_at_least_per_s().or(Some(0.0)));
        middle.goodput_per_s = mean(|t| t.goodput_at_least_per_s().or(Some(0.0)));
        middle.throughput_is = Default::default();
        middle.throughput_ci95_per_s = interval(slices, middle.throughput_per_s);
        middle.duration_ns = length;
        middle.set_slice(None);
        for other in &sorted {
            if !std::ptr::eq(*other, sorted[slices.len() / 2]) {
                middle.outcomes.merge(&other.outcomes);
            }
        }
        middle.attempted = middle.outcomes.total();
        middle.completed = middle.outcomes.responses();
        Some(middle)
    }
}
