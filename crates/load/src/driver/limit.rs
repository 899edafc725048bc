//! A limit on operations per second, where operations start.
//!
//! A token bucket, kept as the one time of the generic cell rate algorithm (ITU-T I.371). Each
//! worker has an equal part of the limit, so workers share nothing.
//!
//! A load that the limit holds back measures the limit, not the target.

use super::{Action, AnyDriver, Driver};
use crate::measure::{Completion, Op, RateLimitUse};
use crate::time::Nanos;
use std::cell::Cell;
use std::collections::VecDeque;
use std::rc::Rc;

/// Operations that may start at once after a pause, as a time at the limit, …
const BURST_S: f64 = 0.1;
/// … and their least number, so that a worker that wakes late keeps the rate.
const BURST_MIN: u64 = 2;

const PICOS_PER_SECOND: f64 = 1e12;
const PICOS_PER_NANO: u64 = 1_000;

/// One worker's part of a limit. Clones share it.
///
/// In any time t no more than `per_s`·t operations start, and a burst: a tenth of a second's
/// operations, or 2 where that is more. The first burst has to be earned: a worker begins with
/// one operation.
#[derive(Clone, Debug)]
pub struct RateLimit(Rc<Cell<Bucket>>);

/// Times are in picoseconds, so that rounding the gap costs nothing.
#[derive(Clone, Copy, Debug)]
struct Bucket {
    gap: u64,
    /// Largest lead of `full_at` when an operation starts.
    ahead_max: u64,
    /// Time at which the bucket is full again.
    full_at: u64,
    used: RateLimitUse,
}

impl Bucket {
    fn opens_at(&self) -> Nanos {
        Nanos(self.full_at.saturating_sub(self.ahead_max).div_ceil(PICOS_PER_NANO))
    }
}

impl RateLimit {
    /// Part of one of `workers` that together may start `per_s` operations per second.
    pub fn part_of(per_s: f64, workers: u32) -> RateLimit {
        let own_per_s = per_s / f64::from(workers.max(1));
        let gap = (PICOS_PER_SECOND / own_per_s).ceil().max(1.0) as u64;
        let burst = ((own_per_s * BURST_S) as u64).max(BURST_MIN);
        let ahead_max = gap.saturating_mul(burst - 1);
        RateLimit(Rc::new(Cell::new(Bucket {
            gap,
            ahead_max,
            full_at: ahead_max,
            used: RateLimitUse { per_s: own_per_s, ..RateLimitUse::default() },
        })))
    }

    /// Whether an operation may start at `now`; if so, it counts.
    pub fn take(&self, now: Nanos) -> bool {
        let mut bucket = self.0.get();
        if bucket.opens_at() > now {
            return false;
        }
        let now = now.0.saturating_mul(PICOS_PER_NANO);
        bucket.full_at = bucket.full_at.max(now).saturating_add(bucket.gap);
        bucket.used.started += 1;
        self.0.set(bucket);
        true
    }

    /// Earliest start of the next operation.
    pub fn opens_at(&self) -> Nanos {
        self.0.get().opens_at()
    }

    /// Counts an operation that has to wait for the limit.
    pub fn note_held_back(&self) {
        let mut bucket = self.0.get();
        bucket.used.held_back += 1;
        self.0.set(bucket);
    }

    /// Operations started and held back so far.
    pub fn used(&self) -> RateLimitUse {
        self.0.get().used
    }
}

/// Queue of items that wait for a limit. Without a limit nothing waits.
#[derive(Debug)]
pub struct Gate<T> {
    limit: Option<RateLimit>,
    held: VecDeque<T>,
}

impl<T> Default for Gate<T> {
    fn default() -> Gate<T> {
        Gate::of(None)
    }
}

impl<T> Gate<T> {
    /// A gate that this limit opens.
    pub fn of(limit: Option<RateLimit>) -> Gate<T> {
        Gate { limit, held: VecDeque::new() }
    }

