//! Operations that left together because the generator was late, and what that may have added to
//! their response times.
//!
//! A late operation's own delay is started − intended. Its followers, which leave sooner after it
//! than intended, queue at the target behind each other. Delay every start of a first-in-first-out
//! server by at most Δ, and every end is later by at most Δ. So the time that a backlog adds to an
//! operation is at most the largest delay of the backlog, its own delay included. A backlog ends
//! when no more operations are in flight than before it: the target's queue is as it was.

use crate::time::Nanos;
use std::collections::VecDeque;

/// A delay up to this makes no backlog: it is far below what figures are bounded to.
const PROMPT: Nanos = Nanos::from_micros(5);

/// Backlogs kept for the operations that are still in flight. Of an operation that is older than
/// all of them the largest delay so far counts.
const KEPT: usize = 256;

/// One backlog.
#[derive(Clone, Copy, Debug)]
struct Backlog {
    from: Nanos,
    /// [`Nanos::MAX`] while it lasts.
    until: Nanos,
    /// The largest delay in it.
    delay: Nanos,
}

/// The backlogs of one worker.
#[derive(Debug, Default)]
pub(super) struct Backlogs {
    kept: VecDeque<Backlog>,
    /// The end of the newest that is no longer kept, and the largest delay of those.
    forgotten: Option<(Nanos, Nanos)>,
    in_flight: u64,
    /// Operations in flight when the last one outside a backlog started.
    usual: u64,
}

impl Backlogs {
    /// An operation starts at `now`, `late` after its intended time.
    #[inline]
    pub(super) fn on_start(&mut self, now: Nanos, late: Nanos) {
        let before = self.in_flight;
        self.in_flight += 1;
        if let Some(last) = self.kept.back_mut()
            && last.until == Nanos::MAX
        {
            if before > self.usual {
                last.delay = last.delay.max(late);
                return;
            }
            last.until = now;
        }
        if late > PROMPT {
            self.begin(now, late);
        } else {
            self.usual = before;
        }
    }

    fn begin(&mut self, now: Nanos, late: Nanos) {
        if self.kept.len() == KEPT
            && let Some(oldest) = self.kept.pop_front()
        {
            let delay = self.forgotten.map_or(Nanos::ZERO, |(_, delay)| delay);
            self.forgotten = Some((oldest.until, delay.max(oldest.delay)));
        }
        self.kept.push_back(Backlog { from: now, until: Nanos::MAX, delay: late });
    }

    /// An operation that had started is over.
    #[inline]
    pub(super) fn on_end(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// The most that backlogs added to an operation that started at `started`, beside its own delay
    /// `late`.
    #[inline]
    pub(super) fn added(&self, started: Nanos, late: Nanos) -> Nanos {
        match self.kept.back() {
            None => Nanos::ZERO,
            Some(last) if last.until <= started => Nanos::ZERO,
            Some(_) => self.look_up(started) - late,
        }
    }

    #[cold]
    fn look_up(&self, started: Nanos) -> Nanos {
        let after = self.kept.partition_point(|b| b.from <= started);
        match after.checked_sub(1) {
            Some(at) if self.kept[at].until > started => self.kept[at].delay,
            Some(_) => Nanos::ZERO,
            None => match self.forgotten {
                Some((until, delay)) if until > started => delay,
                _ => Nanos::ZERO,
            },
        }
    }
}

#[cfg(test)]
mod tests;
