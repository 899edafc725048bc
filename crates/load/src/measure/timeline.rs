//! What began and what ended, in fine bins over the whole trial. It shows when work waited and
//! nothing completed.

use super::{Completion, Outcome, Window};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Length of a bin in trials of up to [`BINS_MAX`] of them: six minutes.
const BIN: Nanos = Nanos::from_millis(1);
/// The most bins. Beyond it neighbours are joined in pairs.
const BINS_MAX: u64 = 360_000;
/// The longest bin at first. A window may end far beyond what it will last.
const FIRST_BIN_MAX: Nanos = Nanos::from_millis(16);
/// An operation shorter than this waits for nothing that others are spared.
const LONG: Nanos = Nanos::from_millis(100);
/// Time from one note of what began and came back to the next, at first, …
const NOTE_EVERY: Nanos = Nanos::from_millis(10);
/// … and the most notes. Beyond it every second one goes.
const NOTES_MAX: usize = 1 << 16;
/// The least delay of a worker that is kept with its time, …
const STALL: Nanos = Nanos::from_millis(20);
/// … and the most delays that are kept.
const STALLS_MAX: usize = 4_096;

/// Counts of operations by the times at which they began and ended, in equal bins from the
/// beginning of the run to its last byte: warm-up, measured window and the wait for what was under
/// way at its end. Empty bins at the end may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Timeline {
    /// Length of a bin; zero where nothing was recorded.
    pub bin: Nanos,
    /// The latest time at which an operation ended, or was still under way.
    pub end: Nanos,
    /// Operations that began, each when it had a connection. One that is overtaken counts where it
    /// ended: it waited for something of its own, while the target went on. So one that began in
    /// the second half of its time came back clearly before it. After a stop of the target all come
    /// back at once, in any order.
    pub started: Vec<u32>,
    /// Responses with a status below 400.
    pub good: Vec<u32>,
    /// Operations that ended otherwise. Those that never ended are not among them.
    pub failed: Vec<u32>,
    /// Messages of streams that came.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<u32>,
    /// Delays of each worker that had operations, as begin and end, in the order of their ends.
    pub stalls: Vec<Vec<[Nanos; 2]>>,
}

impl Timeline {
    /// Adds another's of the same run, exactly.
    pub fn merge(&mut self, mut other: Timeline) {
        if other.bin == Nanos::ZERO {
            return;
        }
        if self.bin == Nanos::ZERO {
            self.bin = other.bin;
        }
        while self.bin < other.bin {
            self.coarsen();
        }
        while other.bin < self.bin {
            other.coarsen();
        }
        for (mine, theirs) in self.counts().into_iter().zip(other.counts()) {
            mine.resize(mine.len().max(theirs.len()), 0);
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine += *theirs);
        }
        self.end = self.end.max(other.end);
        self.stalls.append(&mut other.stalls);
    }

    fn counts(&mut self) -> [&mut Vec<u32>; 4] {
        [&mut self.started, &mut self.good, &mut self.failed, &mut self.messages]
    }

    #[cold]
    fn coarsen(&mut self) {
        self.bin = Nanos(self.bin.0 * 2);
        for counts in self.counts() {
            *counts = counts.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
    }
}

/// Records a worker's [`Timeline`].
#[derive(Debug)]
pub(super) struct TimelineRecorder {
    began: Cursor,
    ended: Cursor,
    stalls: Vec<[Nanos; 2]>,
    /// The latest begin of an operation with a good response, …
    good_began: Nanos,
    /// … and what it was at earlier times, ascending: pairs of time and begin.
    notes: Vec<[Nanos; 2]>,
    note_every: Nanos,
    timeline: Timeline,
}

/// The bin of the last operation, which most likely is that of the next one too.
#[derive(Clone, Copy, Debug, Default)]
struct Cursor {
    bin: usize,
    start: u64,
    end: u64,
}

