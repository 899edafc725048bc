//! Throughput and response time in fine slots.

use super::Window;
use super::heat::{HeatCounts, HeatReport};
use super::sums::add_each;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Fine, equal slots over the window: between 200 and 400 of them in windows longer than 400 ms.
/// Shorter windows have slots of 1 to 2 ms. The last slot is cut by the window's end where that
/// ended early: see [`Series::whole_slots`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Length of one slot.
    pub slot: Nanos,
    /// Operations completed with a response per slot. In a closed loop an operation that spans
    /// several slots is credited to each in proportion to the time it spent there. So operations
    /// straddling a boundary bias nothing. One that an interruption cut off counts for the part
    /// that its age makes of the mean. In an open loop an operation counts where it completed.
    pub completed: Vec<f64>,
    /// Sum of the response times, in nanoseconds, of the operations that completed in the slot.
    /// They ended with a response, or by timeout with the time they had waited.
    pub response_sum_ns: Vec<f64>,
    /// Number of those operations.
    pub response_count: Vec<u64>,
    /// The operations of each slot by response time.
    #[serde(default)]
    pub heat: HeatCounts,
}

impl Series {
    /// The number of slots that a window of this length fills: what lies beyond them is not to be
    /// compared with them.
    pub fn whole_slots(&self, window: Nanos) -> usize {
        match self.slot {
            Nanos::ZERO => 0,
            slot => self.completed.len().min((window.0 / slot.0) as usize),
        }
    }

    /// How many operations took how long when; `None` where nothing completed.
    pub fn heat_report(&self) -> Option<HeatReport> {
        self.heat.report(self.slot)
    }

    /// The mean response time, in nanoseconds, in each of these slots in which any operation ended.
    pub fn means_ns(&self, slots: impl Iterator<Item = usize>) -> Vec<f64> {
        let pairs = slots.map(|slot| (self.response_sum_ns[slot], self.response_count[slot]));
        pairs.filter(|&(_, count)| count > 0).map(|(sum, count)| sum / count as f64).collect()
    }

    /// Adds another's, slot by slot; where the slots differ, the finer ones are joined in pairs
    /// until they agree. Both must come from recorders of the same window.
    pub fn merge(&mut self, mut other: Series) {
        if self.completed.is_empty() {
            *self = other;
            return;
        }
        if other.completed.is_empty() {
            return;
        }
        self.align(&mut other);
        debug_assert_eq!(self.slot, other.slot, "series of different windows");
        add_each(&mut self.completed, &other.completed);
        add_each(&mut self.response_sum_ns, &other.response_sum_ns);
        add_each(&mut self.response_count, &other.response_count);
        self.heat.merge(&other.heat);
    }

    /// Joins the finer slots of the two in pairs until they are not finer than the other's.
    pub(super) fn align(&mut self, other: &mut Series) {
        while self.slot < other.slot {
            self.coarsen();
        }
        while other.slot < self.slot {
            other.coarsen();
        }
    }

    /// Joins neighbouring slots in pairs.
    pub(super) fn coarsen(&mut self) {
        self.slot = Nanos(self.slot.0 * 2);
        self.completed = self.completed.chunks(2).map(|c| c.iter().sum()).collect();
        let sums = self.response_sum_ns.chunks(2);
        self.response_sum_ns = sums.map(|c| c.iter().sum()).collect();
        let counts = self.response_count.chunks(2);
        self.response_count = counts.map(|c| c.iter().sum()).collect();
        self.heat.coarsen();
    }

    fn resize(&mut self, len: usize) {
        self.completed.resize(len, 0.0);
        self.response_sum_ns.resize(len, 0.0);
        self.response_count.resize(len, 0);
        self.heat.resize(len);
    }
}

/// The most slots that are kept; beyond it neighbours are joined in pairs.
pub(super) const SLOTS_MAX: usize = 400;
/// Least number of slots of a whole window.
const SLOTS_MIN: u64 = 200;
/// No slot is finer than this.
const SLOT_MIN_NS: u64 = 1_000_000;

/// Records a [`Series`]. It starts with slots of 1 to 2 ms. Doubling them ends in a whole number of
/// slots if the window runs to its end. So a window of unknown length works too.
#[derive(Debug)]
pub(super) struct SeriesRecorder {
    start: u64,
    /// Beyond it nothing is credited.
    end: u64,
    slot: u64,
    /// The slot of the last completion, which most likely is that of the next one too.
    cursor: usize,
    cursor_start: u64,
    cursor_end: u64,
    series: Series,
}

impl SeriesRecorder {
    pub(super) fn new(window: Window) -> SeriesRecorder {
        let length = window.length().0;
        let (slot, slots) = first_slots(length);
        let start = window.start.0;
        let mut series = Series::default();
        series.resize(SLOTS_MAX);
        SeriesRecorder {
            start,
            end: start.saturating_add(slot.saturating_mul(slots)),
            slot,
            cursor: 0,
            cursor_start: start,
            cursor_end: start.saturating_add(slot),
            series,
        }
    }

