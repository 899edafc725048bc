//! Slices of one level as one trial.

use super::assess::assess;
use super::report::TrialReport;
use super::slice::Slice;
use knee_load::measure::{Histogram, Trial};

/// The trial that slices of one level make together, so that each of its figures is of the same
/// operations. In response times each operation counts as often as its slice has weight, if weights
/// are given. `None` without any.
pub fn merged(slices: &[&TrialReport], weights: Option<&[f64]>) -> Option<TrialReport> {
    let trials = slices.iter().map(|t| t.slice().and_then(Slice::trial));
    let whole = trials.collect::<Option<Vec<Trial>>>().and_then(|trials| {
        let (mut served, mut failed) = <(Histogram, Histogram)>::default();
        for (trial, weight) in trials.iter().zip(weights.unwrap_or_default()) {
            let measured = &trial.measurement;
            served.merge(&measured.response.without(&measured.failed).scaled(*weight));
            failed.merge(&measured.failed.scaled(*weight));
        }
        let mut trials = trials.into_iter();
        let mut joined = trials.next()?;
        trials.for_each(|later| joined.append(later));
        let mut report = assess(&joined);
        if weights.is_some() {
            served.merge(&failed);
            (joined.measurement.response, joined.measurement.failed) = (served, failed);
            // The law is of operations that were counted, not of weighted ones.
            let law = report.http().and_then(|http| http.littles_law.clone());
            report = assess(&joined);
            report.set_littles_law(law);
        }
        Some(report)
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
        let mean = |figure: fn(&TrialReport) -> Option<f64>| {
            let sum = slices
                .iter()
                .map(|t| figure(t).map(|x| x * t.duration_ns as f64))
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