impl TimelineRecorder {
    pub(super) fn new(window: Window) -> TimelineRecorder {
        let mut bin = BIN;
        while bin < FIRST_BIN_MAX && window.end.0 / bin.0 > BINS_MAX {
            bin = Nanos(bin.0 * 2);
        }
        let room = (window.end.0 / bin.0 + 1).min(BINS_MAX) as usize;
        // Address space only: the memory is taken as it is written.
        let counts = || Vec::with_capacity(room);
        TimelineRecorder {
            began: Cursor::default(),
            ended: Cursor::default(),
            stalls: Vec::new(),
            good_began: Nanos::ZERO,
            notes: Vec::with_capacity(NOTES_MAX),
            note_every: NOTE_EVERY,
            timeline: Timeline {
                bin,
                started: counts(),
                good: counts(),
                failed: counts(),
                ..Timeline::default()
            },
        }
    }

    /// Counts an operation that ended or is cut off. Its begin is counted with it, so that the hot
    /// loop has one place less to write to.
    #[inline]
    pub(super) fn add(&mut self, completion: &Completion) {
        // While it waits for a free connection, others are under way.
        let Completion { placed: started, completed, outcome, .. } = *completion;
        self.timeline.end = self.timeline.end.max(completed);
        let ended = self.seek(completed, |recorder| &mut recorder.ended);
        let life = completed - started;
        let before = Nanos((life.0 / 5).max(LONG.0 / 2));
        let is_overtaken =
            life >= LONG && self.good_began_by(completed - before) > started + Nanos(life.0 / 2);
        let began = if is_overtaken { completed } else { started.min(completed) };
        let began = self.seek(began, |recorder| &mut recorder.began);
        count(&mut self.timeline.started, began);
        if outcome.is_good() {
            self.good_began = self.good_began.max(started);
            if self.notes.last().is_none_or(|[at, _]| *at + self.note_every <= completed) {
                self.note_good(completed);
            }
            count(&mut self.timeline.good, ended);
        } else if outcome != Outcome::InFlight {
            count(&mut self.timeline.failed, ended);
        }
    }

    #[cold]
    fn note_good(&mut self, completed: Nanos) {
        if self.notes.len() == NOTES_MAX {
            let mut number = 0;
            self.notes.retain(|_| {
                number += 1;
                number % 2 == 0
            });
            self.note_every = Nanos(self.note_every.0 * 2);
        }
        self.notes.push([completed, self.good_began]);
    }

    /// The latest begin of the operations whose good responses had come by this time.
    fn good_began_by(&self, at: Nanos) -> Nanos {
        let noted = self.notes.partition_point(|[noted, _]| *noted <= at);
        noted.checked_sub(1).map_or(Nanos::ZERO, |last| self.notes[last][1])
    }

    /// Counts a message of a stream.
    #[inline]
    pub(super) fn add_message(&mut self, at: Nanos) {
        self.timeline.end = self.timeline.end.max(at);
        let bin = self.seek(at, |recorder| &mut recorder.ended);
        count(&mut self.timeline.messages, bin);
    }

    /// Notes that the worker was late: it should have acted at `from`, and did at `until`. Delays
    /// that touch are one.
    #[inline]
    pub(super) fn add_stall(&mut self, from: Nanos, until: Nanos) {
        if until - from >= STALL {
            self.keep_stall(from, until);
        }
    }

    #[cold]
    fn keep_stall(&mut self, from: Nanos, until: Nanos) {
        if let Some([begin, end]) = self.stalls.last_mut().filter(|last| from <= last[1]) {
            (*begin, *end) = (from.min(*begin), until.max(*end));
        } else if self.stalls.len() < STALLS_MAX {
            self.stalls.push([from, until]);
        }
    }

    /// The bin of a time, by the cursor for times of this kind.
    #[inline]
    fn seek(&mut self, t: Nanos, cursor: fn(&mut TimelineRecorder) -> &mut Cursor) -> usize {
        let at = cursor(self);
        if at.start <= t.0 && t.0 < at.end {
            return at.bin;
        }
        if t.0 / self.timeline.bin.0 >= BINS_MAX {
            while t.0 / self.timeline.bin.0 >= BINS_MAX {
                self.timeline.coarsen();
            }
            (self.began, self.ended) = (Cursor::default(), Cursor::default());
        }
        let length = self.timeline.bin.0;
        let bin = t.0 / length;
        let start = bin * length;
        *cursor(self) = Cursor { bin: bin as usize, start, end: start + length };
        bin as usize
    }

