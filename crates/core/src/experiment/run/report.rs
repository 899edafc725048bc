//! What a single run answers.

use crate::experiment::answer::Answer;
use crate::trial::report::TrialReport;
use serde::{Deserialize, Serialize};

/// The answer of `knee run`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RunConclusion {
    /// Responses per second; `None` where not one came.
    pub throughput_per_s: Option<f64>,
    /// Operations asked for per second, where an open loop was not kept up with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asked_per_s: Option<f64>,
    /// Median response time; `None` where nothing was observed.
    pub p50_ns: Option<u64>,
    /// 95th percentile of response time, and the others: `None` where the observations do not
    /// tell it.
    #[serde(default)]
    pub p95_ns: Option<u64>,
    /// 99th percentile of response time.
    pub p99_ns: Option<u64>,
    /// Share of operations that did not end ok, in percent.
    pub error_percent: f64,
}

impl Answer for RunConclusion {
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
