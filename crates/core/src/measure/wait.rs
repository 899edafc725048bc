//! How a generator's workers waited.

use super::Histogram;
use crate::polling::WaitModeChange;
use crate::spec::WaitPolicy;
use serde::{Deserialize, Serialize};

/// How workers waited for their deadlines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct WaitUse {
    /// What was asked for.
    pub policy: WaitPolicy,
    /// The share of the window in which a worker polled all the time by its own decision, in
    /// percent; mean over the workers.
    pub polling_percent: f64,
    /// The share of the window in which a worker had real-time priority, in percent; mean over the
    /// workers.
    #[serde(default)]
    pub realtime_percent: f64,
    /// The share of the window that a worker spent polling in vain, in percent; mean over the
    /// workers.
    pub polled_percent: f64,
    /// When which worker began to poll all the time, and when it slept again; in order.
    pub changes: Vec<WaitModeChange>,
    /// How late sleeps ended that no event cut short, from the begin of the load.
    pub lateness: Histogram,
}

impl WaitUse {
    /// Of two processes with so many workers each. The workers of the second are numbered after
    /// those of the first.
    pub(super) fn merge(self, workers: u32, other: WaitUse, others: u32) -> WaitUse {
        let all = f64::from((workers + others).max(1));
        let mean =
            |mine: f64, theirs: f64| (mine * f64::from(workers) + theirs * f64::from(others)) / all;
        let mut merged = WaitUse {
            policy: self.policy,
            polling_percent: mean(self.polling_percent, other.polling_percent),
            realtime_percent: mean(self.realtime_percent, other.realtime_percent),
            polled_percent: mean(self.polled_percent, other.polled_percent),
            changes: self.changes,
            lateness: self.lateness,
        };
        merged.lateness.merge(&other.lateness);
        merged
            .changes
            .extend(other.changes.into_iter().map(|change| WaitModeChange {
                worker: change.worker + workers,
                ..change
            }));
        merged
            .changes
            .sort_by_key(|change| (change.at, change.worker));
        merged
    }
}