    /// The limit, if any.
    pub fn limit(&self) -> Option<&RateLimit> {
        self.limit.as_ref()
    }

    /// Returns the item if it may start at `now`. Otherwise holds it, behind those held before.
    #[inline]
    pub fn pass(&mut self, item: T, now: Nanos) -> Option<T> {
        let Some(limit) = &self.limit else {
            return Some(item);
        };
        if self.held.is_empty() && limit.take(now) {
            return Some(item);
        }
        limit.note_held_back();
        self.held.push_back(item);
        None
    }

    /// The first held item, if it may start at `now`.
    #[inline]
    pub fn release(&mut self, now: Nanos) -> Option<T> {
        if self.held.is_empty() {
            return None;
        }
        let is_open = self.limit.as_ref().is_none_or(|limit| limit.take(now));
        if is_open { self.held.pop_front() } else { None }
    }

    /// Time of the next [`Gate::release`]; [`Nanos::MAX`] if nothing is held.
    #[inline]
    pub fn next_due(&self) -> Nanos {
        match (&self.limit, self.held.is_empty()) {
            (Some(limit), false) => limit.opens_at(),
            _ => Nanos::MAX,
        }
    }

    /// Earliest `deadline` of the held items; [`Nanos::MAX`] without any.
    #[inline]
    pub fn next_deadline(&self, deadline: impl Fn(&T) -> Nanos) -> Nanos {
        self.held.iter().map(deadline).min().unwrap_or(Nanos::MAX)
    }

    /// Removes the first held item that `is_over`; it never starts.
    pub fn expire(&mut self, is_over: impl FnMut(&T) -> bool) -> Option<T> {
        let at = self.held.iter().position(is_over)?;
        self.held.remove(at)
    }

    /// All that is held: it never starts.
    pub fn give_up(&mut self) -> VecDeque<T> {
        std::mem::take(&mut self.held)
    }
}

/// A driver whose operations start within a limit.
///
/// An operation of a schedule keeps its intended time, so that its lateness shows. A user, and an
/// S-Client, waits for the limit as for a pause: the operation is intended when the limit lets it
/// start. What such loads hold back at the end of the window never starts.
#[derive(Debug)]
pub struct Limited {
    inner: AnyDriver,
    limit: RateLimit,
    /// An operation that waits, and whether it is a retry.
    held: Option<(Op, bool)>,
    /// End of the window, for loads without a schedule.
    end: Option<Nanos>,
}

impl Limited {
    pub(super) fn new(inner: AnyDriver, limit: RateLimit, end: Option<Nanos>) -> Limited {
        Limited { inner, limit, held: None, end }
    }

    /// The driver without its limit.
    pub(super) fn into_inner(self) -> AnyDriver {
        self.inner
    }
}

impl Driver for Limited {
    fn poll(&mut self, now: Nanos) -> Action {
        let was_held = self.held.is_some();
        let (mut op, is_retry) = match self.held.take() {
            Some(held) => held,
            None => match self.inner.poll(now) {
                Action::Start(op) => (op, false),
                Action::Retry(op) => (op, true),
                other => return other,
            },
        };
        let opens_at = self.limit.opens_at();
        let is_over = was_held && self.end.is_some_and(|end| now >= end);
        if !is_over && self.limit.take(now) {
            if self.end.is_some() {
                op.intended = op.intended.max(opens_at);
            }
            return if is_retry { Action::Retry(op) } else { Action::Start(op) };
        }
        self.held = Some((op, is_retry));
        if is_over {
            return Action::Done;
        }
        if !was_held {
            self.limit.note_held_back();
        }
        Action::WaitUntil(opens_at.min(self.end.unwrap_or(Nanos::MAX)))
    }

    fn on_established(&mut self, lane: u32, now: Nanos) {
        self.inner.on_established(lane, now);
    }

    fn on_completion(&mut self, completion: &Completion, now: Nanos) {
        self.inner.on_completion(completion, now);
    }
}

#[cfg(test)]
mod tests;
