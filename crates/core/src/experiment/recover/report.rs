//! Conclusion of `knee recover` in a report.

use serde::{Deserialize, Serialize};

/// Whether a service comes back after an overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecoveryVerdict {
    /// Goodput and p99 are back within the bounds of the time before, for good.
    Recovered,
    /// It still fails, and its queue drains.
    Recovering,
    /// It serves nearly what it served before, but not as well.
    Degraded,
    /// It still fails, at a load that it served before: a metastable failure.
    Stuck,
    /// It serves nothing, and connections are refused.
    Crashed,
}

impl RecoveryVerdict {
    /// Whether the service neither came back nor was about to.
    pub fn is_down(self) -> bool {
        !matches!(self, RecoveryVerdict::Recovered | RecoveryVerdict::Recovering)
    }

    /// Its name in sentences.
    pub fn word(self) -> &'static str {
        match self {
            RecoveryVerdict::Recovered => "recovered",
            RecoveryVerdict::Recovering => "recovering",
            RecoveryVerdict::Degraded => "degraded",
            RecoveryVerdict::Stuck => "stuck",
            RecoveryVerdict::Crashed => "crashed",
        }
    }
}

/// Conclusion of `knee recover`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoverConclusion {
    /// Whether it came back; `None` where that is not known, or the service did not carry the base
    /// load before the trigger.
    pub verdict: Option<RecoveryVerdict>,
    /// Time from the end of the trigger until it was back; `None` where it was not.
    pub recovery_ns: Option<u64>,
    /// The service before the trigger.
    pub base: RecoverPhase,
    /// The service since it was back; where it was not, in the last quarter of the time after the
    /// trigger.
    pub after: RecoverPhase,
    /// How long its queue is at the end; `None` where there was none, or that was not measured.
    #[serde(default)]
    pub queue: Option<RecoverQueue>,
    /// Why the verdict rests on goodput and not on the queue; `None` where it rests on the queue,
    /// or the service was back.
    #[serde(default)]
    pub by_goodput: Option<String>,
    /// From this goodput on the service counts as back.
    pub goodput_at_least_per_s: f64,
    /// Up to this p99 of an interval the service counts as back.
    pub p99_at_most_ns: Option<u64>,
    /// Attempts per request in the same time as `after`; `None` without any.
    pub amplification: Option<f64>,
    /// Requests that failed for good from the begin of the trigger until the service was back, or
    /// until the end.
    pub failed_requests: u64,
    /// Requests per second before and after the trigger.
    pub rate_per_s: f64,
    /// Requests per second during the trigger.
    pub trigger_per_s: f64,
    /// Whether that load stayed to the end; recovery is then counted from its begin.
    #[serde(default)]
    pub trigger_stays: bool,
    /// Begin of the trigger, from the begin of the window.
    pub trigger_ns: u64,
    /// End of the trigger; its begin where it stayed.
    pub after_ns: u64,
    /// Index of the trial that this is about, from 0.
    #[serde(default)]
    pub decisive_trial: usize,
    /// The lowest rate found after which the service did not come back; `None` where none was
    /// looked for, or none does.
    pub smallest_trigger: Option<SmallestTrigger>,
    /// The shortest of the highest rate.
    pub shortest_trigger: Option<SmallestTrigger>,
    /// Triggers tried in the search; empty without one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerTried>,
    /// The same with one thing changed, each measured; empty where nothing was changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counterfactuals: Vec<Counterfactual>,
    /// Goodput at the same loads on the way up and on the way down; empty where nobody asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hysteresis: Vec<HysteresisStep>,
    /// Area between the two ways in percent of the one under the way up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hysteresis_percent: Option<f64>,
    /// The answer in a few sentences.
    pub answer: String,
}

/// From this number of attempts per request on retries are named as a cause.
const AMPLIFIED: f64 = 1.2;

impl RecoverConclusion {
    /// Attempts per request, where they are many enough to sustain an overload.
    pub(super) fn amplified(&self) -> Option<f64> {
        self.amplification.filter(|&times| times >= AMPLIFIED)
    }

    /// Goodput at the end in percent of the one before the trigger; of the load, where the trigger
    /// stayed.
    pub fn goodput_percent(&self) -> f64 {
        let whole = if self.trigger_stays { self.trigger_per_s } else { self.base.goodput_per_s };
        100.0 * self.after.goodput_per_s / whole.max(f64::MIN_POSITIVE)
    }
}

impl Counterfactual {
    /// Whether the service comes back with this change.
    pub(super) fn helps(&self) -> bool {
        self.verdict.is_some_and(|verdict| !verdict.is_down())
    }
}

/// The smallest trigger that was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SmallestTrigger {
    /// Requests per second.
    pub rate_per_s: f64,
    /// How long it lasts.
    pub duration_ns: u64,
}

/// A trigger that was tried.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TriggerTried {
    /// Requests per second.
    pub rate_per_s: f64,
    /// How long it lasted.
    pub duration_ns: u64,
    /// What became of the service; `None` where it did not carry the base load before.
    pub verdict: Option<RecoveryVerdict>,
    /// Time until it was back; `None` where it was not.
    pub recovery_ns: Option<u64>,
}

impl TriggerTried {
    /// Its rate and length.
    pub(super) fn load(&self) -> SmallestTrigger {
        SmallestTrigger { rate_per_s: self.rate_per_s, duration_ns: self.duration_ns }
    }
}

/// A load that was offered on the way up and again on the way down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HysteresisStep {
    /// Requests per second.
    pub offered_per_s: f64,
    /// Requests served per second on the way up; `None` where that was not measured.
    pub goodput_up_per_s: Option<f64>,
    /// The same on the way down.
    pub goodput_down_per_s: Option<f64>,
}

/// The queue of a service, as patient requests on connections of their own saw it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoverQueue {
    /// How long one waits, at least.
    pub wait_ns: u64,
    /// By how much that falls, in seconds per second; 0 where it does not, or that is not known.
    pub falls_s_per_s: f64,
    /// Time from the end of the trial until the queue is gone, if it goes on falling; `None` where
    /// it does not fall, or that is not known.
    pub back_in_ns: Option<u64>,
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
    /// Its queue at the end, where that drained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<RecoverQueue>,
}
