//! One worker's part of a whole, and that of a process.

use serde::{Deserialize, Serialize};

/// The part of one worker among several: number `index` (from 0) of `of`.
///
/// What is counted (operations, users) is dealt out in turn, as cards are. Worker `i` takes the
/// items k ≡ i (mod `of`), so the parts of all workers are exactly the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Which worker, from 0, below `of`.
    pub index: u32,
    /// How many workers, at least 1.
    pub of: u32,
}

impl Share {
    /// All of it: the only worker.
    pub const WHOLE: Share = Share { index: 0, of: 1 };

    /// How many of `total` items are this worker's; over all workers they sum to `total`.
    pub fn part(self, total: u64) -> u64 {
        total / u64::from(self.of) + u64::from(total % u64::from(self.of) > u64::from(self.index))
    }
}

/// The workers of one process, of all workers that make a trial together: the share of an agent.
///
/// Workers of several processes are numbered through, so that their shares are those that one
/// process of as many workers would have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerRange {
    /// The number of its first worker.
    pub first: u32,
    /// How many workers it has.
    pub workers: u32,
    /// How many there are in all.
    pub of: u32,
}

impl WorkerRange {
    /// All of them in one process.
    pub fn whole(workers: u32) -> WorkerRange {
        WorkerRange { first: 0, workers, of: workers }
    }

    /// The workers of several processes. Each has as many as it offers. Where that is more than is
    /// `useful`, all have fewer, in proportion: one at least where that is possible, or else none.
    pub fn deal(offered: &[u32], useful: u32) -> Vec<WorkerRange> {
        let sum = |offered: &mut dyn Iterator<Item = u32>| offered.map(u64::from).sum::<u64>();
        let of = sum(&mut offered.iter().copied()).min(u64::from(useful));
        let here = offered.iter().filter(|&&workers| workers > 0).count() as u64;
        let each = u32::from(here <= of);
        let rest = || offered.iter().map(|workers| workers.saturating_sub(each));
        let (all, left) = (sum(&mut rest()), of - here * u64::from(each));
        let dealt = |sum: u64| (sum * left).checked_div(all).unwrap_or(0) as u32;
        let (mut sum, mut first) = (0, 0);
        let crews = offered.iter().zip(rest()).map(|(&workers, rest)| {
            let before = dealt(sum);
            sum += u64::from(rest);
            let crew = WorkerRange {
                first,
                workers: workers.min(each) + dealt(sum) - before,
                of: of as u32,
            };
            first += crew.workers;
            crew
        });
        crews.collect()
    }

    /// The share of its worker `nth`, from 0.
    pub fn share(self, nth: u32) -> Share {
        Share { index: self.first + nth, of: self.of }
    }

    /// How many of `total` items are its own.
    pub fn part(self, total: u64) -> u64 {
        (0..self.workers).map(|nth| self.share(nth).part(total)).sum()
    }

    /// Its part of all work, 0 to 1.
    pub fn weight(self) -> f64 {
        f64::from(self.workers) / f64::from(self.of.max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn parts_sum_to_the_whole_and_differ_by_one_at_most(total in 0u64..10_000, of in 1u32..40) {
            let parts: Vec<u64> = (0..of).map(|index| Share { index, of }.part(total)).collect();
            prop_assert_eq!(parts.iter().sum::<u64>(), total);
            prop_assert!(parts.iter().max().unwrap() - parts.iter().min().unwrap() <= 1);
        }

        #[test]
        fn crews_have_each_worker_once_and_no_more_than_they_offer(
            offered in proptest::collection::vec(0u32..20, 1..12),
            useful in 0u32..100,
            total in 0u64..10_000,
        ) {
            let crews = WorkerRange::deal(&offered, useful);
            let all: u32 = offered.iter().sum();
            let mut next = 0;
            for (crew, &offered) in crews.iter().zip(&offered) {
                prop_assert_eq!(crew.first, next);
                prop_assert_eq!(crew.of, all.min(useful));
                prop_assert!(crew.workers <= offered);
                next += crew.workers;
            }
            prop_assert_eq!(next, all.min(useful));
            let here = offered.iter().filter(|&&workers| workers > 0).count() as u32;
            if useful >= here {
                prop_assert!(crews.iter().zip(&offered).all(|(c, &o)| c.workers > 0 || o == 0));
            }
            if next > 0 {
                prop_assert_eq!(crews.iter().map(|c| c.part(total)).sum::<u64>(), total);
            }
        }
    }
}