    /// An operation's response time, which counts where it completed, within the window.
    #[inline]
    pub(super) fn add_response(&mut self, completed: Nanos, response: Nanos) {
        if let Some(slot) = self.slot_at(completed.0) {
            self.series.response_sum_ns[slot] += response.0 as f64;
            self.series.response_count[slot] += 1;
            self.series.heat.add(slot, response);
        }
    }

    /// A completion that counts as a whole where it falls, within the window.
    #[inline]
    pub(super) fn add_whole(&mut self, completed: Nanos) {
        if let Some(slot) = self.slot_at(completed.0) {
            self.series.completed[slot] += 1.0;
        }
    }

    /// A completion that is spread over [begin, completed] in proportion to time; what lies
    /// outside the window is dropped.
    #[inline]
    pub(super) fn add_spread(&mut self, begin: Nanos, completed: Nanos) {
        let (begin, completed) = (begin.0.min(completed.0), completed.0);
        if self.cursor_start <= begin && completed < self.cursor_end {
            self.series.completed[self.cursor] += 1.0;
        } else if begin == completed {
            if self.start <= completed {
                self.add_whole(Nanos(completed));
            }
        } else {
            self.spread(begin, completed, 1.0);
        }
    }

    /// An operation that began at `begin` and was in flight at `now`, when the trial was
    /// interrupted. It is credited with a part of a whole one, at most 1: its age over the mean
    /// response time so far. That is exact where all take the same time, and otherwise off by less
    /// than one operation. Leaving it out would be off by as much, but always to one side.
    #[cold]
    #[inline]
    pub(super) fn add_unfinished(&mut self, begin: Nanos, now: Nanos) {
        let count: u64 = self.series.response_count.iter().sum();
        let sum_ns: f64 = self.series.response_sum_ns.iter().sum();
        let age_ns = (now - begin).0 as f64;
        if count > 0 && age_ns > 0.0 {
            let mean_ns = sum_ns / count as f64;
            self.spread(begin.0, now.0, (age_ns / mean_ns).min(1.0));
        }
    }

    /// The series over the window, which ended at `end` or earlier.
    pub(super) fn finish(mut self, end: Nanos) -> Series {
        let length = end.0.min(self.end).saturating_sub(self.start);
        while length > self.slot.saturating_mul(SLOTS_MAX as u64) {
            self.grow();
        }
        self.series.slot = Nanos(self.slot);
        self.series.resize(length.div_ceil(self.slot) as usize);
        self.series
    }

    /// The slot of a time at or after the window's start; `None` beyond the last slot.
    #[inline]
    fn slot_at(&mut self, t: u64) -> Option<usize> {
        if self.cursor_start <= t && t < self.cursor_end {
            return Some(self.cursor);
        }
        self.seek(t)
    }

    fn seek(&mut self, t: u64) -> Option<usize> {
        if t < self.start || t >= self.end {
            return None;
        }
        while (t - self.start) / self.slot >= SLOTS_MAX as u64 {
            self.grow();
        }
        let index = (t - self.start) / self.slot;
        self.cursor = index as usize;
        self.cursor_start = self.start + index * self.slot;
        self.cursor_end = self.cursor_start.saturating_add(self.slot);
        Some(self.cursor)
    }

    /// Spreads `credit` operations over [begin, completed].
    fn spread(&mut self, begin: u64, completed: u64, credit: f64) {
        let (lo, hi) = (begin.max(self.start), completed.min(self.end));
        if lo >= hi || self.seek(hi - 1).is_none() {
            return;
        }
        let share = credit / (completed - begin) as f64;
        let mut slot = ((lo - self.start) / self.slot) as usize;
        let mut from = lo;
        while from < hi {
            let slot_end = self.start + (slot as u64 + 1) * self.slot;
            let to = hi.min(slot_end);
            self.series.completed[slot] += (to - from) as f64 * share;
            from = to;
            slot += 1;
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.series.coarsen();
        self.series.resize(SLOTS_MAX);
        self.slot *= 2;
        // The cursor's slot is gone: the empty range makes the next look-up seek.
        self.cursor_start = u64::MAX;
        self.cursor_end = 0;
    }
}

/// Length and number of the slots that a window of `length` ns starts with. There are 200·2^k
/// slots, with k as large as slots of at least 1 ms permit.
fn first_slots(length: u64) -> (u64, u64) {
    if length < SLOTS_MIN * SLOT_MIN_NS {
        return (SLOT_MIN_NS, length.div_ceil(SLOT_MIN_NS));
    }
    let doublings = (length / (SLOTS_MIN * SLOT_MIN_NS)).ilog2();
    let slots = SLOTS_MIN << doublings;
    (length / slots, slots)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_means_of_slots_leave_out_those_in_which_nothing_ended() {
        let series = Series {
            slot: Nanos(10),
            completed: vec![0.0; 4],
            response_sum_ns: vec![6.0, 0.0, 5.0, 9.0],
            response_count: vec![2, 0, 1, 3],
            ..Series::default()
        };
        assert_eq!(series.means_ns(0..4), [3.0, 5.0, 3.0]);
        assert_eq!(series.means_ns(1..series.whole_slots(Nanos(35))), [5.0]);
        assert_eq!(series.means_ns(4..4), [0.0; 0]);
    }
}