    pub(super) fn finish(mut self) -> Timeline {
        if !self.timeline.started.is_empty() {
            self.timeline.stalls.push(self.stalls);
        }
        self.timeline
    }
}

#[inline]
fn count(counts: &mut Vec<u32>, bin: usize) {
    if counts.len() <= bin {
        counts.resize(bin + 1, 0);
    }
    counts[bin] = counts[bin].saturating_add(1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Op;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    fn recorder() -> TimelineRecorder {
        TimelineRecorder::new(Window { start: MS(500), end: MS(1_000) })
    }

    fn ended(from: u64, until: u64, outcome: Outcome) -> Completion {
        let op = Op { intended: MS(from), lane: 0 };
        Completion::at_once(op, MS(until), outcome).exchanged(MS(from), MS(from))
    }

    #[test]
    fn what_began_and_ended_is_counted_outside_the_window_too() {
        let mut recorder = recorder();
        for (from, until, outcome) in [
            (0, 3, Outcome::Ok),
            (2, 3, Outcome::Timeout),
            (1, 1_200, Outcome::Ok),
            (4, 1_300, Outcome::InFlight),
        ] {
            recorder.add(&ended(from, until, outcome));
        }
        recorder.add_message(MS(4));
        let timeline = recorder.finish();
        assert_eq!((timeline.bin, timeline.end), (MS(1), MS(1_300)));
        assert_eq!(timeline.started, [1, 1, 1, 0, 1]);
        assert_eq!((timeline.good[3], timeline.good[1_200]), (1, 1));
        assert_eq!(timeline.failed, [0, 0, 0, 1]);
        assert_eq!(timeline.messages, [0, 0, 0, 0, 1]);
    }

    #[test]
    fn timelines_of_different_bins_add_up() {
        let (mut long, mut short) = (recorder(), recorder());
        long.add(&ended(5, BINS_MAX + 7, Outcome::Ok));
        long.add(&ended(5, 8, Outcome::Ok));
        short.add(&ended(5, 8, Outcome::Ok));
        let (long, short) = (long.finish(), short.finish());
        assert_eq!((long.bin, short.bin), (MS(2), MS(1)));
        let mut sum = short.clone();
        sum.merge(long.clone());
        let mut other_way = long;
        other_way.merge(short);
        assert_eq!(sum, other_way);
        assert_eq!((sum.started[2], sum.good[4], sum.stalls.len()), (3, 2, 2));
        assert_eq!(sum.good[(BINS_MAX as usize + 7) / 2], 1);
    }

    #[test]
    fn an_overtaken_operation_waits_for_nothing_of_the_target() {
        let mut recorder = recorder();
        recorder.add(&ended(90, 91, Outcome::Ok));
        recorder.add(&ended(0, 200, Outcome::Timeout));
        recorder.add(&ended(150, 151, Outcome::Ok));
        recorder.add(&ended(0, 201, Outcome::Timeout));
        let timeline = recorder.finish();
        assert_eq!((timeline.started[0], timeline.started[201]), (1, 1));
    }

    #[test]
    fn what_a_stop_held_up_began_when_it_did() {
        let mut recorder = recorder();
        for k in 0..50 {
            recorder.add(&ended(10 * k, 10 * k + 1, Outcome::Ok));
        }
        // From 500 ms on the target is stopped; at 1,000 ms the newest comes back first.
        for k in (50..100).rev() {
            recorder.add(&ended(10 * k, 1_000 + (99 - k), Outcome::Ok));
        }
        let timeline = recorder.finish();
        assert!((0..100).all(|k| timeline.started[10 * k] == 1));
    }

    #[test]
    fn delays_that_touch_are_one() {
        let mut recorder = recorder();
        for (from, until) in [(10, 29), (100, 200), (150, 210), (120, 205), (300, 330)] {
            recorder.add_stall(MS(from), MS(until));
        }
        recorder.add(&ended(0, 1, Outcome::Ok));
        let stalls = vec![[MS(100), MS(210)], [MS(300), MS(330)]];
        assert_eq!(recorder.finish().stalls, [stalls]);
    }
}
