//! Throughput and response time in fine slots.

use super::Window;
use super::heat::{HeatCounts, HeatReport, SLOTS_MAX};
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
    /// Operations that completed with a response in each slot. Those of a closed loop that take
    /// long come in bunches: see [`super::Measurement::smoothed`].
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

    /// What completed per slot of this window, as means over times as long as a usual response,
    /// which begin with the slots and end within the window. Users who began together complete
    /// together, once in such a time, so that a window which cuts a bunch off at one end only would
    /// have it too often or not at all. Nothing but completions within the window counts: what
    /// waits at its end completes sooner than under the load, as nobody joins the queue any more.
    pub(super) fn smoothed(&self, window: Nanos, response: Nanos) -> Vec<f64> {
        let whole = &self.completed[..self.whole_slots(window)];
        let slots = whole.len() as f64;
        let length = (response.0 as f64 / self.slot.0 as f64).max(1.0).min(slots);
        let sums: Vec<f64> = whole.iter().fold(vec![0.0], |mut sums, n| {
            sums.push(sums[sums.len() - 1] + n);
            sums
        });
        let up_to = |at: f64| {
            let slot = at as usize;
            sums[slot] + (at - slot as f64) * whole.get(slot).unwrap_or(&0.0)
        };
        let begins = (0..whole.len()).map(|slot| slot as f64);
        let within = begins.take_while(|begin| begin + length <= slots);
        within.map(|begin| (up_to(begin + length) - up_to(begin)) / length).collect()
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

/// Least number of slots of a whole window.
const SLOTS_MIN: u64 = 200;
/// No slot is finer than this.
const SLOT_MIN_NS: u64 = 1_000_000;

/// Records a [`Series`]. It starts with slots of 1 to 2 ms. Doubling them ends in a whole number of
/// slots if the window runs to its end. So a window of unknown length works too. Where it can be,
/// the first slot is 1 ms, so that the slots of windows of different lengths can be joined.
#[derive(Debug)]
pub(super) struct SeriesRecorder {
    start: u64,
    /// Beyond it nothing counts.
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

    /// A completion, within the window.
    #[inline]
    pub(super) fn add_completed(&mut self, completed: Nanos) {
        if let Some(slot) = self.slot_at(completed.0) {
            self.series.completed[slot] += 1.0;
        }
    }

    /// The series over the window, which ended at `end` or earlier.
    pub(super) fn finish(mut self, end: Nanos) -> Series {
        let length = end.0.min(self.end).saturating_sub(self.start);
        while length > self.slot.saturating_mul(SLOTS_MAX as u64) {
            self.grow();
        }
        self.series.slot = Nanos(self.slot);
        let slots = length.div_ceil(self.slot) as usize;
        // What ends the window is part of it.
        if slots > 0 {
            let at_end: f64 = self.series.completed[slots..].iter().sum();
            self.series.completed[slots - 1] += at_end;
        }
        self.series.resize(slots);
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

/// Length and number of the slots that a window of `length` ns starts with: of 1 ms, where doubling
/// them until there are 200 to 400 fills the window. Otherwise there are 200·2^k slots, with k as
/// large as slots of at least 1 ms permit.
fn first_slots(length: u64) -> (u64, u64) {
    if length < SLOTS_MIN * SLOT_MIN_NS {
        return (SLOT_MIN_NS, length.div_ceil(SLOT_MIN_NS));
    }
    let doublings = (length / (SLOTS_MIN * SLOT_MIN_NS)).ilog2();
    if length.is_multiple_of(SLOT_MIN_NS << doublings) {
        return (SLOT_MIN_NS, length / SLOT_MIN_NS);
    }
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
