//! One worker's part of a whole.

/// The part of one worker among several: number `index` (from 0) of `of`.
///
/// What is counted (operations, users) is dealt out in turn, as cards are: worker `i` takes the
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
    }
}
