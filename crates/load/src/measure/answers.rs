//! Responses and failures in fine bins over the whole window, which show silences of a target.

use super::Window;
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Length of a bin at first. It doubles beyond [`BINS_MAX`] bins.
const BIN: Nanos = Nanos::from_millis(10);
/// The most bins: an hour. Beyond it neighbours are joined in pairs.
const BINS_MAX: usize = 360_000;

/// Counts of operations by the time at which they ended, in equal bins from the window's begin on.
/// Empty bins at the end may be missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ResponseBins {
    /// Length of a bin.
    pub bin: Nanos,
    /// Responses with a status below 400.
    pub good: Vec<u32>,
    /// Operations that ended otherwise.
    pub failed: Vec<u32>,
}

impl ResponseBins {
    /// Adds another's of the same window.
    pub fn merge(&mut self, other: ResponseBins) {
        self.add_later(Nanos::ZERO, other);
    }

    /// Adds those of a window that begins this much later.
    pub(super) fn add_later(&mut self, begin: Nanos, mut later: ResponseBins) {
        if later.bin == Nanos::ZERO {
            return;
        }
        if self.bin == Nanos::ZERO {
            self.bin = later.bin;
        }
        while self.bin < later.bin {
            self.coarsen();
        }
        while later.bin < self.bin {
            later.coarsen();
        }
        let offset = (begin.0 / self.bin.0) as usize;
        for (mine, theirs) in [(&mut self.good, &later.good), (&mut self.failed, &later.failed)] {
            mine.resize(mine.len().max(offset + theirs.len()), 0);
            let place = mine[offset..].iter_mut();
            place.zip(theirs).for_each(|(mine, theirs)| *mine += theirs);
        }
    }

    #[cold]
    fn coarsen(&mut self) {
        self.bin = Nanos(self.bin.0 * 2);
        for counts in [&mut self.good, &mut self.failed] {
            *counts = counts.chunks(2).map(|c| c.iter().sum()).collect();
        }
    }
}

/// Records [`ResponseBins`].
#[derive(Debug)]
pub(super) struct ResponseBinsRecorder {
    start: u64,
    /// The bin of the last answer, which most likely is that of the next one too.
    cursor: usize,
    cursor_start: u64,
    cursor_end: u64,
    answers: ResponseBins,
}

impl ResponseBinsRecorder {
    pub(super) fn new(window: Window) -> ResponseBinsRecorder {
        let bins = (window.length().0 / BIN.0 + 1).min(BINS_MAX as u64) as usize;
        let start = window.start.0;
        ResponseBinsRecorder {
            start,
            cursor: 0,
            cursor_start: start,
            cursor_end: start,
            answers: ResponseBins {
                bin: BIN,
                // Address space only: the memory is taken as it is written.
                good: Vec::with_capacity(bins),
                failed: Vec::with_capacity(bins),
            },
        }
    }

    /// Counts an operation that ended within the window.
    #[inline]
    pub(super) fn add(&mut self, completed: Nanos, is_good: bool) {
        if !(self.cursor_start <= completed.0 && completed.0 < self.cursor_end) {
            self.seek(completed.0);
        }
        let counts = if is_good { &mut self.answers.good } else { &mut self.answers.failed };
        if counts.len() <= self.cursor {
            counts.resize(self.cursor + 1, 0);
        }
        counts[self.cursor] = counts[self.cursor].saturating_add(1);
    }

    fn seek(&mut self, t: u64) {
        let since = t.saturating_sub(self.start);
        while since / self.answers.bin.0 >= BINS_MAX as u64 {
            self.answers.coarsen();
        }
        let bin = self.answers.bin.0;
        self.cursor = (since / bin) as usize;
        self.cursor_start = self.start + self.cursor as u64 * bin;
        self.cursor_end = self.cursor_start.saturating_add(bin);
    }

    pub(super) fn finish(self) -> ResponseBins {
        self.answers
    }
}
