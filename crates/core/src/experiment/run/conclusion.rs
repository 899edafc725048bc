//! What a report asks of the conclusion of a run.

use super::report::RunConclusion;
use crate::experiment::answer::Answer;
use crate::trial::report::TrialReport;

impl Answer for RunConclusion {
    /// Each repeat has to meet the thresholds.
    fn judged<'a>(&self, trials: &'a [TrialReport]) -> Vec<&'a TrialReport> {
        trials.iter().collect()
    }

    fn cut_short(&mut self, trial: &TrialReport, _words: String) {
        self.throughput_per_s = trial.throughput_per_s;
        self.p50_ns = trial.response_time_ns.p50;
        self.p95_ns = trial.response_time_ns.p95;
        self.p99_ns = trial.response_time_ns.p99;
        self.error_percent = without_response_percent(trial);
    }
}

/// The share of operations that ended without a response, in percent: of a trial that did not end
/// its intervals alone tell.
fn without_response_percent(trial: &TrialReport) -> f64 {
    let failed: u64 = trial.intervals.iter().map(|i| i.errors).sum();
    match trial.completed + failed {
        0 => 0.0,
        ended => 100.0 * failed as f64 / ended as f64,
    }
}
