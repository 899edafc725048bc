//! Messages of a request that leave one after the other, each at a time of its own.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// The messages that an operation sends over its open stream. Message `k` is intended at the
/// operation's intended start + `k` times the time between two messages.
///
/// The body of the request has the different messages, one behind the other. They are sent in this
/// order, from the first one again after the last, until [`TimedMessages::count`] have left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimedMessages {
    /// Where each message ends in the body: ascending, at least one, none of them zero.
    ends: Vec<u32>,
    /// Messages of an operation, at least 1.
    count: u32,
    /// Time between two intended times; zero: all leave together.
    every: Nanos,
    /// Whether the target may answer each message with one of its own.
    is_answered: bool,
}

impl TimedMessages {
    /// Messages of a body that end at `ends`. `None` without any, or where one has no bytes.
    pub fn new(
        ends: Vec<u32>,
        count: u32,
        every: Nanos,
        is_answered: bool,
    ) -> Option<TimedMessages> {
        let mut pairs = std::iter::once(&0).chain(&ends).zip(&ends);
        let is_valid = count > 0 && !ends.is_empty() && pairs.all(|(from, to)| from < to);
        is_valid.then_some(TimedMessages { ends, count, every, is_answered })
    }

    /// Messages of an operation, at least 1.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Whether the target may answer each message with one of its own.
    pub fn is_answered(&self) -> bool {
        self.is_answered
    }

    /// The bytes of message number `k` in the body.
    pub fn range(&self, k: u32) -> Range<usize> {
        let place = k as usize % self.ends.len();
        let from = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        from as usize..self.ends[place] as usize
    }

    /// The intended time of message number `k` of an operation.
    pub fn due(&self, operation_intended: Nanos, k: u32) -> Nanos {
        Nanos(operation_intended.0.saturating_add(self.every.0.saturating_mul(u64::from(k))))
    }

    /// The time from an operation's intended start to its last message.
    pub fn last_due(&self) -> Nanos {
        self.due(Nanos::ZERO, self.count - 1)
    }

    /// Bytes of all messages of an operation.
    pub fn bytes(&self) -> u64 {
        let whole = u64::from(self.ends.last().copied().unwrap_or(0));
        let different = self.ends.len() as u32;
        let rest = self.count % different;
        let rest_bytes = rest.checked_sub(1).map_or(0, |last| self.range(last).end as u64);
        u64::from(self.count / different) * whole + rest_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_take_turns_and_keep_their_times() {
        let every = Nanos::from_millis(10);
        let timed = TimedMessages::new(vec![3, 10, 11], 5, every, true).unwrap();
        let ranges: Vec<_> = (0..5).map(|k| timed.range(k)).collect();
        assert_eq!(ranges, [0..3, 3..10, 10..11, 0..3, 3..10]);
        assert_eq!(timed.bytes(), ranges.iter().map(|range| range.len() as u64).sum::<u64>());
        assert_eq!(timed.due(Nanos::from_secs(1), 3), Nanos::from_millis(1030));
        assert_eq!(timed.last_due(), Nanos::from_millis(40));
        assert_eq!(timed.due(Nanos::MAX, 3), Nanos::MAX);
    }

    #[test]
    fn nothing_is_not_sent() {
        for (ends, count) in [(vec![], 1), (vec![0], 1), (vec![2, 2], 1), (vec![3, 2], 1)] {
            assert_eq!(TimedMessages::new(ends, count, Nanos::ZERO, false), None);
        }
        assert_eq!(TimedMessages::new(vec![1], 0, Nanos::ZERO, false), None);
    }
}
