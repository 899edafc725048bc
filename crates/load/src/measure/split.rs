//! Time inside the server's host, of operations that were seen at both ends.

use super::anatomy::{Anatomy, row_of};
use crate::time::Nanos;
use serde::{Deserialize, Serialize};

/// Sums of the time inside the server's host and on the network, apart by response time in the rows
/// of an [`Anatomy`]. Those of several workers merge exactly.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Split {
    /// Ascending: the row, how many operations, and both sums in nanoseconds.
    rows: Vec<(usize, u64, [u64; 2])>,
}

/// The time of a group's operations that were seen at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SplitPart {
    /// How many operations, not rounded: those of a row count in proportion, as in the anatomy.
    pub count: f64,
    /// The sum of the times inside the server's host, in nanoseconds.
    pub host_ns: f64,
    /// The sum of the times on the network, both ways.
    pub network_ns: f64,
}

impl SplitPart {
    /// The server host's share of the time, 0 to 1; `None` where there is no time to share.
    pub fn host_share(&self) -> Option<f64> {
        let whole_ns = self.host_ns + self.network_ns;
        (whole_ns > 0.0).then(|| self.host_ns / whole_ns)
    }
}

impl Split {
    /// Adds an operation of this response time.
    pub fn add(&mut self, response: Nanos, host: Nanos, network: Nanos) {
        self.add_row((row_of(response.0), 1, [host.0, network.0]));
    }

    /// Adds another's operations.
    pub fn merge(&mut self, other: &Split) {
        other.rows.iter().for_each(|row| self.add_row(*row));
    }

    fn add_row(&mut self, (row, count, sums): (usize, u64, [u64; 2])) {
        match self.rows.binary_search_by_key(&row, |(row, ..)| *row) {
            Ok(at) => {
                let (_, counted, mine) = &mut self.rows[at];
                *counted += count;
                for (sum, more) in mine.iter_mut().zip(sums) {
                    *sum = sum.saturating_add(more);
                }
            }
            Err(at) => self.rows.insert(at, (row, count, sums)),
        }
    }

    /// What both ends saw of the operations of `all` from a share `from` (0 to 1) on to a share
    /// `to`: see [`Anatomy::part`].
    pub fn part(&self, all: &Anatomy, from: f64, to: f64) -> SplitPart {
        let mut part = SplitPart::default();
        for (row, share) in all.taken(from, to) {
            let Ok(at) = self.rows.binary_search_by_key(&row, |(row, ..)| *row) else {
                continue;
            };
            let (_, count, [host, network]) = self.rows[at];
            part.count += count as f64 * share;
            part.host_ns += host as f64 * share;
            part.network_ns += network as f64 * share;
        }
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Stage;
    use proptest::prelude::*;

    proptest! {
        /// What two saw, merged, is what one would have seen; and all groups together are all.
        #[test]
        fn merging_is_exact(
            ops in prop::collection::vec((1u64..3_000_000, 0u64..2_000, any::<bool>()), 1..80),
        ) {
            let [mut mine, mut theirs, mut whole] = [(); 3].map(|()| Split::default());
            let mut all = Anatomy::default();
            for (host, network, is_mine) in ops {
                let response = Nanos(host + network);
                let mut stages = [Nanos::ZERO; Stage::COUNT];
                stages[Stage::FirstByte as usize] = response;
                all.add(response, &stages);
                let one = if is_mine { &mut mine } else { &mut theirs };
                one.add(response, Nanos(host), Nanos(network));
                whole.add(response, Nanos(host), Nanos(network));
            }
            mine.merge(&theirs);
            prop_assert_eq!(&mine, &whole);
            let sum = |from, to| whole.part(&all, from, to).host_ns;
            let parts = sum(0.0, 0.9) + sum(0.9, 0.99) + sum(0.99, 1.0);
            prop_assert!((parts - sum(0.0, 1.0)).abs() <= 1e-6 * parts, "{}", parts);
            let part = whole.part(&all, 0.0, 1.0);
            let seen = all.part(0.0, 1.0);
            prop_assert!((part.host_ns + part.network_ns - seen.total_ns()).abs() < 1.0);
        }
    }
}
