//! Requests of users apart from the attempts that they take, where failed attempts are retried.

use super::{Completion, Window};
use crate::measure::Histogram;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// The requests offered in the window, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct AttemptsMeasured {
    /// Requests whose first attempt was intended in the window.
    pub offered: u64,
    /// Attempts of these requests that were started, the first ones included.
    pub attempted: u64,
    /// Those of the requests that were served, by whichever attempt.
    pub good: u64,
    /// Those that failed for good.
    pub failed: u64,
    /// Those of the failed that had retries left which the budget did not permit.
    pub over_budget: u64,
    /// Retries intended in the window.
    pub retries: u64,
    /// Retries started in the window.
    pub retries_started: u64,
    /// From the first intended time of a good request to its end.
    pub served: Histogram,
    /// Length of the slots of `slots`.
    pub slot: Nanos,
    /// What happened in each slot of the window.
    pub slots: Vec<AttemptsSlot>,
}

/// What happened in a part of the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttemptsSlot {
    /// Requests whose first attempt was intended.
    pub offered: u64,
    /// Attempts started.
    pub attempted: u64,
    /// Requests that were served.
    pub good: u64,
    /// Requests that failed for good.
    pub failed: u64,
}

impl AttemptsMeasured {
    /// Adds what was measured of the same window by another worker, exactly.
    pub fn merge(&mut self, other: AttemptsMeasured) {
        self.add_totals(&other);
        if self.slots.len() < other.slots.len() {
            self.slots.resize(other.slots.len(), AttemptsSlot::default());
        }
        for (mine, theirs) in self.slots.iter_mut().zip(other.slots) {
            mine.offered += theirs.offered;
            mine.attempted += theirs.attempted;
            mine.good += theirs.good;
            mine.failed += theirs.failed;
        }
        self.slot = self.slot.max(other.slot);
    }

    /// Adds what was measured of a later window of the same load, whose slots follow.
    pub fn append(&mut self, later: AttemptsMeasured) {
        self.add_totals(&later);
        self.slots.extend(later.slots);
        self.slot = self.slot.max(later.slot);
    }

    fn add_totals(&mut self, other: &AttemptsMeasured) {
        self.offered += other.offered;
        self.attempted += other.attempted;
        self.good += other.good;
        self.failed += other.failed;
        self.over_budget += other.over_budget;
        self.retries += other.retries;
        self.retries_started += other.retries_started;
        self.served.merge(&other.served);
    }
}

/// Records the requests of one worker. All memory is taken before the run.
#[derive(Debug)]
pub struct AttemptsRecorder {
    window: Window,
    totals: AttemptsMeasured,
}

/// Most slots: those of a day, at an interval of 1 s.
const SLOTS_MAX: u64 = 24 * 3_600;

impl AttemptsRecorder {
    /// For this window, in slots of this length. Of more than a day of slots of 1 s the last slot
    /// has all the rest.
    pub fn new(window: Window, slot: Nanos) -> AttemptsRecorder {
        let slot = slot.max(Nanos(1));
        let slots = window.length().0.div_ceil(slot.0).min(SLOTS_MAX) as usize;
        let slots = vec![AttemptsSlot::default(); slots];
        let served = Histogram::ready();
        let totals = AttemptsMeasured { served, slot, slots, ..AttemptsMeasured::default() };
        AttemptsRecorder { window, totals }
    }

    #[inline]
    fn slot(&mut self, at: Nanos) -> Option<&mut AttemptsSlot> {
        if !self.window.contains(at) {
            return None;
        }
        let last = self.totals.slots.len().checked_sub(1)?;
        let index = ((at - self.window.start).0 / self.totals.slot.0) as usize;
        self.totals.slots.get_mut(index.min(last))
    }

    /// Notes the first attempt of a request, which starts at `now`.
    #[inline]
    pub fn on_request(&mut self, intended: Nanos, now: Nanos) {
        if self.window.contains(intended) {
            self.totals.offered += 1;
            self.totals.attempted += 1;
        }
        if let Some(slot) = self.slot(intended) {
            slot.offered += 1;
        }
        if let Some(slot) = self.slot(now) {
            slot.attempted += 1;
        }
    }

    /// Notes a retry, which starts at `now`, of a request first intended at `first`.
    #[inline]
    pub fn on_retry(&mut self, first: Nanos, intended: Nanos, now: Nanos) {
        self.totals.attempted += u64::from(self.window.contains(first));
        self.totals.retries += u64::from(self.window.contains(intended));
        if let Some(slot) = self.slot(now) {
            slot.attempted += 1;
            self.totals.retries_started += 1;
        }
    }

    /// Notes that a request first intended at `first` was served by this attempt.
    #[inline]
    pub fn on_good(&mut self, first: Nanos, last: &Completion) {
        if self.window.contains(first) {
            self.totals.good += 1;
            self.totals.served.record(last.completed - first);
        }
        if let Some(slot) = self.slot(last.completed) {
            slot.good += 1;
        }
    }

    /// Notes that a request failed for good with this attempt; `is_over_budget`: as the budget
    /// permitted no further one.
    #[inline]
    pub fn on_failure(&mut self, first: Nanos, last: &Completion, is_over_budget: bool) {
        if self.window.contains(first) {
            self.totals.failed += 1;
            self.totals.over_budget += u64::from(is_over_budget);
        }
        if let Some(slot) = self.slot(last.completed) {
            slot.failed += 1;
        }
    }

    /// What was measured. A window that ended at `end`, before its time, has fewer slots.
    pub fn finish(mut self, end: Nanos) -> AttemptsMeasured {
        let length = end.min(self.window.end) - self.window.start;
        let slots = length.0.div_ceil(self.totals.slot.0) as usize;
        self.totals.slots.truncate(slots);
        self.totals
    }
}
