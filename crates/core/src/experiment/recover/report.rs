//! Conclusion of `knee recover` in a report.

use serde::{Deserialize, Serialize};

/// Whether a service comes back after an overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryVerdict {
    /// Goodput and p99 are back within the bounds of the time before, for good.
    Recovered,
    /// It serves nearly what it served before, but not as well.
    Degraded,
    /// It still fails, at a load that it served before: a metastable failure.
    Stuck,
    /// It serves nothing, and connections are refused.
    Crashed,
}

impl RecoveryVerdict {
    /// Its name in sentences.
    pub fn word(self) -> &'static str {
        match self {
            RecoveryVerdict::Recovered => "recovered",
            RecoveryVerdict::Degraded => "degraded",
            RecoveryVerdict::Stuck => "stuck",
            RecoveryVerdict::Crashed => "crashed",
        }
    }
}

/// Conclusion of `knee recover`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoverConclusion {
    /// Whether it came back; `None` where that was not measured, or the service did not carry the
    /// base load before the trigger.
    pub verdict: Option<RecoveryVerdict>,
    /// Time from the end of the trigger until it was back; `None` where it was not.
    pub recovery_ns: Option<u64>,
    /// The service before the trigger.
    pub base: RecoverPhase,
    /// The service in the last quarter of the time after it.
    pub after: RecoverPhase,
    /// From this goodput on the service counts as back.
    pub goodput_at_least_per_s: f64,
    /// Up to this p99 of an interval the service counts as back.
    pub p99_at_most_ns: Option<u64>,
    /// Attempts per request in the last quarter of the time after the trigger; `None` without any.
    pub amplification: Option<f64>,
    /// Requests that failed for good from the begin of the trigger until the service was back, or
    /// until the end.
    pub failed_requests: u64,
    /// Requests per second before and after the trigger.
    pub rate_per_s: f64,
    /// Requests per second during the trigger.
    pub trigger_per_s: f64,
    /// Begin of the trigger, from the begin of the window.
    pub trigger_ns: u64,
    /// End of the trigger.
    pub after_ns: u64,
    /// The same with one thing changed, each measured; empty where nothing was changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counterfactuals: Vec<Counterfactual>,
    /// The answer in a sentence or two.
    pub answer: String,
}

/// The service in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoverPhase {
    /// Requests served per second.
    pub goodput_per_s: f64,
    /// Median of the intervals' p99; `None` where nothing ended.
    pub p99_ns: Option<u64>,
}

/// A trial with one thing changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Counterfactual {
    /// What was changed, such as `without retries`.
    pub change: String,
    /// What became of the service; `None` where it did not carry the base load.
    pub verdict: Option<RecoveryVerdict>,
    /// Time until it was back; `None` where it was not.
    pub recovery_ns: Option<u64>,
}
