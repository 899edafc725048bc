//! The slowest operations of a trial, one by one.

use super::{Completion, Outcome, Stage, known_keys};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Number of operations that are kept.
const KEPT: usize = 10;

/// One operation with all its times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowOperation {
    /// When it was intended, in nanoseconds from the begin of the run, the warm-up included.
    pub intended_ns: u64,
    /// Its response time.
    pub response_time_ns: u64,
    /// Its stages that took any time, in nanoseconds, by name. They sum to the response time.
    #[serde(deserialize_with = "known_keys")]
    pub stages_ns: BTreeMap<Stage, u64>,
    /// After its end, until the generator saw it.
    pub pick_up_ns: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// The status of its response; absent where none came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// The number of its target, from 0.
    pub target: u32,
    /// The name of its step, where operations are steps of sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// The number of its connection among those of its worker; absent where it had none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
}

impl SlowOperation {
    fn of(completion: &Completion) -> SlowOperation {
        let stages = Stage::all().zip(completion.stages());
        let carried = completion.connection != Completion::NO_CONNECTION;
        SlowOperation {
            intended_ns: completion.intended.0,
            response_time_ns: completion.response_time().0,
            stages_ns: stages
                .filter(|(_, length)| *length > Nanos::ZERO)
                .map(|(stage, length)| (stage, length.0))
                .collect(),
            pick_up_ns: completion.pick_up().0,
            outcome: completion.outcome,
            status: (completion.status > 0).then_some(completion.status),
            target: completion.target,
            step: None,
            connection: carried.then_some(completion.connection),
        }
    }
}

/// The slowest ten of the operations that it has seen, the slowest first.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Slowest(Vec<SlowOperation>);

impl Slowest {
    /// The operations, the slowest first.
    pub fn operations(&self) -> &[SlowOperation] {
        &self.0
    }

    /// Adds an operation if it is among the slowest.
    #[inline]
    pub(super) fn add(&mut self, completion: &Completion, threshold: &mut Nanos) {
        if completion.response_time() >= *threshold {
            *threshold = self.insert(completion);
        }
    }

    /// Returns the response time from which on an operation is among the slowest.
    #[cold]
    fn insert(&mut self, completion: &Completion) -> Nanos {
        self.0.push(SlowOperation::of(completion));
        self.keep_slowest();
        let is_full = self.0.len() == KEPT;
        let last = self.0.last().filter(|_| is_full);
        last.map_or(Nanos::ZERO, |slow| Nanos(slow.response_time_ns + 1))
    }

    /// Adds another's.
    pub fn merge(&mut self, other: Slowest) {
        self.0.extend(other.0);
        self.keep_slowest();
    }

    fn keep_slowest(&mut self) {
        let order = |slow: &SlowOperation| (Reverse(slow.response_time_ns), slow.intended_ns);
        self.0.sort_by_key(order);
        self.0.truncate(KEPT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Op;

    fn completion(index: u64, response: u64) -> Completion {
        let intended = Nanos(index);
        let op = Op { intended, lane: 0 };
        Completion::at_once(op, intended + Nanos(response), Outcome::Ok)
    }

    fn of(responses: impl IntoIterator<Item = u64>) -> Slowest {
        let (mut slowest, mut threshold) = (Slowest::default(), Nanos::ZERO);
        for (index, response) in responses.into_iter().enumerate() {
            slowest.add(&completion(index as u64, response), &mut threshold);
        }
        slowest
    }

    fn responses(slowest: &Slowest) -> Vec<u64> {
        let all = slowest.operations().iter();
        all.map(|slow| slow.response_time_ns).collect()
    }

    #[test]
    fn ten_are_kept_the_slowest_first_of_all_workers() {
        let (odd, even) = ((0..100).map(|k| 2 * k + 1), (0..100).map(|k| 200 - 2 * k));
        let (mut odd, even) = (of(odd), of(even));
        assert_eq!(responses(&even), [200, 198, 196, 194, 192, 190, 188, 186, 184, 182]);
        odd.merge(even);
        assert_eq!(responses(&odd), [200, 199, 198, 197, 196, 195, 194, 193, 192, 191]);
        assert_eq!(responses(&of([5, 7])), [7, 5]);
    }

    #[test]
    fn stages_sum_to_the_response_time() {
        let slow = &of([40]).0[0];
        assert_eq!(slow.stages_ns.values().sum::<u64>(), slow.response_time_ns);
        assert_eq!((slow.status, slow.connection), (None, None));
    }
}
