//! How much earlier than a deadline a sleep has to end.

use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Lengths of sleep are told apart by their power of two from 2^14 ns (16 µs) on: the longer a core
/// slept, the later it wakes.
const BUCKETS: usize = 13;

/// How long before a deadline a sleep has to end so that most deadlines are met: a margin for
/// sleeps of each length. Measured on the machine at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Margins([u64; BUCKETS]);

impl Margins {
    /// What is assumed before anything is known: an idle virtual core wakes 60 to 200 µs late.
    pub const UNKNOWN: Margins = Margins([120_000; BUCKETS]);

    /// The same margin for all lengths.
    pub fn of(margin: Nanos) -> Margins {
        Margins([margin.0; BUCKETS])
    }

    /// Which of the margins is for sleeps of this length.
    pub fn bucket(length: Nanos) -> usize {
        let log = (length.0 | 1).ilog2() as usize;
        log.saturating_sub(14).min(BUCKETS - 1)
    }

    /// How many there are.
    pub const COUNT: usize = BUCKETS;

    /// The shortest length of sleep that bucket number `bucket` is for, but for the first, which is
    /// for all shorter ones as well.
    pub fn length_min(bucket: usize) -> Nanos {
        Nanos(1 << (14 + bucket.min(BUCKETS - 1)))
    }

    /// The margin for sleeps of this length.
    pub fn at(&self, length: Nanos) -> Nanos {
        Nanos(self.0[Margins::bucket(length)])
    }

    /// All margins in nanoseconds, by bucket.
    pub fn by_bucket(&self) -> [u64; BUCKETS] {
        self.0
    }

    /// The margins from those by bucket, in nanoseconds.
    pub fn from_buckets(margins_ns: [u64; BUCKETS]) -> Margins {
        Margins(margins_ns)
    }
}
