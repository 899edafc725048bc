//! Operations that left together because the generator was late, and what that may have added to
//! their response times.
//!
//! A late operation's own delay is started − intended. Its followers, which leave sooner after it
//! than intended, queue at the target behind each other. Delay every start of a first-in-first-out
//! server by at most Δ, and every end is later by at most Δ. An operation that found k others in
//! flight hands its delay on only while more than k are in flight: all workers of the target have
//! been busy since. So the time that is added to an operation is at most the largest delay that is
//! still handed on, its own included.
//!
//! A **backlog** is operations that leave together because the generator was late, and those after
//! them until no more are in flight than before. It adds at most its largest delay to each of them.

use crate::time::Nanos;
use std::collections::VecDeque;

/// A delay up to this is not handed on: it is far below what figures are bounded to.
const PROMPT: Nanos = Nanos::from_micros(5);

/// Changes that are kept for the operations that are still in flight. Beyond that, of two old ones
/// that follow each other the larger delay stands for both.
const KEPT: usize = 1_024;

/// A delay that is handed on.
#[derive(Clone, Copy, Debug)]
struct Delay {
    /// Operations in flight that the late one found.
    found: u64,
    /// The largest delay of this one and of those that found fewer.
    most: Nanos,
}

/// A change of the largest delay that is handed on.
#[derive(Clone, Copy, Debug)]
struct Change {
    from: Nanos,
    most: Nanos,
}

/// The backlogs of one worker.
#[derive(Debug, Default)]
pub(super) struct Backlogs {
    in_flight: u64,
    /// What is handed on now. Both fields ascend.
    delays: Vec<Delay>,
    /// What was when; times ascend.
    changes: VecDeque<Change>,
}

impl Backlogs {
    /// An operation starts at `now`, `late` after its intended time.
    #[inline]
    pub(super) fn on_start(&mut self, now: Nanos, late: Nanos) {
        let found = self.in_flight;
        self.in_flight += 1;
        if late > PROMPT || !self.delays.is_empty() {
            self.hand_on(now, Delay { found, most: late });
        }
    }

    fn hand_on(&mut self, now: Nanos, new: Delay) {
        let before = self.most();
        while self.delays.last().is_some_and(|delay| delay.found >= new.found) {
            self.delays.pop();
        }
        if new.most > self.most().max(PROMPT) {
            self.delays.push(new);
        }
        let most = self.most();
        if most != before {
            if self.changes.len() == KEPT {
                self.thin_out();
            }
            self.changes.push_back(Change { from: now, most });
        }
    }

    /// The largest delay that is handed on now.
    fn most(&self) -> Nanos {
        self.delays.last().map_or(Nanos::ZERO, |delay| delay.most)
    }

    /// Makes one change of two in the older half.
    #[cold]
    fn thin_out(&mut self) {
        let newer = self.changes.split_off(KEPT / 2);
        let older: Vec<Change> = self.changes.drain(..).collect();
        let pairs = older.chunks(2).map(|pair| Change {
            from: pair[0].from,
            most: pair.iter().map(|change| change.most).max().unwrap_or_default(),
        });
        self.changes = pairs.chain(newer).collect();
    }

    /// An operation that had started is over.
    #[inline]
    pub(super) fn on_end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The most that late starts of others added to an operation that started at `started`, beside
    /// its own delay `late`.
    #[inline]
    pub(super) fn added(&self, started: Nanos, late: Nanos) -> Nanos {
        match self.changes.back() {
            None => Nanos::ZERO,
            Some(last) if last.from <= started => last.most - late,
            Some(_) => {
                let after = self.changes.partition_point(|change| change.from <= started);
                let last = after.checked_sub(1).map(|at| self.changes[at].most);
                last.unwrap_or_default() - late
            }
        }
    }
}

#[cfg(test)]
mod tests;
